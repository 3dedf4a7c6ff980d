//! Tests of the layer parser: one small frame a rule. `tests/wire.rs` holds it against a slow reference parser.

use super::*;

/// An Ethernet header with this EtherType.
fn ethernet(ethertype: u16) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ethertype.to_be_bytes()].concat()
}

/// IPv4 behind Ethernet: `place` is the fragment word, `payload` what follows the header.
fn ipv4(proto: u8, place: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let place = place.to_be_bytes();
    let header = [0x45, 0, total[0], total[1], 0, 1, place[0], place[1], 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ethernet(0x0800)[..], &header, payload].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    let mut header = [0; 40];
    header[..8].copy_from_slice(&[0x60, 0, 0, 0, length[0], length[1], next, 64]);
    [&ethernet(0x86dd)[..], &header, payload].concat()
}

fn tcp(header: usize, payload: usize) -> Vec<u8> {
    let mut segment = vec![0; header + payload];
    segment[12] = (header as u8 / 4) << 4;
    segment
}

fn udp(payload: usize) -> Vec<u8> {
    let mut datagram = vec![0; 8 + payload];
    datagram[4..6].copy_from_slice(&(8 + payload as u16).to_be_bytes());
    datagram
}

/// Insert `count` tags before the EtherType.
fn tagged(frame: &[u8], count: usize) -> Vec<u8> {
    [&frame[..12], &[0x81, 0x00, 0x00, 0x07].repeat(count), &frame[12..]].concat()
}

#[test]
fn layers_are_one_word_even_as_a_result() {
    assert_eq!(size_of::<Layers>(), 8);
    assert_eq!(size_of::<Result<Layers, Malformed>>(), 8);
}

#[test]
fn plain_tcp_and_udp() {
    let expected = Layers { l3: 14, net: Net::Ipv4, proto: 17, flags: Layers::PORTS, l4: 34, payload: 42 };
    assert_eq!(parse(&ipv4(17, 0x4000, &udp(20))), Ok(expected));
    let expected = Layers { proto: 6, payload: 66, ..expected };
    assert_eq!(parse(&ipv4(6, 0, &tcp(32, 7))), Ok(expected));
    let expected = Layers { l3: 14, net: Net::Ipv6, proto: 17, flags: Layers::PORTS, l4: 54, payload: 62 };
    assert_eq!(parse(&ipv6(17, &udp(0))), Ok(expected));
    assert_eq!(parse(&ipv6(6, &tcp(20, 0))), Ok(Layers { proto: 6, payload: 74, ..expected }));
}

#[test]
fn raw_ip() {
    let layers = parse_ip(&ipv4(17, 0, &udp(4))[14..]).unwrap();
    assert_eq!((layers.l3, layers.l4, layers.payload), (0, 20, 28));
    assert_eq!(parse_ip(&ipv6(6, &tcp(20, 0))[14..]).unwrap().l4, 40);
    assert_eq!(parse_ip(&[]), Err(Malformed::IpVersion));
    assert_eq!(parse_ip(&[0x50; 40]), Err(Malformed::IpVersion));
}

#[test]
fn tags() {
    let frame = ipv4(17, 0, &udp(4));
    for count in 1..=MAX_VLAN_TAGS {
        let layers = parse(&tagged(&frame, count)).unwrap();
        assert_eq!(usize::from(layers.l4), 34 + 4 * count);
        assert!(layers.has(Layers::VLAN | Layers::PORTS));
    }
    for old in [0x9100u16, 0x9200, 0x9300, 0x88a8] {
        let mut frame = tagged(&frame, 1);
        frame[12..14].copy_from_slice(&old.to_be_bytes());
        assert_eq!(parse(&frame).unwrap().l4, 38);
    }
    assert_eq!(parse(&tagged(&frame, MAX_VLAN_TAGS + 1)), Err(Malformed::VlanDepth));
    assert_eq!(parse(&tagged(&frame, 2)[..19]), Err(Malformed::VlanTruncated));
    assert_eq!(parse(&frame[..13]), Err(Malformed::EthernetTruncated));
}

#[test]
fn what_is_unknown_passes() {
    for ethertype in [0x8847, 0x0026] {
        let layers = parse(&ethernet(ethertype)).unwrap();
        assert_eq!(layers, Layers { l3: 14, l4: 14, payload: 14, ..Layers::default() });
    }
    let layers = parse(&ipv4(89, 0, &[1, 2, 3])).unwrap();
    assert_eq!((layers.proto, layers.flags, layers.l4, layers.payload), (89, 0, 34, 34));
}

#[test]
fn arp() {
    let body = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[0; 20]].concat();
    let frame = [ethernet(0x0806), body].concat();
    assert_eq!(parse(&frame).unwrap().net, Net::Arp);
    assert_eq!(parse(&frame[..41]), Err(Malformed::ArpTruncated));
    assert_eq!(parse(&frame[..21]), Err(Malformed::ArpTruncated));
}

