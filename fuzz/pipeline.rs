//! Arbitrary packets through ACL, NAT, LB and Monitor, in both directions and in the order the bytes say: every
//! packet comes out or is counted as dropped, what comes out parses, and every buffer comes home.
//!
//! The bytes are steps. A step is a byte that says what to do, a length, and as many bytes to do it with:
//!
//! | bits | of the first byte |
//! | --- | --- |
//! | 0 | from inside (gate 0) or from outside (gate 1) |
//! | 1–3 | the packet, or that time passes; see [`Step`] |
//! | 4 | the packet waits for the next, to go in one batch |

use catena_dataplane::attribute::Attributes;
use catena_dataplane::{Context, Graph, Inlet, Module, NodeId};
use catena_functions::{Args, Build, Tables, Value, registry};
use catena_packet::wire::{self, Net, Seed};
use catena_packet::{Batch, Depot, DepotHandle};
use catena_state::Share;

use super::frames;

/// Most steps of one input.
const MOST_STEPS: usize = 256;
const SECOND: u64 = 1_000_000_000;
/// When the packets begin: some time in 2020.
const START: u64 = 1_600_000_000 * SECOND;

/// The virtual address that the LB answers for.
const VIP_V4: [u8; 4] = [192, 0, 2, 1];
const VIP_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Where packets end; keeps the last.
#[derive(Default)]
struct Exit {
    count: u64,
    last: Vec<u8>,
}

