//! Chains with a NAT, drawn by seeds: several workers translate as one does, but for the names of outside endpoints.
//!
//! Each worker has blocks of ports of its own, so which external address and port a host gets depends on how many workers there
//! are, and so do the identifications that go with an address. Everything else is the same: what is dropped and why, which packets
//! have one endpoint, all other bytes, and every byte of what comes back to the inside.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use catena_packet::random::SplitMix64;

use super::alike::{answers, function, records, seeds};
use super::packets::{Packet, read, write};
use super::parts::{Parts, put_right};
use super::{accounted, run};

/// Seeds that every run of the tests tries.
const SEEDS: u64 = 8;

/// Return a step in front of the NAT: any but a balancer, whose servers would be inside.
fn in_front(random: &mut SplitMix64, folder: &Path, number: usize) -> (String, Option<String>) {
    loop {
        let step = function(random, folder, number);
        if !step.0.starts_with("LB") {
            return step;
        }
    }
}

/// Return a step behind the NAT: one for which hosts' external endpoints are all alike.
fn behind(random: &mut SplitMix64, folder: &Path) -> String {
    loop {
        let (step, _) = function(random, folder, 9);
        if step.starts_with("LB") && !step.contains("consistent_hash") || step.starts_with("IPv4Fwd") {
            return step;
        }
    }
}

/// Where the external endpoint of a packet that left stands, and all else of it that a NAT may write.
fn external(parts: &Parts) -> Vec<Range<usize>> {
    parts.ends.iter().map(|[source, _]| source.clone()).chain(parts.idents.iter().cloned()).collect()
}

/// Outside endpoints of one worker's packets, and who they are among several's: one for one.
#[derive(Default)]
struct Names {
    there: HashMap<Vec<u8>, Vec<u8>>,
    back: HashMap<Vec<u8>, Vec<u8>>,
}

impl Names {
    fn agree(&mut self, one: Vec<u8>, many: Vec<u8>) -> bool {
        let there = self.there.entry(one.clone()).or_insert_with(|| many.clone());
        let back = self.back.entry(many.clone()).or_insert_with(|| one.clone());
        *there == many && *back == one
    }
}

/// Assert that what left are the same packets but for the names of their sources.
fn same_but_for_names(one: &[Packet], many: &[Packet], what: &str) {
    assert_eq!(one.len(), many.len(), "packets out: {what}");
    let mut names = Names::default();
    for (number, (one, many)) in one.iter().zip(many).enumerate() {
        let parts = [Parts::of(&one.frame), Parts::of(&many.frame)];
        let [a, b] = [external(&parts[0]), external(&parts[1])];
        let rest = |packet: &Packet, parts: &Parts, name: &[Range<usize>]| {
            let mut frame = packet.frame.clone();
            let sums = parts.sums.iter().map(|sum| sum.place..sum.place + 2);
            name.iter().chain(&parts.numbers).cloned().chain(sums).for_each(|range| frame[range].fill(0));
            (packet.time, frame, parts.sums.iter().map(|sum| sum.error).collect::<Vec<_>>())
        };
        let message = || format!("packet {number}: {what}");
        assert_eq!(rest(one, &parts[0], &a), rest(many, &parts[1], &b), "{}", message());
        let named = |packet: &Packet, name: &[Range<usize>]| {
            name.iter().flat_map(|range| packet.frame[range.clone()].to_vec()).collect::<Vec<u8>>()
        };
        assert!(
            names.agree(named(one, &a), named(many, &b)),
            "an endpoint has two names, or two have one: {}",
            message()
        );
    }
}

/// Answers without identifications: those of what they answer depend on who sent it.
fn unnumbered(random: &mut SplitMix64, left: &[Packet]) -> Vec<Packet> {
    let mut answers = answers(random, left);
    for answer in &mut answers {
        Parts::of(&answer.frame).numbers.iter().for_each(|range| answer.frame[range.clone()].fill(0));
        if answer.frame[12..14] == [8, 0] {
            put_right(&mut answer.frame, "IPv4");
        }
    }
    answers
}

