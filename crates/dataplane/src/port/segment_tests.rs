//! Segments against the rules, and random super-packets joined again.

use proptest::prelude::*;

use super::*;

/// Make a frame: Ethernet, IPv4 with an option or IPv6, then the upper layer.
fn frame(v6: bool, proto: u8, upper: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xaa; 12];
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((upper.len() as u16).to_be_bytes());
        frame.extend([proto, 64]);
        frame.extend([0x20; 16]);
        frame.extend([0x21; 16]);
    } else {
        frame.extend([0x08, 0x00, 0x46, 0]);
        frame.extend((24 + upper.len() as u16).to_be_bytes());
        frame.extend([0xff, 0xfe, 0x40, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1]);
    }
    frame.extend(upper);
    frame
}

fn tcp(seq: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0x12, 0x34, 0, 80];
    segment.extend(seq.to_be_bytes());
    segment.extend([0, 0, 0, 9, 0x60, flags, 1, 0, 0xde, 0xad, 0, 0, 1, 1, 1, 1]);
    segment.extend(payload);
    segment
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0x12, 0x34, 0, 53];
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0xde, 0xad]);
    datagram.extend(payload);
    datagram
}

fn cut(frame: &[u8], kind: Kind, size: usize) -> Option<Vec<Vec<u8>>> {
    let l4 = usize::from(parse(frame).ok()?.l4);
    let segments = Segments::of(frame, kind, l4, size)?;
    let write = |index| {
        let mut out = vec![0x77; segments.len(index)];
        segments.write(frame, index, &mut out);
        out
    };
    Some((0..segments.count()).map(write).collect())
}

/// Whether length and checksums of IP and the upper layer hold, by another route than the code's.
fn is_sound(segment: &[u8]) -> bool {
    let layers = parse(segment).unwrap();
    let (l3, l4) = (usize::from(layers.l3), usize::from(layers.l4));
    let upper = &segment[l4..];
    let (whole, ip, addresses) = match layers.net {
        Net::Ipv4 => {
            let whole = l3 + usize::from(word(segment, l3 + 2)) == segment.len();
            (whole, checksum::verify_ipv4_checksum(&segment[l3..l4]), &segment[l3 + 12..l3 + 20])
        }
        _ => (l3 + 40 + usize::from(word(segment, l3 + 4)) == segment.len(), true, &segment[l3 + 8..l3 + 40]),
    };
    let mut covered = addresses.to_vec();
    covered.extend((upper.len() as u32).to_be_bytes());
    covered.extend([0, 0, 0, layers.proto]);
    covered.extend(upper);
    whole && ip && checksum::sum(&covered) == 0xffff
}

#[test]
fn tcp_flags_numbers_and_ids() {
    use tcp::flag::{ACK, CWR, FIN, PSH};
    let payload: Vec<u8> = (0..2500).map(|n| n as u8).collect();
    for v6 in [false, true] {
        let upper = tcp(u32::MAX - 999, ACK | CWR | FIN | PSH, &payload);
        let segments = cut(&frame(v6, proto::TCP, &upper), Kind::Tcp, 1000).unwrap();
        assert_eq!(segments.len(), 3);
        let mut joined = Vec::new();
        for (i, segment) in segments.iter().enumerate() {
            assert!(is_sound(segment), "v6 {v6}, segment {i}");
            let l4 = usize::from(parse(segment).unwrap().l4);
            let view = tcp::Packet::new_checked(&segment[l4..]).unwrap();
            assert_eq!(view.seq(), [u32::MAX - 999, 0, 1000][i]);
            assert_eq!(view.flags(), [ACK | CWR, ACK, ACK | FIN | PSH][i]);
            joined.extend_from_slice(&segment[l4 + 24..]);
            if !v6 {
                assert_eq!(word(segment, 18), [0xfffe, 0xffff, 0][i]);
            }
        }
        assert_eq!(joined, payload);
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let whole = frame(false, proto::TCP, &tcp(1, 0x10, &[0; 100]));
    assert!(cut(&whole, Kind::Udp, 10).is_none());
    assert!(cut(&whole, Kind::Tcp, 0).is_none());
    assert!(Segments::of(&whole, Kind::Tcp, 34, 10).is_none(), "the sender's offset is an inner header's");
    let empty = frame(true, proto::TCP, &tcp(1, 0x10, &[]));
    assert!(cut(&empty, Kind::Tcp, 10).is_none());
    let mut fragment = whole.clone();
    fragment[20] = 0x20;
    assert!(cut(&fragment, Kind::Tcp, 10).is_none());
    for len in 0..whole.len() {
        assert!(Segments::of(&whole[..len], Kind::Tcp, 38, 10).is_none());
    }
}

#[test]
fn padding_is_not_payload() {
    let mut whole = frame(true, proto::UDP, &udp(&[5; 30]));
    whole.extend([0; 10]);
    let segments = cut(&whole, Kind::Udp, 20).unwrap();
    assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [54 + 8 + 20, 54 + 8 + 10]);
}

proptest! {
    #[test]
    fn segments_are_sound_and_join_to_the_payload(
        v6: bool, is_tcp: bool, tagged: bool, size in 1usize..3000,
        payload in proptest::collection::vec(any::<u8>(), 1..9000),
    ) {
        let mut whole = if is_tcp {
            frame(v6, proto::TCP, &tcp(7, 0x18, &payload))
        } else {
            frame(v6, proto::UDP, &udp(&payload))
        };
        if tagged {
            whole.splice(12..12, [0x81, 0, 0, 5]);
        }
        let kind = if is_tcp { Kind::Tcp } else { Kind::Udp };
        let segments = cut(&whole, kind, size).unwrap();
        prop_assert_eq!(segments.len(), payload.len().div_ceil(size));
        let mut joined = Vec::new();
        for segment in &segments {
            prop_assert!(is_sound(segment));
            joined.extend_from_slice(&segment[usize::from(parse(segment).unwrap().payload)..]);
        }
        prop_assert_eq!(joined, payload);
    }

    #[test]
    fn any_bytes_are_cut_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        v6: bool, is_tcp: bool, size in 0usize..100, l4 in 0usize..100,
    ) {
        if bytes.len() > 24 {
            bytes[12..15].copy_from_slice(if v6 { &[0x86, 0xdd, 0x60] } else { &[0x08, 0x00, 0x45] });
            bytes[if v6 { 20 } else { 23 }] = if is_tcp { proto::TCP } else { proto::UDP };
        }
        let kind = if is_tcp { Kind::Tcp } else { Kind::Udp };
        cut(&bytes, kind, size);
        let _ = Segments::of(&bytes, kind, l4, size);
    }
}
