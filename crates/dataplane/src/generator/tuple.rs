//! Who talks to whom: the addresses, ports and protocol of every flow, computed from its number alone.
//!
//! A place for a living flow owns the numbers `place`, `place + flows`, `place + 2 · flows` and so on, and
//! a keyed permutation turns numbers into source address and port; so no two living flows ever share a
//! 5-tuple, although nothing remembers which are in use.

use catena_packet::random::{Random, mix};

use super::error::Problem;
use super::spec::{Mix, Spec};

/// The protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proto {
    Udp,
    Tcp,
    Icmp,
}

/// Addresses, ports and protocol of a flow, as the client sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuple {
    /// An IPv4 address stands in the first four bytes.
    pub src: [u8; 16],
    pub dst: [u8; 16],
    pub sport: u16,
    pub dport: u16,
    pub proto: Proto,
    pub v6: bool,
}

/// Computes the [`Tuple`] of every flow.
pub(super) struct Tuples {
    flows: u64,
    v4: Family,
    v6: Family,
    /// A number below it (out of 2³²) is a UDP flow's; one below the second a TCP flow's.
    protocols: [u64; 2],
    ipv6: u64,
    key: u64,
}

/// Addresses of one family.
struct Family {
    src: Addresses,
    dst: Addresses,
    sport: Ports,
    dport: Ports,
    /// Whether source address and port are enough to tell all living flows apart.
    by_source: bool,
    /// Whether, where they are not, destination ports help: all flows have one.
    by_dport: bool,
    permutation: Permutation,
    /// Flows that a place can have before one comes again.
    generations: u64,
}

struct Addresses {
    base: u128,
    /// A power of two.
    count: u64,
}

impl Addresses {
    fn bits(&self) -> u32 {
        self.count.trailing_zeros()
    }
}

struct Ports {
    first: u16,
    count: u64,
}

impl Tuples {
    /// Prepare for a specification.
    ///
    /// # Errors
    /// Too few addresses and ports for so many flows.
    pub fn new(spec: &Spec) -> Result<Self, (&'static str, Problem)> {
        let mut random = Random::new(spec.seed);
        let addresses = |bits: u128, width: u8, length: u8| {
            let host = u32::from(width - length);
            let low = if host == 128 { u128::MAX } else { (1 << host) - 1 };
            Addresses { base: bits & !low, count: 1 << host.min(32) }
        };
        let v4 = |p: &super::spec::Prefix<std::net::Ipv4Addr>| addresses(p.address.to_bits().into(), 32, p.length);
        let v6 = |p: &super::spec::Prefix<std::net::Ipv6Addr>| addresses(p.address.to_bits(), 128, p.length);
        let ports = |range: &std::ops::RangeInclusive<u16>| Ports {
            first: *range.start(),
            count: u64::from(*range.end()) - u64::from(*range.start()) + 1,
        };
        let mut family = |key, src: Addresses, dst: Addresses, used: bool| {
            let (sport, dport) = (ports(&spec.sport), ports(&spec.dport));
            let sources = src.count * sport.count;
            let by_source = sources >= spec.flows;
            let by_dport = spec.mix.icmp == 0.0;
            let servers = dst.count * if by_dport { dport.count } else { 1 };
            let all = u128::from(sources) * u128::from(servers);
            let domain = if by_source { sources } else { all.min(1 << 62) as u64 };
            if used && domain < spec.flows {
                return Err((key, Problem::TooFewAddresses { flows: spec.flows, tuples: domain }));
            }
            let permutation = Permutation::new(domain, &mut random);
            let generations = (domain / spec.flows).max(1);
            Ok(Family { src, dst, sport, dport, by_source, by_dport, permutation, generations })
        };
        let v4 = family("src", v4(&spec.src), v4(&spec.dst), spec.ipv6 < 1.0)?;
        let v6 = family("src6", v6(&spec.src6), v6(&spec.dst6), spec.ipv6 > 0.0)?;
        let Mix { udp, tcp, icmp } = spec.mix;
        let scale = 2f64.powi(32) / (udp + tcp + icmp);
        let protocols = [(udp * scale).round() as u64, ((udp + tcp) * scale).round() as u64];
        let ipv6 = (spec.ipv6 * 2f64.powi(32)).round() as u64;
        Ok(Tuples { flows: spec.flows, v4, v6, protocols, ipv6, key: random.bits() })
    }

