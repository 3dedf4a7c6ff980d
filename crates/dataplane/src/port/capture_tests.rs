//! Captures in and out, in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use catena_packet::pcap::{Format, Writer};
use catena_packet::{Clock, Depot, SMALL_BYTES};

use super::*;
use crate::module::{Module, Reason};
use crate::pipeline::{Pipeline, Time};
use crate::port::arrival::LATEST_NS;
use crate::port::{CaptureOut, Sink};
use crate::task::Task;

fn capture(format: Format, records: &[Record<'_>]) -> Vec<u8> {
    let mut file = Vec::new();
    let link = records.first().map_or(LinkType::ETHERNET, |record| record.link);
    let mut writer = Writer::new(&mut file, format, link).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish().unwrap();
    file
}

fn source(file: Vec<u8>) -> CaptureIn<io::Cursor<Vec<u8>>> {
    CaptureIn::new(Reader::new(io::Cursor::new(file)).unwrap(), 7)
}

fn gauges(source: &impl Source) -> Vec<(&'static str, u64)> {
    let mut told = Vec::new();
    source.gauges(&mut |name, value| told.push((name, value)));
    told
}

fn context(small: usize, jumbo: usize) -> Context {
    Context::new(&Depot::map(small, jumbo).unwrap(), 0)
}

/// A file whose bytes the test can see after its writer is gone; full after `room` bytes.
#[derive(Clone)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Disk {
    fn new(room: usize) -> Self {
        Disk { bytes: Arc::default(), room }
    }
}

