//! What happens to a connection that has entries: each of its two directions learns what a packet shows.

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_packet::wire::tcp::flag::SYN;
use catena_state::{Engine, FlowMap, Tx, taken};

use crate::function::Step;

use super::balancer::{Event, NO_BACKEND, Shared};
use super::connection::{FIRST_FRAGMENT, State};
use super::family::{Balance, Class};
use super::proof::{News, proves};
use super::side::{Leaving, Map, Side, other_way, way};
use super::stages::{Datagram, Stage, Try, Want};

impl<E: Engine, F: Balance> Side<E, F> {
    /// A packet of a connection that something happens to.
    pub(super) fn known(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Step {
        let pass = Step::Done(Verdict::Gate(tx.gate));
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let Some(mut own) = self.maps[way(tx.gate)].get(tx, &want.ticket) else { return pass };
        if class.is_fragment() {
            own.note(0, tx.now, tuple.proto, class, &shared.timeouts);
            return Step::Done(shared.send::<F>(tx, packet, own.server, &own.rewrite));
        }
        if own.is_over(tx.now, tuple.proto, class, &shared.timeouts) {
            // Nobody has come by to forget it. The other direction may be forgotten already: it does not live again alone.
            drop(own);
            match class.is_back() {
                true => _ = self.maps[1].remove(tx, &want.ticket),
                false => self.remove(shared, tx, &want.ticket),
            }
            return self.unknown(shared, tx, packet, want);
        }
        let moves = self.servers.must_move(own.place);
        if class == Class::FORWARD && (moves || want.special & SYN != 0 && own.state.has(State::CLOSED)) {
            // A false RST and SYN must not take a connection from its server, which knows what to do with a SYN of
            // one that lives (RFC 5961 §4).
            let is_kept = own.state.has(State::CUT) && self.servers.is_up(own.place);
            if !is_kept && self.servers.none_up() {
                let is_abandoned = moves && own.abandon();
                let own = taken(own);
                if is_abandoned {
                    shared.note(tx, Event::Moved);
                    shared.add_active::<F>(tx, own.place, -1);
                    self.maps[0].mark(tx, &want.ticket, true);
                    self.maps[0].sooner(tx, &want.ticket, own.end(tuple.proto, class, &shared.timeouts));
                }
                return Step::Done(Verdict::Drop(NO_BACKEND));
            }
            if !is_kept || !own.state.has(State::SETTLED) {
                let place = is_kept.then_some(own.place);
                if moves && own.state.has(State::COUNTED) {
                    shared.note(tx, Event::Moved);
                }
                drop(own);
                // Its room is free for the connection that takes its place.
                self.remove(shared, tx, &want.ticket);
                return self.admit(shared, tx, packet, want, place, (Try::First, None));
            }
        }
        if want.special & FIRST_FRAGMENT != 0 {
            own.due = 0;
        }
        let before = own.state;
        let news = News::read(&own, packet, want.special, tuple.proto, class);
        let touched = own.note(news.here(), tx.now, tuple.proto, class, &shared.timeouts);
        if own.released() {
            shared.add_active::<F>(tx, own.place, -1);
        }
        let own = taken(own);
        if own.state != before {
            self.maps[way(tx.gate)].sooner(tx, &want.ticket, own.end(tuple.proto, class, &shared.timeouts));
        }
        let goes_first = own.state.goes_first();
        if !class.is_back() && before.goes_first() != goes_first {
            self.maps[0].mark(tx, &want.ticket, goes_first);
        }
        if !touched && want.special & FIRST_FRAGMENT == 0 && news.there() == 0 {
            return Step::Done(shared.send::<F>(tx, packet, own.server, &own.rewrite));
        }
        let (address, port) = if class.is_back() { (tuple.src, tuple.sport) } else { (tuple.dst, tuple.dport) };
        let bits = own.state.seen_from_there() | news.there();
        want.stage = Stage::Other { bits, proof: news.proof, server: own.server, port, address };
        let to = (own.rewrite.address, own.rewrite.port);
        self.ask_for(tx, want, &other_way(&tuple, class, to), class.other_way());
        Step::Again
    }

    /// Let the entry of the other direction know of a packet, and send it on: it leaves the address and port that `was` its
    /// own on the side that is rewritten.
    #[expect(clippy::too_many_arguments, reason = "all that was learned of the packet in the step before")]
    pub(super) fn tell_other(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        news: News,
        server: u16,
        was: (F::Address, u16),
    ) -> Step {
        let (there, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let to = if class.is_back() { (there.src, there.sport) } else { (there.dst, there.dport) };
        let leaving = Leaving { from: was, to, server };
        let Some(mut other) = self.maps[1 - way(tx.gate)].get(tx, &want.ticket) else {
            return leaving.leave::<E, F>(shared, tx, packet);
        };
        // Another connection of the same client may have taken its place.
        if (other.rewrite.address, other.rewrite.port) != was {
            return leaving.leave::<E, F>(shared, tx, packet);
        }
        let before = other.state.goes_first();
        // Both become due at once, so that neither is forgotten while the other is used.
        other.due = 0;
        other.note(news.bits, tx.now, there.proto, class, &shared.timeouts);
        if news.bits & State::AWAITS != 0 {
            other.proof = news.proof;
        }
        if news.bits & State::ANEW != 0 {
            shared.note(tx, Event::Opened);
        }
        if other.released() {
            shared.add_active::<F>(tx, other.place, -1);
        } else if !class.is_back() && other.revived() {
            shared.add_active::<F>(tx, other.place, 1);
        }
        let other = taken(other);
        self.maps[1 - way(tx.gate)].sooner(tx, &want.ticket, other.end(there.proto, class, &shared.timeouts));
        let goes_first = other.state.goes_first();
        if !class.is_back() && (goes_first != before || !proves(there.proto)) {
            // The server's answer to what has no proof: to the end of the line.
            self.maps[0].mark(tx, &want.ticket, false);
            self.maps[0].mark(tx, &want.ticket, goes_first);
        }
        if want.special & FIRST_FRAGMENT != 0 {
            let tuple = other_way(&there, class, was);
            let is_answered = other.state.is_answered(there.proto);
            let datagram = Datagram { leaving, place: other.place, is_answered };
            return self.ask_fragments(shared, tx, packet, want, &tuple, datagram, Try::First);
        }
        leaving.leave::<E, F>(shared, tx, packet)
    }
}
