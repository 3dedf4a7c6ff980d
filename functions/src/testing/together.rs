//! Several late instances whose shared objects one holder has, as instances in several places would: they do together what one does
//! that has all packets, whatever each of them has on its way.

use std::collections::{BTreeMap, BTreeSet};

use catena_packet::{Batch, Clock, Way};

use super::engines::{LOSING, SEEDS, losses, lost, on_delayed, on_local, on_losing, with_one_holder};
use super::moved::functions;
use super::walk::{Side, walk};
use super::{Fate, Harness, START, craft, describe};
use crate::registry::find;
use crate::{Args, Value};

/// Instances.
const COUNT: u32 = 3;
const STEPS: usize = 300;

/// Whose packets meet one instance, as it has entries of them.
#[derive(Clone, Copy)]
enum By {
    /// Nobody's: all that is kept is shared.
    Nobody,
    /// Those of an endpoint.
    Endpoint,
    /// Those of a host, or between two.
    Host,
}

fn by(name: &str) -> By {
    match name {
        "Limiter" => By::Nobody,
        "NAT" | "PortScan" => By::Host,
        _ => By::Endpoint,
    }
}

/// Instances on late engines, and one on a local one.
struct Bench {
    several: Harness,
    one: Harness,
    by: By,
    turn: u16,
    now: u64,
}

impl Bench {
    fn new(name: &str, args: &Args) -> Bench {
        let function = find(name).expect("it is in the registry");
        let several = Harness::of_several(None, function, args, COUNT);
        let one = on_local(|| Harness::of(function, args));
        Bench { several, one, by: by(name), turn: 0, now: START }
    }
}

impl Side for Bench {
    fn send(&mut self, (host, port): (u16, u16), gate: u16, [several, one]: [&[u8]; 2]) -> [Fate; 2] {
        self.wait(1_000);
        self.turn += 1;
        let at = match self.by {
            By::Nobody => self.turn,
            By::Endpoint => host + port,
            By::Host => host,
        } % COUNT as u16;
        let fate = match self.several.send_one(2 * at + gate, self.now, several) {
            Fate::Out(gate, bytes) => {
                assert_eq!(gate / 2, at, "it leaves by another instance");
                Fate::Out(gate % 2, bytes)
            }
            dropped @ Fate::Dropped(_) => dropped,
        };
        [fate, self.one.send_one(gate, self.now, one)]
    }

    fn turn(&mut self, _: u16, _: &mut dyn FnMut(u64) -> u64) {
        self.turn += 1;
    }

    fn wait(&mut self, ns: u64) {
        self.now += ns;
        self.several.tick(self.now);
        self.one.tick(self.now);
        // What was told has come: where a packet of another instance comes before, it has the other order.
        self.several.settle();
    }

    fn gauges(&self) -> [BTreeMap<&'static str, u64>; 2] {
        [self.several.gauges_together(), self.one.gauges()]
    }
}

impl Harness {
    /// Let all that is on its way come.
    fn settle(&mut self) {
        (0..8).for_each(|_| self.graph.idle(&mut self.cx));
    }

    /// Send packets of one time, each by its gate, before any of them has its fate; returns which came out, with what.
    fn send_at_once(&mut self, frames: &[(u16, Vec<u8>)]) -> Vec<(usize, Vec<u8>)> {
        let (before, mut out) = (self.dropped(), Vec::new());
        self.firsts.push(self.clock + 1);
        self.cx.set_now(START);
        for (gate, bytes) in frames {
            self.clock += 1;
            let mut packet = self.cx.pool().take(bytes.len()).expect("the harness has enough buffers");
            let inlet = self.inlet(*gate);
            packet.fill(bytes);
            packet.meta_mut().arrival = START;
            packet.meta_mut().clock = Clock::from_bits(self.clock);
            packet.meta_mut().way = Way::by(inlet.gate);
            let mut batch = Batch::new();
            batch.push(packet);
            self.graph.run(&mut self.cx, inlet, &mut batch);
        }
        self.wait(frames.len(), before, &mut out);
        out.into_iter().map(|(number, _, bytes)| (number, bytes)).collect()
    }
}

/// Functions, with arguments: those that are moved, and Limiters of keys that several instances meet.
fn cases() -> Vec<(&'static str, Args)> {
    let per = |per: &str| {
        let args = Args::default().with("rate", Value::PacketRate(2));
        ("Limiter", args.with("per", Value::Word(per.into())))
    };
    let mut cases = functions();
    cases.extend([per("dst"), per("class")]);
    cases
}

#[test]
fn several_late_instances_do_what_one_does() {
    for (name, args) in cases() {
        for seed in 0..SEEDS.min(40) {
            with_one_holder(seed % 4 == 1, || {
                on_delayed(seed, || {
                    let mut bench = Bench::new(name, &args);
                    walk(&mut bench, name, STEPS, seed);
                    bench.several.end();
                    on_local(|| bench.one.end());
                });
            });
        }
    }
}

#[test]
fn instances_are_lost_beside_others() {
    for (name, args) in cases() {
        for seed in 0..LOSING {
            let before = lost();
            with_one_holder(seed % 4 == 1, || {
                on_losing(seed, losses(seed), || {
                    let mut bench = Bench::new(name, &args);
                    walk(&mut bench, name, STEPS / 6, seed);
                    bench.several.end();
                    on_local(|| bench.one.end());
                });
            });
            assert!(lost() > before, "{name} with seed {seed}: no instance was lost");
        }
    }
}

