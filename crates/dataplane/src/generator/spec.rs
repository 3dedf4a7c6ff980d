//! What traffic a generator makes, as plain data.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use catena_packet::wire::ethernet::Mac;

use super::error::Problem;
use super::tuple::Tuples;

/// Most flows that live at once: each needs about 100 bytes.
pub const MOST_FLOWS: u64 = 1 << 26;
/// Shortest frame in bytes, without its check sequence (IEEE 802.3: 64 with it).
pub const SHORTEST: usize = 60;
/// Longest frame in bytes, without its check sequence: what jumbo links commonly carry.
pub const LONGEST: usize = 9216;
/// Where virtual time begins: 2026-01-01 00:00 UTC, in ns since 1970.
pub const START: u64 = 1_767_225_600_000_000_000;

/// What traffic a generator makes. The same specification gives the same packets, with [`Time::Virtual`]
/// at the same times.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Flows that live at once, 1 to [`MOST_FLOWS`].
    pub flows: u64,
    /// Lengths of the packets, in bytes with the Ethernet header and without the check sequence. A packet
    /// whose headers need more is as long as they are.
    pub size: Size,
    /// Which flow the next packet belongs to.
    pub order: Order,
    /// Packets in a flow, drawn with the system's logarithms and powers: their last bit, and so now and then
    /// a flow's length, may differ between mathematical libraries.
    pub length: Length,
    /// New flows a second, if set. Each takes a free place or, when all are taken, ends a living flow, the
    /// places in turn; a flow that ends by itself leaves its place free. If not set, the next flow begins
    /// as soon as one ends.
    pub new: Option<f64>,
    /// Shares of the protocols among the flows.
    pub mix: Mix,
    /// Share of IPv6 among the flows, 0 to 1.
    pub ipv6: f64,
    /// What TCP flows are.
    pub tcp: Tcp,
    /// Clients' addresses in IPv4 flows.
    pub src: Prefix<Ipv4Addr>,
    /// Servers' addresses in IPv4 flows.
    pub dst: Prefix<Ipv4Addr>,
    /// Clients' addresses in IPv6 flows; of a prefix shorter than /96 the first 2³² addresses are used.
    pub src6: Prefix<Ipv6Addr>,
    /// Servers' addresses in IPv6 flows, as `src6`.
    pub dst6: Prefix<Ipv6Addr>,
    /// Clients' ports (and ICMP identifiers).
    pub sport: RangeInclusive<u16>,
    /// Servers' ports.
    pub dport: RangeInclusive<u16>,
    /// Time to live, hop limit.
    pub ttl: u8,
    /// The clients' MAC address.
    pub smac: Mac,
    /// The servers' MAC address.
    pub dmac: Mac,
    /// How fast packets come; if not set, as fast as they are taken (in virtual time: one a µs).
    pub rate: Option<Rate>,
    /// What the times of packets follow.
    pub time: Time,
    /// Packets in total, if limited.
    pub count: Option<u64>,
    /// ns from the first packet to the end, if limited.
    pub duration: Option<u64>,
    /// Makes another traffic of the same kind.
    pub seed: u64,
}

/// Lengths of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All the same.
    Fixed(usize),
    /// 64, 594 and 1518 bytes, 7 to 4 to 1: the customary "simple IMIX" (RFC 6985 gives such mixes names).
    Imix,
    /// Any length between two, both included, as likely as any other.
    Uniform(usize, usize),
}

/// Which flow the next packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The next one.
    RoundRobin,
    /// Any.
    Random,
}

/// Packets in a flow; in a TCP session those between handshake and end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Without end.
    Endless,
    /// All the same.
    Fixed(u64),
    /// Geometric with this mean, at least 1.
    Geometric(f64),
    /// Pareto with a shape and a least number; heavy-tailed where the shape is below 2.
    Pareto(f64, f64),
}

/// Shares of protocols: weights of any scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Weight of UDP.
    pub udp: f64,
    /// Weight of TCP.
    pub tcp: f64,
    /// Weight of ICMP (ICMPv6) echo requests.
    pub icmp: f64,
}

/// What TCP flows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tcp {
    /// The same segment of data again and again, from the client.
    Plain,
    /// Handshake, requests and answers, end; both sides' segments.
    Sessions,
    /// Sessions of which only the client's segments come.
    Client,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix<A> {
    /// Its address; bits beyond `length` do not count.
    pub address: A,
    /// Its length in bits.
    pub length: u8,
}

