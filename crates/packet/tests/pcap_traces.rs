//! Real captures, many of them broken, read by Catena and by Wireshark's capinfos: the same number
//! of records, the same bytes, the same times. And what Catena writes is read back by tshark.
//!
//! Skipped with a message where the captures (`CATENA_TRACES`) or the tools are absent.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use catena_packet::pcap::{Error, Format, LinkType, Reader, Writer};
use catena_testing::{skip, skip_extra};

/// How many records of the large capture tshark gets to dissect, which takes it some time.
const TSHARK_READS: u64 = 5_000;

/// The folder of captures, if it is there.
fn traces() -> Option<PathBuf> {
    let folder = std::env::var_os("CATENA_TRACES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"), PathBuf::from);
    let there = folder.join("captures.tar.gz").is_file() && folder.join("mix.pcap.zst").is_file();
    if !there {
        skip_extra(&format!("no captures in {}; CATENA_TRACES names the folder", folder.display()));
    }
    there.then_some(folder)
}

fn have(tool: &str) -> bool {
    let found = Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        skip(&format!("{tool} is not installed"), "install tshark");
    }
    found
}

/// What a capture holds in all.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    records: u64,
    /// Of the original lengths.
    bytes: u64,
    /// Earliest and latest.
    times_ns: Option<(u64, u64)>,
}

/// Reads a capture to its end, and the error it ended with, if any.
fn read(path: &Path) -> (Sum, Option<Error>) {
    let mut sum = Sum::default();
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(error) => return (sum, Some(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                sum.records += 1;
                sum.bytes += record.original_len as u64;
                let time = record.time_ns;
                let (first, last) = sum.times_ns.unwrap_or((time, time));
                sum.times_ns = Some((first.min(time), last.max(time)));
            }
            Ok(None) => return (sum, None),
            Err(error) => return (sum, Some(error)),
        }
    }
}

/// What capinfos says of each file that it can read at all.
fn capinfos(files: &[PathBuf]) -> HashMap<PathBuf, (Sum, u32)> {
    let output = Command::new("capinfos")
        .args(["-T", "-r", "-M", "-S", "-c", "-d", "-a", "-e"])
        .args(files)
        .output()
        .expect("capinfos runs");
    let table = String::from_utf8(output.stdout).expect("capinfos prints UTF-8");
    table.lines().map(row).collect()
}

/// One row of capinfos' table: path, records, bytes, first and last second. Also the number of
/// decimals that it shows of a second.
fn row(line: &str) -> (PathBuf, (Sum, u32)) {
    let columns: Vec<&str> = line.split('\t').collect();
    let [path, records, bytes, first, last] = columns[..] else {
        panic!("capinfos prints five columns, not {line:?}");
    };
    let decimals = first.split_once('.').map_or(0, |(_, d)| d.len() as u32);
    let ns = |time: &str| -> Option<u64> {
        let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let scale = 10u64.pow(9 - fraction.len() as u32);
        Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().ok()? * scale)
    };
    let sum = Sum {
        records: records.parse().expect("a number of records"),
        bytes: bytes.parse().expect("a number of bytes"),
        times_ns: ns(first).zip(ns(last)),
    };
    (PathBuf::from(path), (sum, decimals))
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let entry = entry.expect("a readable entry");
        if entry.file_type().expect("a file type").is_dir() {
            files_below(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

#[test]
fn every_capture_is_read_as_capinfos_reads_it() {
    let Some(traces) = traces() else { return };
    if !have("capinfos") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let unpacked = Command::new("tar")
        .args(["-xzf"])
        .arg(traces.join("captures.tar.gz"))
        .arg("-C")
        .arg(folder.path())
        .status()
        .expect("tar runs");
    assert!(unpacked.success());
    let mut files = vec![traces.join("mix.pcap.zst")];
    files_below(folder.path(), &mut files);
    files.sort();

    let known = capinfos(&files);
    let (mut same, mut refused, mut differ) = (0, 0, Vec::new());
    for path in &files {
        let (mut ours, error) = read(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some((theirs, decimals)) = known.get(path) else {
            match error {
                Some(Error::NotACapture { .. } | Error::Empty) => refused += 1,
                other => differ.push(format!("{name}: refused by capinfos, here {other:?}")),
            }
            continue;
        };
        let unit = 10u64.pow(9 - decimals);
        ours.times_ns = ours.times_ns.map(|(a, b)| (a / unit * unit, b / unit * unit));
        if ours == *theirs {
            same += 1;
        } else {
            differ.push(format!("{name}: {ours:?} {error:?}, capinfos {theirs:?}"));
        }
    }
    eprintln!("{same} captures read alike, {refused} files refused by both");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(same > 800);
}

#[test]
fn what_is_written_is_read_back_by_tshark() {
    let Some(traces) = traces() else { return };
    if !have("tshark") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = traces.join("mix.pcap.zst");
    for name in ["a.pcap", "a.pcapng", "a.pcap.gz", "a.pcapng.gz", "a.pcap.zst", "a.pcapng.zst"] {
        let path = folder.path().join(name);
        let format = Format::from_path(&path).expect("a known suffix");
        let mut reader = Reader::open(&source).expect("a capture");
        let mut writer = Writer::create(&path, format, LinkType::ETHERNET).expect("a new file");
        while let Some(record) = reader.next().expect("a good capture")
            && writer.records() < TSHARK_READS
        {
            writer.write(&record).expect("a record that fits");
        }
        let written = writer.records();
        writer.finish().expect("room on the disk");
        let output = Command::new("tshark")
            .args(["-n", "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-r"])
            .arg(&path)
            .output()
            .expect("tshark runs");
        assert!(output.status.success(), "{name}: {output:?}");
        let lines = String::from_utf8(output.stdout).expect("tshark prints UTF-8");
        let mut reader = Reader::open(&path).expect("our own file");
        let mut read = 0;
        for line in lines.lines() {
            let record = reader.next().expect("a good file").expect("as many as tshark finds");
            let (s, ns) = (record.time_ns / 1_000_000_000, record.time_ns % 1_000_000_000);
            assert_eq!(line, format!("{s}.{ns:09}\t{}", record.original_len), "{name}");
            read += 1;
        }
        assert_eq!(read, written, "{name}");
    }
}