/// Return what comes of packets of one time with all instances, each packet by the next one, and with one instance: how many come out.
fn at_once(name: &str, args: &Args, lines: &[String], check: impl Fn(&mut Harness, &[(usize, Vec<u8>)])) -> [usize; 2] {
    let frames: Vec<(u16, Vec<u8>)> =
        (0..).step_by(2).map(|gate| gate % (2 * COUNT as u16)).zip(lines.iter().map(|line| craft(line))).collect();
    let function = find(name).expect("it is in the registry");
    let out = with_one_holder(false, || {
        let mut several = Harness::of_several(None, function, args, COUNT);
        let out = several.send_at_once(&frames);
        check(&mut several, &out);
        several.end();
        out
    });
    let one = on_local(|| {
        let mut one = Harness::of(function, args);
        let frames: Vec<_> = frames.into_iter().map(|(_, bytes)| (START, bytes)).collect();
        let out = one.send(0, &frames).len();
        one.end();
        out
    });
    [out.len(), one]
}

/// Return where packets come from, or go to, by their texts' words.
fn ends(out: &[(usize, Vec<u8>)], word: usize) -> Vec<String> {
    out.iter().map(|(_, bytes)| describe(bytes).split(' ').nth(word).expect("an end").to_owned()).collect()
}

#[test]
fn what_is_on_its_way_in_several_instances_passes_no_bound() {
    let found =
        |name: &str| cases().into_iter().find(|(known, _)| *known == name).map(|(_, args)| args).unwrap_or_default();
    let servers = |count: u32| {
        let endpoint = |text: &str| Value::Endpoint(text.parse().unwrap());
        let servers = (1..=count).map(|server| endpoint(&format!("10.9.0.{server}:80")));
        Args::default().with("vip", endpoint("192.0.2.10:80")).with("backends", Value::List(servers.collect()))
    };
    let hosts =
        |count: u32| (0..count).map(|host| format!("tcp 10.0.0.{host}:4000 > 192.0.2.10:80 S")).collect::<Vec<_>>();
    for seed in 0..SEEDS {
        let run = || {
            // A bucket is one for all: as many pass as of one instance.
            for (name, args) in cases().into_iter().filter(|(name, _)| *name == "Limiter") {
                let [several, one] =
                    at_once(name, &args, &vec!["udp 10.0.0.1:4000 > 192.0.2.9:53".to_owned(); 90], |_, _| ());
                assert_eq!(several, one, "{args:?}");
                assert!(one < 90, "{args:?}");
            }
            // However many ask at a time, there are no more connections than the most: half-open ones give way.
            let four = servers(1).with("max_connections", Value::Integer(4));
            at_once("LB", &four, &hosts(16), |several, out| {
                assert_eq!(several.gauges_together()["connections"], 4);
                assert!(out.len() >= 4);
            });
            // Who has fewest is asked and told in one operation.
            at_once("LB", &servers(5), &hosts(50), |_, out| {
                let mut of: BTreeMap<String, usize> = BTreeMap::new();
                ends(out, 3).into_iter().for_each(|server| *of.entry(server).or_default() += 1);
                assert_eq!(of.into_values().collect::<Vec<_>>(), [10; 5]);
            });
            // One counter serves all for an external address: no identification is skipped, and none comes twice.
            let args = found("NAT").with("pool", Value::Prefix("198.51.100.0".parse().unwrap(), 32));
            let datagrams: Vec<String> = (0..60).map(|host| format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53")).collect();
            at_once("NAT", &args, &datagrams, |_, out| {
                let ident = |bytes: &[u8]| u16::from_be_bytes([bytes[18], bytes[19]]);
                let given: BTreeSet<u16> = out.iter().map(|(_, bytes)| ident(bytes)).collect();
                assert_eq!(out.len(), 60);
                let is_next = |n: &u16| given.contains(&n.wrapping_add(1));
                assert_eq!(given.iter().filter(|n| !is_next(n)).count(), 1, "{given:?}");
                assert_eq!(given.len(), 60);
            });
            // No two inside endpoints get one port.
            let [several, one] = at_once("NAT", &found("NAT"), &hosts(60), |several, out| {
                let external: BTreeSet<_> = ends(out, 1).into_iter().collect();
                assert_eq!(external.len(), out.len());
                assert_eq!(several.gauges_together()["hosts"], 60);
            });
            assert_eq!([several, one], [60, 60]);
        };
        on_delayed(seed, run);
    }
}

/// Each instance sees too little of a scan to know it.
#[test]
fn a_scan_by_way_of_several_instances_is_found_by_all() {
    let function = find("PortScan").expect("it is in the registry");
    for seed in 0..SEEDS {
        let run = || {
            let mut several = Harness::of_several(None, function, &Args::default(), COUNT);
            let mut refused = 0;
            for to in 1..=30u16 {
                let at = 2 * (to % COUNT as u16);
                let out = several.send_at_once(&[(at, craft(&format!("tcp 10.0.0.1:4000 > 192.0.2.{to}:80 S")))]);
                if out.is_empty() {
                    refused += 1;
                }
                several.send_at_once(&[(at + 1, craft(&format!("tcp 192.0.2.{to}:80 > 10.0.0.1:4000 RA")))]);
                several.settle();
            }
            assert_eq!(several.gauges_together()["scanners found"], 1);
            several.end();
            refused
        };
        let of_several = with_one_holder(seed % 4 == 1, || on_delayed(seed, run));
        assert!(of_several > 20, "{of_several} of 30 refused");
    }
}