impl Write for Disk {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap();
        if bytes.len() + buf.len() > self.room {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        bytes.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_pipeline_copies_a_capture() {
    let long = vec![3; SMALL_BYTES + 1000];
    let records: Vec<_> = (1..100u64)
        .map(|n| {
            let bytes = if n % 10 == 0 { &long[..] } else { &long[..60 + n as usize] };
            Record::new(n * 1_000_000_007, LinkType::ETHERNET, bytes)
        })
        .collect();
    let file = capture(Format::PCAPNG, &records);
    let disk = Disk::new(usize::MAX);
    let out = CaptureOut::new(Writer::new(disk.clone(), Format::PCAPNG, LinkType::ETHERNET).unwrap());
    let mut cx = context(256, 64);
    let mut pipeline = Pipeline::new(Time::Packets);
    let out = pipeline.graph.add("out", Box::new(out));
    pipeline.add_task(Task::new("in", Box::new(source(file.clone())), out));
    while !pipeline.is_done() {
        pipeline.step(&mut cx);
    }
    assert!(pipeline.graph.end(&mut cx).is_empty());
    assert_eq!(cx.now(), 99 * 1_000_000_007);
    assert!(*disk.bytes.lock().unwrap() == file);
    let mut told = Vec::new();
    pipeline.graph.gauges(&mut |node, gauge| told.push((node.to_owned(), gauge.name, gauge.value)));
    assert_eq!(told, [("out".to_owned(), "records", 99)]);
}

#[test]
fn packets_know_port_and_arrival_and_time_never_goes_back() {
    let frame = [0; 60];
    let times = [2_000, 1_000, 0, u64::MAX, u64::MAX];
    let records = times.map(|time| Record::new(time, LinkType::ETHERNET, &frame));
    let mut source = source(capture(Format::PCAPNG, &records));
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    assert_eq!(source.pull(&mut cx, &mut batch), Pulled::Done);
    let arrivals: Vec<_> = batch.iter().map(|packet| packet.meta().arrival).collect();
    assert_eq!(arrivals, [2_000, 1_000, 2_000, LATEST_NS, LATEST_NS]);
    assert!(batch.iter().all(|packet| packet.meta().way.port() == 7));
    assert_eq!(cx.now(), LATEST_NS);
}

#[test]
fn every_record_is_accounted_for() {
    let jumbo = vec![0x45; JUMBO_BYTES];
    let most = &jumbo[..JUMBO_BYTES - 14];
    let records = [
        Record::new(1, LinkType::RAW, &[0x45; 40]),
        Record::new(2, LinkType::IEEE80211, &[0; 60]),
        Record::new(3, LinkType::LINUX_SLL, &[0; 15]),
        Record::new(4, LinkType::RAW, &jumbo),
        Record { original_len: 1500, ..Record::new(5, LinkType::ETHERNET, &[9; 96]) },
        Record::new(6, LinkType::IPV6, most),
    ];
    let mut source = source(capture(Format::PCAPNG, &records));
    let (mut cx, mut batch) = (context(128, 16), Batch::new());
    assert_eq!(source.pull(&mut cx, &mut batch), Pulled::Done);
    let lengths: Vec<_> = batch.iter().map(Packet::len).collect();
    assert_eq!(lengths, [54, 96, JUMBO_BYTES]);
    assert_eq!(batch.as_slice()[0].data()[10..16], [0, 0, 0x08, 0x00, 0x45, 0x45]);
    assert_eq!(
        gauges(&source),
        [
            ("records", 6),
            ("unknown link type", 1),
            ("link header cut off", 1),
            ("longer than a packet buffer", 1),
            ("cut by the capture", 1)
        ]
    );
}

#[test]
fn a_record_waits_for_a_buffer() {
    let frames: Vec<_> = (0..200u8).map(|n| [n; 60]).collect();
    let records: Vec<_> = frames.iter().map(|frame| Record::new(1, LinkType::ETHERNET, frame)).collect();
    let mut source = source(capture(Format::PCAP, &records));
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    let mut held = Vec::new();
    while source.pull(&mut cx, &mut batch) == Pulled::More {
        held.extend(batch.drain());
    }
    assert_eq!(held.len(), 128);
    assert!(batch.is_empty());
    while !source.ended {
        held.drain(..held.len().min(5)).for_each(|packet| cx.pool().put(packet));
        source.pull(&mut cx, &mut batch);
        for packet in batch.drain() {
            assert_eq!(packet.data()[0], held.last().map_or(0, |last| last.data()[0] + 1));
            held.push(packet);
        }
    }
    assert_eq!(held.last().map(|packet| packet.data()[0]), Some(199));
}

#[test]
fn a_buffer_that_never_comes_stops_nothing() {
    let long = vec![0; SMALL_BYTES + 1];
    let records = [Record::new(1, LinkType::ETHERNET, &long), Record::new(2, LinkType::ETHERNET, &[0; 60])];
    let mut source = source(capture(Format::PCAP, &records));
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    while source.pull(&mut cx, &mut batch) != Pulled::Done {}
    assert_eq!(batch.len(), 1);
    assert_eq!(gauges(&source), [("records", 2), ("no packet buffer left", 1)]);
}

#[test]
fn a_capture_cut_off_gives_what_it_has() {
    let mut file = capture(Format::PCAP, &[Record::new(1, LinkType::ETHERNET, &[1; 60]); 3]);
    file.truncate(file.len() - 1);
    let mut source = source(file);
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    assert_eq!(source.pull(&mut cx, &mut batch), Pulled::Done);
    assert_eq!(batch.len(), 2);
    assert!(matches!(source.reader_error(), Some(Error::CutOff { .. })));
    assert!(source.error().is_some_and(|text| text.contains("after record 2")));
}

#[test]
fn a_full_disk_is_counted_and_told() {
    let out = CaptureOut::new(Writer::new(Disk::new(100_000), Format::PCAP, LinkType::ETHERNET).unwrap());
    let frame = [0; 1000];
    let file = capture(Format::PCAP, &[Record::new(1, LinkType::ETHERNET, &frame); 200]);
    let mut cx = context(128, 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    let out = pipeline.graph.add("out", Box::new(out));
    pipeline.add_task(Task::new("in", Box::new(source(file)), out));
    while !pipeline.is_done() {
        pipeline.step(&mut cx);
    }
    let failed = pipeline.graph.end(&mut cx);
    assert_eq!(failed.len(), 1);
    let dropped = pipeline.graph.nodes()[0].1.counters.drops.get(Reason(0));
    let mut written = 0;
    pipeline.graph.gauges(&mut |_, gauge| written = gauge.value);
    assert!(dropped > 0 && dropped + written == 200, "{dropped} dropped, {written} written");
}

#[test]
fn a_time_beyond_the_format_is_no_failure() {
    let disk = Disk::new(usize::MAX);
    let mut out = CaptureOut::new(Writer::new(disk.clone(), Format::PCAP, LinkType::ETHERNET).unwrap()).live();
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    cx.set_now(5);
    cx.pool().take_batch(&mut batch, 2, 60);
    batch.as_mut_slice()[0].meta_mut().arrival = LATEST_NS;
    out.process(&mut cx, &mut batch);
    assert!(batch.is_empty());
    out.tick(&mut cx);
    assert_eq!(disk.bytes.lock().unwrap().len(), 24 + 16 + 60);
    assert_eq!(out.end(&mut cx), Ok(()));
    assert_eq!(out.end(&mut cx), Ok(()));
}

#[test]
fn clocks_are_comments_of_pcapng() {
    let disks = [Disk::new(usize::MAX), Disk::new(usize::MAX)];
    let formats = [Format::PCAPNG, Format::PCAP];
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    let dropped = [0, 1].map(|i| {
        let writer = Writer::new(disks[i].clone(), formats[i], LinkType::ETHERNET).unwrap();
        let mut out = CaptureOut::new(writer).with_clocks();
        cx.pool().take_batch(&mut batch, 2, 60);
        batch.as_mut_slice()[1].meta_mut().clock = Clock::from_bits(u64::MAX);
        out.process(&mut cx, &mut batch);
        assert_eq!(out.end(&mut cx), Ok(()));
        std::mem::replace(&mut cx.drops, [0; Reason::COUNT]).iter().sum::<u32>()
    });
    assert_eq!(dropped, [0, 1]);
    let [commented, plain] = disks.map(|disk| disk.bytes.lock().unwrap().clone());
    let longest = b"255:281474976710655.255";
    assert!(commented.windows(longest.len()).any(|bytes| bytes == longest));
    // Section, interface, a packet without a comment and one with 23 bytes.
    assert_eq!(commented.len(), 44 + 32 + 92 + (92 + 8 + 24));
    assert_eq!(plain.len(), 24 + 76);
}

#[test]
fn what_was_cut_leaves_as_cut() {
    let disk = Disk::new(usize::MAX);
    let mut out = CaptureOut::new(Writer::new(disk.clone(), Format::PCAPNG, LinkType::ETHERNET).unwrap());
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    let whole = Record::new(1, LinkType::ETHERNET, &[9; 96]);
    let lengths = [1500, 96, 40, u32::MAX];
    let records = lengths.map(|original_len| Record { original_len, ..whole });
    source(capture(Format::PCAPNG, &records)).pull(&mut cx, &mut batch);
    out.process(&mut cx, &mut batch);
    assert_eq!(out.end(&mut cx), Ok(()));
    let written = disk.bytes.lock().unwrap().clone();
    let mut reader = Reader::new(&written[..]).unwrap();
    let lengths = std::iter::from_fn(|| reader.next().unwrap().map(|record| record.original_len));
    assert_eq!(lengths.collect::<Vec<_>>(), [1500, 96, 96, 96 + 65535]);
}

#[test]
fn a_sink_gives_buffers_back() {
    let (mut cx, mut batch) = (context(128, 0), Batch::new());
    for _ in 0..100 {
        assert_eq!(cx.pool().take_batch(&mut batch, BATCH, 60), BATCH);
        Sink.process(&mut cx, &mut batch);
        assert!(batch.is_empty());
    }
}
