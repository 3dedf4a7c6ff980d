//! Source routes: whether a packet names further nodes that its destination is to send it on to.
//!
//! Whoever judges such a packet by its destination address judges a stop on its way. RFC 7126 §4.3 and §4.4 advise to drop
//! IPv4's two source routes (RFC 791 §3.1), RFC 5095 §3 forbids IPv6's type 0.

use super::number::proto;
use super::{Layers, Net, ipv4, ipv6};

/// Loose source and record route, strict source and record route.
const LSRR: u8 = 131;
const SSRR: u8 = 137;

/// The type 2 routing header (RFC 6275 §6.4).
const MOBILE: u8 = 2;

/// Whether a packet with these layers carries a source route. Only one with [`Layers::OPTIONS`] can.
///
/// - IPv4: a loose or strict source route, whether or not its end is reached (RFC 7126 advises to drop both), or options
///   that cannot be read to their end, among which one reader may find what another does not.
/// - IPv6: a routing header with segments left. RFC 8754 §5.1 (type 4, SRH) and RFC 6554 §4.2 (type 3, RPL) let none into
///   a domain from outside; a node discards types that it does not know (RFC 8200 §4.4), so that nobody misses them. Type 2
///   of Mobile IPv6 with its one segment is none: that is another address of the same node (RFC 6275 §6.4).
///
/// Headers that the layers do not cover (those encrypted, or in the later part of a fragmented datagram) are not seen; the
/// first fragment holds all of them. Never panics, whatever the layers are.
#[must_use]
#[inline(never)]
pub fn is_source_routed(frame: &[u8], layers: &Layers) -> bool {
    if !layers.has(Layers::OPTIONS) {
        return false;
    }
    let Some(packet) = frame.get(usize::from(layers.l3)..) else { return false };
    match layers.net {
        Net::Ipv4 => ipv4::Packet::new_checked(packet).is_ok_and(|packet| {
            packet.options().any(|option| option.map_or(true, |option| matches!(option.kind, LSRR | SSRR)))
        }),
        Net::Ipv6 => {
            let headers = usize::from(layers.l4).saturating_sub(usize::from(layers.l3));
            packet.get(..headers).is_some_and(has_segments_left)
        }
        Net::Other | Net::Arp => false,
    }
}

/// Whether one of IPv6's headers, up to the upper layer, is a routing header that leads on.
fn has_segments_left(headers: &[u8]) -> bool {
    const NEXT_HEADER: usize = 6;
    let Some(&first) = headers.get(NEXT_HEADER) else { return false };
    let (mut next, mut rest) = (first, headers.get(ipv6::HEADER_LEN..).unwrap_or_default());
    // Every header is at least 8 bytes long: the walk ends.
    while let [following, length, kind, left, ..] = *rest {
        let size = match next {
            proto::FRAGMENT => 8,
            proto::AH => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        let is_home = kind == MOBILE && length == 2 && left == 1;
        if next == proto::ROUTING && left > 0 && !is_home {
            return true;
        }
        next = following;
        rest = rest.get(size..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;

    fn v4(options: &[u8]) -> Vec<u8> {
        let length = (20 + options.len()) as u8;
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x40 | (length / 4), 0, 0, length + 8, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(options);
        frame.extend([0, 80, 0, 80, 0, 8, 0, 0]);
        frame
    }

    /// Each header without its first byte, and its number.
    fn v6(headers: &[(u8, &[u8])]) -> Vec<u8> {
        let mut payload = Vec::new();
        for (n, (_, bytes)) in headers.iter().enumerate() {
            payload.push(headers.get(n + 1).map_or(proto::UDP, |(number, _)| *number));
            payload.extend(*bytes);
        }
        payload.extend([0, 80, 0, 80, 0, 8, 0, 0]);
        let next = headers.first().map_or(proto::UDP, |(number, _)| *number);
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, payload.len() as u8, next, 64]);
        frame.extend([[1; 16], [2; 16]].concat());
        frame.extend(payload);
        frame
    }

    fn routed(frame: &[u8]) -> bool {
        is_source_routed(frame, &parse(frame).expect("it is well-formed"))
    }

    #[test]
    fn source_routes_of_ipv4() {
        assert!(routed(&v4(&[131, 7, 4, 10, 9, 9, 9, 0])));
        assert!(routed(&v4(&[1, 137, 7, 4, 10, 9, 9, 9])));
        assert!(routed(&v4(&[131, 7, 8, 10, 9, 9, 9, 0])), "its end is reached");
        assert!(routed(&v4(&[7, 1, 131, 7, 4, 10, 9, 9, 9, 0, 0, 0])), "behind an option that cannot be read");
        assert!(!routed(&v4(&[])));
        assert!(!routed(&v4(&[0x94, 4, 0, 0])), "router alert");
        assert!(!routed(&v4(&[7, 7, 4, 0, 0, 0, 0, 0])), "record route");
        assert!(!routed(&v4(&[68, 4, 131, 137])), "in another option's bytes");
        assert!(!routed(&v4(&[0, 131, 7, 4])), "behind the end of the list");
    }

    #[test]
    fn routing_headers_of_ipv6() {
        let header = |kind: u8, left: u8| [&[2, kind, left][..], &[0; 20]].concat();
        for kind in [0, 1, 3, 4, 5, 6, 253, 254] {
            assert!(routed(&v6(&[(43, &header(kind, 1))])), "type {kind}");
            assert!(!routed(&v6(&[(43, &header(kind, 0))])), "type {kind} at its end");
        }
        assert!(!routed(&v6(&[(43, &header(2, 1))])), "Mobile IPv6");
        assert!(routed(&v6(&[(43, &header(2, 2))])), "more segments than Mobile IPv6 has");
        let options: &[u8] = &[0, 1, 4, 0, 0, 0, 0];
        let atomic: &[u8] = &[0, 0, 0, 0, 0, 0, 9];
        let authentication = [&[1, 0, 0][..], &[0; 8]].concat();
        let route = header(0, 1);
        assert!(routed(&v6(&[(0, options), (60, options), (43, &route)])));
        assert!(routed(&v6(&[(44, atomic), (43, &route)])));
        assert!(routed(&v6(&[(51, &authentication), (43, &route)])));
        assert!(routed(&v6(&[(43, &header(2, 1)), (43, &route)])));
        assert!(!routed(&v6(&[(0, options), (60, options), (44, atomic)])));
        assert!(!routed(&v6(&[])));
    }

    #[test]
    fn layers_of_another_frame_do_no_harm() {
        let frame = v6(&[(43, &[&[2, 0, 1][..], &[0; 20]].concat())]);
        let layers = parse(&frame).expect("it is well-formed");
        for length in 0..frame.len() {
            let _ = is_source_routed(&frame[..length], &layers);
            let _ = is_source_routed(&frame[..length], &Layers { net: Net::Ipv4, ..layers });
        }
    }
}
