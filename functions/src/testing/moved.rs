//! What a function keeps of flows goes with their slots: instances that hand each other slots all the time do what one does that
//! has all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use catena_packet::random::Random;
use catena_packet::{Slot, SlotSet};
use catena_state::{Share, Team};

use super::walk::{self, Side, walk};
use super::{Fate, Harness, SECOND, START, build, build_for, craft};
use crate::registry::{FUNCTIONS, find};
use crate::{Args, Value};

/// Instances.
const COUNT: u32 = 3;
/// Hosts, each of a slot of its own.
const HOSTS: u16 = walk::HOSTS;
const STEPS: usize = 600;

/// Several instances, one of which has each host's slot; and one that has all hosts.
struct Bench {
    several: Vec<Harness>,
    one: Harness,
    of: Vec<usize>,
    now: u64,
}

fn slot(host: u16) -> Slot {
    Slot::numbered(host * 200 + 7).expect("there are enough")
}

impl Bench {
    fn new(name: &str, args: &Args) -> Bench {
        let function = find(name).expect("it is in the registry");
        let team = Team::moving(COUNT as usize);
        let made = |team: Option<&Arc<Team>>, share| {
            let module = match team {
                Some(team) => build_for(Some(team), function, args, share, &[]),
                None => build(function, args, share),
            };
            Harness::new(module.unwrap_or_else(|error| panic!("{name}: {error}")), 2)
        };
        let several = (0..COUNT).map(|index| made(Some(&team), Share { index, count: COUNT })).collect();
        let of = (0..HOSTS).map(|host| usize::from(host) % COUNT as usize).collect();
        Bench { several, one: made(None, Share::WHOLE), of, now: START }
    }

    /// Let a host's slot, and those of some others, go to another instance.
    fn give(&mut self, hosts: &[u16], to: usize) {
        let from = self.of[usize::from(hosts[0])];
        let hosts = hosts.iter().filter(|host| self.of[usize::from(**host)] == from).copied();
        let hosts: Vec<u16> = hosts.collect();
        let slots: SlotSet = hosts.iter().map(|host| slot(*host)).collect();
        hosts.iter().for_each(|host| self.of[usize::from(*host)] = to);
        let parcels = self.several[from].leave(&slots);
        assert_eq!(self.several[to].arrive(parcels), []);
        (0..4).for_each(|_| self.several.iter_mut().for_each(Harness::go_on));
    }

    fn end(self) {
        self.several.into_iter().chain([self.one]).for_each(Harness::end);
    }
}

impl Side for Bench {
    fn send(&mut self, (host, _): (u16, u16), gate: u16, [several, one]: [&[u8]; 2]) -> [Fate; 2] {
        // All look for what is over: else who has more packets would sooner see an end that hides in these.
        self.wait(1_000);
        let at = self.of[usize::from(host)];
        self.several[at].slot = slot(host);
        let before = self.several[at].drops();
        let mut out = self.several[at].send(gate, &[(self.now, several.to_vec())]);
        let fate = loop {
            if let Some((_, gate, bytes)) = out.pop() {
                break Fate::Out(gate, bytes);
            }
            let after = self.several[at].drops();
            if let Some((reason, _)) = after.into_iter().find(|(reason, count)| before.get(reason) != Some(count)) {
                break Fate::Dropped(reason);
            }
            // It waits for another instance.
            self.several.iter_mut().for_each(Harness::go_on);
            self.several[at].collect(&mut out);
        };
        [fate, self.one.send_one(gate, self.now, one)]
    }

    fn turn(&mut self, host: u16, below: &mut dyn FnMut(u64) -> u64) {
        let others: Vec<u16> = (0..below(4)).map(|_| below(HOSTS.into()) as u16).collect();
        let to = (self.of[usize::from(host)] + 1 + below(u64::from(COUNT) - 1) as usize) % COUNT as usize;
        self.give(&[&[host], &others[..]].concat(), to);
    }

    fn wait(&mut self, ns: u64) {
        self.now += ns;
        self.several.iter_mut().chain([&mut self.one]).for_each(|harness| harness.tick(self.now));
        (0..4).for_each(|_| self.several.iter_mut().for_each(Harness::go_on));
    }

    fn gauges(&self) -> [BTreeMap<&'static str, u64>; 2] {
        let mut sums = BTreeMap::new();
        let common = self.several[0].common_gauges();
        for harness in &self.several {
            for (name, value) in harness.gauges() {
                let sum: &mut u64 = sums.entry(name).or_default();
                *sum = if common.contains(&name) { value } else { *sum + value };
            }
        }
        [sums, self.one.gauges()]
    }
}

