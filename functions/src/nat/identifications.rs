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
//!
//! The counters are a shared object. Which of them counts for a packet, and what its number becomes in a header, is worked out
//! beside it, from what never changes.

use catena_packet::Packet;
use catena_packet::wire::Seed;
use catena_state::{Access, Declaration, Engine, Key, Op, Plain, Scope, Share, Shared, Stored, Tx, operations};

use super::family::Translate;
use super::translate::Napt;

/// The numbers that identifications are made of.
pub const IDENTIFICATIONS: Declaration =
    Declaration::shared("identifications", "which come next", Scope::Global, Access::ReadWrite);

/// Counters: 16 KiB, so that they stay near.
const COUNTERS: usize = 4096;

/// The value of the object: the number that each counter gave last.
#[derive(Stored)]
pub struct Identifications(Box<[u32; COUNTERS]>);

operations!("identifications": Identifications { 0 => Draw });

impl Identifications {
    /// Make the counters.
    pub fn new(seed: Seed) -> Self {
        // From places that nobody knows.
        Identifications(Box::new(std::array::from_fn(|i| seed.hash2([i as u64, 0]) as u32)))
    }
}

/// Draw the next number of this counter.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Draw(u16);

impl Draw {
    #[inline(always)]
    fn of(hash: u64) -> Draw {
        Draw((hash as usize % COUNTERS) as u16)
    }
}

impl Op<Identifications> for Draw {
    type Reply = u32;

    #[inline(always)]
    fn apply(self, Identifications(counters): &mut Identifications) -> u32 {
        let counter = &mut counters[usize::from(self.0) % COUNTERS];
        *counter = counter.wrapping_add(1);
        *counter
    }
}

/// Which counter counts for a packet, and what its numbers become.
pub struct Numbering {
    seed: Seed,
    /// The bits of the lowest 16 that count. The others tell instances apart, which share external addresses.
    low: u32,
    instance: u32,
}

impl Numbering {
    /// Return that of one of several instances.
    pub fn new(seed: Seed, share: Share) -> Self {
        let bits = 16 - share.count.max(1).next_power_of_two().ilog2().min(16);
        Numbering { seed, low: (1 << bits) - 1, instance: share.index << bits & 0xffff }
    }

    /// Return what to ask for an identification of 16 bits between the ends that `words` tell.
    #[inline(always)]
    pub fn draw16(&self, words: [u64; 2]) -> Draw {
        // Half of `Seed::hash2`: of which pairs share a counter nobody learns much.
        let product = u128::from(words[0] ^ self.seed.0[0]) * u128::from(words[1] ^ self.seed.0[1]);
        Draw::of(product as u64 ^ (product >> 64) as u64)
    }

    /// Return the identification of 16 bits that a number becomes. All 65,536, or as many of them as an instance has, differ.
    #[inline(always)]
    pub fn ident16(&self, number: u32) -> u16 {
        (self.instance | number & self.low) as u16
    }

    /// Return what to ask for an identification of 32 bits between the ends of a key.
    pub fn draw32(&self, ends: impl Key) -> Draw {
        Draw::of(ends.hash(&self.seed))
    }

    /// Return the identification of 32 bits that a number becomes. The lowest 16 differ as those of [`Self::ident16`] do: a
    /// translator to IPv4 takes no more of them (RFC 7915 §5.1.1).
    pub fn ident32(&self, number: u32) -> u32 {
        number >> self.low.count_ones() << 16 | self.instance | number & self.low
    }
}

/// The promise of a number.
pub type DrawTicket<E> = <<E as Engine>::Shared<Identifications> as Shared<Identifications>>::Ticket<Draw>;

/// Which identification a packet gets.
pub enum Ident<E: Engine> {
    /// It keeps the one it has.
    Kept,
    /// A new one, whose number was asked for.
    Asked(DrawTicket<E>),
    /// This one.
    New(u32),
}

copied!(Ident<E: Engine>);

impl<E: Engine, F: Translate> Napt<E, F> {
    /// Ask for an identification for a packet that will leave from this external address, unless it is atomic.
    pub(super) fn ask_ident(&mut self, tx: &mut Tx, packet: &Packet, source: F::Address) -> Ident<E> {
        let (frame, layers) = (packet.data(), packet.layers());
        match F::addresses(frame, usize::from(layers.l3)) {
            Some([_, dst]) if !F::is_atomic(frame, &layers) => {
                let draw = F::draw(&self.numbering, [source, dst], layers.proto);
                Ident::Asked(self.identifications.want(tx, draw))
            }
            _ => Ident::Kept,
        }
    }

    /// Return the identification that was asked for, in the step after; `None` where the packet keeps its own.
    pub(super) fn ident(&mut self, tx: &mut Tx, ident: Ident<E>) -> Option<u32> {
        match ident {
            Ident::Kept => None,
            Ident::Asked(ticket) => Some(F::ident(&self.numbering, self.identifications.got(tx, &ticket))),
            Ident::New(ident) => Some(ident),
        }
    }
}