/// How fast packets come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Packets a second.
    Packets(f64),
    /// Bits of frames (without check sequence, preamble and gap) a second.
    Bits(f64),
}

/// What the times of packets follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// The rate alone, from [`START`] on: packets come as fast as they are taken, and bring their time
    /// with them.
    Virtual,
    /// The context's clock: packets come when their time has come.
    Wall,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            flows: 10_000,
            size: Size::Fixed(64),
            order: Order::RoundRobin,
            length: Length::Endless,
            new: None,
            mix: Mix { udp: 1.0, tcp: 0.0, icmp: 0.0 },
            ipv6: 0.0,
            tcp: Tcp::Plain,
            // RFC 6598 (carrier-grade NAT), RFC 5737 and RFC 3849 (documentation).
            src: Prefix { address: Ipv4Addr::new(100, 64, 0, 0), length: 10 },
            dst: Prefix { address: Ipv4Addr::new(203, 0, 113, 0), length: 24 },
            src6: Prefix { address: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0), length: 96 },
            dst6: Prefix { address: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0), length: 120 },
            sport: 1024..=65535,
            dport: 80..=80,
            ttl: 64,
            smac: Mac([2, 0, 0, 0, 0, 1]),
            dmac: Mac([2, 0, 0, 0, 0, 2]),
            rate: None,
            time: Time::Virtual,
            count: None,
            duration: None,
            seed: 1,
        }
    }
}

impl Spec {
    /// Check that such traffic can be made.
    ///
    /// # Errors
    /// The name of the value that is wrong, as in the text form, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, Problem)> {
        let ensure = |good: bool, key, expected| {
            if good { Ok(()) } else { Err((key, Problem::Expected { what: expected, likely: None })) }
        };
        let real = |value: f64, range: RangeInclusive<f64>| range.contains(&value);
        ensure((1..=MOST_FLOWS).contains(&self.flows), "flows", "1 to 67108864 flows")?;
        let (least, most) = self.size.bounds();
        let fits = SHORTEST <= least && least <= most && most <= LONGEST;
        ensure(fits, "size", "sizes between 60 and 9216 bytes, the smaller first")?;
        match self.length {
            Length::Endless => {}
            Length::Fixed(packets) => ensure(packets > 0, "dist", "at least 1 packet a flow")?,
            Length::Geometric(mean) => ensure(real(mean, 1.0..=1e12), "dist", "a mean of 1 to 1e12 packets")?,
            Length::Pareto(shape, least) => {
                ensure(real(shape, 0.1..=100.0), "dist", "a shape of 0.1 to 100")?;
                ensure(real(least, 1.0..=1e12), "dist", "at least 1 to 1e12 packets a flow")?;
            }
        }
        ensure(self.new.is_none_or(|new| real(new, 1e-3..=1e9)), "new", "0.001 to 1e9 new flows a second")?;
        let weights = [self.mix.udp, self.mix.tcp, self.mix.icmp];
        ensure(weights.iter().all(|weight| real(*weight, 0.0..=1e9)), "proto", "weights of 0 to 1e9")?;
        ensure(weights.iter().sum::<f64>() > 0.0, "proto", "at least one weight above 0")?;
        ensure(real(self.ipv6, 0.0..=1.0), "ipv6", "a share of 0% to 100%")?;
        ensure(self.src.length <= 32, "src", "a prefix of at most 32 bits")?;
        ensure(self.dst.length <= 32, "dst", "a prefix of at most 32 bits")?;
        ensure(self.src6.length <= 128, "src6", "a prefix of at most 128 bits")?;
        ensure(self.dst6.length <= 128, "dst6", "a prefix of at most 128 bits")?;
        ensure(!self.sport.is_empty(), "sport", "the lower port first")?;
        ensure(!self.dport.is_empty(), "dport", "the lower port first")?;
        let rate_fits = match self.rate {
            None => true,
            Some(Rate::Packets(rate)) => real(rate, 1.0..=1e12),
            Some(Rate::Bits(rate)) => real(rate, 1000.0..=1e15),
        };
        ensure(rate_fits, "rate", "1pps to 1e12pps, or 1kbps to 1e15bps")?;
        Tuples::new(self).map(drop)
    }
}

impl Size {
    /// Return the smallest and the largest length.
    pub fn bounds(self) -> (usize, usize) {
        match self {
            Size::Fixed(size) => (size, size),
            Size::Imix => (64, 1518),
            Size::Uniform(least, most) => (least, most),
        }
    }
}
