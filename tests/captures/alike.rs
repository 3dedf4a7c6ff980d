//! Chains of four functions, drawn by seeds: several workers write and record what one does.
//!
//! NAT is in none of them (see `translated`): which port a host gets depends on which worker has it, as each has its own blocks. Connections
//! of a balancer that goes by their number live on: when a worker finds them over depends on its own packets.
//!
//! More seeds than usual: `CATENA_SEEDS=500 cargo test --release -p catena --test main do_what_one_does`; the message of one that
//! fails has its number, and `CATENA_FIRST` is the seed to begin with.

use std::ops::Range;
use std::path::Path;

use catena_packet::random::SplitMix64;

use super::packets::{Packet, read, write};
use super::parts::{mirrored, put_right};
use super::{accounted, run};

/// Seeds that every run of the tests tries.
const SEEDS: u64 = 12;

/// Return the seeds that the environment says, or `usual` many.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("CATENA_FIRST").unwrap_or(0);
    first..first + number("CATENA_SEEDS").unwrap_or(usual)
}

/// Return a step of a chain, and the file that it exports to, if it does.
pub fn function(random: &mut SplitMix64, folder: &Path, number: usize) -> (String, Option<String>) {
    let step = match random.below(7) {
        0 => {
            let port = random.within(20, 90);
            format!(
                "ACL(rules = [\"deny udp from any to any port {port}\", \"deny tcp from 100.64.0.0/12 to any\", \"permit any\"])"
            )
        }
        1 => {
            let (rate, burst) = (random.within(1, 40), random.within(1, 40));
            format!("Limiter(rate = {rate}kpps, burst = {burst}, per = src, prefix6 = 128)")
        }
        2 => format!("LB(vip = 203.0.113.{}/26, backends = {})", 64 * random.below(4), backends(random)),
        3 => {
            let backends = backends(random);
            format!("LB(vip = 203.0.113.0/25, backends = {backends}, method = consistent_hash, tcp_transitory = 4ms)")
        }
        4 => {
            let blocked = random.below(200);
            format!("IPv4Fwd(routes = [\"default via 192.0.2.1\", \"blackhole 203.0.113.{blocked}\"], ttl = true)")
        }
        5 => "PortScan(timeout = 2ms, memory = 10ms)".to_owned(),
        _ => {
            let file = folder.join(format!("m{number}.json")).display().to_string();
            let idle = random.within(1, 9);
            let step = format!("Monitor(export = \"{file}\", idle_timeout = {idle}ms, active_timeout = 12ms)");
            return (step, Some(file));
        }
    };
    (step, None)
}

fn backends(random: &mut SplitMix64) -> String {
    let all: Vec<String> = (1..=random.within(2, 6)).map(|n| format!("10.9.0.{n}")).collect();
    format!("[{}]", all.join(", "))
}

/// Return the lines of a function's records, of all workers, in an order that does not depend on who wrote them.
pub fn records(file: &str, workers: usize) -> Vec<String> {
    let of = |worker: usize| if worker == 0 { file.to_owned() } else { format!("{file}.{worker}") };
    let texts = (0..workers).map(|worker| std::fs::read_to_string(of(worker)).expect("records"));
    let mut lines: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.sort_unstable();
    lines
}

/// Answers to what has left, but for some, each a while after what it answers.
pub fn answers(random: &mut SplitMix64, left: &[Packet]) -> Vec<Packet> {
    let mut answers = Vec::new();
    for packet in left {
        if random.is_one_in(4) {
            continue;
        }
        let mut frame = mirrored(&packet.frame);
        let (proto, flags) = if frame[12..14] == [8, 0] { (frame[23], 34 + 13) } else { (frame[20], 54 + 13) };
        if proto == 6 && frame[flags] & 2 != 0 {
            frame[flags] |= 0x10;
            put_right(&mut frame, "TCP");
        }
        answers.push(Packet { time: packet.time + u64::from(random.within(1, 200_000)), frame, missing: 0 });
    }
    answers.sort_by_key(|packet| packet.time);
    answers
}

