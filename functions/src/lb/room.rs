//! Room in the table: what is forgotten in time, what goes first when it is full, and who has how much of the part
//! for fragments.
//!
//! A full table has room for a new connection as long as any of its connections is half-open or closed. The one
//! whose turn it is goes, that of the IP version that has more of them: in a flood each lives until as many new ones
//! have come as the table has half-open ones. What has no proof is half-open to its end, all in one line with the others:
//! a line of its own would be short when all others are answered, and a handshake would have no time in it. Each answer
//! that is noted sends it to the end of the line. Whose packet still waits has no entry yet, and cannot go.

use catena_packet::Packet;
use catena_state::{Engine, Fate, FlowMap, Intent, Mover, Shared as _, Tx, looks};

use crate::function::{Step, Try};
use crate::rewrite::Change;

use super::admission::{AddActive, Admit, AdmitFragments, Admitted, BringFragments, GoOver, Release, ReleaseFragments};
use super::balancer::{Event, Shared};
use super::connection::{Connection, Part};
use super::family::{Balance, Class, Tuple};
use super::side::{Known, Parts, Side};
use super::stages::{Asked, Datagram, Next, Of, Stage, Ticket, Want};

/// Whatever changes the table, and packets that are none of the balancer's; where the table is full, room is made.
#[inline(never)]
pub(super) fn finish_rare<E: Engine, F: Balance, G: Balance>(
    side: &mut Side<E, F>,
    other: &mut Side<E, G>,
    shared: &mut Shared<E>,
    tx: &mut Tx,
    packet: &mut Packet,
    want: &mut Want<E, F>,
    known: Known,
) -> Step {
    let step = side.finish_rare(shared, tx, packet, want, known);
    match want.stage {
        Stage::Full { place, lacks } if lacks && shared.borrow(tx) => {
            side.admit(shared, tx, packet, want, place, (Try::Last, None))
        }
        Stage::Full { place, .. } => match make_room(side, other, shared, tx) {
            Made::Nothing => step,
            Made::Some => side.admit(shared, tx, packet, want, place, (Try::Last, None)),
            Made::Of(release) => side.admit(shared, tx, packet, want, place, (Try::Last, Some(release))),
        },
        _ => step,
    }
}

/// Room that was made.
enum Made {
    Nothing,
    /// Some connections were over, and have left.
    Some,
    /// That of one that leaves for another.
    Of(Release),
}

/// Forget what is over, or else who goes first.
fn make_room<E: Engine, F: Balance, G: Balance>(
    side: &mut Side<E, F>,
    other: &mut Side<E, G>,
    shared: &mut Shared<E>,
    tx: &mut Tx,
) -> Made {
    let gone = [side.expire(shared, tx, looks::MOST), other.expire(shared, tx, looks::MOST)];
    if gone.iter().any(|gone| gone.connections > 0) {
        return Made::Some;
    }
    let is_ours = side.first_to_go(tx) >= other.first_to_go(tx);
    let evicted = if is_ours { side.evict(shared, tx) } else { other.evict(shared, tx) };
    evicted.map_or(Made::Nothing, Made::Of)
}

impl<E: Engine, F: Balance> Side<E, F> {
    /// Return how many connections go before any other: the half-open and the closed ones.
    fn first_to_go(&mut self, tx: &mut Tx) -> usize {
        self.connections.marked(tx)
    }

    /// Forget one of those that go first. Returns what says that it leaves, if there was one.
    fn evict(&mut self, shared: &mut Shared<E>, tx: &mut Tx) -> Option<Release> {
        let (_, mut gone) = self.connections.take_marked(tx)?;
        shared.note(tx, Event::Evicted);
        Some(shared.leaves::<F>(&mut gone))
    }

    /// Forget the connection of a ticket.
    pub(super) fn remove(&mut self, shared: &mut Shared<E>, tx: &mut Tx, ticket: &Ticket<E, F>) {
        if let Some(mut gone) = self.connections.remove(tx, ticket) {
            let release = shared.leaves::<F>(&mut gone);
            shared.admission.send(tx, release);
        }
    }

    /// Ask for the entry of the later fragments of the datagram that `packet` begins, one of those with these ends, and for room
    /// for it; where it has no identification, send it.
    #[expect(clippy::too_many_arguments, reason = "all that was learned of the packet on the way here")]
    pub(super) fn ask_fragments(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        packets: &Tuple<F::Address>,
        datagram: Datagram<F::Address>,
        which: Try,
    ) -> Step {
        let Some(ident) = F::fragment_ident(packet.data(), packet.layers().l3.into()) else {
            return datagram.leaving.leave::<E, F>(shared, tx, packet);
        };
        let tuple = Tuple { sport: ident as u16, dport: (ident >> 16) as u16, ..*packets };
        let class = Class::of_gate(tx.gate).fragment();
        want.ticket = self.parts.want(tx, F::key(&tuple, class), Intent::Create);
        want.of = Of::Part;
        let sender = F::sender(client(&tuple, class));
        let room = AdmitFragments { sender, is_answered: datagram.is_answered };
        let asked = shared.admission.want(tx, room);
        self.then(shared, tx, packet, want, Next::Fragments(asked, which, datagram))
    }

