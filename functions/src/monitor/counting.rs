//! The monitor's work on a packet, in two steps.

use std::path::PathBuf;

use catena_dataplane::module::Verdict;
use catena_dataplane::pipeline::Time;
use catena_packet::Packet;
use catena_packet::wire::Net;
use catena_state::value::{Add, Counts, Get};
use catena_state::{
    Access, Declaration, Engine, FOREVER, Fate, FlowMap, Intent, Mover, NoMemory, Outlet as _, Scope, Shared as _, Tx,
};

use crate::function::{Function, Step, most_over};

use super::export::{Export, Record};
use super::flow::{Due, End, Flow, Limits, Seen};
use super::key::TwoWayKey;

/// By connection.
pub(super) const FLOWS: Declaration = Declaration::flow_map(
    "flows",
    "packets, bytes, times and TCP state of a flow",
    Scope::Connection,
    Access::ReadWrite,
);

/// What has become of flows.
pub(super) const SUMS: Declaration =
    Declaration::shared("sums", "flows begun, evicted, ended; records lost", Scope::Global, Access::WriteMostly);

/// To a file.
pub(super) const RECORDS: Declaration = Declaration::outlet("records", "records of flows that have ended");

/// A sum over all flows: its number among the counts.
#[derive(Clone, Copy, Debug)]
enum Sum {
    Begun,
    Evicted,
    NotIp,
    /// Packets of flows that have ended.
    Packets,
    Bytes,
    /// Records that found no room on their way out.
    Lost,
    LostPackets,
}

impl Sum {
    const COUNT: usize = 7;
}

/// The evicting hand passes at most so many used flows before it takes any.
const MOST_SECOND_CHANCES: usize = 32;

type V4 = [u64; 2];
type V6 = [u64; 5];
type Map<E, K> = <E as Engine>::FlowMap<K, Flow>;
type Ticket<E, K> = <Map<E, K> as FlowMap<K, Flow>>::Ticket;

/// The flow monitor.
pub struct Monitor<E: Engine> {
    v4: Table<E, V4>,
    v6: Table<E, V6>,
    shared: Shared<E>,
}

/// What both IP versions share.
struct Shared<E: Engine> {
    limits: Limits,
    records: E::Outlet<Export>,
    sums: E::Shared<Counts>,
    /// Whether this instance tells what others' records have lost as well.
    tells_all: bool,
}

struct Table<E: Engine, K: TwoWayKey> {
    map: Map<E, K>,
}

/// What *prepare* hands to *finish*.
pub enum Plan<E: Engine> {
    /// Not IP.
    Pass,
    /// IPv4.
    V4(Want<E, V4>),
    /// IPv6.
    V6(Want<E, V6>),
}

/// What is asked for a packet, and what was read of it.
pub struct Want<E: Engine, K: TwoWayKey> {
    ticket: Ticket<E, K>,
    seen: Seen,
}

copied!(Want<E: Engine, K: TwoWayKey>, Plan<E: Engine>);

impl<E: Engine> Monitor<E> {
    /// Make the monitor.
    ///
    /// # Errors
    /// [`NoMemory`] for so many flows.
    pub(super) fn new(engine: &mut E, limits: Limits, max_flows: u64, export: Export) -> Result<Self, NoMemory> {
        let most = engine.share().part_of(max_flows) as usize;
        Ok(Monitor {
            v4: Table { map: engine.flow_map(&FLOWS, most)? },
            v6: Table { map: engine.flow_map(&FLOWS.part(1), most)? },
            shared: Shared {
                limits,
                records: engine.outlet(&RECORDS, export),
                sums: engine.shared(&SUMS, Counts::new(Sum::COUNT)),
                tells_all: !E::ALL_SEE || engine.share().index == 0,
            },
        })
    }
}

#[cfg(test)]
impl<E: Engine> Monitor<E> {
    /// Change every flow of IPv4.
    pub(super) fn each_v4(&mut self, tx: &mut Tx, mut change: impl FnMut(&mut Flow)) {
        self.v4.map.expire_one(tx, self.v4.map.len(), |_, _, flow| {
            let mut flow = *flow;
            change(&mut flow);
            Fate::Becomes(flow, flow.end(&self.shared.limits))
        });
    }
}

impl<E: Engine> Function<E> for Monitor<E> {
    type Plan = Plan<E>;

    #[inline(always)]
    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Plan<E> {
        let (frame, layers) = (packet.data(), packet.layers());
        match layers.net {
            Net::Ipv4 => TwoWayKey::read(frame, &layers).map_or(Plan::Pass, |(key, seen)| {
                Plan::V4(Want { ticket: self.v4.map.want(tx, key, Intent::Create), seen })
            }),
            Net::Ipv6 => TwoWayKey::read(frame, &layers).map_or(Plan::Pass, |(key, seen)| {
                Plan::V6(Want { ticket: self.v6.map.want(tx, key, Intent::Create), seen })
            }),
            Net::Arp | Net::Other => Plan::Pass,
        }
    }

