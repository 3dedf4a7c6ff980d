//! Datagrams cut into hostile fragments, through an ACL and together again: what a host makes of the fragments that pass
//! is never a datagram that the ACL denies whole.
//!
//! Nothing here is shared with what it tests, except how a rule is held against a packet's fields.

use super::acl::key::{KeyV4, KeyV6};
use super::acl::parse::parse;
use super::acl::rule::{Action, Rule};
use super::reassembly::{Fragment, Overlap, Reassembly};

/// Rules to make lists of.
const RULES: [&str; 14] = [
    "deny tcp to any port 22",
    "deny udp to any port 53",
    "deny sctp to any port 22",
    "deny dccp from any port 80 to any port 22",
    "deny udplite to any port 53",
    "deny any to any port 0-79",
    "deny 6-17 from any port 53",
    "deny icmp",
    "permit tcp to any port 80",
    "permit udp to any port 80",
    "permit sctp",
    "permit udp",
    "permit 33-136 to any port 80",
    "permit any",
];
const PROTOCOLS: [u8; 7] = [6, 6, 17, 132, 33, 136, 1];
const PORTS: [u16; 3] = [22, 53, 80];
const DESTINATION_OPTIONS: u8 = 60;
const AUTHENTICATION: u8 = 51;
const SRC: u32 = 0x0a00_0001;
const DST: u32 = 0xc000_0209;

/// Reads choices from bytes; zeros when they run out.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(first) % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What came of one input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Came {
    /// Datagrams that hosts made of them.
    pub datagrams: [usize; 3],
    /// Datagrams that are denied whole and that hosts would have made without the ACL.
    pub forbidden: [usize; 3],
}

/// Play the attack that the bytes describe; `pass` says which of the frames an ACL of these rules lets pass.
///
/// # Panics
/// When a datagram comes out of the fragments that passed which the rules deny.
pub fn no_denied_datagram_comes_out(
    bytes: &[u8],
    pass: impl FnOnce(&[Rule], Action, &[Vec<u8>]) -> Vec<usize>,
) -> Came {
    let mut choices = Choices(bytes);
    let c = &mut choices;
    let v6 = c.below(2) == 1;
    let lines: Vec<&str> = (0..1 + c.below(4)).map(|_| c.of(&RULES)).collect();
    let default = c.of(&[Action::Permit, Action::Deny]);
    let rules = parse(&lines.join("\n")).expect("these are rules");
    let denied = |next: u8, data: &[u8]| {
        read(v6, next, data).filter(|datagram| verdict(&rules, default, v6, *datagram) == Action::Deny)
    };

    // The fragments of one to three datagrams that call themselves the same.
    let proto = c.of(&PROTOCOLS);
    let authenticated = c.below(4) == 3;
    let count = 1 + c.below(3);
    let mut fragments: Vec<Fragment> = Vec::new();
    for _ in 0..count {
        let (next, data) = datagram(c, v6, proto, authenticated);
        cut(c, v6, next, &data, &mut fragments);
    }
    for i in (1..fragments.len()).rev() {
        if c.below(2) == 0 {
            fragments.swap(i, c.below(i + 1));
        }
    }

    let frames: Vec<Vec<u8>> = fragments.iter().map(|fragment| frame(v6, fragment)).collect();
    let passed = pass(&rules, default, &frames);

    let mut came = Came::default();
    for (host, overlap) in Overlap::ALL.into_iter().enumerate() {
        let mut reassembly = Reassembly::new(overlap);
        for &index in &passed {
            let Some((next, data)) = reassembly.take(&fragments[index]) else { continue };
            came.datagrams[host] += 1;
            if let Some(datagram) = denied(next, &data) {
                let shown: Vec<_> = passed.iter().map(|&index| &fragments[index]).collect();
                panic!("{overlap:?}: {datagram:?} comes through {lines:?}, default {default:?}, as {shown:02x?}");
            }
        }
        let mut reassembly = Reassembly::new(overlap);
        let whole = fragments.iter().filter_map(|fragment| reassembly.take(fragment));
        came.forbidden[host] = whole.filter(|(next, data)| denied(*next, data).is_some()).count();
    }
    came
}

/// Protocol and, where there are any, ports of a datagram.
type Datagram = (u8, Option<(u16, u16)>);