/// Functions with state, with arguments of a chain.
pub(super) fn functions() -> Vec<(&'static str, Args)> {
    let none = Args::default;
    let endpoint = |text: &str| Value::Endpoint(text.parse().unwrap());
    let word = |text: &str| Value::Word(text.into());
    let list = |items: &[&str]| Value::List(items.iter().map(|text| endpoint(text)).collect());
    let lb = none()
        .with("vip", list(&["192.0.2.10:80", "[2001:db8:ffff::10]:80"]))
        .with("backends", list(&["10.9.0.1:80", "10.9.0.2:80", "[2001:db8:9::1]:80", "[2001:db8:9::2]:80"]))
        .with("tcp_established", Value::Duration(60 * SECOND));
    let pool = ["198.51.100.0", "2001:db8:99::"]
        .map(|first| Value::Prefix(first.parse().unwrap(), if first.contains(':') { 127 } else { 30 }));
    let nat = none()
        .with("pool", Value::List(pool.into()))
        .with("ports", Value::Range(1024, 2047))
        .with("block", Value::Integer(16));
    vec![
        ("Monitor", none()),
        ("PortScan", none()),
        ("Limiter", none().with("rate", Value::PacketRate(2)).with("per", word("src"))),
        ("Limiter", none().with("rate", Value::PacketRate(2)).with("per", word("flow"))),
        ("LB", lb.clone()),
        ("LB", lb.with("method", word("consistent_hash"))),
        ("NAT", nat.clone()),
        ("NAT", nat.clone().with("filtering", word("address"))),
        ("NAT", nat.with("filtering", word("address_port")).with("udp_timeout", Value::Duration(120 * SECOND))),
    ]
}

#[test]
fn what_is_kept_of_flows_goes_with_their_slots() {
    for (name, args) in functions() {
        for seed in 0..12 {
            let mut bench = Bench::new(name, &args);
            walk(&mut bench, name, STEPS, seed);
            bench.end();
        }
    }
}

#[test]
fn all_functions_that_say_so_are_moved_here() {
    let args = Args::default();
    for function in FUNCTIONS.iter().filter(|function| (function.moves)(&args).is_ok() && !function.state.is_empty()) {
        let is_here = functions().iter().any(|(name, _)| *name == function.name);
        assert!(is_here, "{}: add it to `functions` in {}, with arguments of a chain", function.name, file!());
    }
}

/// A bound is that of all instances together, whatever they have handed to each other; and all that goes finds room.
#[test]
fn no_bound_is_passed_by_moving() {
    let none = Args::default;
    let nat = functions().into_iter().find(|(name, _)| *name == "NAT").map(|(_, args)| args).unwrap_or_default();
    let lb = functions().into_iter().find(|(name, _)| *name == "LB").map(|(_, args)| args).unwrap_or_default();
    for (name, args, bound, gauge) in [
        ("Monitor", none(), "max_flows", "flows at the end"),
        ("PortScan", none(), "max_contacts", "contacts"),
        (
            "Limiter",
            none().with("rate", Value::PacketRate(2)).with("per", Value::Word("flow".into())),
            "max_keys",
            "keys",
        ),
        ("NAT", nat.with("filtering", Value::Word("address_port".into())), "max_mappings", "mappings"),
        ("LB", lb, "max_connections", "connections"),
    ] {
        for (seed, total) in [(1, 12), (2, 17), (3, 31)] {
            let args = args.clone().with(bound, Value::Integer(total));
            let (mut bench, mut random) = (Bench::new(name, &args), Random::new(seed));
            let mut below = |n: u64| random.bits() % n;
            let mut most = 0;
            for step in 0..800 {
                let host = below(HOSTS.into()) as u16;
                if below(4) == 0 {
                    let others: Vec<u16> = (0..below(6)).map(|_| below(HOSTS.into()) as u16).collect();
                    let to = (bench.of[usize::from(host)] + 1 + below(2) as usize) % COUNT as usize;
                    bench.give(&[&[host], &others[..]].concat(), to);
                } else {
                    let (port, to) = (4000 + below(50), 1 + below(40));
                    let kind = ["udp", "tcp"][below(2) as usize];
                    let service = if name == "LB" { "192.0.2.10:80".to_owned() } else { format!("192.0.2.{to}:80") };
                    let flags = if kind == "tcp" { " S" } else { "" };
                    let frame = craft(&format!("{kind} 10.0.0.{host}:{port} > {service}{flags}"));
                    bench.send((host, 0), 0, [&frame, &frame]);
                }
                let [several, _] = bench.gauges();
                assert!(
                    several[gauge] <= total as u64,
                    "{name} with `{bound}` {total}, step {step}: {}",
                    several[gauge]
                );
                most = most.max(several[gauge]);
            }
            assert!(most + 3 >= total as u64, "{name} with `{bound}` {total}: {most} at most");
            bench.end();
        }
    }
}
