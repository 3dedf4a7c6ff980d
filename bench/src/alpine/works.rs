//! What each module of a shape does: functions of the library where it has them, else a stated number of cycles.
//!
//! - *IP router*: an Ethernet branch, an ACL of impossible source addresses (the list of Click's `CheckIPHeader`),
//!   IPv4Fwd with 1,000 routes and five gates, and for each output 40 cycles in place of Click's option and fragment
//!   elements, which the library does not have.
//! - *Firewall*: an ACL of 100 rules with a branch behind it, to Monitor, to LB, or to 60 cycles in place of a log.
//! - *Transparent proxy*: a branch, NAT with a branch behind it, IPv4Fwd with two gates, Monitor at two ends, and 40
//!   and 60 cycles in place of the proxy's own ways.
//! - *Binary trees*, as the dissertation's: every module takes 40 cycles, then sends a packet by one of two gates. Its is
//!   by turns; here by a bit of the destination port, so that a class can be told in front.
//!
//! Class `j` has destinations in 203.`j`.0.0/16 and destination port `PORT + j`.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use catena_dataplane::attribute::Attributes;
use catena_dataplane::branch::{Arm, Branch};
use catena_dataplane::module::Verdict;
use catena_dataplane::{Context, Module};
use catena_functions::{Args, Build, Tables, Value, registry};
use catena_packet::wire::Seed;
use catena_packet::{Batch, Packet};
use catena_policy::{Filter, Libpcap};
use catena_state::Share;

use crate::pipelines::Shape;

/// Destination port of class 0.
pub const PORT: u16 = 4096;
/// Offset of the destination port in a frame without options.
pub const PORT_AT: usize = 36;
/// Flows that tables must hold.
const FLOWS: i64 = 1 << 16;
/// Cycles of a module of a binary tree.
const TREE_CYCLES: u32 = 40;

/// A module that several places of a graph run: one state, counters for each place. The lock is never waited for,
/// because all places are of one worker; it costs about a cycle a packet of a full batch, in every strategy.
#[derive(Clone)]
pub struct OneInstance(Arc<Mutex<Box<dyn Module>>>);

impl OneInstance {
    fn new(module: Box<dyn Module>) -> Self {
        OneInstance(Arc::new(Mutex::new(module)))
    }
}

impl Module for OneInstance {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).process(cx, batch);
    }

    fn tick(&mut self, cx: &mut Context) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tick(cx);
    }
}

/// The modules that one module of the shape stands for, in a row; the last one's gates lead to its downstream
/// modules, in their order.
pub type Row = Vec<OneInstance>;

/// Make the modules of a shape.
///
/// # Errors
/// What a function refuses.
pub fn rows(shape: &Shape) -> Result<Vec<Row>, String> {
    (0..shape.upstream.len()).map(|m| Ok(row(shape, m)?.into_iter().map(OneInstance::new).collect())).collect()
}

/// Make the classifier in front: gate `gates[j]` for class `j`.
///
/// The pipelines' is a branch with a filter for each class that it tells `apart`, as Catena tells classes; what is left
/// then is not tried. The trees' is one look-up by
/// destination port: a filter for each of many classes would be a classifier that nobody needs.
///
/// # Errors
/// What libpcap or the dataplane refuses.
pub fn classifier(shape: &Shape, gates: &[u16], apart: &[usize]) -> Result<OneInstance, String> {
    if is_tree(shape) {
        return Ok(OneInstance::new(Box::new(Index(gates.to_vec()))));
    }
    let mut arms = apart.iter().map(|j| arm(&[*j], gates[*j])).collect::<Result<Vec<_>, String>>()?;
    let rest = (0..gates.len()).find(|j| !apart.contains(j));
    arms.extend(rest.map(|j| Arm { when: Vec::new(), gate: gates[j] }));
    Ok(OneInstance::new(Box::new(Branch::new(arms, Seed::from_number(1)))))
}

/// The output gate of module `m` of the shape that leads to its `n`th downstream module.
pub fn gate(shape: &Shape, m: usize, n: u16) -> u16 {
    // IPv4Fwd has two gates for each of its values: out, and back.
    let forwards = matches!((shape.name.as_str(), m), ("IP router" | "transparent proxy", 2));
    if forwards { 2 * n } else { n }
}

fn is_tree(shape: &Shape) -> bool {
    shape.name.starts_with("binary")
}

fn row(shape: &Shape, m: usize) -> Result<Vec<Box<dyn Module>>, String> {
    let row = match (shape.name.as_str(), m) {
        ("IP router", 0) => vec![branch(vec![filter("ip", 0)?])],
        ("IP router", 1) => vec![acl(&impossible())?],
        ("IP router", 2) => vec![forward(&[0, 1, 2, 3, 4])?],
        ("IP router", _) => vec![burn(40, None)],
        ("firewall", 0) => {
            vec![acl(&rules())?, branch(vec![arm(&[0, 3], 0)?, arm(&[1, 4], 1)?, arm(&[2], 2)?])]
        }
        ("firewall", 1) => vec![monitor()?],
        ("firewall", 2) => vec![balancer()?],
        ("firewall", _) => vec![burn(60, None)],
        ("transparent proxy", 0) => vec![branch(vec![arm(&[0, 1], 0)?, arm(&[2, 3, 4], 1)?])],
        ("transparent proxy", 1) => vec![nat()?, branch(vec![arm(&[0], 0)?, arm(&[1], 1)?])],
        ("transparent proxy", 2) => vec![forward(&[0, 0, 0, 1, 1])?],
        ("transparent proxy", 3 | 6) => vec![monitor()?],
        ("transparent proxy", 4) => vec![burn(40, None)],
        ("transparent proxy", _) => vec![burn(60, None)],
        _ => {
            // Leaves in order are classes: the level's bit of the class says which way.
            let level = (m + 1).ilog2();
            let last = (shape.upstream.len() + 1).ilog2() - 1;
            vec![burn(TREE_CYCLES, (level < last).then(|| last - 1 - level))]
        }
    };
    Ok(row)
}

