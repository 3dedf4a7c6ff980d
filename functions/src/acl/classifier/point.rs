//! Packets as points and rules as boxes: the geometry the classifier works in.
//!
//! A key of an IPv4 packet is a point in 5 dimensions (source, destination, source port,
//! destination port, protocol), a rule a box of one interval per dimension. An IPv6 address takes
//! four dimensions of 32 bits each: a prefix is a point in its first words, an interval in the word
//! where it ends, and everything in the words behind. So one code serves both families.
//!
//! `W` is the number of words of a point: 8 for IPv4, 16 for IPv6.

use crate::acl::flow::{FlowV4, FlowV6};
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
    /// A point to be overwritten.
    pub const ORIGIN: Self = Self([0; W]);

    /// The point of a packet with ports whose fields, in the order of the dimensions, are `fields`.
    pub fn of(mut fields: [u32; W]) -> Self {
        let a = address_words::<W>();
        let (sport, dport, protocol) = (fields[a] as u16, fields[a + 1] as u16, fields[a + 2] as u8);
        let packed = packed(sport, dport, protocol, true);
        fields[..a].iter_mut().for_each(|word| *word ^= SIGN);
        (fields[W - 2], fields[W - 1]) = (packed as u32, (packed >> 32) as u32);
        Self(fields)
    }
}

/// The last two words of a point. Points are made of 64-bit parts because the cache reads them so: a
/// load that spans two stores would wait for both to leave the store buffer.
#[inline(always)]
fn packed(sport: u16, dport: u16, protocol: u8, has_ports: bool) -> u64 {
    let upper = u32::from_le_bytes([protocol, !protocol, u8::from(has_ports), 0]);
    u64::from(sport) | u64::from(dport) << 16 | u64::from(upper) << 32
}

/// Two words in the order of memory.
#[inline(always)]
fn two(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

const SIGNS: u64 = (SIGN as u64) << 32 | SIGN as u64;

impl From<&KeyV4> for Point<V4> {
    #[inline(always)]
    fn from(key: &KeyV4) -> Self {
        let &KeyV4 { sport, dport, protocol, has_ports, .. } = key;
        let parts = [
            two(key.src, key.dst) ^ SIGNS,
            two(sport.into(), dport.into()),
            protocol.into(),
            packed(sport, dport, protocol, has_ports),
        ];
        // SAFETY: both are plain numbers of 32 bytes together. Catena runs on little-endian
        // machines only, where the low half of a part comes first.
        Self(unsafe { std::mem::transmute::<[u64; 4], [u32; V4]>(parts) })
    }
}

impl From<&KeyV6> for Point<V6> {
    #[inline(always)]
    fn from(key: &KeyV6) -> Self {
        let &KeyV6 { src, dst, sport, dport, protocol, has_ports } = key;
        // The most significant word comes first.
        let half = |half: u64| half.rotate_left(32) ^ SIGNS;
        let parts = [
            half((src >> 64) as u64),
            half(src as u64),
            half((dst >> 64) as u64),
            half(dst as u64),
            two(sport.into(), dport.into()),
            protocol.into(),
            0,
            packed(sport, dport, protocol, has_ports),
        ];
        // SAFETY: both are plain numbers of 64 bytes together; byte order as above.
        Self(unsafe { std::mem::transmute::<[u64; 8], [u32; V6]>(parts) })
    }
}

impl From<&FlowV4> for Point<V4> {
    #[inline(always)]
    fn from(flow: &FlowV4) -> Self {
        Self::from(&KeyV4::from(flow))
    }
}

impl From<&FlowV6> for Point<V6> {
    #[inline(always)]
    fn from(flow: &FlowV6) -> Self {
        Self::from(&KeyV6::from(flow))
    }
}

#[cfg(not(target_endian = "little"))]
compile_error!("points are laid out for little-endian machines");

/// The four 32-bit words of an IPv6 address, the most significant first.
fn words(a: u128) -> [u32; 4] {
    [(a >> 96) as u32, (a >> 64) as u32, (a >> 32) as u32, a as u32]
}

/// An interval of one dimension, both ends included, in unsigned order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub lo: u32,
    pub hi: u32,
}

impl Span {
    const ALL: Self = Self { lo: 0, hi: u32::MAX };

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
    /// Whether every packet in `region` matches this rule, or, if it asks for ports, every packet
    /// that has them.
    pub fn fills(&self, region: &[Span; W]) -> bool {
        (0..dimensions::<W>()).all(|d| self.spans[d].covers(&region[d]))
    }

    fn upper(rule: &Rule, index: u32) -> Self {
        let a = address_words::<W>();
        let mut spans = whole::<W>();
        let ports = |p: Option<crate::acl::rule::Ports>| match p {
            Some(p) => Span { lo: p.first.into(), hi: p.last.into() },
            None => spans[a],
        };
        let (sport, dport) = (ports(rule.sport), ports(rule.dport));
        spans[a] = sport;
        spans[a + 1] = dport;
        spans[a + 2] = Span { lo: rule.protocols.first.into(), hi: rule.protocols.last.into() };
        Self { spans, needs_ports: rule.needs_ports(), index }
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
                    b.spans[d] = Span { lo: bits, hi: bits | !mask_v4(length) };
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
                        b.spans[4 * address + w] = Span { lo: first[w], hi: last[w] };
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
