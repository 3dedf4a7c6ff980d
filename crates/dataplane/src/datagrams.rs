//! Later fragments go where their first went: it alone holds the headers that tell the way.

use catena_packet::Packet;
use catena_packet::wire::{Net, Seed, ipv6};

/// How long, in ns, a datagram's first fragment is remembered: RFC 1122 §3.3.2 lets a host reassemble for 60 s and more;
/// on today's paths all parts of a datagram come within a second or are lost.
const LIFE: u64 = 30_000_000_000;
/// Places that a datagram may take.
const WAYS: usize = 4;
/// Most datagrams remembered: 64 KiB.
const MOST: usize = 4096;

/// The ways that first fragments took, by number, for a short while. Where there is no room, the datagram that came longest ago is
/// forgotten.
pub(crate) struct Datagrams {
    seed: Seed,
    sets: Box<[[Entry; WAYS]]>,
}

/// Whose addresses and identification hash to `hash`, took `way` at the time `last`.
#[derive(Clone, Copy, Default)]
struct Entry {
    hash: u64,
    /// In ns, over 256; 0 where nothing is remembered.
    last: u64,
    way: u16,
}

impl Datagrams {
    pub(crate) fn new(seed: Seed) -> Self {
        Datagrams { seed, sets: vec![[Entry::default(); WAYS]; MOST / WAYS].into() }
    }

    /// Return the way that the first fragment of this fragment's datagram took before the time `now`.
    pub(crate) fn find(&self, packet: &Packet, now: u64) -> Option<u16> {
        let hash = self.hash(packet)?;
        let known = self.sets[self.set(hash)].iter().find(|entry| entry.last != 0 && entry.hash == hash)?;
        (clock(now).saturating_sub(known.last) < LIFE >> 8).then_some(known.way)
    }

    /// Remember the way that a first fragment takes.
    pub(crate) fn remember(&mut self, packet: &Packet, way: u16, now: u64) {
        let Some(hash) = self.hash(packet) else { return };
        let set = self.set(hash);
        let entries = &mut self.sets[set];
        let oldest = (0..WAYS).min_by_key(|&place| entries[place].last).unwrap_or(0);
        let place = entries.iter().position(|entry| entry.last != 0 && entry.hash == hash).unwrap_or(oldest);
        entries[place] = Entry { hash, last: clock(now), way };
    }

    fn set(&self, hash: u64) -> usize {
        hash as usize % self.sets.len()
    }

    /// Hash what all fragments of a datagram share: addresses and identification, of IPv4 the protocol (RFC 791 §3.2),
    /// and the tags, since the same addresses may be in use behind another.
    fn hash(&self, packet: &Packet) -> Option<u64> {
        let (data, layers) = (packet.data(), packet.layers());
        let l3 = usize::from(layers.l3);
        let word = |at: usize| Some(u64::from_be_bytes(*data.get(at..)?.first_chunk()?));
        let hash = match layers.net {
            Net::Ipv4 => {
                let [a, b] = *data.get(l3 + 4..)?.first_chunk()?;
                let proto = u64::from(*data.get(l3 + 9)?);
                self.seed.hash2([word(l3 + 12)?, proto << 16 | u64::from(u16::from_be_bytes([a, b]))])
            }
            Net::Ipv6 => {
                let addresses = [word(l3 + 8)?, word(l3 + 16)?, word(l3 + 24)?, word(l3 + 32)?];
                let ident = ipv6_ident(data.get(l3..)?)?;
                self.seed.hash5([addresses[0], addresses[1], addresses[2], addresses[3], u64::from(ident)])
            }
            Net::Arp | Net::Other => return None,
        };
        let tags = data.get(12..l3.checked_sub(2)?)?;
        Some(tags.chunks_exact(4).fold(hash, |hash, tag| {
            let id = u64::from(u16::from_be_bytes([tag[2], tag[3]]) & 0xfff);
            self.seed.hash2([hash, id])
        }))
    }
}

fn ipv6_ident(packet: &[u8]) -> Option<u32> {
    Some(ipv6::Packet::new_checked(packet).ok()?.extensions().ok()?.fragment?.ident)
}

/// Time in units of 256 ns, never 0.
fn clock(now: u64) -> u64 {
    (now >> 8) + 1
}
