//! The function: it watches who is asked for a connection, and what comes of that.

use catena_dataplane::Reason;
use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_packet::wire::tcp::flag::{ACK, RST, SYN};
use catena_packet::wire::{Layers, destination_address, ports, source_address, tcp};
use catena_state::value::{Add, Counts, Get};
use catena_state::{
    Access, Declaration, Engine, Fate, FlowMap, Intent, Mover, NoMemory, Plain, Scope, Shared, SharedMap, Tx, taken,
};

use super::Settings;
use super::hosts::{Ask, FOUND, Source, Tell, UNWATCHED, Walk};
use crate::function::{Function, Step, most_over};

pub(super) const SOURCES: Declaration =
    Declaration::shared_map("sources", "the likelihood of being a scanner", Scope::Source, Access::ReadWrite);
pub(super) const CONTACTS: Declaration =
    Declaration::flow_map("contacts", "first connections and when they began", Scope::HostPair, Access::ReadWrite);
pub(super) const LOST: Declaration =
    Declaration::shared("lost contacts", "first connections that found no place", Scope::Global, Access::WriteMostly);

const SCANS: Reason = Reason(0);

/// A source and a destination.
type Pair = [u64; 5];

/// The first connection of a source to a destination.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Contact {
    /// When it was asked for; once its outcome is known, when that was. In ns since 1970.
    since: u64,
    /// Source and destination port.
    ports: (u16, u16),
    /// Whether its outcome is not known yet.
    is_open: bool,
}

impl Contact {
    /// Return when it is over, by how long an outcome is waited for, and how long it is known.
    fn end(&self, [timeout, memory]: [u64; 2]) -> u64 {
        self.since.saturating_add(if self.is_open { timeout } else { memory })
    }
}

type Contacts<E> = <E as Engine>::FlowMap<Pair, Contact>;
type Ticket<E> = <Contacts<E> as FlowMap<Pair, Contact>>::Ticket;
type Sources<E> = <E as Engine>::SharedMap<Source, Walk>;
type Asked<E> = <Sources<E> as SharedMap<Source, Walk>>::Ticket<Ask>;

/// What a packet is.
pub enum Plan<E: Engine> {
    /// One that says nothing.
    Other,
    /// A new connection.
    Attempt(Ticket<E>, Asked<E>),
    /// An answer to one, and whether it accepts.
    Answer(Ticket<E>, bool),
}

copied!(Plan<E: Engine>);

/// The function, on any state engine.
pub struct PortScan<E: Engine> {
    sources: Sources<E>,
    contacts: Contacts<E>,
    /// One: first connections that found no place.
    lost: E::Shared<Counts>,
    timeout: u64,
    memory: u64,
}

impl<E: Engine> PortScan<E> {
    /// Make the function.
    ///
    /// # Errors
    /// [`NoMemory`] for as many sources or contacts as the settings ask for.
    pub(super) fn new(engine: &mut E, settings: Settings) -> Result<Self, NoMemory> {
        let Settings { rules, timeout, memory, max_sources, max_contacts } = settings;
        let part = |object, total| engine.share_of(object).part_of(total) as usize;
        let (max_sources, max_contacts) = (part(&SOURCES, max_sources), part(&CONTACTS, max_contacts));
        Ok(PortScan {
            sources: engine.shared_map(&SOURCES, max_sources, rules)?,
            contacts: engine.flow_map(&CONTACTS, max_contacts)?,
            lost: engine.shared(&LOST, Counts::new(1)),
            timeout,
            memory,
        })
    }

    /// Return when a connection counts as one that nobody answers, or its outcome is too old to be known.
    fn end_of(&self, contact: &Contact) -> u64 {
        contact.end([self.timeout, self.memory])
    }

    /// Look at up to `most` connections whose time may have come.
    fn expire(&mut self, tx: &mut Tx, most: usize) {
        let now = tx.now;
        let PortScan { sources, contacts, timeout, memory, .. } = self;
        contacts.expire(tx, now, most, |tx, pair, contact| {
            let end = contact.end([*timeout, *memory]);
            if end > now {
                return Fate::Until(end);
            }
            if !contact.is_open {
                return Fate::Over;
            }
            sources.send(tx, source_of(pair), Tell { success: false, now });
            Fate::Becomes(Contact { is_open: false, since: now, ..*contact }, now.saturating_add(*memory))
        });
    }

