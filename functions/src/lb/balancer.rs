//! The balancer: both IP versions, to the library and to the operator.

use std::convert::Infallible;

use catena_dataplane::attribute::Slot;
use catena_dataplane::module::{Reason, Verdict};
use catena_packet::Packet;
use catena_packet::wire::Net;
use catena_state::value::{Add, Counts as Sums, Get};
use catena_state::{Access, Declaration, Engine, Mover, NoMemory, Scope, Share, Shared as _, Tx};

use crate::family::{V4, V6};
use crate::function::{Function, Step, most_over};
use crate::rewrite::{self, Change};

use super::active::{Counts, Others};
use super::admission::{Active, AddSpare, Admission, Inside, IsDown, Spare};
use super::connection::Timeouts;
use super::family::Balance;
use super::room;
use super::settings::{Backend, Settings};
use super::side::{Known, Side};
use super::stages::Want;

pub(super) const CONNECTIONS: Declaration = Declaration::shared(
    "connections",
    "connections, active ones per server, datagrams in fragments",
    Scope::Global,
    Access::ReadWrite,
);
pub(super) const BYTES: Declaration =
    Declaration::shared("bytes", "bytes per server", Scope::Configured, Access::WriteMostly);

pub(super) const EVENTS: Declaration =
    Declaration::shared("events", "connections opened, moved, evicted", Scope::Global, Access::WriteMostly);

/// What becomes of a connection: its number among the counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Opened,
    Moved,
    Evicted,
}

impl Event {
    const COUNT: usize = 3;
}

pub(super) const REASONS: &[&str] =
    &["no backend up", "connection table full", "segment of no connection", "fragment without its first"];
pub(super) const NO_BACKEND: Reason = Reason(0);
pub(super) const TABLE_FULL: Reason = Reason(1);
pub(super) const NO_CONNECTION: Reason = Reason(2);
pub(super) const NO_FIRST: Reason = Reason(3);

/// Most datagrams at a time whose later fragments are awaited; a client has its share of them.
pub(super) const MOST_FRAGMENTED: usize = 4096;
/// A server as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Its number: its place in the list `backends`, from 1, as in the attribute `backend`.
    pub number: u16,
    /// Whether new connections may get it.
    pub up: bool,
    /// Active connections.
    pub connections: i64,
    /// Bytes of all packets to and from it.
    pub bytes: i64,
}

/// The layer-4 load balancer.
pub struct Balancer<E: Engine> {
    pub(super) v4: Side<E, V4>,
    pub(super) v6: Side<E, V6>,
    pub(super) shared: Shared<E>,
}

/// What both IP versions share.
pub(super) struct Shared<E: Engine> {
    pub(super) bytes: E::Shared<Sums>,
    pub(super) slot: Slot,
    pub(super) timeouts: Timeouts,
    pub(super) backends: Vec<Backend>,
    /// Who is let in.
    pub(super) admission: E::Shared<Admission>,
    /// Which of those that are let in by the same object this one is.
    pub(super) instance: u16,
    /// What others are told, and tell, where each instance has an object of its own.
    pub(super) others: Option<Others>,
    /// What has become of connections.
    events: E::Shared<Sums>,
}

/// What *prepare* hands to *finish*. With a tag of its own words are at the same places in both versions, and written whole.
#[repr(u8)]
pub enum Plan<E: Engine> {
    /// Nothing to do: not IP.
    Pass,
    /// IPv4.
    V4(Want<E, V4>),
    /// IPv6.
    V6(Want<E, V6>),
}

copied!(Plan<E: Engine>);

impl<E: Engine> Balancer<E> {
    pub(super) fn new(engine: &mut E, settings: Settings, slot: Slot) -> Result<Self, NoMemory> {
        let part = |share: Share| share.part_of(settings.max_connections) as usize;
        let most = part(engine.share());
        let (mut v4, mut v6) = (Side::new(engine, &settings, most)?, Side::new(engine, &settings, most)?);
        let places = [v4.servers.places(), v6.servers.places()];
        let (seed, share) = (engine.seed(), engine.share());
        // One object for all instances has a part for each. Else each has its own, and hears what others have done.
        let seen = engine.share_of(&CONNECTIONS);
        let fragmented = seen.part_of(MOST_FRAGMENTED as u64) as usize;
        let (parts, instance) = match seen == share {
            true => (vec![most], 0),
            false => ((0..share.count).map(|index| part(Share { index, ..share })).collect(), share.index as u16),
        };
        let others = Others::new(engine, places);
        let made = || Ok::<_, Infallible>(Admission::new(&parts, fragmented, Counts::new(places), seed));
        let Ok(admission) = engine.shared_of(&CONNECTIONS, made);
        let shared: Shared<E> = Shared {
            bytes: engine.shared(&BYTES, Sums::new(settings.backends.len())),
            slot,
            timeouts: settings.timeouts,
            backends: settings.backends,
            admission,
            instance,
            others,
            events: engine.shared(&EVENTS, Sums::new(Event::COUNT)),
        };
        // An instance may be made anew on objects that are there already: who it was told to be down is down.
        let is_down = |question: IsDown| shared.admission.look(question);
        v4.servers.begin(instance, is_down);
        v6.servers.begin(instance, is_down);
        Ok(Balancer { v4, v6, shared })
    }

