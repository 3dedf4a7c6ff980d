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
use super::side::{Side, Want, forget_way_back, rewrite};

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
    let step = side.finish_rare(shared, at, packet, want);
    if step != Step::Done(Verdict::Drop(TABLE_FULL)) || shared.connections < shared.most {
        return step;
    }
    let due = shared.looks.due(at.now);
    side.tidy(shared, at.tx, at.now, due);
    other.tidy(shared, at.tx, at.now, due);
    if shared.connections >= shared.most {
        let has_gone =
            if side.first_to_go() >= other.first_to_go() { side.evict(shared, at) } else { other.evict(shared, at) };
        if !has_gone {
            return step;
        }
    }
    side.finish_rare(shared, at, packet, want)
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
        forget_way_back::<E, F>(ways_back, at.tx, &tuple, &gone.rewrite);
        shared.connections -= 1;
        shared.evicted += 1;
        if gone.abandon() {
            self.servers.release(at.tx, gone.place);
        }
        true
    }

    /// Remember where the later fragments of the datagram go that `packet`, already rewritten, began. With no room
    /// they are dropped, and counted then, as if the first had been lost.
    #[expect(clippy::too_many_arguments, reason = "all that was learned of the packet on the way here")]
    pub(super) fn await_fragments(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &Packet,
        tuple: Tuple<F::Address>,
        class: Class,
        address: F::Address,
        like: Connection<F::Address>,
    ) {
        let Some(ident) = F::ident(packet.data(), &packet.layers()) else { return };
        let was = if class.is_back() { tuple.src } else { tuple.dst };
        let key = Tuple { sport: ident as u16, dport: (ident >> 16) as u16, ..tuple };
        let rewrite = rewrite::<F>((was, 0), (address, 0));
        let mut entry = Connection { rewrite, due: 0, state: State::new(State::QUIET), ..like };
        entry.note(0, at.now, tuple.proto, class.fragment(), &shared.timeouts);
        let way = usize::from(class.is_back());
        let ticket = self.maps[way].want(at.tx, F::key(&key, class.fragment()));
        if let Some(known) = self.maps[way].get(at.tx, &ticket) {
            *known = entry;
            return;
        }
        let group = shared.shares.group(F::sender(client(&tuple, class)));
        let is_answered = like.state.is_answered(tuple.proto);
        let mut has_room = shared.take_fragment(group, is_answered);
        if !has_room {
            let due = shared.looks.due(at.now);
            self.tidy(shared, at.tx, at.now, due);
            has_room = shared.take_fragment(group, is_answered);
        }
        if has_room && self.maps[way].insert(at.tx, &ticket, entry).is_err() {
            shared.give_fragment(group);
        }
    }

    /// Forget what is over, among the next `count` entries.
    pub(super) fn tidy(&mut self, shared: &mut Shared<E>, tx: E::Tx, now: u64, count: usize) {
        let Side { maps: [out, ways_back], servers } = self;
        out.sweep(count, |key, entry| {
            let over = shared.forgets::<F>(key, entry, now);
            let (tuple, class) = F::tuple(key);
            if over && !class.is_fragment() {
                shared.connections -= 1;
                forget_way_back::<E, F>(ways_back, tx, &tuple, &entry.rewrite);
                if entry.abandon() {
                    servers.release(tx, entry.place);
                }
            }
            over
        });
        ways_back.sweep(count, |key, entry| shared.forgets::<F>(key, entry, now));
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
