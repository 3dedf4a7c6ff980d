//! What a refusal costs beside a translation, optimised: a flood of new flows must not take the core from others.

use catena_dataplane::clock::cycles;
use catena_dataplane::{Context, Module};
use catena_packet::{BATCH, Batch, Depot};
use catena_state::Share;

use super::*;
use crate::Value;
use crate::testing::{START, build, craft};

/// Batches in a round, and rounds of each kind.
const ROUND: usize = 64;
const ROUNDS: usize = 400;

/// Packets of many flows: UDP from hosts of 10.0.0.0/24, or to as many destinations from one port, 64 bytes.
struct Flood {
    frame: Vec<u8>,
    flows: u32,
    next: u32,
    is_scan: bool,
    /// The time of the next packet, and the time between packets, in ns.
    now: u64,
    gap: u64,
}

impl Flood {
    fn new(flows: u32, is_scan: bool) -> Self {
        Flood {
            frame: craft("udp 10.0.0.0:0 > 192.0.2.9:53 nosum len 22"),
            flows,
            next: 0,
            is_scan,
            now: START,
            gap: 0,
        }
    }

    /// Send a round of packets; returns cycles a packet in the module.
    fn round(&mut self, module: &mut dyn Module, cx: &mut Context) -> f64 {
        let spent: u64 = (0..ROUND).map(|_| self.send(module, cx, BATCH)).sum();
        spent as f64 / (ROUND * BATCH) as f64
    }

    /// Send a batch of packets; returns cycles in the module.
    fn send(&mut self, module: &mut dyn Module, cx: &mut Context, count: usize) -> u64 {
        let mut batch = Batch::new();
        cx.pool().take_batch(&mut batch, count, self.frame.len());
        for packet in batch.iter_mut() {
            // An odd step visits all flows in an order that no cache foresees.
            self.next = (self.next + 0x9e37_79b1 % self.flows) % self.flows;
            let (host, port) = if self.is_scan { (33, 36) } else { (29, 34) };
            self.frame[host] = self.next as u8;
            self.frame[port..port + 2].copy_from_slice(&((self.next >> 8) as u16).to_be_bytes());
            packet.data_mut().copy_from_slice(&self.frame);
            packet.meta_mut().arrival = self.now;
            self.now += self.gap;
        }
        let start = cycles();
        module.process(cx, &mut batch);
        let spent = cycles() - start;
        cx.pool().put_batch(&mut batch);
        spent
    }
}

/// Return the median.
fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// Fill a NAT with known flows, then flood it with others; returns cycles a packet of both, by turns, and of others
/// that come a millisecond after each other, so that each pays for looking for what is over.
fn costs(args: &Args, is_scan: bool) -> [f64; 3] {
    let depot = Depot::map(1024, 0).expect("there is memory for a thousand packets");
    let cx = &mut Context::new(&depot, 1);
    let mut module = build(&DESCRIPTOR, args, Share::WHOLE).unwrap_or_else(|error| panic!("{error}"));
    // 256 hosts; an odd number of ports each makes the step meet every flow.
    let (mut known, mut unknown) = (Flood::new(256 * 125, false), Flood::new(256 * 16_001, is_scan));
    (0..2 * 125 * 256 / (ROUND * BATCH)).for_each(|_| _ = known.round(&mut *module, cx));
    // What room there still is goes to the first of the flood.
    (0..100).for_each(|_| _ = unknown.round(&mut *module, cx));
    let rounds: Vec<[f64; 2]> =
        (0..ROUNDS).map(|_| [known.round(&mut *module, cx), unknown.round(&mut *module, cx)]).collect();
    unknown.gap = 1_000_000;
    let slow: Vec<f64> = (0..20).map(|_| unknown.round(&mut *module, cx)).collect();
    let [known, refused] = [0, 1].map(|kind| median(rounds.iter().map(|round| round[kind]).collect()));
    // Ten minutes later all is over: what the first of them pays for taking back 512 entries.
    unknown.now += 600_000_000_000;
    println!("the first when all is over: {} cycles", unknown.send(&mut *module, cx, 1));
    [known, refused, median(slow)]
}

#[test]
fn a_refusal_costs_at_most_twice_a_translation() {
    let args = Args::default().with("pool", Value::Prefix("198.51.100.1".parse().unwrap(), 32));
    let limited = args.clone().with("max_per_host", Value::Integer(125));
    let full = args.clone().with("max_mappings", Value::Integer(32_000));
    let filtered = args.clone().with("filtering", Value::Word("address_port".into()));
    for (name, args, is_scan) in [
        ("no port left", args, false),
        ("host has as many ports as it may", limited, false),
        ("as many mappings as there may be", full, false),
        ("host has as many sessions as it may", filtered, true),
    ] {
        let [known, refused, slow] = costs(&args, is_scan);
        println!("{name}: {refused:.0} cycles a packet refused, {known:.0} translated; refused slowly: {slow:.0}");
        // 512 entries are looked at for it, each for less than a packet.
        assert!(slow <= 512.0 * known, "{name}: {slow:.0} cycles a packet refused slowly, {known:.0} translated");
        assert!(refused <= 2.0 * known, "{name}: {refused:.0} cycles a packet refused, {known:.0} translated");
    }
}
