//! NAT in cycles per packet: 64-byte packets from memory, over 10,000 and 1,000,000 flows, beside twins written
//! out by hand: the same look-up and rewriting without engine, plans and steps.
//!
//! `cargo bench -p catena-functions --bench nat [-- PACKETS]`; a row is the median and the least of many short
//! rounds, so that a busy machine shows.

use std::hint::black_box;

use catena_dataplane::attribute::Attributes;
use catena_dataplane::clock::cycles;
use catena_dataplane::module::Verdict;
use catena_dataplane::{Context, Module};
use catena_functions::config::{Args, Value};
use catena_functions::{Build, Tables, nat};
use catena_packet::random::SplitMix64;
use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, Net, Seed, checksum, ipv4, tcp};
use catena_packet::{BATCH, Batch, Depot, DepotHandle};
use catena_state::{Access, Declaration, Engine, FOREVER, FlowMap, Intent, Local, Plain, Scope, Share, Tx};

const SIZE: usize = 64;
/// Batches in a round.
const ROUND: usize = 256;
const START: u64 = 1_600_000_000_000_000_000;

/// Makes the packets of `flows` flows in turn: hosts of 16 ports each, every fourth flow TCP.
struct Source {
    frames: Vec<[u8; SIZE]>,
    next: usize,
}

impl Source {
    fn new(flows: usize, make: impl Fn(usize) -> [u8; SIZE]) -> Self {
        let mut frames: Vec<_> = (0..flows).map(make).collect();
        // Neighbours in time are no neighbours in memory.
        let mut random = SplitMix64::new(1);
        for i in (1..flows).rev() {
            frames.swap(i, random.below(i as u32 + 1) as usize);
        }
        Source { frames, next: 0 }
    }

    #[inline(always)]
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.pool().take_batch(batch, BATCH, SIZE);
        for packet in batch.iter_mut() {
            packet.data_mut().copy_from_slice(&self.frames[self.next]);
            packet.meta_mut().arrival = START;
            self.next = if self.next + 1 == self.frames.len() { 0 } else { self.next + 1 };
        }
    }
}

fn ports(flow: usize) -> [u8; 4] {
    let port = 20_000 + (flow % 16) as u16;
    [(port >> 8) as u8, port as u8, 0, 53]
}

