//! Spreads packets over workers so that all packets of an inside address meet the same one, in both
//! directions: every narrower scope (a connection, an endpoint) is then whole as well.

use catena_packet::wire::{Net, Seed};
use catena_packet::{Batch, Packet};

use crate::module::{Context, Module, Verdict};

/// Where packets whose worker is not decided by their inside address go: returns the worker's index.
pub type Owner = Box<dyn Fn(&Packet) -> Option<u32> + Send>;

/// Sends every packet to the output gate of its worker.
///
/// On the way out (input gate 0) the inside address is the source, on the way back (input gate 1) the
/// destination, unless the `owner` knows better: a function that rewrites addresses has to be asked.
///
/// Packets know afterwards which way they are on, by [`Meta::port`](catena_packet::Meta::port): both ways share one
/// queue into a worker ([`Task::by_side`](crate::task::Task::by_side)).
pub struct Steer {
    ways: u32,
    seed: Seed,
    owner: Owner,
}

impl Steer {
    /// Make a module that spreads over `ways` output gates.
    pub fn new(ways: u32, seed: Seed, owner: Owner) -> Self {
        Steer { ways: ways.max(1), seed, owner }
    }
}

impl Module for Steer {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let side = cx.gate();
        let back = side == 1;
        cx.decide(batch, |_, packet| {
            packet.meta_mut().port = side;
            // What is malformed is for the functions to drop; here it only stays together.
            if packet.parse().is_err() {
                return Verdict::Gate(0);
            }
            let owner = if back { (self.owner)(packet) } else { None };
            let way = owner.unwrap_or_else(|| {
                let hash = self.seed.hash2(inside(packet, back));
                (((hash >> 32) * u64::from(self.ways)) >> 32) as u32
            });
            Verdict::Gate(way.min(self.ways - 1) as u16)
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
