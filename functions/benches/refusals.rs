//! What a refused packet costs beside a packet of a known flow, in cycles per packet within the function: a flood of
//! new flows must not take the core from the others.
//!
//! `cargo bench -p catena-functions --bench refusals`; exits with 1 if a row misses its bar in each of three tries.
//!
//! Rounds of known and of refused packets take turns, so that whatever else the machine does meets both; a figure is
//! the median of its rounds. Packets come at ten million a second of their own time. `alone` is a refusal one
//! millisecond after the last, which pays for looking for entries that are over; `all over` is the first refusal after
//! all entries are over, once. With `-- known` only known packets are sent, for a profiler that counts instructions.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use catena_dataplane::attribute::Attributes;
use catena_dataplane::port::Sink;
use catena_dataplane::worker::pin_this_thread;
use catena_dataplane::{Context, Graph, Inlet, NodeId};
use catena_functions::lb::Balancer;
use catena_functions::{Args, Build, Descriptor, Runner, Tables, Value, lb, limiter, nat};
use catena_packet::random::SplitMix64;
use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{ACK, SYN};
use catena_packet::wire::{Seed, ipv4};
use catena_packet::{BATCH, Batch, Depot};
use catena_state::{Local, Share};

/// Batches in a round, rounds of each kind in a try, and tries.
const ROUND: u32 = 16;
const ROUNDS: usize = 401;
const TRIES: usize = 3;
/// A refusal in a flood costs at most this many known packets.
const BAR: f64 = 2.0;
/// A refusal alone costs at most as many: it looks at no more than 512 entries, each for less than a packet.
const BAR_ALONE: f64 = 512.0;
const START: u64 = 1_600_000_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;
/// After ten hours each entry of each function is over.
const TEN_HOURS: u64 = 36_000_000 * MILLISECOND;

const VIP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const SERVERS: [Ipv4Addr; 3] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];

type Frame = [u8; 64];

/// Numbered flows, each by a packet of it. Numbers from `count` on are flows too, of others.
struct Flows {
    count: u32,
    frame: fn(u32) -> Frame,
}

/// A function, those it knows, and those it refuses.
struct Case {
    name: &'static str,
    /// The drop reason of each refused packet.
    reason: &'static str,
    descriptor: &'static Descriptor,
    args: Args,
    known: Flows,
    refused: Flows,
    /// Makes the known flows known.
    open: fn(&mut Line, &Flows),
    /// What happens once they are.
    then: fn(&mut Line),
}

/// A function between its gates.
struct Line {
    graph: Graph,
    function: NodeId,
    cx: Context,
    now: u64,
    /// The time between packets, in ns.
    gap: u64,
}

/// What came of a round.
struct Round {
    /// In the function, in cycles.
    cycles: f64,
    packets: u64,
    dropped: u64,
    /// Of those dropped, how many for the reason that was asked for.
    refused: u64,
}

impl Line {
    fn new(descriptor: &Descriptor, args: &Args) -> Self {
        let depot = Depot::map(1024, 0).expect("there is memory for a thousand packets");
        let mut attributes = Attributes::default();
        let seed = Seed::from_number(1);
        let mut build = Build {
            instance: "it",
            seed,
            share: Share::WHOLE,
            team: None,
            attributes: &mut attributes,
            taken: &[],
            tables: &Tables::default(),
        };
        let module = (descriptor.build)(args, &mut build).unwrap_or_else(|error| panic!("{error}"));
        let mut graph = Graph::new();
        let function = graph.add("function", module);
        for gate in [0, 1] {
            let sink = graph.add("sink", Box::new(Sink));
            graph.connect(function, gate, sink);
        }
        Line { graph, function, cx: Context::new(&depot, 1), now: START, gap: 100 }
    }

    /// Send a batch into a gate.
    fn send(&mut self, gate: u16, frames: impl Iterator<Item = Frame>) {
        let mut batch = Batch::new();
        for frame in frames {
            let mut packet = self.cx.pool().take(frame.len()).expect("there are buffers for a batch");
            packet.data_mut().copy_from_slice(&frame);
            packet.meta_mut().arrival = self.now;
            self.cx.set_now(self.now);
            self.now += self.gap;
            batch.push(packet);
        }
        self.graph.run(&mut self.cx, Inlet { node: self.function, gate }, &mut batch);
    }

