//! The writer: what it writes is read back as it was, in every format.

use std::io::{self, Write};
use std::path::Path;

use catena_packet::pcap::{
    Compression, Container, Error, Format, LinkType, MAX_COMMENT, MAX_RECORD, Reader, Record, Writer,
};
use proptest::prelude::*;

fn formats() -> impl Iterator<Item = Format> {
    let compressions = [Compression::None, Compression::Gzip, Compression::Zstd];
    [Container::Pcap, Container::Pcapng]
        .into_iter()
        .flat_map(move |container| compressions.into_iter().map(move |compression| Format { container, compression }))
}

/// Reads `file` and asserts that it holds `records` and nothing else.
fn assert_holds(file: &[u8], records: &[Record<'_>]) {
    let mut reader = Reader::new(file).expect("a capture");
    for expected in records {
        let record = reader.next().expect("a good file");
        assert_eq!(record.as_ref(), Some(expected));
    }
    assert_eq!(reader.next().expect("a good end"), None);
}

#[test]
fn the_bytes_of_pcap() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::PCAP, LinkType::RAW).unwrap();
    let record = Record { original_len: 5, ..Record::new(0x0102_0304_0506_0708, LinkType::RAW, b"abc") };
    writer.write(&record).unwrap();
    writer.finish().unwrap();
    let (seconds, ns) = (72_623_859u32, 790_382_856u32);
    let expected = [
        &[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0][..],
        &seconds.to_le_bytes(),
        &ns.to_le_bytes(),
        &[3, 0, 0, 0, 5, 0, 0, 0, b'a', b'b', b'c'],
    ];
    assert_eq!(file, expected.concat());
}

#[test]
fn the_bytes_of_pcapng() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::PCAPNG, LinkType::ETHERNET).unwrap();
    writer.write(&Record::new(0x0102_0304_0506_0708, LinkType::ETHERNET, b"abc")).unwrap();
    writer.finish().unwrap();
    let expected: &[&[u8]] = &[
        &[0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
        &[255, 255, 255, 255, 255, 255, 255, 255, 4, 0, 6, 0],
        b"catena\0\0",
        &[0, 0, 0, 0, 44, 0, 0, 0],
        &[1, 0, 0, 0, 32, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0],
        &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0],
        &[6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5],
        &[3, 0, 0, 0, 3, 0, 0, 0, b'a', b'b', b'c', 0, 36, 0, 0, 0],
    ];
    assert_eq!(file, expected.concat());
}

#[test]
fn a_comment_stands_behind_its_packet() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::PCAPNG, LinkType::ETHERNET).unwrap();
    let records = [b"abc", b"def", b"ghi"].map(|bytes| Record::new(5, LinkType::ETHERNET, bytes));
    writer.write_with_comment(&records[0], "1:42.3").unwrap();
    writer.write_with_comment(&records[1], "").unwrap();
    let long = "x".repeat(MAX_COMMENT);
    writer.write_with_comment(&records[2], &long).unwrap();
    let error = writer.write_with_comment(&records[2], &format!("{long}x")).unwrap_err();
    assert!(matches!(error, Error::CommentTooLong { len } if len == MAX_COMMENT + 1), "{error}");
    assert_eq!(writer.records(), 3);
    writer.finish().unwrap();
    assert_holds(&file, &records);
    let behind = [&b"abc\0\x01\0\x06\x001:42.3\0\0\0\0\0\0"[..], &[52, 0, 0, 0]].concat();
    assert!(file.windows(behind.len()).any(|bytes| bytes == behind));
    assert_eq!(file.len(), 44 + 32 + (36 + 8 + 8) + 36 + (36 + 8 + MAX_COMMENT));
}

#[test]
fn pcap_has_no_comments() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::PCAP, LinkType::ETHERNET).unwrap();
    let record = Record::new(0, LinkType::ETHERNET, b"data");
    let error = writer.write_with_comment(&record, "1:42").unwrap_err();
    assert!(matches!(error, Error::NoComments), "{error}");
    writer.write_with_comment(&record, "").unwrap();
    writer.finish().unwrap();
    assert_holds(&file, &[record]);
}

#[test]
fn pcapng_describes_each_link_type_once() {
    let links = [LinkType::ETHERNET, LinkType::RAW, LinkType::ETHERNET, LinkType(9999)];
    let records = links.map(|link| Record::new(5, link, b"data"));
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::PCAPNG, LinkType::ETHERNET).unwrap();
    for record in &records {
        writer.write(record).unwrap();
    }
    assert_eq!(writer.records(), 4);
    writer.finish().unwrap();
    assert_holds(&file, &records);
    // Section, three interfaces, four packets.
    assert_eq!(file.len(), 44 + 3 * 32 + 4 * 36);
}

#[test]
fn what_cannot_be_expressed_is_left_out_and_the_file_stays_good() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::PCAP, LinkType::ETHERNET).unwrap();
    let good = Record::new(u64::from(u32::MAX) * 1_000_000_000, LinkType::ETHERNET, b"good");
    writer.write(&good).unwrap();
    let long = vec![0; MAX_RECORD + 1];
    let error = writer.write(&Record::new(0, LinkType::ETHERNET, &long)).unwrap_err();
    assert!(matches!(error, Error::RecordTooLong { len } if len == MAX_RECORD + 1), "{error}");
    let error = writer.write(&Record::new(0, LinkType::RAW, b"ip")).unwrap_err();
    assert!(matches!(error, Error::MixedLinks { .. }), "{error}");
    let error = writer.write(&Record { time_ns: u64::MAX, ..good }).unwrap_err();
    assert!(matches!(error, Error::TimeOutOfRange { .. }), "{error}");
    writer.write(&good).unwrap();
    writer.finish().unwrap();
    assert_holds(&file, &[good, good]);
}