    #[inline(always)]
    fn warm(&mut self, plan: &mut Plan<E>) {
        match plan {
            Plan::Pass => {}
            Plan::V4(want) => self.v4.map.warm(&mut want.ticket),
            Plan::V6(want) => self.v6.map.warm(&mut want.ticket),
        }
    }

    #[inline(always)]
    fn finish(&mut self, tx: &mut Tx, _packet: &mut Packet, plan: &mut Plan<E>) -> Step {
        match plan {
            Plan::Pass => self.shared.add(tx, Sum::NotIp, 1),
            Plan::V4(want) => self.v4.count(&mut self.shared, tx, want),
            Plan::V6(want) => self.v6.count(&mut self.shared, tx, want),
        }
        Step::Done(Verdict::Gate(tx.gate))
    }

    fn tidy(&mut self, tx: &mut Tx, idle: bool) {
        let most = most_over(idle);
        self.v4.tidy(&mut self.shared, tx, most);
        self.v6.tidy(&mut self.shared, tx, most);
    }

    fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        mover.flows(tx, &mut self.v4.map, |_, _, _| {});
        mover.flows(tx, &mut self.v6.map, |_, _, _| {});
    }

    fn outputs(&self) -> Vec<PathBuf> {
        self.shared.records.with(Export::outputs)
    }

    fn start(&mut self, time: Time) -> Result<(), String> {
        self.shared.records.with_mut(|export| export.start(time))
    }

    fn end(&mut self, tx: &mut Tx) -> Result<(), String> {
        self.shared.records.with_mut(Export::wait_from_now);
        self.v4.end(&mut self.shared, tx);
        self.v6.end(&mut self.shared, tx);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        self.shared.records.with_mut(Export::close)
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let [unwritten, unwritten_packets] = self.shared.records.with(Export::lost);
        let sum = |sum: Sum| self.shared.sums.look(Get::at(sum as usize)) as u64;
        tell("flows", sum(Sum::Begun));
        tell("flows at the end", (self.v4.map.len() + self.v6.map.len()) as u64);
        tell("flows evicted", sum(Sum::Evicted));
        tell("packets in ended flows", sum(Sum::Packets));
        tell("bytes in ended flows", sum(Sum::Bytes));
        tell("packets not IP", sum(Sum::NotIp));
        // What found no room is known to all, and what was not written to each of its own file.
        let lost = |lost: Sum| if self.shared.tells_all { sum(lost) } else { 0 };
        tell("records lost", lost(Sum::Lost) + unwritten);
        tell("packets in lost records", lost(Sum::LostPackets) + unwritten_packets);
    }

    fn is_common(&self, gauge: &str) -> bool {
        E::ALL_SEE && !["flows at the end", "records lost", "packets in lost records"].contains(&gauge)
    }
}

impl<E: Engine> Shared<E> {
    #[inline(always)]
    fn add(&mut self, tx: &mut Tx, sum: Sum, n: u64) {
        self.sums.send(tx, Add::to(sum as usize, n as i64));
    }

    /// Export what was counted of a flow. Returns `false`, with nothing done, when there is no room just now.
    fn export(&mut self, tx: &mut Tx, key: &impl TwoWayKey, flow: &Flow, end: End) -> bool {
        if flow.is_fresh() {
            return true;
        }
        if !self.records.has_room(tx) {
            return false;
        }
        self.records.put(tx, Record { key: key.either(), flow: *flow, end });
        self.sum(tx, flow);
        true
    }

    /// Export at any cost: without room the record is lost, and counted.
    fn export_or_lose(&mut self, tx: &mut Tx, key: &impl TwoWayKey, flow: &Flow, end: End) {
        if !self.export(tx, key, flow, end) {
            self.add(tx, Sum::Lost, 1);
            self.add(tx, Sum::LostPackets, total(flow.packets));
            self.sum(tx, flow);
        }
    }

    fn sum(&mut self, tx: &mut Tx, flow: &Flow) {
        self.add(tx, Sum::Packets, total(flow.packets));
        self.add(tx, Sum::Bytes, total(flow.bytes));
    }
}

fn total(by_way: [u32; 2]) -> u64 {
    by_way.iter().map(|&n| u64::from(n)).sum()
}

