//! A bench for the balancer: packets in words, sums checked; its tests are below it.

mod full;
mod golden;
mod hostile;
mod late;
mod model;
mod proof;
mod properties;
mod together;
mod unproved;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use catena_dataplane::attribute::{Attributes, Slot};
use catena_dataplane::module::Verdict;
use catena_packet::wire::checksum::{self, pseudo_v4, pseudo_v6};
use catena_packet::wire::tcp::flag::{ACK, FIN, RST, SYN};
use catena_packet::wire::{FlowKey, Seed, ipv4, ipv6, ports, tcp, udp};
use catena_packet::{Depot, Packet, Pool};
use catena_state::{Delayed, Local, Share, Tx};
use proptest::prelude::*;

use super::balancer::{NO_BACKEND, NO_CONNECTION, NO_FIRST, TABLE_FULL};
use super::*;
use crate::config::Value;
use crate::function::{Function, Step};
use crate::testing::engines::{delays, on_delayed, on_engines};

const SECOND: u64 = 1_000_000_000;

/// Delayed engines that a script is run on; of long ones one is enough. Packets come one by one here, so what is found is a
/// ticket that is used in the wrong step, whatever the seed. What packets do to each other that wait together is in `late`.
const FEW: u64 = 4;

/// A balancer on whatever engine.
trait Anywhere {
    fn run(&mut self, now: u64, gate: u16, packet: &mut Packet) -> Verdict;
    fn tidy(&mut self, now: u64, idle: bool);
    fn set_backend(&mut self, number: u16, up: bool) -> bool;
    fn backend(&self, ip: IpAddr, port: Option<u16>) -> Option<u16>;
    fn backends(&self) -> Box<dyn Iterator<Item = BackendInfo> + '_>;
    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64));
}

struct On<E: Engine> {
    engine: E,
    balancer: Balancer<E>,
    /// Packets and events so far: their clocks rise from 1.
    clock: u64,
}

impl<E: Engine> On<E> {
    fn new(mut engine: E, args: &Args, slot: Slot) -> Self {
        let balancer = Balancer::new(&mut engine, Settings::read(args, Share::WHOLE).unwrap(), slot).unwrap();
        On { engine, balancer, clock: 0 }
    }

    /// Begin the operations of a packet or an event.
    fn begin(&mut self, now: u64, gate: u16) -> Tx {
        self.clock += 1;
        self.engine.begin(Tx::new(self.clock, now, gate))
    }
}

/// Wait for what a packet has asked for.
fn wait<E: Engine>(engine: &mut E, tx: &mut Tx) {
    engine.issue(tx);
    while !engine.is_ready(tx) {
        engine.poll();
    }
}

impl<E: Engine> Anywhere for On<E> {
    fn run(&mut self, now: u64, gate: u16, packet: &mut Packet) -> Verdict {
        let mut tx = self.begin(now, gate);
        let On { engine, balancer, .. } = self;
        let mut plan = balancer.prepare(&mut tx, packet);
        balancer.warm(&mut plan);
        let bytes = E::WATCHES.then(|| packet.data().to_vec());
        let verdict = loop {
            wait(engine, &mut tx);
            assert!(bytes.as_ref().is_none_or(|bytes| bytes == packet.data()), "changed before its verdict");
            engine.step(&mut tx);
            if let Step::Done(verdict) = balancer.finish(&mut tx, packet, &mut plan) {
                break verdict;
            }
        };
        engine.end(tx);
        verdict
    }

    fn tidy(&mut self, now: u64, idle: bool) {
        let mut tx = self.begin(now, 0);
        self.engine.step(&mut tx);
        self.balancer.tidy(&mut tx, idle);
        self.engine.end(tx);
    }

    fn set_backend(&mut self, number: u16, up: bool) -> bool {
        let mut tx = self.begin(1_000 * SECOND, 0);
        self.engine.step(&mut tx);
        let is_one = self.balancer.set_backend(&mut tx, number, up);
        self.engine.end(tx);
        is_one
    }

    fn backend(&self, ip: IpAddr, port: Option<u16>) -> Option<u16> {
        self.balancer.backend(ip, port)
    }

