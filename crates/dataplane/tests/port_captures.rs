//! Real captures through a pipeline: every record is a packet or counted, and what goes out is what came
//! in.
//!
//! Skipped with a message where the captures (`CATENA_TRACES`) are absent.

use std::path::{Path, PathBuf};
use std::process::Command;

use catena_dataplane::pipeline::Time;
use catena_dataplane::port::{CaptureIn, CaptureOut, Sink};
use catena_dataplane::task::Task;
use catena_dataplane::worker::thread_cpu_ns;
use catena_dataplane::{Context, Module, Pipeline};
use catena_packet::pcap::{LinkType, Reader};
use catena_packet::{Depot, DepotHandle};

fn traces() -> Option<PathBuf> {
    let folder = std::env::var_os("CATENA_TRACES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"), PathBuf::from);
    let there = folder.join("captures.tar.gz").is_file() && folder.join("mix.pcap.zst").is_file();
    if !there {
        let folder = folder.display();
        catena_testing::skip_extra(&format!("no captures in {folder}; CATENA_TRACES names the folder"));
    }
    there.then_some(folder)
}

fn depot() -> DepotHandle {
    Depot::map(1024, 128).unwrap()
}

/// What a source has said at its end.
struct Told {
    packets: u64,
    gauges: Vec<(&'static str, u64)>,
    error: Option<String>,
}

/// Run a capture through to `exit`; `None` when it is none.
fn run(path: &Path, exit: Box<dyn Module>) -> Option<Told> {
    let source = CaptureIn::open(path, 0).ok()?;
    let mut cx = Context::new(&depot(), 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    let exit = pipeline.graph.add("exit", exit);
    pipeline.add_task(Task::new("in", Box::new(source), exit));
    while !pipeline.is_done() {
        pipeline.step(&mut cx);
    }
    assert!(pipeline.graph.end(&mut cx).is_empty());
    let task = pipeline.tasks().next().unwrap().1;
    let mut gauges = Vec::new();
    task.source().gauges(&mut |name, value| gauges.push((name, value)));
    assert_eq!(pipeline.graph.nodes()[0].1.counters.drops.total(), 0);
    Some(Told { packets: task.counters().input.packets.get(), gauges, error: task.source().error() })
}

#[test]
fn every_record_of_broken_captures_is_accounted_for() {
    let Some(traces) = traces() else { return };
    let folder = tempfile::tempdir().unwrap();
    let archive = traces.join("captures.tar.gz");
    let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()).status();
    assert!(unpacked.unwrap().success());
    let mut folders = vec![folder.path().to_owned()];
    let (mut files, mut given, mut skipped) = (0, 0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(Told { packets, gauges, .. }) = run(&path, Box::new(Sink)) else { continue };
            let records = gauges[0].1;
            let lost: u64 = gauges[1..].iter().filter(|(name, _)| *name != "cut by the capture").map(|(_, n)| n).sum();
            assert_eq!(records, packets + lost, "{}: {gauges:?}", path.display());
            files += 1;
            given += packets;
            skipped += lost;
        }
    }
    println!("{files} captures: {given} packets given, {skipped} records counted instead");
    assert!(files > 800 && given > 10 * skipped);
}

#[test]
fn a_capture_goes_out_as_it_came_in() {
    let Some(traces) = traces() else { return };
    let (folder, from) = (tempfile::tempdir().unwrap(), traces.join("mix.pcap.zst"));
    let start = thread_cpu_ns();
    let Told { packets, error, .. } = run(&from, Box::new(Sink)).unwrap();
    println!("{packets} packets, {} ns each to read from zstd", (thread_cpu_ns() - start) / packets);
    assert_eq!(error, None);
    for name in ["mix.pcap", "mix.pcapng"] {
        let to = folder.path().join(name);
        let start = thread_cpu_ns();
        run(&from, Box::new(CaptureOut::create(&to).unwrap())).unwrap();
        println!("{name}: {} ns a packet to read and write", (thread_cpu_ns() - start) / packets);
        let (mut before, mut after) = (Reader::open(&from).unwrap(), Reader::open(&to).unwrap());
        for _ in 0..packets {
            let (before, after) = (before.next().unwrap().unwrap(), after.next().unwrap().unwrap());
            assert_eq!((before.time_ns, before.bytes), (after.time_ns, after.bytes));
            assert_eq!(after.link, LinkType::ETHERNET);
        }
        assert!(before.next().unwrap().is_none() && after.next().unwrap().is_none());
    }
}
