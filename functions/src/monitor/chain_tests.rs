//! A chain whose functions lose their instances does what one does that loses none: packet by packet, record by record, and object
//! by object.
//!
//! More seeds than usual: `CATENA_SEEDS=10000 cargo test --release -p catena-functions chain_tests`; one of them again:
//! `CATENA_SEED=7`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use catena_packet::random::Random;
use catena_state::delayed::{Holds, View};
use catena_state::{Crashes, Share};

use crate::testing::engines::{Losses, SEEDS, lost, on_local, on_losing, viewed};
use crate::testing::{Harness, SECOND, START, build, craft, describe};
use crate::{Args, Value, acl, lb, monitor, nat, port_scan};

/// What happens to the chain.
enum Event {
    /// Packets come in by a gate.
    Packets(u16, Vec<(u64, Vec<u8>)>),
    /// It does what is due.
    Tick(u64),
}

/// What came of a run.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// By event: which packet left, by which gate, with which bytes, in this order.
    left: Vec<Vec<(usize, u16, Vec<u8>)>>,
    drops: BTreeMap<&'static str, u64>,
    gauges: BTreeMap<&'static str, u64>,
    /// The records of flows.
    records: String,
}

/// ACL -> NAT -> LB -> Monitor -> PortScan, exporting to a file. What the arguments are goes with the seed.
fn chain(seed: u64, records: &str) -> Harness {
    let text = |text: &str| Value::Text(text.to_owned());
    let list = |words: &str, value: fn(&str) -> Value| Value::List(words.split(' ').map(value).collect());
    let seconds = |count: u64| Value::Duration(count * SECOND);
    let rules = "deny udp to any port 9; permit any";
    let rules = Value::List(rules.split("; ").map(text).collect());
    let acl = Args::default().with("rules", rules);
    let pool = Value::List(vec![
        Value::Prefix("198.51.100.7".parse().unwrap(), 32),
        Value::Prefix("2001:db8:99::".parse().unwrap(), 64),
    ]);
    let filtering = ["independent", "address", "address_port"][seed as usize % 3];
    let nat = Args::default().with("pool", pool).with("filtering", Value::Word(filtering.into()));
    let nat = nat.with("block", Value::Integer(4)).with("max_per_host", Value::Integer(6));
    let nat = nat
        .with("udp_timeout", seconds(30))
        .with("max_mappings", Value::Integer(if seed.is_multiple_of(5) { 12 } else { 900 }));
    let endpoint =
        |text: &str| text.parse().map(Value::Endpoint).unwrap_or_else(|_| Value::Address(text.parse().unwrap()));
    let method = if seed % 4 == 1 { "consistent_hash" } else { "least_connections" };
    let lb = Args::default().with("vip", list("192.0.2.10:80 2001:db8:9::9", endpoint));
    let lb = lb.with("backends", list("10.9.0.1:80 10.9.0.2:81 10.9.0.3:80 fd00::1 fd00::2", endpoint));
    let lb = lb.with("method", Value::Word(method.into())).with("udp", seconds(40));
    let lb = lb.with("max_connections", Value::Integer(if seed.is_multiple_of(7) { 2 } else { 1000 }));
    let monitor = Args::default().with("export", text(records)).with("idle_timeout", seconds(8));
    let monitor = monitor.with("active_timeout", seconds(12));
    let monitor = monitor.with("max_flows", Value::Integer(if seed.is_multiple_of(6) { 10 } else { 1000 }));
    let scan = Args::default().with("timeout", seconds(2)).with("memory", seconds(200));
    let functions = [
        (&acl::DESCRIPTOR, acl),
        (&nat::DESCRIPTOR, nat),
        (&lb::DESCRIPTOR, lb),
        (&monitor::DESCRIPTOR, monitor),
        (&port_scan::DESCRIPTOR, scan),
    ];
    let built = functions.map(|(descriptor, args)| build(descriptor, &args, Share::WHOLE));
    Harness::chain(built.map(|module| module.unwrap_or_else(|error| panic!("{error}"))).into())
}

/// Somebody inside as the outside sees them, and who they spoke to, as lines spell them; and whether by TCP.
struct Spoke {
    external: String,
    remote: String,
    is_tcp: bool,
}

