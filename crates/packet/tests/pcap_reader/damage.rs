//! Files that are cut off, malformed, or none at all: the records before the damage are delivered,
//! then an error says what it is and where.

use std::io::{self, Read};

use catena_packet::pcap::{Error, MAX_RECORD};
use proptest::prelude::*;

use super::files::*;
use super::{kept, read, read_whole};

#[test]
fn cut_off_at_every_byte() {
    for order in ORDERS {
        let (pcap, ends) = small_pcap(order);
        let (pcapng, ng_ends, ng_rests) = small_pcapng(order);
        for (file, ends, rests) in [(pcap, ends, vec![24]), (pcapng, ng_ends, ng_rests)] {
            let whole = read_whole(&file[..]);
            for cut in 0..file.len() {
                let (records, error) = read(&file[..cut]);
                let complete = ends.iter().filter(|end| **end <= cut).count();
                assert_eq!(records, whole[..complete], "cut at {cut}");
                match error {
                    None => assert!(ends.contains(&cut) || rests.contains(&cut), "cut at {cut}"),
                    Some(Error::CutOff { place }) => {
                        assert!(place.offset < cut as u64);
                        assert!(!ends.contains(&cut) && !rests.contains(&cut), "cut at {cut}");
                    }
                    Some(Error::Empty) => assert_eq!(cut, 0),
                    Some(Error::NotACapture { .. }) => assert!((1..4).contains(&cut)),
                    Some(other) => panic!("cut at {cut}: {other}"),
                }
            }
        }
    }
}

#[test]
fn compressed_and_cut_off_at_every_byte() {
    let (file, _) = small_pcap(Order::Little);
    let whole = read_whole(&file[..]);
    for compressed in [gzip(&file), zstd(&file)] {
        for cut in 4..compressed.len() {
            let (records, error) = read(&compressed[..cut]);
            assert!(whole.starts_with(&records));
            assert!(matches!(error, Some(Error::CutOff { .. })), "cut at {cut}: {error:?}");
        }
    }
}

#[test]
fn damaged_compression_is_an_error_after_the_records_before() {
    let (file, _) = small_pcap(Order::Little);
    let mut compressed = gzip(&file);
    let checksum = compressed.len() - 8;
    compressed[checksum] ^= 1;
    let (records, error) = read(&compressed[..]);
    assert_eq!(records.len(), 3);
    assert!(matches!(error, Some(Error::Read { .. })), "{error:?}");
}

#[test]
fn errors_of_the_system_carry_the_place() {
    struct Failing<'a>(&'a [u8]);
    impl Read for Failing<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(io::Error::other("the disk is on fire")),
                n => Ok(n),
            }
        }
    }
    let (file, ends) = small_pcap(Order::Little);
    let (records, error) = read(Failing(&file));
    assert_eq!(records.len(), 3);
    assert_eq!(
        error.unwrap().to_string(),
        format!("reading failed after record 3 (at byte {}): the disk is on fire", ends[2])
    );
}

#[test]
fn what_is_no_capture_is_refused() {
    for bytes in [&b"#!/bin/sh"[..], &[0; 100], &[0xff; 3], &gzip(b"hello"), &zstd(b"hello")] {
        let error = read(bytes).1.unwrap();
        assert!(matches!(error, Error::NotACapture { .. }), "{error}");
    }
    for bytes in [&b""[..], &gzip(b""), &zstd(b"")] {
        assert!(matches!(read(bytes).1, Some(Error::Empty)));
    }
}

#[test]
fn records_up_to_the_bound_are_read_and_no_longer_ones() {
    let most = vec![7; MAX_RECORD];
    for order in ORDERS {
        let mut pcap = pcap_header(order, 0xa1b2_c3d4, (2, 4), 1);
        pcap.extend(pcap_record(order, &[0, 0, MAX_RECORD as u32, MAX_RECORD as u32], &most));
        let mut pcapng = section(order);
        pcapng.extend(interface(order, 1, 0, &[]));
        pcapng.extend(enhanced(order, 0, 0, MAX_RECORD as u32, &most));
        for mut file in [pcap, pcapng] {
            let good = file.clone();
            assert_eq!(read_whole(&file[..]), [kept(0, 1, MAX_RECORD as u32, &most)]);
            if file[..4] == section(order)[..4] {
                file.extend(enhanced(order, 0, 0, 0, &vec![7; MAX_RECORD + 1]));
            } else {
                file.extend(pcap_record(order, &[0, 0, MAX_RECORD as u32 + 1, 0], &most));
            }
            let (records, error) = read(&file[..]);
            assert_eq!(records.len(), 1);
            let Some(Error::TooLong { place, len, most }) = error else { panic!("{error:?}") };
            assert_eq!((place.offset, place.records), (good.len() as u64, 1));
            assert_eq!((len, most), (MAX_RECORD as u64 + 1, MAX_RECORD));
        }
    }
}

#[test]
fn malformed_blocks_are_named() {
    let order = Order::Little;
    let start = [section(order), interface(order, 1, 0, &[]), simple(order, 2, b"ok")].concat();
    let with_length = |len: u32| {
        let mut block = enhanced(order, 0, 0, 4, b"data");
        block[4..8].copy_from_slice(&len.to_le_bytes());
        block
    };
    let mut beyond = enhanced(order, 0, 0, 4, b"data");
    beyond[20..24].copy_from_slice(&100u32.to_le_bytes());
    for (block, what) in [
        (with_length(8), "a block is shorter than what frames it"),
        (with_length(12), "the two lengths of a block differ"),
        (beyond, "a packet runs beyond its block"),
        (enhanced(order, 1, 0, 1, b"x"), "a packet names an undescribed interface"),
        (block(order, 6, &[0; 16]), "a packet block is too short"),
        (block(order, 3, &[]), "a packet block is too short"),
        (block(order, 1, &[0; 4]), "an interface description is too short"),
        (block(order, 1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 99, 0]), "an option of an interface runs beyond its block"),
        (block(order, 0x0a0d_0d0a, &[1; 16]), "a section header has no valid byte-order magic"),
    ] {
        let file = [start.clone(), block].concat();
        let (records, error) = read(&file[..]);
        assert_eq!(records.len(), 1, "{what}");
        let error = error.unwrap();
        assert!(error.to_string().starts_with(what), "{error}");
        assert!(error.to_string().contains("after record 1 (at byte 68)"), "{error}");
    }
}

/// Whatever the bytes are, reading ends, and without a panic.
fn survives(bytes: &[u8]) -> bool {
    let (records, _) = read(bytes);
    records.iter().map(|record| record.bytes.len()).sum::<usize>() <= bytes.len().max(1) * 2000
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(survives(&bytes));
        prop_assert!(survives(&[&[0x1f, 0x8b, 8, 0][..], &bytes].concat()));
        prop_assert!(survives(&[&[0x28, 0xb5, 0x2f, 0xfd][..], &bytes].concat()));
        prop_assert!(survives(&[&pcap_header(Order::Big, 0xa1b2_c3d4, (2, 4), 1)[..], &bytes].concat()));
        prop_assert!(survives(&[&section(Order::Big)[..], &bytes].concat()));
    }

    #[test]
    fn damaged_files_end(
        big in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let pcap = small_pcap(order).0;
        let pcapng = small_pcapng(order).0;
        for mut file in [gzip(&pcap), zstd(&pcapng), pcap, pcapng] {
            for (at, value) in &damage {
                let at = at.index(file.len());
                file[at] = *value;
            }
            prop_assert!(survives(&file));
        }
    }
}
