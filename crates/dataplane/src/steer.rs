//! Spreads packets over workers so that all packets of an inside address meet the same one, in both
//! directions: every narrower scope (a connection, an endpoint) is then whole as well.

use std::sync::Arc;

use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, Net, Seed};
use catena_packet::{Batch, Packet, Slot, Way};

use crate::datagrams::Datagrams;
use crate::module::{Context, Module, Pulled, Source};
use crate::queue::{QueueIn, QueueOut, Room, queue};
use crate::slots::{Loads, Slots};

/// Whose a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of one of the workers, whatever becomes of slots.
    Worker(u16),
    /// That of who has the slot.
    Slot(Slot),
}

/// Tells whose packets are that are not known by their inside address, if it knows that.
pub type Owner = Box<dyn Fn(&Packet) -> Option<Whose> + Send>;

/// Most packets that wait while their slots change hands. What comes then is dropped, and counted.
const MOST_HELD: usize = 4096;

/// Tells which worker a packet belongs to: the same for all who are asked about the same packets in the same order.
///
/// On the way out (side 0) the inside address is the source, on the way back (all other sides) the destination, unless the `owner`
/// knows better: a function that rewrites addresses has to be asked. Later fragments on the way back, which have no port to
/// ask about, go where their first went.
pub struct Spread {
    slots: Arc<Slots>,
    seed: Seed,
    owner: Owner,
    datagrams: Datagrams,
    loads: Option<Arc<Loads>>,
}

impl Spread {
    /// Spread over the workers that have these slots.
    pub fn new(slots: &Arc<Slots>, seed: Seed, owner: Owner) -> Self {
        Spread { slots: Arc::clone(slots), seed, owner, datagrams: Datagrams::new(seed), loads: None }
    }

    /// Count the packets of each slot.
    #[must_use]
    pub fn counting(self, loads: &Arc<Loads>) -> Self {
        Spread { loads: Some(Arc::clone(loads)), ..self }
    }

    /// Return the worker of a packet that came by this side at this time, in ns since 1970; `None` while its slot is held.
    ///
    /// The packet knows afterwards which way it is on, by [`Meta::way`](catena_packet::Meta::way): both ways come to a worker
    /// in one line ([`Task::by_side`](crate::task::Task::by_side)). So it does which slot it is of, where anybody knows.
    #[inline]
    pub fn worker_of(&mut self, packet: &mut Packet, side: u16, time: u64) -> Option<u16> {
        packet.meta_mut().way = Way::by(side);
        // What is malformed is for the functions to drop; here it only stays together.
        if packet.parse().is_err() {
            return self.slots.worker(Slot::NONE);
        }
        let back = side != 0;
        let slot = match if back { self.asked(packet, time) } else { None } {
            Some(Whose::Worker(worker)) => return Some(worker.min(self.slots.workers() - 1)),
            Some(Whose::Slot(slot)) => slot,
            None => {
                let is_icmp = matches!(packet.layers().proto, proto::ICMP | proto::ICMPV6);
                let quoted = if is_icmp && !back { quoted(packet) } else { None };
                Slot::of(self.seed.hash2(quoted.unwrap_or_else(|| inside(packet, back))))
            }
        };
        packet.meta_mut().way = Way::by(side).of(slot);
        if let Some(loads) = &self.loads {
            loads.add(slot);
        }
        self.slots.worker(slot)
    }

    /// Ask whose a packet on the way back is, if anybody knows.
    fn asked(&mut self, packet: &Packet, time: u64) -> Option<Whose> {
        let layers = packet.layers();
        if layers.has(Layers::LATER) {
            return self.datagrams.find(packet, time).map(Whose::from_bits);
        }
        let owner = (self.owner)(packet)?;
        if layers.has(Layers::FRAGMENT) {
            self.datagrams.remember(packet, owner.bits(), time);
        }
        Some(owner)
    }
}

impl Whose {
    const IS_SLOT: u16 = 1 << 15;

