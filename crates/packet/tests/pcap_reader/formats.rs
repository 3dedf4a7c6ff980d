//! Whole files, in all variants of the formats, compressed and not, come as they will.

use std::io::{self, Read};

use catena_packet::pcap::{Error, LinkType, Reader};

use super::files::*;
use super::{kept, read, read_whole};

/// A stream that gives one byte at a time and is interrupted before each.
struct Trickle<'a>(&'a [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = into.len().min(1);
        self.0.read(&mut into[..n])
    }
}

#[test]
fn pcap_in_either_byte_order_and_unit() {
    for order in ORDERS {
        for (magic, unit) in [(0xa1b2_c3d4, 1_000), (0xa1b2_3c4d, 1)] {
            let mut file = pcap_header(order, magic, (2, 4), 101);
            file.extend(pcap_record(order, &[1_700_000_000, 999_999, 3, 1500], b"abc"));
            file.extend(pcap_record(order, &[u32::MAX, 1, 0, 0], b""));
            let reader = Reader::new(&file[..]).unwrap();
            assert_eq!(reader.link(), Some(LinkType::RAW));
            let expected = [
                kept(1_700_000_000_000_000_000 + 999_999 * unit, 101, 1500, b"abc"),
                kept(4_294_967_295_000_000_000 + unit, 101, 0, b""),
            ];
            assert_eq!(read_whole(&file[..]), expected);
        }
    }
}

#[test]
fn variants_of_pcap() {
    for order in ORDERS {
        // Kuznetzov's has two more words a record.
        let mut file = pcap_header(order, 0xa1b2_cd34, (2, 4), 1);
        file.extend(pcap_record(order, &[1, 2, 3, 4, 7, 0x0008_0001], b"abc"));
        file.extend(pcap_record(order, &[2, 0, 1, 1, 7, 0x0008_0001], b"d"));
        let expected = [kept(1_000_002_000, 1, 4, b"abc"), kept(2_000_000_000, 1, 1, b"d")];
        assert_eq!(read_whole(&file[..]), expected);

        // Ixia's has one more word in front of the records.
        for magic in [0x1c00_01ab, 0x1c00_01ac] {
            let mut file = pcap_header(order, magic, (2, 4), 1);
            file.extend(order.u32(19));
            file.extend(pcap_record(order, &[1, 2, 3, 4], b"abc"));
            assert_eq!(read_whole(&file[..]), [kept(1_000_002_000, 1, 4, b"abc")]);
        }
    }
}

#[test]
fn old_versions_of_pcap_have_the_lengths_reversed() {
    for (minor, lengths) in [(2, [60, 3]), (3, [60, 3]), (3, [3, 60]), (4, [3, 60])] {
        let mut file = pcap_header(Order::Big, 0xa1b2_c3d4, (2, minor), 1);
        file.extend(pcap_record(Order::Big, &[0, 0, lengths[0], lengths[1]], b"abc"));
        assert_eq!(read_whole(&file[..]), [kept(0, 1, 60, b"abc")]);
    }
    for version in [(1, 4), (3, 0), (543, 1)] {
        let file = pcap_header(Order::Big, 0xa1b2_c3d4, version, 1);
        assert!(matches!(read(&file[..]).1, Some(Error::Malformed { .. })));
    }
}

#[test]
fn the_length_of_an_fcs_is_no_part_of_the_link_type() {
    let file = pcap_header(Order::Little, 0xa1b2_c3d4, (2, 4), 0x5400_0001);
    let reader = Reader::new(&file[..]).unwrap();
    assert_eq!(reader.link(), Some(LinkType::ETHERNET));
}