    fn backends(&self) -> Box<dyn Iterator<Item = BackendInfo> + '_> {
        Box::new(self.balancer.backends())
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        Function::<E>::gauges(&self.balancer, tell);
    }
}

/// A balancer, buffers, and a time.
struct Bench {
    balancer: Box<dyn Anywhere>,
    slot: Slot,
    pool: Pool,
    now: u64,
}

fn endpoint(text: &str) -> Value {
    text.parse().map(Value::Endpoint).or_else(|_| text.parse().map(Value::Address)).unwrap()
}

fn list(text: &str) -> Value {
    Value::List(text.split(' ').map(endpoint).collect())
}

fn args(vip: &str, backends: &str) -> Args {
    Args::default().with("vip", list(vip)).with("backends", list(backends))
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let (seed, slot) = (Seed::from_number(3), Attributes::default().slot("backend").unwrap());
        let balancer: Box<dyn Anywhere> = match delays() {
            Some(delays) => Box::new(On::new(Delayed::new(seed, Share::WHOLE, delays), args, slot)),
            None => Box::new(On::new(Local::new(seed, Share::WHOLE), args, slot)),
        };
        Bench { balancer, slot, pool: Depot::map(1024, 0).unwrap().pool(), now: 1_000 * SECOND }
    }

    fn run(&mut self, gate: u16, packet: &mut Packet) -> Verdict {
        packet.reparse();
        packet.parse().unwrap();
        self.balancer.run(self.now, gate, packet)
    }

    fn packet(&mut self, bytes: &[u8]) -> Packet {
        let mut packet = self.pool.take(bytes.len()).unwrap();
        packet.fill(bytes);
        packet
    }

    /// Send a packet in words by a gate and return what comes of it in words.
    fn say(&mut self, gate: u16, words: &str) -> String {
        let bytes = frame_of(words);
        let mut packet = self.packet(&bytes);
        let before = packet.data()[..12].to_vec();
        match self.run(gate, &mut packet) {
            Verdict::Drop(reason) => format!("dropped: {}", reason.text(balancer::REASONS)),
            Verdict::Gate(out) => {
                assert_eq!(out, gate);
                assert_eq!(packet.data()[..12], before, "MAC addresses stay");
                check_sums(packet.data());
                let number = self.slot.get(&packet);
                format!("{}{}", words_of(packet.data()), if number > 0 { format!(" #{number}") } else { String::new() })
            }
        }
    }

    fn loads(&self) -> Vec<i64> {
        self.balancer.backends().map(|b| b.connections).collect()
    }

    fn wait(&mut self, seconds: u64) {
        self.now += seconds * SECOND;
        for _ in 0..20 {
            self.balancer.tidy(self.now, true);
        }
    }
}

/// Make a bench on the local engine, or on the delayed one of a seed.
fn on(late: Option<u64>, make: impl FnOnce() -> Bench) -> Bench {
    match late {
        Some(seed) => on_delayed(seed, make),
        None => make(),
    }
}

/// Make the frame that words such as `tcp 10.0.0.1:1000 > 192.0.2.1:80 S` say.
fn frame_of(words: &str) -> Vec<u8> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let [name, src, _, dst, rest @ ..] = &words[..] else { panic!("{words:?}") };
    let (src, dst): (SocketAddr, SocketAddr) = (src.parse().unwrap(), dst.parse().unwrap());
    let flags = rest.first().map_or("", |f| f);
    let bit = |letter: char, bit: u8| if flags.contains(letter) { bit } else { 0 };
    let flags = bit('S', SYN) | bit('A', ACK) | bit('F', FIN) | bit('R', RST);
    frame(if *name == "tcp" { 6 } else { 17 }, src, dst, flags)
}

