//! The layer parser against tshark, frame by frame, over a folder of real and broken captures.
//!
//! The frames of all captures of one link type are joined into one file, so that one tshark reads them all in seconds.
//! Where the two differ, a [`Rule`] must say why. Skipped with a message where the captures (`CATENA_TRACES`) or tshark
//! are absent.

mod rules;
mod tshark;

use catena_packet::pcap::{Format, LinkType, Reader, Record, Writer};
use catena_packet::wire::{parse, parse_ip};
use catena_testing::{skip, skip_extra};
use rules::{Case, RULES, Rule};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A frame and where it is from.
struct Captured {
    bytes: Vec<u8>,
    /// Its length in bytes before the capture cut it.
    on_wire: usize,
    place: String,
}

#[test]
fn agrees_with_tshark() {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let traces = env::var_os("CATENA_TRACES").map_or_else(default, PathBuf::from);
    let archive = traces.join("captures.tar.gz");
    if !archive.is_file() {
        return skip_extra(&format!("no captures in {}; CATENA_TRACES names the folder", traces.display()));
    }
    if !tshark::is_installed() {
        return skip("tshark is not installed", "install tshark");
    }
    let captures = tempfile::tempdir().expect("a folder to unpack to");
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(captures.path()).status();
    assert!(unpacked.expect("tar starts").success());

    compare(captures.path(), &[LinkType::ETHERNET], 220_000);
    compare(captures.path(), &[LinkType::RAW, LinkType::IPV4, LinkType::IPV6, LinkType::RAW_BSD], 12_000);
}

/// Compare all frames of these link types, which must be as many as `least`.
fn compare(captures: &Path, links: &[LinkType], least: usize) {
    let scratch = tempfile::tempdir().expect("a folder to write to");
    let joined = scratch.path().join("joined.pcap");
    let frames = join(captures, links, &joined);
    assert!(frames.len() >= least, "{links:?}: only {} frames", frames.len());
    let theirs = tshark::read(&joined, scratch.path());
    assert_eq!(theirs.len(), frames.len());

    let mut tally = BTreeMap::<&str, usize>::new();
    let mut unexplained = Vec::new();
    for (frame, theirs) in frames.iter().zip(&theirs) {
        let read = if links.contains(&LinkType::ETHERNET) { parse } else { parse_ip };
        let case = Case::new(&frame.bytes, frame.on_wire, read(&frame.bytes), theirs);
        let explanation = match case.difference() {
            None => "the same",
            Some(_) => RULES.iter().find(|rule| (rule.covers)(&case)).map_or("unexplained", Rule::reason),
        };
        *tally.entry(explanation).or_default() += 1;
        if explanation == "unexplained" && unexplained.len() < 20 {
            unexplained.push(format!("{}: {case:?}", frame.place));
        }
    }
    println!("{links:?}, {} frames: {tally:#?}", frames.len());
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    assert!(tally["the same"] * 100 > frames.len() * 98, "too much is explained away");
}

/// Write all frames of these link types to one capture. A damaged capture counts as far as it can be read.
fn join(captures: &Path, links: &[LinkType], joined: &Path) -> Vec<Captured> {
    let mut frames = Vec::new();
    // All kinds of raw IP can be written as one.
    let link = links[0];
    let mut writer = Writer::create(joined, Format::PCAP, link).expect("the folder is writable");
    for file in files(captures) {
        let Ok(mut reader) = Reader::open(&file) else { continue };
        let name = file.strip_prefix(captures).unwrap_or(&file).display();
        let mut number = 0;
        while let Ok(Some(record)) = reader.next() {
            number += 1;
            if links.contains(&record.link) {
                let record = Record { link, ..record };
                writer.write(&record).expect("the folder is writable");
                let place = format!("{name} frame {number}");
                frames.push(Captured { bytes: record.bytes.to_vec(), on_wire: record.original_len as usize, place });
            }
        }
    }
    writer.finish().expect("the folder is writable");
    frames
}

/// All files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