#[test]
fn padding_is_no_payload() {
    let mut frame = ipv4(6, 0, &tcp(20, 0)[..16]);
    frame.resize(64, 0);
    assert_eq!(parse(&frame), Err(Malformed::TcpTruncated));
    let mut frame = ipv4(17, 0, &udp(4));
    frame[14 + 20 + 5] = 13;
    frame.resize(64, 0);
    assert_eq!(parse(&frame), Err(Malformed::UdpLength));
}

#[test]
fn a_packet_ends_before_its_padding() {
    let mut frame = ipv4(17, 0, &udp(1));
    frame.resize(64, 0);
    let layers = parse(&frame).unwrap();
    assert_eq!(layers.end(&frame), Some(43));
    assert_eq!(layers.end(&frame[..42]), None);
    let frame = ipv6(58, &[1; 9]);
    assert_eq!(parse(&frame).unwrap().end(&frame), Some(63));
    let frame = ethernet(0x8847);
    assert_eq!(parse(&frame).unwrap().end(&frame), None);
}

#[test]
fn lengths_that_contradict() {
    let broken = |frame: &[u8], at: usize, value: u8| {
        let mut frame = frame.to_vec();
        frame[at] = value;
        parse(&frame).unwrap_err()
    };
    let frame = ipv4(6, 0, &tcp(20, 4));
    assert_eq!(broken(&frame, 14, 0x65), Malformed::Ipv4Version);
    assert_eq!(broken(&frame, 14, 0x44), Malformed::Ipv4HeaderLength);
    assert_eq!(broken(&frame, 17, 19), Malformed::Ipv4TotalShort);
    assert_eq!(broken(&frame, 17, 45), Malformed::Ipv4TotalLong);
    assert_eq!(broken(&frame, 46, 0x40), Malformed::TcpDataOffset);
    assert_eq!(broken(&frame, 46, 0x70), Malformed::TcpDataOffset);
    assert_eq!(broken(&ipv4(17, 0, &udp(9)), 39, 7), Malformed::UdpLength);
    let frame = ipv6(6, &tcp(20, 4));
    assert_eq!(broken(&frame, 14, 0x40), Malformed::Ipv6Version);
    assert_eq!(broken(&frame, 19, 25), Malformed::Ipv6PayloadLong);
    assert_eq!(broken(&frame, 66, 0xf0), Malformed::TcpDataOffset);
    assert_eq!(parse(&ipv4(1, 0, &[8; 7])), Err(Malformed::IcmpTruncated));
    assert_eq!(parse(&ipv6(58, &[128; 3])), Err(Malformed::Icmpv6Truncated));
    assert_eq!(parse(&ipv4(132, 0, &[1; 11])), Err(Malformed::SctpTruncated));
    assert_eq!(parse(&ipv4(33, 0, &[1; 11])), Err(Malformed::DccpTruncated));
    assert_eq!(parse(&ipv4(136, 0, &[1; 7])), Err(Malformed::UdpLiteTruncated));
}

#[test]
fn fragments() {
    let first = parse(&ipv4(17, 0x2000, &udp(1000)[..64])).unwrap();
    assert_eq!(first.flags, Layers::PORTS | Layers::FRAGMENT);
    let later = parse(&ipv4(17, 100, &[0; 13])).unwrap();
    assert_eq!((later.flags, later.payload), (Layers::FRAGMENT | Layers::LATER, 34));
    assert_eq!(parse(&ipv4(17, 0x2000, &[0; 13])), Err(Malformed::FragmentLength));
    assert_eq!(parse(&ipv4(1, 0x1fff, &[0; 8])), Err(Malformed::FragmentOverrun));
}

/// RFC 1858 §3.2.1: a filter must see the header that it judges by.
#[test]
fn a_first_fragment_holds_its_whole_transport_header() {
    let first = |proto, payload: &[u8]| parse(&ipv4(proto, 0x2000, payload)).map(|layers| layers.flags);
    let whole = [
        (proto::TCP, tcp(20, 4), Layers::PORTS),
        (proto::TCP, tcp(60, 4), Layers::PORTS),
        (proto::UDP, udp(0), Layers::PORTS),
        (proto::SCTP, vec![0; 16], Layers::PORTS),
        (proto::ICMP, vec![8; 8], 0),
        (proto::DCCP, vec![0; 16], 0),
        (proto::UDP_LITE, vec![0; 8], 0),
    ];
    for (proto, mut payload, ports) in whole {
        assert_eq!(first(proto, &payload), Ok(ports | Layers::FRAGMENT), "protocol {proto}");
        payload.truncate(payload.len() - 8);
        assert_eq!(first(proto, &payload), Err(Malformed::FragmentFirst), "protocol {proto}");
    }
    // The flags are there, and the ports; the data offset says that options follow.
    assert_eq!(first(proto::TCP, &tcp(60, 0)[..56]), Err(Malformed::FragmentFirst));
    assert_eq!(first(proto::TCP, &[0; 24]), Err(Malformed::TcpDataOffset));
    // Nothing is asked of what has no header that is judged.
    assert_eq!(first(proto::GRE, &[]), Ok(Layers::FRAGMENT));
}

