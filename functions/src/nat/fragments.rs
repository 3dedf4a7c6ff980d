//! Later fragments follow their first: what became of the first, for a short while (RFC 4787 §11).
//!
//! RFC 4787 REQ-14 asks a NAT to handle fragments in any order. Fragments in order are; later ones that come before
//! their first are dropped and counted, so that nothing is ever held back, and nobody can fill what would hold it.

use catena_packet::wire::{Layers, checksum, vlan};
use catena_state::{Access, Declaration, Engine, FlowMap, Intent, Mover, NoMemory, Plain, Scope, Tx};

use super::family::{Host, Translate};
use super::identifications::Ident;
use super::plan::{At, First, Kind, Next, Used};
use super::reasons::{LOST_FIRST, UNTRANSLATABLE};
use super::translate::{BACK, Napt, OUT, drop};
use crate::fair_map::{self, FairMap, Grouped, Place};
use crate::family::AddressOf;
use crate::function::{Step, Try};
use crate::rewrite::{self, Side};
use crate::shares::Taken;

/// By addresses and identification.
pub const FRAGMENTS: Declaration =
    Declaration::flow_map("fragments", "what became of a first one", Scope::Connection, Access::ReadMostly);

/// By inside host, in both directions: whatever is sent to a host takes its part only.
pub const FRAGMENT_SHARES: Declaration =
    Declaration::shared("shares of fragments", "who has how many datagrams", Scope::Global, Access::ReadWrite);

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

impl<A: Plain> Grouped for Part<A> {
    fn group(&self) -> u16 {
        self.group
    }
}

/// The datagrams whose first fragment was translated.
pub struct Fragments<E: Engine, F: Translate>(FairMap<E, F::Pair, Part<F::Address>>);

/// The promise of a datagram's fate.
pub type Ticket<E, F> = fair_map::Ticket<E, <F as Translate>::Pair, Part<AddressOf<F>>>;
/// The promise of a place for it.
pub type NewPart<E, F> = Place<E, <F as Translate>::Pair, Part<AddressOf<F>>>;

/// What became of a datagram: an address another, and its identification a new one, if it got one.
pub type Became<F> = ((AddressOf<F>, AddressOf<F>), Option<u32>);

impl<E: Engine, F: Translate> Fragments<E, F> {
    /// Make none.
    ///
    /// # Errors
    /// [`NoMemory`] for what may be remembered.
    pub fn new(engine: &mut E) -> Result<Self, NoMemory> {
        let objects = [&FRAGMENTS.part(F::PART), &FRAGMENT_SHARES.part(F::PART)];
        FairMap::new(engine, objects, |_| MOST).map(Fragments)
    }

    /// Show a mover what is remembered.
    pub fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        self.0.objects(tx, mover);
    }

    /// Return the key of the datagram that a fragment is part of. What NAT translates has protocols below 128.
    pub fn key(frame: &[u8], layers: &Layers, gate: u16) -> Option<F::Pair> {
        let l3 = usize::from(layers.l3);
        let [src, dst] = F::addresses(frame, l3)?;
        let (ident, vlan) = (u64::from(F::fragment_ident(frame, l3)?), u64::from(vlan::of(frame, layers)?));
        let (proto, gate) = (u64::from(layers.proto & 0x7f), u64::from(gate.min(1)));
        Some(F::pair(src, dst, ident | proto << 32 | gate << 39 | vlan << 40))
    }

    /// Ask for a datagram's fate.
    pub fn want(&mut self, tx: &mut Tx, key: F::Pair) -> Ticket<E, F> {
        self.0.entries.want(tx, key, Intent::Read)
    }

    /// Ask for a place for the fate of a datagram that an inside host sends or gets.
    pub fn want_first(&mut self, tx: &mut Tx, key: F::Pair, inside: Host) -> NewPart<E, F> {
        self.0.want_place(tx, key, inside.words())
    }

    /// Return the fate of a datagram, if its first fragment came within the last seconds.
    pub fn get(&mut self, tx: &mut Tx, ticket: &Ticket<E, F>) -> Option<Part<F::Address>> {
        let now = tx.now;
        self.0.entries.read(tx, ticket).copied().filter(|part| now.saturating_sub(part.last) < LIFE)
    }

    /// Return whose room there is for the fate of a datagram.
    ///
    /// # Errors
    /// Why there is none.
    pub fn room(&mut self, tx: &mut Tx, first: &NewPart<E, F>) -> Result<u16, Taken> {
        self.0.room(tx, first)
    }

    /// Give the room back for the fate of a datagram whose first fragment was dropped.
    pub fn give_up(&mut self, tx: &mut Tx, group: u16) {
        self.0.give_up(tx, group);
    }

    /// Remember that an address of a datagram's first fragment became another, and its identification `ident` if it got a new
    /// one. Where there is no room the later fragments are dropped, and counted, as if the first had been lost.
    pub fn remember(
        &mut self,
        tx: &mut Tx,
        first: &NewPart<E, F>,
        room: Result<u16, Taken>,
        ((from, address), ident): Became<F>,
    ) {
        let now = tx.now;
        let sum = checksum::add(!F::sum(from), F::sum(address));
        let _ = self
            .0
            .put(tx, first, room, |group| (Part { address, sum, ident, group, last: now }, now.saturating_add(LIFE)));
    }

    /// Look for what is over, before anything is refused; returns whether that is due.
    pub fn make_room(&mut self, tx: &mut Tx) -> bool {
        let now = tx.now;
        let due = self.0.entries.owed(tx, now);
        self.expire(tx, due);
        due > 0
    }

    /// Look at up to `most` datagrams whose end may have come, and forget the old ones.
    pub fn expire(&mut self, tx: &mut Tx, most: usize) {
        let now = tx.now;
        self.0.expire(tx, now, most, |part| part.last.saturating_add(LIFE));
    }
}