fn frame(proto: u8, src: SocketAddr, dst: SocketAddr, flags: u8) -> Vec<u8> {
    let mut upper = vec![0; if proto == 6 { 24 } else { 12 }];
    let length = upper.len() as u16;
    upper[length as usize - 4..].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    let pseudo = match (src.ip(), dst.ip()) {
        (IpAddr::V4(s), IpAddr::V4(d)) => pseudo_v4(s.to_bits(), d.to_bits(), proto, length),
        (IpAddr::V6(s), IpAddr::V6(d)) => pseudo_v6(s.octets(), d.octets(), proto, length.into()),
        _ => panic!("one family"),
    };
    upper[..2].copy_from_slice(&src.port().to_be_bytes());
    upper[2..4].copy_from_slice(&dst.port().to_be_bytes());
    if proto == 6 {
        let mut segment = tcp::Packet::new_unchecked(&mut upper[..]);
        segment.set_header_len(20);
        segment.set_flags(flags);
        segment.fill_checksum(pseudo);
    } else {
        udp::Packet::new_unchecked(&mut upper[..]).set_length(length);
        udp::Packet::new_unchecked(&mut upper[..]).fill_checksum(pseudo);
    }
    network(proto, src.ip(), dst.ip(), &upper, |_| {})
}

fn network(
    proto: u8,
    src: IpAddr,
    dst: IpAddr,
    upper: &[u8],
    change: impl Fn(&mut ipv4::Packet<&mut [u8]>),
) -> Vec<u8> {
    let mut ethernet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut header = [0; 20];
            header[0] = 0x45;
            let mut ip = ipv4::Packet::new_unchecked(&mut header[..]);
            ip.set_total_len(20 + upper.len() as u16);
            ip.set_ttl(64);
            ip.set_proto(proto);
            ip.set_src(src);
            ip.set_dst(dst);
            change(&mut ip);
            ip.fill_checksum();
            ethernet.extend(header);
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            ethernet[12..].copy_from_slice(&[0x86, 0xdd]);
            let mut header = [0; 40];
            let mut ip = ipv6::Packet::new_unchecked(&mut header[..]);
            ip.set_class_and_label(0, 7);
            ip.set_payload_len(upper.len() as u16);
            ip.set_next_header(proto);
            ip.set_hop_limit(64);
            ip.set_src(src);
            ip.set_dst(dst);
            ethernet.extend(header);
        }
        _ => panic!("one family"),
    }
    ethernet.extend(upper);
    ethernet
}

fn words_of(frame: &[u8]) -> String {
    let layers = catena_packet::wire::parse(frame).unwrap();
    let key = FlowKey::read(frame, &layers).unwrap().to_string();
    let flags = tcp::flags(frame, &layers);
    let letters = [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (ACK, 'A')].iter().filter(|(bit, _)| flags & bit != 0);
    let letters: String = letters.map(|(_, letter)| letter).collect();
    if letters.is_empty() { key } else { format!("{key} {letters}") }
}

/// Add all words up again, as a receiver would.
fn check_sums(frame: &[u8]) {
    let layers = catena_packet::wire::parse(frame).unwrap();
    let upper = &frame[usize::from(layers.l4)..];
    let pseudo = match FlowKey::read(frame, &layers).unwrap() {
        FlowKey::V4(key) => {
            assert!(checksum::verify_ipv4_checksum(&frame[14..34]));
            pseudo_v4(key.src, key.dst, key.proto, upper.len() as u16)
        }
        FlowKey::V6(_) => {
            let ip = ipv6::Packet::new_checked(&frame[14..]).unwrap();
            pseudo_v6(ip.src().octets(), ip.dst().octets(), layers.proto, upper.len() as u32)
        }
    };
    if layers.proto == 1 {
        assert_eq!(checksum::sum(upper), 0xffff);
    } else {
        assert_eq!(checksum::add(pseudo, checksum::sum(upper)), 0xffff, "{frame:02x?}");
    }
}

/// Run a script: a gate, a packet, `=>`, what comes of it.
fn golden(bench: &mut Bench, script: &str) {
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (gate, rest) = line.split_once(": ").unwrap();
        let (packet, expected) = rest.split_once(" => ").unwrap();
        let gate = if gate == "out" { 0 } else { 1 };
        assert_eq!(bench.say(gate, packet.trim()), expected.trim(), "{line}");
    }
}
