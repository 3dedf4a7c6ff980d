//! Identifications of the datagrams that go out: new ones, as one external address speaks for many hosts.
//!
//! A receiver tells datagrams in fragments apart by addresses, protocol and identification. Hosts choose theirs without
//! knowing of each other, so two that have one external address would get the head of one's datagram before the tail of
//! the other's. RFC 6864 §5.3.1 makes whoever rewrites addresses answer for identifications as if it were the source:
//! none comes again soon for the same source, destination and protocol. That goes for all that is in fragments or may be
//! fragmented on its way; what may not ("atomic", §4) keeps what it has.
//!
//! There is a counter for each external address, destination and (of IPv4) protocol, chosen by a secret hash (RFC 7739
//! §5.3): an identification comes again after as many packets as there are. Some pairs share a counter, which shortens
//! that for them, but gives no identification twice.

use catena_packet::wire::Seed;
use catena_state::{Key, Share};

/// Counters: 16 KiB, so that they stay near.
const COUNTERS: usize = 4096;

/// The identifications that come next.
pub struct Identifications {
    seed: Seed,
    counters: Box<[u32; COUNTERS]>,
    /// The bits of the lowest 16 that count. The others tell instances apart, which share external addresses.
    low: u32,
    instance: u32,
}

impl Identifications {
    /// Make the counters of one of several instances.
    pub fn new(seed: Seed, share: Share) -> Self {
        let bits = 16 - share.count.max(1).next_power_of_two().ilog2().min(16);
        // From places that nobody knows.
        let counters = Box::new(std::array::from_fn(|i| seed.hash2([i as u64, 0]) as u32));
        Identifications { seed, counters, low: (1 << bits) - 1, instance: share.index << bits & 0xffff }
    }

    #[inline(always)]
    fn number(&mut self, hash: u64) -> u32 {
        let counter = &mut self.counters[hash as usize % COUNTERS];
        *counter = counter.wrapping_add(1);
        *counter
    }

    /// Return the next identification of 16 bits between the ends that `words` tell. All 65,536, or as many of them as an
    /// instance has, differ.
    #[inline(always)]
    pub fn next16(&mut self, words: [u64; 2]) -> u16 {
        // Half of `Seed::hash2`: of which pairs share a counter nobody learns much.
        let product = u128::from(words[0] ^ self.seed.0[0]) * u128::from(words[1] ^ self.seed.0[1]);
        (self.instance | self.number(product as u64 ^ (product >> 64) as u64) & self.low) as u16
    }

    /// Return the next identification of 32 bits between the ends of a key. The lowest 16 differ as those of
    /// [`Self::next16`] do: a translator to IPv4 takes no more of them (RFC 7915 §5.1.1).
    pub fn next32(&mut self, ends: impl Key) -> u32 {
        let number = self.number(ends.hash(&self.seed));
        number >> self.low.count_ones() << 16 | self.instance | number & self.low
    }
}