/// Play one seed's chain and traffic with 1 to 4 workers.
fn play(folder: &Path, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let steps: Vec<(String, Option<String>)> = (0..4).map(|number| function(&mut random, folder, number)).collect();
    let names: Vec<String> = (0..4).map(|number| format!("f{number}")).collect();
    let made = names.iter().zip(&steps).map(|(name, (step, _))| format!("{name} = {step}\n"));
    let chain = format!("chain c {{\n{}in <-> {} <-> out\n}}\n", made.collect::<String>(), names.join(" <-> "));
    let path = |name: &str| folder.join(name).display().to_string();
    let [file, replies, out, back] = ["c.catena", "replies.pcap", "out.pcap", "back.pcap"].map(path);
    std::fs::write(&file, &chain).expect("a chain file");
    let (flows, order) = (random.within(1, 600), ["random", "roundrobin"][random.below(2) as usize]);
    let (rate, tcp) = (random.within(100, 2000), ["plain", "client"][random.below(2) as usize]);
    let there = format!(
        "gen:flows={flows},count=3000,proto=udp:3+tcp:2+icmp,tcp={tcp},ipv6=10%,order={order},rate={rate}kpps,size=64..400,\
         dport=20-90,dist=geometric({}),seed={seed}",
        random.within(2, 40)
    );
    run(&[&file, "--in", &there, "--out", &out, "--seed", "7"]);
    write(Path::new(&replies), &answers(&mut random, &read(Path::new(&out))));
    let mut one = None;
    for workers in 1..=4usize {
        let count = workers.to_string();
        let report = run(&[
            &file,
            "--in",
            &there,
            "--back-in",
            &replies,
            "--out",
            &out,
            "--back-out",
            &back,
            "--seed",
            "7",
            "--workers",
            &count,
        ]);
        accounted(&report);
        let written = [&out, &back].map(|file| std::fs::read(file).expect("a capture"));
        let exports = steps.iter().filter_map(|(_, export)| export.as_deref());
        let records: Vec<Vec<String>> = exports.map(|export| records(export, workers)).collect();
        let modules = report["modules"].as_array().expect("modules");
        let drops: Vec<_> =
            names.iter().map(|name| modules.iter().find(|m| m["name"] == **name).map(|m| m["drops"].clone())).collect();
        let did = (drops, written, records);
        match &one {
            None => one = Some(did),
            Some(one) => {
                let what = format!("seed {seed}, {workers} workers, of the chain\n{chain}and the traffic {there}");
                assert_eq!(one.0, did.0, "drops: {what}");
                assert!(one.1 == did.1, "not the bytes that one worker writes: {what}");
                let differ = |a: &[Vec<String>], b: &[Vec<String>]| {
                    let lines = a.iter().zip(b).flat_map(|(a, b)| a.iter().filter(|line| !b.contains(line)));
                    lines.cloned().collect::<Vec<_>>()
                };
                let (only_one, only_many) = (differ(&one.2, &did.2), differ(&did.2, &one.2));
                assert!(one.2 == did.2, "records: {what}\none: {only_one:#?}\nseveral: {only_many:#?}");
            }
        }
    }
}

/// Play one seed's chain, whose ways part and meet again, with some numbers of workers.
fn play_ways(folder: &Path, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let steps: Vec<String> = (0..6).map(|number| function(&mut random, folder, number).0).collect();
    let made: String = steps.iter().enumerate().map(|(number, step)| format!("    f{number} = {step}\n")).collect();
    let (rate, burst) = (random.within(1, 20), random.within(1, 20));
    let port = random.within(30, 80);
    let ways = match random.below(3) {
        0 => format!("    in -> f0 -> [ \"udp\": f1, \"dst port {port}\": f2 -> f3, else: ] -> f4 -> f5 -> out\n"),
        1 => format!(
            "    in -> [ \"tcp\": f0, else: f1 ] -> f2 -> [ \"dst portrange 20-{port}\": f3, else: ] -> f4 -> f5 -> out\n"
        ),
        _ => format!(
            "    l = Limiter(rate = {rate}kpps, burst = {burst}, per = src)\n    in -> f0 -> l\n    \
             l[conform] -> f1 -> f3\n    l[exceed] -> f2 -> f3\n    f3 -> f4 -> f5 -> out\n"
        ),
    };
    let chain = format!("chain c {{\n{made}{ways}}}\n");
    let [file, out] = ["c.catena", "out.pcap"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&file, &chain).expect("a chain file");
    let traffic = format!(
        "gen:flows={},count=3000,proto=udp:3+tcp:2+icmp,tcp=client,ipv6=10%,order=random,rate={}kpps,size=64..400,dport=20-90,\
         dist=geometric({}),seed={seed}",
        random.within(1, 600),
        random.within(100, 2000),
        random.within(2, 40)
    );
    let mut one = None;
    for workers in ["1", "2", "3", "7"] {
        let report = run(&[&file, "--in", &traffic, "--out", &out, "--seed", "7", "--workers", workers]);
        accounted(&report);
        let did = std::fs::read(&out).expect("a capture");
        let one = one.get_or_insert_with(|| did.clone());
        assert!(*one == did, "not the bytes that one writes: seed {seed}, {workers} workers, of\n{chain}and {traffic}");
    }
}

/// Where ways meet, packets of one may come before earlier ones of another; a balancer behind must not wait for these for ever.
#[test]
fn several_workers_do_what_one_does_where_ways_meet() {
    for seed in seeds(SEEDS) {
        let folder = tempfile::tempdir().expect("a folder");
        play_ways(folder.path(), seed);
    }
}

#[test]
fn several_workers_do_what_one_does() {
    for seed in seeds(SEEDS) {
        let folder = tempfile::tempdir().expect("a folder");
        play(folder.path(), seed);
    }
}
