//! Packets as points and rules as boxes: the geometry the classifier works in.
//!
//! A key of an IPv4 packet is a point in 5 dimensions (source, destination, source port,
//! destination port, protocol), a rule a box of one interval per dimension. An IPv6 address takes
//! four dimensions of 32 bits each: a prefix is a point in its first words, an interval in the word
//! where it ends, and everything in the words behind. So one code serves both families.
//!
//! `W` is the number of words of a point: 8 for IPv4, 16 for IPv6.

use crate::acl::key::{KeyV4, KeyV6};
use crate::acl::rule::{Prefix, Rule, mask_v4, mask_v6};

/// Words of an IPv4 point.
pub const V4: usize = 8;
/// Words of an IPv6 point.
pub const V6: usize = 16;

/// Flips the order of unsigned words into that of signed ones, which is what AVX2 can compare.
pub const SIGN: u32 = 0x8000_0000;

/// Dimensions that hold address words: they come first.
pub const fn address_words<const W: usize>() -> usize {
    if W == V4 { 2 } else { 8 }
}

/// Dimensions in all: address words, source port, destination port, protocol.
pub const fn dimensions<const W: usize>() -> usize {
    address_words::<W>() + 3
}

/// A packet's key, ready for the trees: address words with their sign flipped, the two ports, the
/// protocol, then (in the last two words) both ports in one word, and protocol and flag in bytes.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub struct Point<const W: usize>(pub [u32; W]);

impl<const W: usize> Point<W> {
    pub const ORIGIN: Self = Self([0; W]);

    #[inline(always)]
    pub(super) fn set_upper(&mut self, sport: u16, dport: u16, protocol: u8, has_ports: bool) {
        let a = address_words::<W>();
        self.0[a] = u32::from(sport);
        self.0[a + 1] = u32::from(dport);
        self.0[a + 2] = u32::from(protocol);
        self.0[W - 2] = u32::from(sport) | u32::from(dport) << 16;
        self.0[W - 1] = u32::from_le_bytes([protocol, !protocol, u8::from(has_ports), 0]);
    }
}

impl From<&KeyV4> for Point<V4> {
    #[inline(always)]
    fn from(key: &KeyV4) -> Self {
        let mut point = Self::ORIGIN;
        point.0[0] = key.src ^ SIGN;
        point.0[1] = key.dst ^ SIGN;
        point.set_upper(key.sport, key.dport, key.protocol, key.has_ports);
        point
    }
}

impl From<&KeyV6> for Point<V6> {
    #[inline(always)]
    fn from(key: &KeyV6) -> Self {
        let mut point = Self::ORIGIN;
        for (i, word) in words(key.src).into_iter().chain(words(key.dst)).enumerate() {
            point.0[i] = word ^ SIGN;
        }
        point.set_upper(key.sport, key.dport, key.protocol, key.has_ports);
        point
    }
}

/// The four 32-bit words of an IPv6 address, the most significant first.
#[inline(always)]
fn words(a: u128) -> [u32; 4] {
    [
        (a >> 96) as u32,
        (a >> 64) as u32,
        (a >> 32) as u32,
        a as u32,
    ]
}

/// An interval of one dimension, both ends included, in unsigned order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub lo: u32,
    pub hi: u32,
}

impl Span {
    const ALL: Self = Self {
        lo: 0,
        hi: u32::MAX,
    };

    pub fn covers(&self, inner: &Self) -> bool {
        self.lo <= inner.lo && inner.hi <= self.hi
    }
}

/// A rule as a box. Dimensions behind [`dimensions`] are unused.
#[derive(Clone, Copy)]
pub struct RuleBox<const W: usize> {
    pub spans: [Span; W],
    pub needs_ports: bool,
    /// Place of the rule in the list the user wrote: the lowest that matches wins.
    pub index: u32,
}

impl<const W: usize> RuleBox<W> {
    /// Whether every packet in `region` matches this rule.
    pub fn covers(&self, region: &[Span; W]) -> bool {
        !self.needs_ports && (0..dimensions::<W>()).all(|d| self.spans[d].covers(&region[d]))
    }

    fn upper(rule: &Rule, index: u32) -> Self {
        let a = address_words::<W>();
        let mut spans = whole::<W>();
        let ports = |p: Option<crate::acl::rule::Ports>| match p {
            Some(p) => Span {
                lo: p.first.into(),
                hi: p.last.into(),
            },
            None => spans[a],
        };
        let (sport, dport) = (ports(rule.sport), ports(rule.dport));
        spans[a] = sport;
        spans[a + 1] = dport;
        spans[a + 2] = Span {
            lo: rule.protocols.first.into(),
            hi: rule.protocols.last.into(),
        };
        Self {
            spans,
            needs_ports: rule.needs_ports(),
            index,
        }
    }
}

/// The box that holds all points.
pub fn whole<const W: usize>() -> [Span; W] {
    let a = address_words::<W>();
    let mut spans = [Span::ALL; W];
    spans[a] = Span { lo: 0, hi: 0xffff };
    spans[a + 1] = Span { lo: 0, hi: 0xffff };
    spans[a + 2] = Span { lo: 0, hi: 0xff };
    spans
}

/// A family of addresses: which rules speak about it.
pub trait Family<const W: usize> {
    /// The rule as a box, or `None` if it can match no packet of this family.
    fn enclose(rule: &Rule, index: u32) -> Option<RuleBox<W>>;
}

impl Family<V4> for Point<V4> {
    fn enclose(rule: &Rule, index: u32) -> Option<RuleBox<V4>> {
        let mut b = RuleBox::upper(rule, index);
        for (d, prefix) in [rule.src, rule.dst].into_iter().enumerate() {
            match prefix {
                Some(Prefix::V4 { bits, length }) => {
                    b.spans[d] = Span {
                        lo: bits,
                        hi: bits | !mask_v4(length),
                    };
                }
                Some(Prefix::V6 { .. }) => return None,
                None => {}
            }
        }
        possible(rule).then_some(b)
    }
}

impl Family<V6> for Point<V6> {
    fn enclose(rule: &Rule, index: u32) -> Option<RuleBox<V6>> {
        let mut b = RuleBox::upper(rule, index);
        for (address, prefix) in [rule.src, rule.dst].into_iter().enumerate() {
            match prefix {
                Some(Prefix::V6 { bits, length }) => {
                    let (first, last) = (words(bits), words(bits | !mask_v6(length)));
                    for w in 0..4 {
                        b.spans[4 * address + w] = Span {
                            lo: first[w],
                            hi: last[w],
                        };
                    }
                }
                Some(Prefix::V4 { .. }) => return None,
                None => {}
            }
        }
        possible(rule).then_some(b)
    }
}

/// Whether any packet can match: a range written backwards is empty.
fn possible(rule: &Rule) -> bool {
    let forward = |p: Option<crate::acl::rule::Ports>| p.is_none_or(|p| p.first <= p.last);
    forward(rule.sport) && forward(rule.dport) && rule.protocols.first <= rule.protocols.last
}