#[test]
fn an_original_length_is_never_less_than_the_bytes() {
    for format in formats() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, format, LinkType::ETHERNET).unwrap();
        let record = Record::new(0, LinkType::ETHERNET, b"data");
        writer.write(&Record { original_len: 1, ..record }).unwrap();
        writer.finish().unwrap();
        assert_holds(&file, &[record]);
    }
}

#[test]
fn the_longest_records_are_written_and_read() {
    let bytes: Vec<u8> = (0..MAX_RECORD).map(|n| ((n * 31) >> 3) as u8).collect();
    for format in formats() {
        let records =
            [0, 1, MAX_RECORD, MAX_RECORD - 1, 65_535].map(|len| Record::new(1, LinkType::ETHERNET, &bytes[..len]));
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, format, LinkType::ETHERNET).unwrap();
        for record in &records {
            writer.write(record).unwrap();
        }
        writer.finish().unwrap();
        assert_holds(&file, &records);
    }
}

#[test]
fn a_dropped_writer_leaves_a_whole_file() {
    let record = Record::new(3, LinkType::ETHERNET, b"data");
    for format in formats() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, format, LinkType::ETHERNET).unwrap();
        writer.write(&record).unwrap();
        drop(writer);
        assert_holds(&file, &[record]);
    }
}

#[test]
fn a_flush_brings_all_records_to_the_reader() {
    let record = Record::new(3, LinkType::ETHERNET, b"data");
    for format in formats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live");
        let mut writer = Writer::create(&path, format, LinkType::ETHERNET).unwrap();
        for written in 1..=3 {
            writer.write(&record).unwrap();
            writer.flush().unwrap();
            let mut reader = Reader::open(&path).unwrap();
            for _ in 0..written {
                assert_eq!(reader.next().unwrap(), Some(record), "{format:?}");
            }
        }
    }
}

#[test]
fn a_file_is_created_and_opened_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.pcapng.zst");
    let format = Format::from_path(&path).unwrap();
    let mut writer = Writer::create(&path, format, LinkType::ETHERNET).unwrap();
    let record = Record::new(3, LinkType::ETHERNET, b"data");
    writer.write(&record).unwrap();
    writer.finish().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.next().unwrap(), Some(record));

    let missing = folder.path().join("no/such.pcap");
    assert!(matches!(Reader::open(&missing), Err(Error::Open { path, .. }) if path == missing));
    let refused = Writer::create(&missing, Format::PCAP, LinkType::ETHERNET);
    assert!(matches!(refused, Err(Error::Open { .. })));
    assert!(matches!(Reader::open(folder.path()), Err(Error::Read { .. })));
}

#[test]
fn readers_and_writers_go_from_thread_to_thread() {
    fn sends<T: Send>() {}
    sends::<Reader>();
    sends::<Writer>();
    sends::<Error>();
}

#[test]
fn a_full_disk_is_reported() {
    if !Path::new("/dev/full").exists() {
        catena_testing::skip("there is no /dev/full", "mount a devtmpfs on /dev");
        return;
    }
    for format in formats() {
        let mut writer = Writer::create("/dev/full", format, LinkType::ETHERNET).unwrap();
        writer.write(&Record::new(0, LinkType::ETHERNET, b"data")).unwrap();
        let error = writer.finish().unwrap_err();
        assert!(matches!(error, Error::Write { .. }), "{error}");
    }
}

#[test]
fn a_writer_that_failed_stays_failed() {
    /// Takes the first bytes and refuses the next, once.
    #[derive(Default)]
    struct Hiccup(usize, Vec<u8>);
    impl Write for &mut Hiccup {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            if self.0 == 2 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut pipe = Hiccup::default();
    let mut writer = Writer::new(&mut pipe, Format::PCAP, LinkType::ETHERNET).unwrap();
    let record = Record::new(0, LinkType::ETHERNET, b"data");
    writer.flush().unwrap();
    writer.write(&record).unwrap();
    let error = writer.flush().unwrap_err();
    assert!(matches!(&error, Error::Write { source } if source.kind() == io::ErrorKind::BrokenPipe));
    let _ = writer.write(&record);
    assert!(matches!(writer.flush(), Err(Error::Write { .. })));
    assert!(matches!(writer.finish(), Err(Error::Write { .. })));
    assert_holds(&pipe.1, &[]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_survive_every_format(
        records in prop::collection::vec(
            (0..=u64::from(u32::MAX) * 1_000_000_000, 0..3000u32,
             prop::collection::vec(any::<u8>(), 0..300)),
            0..40,
        ),
        link in any::<u16>(),
    ) {
        let link = LinkType(link);
        let records: Vec<Record<'_>> = records.iter().map(|(time_ns, more, bytes)| Record {
            original_len: bytes.len() as u32 + more,
            ..Record::new(*time_ns, link, bytes)
        }).collect();
        for format in formats() {
            let mut file = Vec::new();
            let mut writer = Writer::new(&mut file, format, link).unwrap();
            for record in &records {
                writer.write(record).unwrap();
            }
            writer.finish().unwrap();
            assert_holds(&file, &records);
        }
    }

    #[test]
    fn pcapng_keeps_any_time_and_link_type(
        records in prop::collection::vec((any::<u64>(), 0..4u16), 0..20),
    ) {
        let records: Vec<Record<'_>> = records
            .iter()
            .map(|(time_ns, link)| Record::new(*time_ns, LinkType(*link), b"x"))
            .collect();
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, Format::PCAPNG, LinkType(2)).unwrap();
        for record in &records {
            writer.write(record).unwrap();
        }
        writer.finish().unwrap();
        assert_holds(&file, &records);
    }
}
