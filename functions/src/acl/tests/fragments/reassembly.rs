//! A host's reassembly of one datagram's fragments, as hosts do it or did: Linux, and what is left of older ones
//! (Novak, "Target-Based Fragmentation Reassembly", 2005: hosts differ in which of two overlapping fragments wins).

/// A fragment as its receiver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where in the datagram its bytes belong.
    pub offset: usize,
    /// Whether more follow.
    pub more: bool,
    /// What its header names as the next header.
    pub next: u8,
    /// Its part of the datagram.
    pub data: Vec<u8>,
}

/// What becomes of bytes that come twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// RFC 5722 §4, RFC 8200 §4.5, and Linux for IPv4 as well: the datagram is discarded, what is wholly there already is
    /// ignored.
    Discards,
    /// The first that came stays.
    FirstWins,
    /// The last that came replaces it.
    LastWins,
}

impl Overlap {
    /// Every kind of host.
    pub const ALL: [Overlap; 3] = [Overlap::Discards, Overlap::FirstWins, Overlap::LastWins];
}

/// The datagram that is being put together.
pub struct Reassembly {
    overlap: Overlap,
    /// A byte and the next header that its fragment named, where a byte has come.
    bytes: Vec<Option<(u8, u8)>>,
    length: Option<usize>,
}

impl Reassembly {
    /// Nothing has come yet.
    pub fn new(overlap: Overlap) -> Self {
        Reassembly { overlap, bytes: Vec::new(), length: None }
    }

    /// Take a fragment; returns the datagram, with the next header that its first byte came with, once it is whole.
    pub fn take(&mut self, fragment: &Fragment) -> Option<(u8, Vec<u8>)> {
        let end = fragment.offset + fragment.data.len();
        if fragment.more && !fragment.data.len().is_multiple_of(8) {
            return None;
        }
        self.bytes.resize(self.bytes.len().max(end), None);
        let there = self.bytes[fragment.offset..end].iter().flatten().count();
        if self.overlap == Overlap::Discards {
            let beyond = self.length.is_some_and(|length| end > length || (!fragment.more && end != length));
            let short = !fragment.more && self.bytes[end..].iter().any(Option::is_some);
            if there > 0 && there == fragment.data.len() && !beyond && !short {
                return None;
            }
            if there > 0 || beyond || short {
                *self = Reassembly::new(self.overlap);
                return None;
            }
        }
        for (slot, byte) in self.bytes[fragment.offset..end].iter_mut().zip(&fragment.data) {
            if slot.is_none() || self.overlap == Overlap::LastWins {
                *slot = Some((*byte, fragment.next));
            }
        }
        if !fragment.more && (self.length.is_none() || self.overlap == Overlap::LastWins) {
            self.length = Some(end);
        }
        let whole: Vec<(u8, u8)> = self.bytes.get(..self.length?)?.iter().copied().collect::<Option<_>>()?;
        let next = whole.first()?.1;
        *self = Reassembly::new(self.overlap);
        Some((next, whole.into_iter().map(|(byte, _)| byte).collect()))
    }
}