    fn bits(self) -> u16 {
        match self {
            Whose::Worker(worker) => worker.min(Self::IS_SLOT - 1),
            Whose::Slot(slot) => slot.number() | Self::IS_SLOT,
        }
    }

    fn from_bits(bits: u16) -> Whose {
        match bits & Self::IS_SLOT {
            0 => Whose::Worker(bits),
            _ => Whose::Slot(Slot::numbered(bits & !Self::IS_SLOT).unwrap_or(Slot::NONE)),
        }
    }
}

/// Sends every packet to the output gate of its worker; the input gate is its side.
pub struct Steer {
    spread: Spread,
    /// Where packets of slots that are held wait, in the order in which they came.
    held: Option<(QueueIn, QueueOut)>,
}

impl Steer {
    /// Make a module with an output gate for each worker.
    pub fn new(spread: Spread) -> Self {
        let may_hold = spread.loads.is_some();
        let held = may_hold.then(|| queue(MOST_HELD, 1)).and_then(|(mut ins, out)| Some((ins.pop()?, out)));
        Steer { spread, held }
    }

    /// Return the room for packets of slots that are held: who may wait does not bring more than fits.
    pub fn room(&self) -> Option<Room> {
        self.held.as_ref().map(|(entrance, _)| entrance.room())
    }
}

impl Module for Steer {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let (side, times) = (cx.gate(), cx.times());
        let (onward, mut held) = (cx.gate(), Batch::new());
        batch.filter(|_, mut packet| {
            let time = times.of(&packet);
            match self.spread.worker_of(&mut packet, side, time) {
                Some(gate) if gate == onward => return Some(packet),
                Some(gate) => cx.emit(gate, packet),
                None => held.push(packet),
            }
            None
        });
        if !held.is_empty()
            && let Some((entrance, _)) = &mut self.held
        {
            entrance.process(cx, &mut held);
        }
    }

    fn is_polled(&self) -> bool {
        self.held.is_some()
    }

    /// Send on what waited, once nothing is held any more.
    fn poll(&mut self, cx: &mut Context) {
        let Some((_, exit)) = &mut self.held else { return };
        if self.spread.slots.are_held() {
            return;
        }
        let mut batch = Batch::new();
        while exit.pull(cx, &mut batch) == Pulled::More {
            for packet in batch.drain() {
                // Nothing is held, so there is somebody.
                cx.emit(self.spread.slots.worker(packet.meta().way.slot()).unwrap_or_default(), packet);
            }
        }
    }

    fn is_holding(&self) -> bool {
        let waits = |(entrance, _): &(QueueIn, QueueOut)| !entrance.room().is_empty();
        self.held.as_ref().is_some_and(|held| self.spread.slots.are_held() || waits(held))
    }
}

/// Return the inside address of an ICMP error that comes from inside, in two words: who has sent it may be a router, and the packet
/// that it quotes was on its way to the host.
#[cold]
fn quoted(packet: &Packet) -> Option<[u64; 2]> {
    let (data, layers) = (packet.data(), packet.layers());
    let l4 = usize::from(layers.l4);
    let kind = *data.get(l4)?;
    let quote = data.get(l4 + 8..)?;
    match layers.net {
        // RFC 792: destination unreachable, source quench, redirect, time exceeded, parameter problem.
        Net::Ipv4 if layers.proto == proto::ICMP && matches!(kind, 3 | 4 | 5 | 11 | 12) => {
            Some([u64::from(u32::from_be_bytes(*quote.get(16..)?.first_chunk()?)), 4])
        }
        // RFC 4443 §2.1: errors have types below 128.
        Net::Ipv6 if layers.proto == proto::ICMPV6 && kind < 128 => {
            Some([u64::from_be_bytes(*quote.get(24..)?.first_chunk()?), 6])
        }
        _ => None,
    }
}