#[test]
fn pcapng_with_several_interfaces_and_sections() {
    for (order, second) in [(Order::Little, Order::Big), (Order::Big, Order::Little)] {
        let mut file = section(order);
        file.extend(block(order, 0x0bad, b"a private block of any length"));
        file.extend(interface(order, 1, 0, &[(2, b"eth0"), (9, &[9])]));
        file.extend(interface(order, 113, 0, &[(9, &[0x8a]), (14, &order.u64(100))]));
        file.extend(enhanced(order, 1, 512, 4, b"sll!"));
        file.extend(enhanced(order, 0, 1 << 40, 60, b"ether"));
        file.extend(interface(order, 101, 0, &[(14, &order.u64(-1i64 as u64))]));
        file.extend(obsolete(order, 2, 1_500_000, 9, b"raw"));
        file.extend(section(second));
        file.extend(interface(second, 228, 4, &[(0, b""), (9, &[0])]));
        file.extend(simple(second, 6, b"trun"));
        file.extend(simple(second, 2, b"ok"));
        file.extend(enhanced(second, 0, 7, 1, b"x"));
        let reader = Reader::new(&file[..]).unwrap();
        assert_eq!(reader.link(), Some(LinkType::ETHERNET));
        let expected = [
            kept(100_500_000_000, 113, 4, b"sll!"),
            kept(1 << 40, 1, 60, b"ether"),
            kept(500_000_000, 101, 9, b"raw"),
            kept(0, 228, 6, b"trun"),
            kept(0, 228, 2, b"ok"),
            kept(7_000, 228, 1, b"x"),
        ];
        assert_eq!(read_whole(&file[..]), expected);
    }
}

#[test]
fn a_pcapng_file_may_hold_nothing() {
    let file = section(Order::Little);
    assert_eq!(Reader::new(&file[..]).unwrap().link(), None);
    assert!(read_whole(&file[..]).is_empty());
    assert!(read_whole(&pcap_header(Order::Big, 0xa1b2_3c4d, (2, 4), 1)[..]).is_empty());
}

#[test]
fn compression_is_told_by_the_bytes() {
    let (file, _) = small_pcap(Order::Little);
    let expected = read_whole(&file[..]);
    let (first, second) = file.split_at(50);
    for compressed in [
        gzip(&file),
        zstd(&file),
        [gzip(first), gzip(&[]), gzip(second)].concat(),
        [zstd(first), zstd(&[]), zstd(second)].concat(),
    ] {
        assert_eq!(read_whole(&compressed[..]), expected);
        assert_eq!(read_whole(Trickle(&compressed, false)), expected);
    }
}

#[test]
fn a_stream_may_come_in_drops() {
    for order in ORDERS {
        for file in [small_pcap(order).0, small_pcapng(order).0] {
            assert_eq!(read_whole(Trickle(&file, false)), read_whole(&file[..]));
        }
    }
}

#[test]
fn a_record_is_delivered_before_the_next_one_is_there() {
    /// Fails the test when it is asked for more than it has.
    struct Live<'a>(&'a [u8]);
    impl Read for Live<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            assert!(!self.0.is_empty(), "the reader waits for more than it needs");
            self.0.read(into)
        }
    }
    let (pcap, pcap_ends) = small_pcap(Order::Little);
    let (pcapng, pcapng_ends, _) = small_pcapng(Order::Little);
    for (file, end) in [(pcap, pcap_ends[1]), (pcapng, pcapng_ends[1])] {
        let mut reader = Reader::new(Live(&file[..end])).unwrap();
        for _ in 0..2 {
            assert!(reader.next().unwrap().is_some());
        }
    }
}

#[test]
fn a_block_without_padding_in_its_length_is_read() {
    let order = Order::Little;
    let mut packet = enhanced(order, 0, 0, 5, b"five!");
    packet.truncate(8 + 20 + 8);
    let unpadded = (8 + 20 + 5 + 4u32).to_le_bytes();
    packet[4..8].copy_from_slice(&unpadded);
    packet.extend(unpadded);
    let file = [section(order), interface(order, 1, 0, &[]), packet].concat();
    assert_eq!(read_whole(&file[..]), [kept(0, 1, 5, b"five!")]);
}
