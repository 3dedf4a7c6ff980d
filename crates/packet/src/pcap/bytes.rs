//! Numbers in either byte order, read from slices whose length the caller has checked.

/// The byte order of a file or section, told by a magic number at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The 16-bit number at `at`.
    ///
    /// # Panics
    /// When `bytes` ends before it: the reader asks for a header's length before it reads fields.
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let raw = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        match self {
            Order::Little => raw,
            Order::Big => raw.swap_bytes(),
        }
    }

    /// The 32-bit number at `at`.
    ///
    /// # Panics
    /// As [`Order::u16`].
    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let raw = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        match self {
            Order::Little => raw,
            Order::Big => raw.swap_bytes(),
        }
    }
    /// The signed 64-bit number at `at`.
    ///
    /// # Panics
    /// As [`Order::u16`].
    pub(super) fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let (first, second) = (self.u32(bytes, at), self.u32(bytes, at + 4));
        let (high, low) = match self {
            Order::Little => (second, first),
            Order::Big => (first, second),
        };
        (u64::from(high) << 32 | u64::from(low)) as i64
    }
}
