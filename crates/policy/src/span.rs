//! Places in a chain file: byte ranges, and values that know where they stand.

use serde::{Deserialize, Serialize};

/// A half-open byte range `start..end` of a chain file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`; offsets beyond 4 GiB saturate (sources are bounded far below).
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(end) }
    }

    /// The smallest range that holds both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The range as `usize` offsets that lie within `source` and on character boundaries.
    #[must_use]
    pub fn within(self, source: &str) -> std::ops::Range<usize> {
        let floor = |mut at: usize| {
            at = at.min(source.len());
            while !source.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(self.start as usize);
        start..floor(self.end as usize).max(start)
    }
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) node: T,
    pub(crate) span: Span,
}

/// A name and where it was written.
pub(crate) type Name = Spanned<String>;
