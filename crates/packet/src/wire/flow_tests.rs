//! Tests of flow keys.

use super::*;
use crate::wire::parse;

const UDP: [u8; 42] = [
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, //
    0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, //
    0x12, 0x34, 0, 53, 0, 8, 0, 0,
];

fn key(frame: &[u8]) -> FlowKeyV4 {
    FlowKeyV4::read(frame, &parse(frame).unwrap()).unwrap()
}

#[test]
fn reads_a_v4_key() {
    let expected = FlowKeyV4 { src: 0xc000_0201, dst: 0xc633_6407, sport: 0x1234, dport: 53, proto: 17 };
    assert_eq!(key(&UDP), expected);
    assert_eq!(expected.words(), [0xc633_6407_c000_0201, 0x11_0035_1234]);
    let either = FlowKey::read(&UDP, &parse(&UDP).unwrap()).unwrap();
    assert_eq!(either.to_string(), "udp 192.0.2.1:4660 > 198.51.100.7:53");
    assert_eq!(FlowKey::new(either.src(), either.dst(), 17), Some(either));
    assert_eq!(FlowKeyV6::read(&UDP, &parse(&UDP).unwrap()), None);
}

fn udp_v6() -> Vec<u8> {
    let mut frame = vec![0; 14 + 40 + 8];
    frame[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
    frame[22..38].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
    frame[38..54].copy_from_slice(&"2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
    frame[54..60].copy_from_slice(&[0, 80, 0, 81, 0, 8]);
    frame
}

#[test]
fn reads_a_v6_key() {
    let frame = udp_v6();
    let layers = parse(&frame).unwrap();
    let key = FlowKey::read(&frame, &layers).unwrap();
    assert_eq!(key.to_string(), "udp [2001:db8::1]:80 > [2001:db8::2]:81");
    assert_eq!(FlowKey::new(key.src(), key.dst(), 17), Some(key));
    let v6 = FlowKeyV6::read(&frame, &layers).unwrap();
    assert_eq!(v6.words(), [0x2001_0db8 << 32, 1, 0x2001_0db8 << 32, 2, 0x11_0051_0050]);
    assert_eq!(FlowKeyV4::read(&frame, &layers), None);
}

#[test]
fn reads_a_source_address_of_either_family() {
    let words = |address: &str| halves(address.parse().unwrap());
    let (v6, mut tagged) = (udp_v6(), UDP.to_vec());
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    for (frame, expected) in [(&UDP.to_vec(), "::ffff:192.0.2.1"), (&tagged, "::ffff:192.0.2.1"), (&v6, "2001:db8::1")]
    {
        let layers = parse(frame).unwrap();
        assert_eq!(source_address(frame, &layers), Some(words(expected)));
        assert_eq!(source_address(&frame[..25], &layers), None);
    }
    let arp = Layers { net: Net::Arp, ..parse(&v6).unwrap() };
    assert_eq!(source_address(&v6, &arp), None);
}

#[test]
fn sizes_are_whole_words() {
    assert_eq!((size_of::<FlowKeyV4>(), size_of::<FlowKeyV6>()), (16, 40));
}

#[test]
fn fragments_of_one_datagram_have_one_key() {
    let (mut first, mut later) = (UDP, UDP);
    first[20] = 0x20;
    later[21] = 1;
    assert_eq!(key(&first), key(&later));
    assert_eq!((key(&first).sport, key(&first).dport), (0, 0));
    assert_eq!(ports(&first, &parse(&first).unwrap()), Some((0x1234, 53)));
    assert_eq!(ports(&later, &parse(&later).unwrap()), None);
}

#[test]
fn an_icmp_identifier_is_no_port() {
    let mut echo = UDP;
    echo[23] = proto::ICMP;
    echo[34..40].copy_from_slice(&[8, 0, 0, 0, 0xab, 0xcd]);
    let layers = parse(&echo).unwrap();
    assert_eq!((key(&echo).sport, key(&echo).dport), (0, 0));
    assert_eq!(icmp_identifier(&echo, &layers), Some(0xabcd));
    echo[34] = 3;
    assert_eq!(icmp_identifier(&echo, &layers), None);
    assert_eq!(icmp_identifier(&UDP, &parse(&UDP).unwrap()), None);
}

#[test]
fn directions() {
    let seed = Seed::from_number(1);
    let key = key(&UDP);
    assert_eq!(key.reverse().reverse(), key);
    assert_ne!(key.hash(&seed), key.reverse().hash(&seed));
    assert_eq!(key.symmetric_hash(&seed), key.reverse().symmetric_hash(&seed));
    let v6 = FlowKeyV6 { src: [1, 2], dst: [1, 1], sport: 3, dport: 4, proto: 6 };
    assert_eq!(v6.canonical(), v6.reverse());
    assert_eq!(v6.symmetric_hash(&seed), v6.reverse().symmetric_hash(&seed));
    // Same addresses: the ports decide.
    let own = FlowKeyV4 { src: 1, dst: 1, sport: 9, dport: 8, proto: 6 };
    assert_eq!(own.canonical(), own.reverse());
}

#[test]
fn layers_of_another_frame_read_nothing() {
    let layers = parse(&UDP).unwrap();
    assert_eq!(FlowKeyV4::read(&UDP[..36], &layers), None);
    assert_eq!(FlowKeyV4::read(&[], &layers), None);
    assert_eq!(ports(&UDP[..36], &layers), None);
    let wild = Layers { l4: 9, payload: 1, ..layers };
    assert_eq!(icmp_identifier(&UDP, &wild), None);
}