    /// Remember where the later fragments go of the datagram that `packet` begins, and send it. With no room they are
    /// dropped, and counted then, as if the first had been lost.
    pub(super) fn await_fragments(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        (asked, which): (Asked<E, AdmitFragments>, Try),
        datagram: Datagram<F::Address>,
    ) -> Step {
        let leaving = datagram.leaving;
        let has_room = shared.admission.got(tx, &asked);
        let (tuple, class) = F::tuple(&Parts::<E, F>::key(&want.ticket));
        let part = Part::new(Change::new::<F>((leaving.from.0, 0), (leaving.to.0, 0)), leaving.server, tx.now);
        let is_known = self.parts.get(tx, &want.ticket).map(|mut known| *known = part).is_some();
        let is_new = !is_known && has_room && self.parts.insert(tx, &want.ticket, part, part.end()).is_ok();
        let may_ask_again = !is_known && !has_room && which == Try::First;
        if may_ask_again && self.expire(shared, tx, looks::MOST).parts > 0 {
            return self.ask_fragments(shared, tx, packet, want, &tuple, datagram, Try::Last);
        }
        if has_room && !is_new {
            shared.admission.send(tx, ReleaseFragments { sender: F::sender(client(&tuple, class)) });
        }
        leaving.leave::<E, F>(shared, tx, packet)
    }

    /// Forget what is over of up to `most` connections, and as many datagrams in fragments, whose end may have come.
    pub(super) fn expire(&mut self, shared: &mut Shared<E>, tx: &mut Tx, most: usize) -> Gone {
        let mut gone = Gone::default();
        let Side { connections, parts, .. } = self;
        connections.expire(tx, tx.now, most, |tx, key, entry| {
            let end = entry.end(F::tuple(key).0.proto, &shared.timeouts);
            if end > tx.now {
                return Fate::Until(end);
            }
            let release = shared.leaves::<F>(&mut { *entry });
            shared.admission.send(tx, release);
            gone.connections += 1;
            Fate::Over
        });
        parts.expire(tx, tx.now, most, |tx, key, part| {
            if part.end() > tx.now {
                return Fate::Until(part.end());
            }
            shared.admission.send(tx, ReleaseFragments { sender: sender::<F>(key) });
            gone.parts += 1;
            Fate::Over
        });
        gone
    }

    /// Show a mover the table. Who takes a connection in has it on its part from now on, and who gave it has not.
    pub(super) fn objects(&mut self, shared: &mut Shared<E>, tx: &mut Tx, mover: &mut Mover) {
        let comes = mover.from().is_some();
        let (instance, admission) = (shared.instance, &mut shared.admission);
        mover.flows(tx, &mut self.connections, |tx, _, _| admission.send(tx, GoOver { instance, comes }));
        mover.flows(tx, &mut self.parts, |tx, key, _| match comes {
            true => admission.send(tx, BringFragments { sender: sender::<F>(key) }),
            false => admission.send(tx, ReleaseFragments { sender: sender::<F>(key) }),
        });
    }
}

/// How many have gone that were over.
#[derive(Clone, Copy, Default)]
pub(super) struct Gone {
    /// Connections.
    connections: usize,
    /// Datagrams in fragments.
    parts: usize,
}

impl<E: Engine> Shared<E> {
    /// Return what says that a connection leaves the table.
    pub(super) fn release<F: Balance>(&mut self, place: Option<u16>) -> Release {
        if let Some(place) = place {
            self.tell::<F>(place, -1);
        }
        Release { is_v6: F::IS_V6, place, instance: self.instance }
    }

    /// Take a connection that leaves the table off its server's count; returns what says that it leaves.
    pub(super) fn leaves<F: Balance>(&mut self, gone: &mut Connection<F::Address>) -> Release {
        self.release::<F>(gone.abandon().then_some(gone.place))
    }

    /// Hear whether a connection is let in, and tell others if it is.
    pub(super) fn let_in<F: Balance>(&mut self, tx: &mut Tx, asked: &Asked<E, Admit>) -> Admitted {
        let answer = self.admission.got(tx, asked);
        if let Admitted::To(place) = answer {
            self.tell::<F>(place, 1);
        }
        answer
    }

    /// Count one active connection more at the server at `place`, or one less.
    pub(super) fn add_active<F: Balance>(&mut self, tx: &mut Tx, place: u16, n: i64) {
        self.admission.send(tx, AddActive { is_v6: F::IS_V6, place, n });
        self.tell::<F>(place, n);
    }

    /// Tell other instances that so many connections more are active at the server at `place`.
    #[inline]
    fn tell<F: Balance>(&mut self, place: u16, n: i64) {
        if let Some(others) = &mut self.others {
            others.tell(AddActive { is_v6: F::IS_V6, place, n });
        }
    }
}

/// Return whose share of the room for fragments a datagram has.
fn sender<F: Balance>(key: &F::Key) -> [u64; 2] {
    let (tuple, class) = F::tuple(key);
    F::sender(client(&tuple, class))
}

/// Return the client's address.
fn client<A: Copy>(tuple: &Tuple<A>, class: Class) -> A {
    if class.is_back() { tuple.dst } else { tuple.src }
}