/// Makes packets.
struct Maker {
    random: Random,
    now: u64,
    spoke: Vec<Spoke>,
    /// The later fragment of the datagram that was begun last from inside.
    rest: Option<String>,
}

impl Maker {
    fn draw(&mut self, below: u64) -> u64 {
        self.random.bits() % below
    }

    /// A segment or datagram between two endpoints.
    fn upper(&mut self, from: &str, to: &str, is_tcp: bool) -> String {
        let flags = ["S", "S", "SA", "A", "A", "FA", "R"][self.draw(7) as usize];
        let length = self.draw(60);
        match is_tcp {
            true => format!("tcp {from} > {to} {flags} len {length}"),
            false => format!("udp {from} > {to} len {length}"),
        }
    }

    /// A packet from inside: to a server, to a virtual address, to another inside by its external endpoint; fragments, pings,
    /// errors, what is denied.
    fn out(&mut self) -> String {
        let (host, port) = (1 + self.draw(5), 4000 + self.draw(4));
        let is_v6 = self.draw(4) == 0;
        let (address, from) = match is_v6 {
            true => (format!("2001:db8::{host}"), format!("[2001:db8::{host}]:{port}")),
            false => (format!("10.0.0.{host}"), format!("10.0.0.{host}:{port}")),
        };
        let server = 9 + 2 * self.draw(3);
        let (server, to) = match (is_v6, self.draw(3)) {
            (true, 0) => ("2001:db8:9::9".to_owned(), "[2001:db8:9::9]:80".to_owned()),
            (true, _) => (format!("2001:db8:8::{server}"), format!("[2001:db8:8::{server}]:53")),
            (false, 0) => ("192.0.2.10".to_owned(), "192.0.2.10:80".to_owned()),
            (false, _) => (format!("192.0.2.{server}"), format!("192.0.2.{server}:53")),
        };
        let ident = 1 + self.draw(4);
        match self.draw(14) {
            0 => {
                self.rest = Some(format!("ip {address} > {server} proto 17 len 8 id {ident} later 128"));
                format!("udp {from} > {to} len 120 id {ident} first")
            }
            1 => match self.rest.take() {
                Some(rest) => rest,
                None => format!("ip {address} > {server} proto 17 len 8 id {ident} later 128"),
            },
            2 => format!("icmp {address} > {server} echo {port}"),
            3 => format!("icmp {address} > {server} unreachable {{ udp {to} > {from} len 12 }}"),
            4 => format!("udp {from} > {} len 5", to.replace(":53", ":9").replace(":80", ":9")),
            5 | 6 if !self.spoke.is_empty() => {
                let Spoke { external, is_tcp, .. } = &self.spoke[self.random.below(self.spoke.len() as u32) as usize];
                let (external, is_tcp) = (external.clone(), *is_tcp);
                match external.starts_with('[') == is_v6 {
                    true => self.upper(&from, &external, is_tcp),
                    false => "arp".to_owned(),
                }
            }
            7..10 => self.upper(&from, &to, false),
            _ => self.upper(&from, &to, true),
        }
    }

    /// A packet from outside: an answer, an error, a fragment, or one that nobody waits for.
    fn back(&mut self) -> String {
        let stranger = "udp 203.0.113.9:53 > 198.51.100.7:9999".to_owned();
        let Some(last) = self.spoke.len().checked_sub(1) else { return stranger };
        let Spoke { external, remote, is_tcp } = &self.spoke[self.random.below(1 + last as u32) as usize];
        let (external, remote, is_tcp) = (external.clone(), remote.clone(), *is_tcp);
        let address = |endpoint: &str| endpoint.rsplit_once(':').unwrap().0.trim_matches(['[', ']']).to_owned();
        let ident = 1 + self.draw(4);
        match self.draw(12) {
            0 => stranger,
            1 => format!(
                "icmp {} > {} exceeded {{ udp {external} > {remote} len 12 }}",
                address(&remote),
                address(&external)
            ),
            2 => format!("udp {remote} > {external} len 120 id {ident} first"),
            3 => format!("ip {} > {} proto 17 len 8 id {ident} later 128", address(&remote), address(&external)),
            _ => self.upper(&remote, &external, is_tcp),
        }
    }