    /// Return the tuple of the flow that is the `generation`th of its place.
    pub fn get(&self, place: u64, generation: u64) -> Tuple {
        let number = place + generation.wrapping_mul(self.flows);
        // The R2 sequence (Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018): the
        // shares of protocols and families are nearly exact among any few flows, and independent.
        let along = |step: u64, start: u64| number.wrapping_mul(step).wrapping_add(start) >> 32;
        let kind = along(0xc13f_a9a9_02a6_328f, self.key);
        let v6 = along(0x91e1_0da5_c79e_7b1d, self.key.rotate_left(32)) < self.ipv6;
        let proto = match kind {
            kind if kind < self.protocols[0] => Proto::Udp,
            kind if kind < self.protocols[1] => Proto::Tcp,
            _ => Proto::Icmp,
        };
        let family = if v6 { &self.v6 } else { &self.v4 };
        // Divisions cost more than all the rest: the usual flow does without.
        let generation = if generation < family.generations { generation } else { generation % family.generations };
        let source = family.permutation.of(place + generation * self.flows);
        let (source, src) = (source >> family.src.bits(), source & (family.src.count - 1));
        let any = mix(number ^ self.key);
        let (sport, dst, dport) = if family.by_source {
            // All of them are one of `src` and one of `sport`.
            (source, below(any, family.dst.count), below(any.rotate_left(32), family.dport.count))
        } else {
            let (rest, sport) = (source / family.sport.count, source % family.sport.count);
            if family.by_dport {
                (sport, rest / family.dport.count % family.dst.count, rest % family.dport.count)
            } else {
                (sport, rest % family.dst.count, below(any.rotate_left(32), family.dport.count))
            }
        };
        let bytes = |addresses: &Addresses, index: u64| {
            let address = addresses.base | u128::from(index);
            if v6 { address.to_be_bytes() } else { (address << 96).to_be_bytes() }
        };
        Tuple {
            src: bytes(&family.src, src),
            dst: bytes(&family.dst, dst),
            sport: family.sport.first + sport as u16,
            dport: family.dport.first + dport as u16,
            proto,
            v6,
        }
    }

    /// Return 64 bits that belong to one flow, for initial sequence numbers and the like.
    pub fn bits(&self, place: u64, generation: u64) -> u64 {
        mix(mix(place.wrapping_add(generation.wrapping_mul(self.flows))).wrapping_add(self.key))
    }
}

/// Scale 32 random bits to a number below `count` (at most 2³²).
fn below(bits: u64, count: u64) -> u64 {
    ((bits >> 32) * count) >> 32
}

/// A keyed permutation of the numbers below `domain`: a Feistel network on the next even number of bits,
/// walked until it comes back into the domain (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", §4).
struct Permutation {
    domain: u64,
    half: u32,
    keys: [u64; 4],
}

impl Permutation {
    fn new(domain: u64, random: &mut Random) -> Self {
        let bits = 64 - (domain.max(2) - 1).leading_zeros();
        Permutation { domain, half: bits.div_ceil(2), keys: std::array::from_fn(|_| random.bits()) }
    }

    fn of(&self, mut number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        loop {
            let (mut left, mut right) = (number >> self.half, number & mask);
            for key in self.keys {
                let scrambled = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (left, right) = (right, left ^ ((scrambled ^ (scrambled >> 32)) & mask));
            }
            number = left << self.half | right;
            if number < self.domain {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_hits_every_number_once() {
        for domain in [1, 2, 3, 5, 64, 1000, 4097] {
            let permutation = Permutation::new(domain, &mut Random::new(domain));
            let mut hit: Vec<u64> = (0..domain).map(|n| permutation.of(n)).collect();
            hit.sort_unstable();
            assert!(hit.into_iter().eq(0..domain), "{domain}");
        }
    }
}
