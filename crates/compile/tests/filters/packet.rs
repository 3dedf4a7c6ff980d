//! Packets with few addresses and ports, so that filters about them often match, with and without headers in between.

use proptest::prelude::*;

pub const V4: [[u8; 4]; 4] = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 1, 0, 1], [192, 0, 2, 9]];
pub const V6: [[u8; 16]; 3] = [v6(1), v6(2), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1]];
pub const PORTS: [u16; 4] = [25, 53, 80, 514];

const fn v6(last: u8) -> [u8; 16] {
    [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]
}

/// What stands between the Ethernet header and the upper layer.
#[derive(Clone, Copy, Debug)]
pub enum Between {
    /// A tag with this number.
    Tag(u16),
    /// IPv6 hop-by-hop options: at most once, and first.
    HopByHop,
    /// IPv6 destination options.
    Destination,
    /// An IPv6 fragment header of a whole datagram: at most once.
    Atomic,
    /// An authentication header.
    Authentication,
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub is_v6: bool,
    pub src: usize,
    pub dst: usize,
    pub proto: u8,
    pub ports: [u16; 2],
    pub flags: u8,
    /// IPv4 options.
    pub options: bool,
    /// Frames that are not IP instead: 1 ARP, 2 RARP, 3 LLDP.
    pub other: u8,
}

pub fn frames() -> impl Strategy<Value = Frame> {
    let proto = prop_oneof![3 => Just(6), 3 => Just(17), 1 => Just(132), 1 => Just(1), 1 => Just(58), 1 => Just(47), 1 => Just(50), 1 => Just(2)];
    let port = || (0..PORTS.len()).prop_map(|i| PORTS[i]);
    let other = prop_oneof![6 => Just(0), 1 => 1u8..4];
    (any::<bool>(), 0..3usize, 0..3usize, proto, [port(), port()], any::<u8>(), any::<bool>(), other).prop_map(
        |(is_v6, src, dst, proto, ports, flags, options, other)| Frame {
            is_v6,
            src,
            dst,
            proto,
            ports,
            flags,
            options: options && !is_v6,
            other,
        },
    )
}

/// Some headers in between, in an order that parsers accept.
pub fn between() -> impl Strategy<Value = Vec<Between>> {
    let tags = prop::collection::vec((1u16..9).prop_map(Between::Tag), 0..3);
    let rest = prop::collection::vec(prop_oneof![Just(Between::Destination), Just(Between::Authentication)], 0..3);
    (tags, any::<bool>(), any::<bool>(), rest).prop_map(|(tags, hop, atomic, rest)| {
        let first = hop.then_some(Between::HopByHop).into_iter().chain(atomic.then_some(Between::Atomic));
        tags.into_iter().chain(first).chain(rest).collect()
    })
}

impl Frame {
    /// Return the bytes, with those of the headers in between that fit.
    pub fn bytes(&self, between: &[Between]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        for tag in between {
            if let Between::Tag(id) = tag {
                frame.extend([0x81, 0]);
                frame.extend(id.to_be_bytes());
            }
        }
        match (self.other, self.is_v6) {
            (0, false) => frame.extend(self.ipv4(between)),
            (0, true) => frame.extend(self.ipv6(between)),
            (1 | 2, _) => {
                frame.extend(if self.other == 1 { [8, 6] } else { [0x80, 0x35] });
                frame.extend([0, 1, 8, 0, 6, 4, 0, 1, 1, 1, 1, 1, 1, 1]);
                frame.extend(V4[self.src]);
                frame.extend([2; 6]);
                frame.extend(V4[self.dst]);
            }
            _ => frame.extend([0x88, 0xcc, 2, 7, 4, 1, 2, 3, 4, 5, 6]),
        }
        frame.resize(frame.len().max(60), 0);
        frame
    }

    /// Header types and bodies from IP to the upper layer, without the byte that says what follows.
    fn chain(&self, between: &[Between]) -> (u8, Vec<u8>) {
        let headers = between.iter().filter_map(|header| match (header, self.is_v6) {
            (Between::Tag(_), _) => None,
            (Between::Authentication, _) => Some((51, [&[4, 0, 0][..], &[7; 20]].concat())),
            (_, false) => None,
            (Between::HopByHop, _) => Some((0, vec![0, 1, 4, 0, 0, 0, 0])),
            (Between::Destination, _) => Some((60, vec![0, 1, 4, 0, 0, 0, 0])),
            (Between::Atomic, _) => Some((44, vec![0, 0, 0, 1, 2, 3, 4])),
        });
        let (mut next, mut bytes) = (self.proto, self.upper());
        for (kind, body) in headers.collect::<Vec<_>>().into_iter().rev() {
            bytes = [&[next][..], &body, &bytes].concat();
            next = kind;
        }
        (next, bytes)
    }

    fn upper(&self) -> Vec<u8> {
        let [src, dst] = self.ports;
        let ports = [src.to_be_bytes(), dst.to_be_bytes()].concat();
        let rest: &[u8] = match self.proto {
            6 => &[0, 0, 0, 1, 0, 0, 0, 0, 0x50, self.flags, 0, 9, 0, 0, 0, 0],
            17 => &[0, 8, 0, 0],
            132 => &[0, 0, 0, 1, 0, 0, 0, 0],
            1 | 58 => return [8 | self.proto & 0x80, 0, 0, 0, 0, 7, 0, 1].to_vec(),
            _ => &[self.flags; 8],
        };
        [&ports, rest].concat()
    }

    fn ipv4(&self, between: &[Between]) -> Vec<u8> {
        let (proto, upper) = self.chain(between);
        let options: &[u8] = if self.options { &[1, 1, 1, 0] } else { &[] };
        let total = (20 + options.len() + upper.len()) as u16;
        let [high, low] = total.to_be_bytes();
        let head = [0x45 + options.len() as u8 / 4, 0, high, low, 0, 1, 0, 0, 64, proto, 0, 0];
        [&[8, 0][..], &head, &V4[self.src], &V4[self.dst], options, &upper].concat()
    }

    fn ipv6(&self, between: &[Between]) -> Vec<u8> {
        let (next, upper) = self.chain(between);
        let [high, low] = (upper.len() as u16).to_be_bytes();
        [&[0x86, 0xdd, 0x60, 0, 0, 0, high, low, next, 64][..], &V6[self.src], &V6[self.dst], &upper].concat()
    }
}