/// Play one seed's chain and traffic with 1 to 4 workers; returns how many packets left, and came back to the inside.
fn play(folder: &Path, seed: u64) -> [usize; 2] {
    let mut random = SplitMix64::new(seed);
    let front: Vec<(String, Option<String>)> = (0..2).map(|number| in_front(&mut random, folder, number)).collect();
    let behind = behind(&mut random, folder);
    let filtering = ["independent", "address", "address_port"][random.below(3) as usize];
    let block = [16, 64][random.below(2) as usize];
    let chain = format!(
        "chain c {{\n    f0 = {}\n    f1 = {}\n    \
         nat = NAT(pool = [198.51.100.0/28, 2001:db8:ff::/124], filtering = {filtering}, block = {block})\n    \
         f2 = {behind}\n    in <-> f0 <-> f1 <-> nat <-> f2 <-> out\n}}\n",
        front[0].0, front[1].0
    );
    let path = |name: &str| folder.join(name).display().to_string();
    let [file, replies, out, back] = ["c.catena", "replies.pcap", "out.pcap", "back.pcap"].map(path);
    std::fs::write(&file, &chain).expect("a chain file");
    let (flows, order) = (random.within(1, 600), ["random", "roundrobin"][random.below(2) as usize]);
    let (rate, tcp) = (random.within(100, 2000), ["plain", "client"][random.below(2) as usize]);
    // To a balancer all pings from one address are one connection, and who shares an address depends on the workers.
    let proto = if behind.starts_with("LB") { "udp:3+tcp:2" } else { "udp:3+tcp:2+icmp" };
    let there = format!(
        "gen:flows={flows},count=3000,proto={proto},tcp={tcp},ipv6=10%,order={order},rate={rate}kpps,size=64..400,\
         dport=20-90,dist=geometric({}),seed={seed}",
        random.within(2, 40)
    );
    let drawn = random.below(u32::MAX);
    let mut one = None;
    for workers in 1..=4usize {
        let count = workers.to_string();
        let args = [&*file, "--in", &there, "--out", &out, "--seed", "7", "--workers", &count];
        run(&args);
        write(Path::new(&replies), &unnumbered(&mut SplitMix64::new(drawn.into()), &read(Path::new(&out))));
        let report = run(&[&args[..], &["--back-in", &replies, "--back-out", &back]].concat());
        accounted(&report);
        let modules = report["modules"].as_array().expect("modules");
        let drops = ["f0", "f1", "nat", "f2"]
            .map(|name| modules.iter().find(|m| m["name"] == name).map(|m| m["drops"].clone()));
        let drops = drops.into_iter().flatten().collect::<Vec<_>>();
        let exports = front.iter().filter_map(|(_, export)| export.as_deref());
        let records: Vec<Vec<String>> = exports.map(|export| records(export, workers)).collect();
        let (left, came) = (read(Path::new(&out)), std::fs::read(&back).expect("a capture"));
        let (one_left, one_came, others) =
            one.get_or_insert_with(|| (left.clone(), came.clone(), (drops.clone(), records.clone())));
        let what = format!("seed {seed}, {workers} workers, of the chain\n{chain}and the traffic {there}");
        assert_eq!(others.0, drops, "drops: {what}");
        same_but_for_names(one_left, &left, &what);
        assert!(*one_came == came, "what comes back is not the bytes that one worker writes: {what}");
        assert_eq!(others.1, records, "records: {what}");
    }
    [out, back].map(|file| read(Path::new(&file)).len())
}

#[test]
fn several_workers_translate_what_one_does() {
    let (all, mut passed) = (seeds(SEEDS), [0; 2]);
    let count = all.end - all.start;
    for seed in all {
        let folder = tempfile::tempdir().expect("a folder");
        let played = play(folder.path(), seed);
        passed = [passed[0] + played[0], passed[1] + played[1]];
    }
    println!("{passed:?} packets left and came back in {count} runs");
    assert!(passed.iter().all(|passed| *passed as u64 > 500 * count), "{passed:?} packets in {count} runs");
}
