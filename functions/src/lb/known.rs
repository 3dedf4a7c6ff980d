//! What happens to a connection that has an entry, and to later fragments.

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_packet::wire::tcp::flag::SYN;
use catena_state::{Engine, FlowMap, Tx, taken};

use crate::function::{Step, Try};

use super::balancer::{Event, NO_BACKEND, NO_FIRST, Shared};
use super::connection::{FIRST_FRAGMENT, State};
use super::family::Balance;
use super::proof::{News, proves};
use super::side::{Leaving, Map, Parts, Side, way_back};
use super::stages::{Datagram, Want};

impl<E: Engine, F: Balance> Side<E, F> {
    /// A packet of a connection that something happens to, or of none.
    pub(super) fn known(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Step {
        let (key, is_back) = (Map::<E, F>::key(&want.ticket), tx.gate == 1);
        let tuple = F::tuple(&key).0;
        let Some(mut own) = self.connections.get(tx, &want.ticket) else {
            return self.unknown(shared, tx, packet, want);
        };
        if own.is_over(tx.now, tuple.proto, &shared.timeouts) {
            // Nobody has come by to forget it.
            drop(own);
            self.remove(shared, tx, &want.ticket);
            return self.unknown(shared, tx, packet, want);
        }
        let moves = self.servers.must_move(own.place);
        if !is_back && (moves || want.special & SYN != 0 && own.state.has(State::CLOSED)) {
            // A false RST and SYN must not take a connection from its server, which knows what to do with a SYN of
            // one that lives (RFC 5961 §4).
            let is_kept = own.state.has(State::CUT) && self.servers.is_up(own.place);
            if !is_kept && self.servers.none_up() {
                let is_abandoned = moves && own.abandon();
                let own = taken(own);
                if is_abandoned {
                    shared.note(tx, Event::Moved);
                    shared.add_active::<F>(tx, own.place, -1);
                    self.connections.mark(tx, &want.ticket, true);
                    self.connections.sooner(tx, &want.ticket, own.end(tuple.proto, &shared.timeouts));
                }
                return Step::Done(Verdict::Drop(NO_BACKEND));
            }
            if !is_kept || !own.state.has(State::SETTLED) {
                let place = is_kept.then_some(own.place);
                if moves && own.state.has(State::COUNTED) {
                    shared.note(tx, Event::Moved);
                }
                drop(own);
                // Its room is for the connection that takes its place, and for no other.
                let mut gone = self.connections.remove(tx, &want.ticket);
                let release = gone.as_mut().map(|gone| shared.leaves::<F>(gone));
                return self.admit(shared, tx, packet, want, place, (Try::First, release));
            }
        }
        let is_first = want.special & FIRST_FRAGMENT != 0;
        if is_first {
            own.due = 0;
        }
        let before = own.state;
        let news = News::read(&own, packet, want.special, tuple.proto, is_back);
        let is_noted = own.note(news.bits, tx.now, tuple.proto, &shared.timeouts);
        if news.bits & State::AWAITS != 0 {
            own.proof = news.proof;
        }
        if news.bits & State::ANEW != 0 {
            shared.note(tx, Event::Opened);
        }
        if own.released() {
            shared.add_active::<F>(tx, own.place, -1);
        } else if own.revived() {
            shared.add_active::<F>(tx, own.place, 1);
        }
        let own = taken(own);
        if own.state != before {
            self.connections.sooner(tx, &want.ticket, own.end(tuple.proto, &shared.timeouts));
        }
        let goes_first = own.state.goes_first();
        if is_back && is_noted && !proves(tuple.proto) {
            // The server's answer to what has no proof: to the end of the line.
            self.connections.mark(tx, &want.ticket, false);
            self.connections.mark(tx, &want.ticket, goes_first);
        } else if before.goes_first() != goes_first {
            self.connections.mark(tx, &want.ticket, goes_first);
        }
        let (service, server) = ((tuple.dst, tuple.dport), (own.rewrite.address, own.rewrite.port));
        let (from, to) = if is_back { (server, service) } else { (service, server) };
        let leaving = Leaving { from, to, server: own.server };
        if is_first {
            let is_answered = own.state.is_answered(tuple.proto);
            let datagram = Datagram { leaving, is_answered };
            let packets = if is_back { F::tuple(&way_back::<F>(&key, server)).0 } else { tuple };
            return self.ask_fragments(shared, tx, packet, want, &packets, datagram, Try::First);
        }
        leaving.leave::<E, F>(shared, tx, packet)
    }

    /// A later fragment.
    pub(super) fn part(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Step {
        let Some(mut part) = self.parts.get(tx, &want.ticket) else {
            let tuple = F::tuple(&Parts::<E, F>::key(&want.ticket)).0;
            let is_ours = tx.gate != 1 && self.servers.serves_address(tuple.dst);
            return Step::Done(if is_ours { Verdict::Drop(NO_FIRST) } else { Verdict::Gate(tx.gate) });
        };
        part.note(tx.now);
        let part = taken(part);
        Step::Done(shared.send::<F>(tx, packet, part.server, &part.rewrite))
    }
}