impl<E: Engine, F: Translate> Napt<E, F> {
    /// A later fragment, in either direction: what became of its first is asked for.
    pub(super) fn later(&mut self, at: &mut At<'_, E, F>) -> Step {
        let layers = at.packet.layers();
        let side = if at.tx.gate == 0 { Side::Source } else { Side::Destination };
        match Fragments::<E, F>::key(at.packet.data(), &layers, at.tx.gate) {
            Some(key) => {
                let part = self.fragments.want(at.tx, key);
                self.then(at, Next::Part { part, side })
            }
            None => drop(LOST_FIRST),
        }
    }

    /// With what became of its first.
    pub(super) fn part(&mut self, at: &mut At<'_, E, F>, part: &Ticket<E, F>, side: Side) -> Step {
        let Some(part) = self.fragments.get(at.tx, part) else { return drop(LOST_FIRST) };
        let layers = at.packet.layers();
        if !rewrite::address::<F>(at.packet.data_mut(), &layers, side, part.address, part.sum) {
            return drop(UNTRANSLATABLE);
        }
        if let Some(ident) = part.ident {
            F::set_ident(at.packet.data_mut(), usize::from(layers.l3), ident);
        }
        self.count(at.tx, &layers, 1);
        Step::Done(if side == Side::Source { OUT } else { BACK })
    }

    /// Return a first fragment, in either direction, as the later ones of its datagram find it.
    pub(super) fn first_of(at: &At<'_, E, F>, used: Used<F>, ident: Ident<E>) -> Option<First<E, F>> {
        let key = Fragments::<E, F>::key(at.packet.data(), &at.packet.layers(), at.tx.gate)?;
        Some(First { key, used, ident })
    }

    /// A place is asked for, for what becomes of its datagram.
    pub(super) fn ask_first(&mut self, at: &mut At<'_, E, F>, first: First<E, F>) -> Step {
        self.want_first(at, first, Try::First)
    }

    fn want_first(&mut self, at: &mut At<'_, E, F>, first: First<E, F>, which: Try) -> Step {
        let place = self.fragments.want_first(at.tx, first.key, F::host_of(first.used.inside));
        self.then(at, Next::First { first, place, which })
    }

    /// With that place.
    pub(super) fn first(
        &mut self,
        at: &mut At<'_, E, F>,
        first: First<E, F>,
        place: &NewPart<E, F>,
        which: Try,
    ) -> Step {
        let ident = self.ident(at.tx, first.ident);
        let room = self.fragments.room(at.tx, place);
        if room.is_err() && which == Try::First && self.fragments.make_room(at.tx) {
            let ident = ident.map_or(Ident::Kept, Ident::New);
            return self.want_first(at, First { ident, ..first }, Try::Last);
        }
        let Some(became) = Self::rewrite_first(at, &first.used, ident) else {
            room.into_iter().for_each(|group| self.fragments.give_up(at.tx, group));
            return drop(UNTRANSLATABLE);
        };
        self.fragments.remember(at.tx, place, room, became);
        self.count(at.tx, &at.packet.layers(), 1);
        Step::Done(if at.tx.gate == 0 { OUT } else { BACK })
    }

    /// Rewrite a first fragment, in either direction. Returns what became of its datagram.
    fn rewrite_first(at: &mut At<'_, E, F>, used: &Used<F>, ident: Option<u32>) -> Option<Became<F>> {
        let (inside, _, _) = F::parts(used.inside);
        if at.tx.gate == 0 {
            let ident = Self::rewrite_out(at.packet, Kind::FirstFragment, &used.change, ident)?;
            return Some(((inside, used.change.address), ident));
        }
        // Its source stays: two hosts outside are told apart by it, and one answers for its identifications.
        Self::rewrite_back(at.packet, Kind::FirstFragment, used)?;
        Some(((used.change.address, inside), None))
    }
}
