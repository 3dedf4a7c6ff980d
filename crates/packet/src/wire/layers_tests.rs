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
}

#[test]
fn fragments() {
    let first = parse(&ipv4(17, 0x2000, &udp(1000)[..64])).unwrap();
    assert_eq!(first.flags, Layers::PORTS | Layers::FRAGMENT);
    let cut = parse(&ipv4(6, 0x2000, &tcp(20, 0)[..8])).unwrap();
    assert_eq!((cut.flags, cut.l4, cut.payload), (Layers::FRAGMENT, 34, 34));
    let later = parse(&ipv4(17, 100, &[0; 13])).unwrap();
    assert_eq!((later.flags, later.payload), (Layers::FRAGMENT | Layers::LATER, 34));
    assert_eq!(parse(&ipv4(17, 0x2000, &[0; 13])), Err(Malformed::FragmentLength));
    assert_eq!(parse(&ipv4(1, 0x1fff, &[0; 8])), Err(Malformed::FragmentOverrun));
    assert_eq!(parse(&ipv4(6, 1, &[0; 8])), Err(Malformed::FragmentTiny));
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
    assert_eq!(parse(&fragment(1, &tcp(20, 0)[..16])), Err(Malformed::TcpTruncated));
    assert_eq!(parse(&fragment(8, &[0; 8])), Err(Malformed::FragmentTiny));
}

#[test]
fn authentication_header_over_ipv4() {
    let ah = [&[17, 1, 0, 0][..], &[0; 8], &udp(2)].concat();
    let layers = parse(&ipv4(51, 0, &ah)).unwrap();
    assert_eq!((layers.proto, layers.l4), (17, 46));
    assert!(layers.has(Layers::PORTS | Layers::AUTHENTICATED));
    assert_eq!(parse(&ipv4(51, 0, &ah[..11])), Err(Malformed::AuthenticationTruncated));
    let cut = parse(&ipv4(51, 0x2000, &ah[..8])).unwrap();
    assert_eq!((cut.proto, cut.flags), (51, Layers::FRAGMENT));
}
