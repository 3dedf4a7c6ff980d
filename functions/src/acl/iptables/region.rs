//! The packets that one match of iptables, or several together, select: a union of boxes.

use super::Family;
use crate::acl::rule::{Ports, Prefix, Protocols};

/// A box: the conditions of a rule without its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub src: Prefix,
    pub dst: Prefix,
    pub sport: Option<Ports>,
    pub dport: Option<Ports>,
    pub protocols: Protocols,
}

impl Region {
    /// All packets of a family.
    pub fn all(family: Family) -> Self {
        let any = match family {
            Family::V4 => Prefix::v4(0, 0),
            Family::V6 => Prefix::v6(0, 0),
        };
        Self { src: any, dst: any, sport: None, dport: None, protocols: Protocols::ALL }
    }

    /// The packets in both, if there can be any.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        Some(Self {
            src: narrower(self.src, other.src)?,
            dst: narrower(self.dst, other.dst)?,
            sport: common(self.sport, other.sport)?,
            dport: common(self.dport, other.dport)?,
            protocols: {
                let first = self.protocols.first.max(other.protocols.first);
                let last = self.protocols.last.min(other.protocols.last);
                (first <= last).then_some(Protocols { first, last })?
            },
        })
    }
}

fn narrower(a: Prefix, b: Prefix) -> Option<Prefix> {
    if a.contains(&b) { Some(b) } else { b.contains(&a).then_some(a) }
}

/// Ports in both; the outer `None` says there are none, the inner that ports do not matter.
fn common(a: Option<Ports>, b: Option<Ports>) -> Option<Option<Ports>> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let (first, last) = (a.first.max(b.first), a.last.min(b.last));
            (first <= last).then_some(Some(Ports { first, last }))
        }
        (a, b) => Some(a.or(b)),
    }
}

/// Most boxes that the matches of one rule may be.
pub const MOST_REGIONS: usize = 1 << 15;
/// Most pairs of boxes to look at for one match, of which most must be empty.
const MOST_PAIRS: usize = 1 << 24;

/// The packets in one box of `a` and one of `b`; `None` if those are more than [`MOST_REGIONS`] boxes, which is found
/// before they are made.
pub fn product(a: &[Region], b: &[Region]) -> Option<Vec<Region>> {
    if a.len().saturating_mul(b.len()) > MOST_PAIRS {
        return None;
    }
    let all: Vec<Region> =
        a.iter().flat_map(|a| b.iter().filter_map(|b| a.intersect(b))).take(MOST_REGIONS + 1).collect();
    (all.len() <= MOST_REGIONS).then_some(all)
}

/// Ports in none of the ranges, as ranges in order.
pub fn other_ports(ranges: &[Ports]) -> Vec<Ports> {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable_by_key(|r| r.first);
    let mut rest = Vec::new();
    let mut next = 0u32;
    for range in ranges {
        if u32::from(range.first) > next {
            rest.push(Ports { first: next as u16, last: range.first - 1 });
        }
        next = next.max(u32::from(range.last) + 1);
    }
    if next <= u32::from(u16::MAX) {
        rest.push(Ports { first: next as u16, last: u16::MAX });
    }
    rest
}

/// The networks that hold exactly the addresses from `first` to `last`, in order; at most twice as
/// many as an address has bits.
pub fn networks(first: u128, last: u128, family: Family) -> Vec<Prefix> {
    let bits = match family {
        Family::V4 => 32,
        Family::V6 => 128,
    };
    let mut found = Vec::new();
    let mut next = first;
    while next <= last {
        // The largest network that begins here and ends in time.
        let mut free = next.trailing_zeros().min(bits);
        let end = |free: u32| next | 1u128.checked_shl(free).unwrap_or(0).wrapping_sub(1);
        while end(free) > last {
            free -= 1;
        }
        let length = (bits - free) as u8;
        found.push(match family {
            Family::V4 => Prefix::v4(next as u32, length),
            Family::V6 => Prefix::v6(next, length),
        });
        match end(free).checked_add(1) {
            Some(behind) => next = behind,
            None => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_addresses_is_a_few_networks() {
        let text = |first, last, family| {
            networks(first, last, family).iter().map(Prefix::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(0x0a00_0001, 0x0a00_0006, Family::V4), "10.0.0.1 10.0.0.2/31 10.0.0.4/31 10.0.0.6");
        assert_eq!(text(0, u32::MAX.into(), Family::V4), "0.0.0.0/0");
        assert_eq!(text(u32::MAX.into(), u32::MAX.into(), Family::V4), "255.255.255.255");
        assert_eq!(text(0, u128::MAX, Family::V6), "::/0");
        assert_eq!(networks(1, u128::MAX - 1, Family::V6).len(), 254);
    }

    #[test]
    fn other_ports_are_all_the_rest() {
        let p = |first, last| Ports { first, last };
        assert_eq!(other_ports(&[p(80, 90), p(10, 20), p(85, 95)]), [p(0, 9), p(21, 79), p(96, 65535)]);
        assert_eq!(other_ports(&[p(0, 65535)]), []);
        assert_eq!(other_ports(&[p(0, 7), p(9, 65535)]), [p(8, 8)]);
    }
}