    /// Send each of some flows, one packet each, in order.
    fn send_each(&mut self, gate: u16, numbers: impl Iterator<Item = u32>, frame: impl Fn(u32) -> Frame) {
        let mut numbers = numbers.peekable();
        while numbers.peek().is_some() {
            self.send(gate, numbers.by_ref().take(BATCH).map(&frame));
        }
    }

    /// Send a round of batches and look what came of it.
    fn round(&mut self, reason: &str, batches: u32, mut frame: impl FnMut(u32) -> Frame) -> Round {
        let before = self.figures(reason);
        for first in (0..batches * BATCH as u32).step_by(BATCH) {
            self.send(0, (first..first + BATCH as u32).map(&mut frame));
        }
        let after = self.figures(reason);
        let [cycles, packets, dropped, refused] = [0, 1, 2, 3].map(|i| after[i] - before[i]);
        Round { cycles: cycles as f64 / packets as f64, packets, dropped, refused }
    }

    /// Return the function's cycles, packets, drops, and drops for a reason.
    fn figures(&self, reason: &str) -> [u64; 4] {
        let nodes = self.graph.nodes();
        let (_, info) = nodes.iter().find(|(id, _)| *id == self.function).expect("the function is in the graph");
        let counters = &info.counters;
        let refused = counters.drops.iter().filter(|(drop, _)| drop.text(info.reasons) == reason);
        let refused = refused.map(|(_, count)| count).sum();
        [counters.cycles.get(), counters.input.packets.get(), counters.drops.total(), refused]
    }
}

/// Cycles per packet: known, refused, refused alone, the first refused when all is over.
struct Costs {
    known: f64,
    refused: f64,
    alone: f64,
    over: f64,
}

impl Costs {
    fn is_held(&self) -> bool {
        self.refused <= BAR * self.known && self.alone <= BAR_ALONE * self.known
    }
}

impl Case {
    /// Return a line that knows the known flows and has no room for others.
    fn full(&self) -> Line {
        let mut line = Line::new(self.descriptor, &self.args);
        (self.open)(&mut line, &self.known);
        (self.then)(&mut line);
        // What room there still is goes to others than those that are refused afterwards.
        let mut next = self.refused.count;
        let mut full = 0;
        while full < 64 {
            let round = line.round(self.reason, ROUND, |i| (self.refused.frame)(next + i));
            next += ROUND * BATCH as u32;
            full = if round.refused == round.packets { full + 1 } else { 0 };
            assert!(
                next < self.refused.count + (1 << 22),
                "{}: of {} packets {} are dropped, {} for the reason named",
                self.name,
                round.packets,
                round.dropped,
                round.refused
            );
        }
        line
    }