impl Module for Exit {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        for packet in batch.iter() {
            let layers = wire::parse(packet.data()).expect("what comes out parses");
            assert_eq!(layers, packet.layers(), "the layers on record are those of the bytes");
        }
        self.count += batch.len() as u64;
        if let Some(packet) = batch.iter().last() {
            self.last.clear();
            self.last.extend_from_slice(packet.data());
        }
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

/// ACL → NAT → LB → Monitor between two exits, all with little room so that every limit is met.
struct Chain {
    graph: Graph,
    cx: Context,
    depot: DepotHandle,
    /// Where packets come in, by gate.
    ends: [Inlet; 2],
    exits: [NodeId; 2],
    batch: Batch,
    sent: u64,
    now: u64,
}

fn texts(values: &[&str]) -> Value {
    Value::List(values.iter().map(|text| Value::Text((*text).to_owned())).collect())
}

fn address(text: &str) -> Value {
    Value::Address(text.parse().expect("an address"))
}

fn endpoint(text: &str) -> Value {
    Value::Endpoint(text.parse().expect("an endpoint"))
}

fn functions() -> [(&'static str, Args); 4] {
    [
        (
            "ACL",
            Args::default().with(
                "rules",
                texts(&["deny udp from any port 0-99", "permit to 192.0.2.0/24", "deny 200", "permit any"]),
            ),
        ),
        (
            "NAT",
            Args::default()
                .with("pool", Value::List(vec![address("198.51.100.1"), address("2001:db8:ff::1")]))
                .with("ports", Value::Range(1024, 1055))
                .with("block", Value::Integer(4))
                .with("max_mappings", Value::Integer(16))
                .with("max_per_host", Value::Integer(8))
                .with("filtering", Value::Word("address_port".to_owned())),
        ),
        (
            "LB",
            Args::default()
                .with(
                    "vip",
                    Value::List(vec![
                        address("192.0.2.1"),
                        Value::Prefix("2001:db8:2::".parse().expect("an address"), 64),
                    ]),
                )
                .with(
                    "backends",
                    Value::List(vec![address("203.0.113.1"), endpoint("203.0.113.2:8080"), address("2001:db8:3::1")]),
                )
                .with("max_connections", Value::Integer(8)),
        ),
        ("Monitor", Args::default().with("max_flows", Value::Integer(8))),
    ]
}

impl Chain {
    fn new() -> Self {
        let depot = Depot::map(128, 8).expect("there is memory for a few packets");
        let cx = Context::new(&depot, 1);
        let mut graph = Graph::new();
        let mut attributes = Attributes::default();
        let modules = functions().map(|(name, args)| {
            let function = registry::find(name).expect("the library has it");
            let mut build = Build {
                instance: "it",
                seed: Seed::from_number(1),
                share: Share::WHOLE,
                team: None,
                attributes: &mut attributes,
                taken: &[],
                tables: &Tables::default(),
            };
            let module = (function.build)(&args, &mut build).unwrap_or_else(|error| panic!("{name}: {error}"));
            graph.add(name, module)
        });
        let exits = [(); 2].map(|()| graph.add("exit", Box::<Exit>::default()));
        for pair in modules.windows(2) {
            graph.connect(pair[0], 0, Inlet { node: pair[1], gate: 0 });
            graph.connect(pair[1], 1, Inlet { node: pair[0], gate: 1 });
        }
        let [first, .., last] = modules;
        graph.connect(last, 0, exits[0]);
        graph.connect(first, 1, exits[1]);
        let ends = [Inlet { node: first, gate: 0 }, Inlet { node: last, gate: 1 }];
        Chain { graph, cx, depot, ends, exits, batch: Batch::new(), sent: 0, now: START }
    }

    /// The last packet that left on a side.
    fn last(&mut self, side: usize) -> Vec<u8> {
        self.graph.module_mut::<Exit>(self.exits[side]).expect("an exit").last.clone()
    }

    fn add(&mut self, frame: &[u8]) {
        let Some(mut packet) = self.cx.pool().take(frame.len()) else { return };
        packet.fill(frame);
        packet.meta_mut().arrival = self.now;
        self.batch.push(packet);
        self.sent += 1;
    }

    fn send(&mut self, side: usize) {
        self.cx.set_now(self.now);
        self.graph.run(&mut self.cx, self.ends[side], &mut self.batch);
        assert!(self.batch.is_empty(), "a batch is run to its end");
    }

    fn pass_time(&mut self, ns: u64) {
        self.now += ns;
        self.cx.set_now(self.now);
        self.graph.tick(&mut self.cx);
    }

    fn end(mut self) {
        self.send(0);
        let failed = self.graph.end(&mut self.cx);
        assert!(failed.is_empty(), "{failed:?}");
        let out: u64 = self.exits.iter().map(|exit| self.graph.module_mut::<Exit>(*exit).expect("an exit").count).sum();
        let dropped: u64 = self.graph.nodes().iter().map(|(_, info)| info.counters.drops.total()).sum();
        assert_eq!(self.sent, out + dropped, "packets in = packets out + drops");
        let Chain { graph, cx, batch, depot, .. } = self;
        drop((graph, cx, batch));
        assert!(depot.all_home(), "a packet buffer is lost");
    }
}

/// What bits 1 to 3 of a step's first byte choose.
enum Step {
    /// A likely frame made of the bytes.
    Likely,
    /// The same, sent to the virtual address.
    ToVip,
    /// The bytes as they are.
    Raw,
    /// The answer to the last packet that left on this side.
    Answer,
    /// An ICMP error about it.
    Complaint,
    /// The packet that was sent last, changed in one byte.
    Again,
    /// As many seconds as the bytes say.
    Time,
}

impl Step {
    fn of(bits: u8) -> Self {
        match bits & 7 {
            0 | 1 => Step::Likely,
            2 => Step::ToVip,
            3 => Step::Raw,
            4 => Step::Answer,
            5 => Step::Complaint,
            6 => Step::Again,
            _ => Step::Time,
        }
    }
}

/// Play the steps that the bytes say.
pub fn packets_are_accounted_for(bytes: &[u8]) {
    let mut chain = Chain::new();
    let mut rest = bytes;
    let mut before = Vec::new();
    for _ in 0..MOST_STEPS {
        let [what, length, tail @ ..] = rest else { break };
        let (with, tail) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = tail;
        let side = usize::from(what & 1);
        let mut frame = match Step::of(what >> 1) {
            Step::Likely => frames::frame(with),
            Step::ToVip => to_vip(frames::frame(with)),
            Step::Raw => with.to_vec(),
            // What comes in by gate 1 answers what left by gate 0, and the other way round.
            Step::Answer => change(turned(chain.last(1 - side)), with),
            Step::Complaint => change(complaint(&chain.last(1 - side)), with),
            Step::Again => change(before, with),
            Step::Time => {
                let seconds = with.iter().take(2).fold(0, |n, byte| n << 8 | u64::from(*byte));
                chain.pass_time(seconds * SECOND);
                before = Vec::new();
                continue;
            }
        };
        frame.truncate(9216);
        chain.add(&frame);
        if what & 16 == 0 || chain.batch.is_full() {
            chain.send(side);
        }
        before = frame;
    }
    chain.end();
}

/// Change the byte that the first two bytes of `with` name by the third; nothing without one.
fn change(mut frame: Vec<u8>, with: &[u8]) -> Vec<u8> {
    if let [high, low, by, ..] = with
        && !frame.is_empty()
    {
        let at = usize::from(u16::from_be_bytes([*high, *low])) % frame.len();
        frame[at] ^= by;
    }
    frame
}

fn to_vip(mut frame: Vec<u8>) -> Vec<u8> {
    if let Ok(layers) = wire::parse(&frame) {
        let l3 = usize::from(layers.l3);
        match layers.net {
            Net::Ipv4 => frame[l3 + 16..l3 + 20].copy_from_slice(&VIP_V4),
            Net::Ipv6 => frame[l3 + 24..l3 + 40].copy_from_slice(&VIP_V6),
            _ => {}
        }
    }
    frame
}

/// Swap source and destination, and ports where there are any.
fn turned(mut frame: Vec<u8>) -> Vec<u8> {
    let Ok(layers) = wire::parse(&frame) else { return frame };
    let l3 = usize::from(layers.l3);
    match layers.net {
        Net::Ipv4 => frame[l3 + 12..l3 + 20].rotate_left(4),
        Net::Ipv6 => frame[l3 + 8..l3 + 40].rotate_left(16),
        _ => return frame,
    }
    if layers.has(wire::Layers::PORTS) {
        let l4 = usize::from(layers.l4);
        frame[l4..l4 + 4].rotate_left(2);
    }
    frame
}

/// A router's "destination unreachable" about a packet (RFC 792; RFC 4443 §3.1); nothing if that is not IP.
fn complaint(about: &[u8]) -> Vec<u8> {
    let Ok(layers) = wire::parse(about) else { return Vec::new() };
    let packet = &about[usize::from(layers.l3)..];
    let quoted = &packet[..packet.len().min(128)];
    let mut frame = vec![2; 12];
    match layers.net {
        Net::Ipv4 => {
            let length = (28 + quoted.len()) as u16;
            frame.extend([8, 0, 0x45, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 9, 9]);
            frame.extend(&packet[12..16]);
            frame.extend([3, 3, 0, 0, 0, 0, 0, 0]);
        }
        Net::Ipv6 => {
            let length = (8 + quoted.len()) as u16;
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([58, 64]);
            frame.extend(VIP_V6);
            frame.extend(&packet[8..24]);
            frame.extend([1, 4, 0, 0, 0, 0, 0, 0]);
        }
        _ => return Vec::new(),
    }
    frame.extend(quoted);
    frame
}