impl<E: Engine, K: TwoWayKey> Table<E, K> {
    #[inline(always)]
    fn count(&mut self, shared: &mut Shared<E>, tx: &mut Tx, want: &Want<E, K>) {
        let Some(mut flow) = self.map.get(tx, &want.ticket) else { return self.begin(shared, tx, want) };
        if flow.is_steady(want.seen, tx.now, &shared.limits) {
            flow.add(want.seen, tx.now);
        } else {
            Self::count_rare(&mut flow, shared, tx, want);
            let end = flow.end(&shared.limits);
            drop(flow);
            self.map.sooner(tx, &want.ticket, end);
        }
    }

    /// Handshakes, ends.
    #[inline(never)]
    fn count_rare(flow: &mut Flow, shared: &mut Shared<E>, tx: &mut Tx, want: &Want<E, K>) {
        let key = Map::<E, K>::key(&want.ticket);
        match flow.due(want.seen, tx.now, &shared.limits) {
            Due::Nothing => {}
            // Without room for the record now, the flow goes on; a later packet or round finds it due again.
            Due::Another(end) => {
                if shared.export(tx, &key, flow, end) {
                    shared.add(tx, Sum::Begun, 1);
                    *flow = Flow::begin(want.seen, tx.now);
                    return;
                }
                if flow.would_wrap(want.seen) {
                    shared.export_or_lose(tx, &key, flow, End::Active);
                    flow.segment();
                }
            }
            Due::Segment => {
                if shared.export(tx, &key, flow, End::Active) {
                    flow.segment();
                }
            }
            Due::Wrap => {
                shared.export_or_lose(tx, &key, flow, End::Active);
                flow.segment();
            }
        }
        flow.take(want.seen, tx.now);
    }

    #[inline(never)]
    fn begin(&mut self, shared: &mut Shared<E>, tx: &mut Tx, want: &Want<E, K>) {
        shared.add(tx, Sum::Begun, 1);
        let flow = Flow::begin(want.seen, tx.now);
        let until = flow.end(&shared.limits);
        if self.map.insert(tx, &want.ticket, flow, until).is_err() {
            self.begin_instead(shared, tx, want);
        }
    }

    /// Begin a flow where there is no room for it. Its value is made anew: one that is passed has to stand in memory, where the usual
    /// case would wait for what it has just written there.
    #[cold]
    #[inline(never)]
    fn begin_instead(&mut self, shared: &mut Shared<E>, tx: &mut Tx, want: &Want<E, K>) {
        self.evict(shared, tx);
        let flow = Flow::begin(want.seen, tx.now);
        let until = flow.end(&shared.limits);
        if self.map.insert(tx, &want.ticket, flow, until).is_err() {
            shared.export_or_lose(tx, &Map::<E, K>::key(&want.ticket), &flow, End::Evicted);
        }
    }

    /// Make room: of those that end next, flows that were used since they were looked at last are passed, and the first
    /// that was not goes (second chance, Corbató 1968).
    #[cold]
    fn evict(&mut self, shared: &mut Shared<E>, tx: &mut Tx) {
        let (mut passed, limits) = (0, shared.limits);
        self.map.expire_one(tx, MOST_SECOND_CHANCES + 1, |tx, key, flow| {
            passed += 1;
            match flow.as_unused() {
                Some(unused) if passed <= MOST_SECOND_CHANCES => Fate::Becomes(unused, unused.end(&limits)),
                _ => {
                    shared.add(tx, Sum::Evicted, 1);
                    shared.export_or_lose(tx, key, flow, End::Evicted);
                    Fate::Over
                }
            }
        });
    }

    fn tidy(&mut self, shared: &mut Shared<E>, tx: &mut Tx, most: usize) {
        let (now, limits) = (tx.now, shared.limits);
        self.map.expire(tx, now, most, |tx, key, flow| {
            if let Some(end) = flow.is_over(now, &limits) {
                // Without room for the record now, it is tried again soon.
                return if shared.export(tx, key, flow, end) { Fate::Over } else { Fate::Until(now) };
            }
            if flow.is_long(now, &limits) {
                if !shared.export(tx, key, flow, End::Active) {
                    return Fate::Until(now);
                }
                let mut next = *flow;
                next.segment();
                return Fate::Becomes(next, next.end(&limits));
            }
            Fate::Until(flow.end(&limits))
        });
    }

    /// Export all that is left, in the order in which it would have ended, waiting for room; the flows stay for the figures.
    fn end(&mut self, shared: &mut Shared<E>, tx: &mut Tx) {
        // What is over by now was only not looked at: how many flows are looked at, and when, is nobody's business.
        self.tidy(shared, tx, usize::MAX);
        let (now, limits) = (tx.now, shared.limits);
        self.map.expire(tx, u64::MAX, usize::MAX, |tx, key, flow| {
            shared.export_or_lose(tx, key, flow, flow.end_at(now, &limits));
            Fate::Until(FOREVER)
        });
    }
}