/// RFC 1858 §3.2.2, RFC 3128.
#[test]
fn a_later_fragment_cannot_reach_the_headers_of_the_first() {
    let later = |proto, offset: u16| parse(&ipv4(proto, offset / 8, &[0; 8])).map(|layers| layers.flags);
    let least = [
        (proto::TCP, 24),
        (proto::SCTP, 16),
        (proto::DCCP, 16),
        (proto::AH, 128),
        (proto::UDP, 8),
        (proto::UDP_LITE, 8),
        (proto::ICMP, 8),
    ];
    for (proto, least) in least {
        for offset in (8..least).step_by(8) {
            assert_eq!(later(proto, offset), Err(Malformed::FragmentTiny), "protocol {proto} at {offset}");
        }
        assert_eq!(later(proto, least), Ok(Layers::FRAGMENT | Layers::LATER), "protocol {proto}");
    }
}

#[test]
fn ipv6_fragments() {
    let fragment = |place: u16, payload: &[u8]| {
        let [high, low] = place.to_be_bytes();
        ipv6(44, &[&[6, 0, high, low, 0, 0, 0, 1][..], payload].concat())
    };
    let first = parse(&fragment(1, &tcp(20, 4))).unwrap();
    assert_eq!((first.flags, first.l4), (Layers::PORTS | Layers::FRAGMENT | Layers::OPTIONS, 62));
    let atomic = parse(&fragment(0, &tcp(20, 3))).unwrap();
    assert_eq!(atomic.flags, Layers::PORTS | Layers::OPTIONS);
    let later = parse(&fragment(800, &tcp(20, 3))).unwrap();
    assert_eq!(later.flags, Layers::LATER | Layers::FRAGMENT | Layers::OPTIONS);
    assert_eq!(parse(&fragment(1, &tcp(20, 0)[..16])), Err(Malformed::FragmentFirst));
    // An atomic fragment is a whole packet (RFC 6946).
    assert_eq!(parse(&fragment(0, &tcp(20, 0)[..16])), Err(Malformed::TcpTruncated));
    for offset in (8..128).step_by(8) {
        assert_eq!(parse(&fragment(offset, &[0; 8])), Err(Malformed::FragmentTiny));
    }
    assert_eq!(parse(&fragment(128, &[0; 8])).unwrap().flags, later.flags);
}

/// RFC 7112 §5: "the first fragment MUST contain the entire IPv6 Header Chain".
#[test]
fn a_first_fragment_holds_its_header_chain() {
    let options = |next: u8, words: u8| [vec![next, words - 1], vec![0; usize::from(words) * 8 - 2]].concat();
    let fragment = |more: u16, next: u8, payload: &[u8]| {
        let [high, low] = more.to_be_bytes();
        parse(&ipv6(44, &[&[next, 0, high, low, 0, 0, 0, 1][..], payload].concat()))
    };
    let chain = [options(proto::AH, 2), vec![6, 2, 0, 0], vec![0; 12], tcp(20, 4)].concat();
    assert_eq!(fragment(1, proto::DESTINATION_OPTIONS, &chain).unwrap().l4, 14 + 40 + 8 + 32);
    for end in (0..chain.len()).step_by(8) {
        let cut = fragment(1, proto::DESTINATION_OPTIONS, &chain[..end]);
        assert_eq!(cut, Err(Malformed::FragmentFirst), "of {end} bytes");
    }
    assert_eq!(fragment(0, proto::DESTINATION_OPTIONS, &chain[..8]), Err(Malformed::Ipv6ExtensionTruncated));
    // Whoever reassembles it: headers end before a later fragment may begin.
    let deep = |words| fragment(1, proto::DESTINATION_OPTIONS, &[options(6, words), tcp(24, 0)].concat());
    assert!(deep(13).unwrap().has(Layers::PORTS));
    assert_eq!(deep(14), Err(Malformed::FragmentDeep));
}

#[test]
fn authentication_header_over_ipv4() {
    let ah = [&[17, 1, 0, 0][..], &[0; 8], &udp(2)].concat();
    let layers = parse(&ipv4(51, 0, &ah)).unwrap();
    assert_eq!((layers.proto, layers.l4), (17, 46));
    assert!(layers.has(Layers::PORTS | Layers::AUTHENTICATED));
    assert_eq!(parse(&ipv4(51, 0, &ah[..11])), Err(Malformed::AuthenticationTruncated));
    assert_eq!(parse(&ipv4(51, 0x2000, &ah[..8])), Err(Malformed::FragmentFirst));
    assert_eq!(parse(&ipv4(51, 0x2000, &ah[..16])), Err(Malformed::FragmentFirst));
    let long = [&[17, 31, 0, 0][..], &[0; 128], &udp(4)].concat();
    assert_eq!(parse(&ipv4(51, 0x2000, &long)), Err(Malformed::FragmentDeep));
    assert!(parse(&ipv4(51, 0, &long)).unwrap().has(Layers::PORTS));
}
