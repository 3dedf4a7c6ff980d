//! Pipes and FIFOs that keep a reader waiting, for real.

use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use catena_packet::pcap::{Format, LinkType, Record, Writer};
use catena_packet::{Batch, Depot};

use super::*;
use crate::module::{Context, Pulled, Source};
use crate::port::CaptureIn;

struct Fifo {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn fifo() -> Fifo {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends with a zero byte and lives through the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    Fifo { _folder: folder, path }
}

fn pull(source: &mut CaptureIn) -> (Pulled, usize) {
    let (mut cx, mut batch) = (Context::new(&Depot::map(64, 4).unwrap(), 0), Batch::new());
    (source.pull(&mut cx, &mut batch), batch.len())
}

/// Pull until something comes.
fn waited(source: &mut CaptureIn) -> (Pulled, usize) {
    let start = Instant::now();
    loop {
        match pull(source) {
            (Pulled::Idle, 0) => assert!(start.elapsed() < Duration::from_secs(60), "nothing came"),
            came => return came,
        }
    }
}

#[test]
fn a_fifo_is_read_as_it_is_written() {
    for format in [Format::PCAP, Format::PCAPNG, "x.pcap.gz".parse_format(), "x.pcapng.zst".parse_format()] {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, format, LinkType::ETHERNET).unwrap();
        (1..=3).for_each(|time| writer.write(&Record::new(time, LinkType::ETHERNET, &[7; 60])).unwrap());
        writer.finish().unwrap();

        let fifo = fifo();
        let mut source = CaptureIn::open(&fifo.path, 0).unwrap();
        assert_eq!(pull(&mut source), (Pulled::Idle, 0), "nobody writes yet");
        assert!(!source.is_recorded());
        let mut pipe = OpenOptions::new().write(true).open(&fifo.path).unwrap();
        // Byte by byte: whatever is torn apart is put together again.
        let (mut came, mut done) = (0, false);
        for byte in &file {
            pipe.write_all(&[*byte]).unwrap();
            came += pull(&mut source).1;
        }
        drop(pipe);
        while !done {
            let (pulled, packets) = waited(&mut source);
            came += packets;
            done = pulled == Pulled::Done;
        }
        assert_eq!((came, source.error()), (3, None));
    }
}

trait ParseFormat {
    fn parse_format(&self) -> Format;
}

impl ParseFormat for str {
    fn parse_format(&self) -> Format {
        Format::from_path(Path::new(self)).unwrap()
    }
}

#[test]
fn what_is_no_capture_is_told_when_it_comes() {
    let fifo = fifo();
    let mut source = CaptureIn::open(&fifo.path, 0).unwrap();
    let mut pipe = OpenOptions::new().write(true).open(&fifo.path).unwrap();
    pipe.write_all(b"not a capture").unwrap();
    assert_eq!(waited(&mut source), (Pulled::Done, 0));
    assert!(source.error().is_some_and(|text| text.contains("not a capture")));
}

/// A stream that decompresses to nothing for ever, or to blocks that hold no packet, does not hold a pull.
#[test]
fn a_pull_of_endless_nothing_returns() {
    // Stored blocks of no bytes (RFC 1951, §3.2.4).
    let gzip = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0, 0, 0, 0xff, 0xff].repeat(4 << 20)].concat();
    // Frames of no bytes (RFC 8878, §3.1.1): no content, one last raw block of size 0.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0].repeat(2 << 20);
    // A capture, then blocks of an unknown type, of no length or of 4 GiB.
    let mut section = Vec::new();
    Writer::new(&mut section, Format::PCAPNG, LinkType::ETHERNET).unwrap().finish().unwrap();
    let other = |len: u32| [77u32, len].map(u32::to_le_bytes).concat();
    let blocks = [&section[..], &[other(12), 12u32.to_le_bytes().to_vec()].concat().repeat(4 << 20)].concat();
    let long = [&section[..], &other(0xffff_fff0), &vec![0; 40 << 20]].concat();
    for (name, bytes) in [("gzip", gzip), ("zstd", zstd), ("blocks", blocks), ("long", long)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        std::fs::write(&path, &bytes).unwrap();
        let mut source = CaptureIn::open(&path, 0).unwrap();
        let mut pulls = 0;
        loop {
            let (pulled, packets) = pull(&mut source);
            assert_eq!(packets, 0);
            if pulled == Pulled::Done {
                break;
            }
            pulls += 1;
        }
        // A pull reads 1 MiB at most, and what a buffer holds.
        assert!(pulls >= bytes.len() >> 21, "{name}: {} bytes in {pulls} pulls", bytes.len());
    }
}