/// Return the inside address in two words, of IPv6 its first 64 bits: a host, as functions count them, may have all addresses that
/// begin so. Zero for packets without addresses, which so stay together.
fn inside(packet: &Packet, back: bool) -> [u64; 2] {
    let layers = packet.layers();
    let header = packet.data().get(usize::from(layers.l3)..).unwrap_or_default();
    let word = |at: usize| header.get(at..).and_then(|h| h.first_chunk()).map_or(0, |b| u64::from_be_bytes(*b));
    let half = |at: usize| header.get(at..).and_then(|h| h.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b));
    match layers.net {
        Net::Ipv4 => [u64::from(half(if back { 16 } else { 12 })), 4],
        Net::Ipv6 => [word(if back { 24 } else { 8 }), 6],
        _ => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use catena_packet::{Depot, SlotSet};

    use super::*;
    use crate::{Graph, Inlet};

    /// A fragment to this port of a host's, or the later part of one.
    fn fragment(ident: u8, is_later: bool, port: u8) -> [u8; 60] {
        let mut frame = [0; 60];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[16..22].copy_from_slice(&[0, 44, 0, ident, if is_later { 0 } else { 0x20 }, u8::from(is_later)]);
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 1]);
        frame[34..40].copy_from_slice(&[0, 53, 4, port, 0, 200]);
        frame
    }

    #[test]
    fn later_fragments_on_the_way_back_follow_their_first() {
        let depot = Depot::map(128, 0).expect("memory");
        let mut pool = depot.pool();
        let owner = |packet: &Packet| {
            let (data, layers) = (packet.data(), packet.layers());
            layers.has(Layers::PORTS).then(|| Whose::Worker(data[37].into()))
        };
        let mut spread = Spread::new(&Slots::even(8), Seed::from_number(1), Box::new(owner));
        let mut worker_of = |frame: [u8; 60], time| {
            let mut packet = pool.take(60).expect("a buffer");
            packet.data_mut().copy_from_slice(&frame);
            let worker = spread.worker_of(&mut packet, 1, time);
            pool.put(packet);
            worker
        };
        let unknown = worker_of(fragment(200, true, 0), 0);
        for ident in 0..100 {
            assert_eq!(worker_of(fragment(ident, false, ident % 8), 1_000), Some(u16::from(ident % 8)));
        }
        for ident in 0..100 {
            assert_eq!(worker_of(fragment(ident, true, 0), 2_000), Some(u16::from(ident % 8)), "datagram {ident}");
            assert_eq!(worker_of(fragment(ident, true, 0), 40_000_000_000), unknown, "long after its first");
        }
    }

    #[test]
    fn an_error_from_a_router_inside_goes_with_the_host_that_it_is_about() {
        let depot = Depot::map(128, 0).expect("memory");
        let mut pool = depot.pool();
        let mut spread = Spread::new(&Slots::even(64), Seed::from_number(1), Box::new(|_| None));
        let mut worker_of = |frame: &[u8]| {
            let mut packet = pool.take(frame.len()).expect("a buffer");
            packet.data_mut().copy_from_slice(frame);
            let worker = spread.worker_of(&mut packet, 0, 0);
            pool.put(packet);
            worker
        };
        let mut workers = std::collections::HashSet::new();
        for host in 1..40 {
            // IPv4: fragmentation needed, of a packet to the host.
            let mut error = [0; 14 + 20 + 8 + 28];
            error[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1]);
            error[26..34].copy_from_slice(&[192, 0, 2, 254, 198, 51, 100, 1]);
            error[34..36].copy_from_slice(&[3, 4]);
            error[42..54].copy_from_slice(&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
            error[54..62].copy_from_slice(&[198, 51, 100, 1, 192, 0, 2, host]);
            assert_eq!(worker_of(&error), worker_of(&outward(host, 0)), "host {host}");
            workers.insert(worker_of(&error));
            // IPv6: packet too big.
            let mut error = [0; 14 + 40 + 8 + 48];
            error[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 56, 58, 64]);
            (error[22], error[38], error[54]) = (0xfd, 0x20, 2);
            error[62..70].copy_from_slice(&[0x60, 0, 0, 0, 0, 8, 17, 64]);
            error[86..94].copy_from_slice(&[0x20, 1, 0, 0, 0, 0, 0, host]);
            let mut own = [0; 14 + 40 + 8];
            own[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
            own[22..30].copy_from_slice(&[0x20, 1, 0, 0, 0, 0, 0, host]);
            own[59] = 8;
            assert_eq!(worker_of(&error), worker_of(&own), "host {host}");
        }
        assert!(workers.len() > 10, "{} of 64", workers.len());
    }

    /// A frame of a host, with a number.
    fn outward(host: u8, number: u8) -> [u8; 60] {
        let mut frame = fragment(0, false, number);
        (frame[20], frame[29], frame[39]) = (0, host, 24);
        frame
    }

    #[test]
    fn what_waited_goes_before_what_comes_and_nothing_is_lost() {
        let depot = Depot::map(4096, 0).expect("memory");
        let (table, loads) = (Slots::even(2), Loads::new());
        let mut graph = Graph::new();
        let spread = Spread::new(&table, Seed::from_number(1), Box::new(|_| None)).counting(&loads);
        let steer = graph.add("spread", Box::new(Steer::new(spread)));
        let (mut exits, mut entrances) = (Vec::new(), Vec::new());
        for gate in 0..2 {
            let (mut entrance, exit) = queue(4096, 1);
            entrances.extend(entrance.pop().map(|entrance| (gate, entrance)));
            exits.push(exit);
        }
        for (gate, entrance) in entrances {
            let node = graph.add("worker", Box::new(entrance));
            graph.connect(steer, gate, node);
        }
        let mut cx = Context::new(&depot, 0);
        let send = |graph: &mut Graph, cx: &mut Context, numbers: std::ops::Range<u8>| {
            for number in numbers {
                let mut batch = Batch::new();
                for host in 0..20 {
                    let mut packet = cx.pool().take(60).expect("a buffer");
                    packet.data_mut().copy_from_slice(&outward(host, number));
                    batch.push(packet);
                }
                graph.run(cx, Inlet { node: steer, gate: 0 }, &mut batch);
            }
        };
        let held: SlotSet = table.of(0).iter().step_by(2).collect();
        send(&mut graph, &mut cx, 0..5);
        table.hold(&held);
        send(&mut graph, &mut cx, 5..9);
        graph.poll(&mut cx);
        assert!(graph.is_holding());
        table.give(&held, 1);
        graph.poll(&mut cx);
        assert!(!graph.is_holding());
        send(&mut graph, &mut cx, 9..12);
        let mut came = vec![Vec::new(); 20];
        for (worker, exit) in exits.iter_mut().enumerate() {
            let mut batch = Batch::new();
            while exit.pull(&mut cx, &mut batch) == Pulled::More {
                for packet in batch.drain() {
                    came[usize::from(packet.data()[29])].push((packet.data()[37], worker));
                    cx.pool().put(packet);
                }
            }
        }
        for of_host in &came {
            let mut numbers: Vec<u8> = of_host.iter().map(|(number, _)| *number).collect();
            let workers: Vec<usize> = of_host.iter().map(|(_, worker)| *worker).collect();
            // Each worker has its own in order, and the second has what came later.
            let last = *workers.last().expect("a packet");
            assert!(of_host.iter().filter(|(number, _)| *number >= 5).all(|(_, worker)| *worker == last));
            assert!(of_host.is_sorted_by_key(|(number, worker)| (*worker, *number)), "{of_host:?}");
            numbers.sort_unstable();
            assert_eq!(numbers, (0..12).collect::<Vec<_>>());
        }
        let moved = came.iter().filter(|of_host| of_host[0].1 != of_host[11].1).count();
        assert!((1..20).contains(&moved), "{moved} of 20 hosts");
        assert_eq!(loads.packets().iter().sum::<u64>(), 12 * 20);
        drop((graph, cx));
    }
}