    /// Learn from what left on the way out who is seen as whom.
    fn learn(&mut self, left: &[(usize, u16, Vec<u8>)]) {
        for (_, _, bytes) in left.iter().filter(|(_, gate, _)| *gate == 0) {
            let line = describe(bytes);
            let [kind @ ("udp" | "tcp"), external, ">", remote, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
                continue;
            };
            let is_tcp = kind == "tcp";
            self.spoke.push(Spoke { external: external.to_owned(), remote: remote.to_owned(), is_tcp });
        }
        let old = self.spoke.len().saturating_sub(40);
        self.spoke.drain(..old);
    }
}

/// Return how many packets come together at most. Where results are late, one: it waits for state again and again, and is lost while
/// it waits; but nobody else waits with it, as which flow comes first decides which port it gets, and who has to go. Nor is anything
/// over meanwhile: *tidy* may forget it before a packet that waits goes on, or after. Functions are held to both by tests of their own.
fn together(seed: u64) -> u64 {
    if seed % 4 == 3 { 1 } else { 40 }
}

/// Play a chain on local state, making up as it goes what comes in; returns that, and what came of it.
fn made_up(seed: u64, records: &str) -> (Vec<Event>, Outcome) {
    let mut maker = Maker { random: Random::new(seed), now: START, spoke: Vec::new(), rest: None };
    let (mut harness, mut outcome, mut events) = (chain(seed, records), Outcome::default(), Vec::new());
    let (rounds, most_pause, most_step) = match together(seed) {
        1 => (80, 1, SECOND / 200),
        _ => (10, 50 * SECOND, SECOND / 20),
    };
    for round in 0..rounds {
        if maker.draw(4) == 0 {
            maker.now += maker.draw(most_pause);
            harness.tick(maker.now);
            events.push(Event::Tick(maker.now));
        }
        let gate = round % 2;
        let mut piece = Vec::new();
        for _ in 0..1 + maker.draw(together(seed)) {
            maker.now += maker.draw(most_step);
            let line = if gate == 0 { maker.out() } else { maker.back() };
            piece.push((maker.now, craft(&line)));
        }
        let mut left = Vec::new();
        harness.send_to(gate, &piece, &mut left);
        maker.learn(&left);
        outcome.left.push(left);
        events.push(Event::Packets(gate, piece));
    }
    end(harness, &mut outcome, records);
    (events, outcome)
}

/// Play the same once more.
fn played(seed: u64, events: &[Event], records: &str) -> Outcome {
    let (mut harness, mut outcome) = (chain(seed, records), Outcome::default());
    for event in events {
        match event {
            Event::Tick(now) => harness.tick(*now),
            Event::Packets(gate, piece) => {
                let mut left = Vec::new();
                harness.send_to(*gate, piece, &mut left);
                outcome.left.push(left);
            }
        }
    }
    end(harness, &mut outcome, records);
    outcome
}

fn end(mut harness: Harness, outcome: &mut Outcome, records: &str) {
    outcome.left.push(harness.finish());
    (outcome.drops, outcome.gauges) = (harness.drops(), harness.gauges());
    harness.end();
    outcome.records = std::fs::read_to_string(records).unwrap();
}

/// When instances are lost, and how late results are.
fn losses(seed: u64) -> Losses {
    let crashes = match seed % 3 {
        0 => Crashes::AtEach,
        1 => Crashes::OneIn(3 + seed % 20),
        _ => Crashes::OneIn(20 + seed % 100),
    };
    (crashes, if together(seed) == 1 { 1 + seed % 5 } else { 0 })
}

/// A file of its own for each run, which goes with it.
struct Records(std::path::PathBuf);