    /// Return whether a new connection may go on; it is watched if it is the first to its destination.
    fn attempt(&mut self, tx: &mut Tx, ticket: &Ticket<E>, packet: &Packet) {
        let Some(ports) = ports(packet.data(), &packet.layers()) else { return };
        let fresh = Contact { since: tx.now, ports, is_open: true };
        let until = self.end_of(&fresh);
        let known = self.contacts.get(tx, ticket).map(|mut contact| {
            let is_too_old = !contact.is_open && tx.now.saturating_sub(contact.since) >= self.memory;
            if is_too_old {
                *contact = fresh;
            }
            is_too_old
        });
        if let Some(is_fresh) = known {
            if is_fresh {
                self.contacts.sooner(tx, ticket, until);
            }
            return;
        }
        // With no room it is not watched.
        if self.contacts.insert(tx, ticket, fresh, until).is_err() {
            self.lost.send(tx, Add::to(0, 1));
        }
    }

    fn answer(&mut self, tx: &mut Tx, ticket: &Ticket<E>, packet: &Packet, success: bool) {
        let Some((from, to)) = ports(packet.data(), &packet.layers()) else { return };
        let Some(mut contact) = self.contacts.get(tx, ticket) else { return };
        if contact.is_open && contact.ports == (to, from) {
            (contact.is_open, contact.since) = (false, tx.now);
            let contact = taken(contact);
            self.contacts.sooner(tx, ticket, self.end_of(&contact));
            let source = source_of(&Contacts::<E>::key(ticket));
            self.sources.send(tx, source, Tell { success, now: tx.now });
        }
    }
}

fn source_of(pair: &Pair) -> Source {
    [pair[0], pair[1]]
}

fn pair(source: Source, destination: Source) -> Pair {
    [source[0], source[1], destination[0], destination[1], 0]
}

impl<E: Engine> Function<E> for PortScan<E> {
    type Plan = Plan<E>;

    #[inline(always)]
    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Plan<E> {
        let (frame, layers) = (packet.data(), packet.layers());
        if layers.flags & (Layers::PORTS | Layers::FRAGMENT) != Layers::PORTS {
            return Plan::Other;
        }
        let flags = tcp::flags(frame, &layers);
        let is_attempt = tx.gate == 0 && flags & (SYN | ACK) == SYN;
        let is_answer = tx.gate == 1 && (flags & (SYN | ACK) == SYN | ACK || flags & RST != 0);
        if !is_attempt && !is_answer {
            return Plan::Other;
        }
        let ends = (source_address(frame, &layers), destination_address(frame, &layers));
        let (Some(from), Some(to)) = ends else { return Plan::Other };
        if is_answer {
            return Plan::Answer(self.contacts.want(tx, pair(to, from), Intent::Change), flags & RST == 0);
        }
        let contact = self.contacts.want(tx, pair(from, to), Intent::Create);
        Plan::Attempt(contact, self.sources.want(tx, from, Ask(tx.now)))
    }

    #[inline(always)]
    fn warm(&mut self, plan: &mut Plan<E>) {
        match plan {
            Plan::Attempt(ticket, asked) => {
                self.contacts.warm(ticket);
                self.sources.warm(asked);
            }
            Plan::Answer(ticket, _) => self.contacts.warm(ticket),
            Plan::Other => {}
        }
    }

    #[inline(always)]
    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Plan<E>) -> Step {
        match plan {
            Plan::Other => {}
            Plan::Attempt(ticket, asked) => {
                if self.sources.got(tx, asked) {
                    return Step::Done(Verdict::Drop(SCANS));
                }
                self.attempt(tx, ticket, packet);
            }
            Plan::Answer(ticket, success) => self.answer(tx, ticket, packet, *success),
        }
        Step::Done(Verdict::Gate(tx.gate))
    }

    fn tidy(&mut self, tx: &mut Tx, idle: bool) {
        let most = most_over(idle);
        self.expire(tx, most);
        let now = tx.now;
        self.sources.tidy(tx, most, now);
    }

    fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        mover.shared(tx, &mut self.sources);
        mover.flows(tx, &mut self.contacts, |_, _, _| {});
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["source scans ports"]
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("contacts", self.contacts.len() as u64);
        let lost = self.lost.look(Get::at(0)) as u64;
        tell("sources", self.sources.len() as u64);
        tell("scanners found", self.sources.tally(FOUND));
        tell("unwatched", self.sources.tally(UNWATCHED) + lost);
    }

    fn is_common(&self, gauge: &str) -> bool {
        E::ALL_SEE && gauge != "contacts"
    }
}