fn branch(arms: Vec<Arm>) -> Box<dyn Module> {
    Box::new(Branch::new(arms, Seed::from_number(1)))
}

fn filter(text: &str, gate: u16) -> Result<Arm, String> {
    let filter = Filter::new(text, &Libpcap)?;
    let test =
        catena_compile::filter::test(&filter.expression).map_err(|invalid| format!("{text}: {}", invalid.what))?;
    Ok(Arm { when: vec![test], gate })
}

/// The arm of some classes.
fn arm(classes: &[usize], gate: u16) -> Result<Arm, String> {
    let nets: Vec<String> = classes.iter().map(|j| format!("dst net 203.{j}.0.0/16")).collect();
    filter(&nets.join(" or "), gate)
}

fn function(name: &str, args: Vec<(&str, Value)>, taken: &[String]) -> Result<Box<dyn Module>, String> {
    let descriptor = registry::find(name).ok_or_else(|| format!("the library has no {name}"))?;
    let args = Args::new(args.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let mut build = Build {
        instance: "it",
        seed: Seed::from_number(11),
        share: Share::WHOLE,
        team: None,
        attributes: &mut Attributes::default(),
        taken,
        tables: &Tables::default(),
    };
    (descriptor.build)(&args, &mut build).map_err(|error| format!("{name}: {error}"))
}

fn file(text: String) -> Value {
    Value::File { path: "generated".to_owned(), text }
}

fn acl(rules: &str) -> Result<Box<dyn Module>, String> {
    function("ACL", vec![("rules", file(rules.to_owned()))], &[])
}

fn impossible() -> String {
    "deny any from 0.0.0.0/8 to any\ndeny any from 127.0.0.0/8 to any\ndeny any from 224.0.0.0/3 to any\npermit any\n"
        .to_owned()
}

/// A hundred rules: services at hosts that the traffic does not go to, and at the end the nets that it does.
fn rules() -> String {
    let host = |i: u32| format!("permit tcp from any to 198.51.{}.{} port {}\n", i / 16, i * 7 % 256, 1 + i * 97);
    let nets = (0..5).map(|j| format!("permit udp from 100.64.0.0/10 to 203.{j}.0.0/16\n"));
    (0..95).map(host).chain(nets).collect()
}

/// A thousand routes into the classes' nets, each class's by its own gate.
fn forward(gates: &[u16]) -> Result<Box<dyn Module>, String> {
    let route = |i: usize| {
        let (j, n) = (i % gates.len(), i / gates.len());
        match n {
            0 => format!("203.{j}.0.0/16 via 192.0.2.{} gate {}\n", j + 1, gates[j]),
            _ => format!("203.{j}.{n}.0/24 via 192.0.2.{} gate {}\n", n % 200 + 1, gates[j]),
        }
    };
    let routes = (0..1000).map(route).collect();
    let taken: Vec<String> = (0..8).map(|gate| gate.to_string()).collect();
    function("IPv4Fwd", vec![("routes", file(routes))], &taken)
}

fn monitor() -> Result<Box<dyn Module>, String> {
    function("Monitor", vec![("max_flows", Value::Integer(FLOWS))], &[])
}

fn nat() -> Result<Box<dyn Module>, String> {
    let pool = Value::List(vec![Value::Prefix([198, 18, 0, 0].into(), 20)]);
    function("NAT", vec![("pool", pool), ("max_mappings", Value::Integer(FLOWS))], &[])
}

fn balancer() -> Result<Box<dyn Module>, String> {
    let backends = Value::List((1..=16u8).map(|i| Value::Address([10, 1, 0, i].into())).collect());
    let vip = Value::Prefix([203, 0, 0, 0].into(), 13);
    function("LB", vec![("vip", vip), ("backends", backends), ("max_connections", Value::Integer(FLOWS))], &[])
}

fn burn(cycles: u32, bit: Option<u32>) -> Box<dyn Module> {
    // A dependent multiplication and addition: four cycles a step.
    Box::new(Burn { steps: cycles / 4, bit })
}

/// Takes about so many cycles a packet, then sends it by gate 0, or by a bit of its class.
struct Burn {
    steps: u32,
    bit: Option<u32>,
}

impl Module for Burn {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        for packet in batch.iter() {
            let first = packet.data().first().copied().unwrap_or(0);
            let end =
                (0..self.steps).fold(u64::from(first), |x, i| x.wrapping_mul(0x5851_f42d).wrapping_add(u64::from(i)));
            black_box(end);
        }
        if let Some(bit) = self.bit {
            cx.decide(batch, |_, packet| Verdict::Gate(class(packet) >> bit & 1));
        }
    }
}

/// Tells classes by destination port.
struct Index(Vec<u16>);

impl Module for Index {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let gates = &self.0;
        cx.decide(batch, |_, packet| Verdict::Gate(gates.get(usize::from(class(packet))).copied().unwrap_or(0)));
    }
}

/// The class that a frame's destination port says.
fn class(packet: &Packet) -> u16 {
    let port = packet.data().get(PORT_AT..).and_then(|rest| rest.first_chunk::<2>()).copied().unwrap_or_default();
    u16::from_be_bytes(port).wrapping_sub(PORT)
}