impl Records {
    fn new() -> Records {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("catena-chain-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Records(std::env::temp_dir().join(name))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Play once more on delayed engines, which lose instances or do not; returns what all objects hold at the end, too.
fn played_late(seed: u64, events: &[Event], losses: Losses) -> (Outcome, Vec<Vec<Holds>>) {
    let records = Records::new();
    let (outcome, views) = viewed(|| on_losing(seed, losses, || played(seed, events, records.0.to_str().unwrap())));
    (outcome, views.iter().map(View::holds).collect())
}

fn hold(seed: u64) -> Outcome {
    let records = Records::new();
    let (events, expected) = on_local(|| made_up(seed, records.0.to_str().unwrap()));
    let (crashes, polls) = losses(seed);
    let (undisturbed, expected_objects) = played_late(seed, &events, (Crashes::Never, polls));
    let before = lost();
    let (came, objects) = played_late(seed, &events, (crashes, polls));
    let again = format!("CATENA_SEED={seed} repeats it");
    assert!(lost() > before, "no instance was lost; {again}");
    assert_eq!(undisturbed, expected, "late, not late; {again}");
    for (event, (came, expected)) in came.left.iter().zip(&expected.left).enumerate() {
        let differs = came.iter().zip(expected).find(|(came, expected)| came != expected);
        let lines =
            differs.map(|(came, expected)| [came, expected].map(|(n, gate, bytes)| (*n, *gate, describe(bytes))));
        assert_eq!(lines, None, "what left after event {event}: with losses, without; {again}");
        assert_eq!(came.len(), expected.len(), "how many left after event {event}; {again}");
    }
    assert_eq!(came, expected, "with losses, without; {again}");
    assert_eq!(objects.len(), 4, "of each function but the ACL, which has none");
    // What comes late may come after what *tidy* tells the same object: its operations are the same, in another order.
    let is_ordered = |holds: &&Holds| polls == 0 || matches!(holds, Holds::Entries(..));
    let [objects, expected_objects] = [&objects, &expected_objects].map(|all| all.iter().flatten().filter(is_ordered));
    for (came, expected) in objects.zip(expected_objects) {
        assert_eq!(came, expected, "what an object holds: with losses, without; {again}");
    }
    expected
}

#[test]
fn a_chain_that_loses_instances_does_what_one_does_that_loses_none() {
    let number =
        |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number of seeds, or a seed"));
    if let Some(seed) = number("CATENA_SEED") {
        hold(seed);
        return;
    }
    let mut seen = BTreeMap::<String, u64>::new();
    for seed in 0..number("CATENA_SEEDS").unwrap_or(SEEDS) {
        count(&hold(seed), |what| *seen.entry(what.to_owned()).or_default() += 1);
    }
    // What it is about does happen.
    let expected = [
        "denied by a rule",
        "no mapping",
        "host has as many ports as it may",
        "filtered: nothing was sent there",
        "fragment without its first",
        "as many mappings as there may be",
        "source scans ports",
        "hairpin",
        "error out",
        "error in",
        "later fragment out",
        "later fragment in",
        "ping",
        "IPv6 out",
        "IPv6 in",
        "to a server",
        "opened",
        "idle",
        "active",
        "closed",
        "forced",
        "evicted",
        "flows evicted",
        "scanners found",
    ];
    for what in expected {
        assert!(seen.contains_key(what), "never: {what}; but {seen:?}");
    }
}

/// Tell what happened in a run.
fn count(outcome: &Outcome, mut tell: impl FnMut(&str)) {
    outcome.drops.keys().for_each(|reason| tell(reason));
    outcome.gauges.iter().filter(|(_, value)| **value > 0).for_each(|(gauge, _)| tell(gauge));
    for record in outcome.records.lines() {
        tell(record.split("\"end\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("no end"));
    }
    for (round, left) in outcome.left.iter().enumerate() {
        for (_, gate, bytes) in left {
            let line = describe(bytes);
            let (is_out, has) = (round % 2 == 0, |what: &str| line.contains(what));
            let kinds = [
                ("hairpin", is_out && *gate == 1),
                ("error out", *gate == 0 && has(" unreachable {") && has(" 198.51.100.7")),
                ("error in", !is_out && has(" exceeded {") && has(" 10.0.0.")),
                ("later fragment out", *gate == 0 && has(" later ")),
                ("later fragment in", !is_out && has(" later ")),
                ("ping", *gate == 0 && has(" echo ")),
                ("IPv6 out", *gate == 0 && has("2001:db8:99:")),
                ("IPv6 in", !is_out && has("> [2001:db8::")),
                ("to a server", *gate == 0 && has("> 10.9.0.")),
            ];
            kinds.iter().filter(|(_, is_it)| *is_it).for_each(|(kind, _)| tell(kind));
        }
    }
}
