//! Spreads packets over workers so that all packets of an inside address meet the same one, in both
//! directions: every narrower scope (a connection, an endpoint) is then whole as well.

use catena_packet::wire::{Layers, Net, Seed};
use catena_packet::{Batch, Packet};

use crate::datagrams::Datagrams;
use crate::module::{Context, Module, Verdict};

/// Where packets go whose worker is not decided by their inside address: returns the worker's index.
pub type Owner = Box<dyn Fn(&Packet) -> Option<u32> + Send>;

/// Tells which worker a packet belongs to: the same for all who are asked about the same packets in the same order.
///
/// On the way out (side 0) the inside address is the source, on the way back (side 1) the destination, unless the `owner`
/// knows better: a function that rewrites addresses has to be asked. Later fragments on the way back, which have no port to
/// ask about, go where their first went.
pub struct Spread {
    ways: u32,
    seed: Seed,
    owner: Owner,
    datagrams: Datagrams,
}

impl Spread {
    /// Spread over so many workers.
    pub fn new(ways: u32, seed: Seed, owner: Owner) -> Self {
        Spread { ways: ways.max(1), seed, owner, datagrams: Datagrams::new(seed) }
    }

    /// Return the worker of a packet that came by this side at this time, in ns since 1970.
    ///
    /// The packet knows afterwards which way it is on, by [`Meta::port`](catena_packet::Meta::port): both ways come to a worker
    /// in one line ([`Task::by_side`](crate::task::Task::by_side)).
    #[inline]
    pub fn worker_of(&mut self, packet: &mut Packet, side: u16, time: u64) -> u32 {
        packet.meta_mut().port = side;
        // What is malformed is for the functions to drop; here it only stays together.
        if packet.parse().is_err() {
            return 0;
        }
        let back = side == 1;
        if back && let Some(owner) = self.asked(packet, time) {
            return owner.min(self.ways - 1);
        }
        let hash = self.seed.hash2(inside(packet, back));
        (((hash >> 32) * u64::from(self.ways)) >> 32) as u32
    }

    /// Ask whose a packet on the way back is, if anybody knows.
    fn asked(&mut self, packet: &Packet, time: u64) -> Option<u32> {
        let layers = packet.layers();
        if layers.has(Layers::LATER) {
            return self.datagrams.find(packet, time).map(u32::from);
        }
        let owner = (self.owner)(packet)?;
        if layers.has(Layers::FRAGMENT) {
            self.datagrams.remember(packet, u16::try_from(owner).unwrap_or(u16::MAX), time);
        }
        Some(owner)
    }
}

/// Sends every packet to the output gate of its worker; the input gate is its side.
pub struct Steer(Spread);

impl Steer {
    /// Make a module with an output gate for each worker.
    pub fn new(spread: Spread) -> Self {
        Steer(spread)
    }
}

impl Module for Steer {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let (side, times) = (cx.gate(), cx.times());
        cx.decide(batch, |_, packet| {
            let time = times.of(packet);
            Verdict::Gate(self.0.worker_of(packet, side, time) as u16)
        });
    }
}

/// Return the inside address in two words; zero for packets without addresses, which so stay together.
fn inside(packet: &Packet, back: bool) -> [u64; 2] {
    let layers = packet.layers();
    let header = packet.data().get(usize::from(layers.l3)..).unwrap_or_default();
    let word = |at: usize| header.get(at..).and_then(|h| h.first_chunk()).map_or(0, |b| u64::from_be_bytes(*b));
    let half = |at: usize| header.get(at..).and_then(|h| h.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b));
    match layers.net {
        Net::Ipv4 => [u64::from(half(if back { 16 } else { 12 })), 4],
        Net::Ipv6 if back => [word(24), word(32)],
        Net::Ipv6 => [word(8), word(16)],
        _ => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use catena_packet::Depot;

    use super::*;

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
            layers.has(Layers::PORTS).then(|| u32::from(data[37]))
        };
        let mut spread = Spread::new(8, Seed::from_number(1), Box::new(owner));
        let mut worker_of = |frame: [u8; 60], time| {
            let mut packet = pool.take(60).expect("a buffer");
            packet.data_mut().copy_from_slice(&frame);
            let worker = spread.worker_of(&mut packet, 1, time);
            pool.put(packet);
            worker
        };
        let unknown = worker_of(fragment(200, true, 0), 0);
        for ident in 0..100 {
            assert_eq!(worker_of(fragment(ident, false, ident % 8), 1_000), u32::from(ident % 8));
        }
        for ident in 0..100 {
            assert_eq!(worker_of(fragment(ident, true, 0), 2_000), u32::from(ident % 8), "datagram {ident}");
            assert_eq!(worker_of(fragment(ident, true, 0), 40_000_000_000), unknown, "long after its first");
        }
    }
}
