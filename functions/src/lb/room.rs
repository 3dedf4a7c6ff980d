//! Room in the table: what is forgotten in time, what goes first when it is full, and who has how much of the part
//! for fragments.
//!
//! A full table has room for a new connection as long as any of its connections is half-open or closed. The one
//! whose turn it is goes, that of the IP version that has more of them: in a flood each lives until as many new ones
//! have come as the table has half-open ones. What has no proof is half-open to its end, all in one line with the others:
//! a line of its own would be short when all others are answered, and a handshake would have no time in it. Each answer
//! that is noted sends it to the end of the line.

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_state::{Engine, FlowMap};

use crate::function::{At, Step};

use super::balancer::{MOST_FRAGMENTED, Shared, TABLE_FULL};
use super::connection::{Connection, State};
use super::family::{Class, Family, Tuple};
use super::side::{Leaving, Map, Side, Stage, Want, forget_way_back, rewrite};

/// Whatever changes the table, and packets that are none of the balancer's; where the table is full, room is made.
#[inline(never)]
pub(super) fn finish_rare<E: Engine, F: Family, G: Family>(
    side: &mut Side<E, F>,
    other: &mut Side<E, G>,
    shared: &mut Shared<E>,
    at: At<E::Tx>,
    packet: &mut Packet,
    want: &mut Want<E, F>,
) -> Step {
    let full = Step::Done(Verdict::Drop(TABLE_FULL));
    let mut step = side.finish_rare(shared, at, packet, want);
    if step != full {
        return step;
    }
    if want.seeks_room() && shared.connections >= shared.most && make_room(side, other, shared, at) {
        step = side.finish_rare(shared, at, packet, want);
    }
    if step == full {
        side.refuse(at, want);
    }
    step
}

/// Forget what is over, or else who goes first. Returns whether there is room now.
fn make_room<E: Engine, F: Family, G: Family>(
    side: &mut Side<E, F>,
    other: &mut Side<E, G>,
    shared: &mut Shared<E>,
    at: At<E::Tx>,
) -> bool {
    let due = shared.looks.due(at.now);
    side.tidy(shared, at.tx, at.now, due);
    other.tidy(shared, at.tx, at.now, due);
    if shared.connections < shared.most {
        return true;
    }
    if side.first_to_go() >= other.first_to_go() { side.evict(shared, at) } else { other.evict(shared, at) }
}

impl<E: Engine, F: Family> Side<E, F> {
    /// Return how many connections go before any other: the half-open and the closed ones.
    fn first_to_go(&self) -> usize {
        self.maps[0].marked()
    }

    /// Forget one of those that go first. Returns whether there was one.
    fn evict(&mut self, shared: &mut Shared<E>, at: At<E::Tx>) -> bool {
        let [out, ways_back] = &mut self.maps;
        let Some((key, mut gone)) = out.take_marked(at.tx) else { return false };
        let (tuple, _) = F::tuple(&key);
        forget_way_back::<E, F>(ways_back, at.tx, &tuple, (gone.rewrite.address, gone.rewrite.port));
        shared.connections -= 1;
        shared.evicted += 1;
        if gone.abandon() {
            self.servers.release(at.tx, gone.place);
        }
        true
    }

    /// Ask for the entry of the later fragments of the datagram that `packet` begins; where it has no identification, send
    /// it. Their connection is known by its place, and whether its server has answered.
    #[expect(clippy::too_many_arguments, reason = "all that was learned of the packet on the way here")]
    pub(super) fn ask_fragments(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        tuple: &Tuple<F::Address>,
        leaving: Leaving<F::Address>,
        (place, is_answered): (u16, bool),
    ) -> Step {
        let Some(ident) = F::ident(packet.data(), &packet.layers()) else {
            return leaving.leave::<E, F>(shared, at, packet);
        };
        let key = Tuple { sport: ident as u16, dport: (ident >> 16) as u16, ..*tuple };
        let Leaving { from: (_, from), to: (address, port), server } = leaving;
        let stage = Stage::Fragments { place, server, port, from, address, is_answered };
        self.ask(at.tx, want, &key, Class::of_gate(at.gate).fragment(), stage)
    }