fn upper(flow: usize, room: usize) -> (u8, Vec<u8>) {
    let mut bytes = vec![0; room];
    bytes[..4].copy_from_slice(&ports(flow));
    if flow.is_multiple_of(4) && room >= 20 {
        bytes[12..14].copy_from_slice(&[0x50, 0x10]);
        return (proto::TCP, bytes);
    }
    bytes[4..6].copy_from_slice(&(room as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&[0x12, 0x34]);
    (proto::UDP, bytes)
}

fn frame4(flow: usize) -> [u8; SIZE] {
    let mut frame = [0; SIZE];
    frame[12..14].copy_from_slice(&[8, 0]);
    let mut packet = ipv4::Packet::new_unchecked(&mut frame[14..]);
    let (number, bytes) = upper(flow, SIZE - 34);
    packet.set_header_len(20);
    packet.set_total_len(SIZE as u16 - 14);
    packet.set_ttl(64);
    packet.set_proto(number);
    packet.set_src((0x0a00_0000 + (flow / 16) as u32).into());
    packet.set_dst([192, 0, 2, 1].into());
    packet.payload_mut().copy_from_slice(&bytes);
    packet.fill_checksum();
    frame
}

/// One that no router fragments.
fn atomic4(flow: usize) -> [u8; SIZE] {
    let mut frame = frame4(flow);
    let mut packet = ipv4::Packet::new_unchecked(&mut frame[14..]);
    packet.set_fragment(true, false, 0);
    packet.fill_checksum();
    frame
}

fn frame6(flow: usize) -> [u8; SIZE] {
    let mut frame = [0; SIZE];
    frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
    let (number, bytes) = upper(flow, SIZE - 54);
    frame[18..22].copy_from_slice(&[0, bytes.len() as u8, number, 64]);
    frame[22..26].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    frame[34..38].copy_from_slice(&((flow / 16) as u32).to_be_bytes());
    frame[38..42].copy_from_slice(&[0x20, 1, 0x0d, 0xb9]);
    frame[54..].copy_from_slice(&bytes);
    frame
}

/// Run rounds and print the row: median and least cycles per packet, without the first pass over all flows.
fn measure(
    name: &str,
    source: &mut Source,
    cx: &mut Context,
    packets: usize,
    mut work: impl FnMut(&mut Context, &mut Batch),
) {
    let mut batch = Batch::new();
    let mut rounds = Vec::new();
    let first = source.frames.len().div_ceil(ROUND * BATCH) + 1;
    for round in 0..first + packets.div_ceil(ROUND * BATCH) {
        let start = cycles();
        for _ in 0..ROUND {
            source.pull(cx, &mut batch);
            work(cx, &mut batch);
            assert_eq!(batch.len(), BATCH, "nothing is dropped");
            cx.pool().put_batch(&mut batch);
        }
        if round >= first {
            rounds.push((cycles() - start) as f64 / (ROUND * BATCH) as f64);
        }
    }
    rounds.sort_by(f64::total_cmp);
    println!("{name:<40} {:>7.1} {:>7.1}", rounds[rounds.len() / 2], rounds[0]);
}

fn nat(pool: &str, length: u8) -> Box<dyn Module> {
    let address = pool.parse().expect("an address");
    let args = Args::default().with("pool", Value::Prefix(address, length)).with("block", Value::Integer(16));
    let mut attributes = Attributes::default();
    let mut build = Build {
        instance: "it",
        seed: Seed::from_number(1),
        share: Share::WHOLE,
        team: None,
        attributes: &mut attributes,
        taken: &[],
        tables: &Tables::default(),
    };
    (nat::DESCRIPTOR.build)(&args, &mut build).expect("the arguments are good")
}

const MAPPINGS: Declaration = Declaration::flow_map("mappings", "as NAT's", Scope::SourceEndpoint, Access::ReadWrite);

/// What a mapping is, written by hand.
#[derive(Clone, Copy, Default, Plain)]
struct Mapping {
    last: u64,
    address: u32,
    port: u16,
    address_sum: u16,
    upper_sum: u16,
    state: u8,
}

/// The rest of a NAT, written by hand: time, timeouts, counters, ports in turn.
struct Twin {
    timeouts: [u64; 8],
    pool: (u32, u32),
    now: u64,
    filter: bool,
    next: u32,
    packets: u64,
    tcp_packets: u64,
}

impl Twin {
    fn new() -> Self {
        let pool = (0xc633_6400, 0xc633_64ff);
        Twin {
            timeouts: [300_000_000_000; 8],
            pool,
            now: 0,
            filter: black_box(false),
            next: 0,
            packets: 0,
            tcp_packets: 0,
        }
    }

    fn map(&mut self, key: u64, now: u64) -> Mapping {
        let (src, sport) = ((key >> 32) as u32, (key >> 8) as u16);
        let (address, port) = (0xc633_6400 + self.next / 64_000, 1024 + (self.next % 64_000) as u16);
        self.next += 1;
        let change =
            |old: u32, new: u32| checksum::add(!checksum::sum(&old.to_be_bytes()), checksum::sum(&new.to_be_bytes()));
        let address_sum = change(src, address);
        let upper_sum = checksum::add(address_sum, checksum::add(!sport, port));
        Mapping { last: now, address, port, address_sum, upper_sum, state: 0 }
    }

    #[inline(always)]
    fn rewrite(&mut self, packet: &mut catena_packet::Packet, mapping: &mut Mapping, now: u64) {
        let layers = packet.layers();
        self.now = self.now.max(now);
        let now = self.now;
        assert!(now - mapping.last < self.timeouts[usize::from(mapping.state & 7)]);
        mapping.last = now;
        let (l3, l4) = (usize::from(layers.l3), usize::from(layers.l4));
        let (before, upper) = packet.data_mut().split_at_mut(l4);
        let header = before[l3..].first_chunk_mut::<20>().expect("a whole header");
        let upper = upper.first_chunk_mut::<18>().expect("packets of 64 bytes");
        let dst = u32::from_be_bytes([header[16], header[17], header[18], header[19]]);
        assert!(dst < self.pool.0 || dst > self.pool.1, "no hairpins here");
        let is_tcp = layers.proto == proto::TCP;
        if tcp::Packet::new_unchecked(&*upper).flags() & 7 & u8::from(is_tcp).wrapping_neg() != 0 {
            mapping.state = 4;
        }
        let place = 6 + 10 * usize::from(is_tcp);
        let old = u16::from_be_bytes([upper[place], upper[place + 1]]);
        let mut new = !checksum::add(!old, mapping.upper_sum);
        // By selection, as in NAT: mixed traffic mispredicts a branch.
        if !is_tcp & ((old == 0) | (new == 0)) {
            new = if old == 0 { 0 } else { 0xffff };
        }
        upper[place..place + 2].copy_from_slice(&new.to_be_bytes());
        upper[..2].copy_from_slice(&mapping.port.to_be_bytes());
        let old = u16::from_be_bytes([header[10], header[11]]);
        header[10..12].copy_from_slice(&(!checksum::add(!old, mapping.address_sum)).to_be_bytes());
        header[12..16].copy_from_slice(&mapping.address.to_be_bytes());
        self.packets += 1;
        if is_tcp {
            self.tcp_packets += 1;
        }
    }
}

/// The packet's own time where it has one, else the worker's, as for NAT.
#[inline(always)]
fn time(packet: &catena_packet::Packet, now: u64) -> u64 {
    if packet.meta().arrival == 0 { now } else { packet.meta().arrival }
}

#[inline(always)]
fn read_key(packet: &catena_packet::Packet) -> u64 {
    let (layers, frame) = (packet.layers(), packet.data());
    const WHOLE: u8 = Layers::PORTS | Layers::FRAGMENT | Layers::AUTHENTICATED;
    let plain = (layers.net == Net::Ipv4)
        & (layers.flags & WHOLE == Layers::PORTS)
        & ((layers.proto == proto::TCP) | (layers.proto == proto::UDP));
    assert!(plain);
    let (l3, l4) = (usize::from(layers.l3), usize::from(layers.l4));
    let src = u32::from_be_bytes([frame[l3 + 12], frame[l3 + 13], frame[l3 + 14], frame[l3 + 15]]);
    let sport = u16::from_be_bytes([frame[l4], frame[l4 + 1]]);
    u64::from(src) << 32 | u64::from(sport) << 8 | u64::from(layers.proto)
}

/// A table as one would write it for a benchmark: open addressing, never full, never growing.
struct Table {
    seed: Seed,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Slot {
    key: u64,
    mapping: Mapping,
}

fn main() {
    let packets = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(8_000_000);
    let depot: DepotHandle = Depot::map(4096, 0).expect("there is memory for packets");
    let cx = &mut Context::new(&depot, 1);
    cx.set_now(START);
    println!("{:<40} {:>7} {:>7}   cycles per packet, 64 bytes", "", "median", "least");
    for flows in [10_000, 1_000_000] {
        let source = &mut Source::new(flows, frame4);
        measure(&format!("{flows} flows: source -> sink"), source, cx, packets, |_, _| {});
        measure(&format!("{flows} flows: source -> parse -> sink"), source, cx, packets, |cx, batch| {
            cx.parse(batch);
        });
        let mut module = nat("198.51.100.0", 24);
        measure(&format!("{flows} flows: NAT"), source, cx, packets, |cx, batch| module.process(cx, batch));

        let atomic = &mut Source::new(flows, atomic4);
        let mut module = nat("198.51.100.0", 24);
        measure(&format!("{flows} flows: NAT, DF"), atomic, cx, packets, |cx, batch| module.process(cx, batch));

        let mut twin = Twin::new();
        let mut map = Local::new(Seed::from_number(1), Share::WHOLE)
            .flow_map::<u64, Mapping>(&MAPPINGS, 1 << 21)
            .expect("there is memory");
        measure(&format!("{flows} flows: twin, same map"), source, cx, packets, |cx, batch| {
            cx.parse(batch);
            let (now, gate) = (cx.now(), cx.gate());
            assert!(gate == 0 && !twin.filter, "from inside, and every mapping open to all");
            let mut tx = Tx::new(0, 0, 0);
            let mut tickets = [map.want(&mut tx, 0, Intent::Change); BATCH];
            for (packet, ticket) in batch.iter().zip(&mut tickets) {
                *ticket = map.want(&mut tx, read_key(packet), Intent::Change);
            }
            tickets.iter_mut().for_each(|ticket| map.warm(ticket));
            cx.decide(batch, |i, packet| {
                let now = time(packet, now);
                if map.get(&mut tx, &tickets[i]).is_none() {
                    let mapping = twin.map(read_key(packet), now);
                    map.insert(&mut tx, &tickets[i], mapping, FOREVER).expect("the map is large enough");
                }
                if let Some(mapping) = map.get(&mut tx, &tickets[i]) {
                    twin.rewrite(packet, mapping, now);
                }
                Verdict::Gate(0)
            });
        });

        let mut twin = Twin::new();
        let slots = vec![Slot::default(); (2 * flows).next_power_of_two()];
        let mut table = Table { seed: Seed::from_number(1), slots };
        let mask = table.slots.len() - 1;
        measure(&format!("{flows} flows: twin, plain table"), source, cx, packets, |cx, batch| {
            cx.parse(batch);
            let (now, gate) = (cx.now(), cx.gate());
            assert!(gate == 0 && !twin.filter, "from inside, and every mapping open to all");
            let mut asked = [(0u64, 0usize); BATCH];
            for (packet, asked) in batch.iter().zip(&mut asked) {
                let key = read_key(packet);
                let place = table.seed.hash2([key, 0]) as usize & mask;
                catena_packet::buffer::prefetch(&raw const table.slots[place]);
                *asked = (key, place);
            }
            cx.decide(batch, |i, packet| {
                let (key, mut place) = asked[i];
                let now = time(packet, now);
                while table.slots[place].key != key {
                    if table.slots[place].key == 0 {
                        table.slots[place] = Slot { key, mapping: twin.map(key, now) };
                        break;
                    }
                    place = (place + 1) & mask;
                }
                twin.rewrite(packet, &mut table.slots[place].mapping, now);
                Verdict::Gate(0)
            });
        });
        black_box((twin.packets, twin.tcp_packets));

        let source = &mut Source::new(flows, frame6);
        let mut module = nat("2001:db8::", 56);
        measure(&format!("{flows} flows: NAT, IPv6"), source, cx, packets, |cx, batch| module.process(cx, batch));
    }
}