    /// Say whether a backend, by its number from 1, is up. Takes some ms with consistent hashing.
    ///
    /// Returns whether there is a backend of this number.
    pub fn set_backend(&mut self, tx: &mut Tx, number: u16, up: bool) -> bool {
        let Some(index) = number.checked_sub(1) else { return false };
        let Balancer { v4, v6, shared } = self;
        let mut tell = |news| shared.admission.send(tx, news);
        let server = (shared.instance, index);
        v4.servers.set_up(server, up, &mut tell) || v6.servers.set_up(server, up, &mut tell)
    }

    /// Return the number of the backend at an address and port, from 1.
    pub fn backend(&self, ip: std::net::IpAddr, port: Option<u16>) -> Option<u16> {
        let index = self.shared.backends.iter().position(|b| (b.ip, b.port) == (ip, port))?;
        Some(index as u16 + 1)
    }

    /// Go through the backends, those of IPv4 first.
    pub fn backends(&self) -> impl Iterator<Item = BackendInfo> + '_ {
        let active = |question: Active| self.shared.admission.look(question);
        let list = [self.v4.servers.list(active), self.v6.servers.list(active)].concat();
        list.into_iter().map(|(index, up, connections)| {
            let bytes = self.shared.bytes.look(Get::at(index.into()));
            BackendInfo { number: index + 1, up, connections, bytes }
        })
    }
}

impl<E: Engine> Function<E> for Balancer<E> {
    type Plan = Plan<E>;

    #[inline(always)]
    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Plan<E> {
        let layers = packet.layers();
        match layers.net {
            Net::Ipv4 => match Side::<E, V4>::read(tx.gate, packet, &layers) {
                Some(read) => Plan::V4(self.v4.want(tx, tx.gate, read)),
                None => Plan::Pass,
            },
            Net::Ipv6 => match Side::<E, V6>::read(tx.gate, packet, &layers) {
                Some(read) => Plan::V6(self.v6.want(tx, tx.gate, read)),
                None => Plan::Pass,
            },
            Net::Arp | Net::Other => Plan::Pass,
        }
    }

    #[inline(always)]
    fn warm(&mut self, plan: &mut Plan<E>) {
        match plan {
            Plan::Pass => {}
            Plan::V4(want) => self.v4.warm(want),
            Plan::V6(want) => self.v6.warm(want),
        }
    }

    #[inline(always)]
    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Plan<E>) -> Step {
        match plan {
            Plan::Pass => Step::Done(Verdict::Gate(tx.gate)),
            Plan::V4(want) => match self.v4.finish_known(&mut self.shared, tx, packet, want) {
                Known::Sent(verdict) => Step::Done(verdict),
                known => room::finish_rare(&mut self.v4, &mut self.v6, &mut self.shared, tx, packet, want, known),
            },
            Plan::V6(want) => match self.v6.finish_known(&mut self.shared, tx, packet, want) {
                Known::Sent(verdict) => Step::Done(verdict),
                known => room::finish_rare(&mut self.v6, &mut self.v4, &mut self.shared, tx, packet, want, known),
            },
        }
    }

    fn tidy(&mut self, tx: &mut Tx, idle: bool) {
        self.shared.hear(tx);
        let most = most_over(idle);
        self.v4.expire(&mut self.shared, tx, most);
        self.v6.expire(&mut self.shared, tx, most);
    }

    fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        self.v4.objects(&mut self.shared, tx, mover);
        self.v6.objects(&mut self.shared, tx, mover);
    }

    fn reasons(&self) -> &'static [&'static str] {
        REASONS
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("connections", self.shared.admission.look(Inside).0);
        let events = |event: Event| self.shared.events.look(Get::at(event as usize)) as u64;
        tell("opened", events(Event::Opened));
        tell("moved", events(Event::Moved));
        tell("evicted", events(Event::Evicted));
        tell("backends up", self.backends().filter(|b| b.up).count() as u64);
    }

    fn is_common(&self, gauge: &str) -> bool {
        E::ALL_SEE || gauge == "backends up"
    }
}

impl<E: Engine> Shared<E> {
    /// Count an event.
    #[inline(always)]
    pub(super) fn note(&mut self, tx: &mut Tx, event: Event) {
        self.events.send(tx, Add::to(event as usize, 1));
    }

    /// Hear of other instances, where each has an object of its own, and leave them what room is left over.
    #[inline]
    fn hear(&mut self, tx: &mut Tx) {
        let Shared { others: Some(others), admission, .. } = self else { return };
        others.hear(|done| admission.send(tx, done));
        // The object is this instance's own: what a look tells of it is true.
        let spare = admission.look(Spare);
        if spare > 0 {
            admission.send(tx, AddSpare { n: -(spare as i32) });
            others.leave(spare);
        }
    }

    /// Take room that others have left; returns whether there was some.
    pub(super) fn borrow(&mut self, tx: &mut Tx) -> bool {
        let is_some = self.others.as_ref().is_some_and(Others::take);
        if is_some {
            self.admission.send(tx, AddSpare { n: 1 });
        }
        is_some
    }

    /// Change a packet, to or from this server, and send it on.
    #[inline(always)]
    pub(super) fn send<F: Balance>(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        server: u16,
        change: &Change<F::Address>,
    ) -> Verdict {
        let layers = packet.layers();
        self.bytes.send(tx, Add::to(usize::from(server), packet.len() as i64));
        self.slot.set(packet, server + 1);
        let side = if tx.gate == 1 { rewrite::Side::Source } else { rewrite::Side::Destination };
        rewrite::of_any::<F>(packet.data_mut(), &layers, side, change);
        Verdict::Gate(tx.gate)
    }
}
