//! Later fragments follow their first: what became of the first, for a short while.
//!
//! RFC 4787 REQ-14 asks a NAT to handle fragments in any order. Fragments in order are; later ones that come before
//! their first are dropped and counted, so that nothing is ever held back, and nobody can fill what would hold it.

use catena_packet::wire::{Layers, checksum};
use catena_state::looks::Looks;
use catena_state::{Access, Declaration, Engine, FlowMap, Intent, NoMemory, Plain, Scope};

use super::family::{Family, Host};
use super::tags::vlan;
use crate::shares::Shares;

/// By addresses and identification.
pub const FRAGMENTS: Declaration =
    Declaration::flow_map("fragments", "what became of a first one", Scope::Connection, Access::ReadMostly);

/// Most datagrams remembered.
const MOST: usize = 8192;
/// How long, in ns: RFC 1122 §3.3.2 lets a host reassemble for 60 s and more; on today's paths all parts of a
/// datagram come within a second or are lost.
const LIFE: u64 = 30_000_000_000;

/// What becomes of the fragments of a datagram.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Part<A> {
    /// The new address.
    pub address: A,
    /// What it does to a checksum.
    pub sum: u16,
    /// The identification that all of them get, on the way out.
    pub ident: Option<u32>,
    /// Whose part of the table it takes.
    group: u16,
    last: u64,
}

/// The datagrams whose first fragment was translated.
pub struct Fragments<E: Engine, F: Family> {
    parts: E::FlowMap<F::Pair, Part<F::Address>>,
    /// By inside host, in both directions: whatever is sent to a host takes its part only.
    shares: Shares,
    looks: Looks,
}

/// The promise of a datagram's fate.
pub type Ticket<E, F> = <<E as Engine>::FlowMap<<F as Family>::Pair, Part<<F as Family>::Address>> as FlowMap<
    <F as Family>::Pair,
    Part<<F as Family>::Address>,
>>::Ticket;

impl<E: Engine, F: Family> Fragments<E, F> {
    /// Make none.
    ///
    /// # Errors
    /// [`NoMemory`] for what may be remembered.
    pub fn new(engine: &mut E) -> Result<Self, NoMemory> {
        Ok(Fragments {
            parts: engine.flow_map(&FRAGMENTS.part(F::PART), MOST)?,
            shares: Shares::new(engine.seed(), MOST),
            looks: Looks::new(MOST),
        })
    }

    /// Return the key of the datagram that a fragment is part of. What NAT translates has protocols below 128.
    pub fn key(frame: &[u8], layers: &Layers, gate: u16) -> Option<F::Pair> {
        let l3 = usize::from(layers.l3);
        let [src, dst] = F::addresses(frame, l3)?;
        let (ident, vlan) = (u64::from(F::fragment_ident(frame, l3)?), u64::from(vlan(frame, layers)?));
        let (proto, gate) = (u64::from(layers.proto & 0x7f), u64::from(gate.min(1)));
        Some(F::pair(src, dst, ident | proto << 32 | gate << 39 | vlan << 40))
    }

    /// Ask for a datagram's fate.
    pub fn want(&mut self, tx: E::Tx, key: F::Pair, intent: Intent) -> Ticket<E, F> {
        self.parts.want(tx, key, intent)
    }

    /// Return the fate of a datagram, if its first fragment came within the last seconds.
    pub fn get(&mut self, tx: E::Tx, ticket: &Ticket<E, F>, now: u64) -> Option<Part<F::Address>> {
        self.parts.read(tx, ticket).copied().filter(|part| now.saturating_sub(part.last) < LIFE)
    }

    /// Remember that an address of a datagram's first fragment became another, and its identification `ident` if it got
    /// a new one, for an inside host. Where there is no room the later fragments are dropped, and counted, as if the first had been lost.
    pub fn remember(
        &mut self,
        tx: E::Tx,
        ticket: &Ticket<E, F>,
        (from, to): (F::Address, F::Address),
        ident: Option<u32>,
        inside: Host,
        now: u64,
    ) {
        self.sweep(2, now);
        let group = self.shares.group(inside.words());
        if let Some(part) = self.parts.remove(tx, ticket) {
            self.shares.give(part.group);
        }
        let part = Part { address: to, sum: checksum::add(!F::sum(from), F::sum(to)), ident, group, last: now };
        let mut has_room = self.shares.take(group);
        if !has_room {
            let due = self.looks.due(now);
            self.sweep(due, now);
            has_room = self.shares.take(group);
        }
        if has_room && self.parts.insert(tx, ticket, part).is_err() {
            self.shares.give(group);
        }
    }

    /// Look at up to `count` datagrams and forget the old ones.
    pub fn sweep(&mut self, count: usize, now: u64) {
        let Fragments { parts, shares, .. } = self;
        parts.sweep(count, |_, part| {
            let is_over = now.saturating_sub(part.last) >= LIFE;
            if is_over {
                shares.give(part.group);
            }
            is_over
        });
    }
}