    /// Remember where the later fragments go of the datagram that `packet` begins, and send it. With no room they are
    /// dropped, and counted then, as if the first had been lost.
    #[expect(clippy::too_many_arguments, reason = "all that was learned of the packet in the steps before")]
    pub(super) fn await_fragments(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        server: u16,
        from: u16,
        to: (F::Address, u16),
        (place, is_answered): (u16, bool),
    ) -> Step {
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let was = if class.is_back() { tuple.src } else { tuple.dst };
        let (rewrite, state) = (rewrite::<F>((was, 0), (to.0, 0)), State::new(State::QUIET));
        let mut entry = Connection { rewrite, due: 0, proof: 0, place, server, state };
        entry.note(0, at.now, tuple.proto, class, &shared.timeouts);
        let way = usize::from(class.is_back());
        if let Some(known) = self.maps[way].get(at.tx, &want.ticket) {
            *known = entry;
        } else {
            let group = shared.shares.group(F::sender(client(&tuple, class)));
            let mut has_room = shared.take_fragment(group, is_answered);
            if !has_room {
                let due = shared.looks.due(at.now);
                self.tidy(shared, at.tx, at.now, due);
                has_room = shared.take_fragment(group, is_answered);
            }
            if has_room && self.maps[way].insert(at.tx, &want.ticket, entry).is_err() {
                shared.give_fragment(group);
            }
        }
        Leaving { from: (was, from), to, server }.leave::<E, F>(shared, at, packet)
    }

    /// Forget what is over, among the next `count` entries.
    pub(super) fn tidy(&mut self, shared: &mut Shared<E>, tx: E::Tx, now: u64, count: usize) {
        let Side { maps: [out, ways_back], servers } = self;
        out.sweep(count, |key, entry| {
            let over = shared.forgets::<F>(key, entry, now);
            let (tuple, class) = F::tuple(key);
            if over && !class.is_fragment() {
                shared.connections -= 1;
                forget_way_back::<E, F>(ways_back, tx, &tuple, (entry.rewrite.address, entry.rewrite.port));
                if entry.abandon() {
                    servers.release(tx, entry.place);
                }
            }
            over
        });
        ways_back.sweep(count, |key, entry| shared.forgets::<F>(key, entry, now));
    }
}

impl<E: Engine, F: Family> Want<E, F> {
    /// Return whether the packet's connection needs room in the table, and has changed nothing there yet.
    fn seeks_room(&self) -> bool {
        matches!(self.stage, Stage::Own | Stage::Placed(_))
    }
}

impl<E: Engine> Shared<E> {
    /// Take room for a datagram's fragments; clients whom no server has answered get no more than half of it all.
    fn take_fragment(&mut self, group: u16, is_answered: bool) -> bool {
        let most = if is_answered { MOST_FRAGMENTED } else { MOST_FRAGMENTED / 2 };
        let takes = self.fragmented < most && self.shares.take(group);
        if takes {
            self.fragmented += 1;
        }
        takes
    }

    fn give_fragment(&mut self, group: u16) {
        self.fragmented -= 1;
        self.shares.give(group);
    }

    /// Return whether an entry is over; then a fragment's gives its room back.
    #[inline]
    fn forgets<F: Family>(&mut self, key: &F::Key, entry: &Connection<F::Address>, now: u64) -> bool {
        if now <= entry.due {
            return false;
        }
        let (tuple, class) = F::tuple(key);
        let over = entry.is_over(now, tuple.proto, class, &self.timeouts);
        if over && class.is_fragment() {
            self.give_fragment(self.shares.group(F::sender(client(&tuple, class))));
        }
        over
    }
}

/// Return the client's address.
fn client<A: Copy>(tuple: &Tuple<A>, class: Class) -> A {
    if class.is_back() { tuple.dst } else { tuple.src }
}