/// Read a datagram as its receiver does; `None` if that discards it, for want of a header.
fn read(v6: bool, mut next: u8, mut data: &[u8]) -> Option<Datagram> {
    loop {
        let length = match (next, data) {
            (AUTHENTICATION, [_, words, ..]) => (usize::from(*words) + 2) * 4,
            (DESTINATION_OPTIONS, [_, words, ..]) if v6 => (usize::from(*words) + 1) * 8,
            (AUTHENTICATION, _) => return None,
            (DESTINATION_OPTIONS, _) if v6 => return None,
            _ => break,
        };
        next = data[0];
        data = data.get(length..)?;
    }
    let ports = match (next, data) {
        (6 | 17 | 33 | 132 | 136, &[a, b, c, d, ..]) => Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))),
        _ => None,
    };
    Some((next, ports))
}

/// What the rules say of it, one after the other.
fn verdict(rules: &[Rule], default: Action, v6: bool, (protocol, ports): Datagram) -> Action {
    let (has_ports, (sport, dport)) = (ports.is_some(), ports.unwrap_or_default());
    let v4 = KeyV4 { src: SRC, dst: DST, sport, dport, protocol, has_ports };
    let wide = KeyV6 { src: SRC.into(), dst: DST.into(), sport, dport, protocol, has_ports };
    let matches = |rule: &&Rule| if v6 { rule.matches_v6(&wide) } else { rule.matches_v4(&v4) };
    rules.iter().find(matches).map_or(default, |rule| rule.action)
}

/// Make a datagram: its next header, and all that is cut. Over IPv4 all of one attack have one protocol, which tells
/// datagrams apart (RFC 791 §3.2).
fn datagram(c: &mut Choices, v6: bool, proto: u8, authenticated: bool) -> (u8, Vec<u8>) {
    let upper = if v6 { c.of(&PROTOCOLS) } else { proto };
    let mut data = [c.of(&PORTS).to_be_bytes(), c.of(&PORTS).to_be_bytes()].concat();
    data.resize(8 + 4 * c.below(40), 0xaa);
    if upper == 6 {
        data.resize(data.len().max(20), 0);
        let words = 5 + c.below(11);
        data[12] = (words as u8) << 4;
    }
    if upper == 17 {
        let length = data.len() as u16;
        data[4..6].copy_from_slice(&length.to_be_bytes());
    }
    let mut next = upper;
    if authenticated {
        let mut header = vec![next, 4, 0, 0];
        header.resize(24, 1);
        data = [header, data].concat();
        next = AUTHENTICATION;
    }
    if v6 && c.below(3) == 2 {
        let most = c.of(&[3, 3, 3, 30]);
        let words = 1 + c.below(most);
        let mut header = vec![next, words as u8 - 1];
        header.resize(8 * words, 2);
        data = [header, data].concat();
        next = DESTINATION_OPTIONS;
    }
    (next, data)
}

/// Cut a datagram anywhere, with overlaps, gaps and repetitions.
fn cut(c: &mut Choices, v6: bool, next: u8, data: &[u8], fragments: &mut Vec<Fragment>) {
    let most = c.of(&[1, 2, 3, 6, 24, 40]);
    let mut at = 0;
    while at < data.len() {
        let length = 8 * (1 + c.below(most));
        let start = if c.below(6) == 5 { at.saturating_sub(8 * (1 + c.below(3))) } else { at };
        let longer = if c.below(6) == 5 { 8 * (1 + c.below(4)) } else { 0 };
        let end = (at + length + longer).min(data.len());
        let name = if v6 && start > 0 && c.below(6) == 5 { c.of(&PROTOCOLS) } else { next };
        let fragment = Fragment { offset: start, more: end < data.len(), next: name, data: data[start..end].to_vec() };
        match c.below(16) {
            15 => {}
            14 => fragments.extend([fragment.clone(), fragment]),
            _ => fragments.push(fragment),
        }
        at += length;
    }
}

/// A fragment as a frame.
pub fn frame(v6: bool, fragment: &Fragment) -> Vec<u8> {
    let Fragment { offset, more, next, data } = fragment;
    let mut frame = vec![2; 12];
    if v6 {
        let place = (*offset as u16 | u16::from(*more)).to_be_bytes();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((8 + data.len() as u16).to_be_bytes());
        frame.extend([44, 64]);
        frame.extend(u128::from(SRC).to_be_bytes());
        frame.extend(u128::from(DST).to_be_bytes());
        frame.extend([*next, 0, place[0], place[1], 0, 0, 0, 7]);
    } else {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((20 + data.len() as u16).to_be_bytes());
        frame.extend([0, 7]);
        frame.extend((u16::from(*more) << 13 | (*offset / 8) as u16).to_be_bytes());
        frame.extend([64, *next, 0, 0]);
        frame.extend(SRC.to_be_bytes());
        frame.extend(DST.to_be_bytes());
    }
    frame.extend(data);
    frame
}