    fn measure(&self) -> Costs {
        let mut line = self.full();
        let mut random = SplitMix64::new(1);
        let mut known = |line: &mut Line| {
            let round = line.round(self.reason, ROUND, |_| (self.known.frame)(random.below(self.known.count)));
            assert_eq!(round.dropped, 0, "{}: known packets pass", self.name);
            round.cycles
        };
        let mut random = SplitMix64::new(2);
        let mut refused = |line: &mut Line, batches: u32, all: bool| {
            let round = line.round(self.reason, batches, |_| (self.refused.frame)(random.below(self.refused.count)));
            assert!(!all || round.refused == round.packets, "{}: others are refused", self.name);
            round.cycles
        };
        let rounds: Vec<_> = (0..ROUNDS).map(|_| [known(&mut line), refused(&mut line, ROUND, true)]).collect();
        let [known, flood] = [0, 1].map(|kind| median(rounds.iter().map(|round| round[kind]).collect()));
        line.gap = MILLISECOND;
        let alone = median((0..5).map(|_| refused(&mut line, ROUND, true)).collect());
        line.now += TEN_HOURS;
        line.cx.set_now(line.now);
        let before = line.figures(self.reason)[0];
        line.send(0, std::iter::once((self.refused.frame)(0)));
        let over = (line.figures(self.reason)[0] - before) as f64;
        Costs { known, refused: flood, alone, over }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Make a packet of 64 bytes; TCP if there are flags, else UDP without a checksum.
fn frame(src: (Ipv4Addr, u16), dst: (Ipv4Addr, u16), flags: u8) -> Frame {
    let mut frame = [0; 64];
    frame[12..14].copy_from_slice(&[8, 0]);
    let mut packet = ipv4::Packet::new_unchecked(&mut frame[14..]);
    packet.set_header_len(20);
    packet.set_total_len(50);
    packet.set_ttl(64);
    packet.set_proto(if flags == 0 { proto::UDP } else { proto::TCP });
    packet.set_src(src.0);
    packet.set_dst(dst.0);
    packet.fill_checksum();
    frame[34..36].copy_from_slice(&src.1.to_be_bytes());
    frame[36..38].copy_from_slice(&dst.1.to_be_bytes());
    if flags == 0 {
        frame[39] = 30;
    } else {
        (frame[46], frame[47]) = (0x50, flags);
    }
    frame
}

/// Return host `number` of 10.0.0.0/24, and a port: neighbours in number are neighbours' first ports.
fn inside(number: u32, first: u16) -> (Ipv4Addr, u16) {
    (Ipv4Addr::new(10, 0, 0, number as u8), first + (number >> 8) as u16)
}

fn address(net: u8, number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(net) << 24 | number & 0xff_ffff)
}

fn nats() -> Vec<Case> {
    let args = Args::default().with("pool", Value::Prefix([198, 51, 100, 1].into(), 32));
    // One host and port to ever more destinations.
    let scan: fn(u32) -> Frame = |n| {
        let dst = Ipv4Addr::new(192, 0, 3, n as u8);
        frame(inside(0, 1), (dst, 1 + (n >> 8) as u16), 0)
    };
    let flood: fn(u32) -> Frame = |n| frame(inside(n, 1000), (Ipv4Addr::new(192, 0, 2, 9), 53), 0);
    // Each of another host: a block of ports each, until there is none.
    let others: fn(u32) -> Frame = |n| frame((address(11, n), 4000), (Ipv4Addr::new(192, 0, 2, 9), 53), 0);
    let limited = args.clone().with("max_per_host", Value::Integer(125));
    let full = args.clone().with("max_mappings", Value::Integer(32_000));
    let filtered = args.clone().with("filtering", Value::Word("address_port".into()));
    let case = |name, reason, args, frame_of| Case {
        name,
        reason,
        descriptor: &nat::DESCRIPTOR,
        args,
        // 125 ports of each of 256 hosts.
        known: Flows { count: 256 * 125, frame: |n| frame(inside(n, 1), (Ipv4Addr::new(192, 0, 2, 9), 53), 0) },
        refused: Flows { count: 256 * 16_000, frame: frame_of },
        open: |line, known| line.send_each(0, 0..known.count, known.frame),
        then: |_| {},
    };
    vec![
        case("NAT, no port in the pool", "no port left", args, others),
        case("NAT, a host's limit", "host has as many ports as it may", limited, flood),
        case("NAT, mappings full", "as many mappings as there may be", full, flood),
        case("NAT, a host's sessions", "host has as many sessions as it may", filtered, scan),
    ]
}

/// Open a connection for each flow, up to the first data.
fn connect(line: &mut Line, known: &Flows) {
    let client = |n| (address(7, n), 4000);
    line.send_each(0, 0..known.count, |n| frame(client(n), (VIP, 80), SYN));
    // Only the server that was chosen answers for the VIP; of the others nothing is asked.
    for server in SERVERS {
        line.send_each(1, 0..known.count, |n| frame((server, 8080), client(n), SYN | ACK));
    }
    line.send_each(0, 0..known.count, known.frame);
    for server in SERVERS {
        line.send_each(1, 0..known.count, |n| frame((server, 8080), client(n), ACK));
    }
}

fn lbs() -> Vec<Case> {
    let endpoint = |ip: Ipv4Addr, port| Value::Endpoint((ip, port).into());
    let backends = Value::List(SERVERS.map(|ip| endpoint(ip, 8080)).into());
    let case = |name, reason, vips: u8, most: i64, then| {
        let others = (1..vips).map(|n| endpoint(Ipv4Addr::new(192, 0, 3, n), 80));
        let vips = Value::List(others.chain([endpoint(VIP, 80)]).collect());
        let args = Args::default().with("vip", vips).with("backends", backends.clone());
        Case {
            name,
            reason,
            descriptor: &lb::DESCRIPTOR,
            args: args.with("max_connections", Value::Integer(most)),
            known: Flows { count: 1000, frame: |n| frame((address(7, n), 4000), (VIP, 80), ACK) },
            refused: Flows { count: 1 << 23, frame: |n| frame((address(11, n), 4000), (VIP, 80), SYN) },
            open: connect,
            then,
        }
    };
    let all_down: fn(&mut Line) = |line| {
        let runner: Option<&mut Runner<Local, Balancer<Local>>> = line.graph.module_mut(line.function);
        let runner = runner.expect("the balancer runs on local state");
        runner.command(line.now, |balancer, tx| {
            (1..=3).for_each(|number| assert!(balancer.set_backend(tx, number, false)));
        });
    };
    vec![
        case("LB, table full", "connection table full", 1, 1000, |_| {}),
        case("LB of 64 VIPs, table full", "connection table full", 64, 1000, |_| {}),
        case("LB, no backend up", "no backend up", 1, 2000, all_down),
    ]
}

fn limiters() -> Vec<Case> {
    let args = Args::default()
        .with("rate", Value::PacketRate(1))
        .with("burst", Value::Integer(1_000_000))
        .with("per", Value::Word("src".into()))
        .with("max_keys", Value::Integer(1000));
    vec![Case {
        name: "Limiter, all keys taken",
        reason: "no room for another key",
        descriptor: &limiter::DESCRIPTOR,
        args,
        known: Flows { count: 1000, frame: |n| frame((address(7, n), 4000), (VIP, 53), 0) },
        refused: Flows { count: 1 << 23, frame: |n| frame((address(11, n), 4000), (VIP, 53), 0) },
        // Each takes a minute's rate, so that none is forgotten.
        open: |line, known| (0..60).for_each(|_| line.send_each(0, 0..known.count, known.frame)),
        then: |_| {},
    }]
}

fn main() -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    if !pin_this_thread(cores - 1) {
        eprintln!("not pinned to a core");
    }
    let cases: Vec<Case> = nats().into_iter().chain(lbs()).chain(limiters()).collect();
    if std::env::args().any(|argument| argument == "known") {
        for case in cases {
            let (mut line, mut random) = (case.full(), SplitMix64::new(1));
            let round = line.round(case.reason, 400, |_| (case.known.frame)(random.below(case.known.count)));
            println!("{}: {} known packets, {} dropped", case.name, round.packets, round.dropped);
        }
        return ExitCode::SUCCESS;
    }
    println!(
        "{:<28} {:>6} {:>8} {:>6} {:>5} {:>5} {:>8} {:>9}   cycles per packet",
        "", "known", "refused", "ratio", "bar", "held", "alone", "all over"
    );
    let mut held = true;
    for case in cases {
        let mut costs = case.measure();
        for _ in 1..TRIES {
            if costs.is_held() {
                break;
            }
            let again = case.measure();
            if again.is_held() || again.refused / again.known < costs.refused / costs.known {
                costs = again;
            }
        }
        let (Costs { known, refused, alone, over }, is_held) = (&costs, costs.is_held());
        let (ratio, word) = (refused / known, if is_held { "yes" } else { "no" });
        println!(
            "{:<28} {known:>6.0} {refused:>8.0} {ratio:>6.2} {BAR:>5.1} {word:>5} {alone:>8.0} {over:>9.0}",
            case.name
        );
        held &= is_held;
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
