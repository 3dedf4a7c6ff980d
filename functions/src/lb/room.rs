//! Room in the table: what is forgotten in time, what goes first when it is full, and who has how much of the part
//! for fragments.
//!
//! A full table has room for a new connection as long as any of its connections is half-open or closed. The one
//! whose turn it is goes, that of the IP version that has more of them: in a flood each lives until as many new ones
//! have come as the table has half-open ones. What has no proof is half-open to its end, all in one line with the others:
//! a line of its own would be short when all others are answered, and a handshake would have no time in it. Each answer
//! that is noted sends it to the end of the line. Whose packet still waits has no entry yet, and cannot go.

use catena_packet::Packet;
use catena_state::{Engine, Fate, FlowMap, Mover, Shared as _, Tx, looks};

use crate::function::Step;
use crate::rewrite::Change;

use super::admission::{AddActive, AdmitFragments, BringFragments, GoOver, Release, ReleaseFragments};
use super::balancer::{Event, Shared};
use super::connection::{Connection, State};
use super::family::{Balance, Class, Tuple};
use super::side::{Map, Side, other_way};
use super::stages::{Asked, Datagram, Next, Stage, Ticket, Try, Want};

/// Most connections that leave the table together.
pub(super) const MOST_GOING: usize = 64;

/// Whatever changes the table, and packets that are none of the balancer's; where the table is full, room is made.
#[inline(never)]
pub(super) fn finish_rare<E: Engine, F: Balance, G: Balance>(
    side: &mut Side<E, F>,
    other: &mut Side<E, G>,
    shared: &mut Shared<E>,
    tx: &mut Tx,
    packet: &mut Packet,
    want: &mut Want<E, F>,
) -> Step {
    let step = side.finish_rare(shared, tx, packet, want);
    match want.stage {
        Stage::Full(place) => match make_room(side, other, shared, tx) {
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
        self.maps[0].marked(tx)
    }

    /// Forget one of those that go first. Returns what says that it leaves, if there was one.
    fn evict(&mut self, shared: &mut Shared<E>, tx: &mut Tx) -> Option<Release> {
        let [out, ways_back] = &mut self.maps;
        let (key, mut gone) = out.take_marked(tx)?;
        shared.note(tx, Event::Evicted);
        Some(forget_way_back::<E, F>(ways_back, shared, tx, Going::of::<F>(&key, &mut gone)))
    }

    /// Forget the connection of a ticket.
    pub(super) fn remove(&mut self, shared: &mut Shared<E>, tx: &mut Tx, ticket: &Ticket<E, F>) {
        let [out, ways_back] = &mut self.maps;
        if let Some(mut gone) = out.remove(tx, ticket) {
            let going = Going::of::<F>(&Map::<E, F>::key(ticket), &mut gone);
            leave_table::<E, F>(ways_back, shared, tx, going);
        }
    }

    /// Ask for the entry of the later fragments of the datagram that `packet` begins, and for room for it; where it has no
    /// identification, send it.
    #[expect(clippy::too_many_arguments, reason = "all that was learned of the packet on the way here")]
    pub(super) fn ask_fragments(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        tuple: &Tuple<F::Address>,
        datagram: Datagram<F::Address>,
        which: Try,
    ) -> Step {
        let Some(ident) = F::fragment_ident(packet.data(), packet.layers().l3.into()) else {
            return datagram.leaving.leave::<E, F>(shared, tx, packet);
        };
        let key = Tuple { sport: ident as u16, dport: (ident >> 16) as u16, ..*tuple };
        let class = Class::of_gate(tx.gate).fragment();
        self.ask_for(tx, want, &key, class);
        let sender = F::sender(client(&key, class));
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
        let Datagram { leaving, place, .. } = datagram;
        let has_room = shared.admission.got(tx, &asked);
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let (rewrite, state) = (Change::new::<F>((leaving.from.0, 0), (leaving.to.0, 0)), State::new(State::QUIET));
        let mut entry = Connection { rewrite, due: 0, proof: 0, place, server: leaving.server, state };
        entry.note(0, tx.now, tuple.proto, class, &shared.timeouts);
        let entries = &mut self.maps[usize::from(class.is_back())];
        let is_known = entries.get(tx, &want.ticket).map(|mut known| *known = entry).is_some();
        let until = entry.end(tuple.proto, class, &shared.timeouts);
        let is_new = !is_known && has_room && entries.insert(tx, &want.ticket, entry, until).is_ok();
        let may_ask_again = !is_known && !has_room && which == Try::First;
        if may_ask_again && self.expire(shared, tx, looks::MOST).entries > 0 {
            return self.ask_fragments(shared, tx, packet, want, &tuple, datagram, Try::Last);
        }
        if has_room && !is_new {
            shared.admission.send(tx, ReleaseFragments { sender: F::sender(client(&tuple, class)) });
        }
        leaving.leave::<E, F>(shared, tx, packet)
    }

    /// Forget what is over of up to `most` entries of each way whose end may have come.
    pub(super) fn expire(&mut self, shared: &mut Shared<E>, tx: &mut Tx, most: usize) -> Gone {
        let mut gone = Gone::default();
        let mut left = most;
        let Side { maps: [out, ways_back], going, .. } = self;
        while left > 0 {
            let some = left.min(MOST_GOING);
            left -= some;
            let looked = out.expire(tx, tx.now, some, |tx, key, entry| {
                let fate = shared.fate::<F>(tx, key, entry);
                if matches!(fate, Fate::Over) {
                    gone.entries += 1;
                    if !F::tuple(key).1.is_fragment() {
                        going.push(Going::of::<F>(key, &mut { *entry }));
                    }
                }
                fate
            });
            gone.connections += going.len();
            if !going.is_empty() {
                leave_together::<E, F>(ways_back, shared, tx, going);
            }
            if looked < some {
                break;
            }
        }
        ways_back.expire(tx, tx.now, most, |tx, key, entry| {
            let fate = shared.fate::<F>(tx, key, entry);
            if matches!(fate, Fate::Over) {
                gone.entries += 1;
            }
            fate
        });
        gone
    }
}

impl<E: Engine, F: Balance> Side<E, F> {
    /// Show a mover the table. Who takes a connection in has it on its part from now on, and who gave it has not.
    pub(super) fn objects(&mut self, shared: &mut Shared<E>, tx: &mut Tx, mover: &mut Mover) {
        let comes = mover.from().is_some();
        let [out, ways_back] = &mut self.maps;
        mover.flows(tx, out, |tx, key, _| shared.goes_over::<F>(tx, key, comes));
        mover.flows(tx, ways_back, |tx, key, _| shared.goes_over::<F>(tx, key, comes));
    }
}

/// How many have gone that were over.
#[derive(Clone, Copy, Default)]
pub(super) struct Gone {
    /// Connections.
    connections: usize,
    /// Entries that nobody took out but their own end: of connections, of their ways back, of fragments.
    entries: usize,
}

/// A connection that leaves the table: its own entry is no longer there, or about to go.
pub(super) struct Going<K, A> {
    /// The key of its way back.
    way_back: K,
    /// Where its client sends to.
    service: (A, u16),
    /// Where it counts as active, if it still does.
    place: Option<u16>,
}

impl<K, A: Copy + Eq> Going<K, A> {
    /// Take a connection with this key off its server's count.
    fn of<F: Balance<Key = K, Address = A>>(key: &K, gone: &mut Connection<A>) -> Self {
        let tuple = F::tuple(key).0;
        let server = (gone.rewrite.address, gone.rewrite.port);
        let way_back = F::key(&other_way(&tuple, Class::FORWARD, server), Class::BACK);
        Going { way_back, service: (tuple.dst, tuple.dport), place: gone.abandon().then_some(gone.place) }
    }
}

/// Let connections leave whose ways back are anywhere: they are brought near together, and looked at then.
#[inline(never)]
fn leave_together<E: Engine, F: Balance>(
    ways_back: &mut Map<E, F>,
    shared: &mut Shared<E>,
    tx: &mut Tx,
    going: &mut Vec<Going<F::Key, F::Address>>,
) {
    ways_back.bring(going.iter().map(|one| one.way_back));
    going.drain(..).for_each(|one| leave_table::<E, F>(ways_back, shared, tx, one));
}

/// Take out the way back of a connection that goes, and give its room back.
fn leave_table<E: Engine, F: Balance>(
    ways_back: &mut Map<E, F>,
    shared: &mut Shared<E>,
    tx: &mut Tx,
    going: Going<F::Key, F::Address>,
) {
    let release = forget_way_back::<E, F>(ways_back, shared, tx, going);
    shared.admission.send(tx, release);
}

/// Take out the way back of a connection that goes, unless it is that of a younger connection by now. Returns what gives its room
/// back.
fn forget_way_back<E: Engine, F: Balance>(
    ways_back: &mut Map<E, F>,
    shared: &Shared<E>,
    tx: &mut Tx,
    Going { way_back, service, place }: Going<F::Key, F::Address>,
) -> Release {
    ways_back.forget(tx, way_back, |back| (back.rewrite.address, back.rewrite.port) == service);
    shared.release::<F>(place)
}

impl<E: Engine> Shared<E> {
    /// Return what says that a connection leaves the table.
    pub(super) fn release<F: Balance>(&self, place: Option<u16>) -> Release {
        Release { is_v6: F::IS_V6, place, instance: self.instance }
    }

    /// Note that an entry goes over to another instance, or comes from one.
    fn goes_over<F: Balance>(&mut self, tx: &mut Tx, key: &F::Key, comes: bool) {
        let (tuple, class) = F::tuple(key);
        let sender = F::sender(client(&tuple, class));
        match class {
            _ if class.is_fragment() && comes => self.admission.send(tx, BringFragments { sender }),
            _ if class.is_fragment() => self.admission.send(tx, ReleaseFragments { sender }),
            // Its way back goes with it.
            _ if class.is_back() => {}
            _ => self.admission.send(tx, GoOver { instance: self.instance, comes }),
        }
    }

    /// Count one active connection more at the server at `place`, or one less.
    pub(super) fn add_active<F: Balance>(&mut self, tx: &mut Tx, place: u16, n: i8) {
        self.admission.send(tx, AddActive { is_v6: F::IS_V6, place, n });
    }

    /// Return what becomes of an entry; a fragment's that is over gives its room back.
    #[inline]
    fn fate<F: Balance>(
        &mut self,
        tx: &mut Tx,
        key: &F::Key,
        entry: &Connection<F::Address>,
    ) -> Fate<Connection<F::Address>> {
        let (tuple, class) = F::tuple(key);
        let end = entry.end(tuple.proto, class, &self.timeouts);
        if end > tx.now {
            return Fate::Until(end);
        }
        if class.is_fragment() {
            self.admission.send(tx, ReleaseFragments { sender: F::sender(client(&tuple, class)) });
        }
        Fate::Over
    }
}

/// Return the client's address.
fn client<A: Copy>(tuple: &Tuple<A>, class: Class) -> A {
    if class.is_back() { tuple.dst } else { tuple.src }
}
