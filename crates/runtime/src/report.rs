//! The figures of a run: per function what came in, what was dropped and why, what it cost.

mod text;

use std::any::Any;
use std::collections::BTreeMap;
use std::time::Duration;

use catena_compile::{Host, host::Lowered, names};
use catena_dataplane::clock;
use catena_dataplane::counter::{self, Histogram, percentile};
use catena_dataplane::graph::NodeInfo;
use catena_dataplane::own::Own;
use catena_dataplane::rebalance::Done;
use catena_dataplane::task::TaskCounters;
use catena_dataplane::worker::Ended;
use catena_packet::clock::Root;
use serde::Serialize;

use crate::Failure;
use crate::notes::Note;
use crate::planned::Comparison;
use crate::promised::Promised;
use crate::tenants::Tenants;
use crate::workers::{SIDES, modules};

/// What happened in a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Packets and bytes that the ports gave.
    pub input: Totals,
    /// Packets and bytes that left by a side.
    pub output: Totals,
    /// Packets dropped, for whatever reason.
    pub dropped: u64,
    /// How long the run took on the wall, in seconds.
    pub seconds: f64,
    /// Cycles that the workers spent, by packet that came in.
    pub cycles_per_packet: f64,
    /// Cycles per second of the counter that `cycles` are counted by.
    pub hertz: u64,
    /// ns from a packet's coming in to its leaving, at the middle, 99% and 99.9% of sampled packets.
    pub latency_ns: Percentiles,
    /// The functions, in the order of the chain file, and the modules between them.
    pub modules: Vec<Row>,
    /// Where packets came in.
    pub sources: Vec<SourceRow>,
    /// Figures of the ports.
    pub ports: Vec<Gauge>,
    /// How slots moved, where they may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebalanced: Option<Rebalanced>,
    /// What chains were promised, and what they got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised: Option<Promised>,
    /// What the packets of chains cost that a `cpu` relation names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Tenants>,
    /// The digest of the deployment that ran: who had which flows, by which paths. What holds rates is not in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// What was planned, and what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Comparison>,
    /// What was told before packets flowed: that a promise is held in part, or by nothing; that an interface is down.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// What could not be written or read to the end.
    pub problems: Vec<String>,
}

/// Packets, and the bytes of all of them from the Ethernet header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Times in ns, of sampled packets or batches; none where none was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Half take no longer.
    pub p50: Option<u64>,
    /// 99% take no longer.
    pub p99: Option<u64>,
    /// 99.9% take no longer.
    pub p999: Option<u64>,
}

/// How slots went from worker to worker.
#[derive(Debug, Serialize)]
pub struct Rebalanced {
    /// How often some went.
    pub moves: u64,
    /// How many went in all.
    pub slots: u64,
    /// Moves that were given up, as a worker did not come to an end with what it had.
    pub given_up: u64,
    /// The longest time that packets waited for one, in ns.
    pub longest_ns: u64,
}

/// How the ports call what they lost (`packet_socket`).
const LOST: &str = ": dropped by the kernel";

/// Tells the figures of a source, by name.
type Gauges<'a> = &'a dyn Fn(&mut dyn FnMut(&'static str, u64));

/// A source of packets.
#[derive(Debug, Serialize)]
pub struct SourceRow {
    /// The side: `in` or `out`.
    pub name: String,
    /// The root in its packets' clocks.
    pub root: u8,
    /// The count of the last clock that it gave, 0 if it gave none.
    pub count: u64,
}

/// A function, or a module between functions.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name in the chain file, behind that of its chain where there are several; or what stands between functions.
    pub name: String,
    /// The function of the library that it is.
    pub function: Option<&'static str>,
    /// That came in.
    pub packets: u64,
    /// Of these packets.
    pub bytes: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// By output gate.
    pub gates: Vec<Totals>,
    /// Of its own, without those behind it.
    pub cycles_per_packet: f64,
    /// ns that a batch spends in the module.
    pub residence_ns: Percentiles,
    /// Figures of its own, such as entries of a table.
    pub gauges: Vec<Gauge>,
}

/// A figure that a module or port tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gauge {
    /// What is counted.
    pub name: String,
    /// How many.
    pub value: u64,
}

impl Percentiles {
    fn of(histograms: &[&Histogram]) -> Self {
        let at = |share| percentile(histograms, share).map(clock::ns);
        Percentiles { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

impl Report {
    /// Packets that interfaces lost before they were read.
    pub fn lost_at_ports(&self) -> u64 {
        self.ports.iter().filter(|gauge| gauge.name.ends_with(LOST)).map(|gauge| gauge.value).sum()
    }

    /// Add up what the workers counted.
    pub fn new(host: &Host, ended: &[Ended], elapsed: Duration) -> Self {
        let all = modules(ended);
        let mut names: Vec<String> = Vec::new();
        for info in &all {
            if !names.iter().any(|n| **n == *info.name) {
                names.push(info.name.to_string());
            }
        }
        let mut gauges: BTreeMap<String, Vec<counter::Gauge>> = BTreeMap::new();
        for e in ended {
            e.pipeline.graph.gauges(&mut |module, gauge| {
                let list = gauges.entry(module.to_owned()).or_default();
                match list.iter_mut().find(|known| known.name == gauge.name) {
                    Some(known) => known.join(gauge.value),
                    None => list.push(gauge),
                }
            });
        }
        let function = |name: &str| {
            host.modules.iter().find(|m| m.name == name).and_then(|m| match &m.kind {
                Lowered::Function { descriptor, .. } => Some(descriptor.name),
                _ => None,
            })
        };
        let rows: Vec<Row> = names
            .iter()
            .map(|name| {
                let same: Vec<&NodeInfo> = all.iter().filter(|info| *info.name == **name).collect();
                row(name, function(name), &same, gauges.remove(name).unwrap_or_default())
            })
            .collect();

        let mut report = Report {
            input: Totals::default(),
            output: Totals::default(),
            dropped: rows.iter().flat_map(|row| row.drops.values()).sum(),
            seconds: elapsed.as_secs_f64(),
            cycles_per_packet: 0.0,
            hertz: clock::hertz(),
            latency_ns: Percentiles::default(),
            modules: rows,
            sources: Vec::new(),
            ports: Vec::new(),
            rebalanced: None,
            promised: None,
            tenants: None,
            deployment: None,
            planned: None,
            notes: Vec::new(),
            problems: Vec::new(),
        };
        let (mut cycles, mut readers) = (0, Vec::new());
        for e in ended {
            for (_, task) in e.pipeline.tasks() {
                let counters = task.counters();
                cycles += counters.cycles.get();
                match (task.source() as &dyn Any).downcast_ref::<Own>() {
                    Some(own) => readers.push(own),
                    None if SIDES.contains(&&**task.name()) => {
                        let source = task.source();
                        let tell = |tell: &mut dyn FnMut(&'static str, u64)| source.gauges(tell);
                        report.came_in(task.name(), counters, task.root(), (&tell, source.error()));
                    }
                    None => {}
                }
            }
            report.problems.extend(e.failed.iter().map(|(name, error)| format!("{name}: {error}")));
            if !e.pinned {
                report.problems.push("a worker could not be pinned to the core asked for".to_owned());
            }
        }
        report.read_by_all(&readers);
        report.cycles_per_packet = cycles as f64 / report.input.packets.max(1) as f64;
        // With several workers the writer's ports are the real exits, and the queues before them are none.
        let exits: Vec<&NodeInfo> = all.iter().filter(|info| info.is_exit).collect();
        for exit in &exits {
            report.output.packets += exit.counters.input.packets.get() - exit.counters.drops.total();
            report.output.bytes += exit.counters.input.bytes.get();
        }
        let latencies: Vec<&Histogram> = exits.iter().map(|exit| &exit.counters.latency).collect();
        report.latency_ns = Percentiles::of(&latencies);
        report
    }

    /// Add how slots went from worker to worker.
    pub fn moved(&mut self, done: Option<Done>) {
        self.rebalanced = done.map(|Done { moves, slots, given_up, longest_ns, lost }| {
            self.problems.extend(lost.iter().map(|(module, what)| format!("{module}: {what}")));
            Rebalanced { moves, slots, given_up, longest_ns }
        });
    }

    /// Add what all workers have read, each for itself: what the first one did, and where others did not.
    fn read_by_all(&mut self, readers: &[&Own]) {
        let Some((first, others)) = readers.split_first() else { return };
        for (at, input) in first.inputs().iter().enumerate() {
            let (name, packets) = (SIDES[input.side()], |own: &Own| own.inputs()[at].counters().input.packets.get());
            let tell = |tell: &mut dyn FnMut(&'static str, u64)| input.gauges(tell);
            self.came_in(name, input.counters(), Some(input.root()), (&tell, input.error()));
            let counts: Vec<u64> = others.iter().map(|own| packets(own)).collect();
            if counts.iter().any(|count| *count != packets(first)) {
                self.problems.push(format!(
                    "{name}: it changed while it was read: workers have read {} and {counts:?} packets, and what some have \
                     not read is missing",
                    packets(first)
                ));
            }
        }
    }

    /// Add what a port gave.
    fn came_in(
        &mut self,
        name: &str,
        counters: &TaskCounters,
        root: Option<&Root>,
        (gauges, error): (Gauges<'_>, Option<String>),
    ) {
        let row = |root: &Root| SourceRow { name: name.to_owned(), root: root.number(), count: root.count() };
        self.sources.extend(root.map(row));
        self.input.packets += counters.input.packets.get();
        self.input.bytes += counters.input.bytes.get();
        gauges(&mut |gauge, value| self.ports.push(Gauge { name: format!("{name}: {gauge}"), value }));
        self.problems.extend(error.map(|error| format!("{name}: {error}")));
    }

    /// Return what was counted at a module.
    pub fn module(&self, name: &str) -> Option<&Row> {
        self.modules.iter().find(|row| row.name == name)
    }

    /// Return what it took to bring packets in and out, from task to task too, in cycles by packet that came in: what was spent
    /// neither in functions nor in finding them. And how many queues a packet went into.
    pub fn in_and_out(&self) -> (f64, f64) {
        let came = self.input.packets.max(1) as f64;
        let is_queue = |row: &&Row| names::is_queue(&row.name);
        let between = self.modules.iter().filter(|row| !SIDES.contains(&row.name.as_str()) && !is_queue(row));
        let spent: f64 = between.map(|row| row.cycles_per_packet * row.packets as f64).sum();
        let queued: u64 = self.modules.iter().filter(is_queue).map(|row| row.packets).sum();
        (self.cycles_per_packet - spent / came, queued as f64 / came)
    }

    /// Return the report as JSON.
    ///
    /// # Errors
    /// None that can be foreseen.
    pub fn json(&self) -> Result<String, Failure> {
        serde_json::to_string_pretty(self).map(|text| text + "\n").map_err(|error| error.to_string().into())
    }
}

fn row(name: &str, function: Option<&'static str>, same: &[&NodeInfo], gauges: Vec<counter::Gauge>) -> Row {
    let sum = |of: fn(&NodeInfo) -> u64| same.iter().map(|info| of(info)).sum::<u64>();
    let packets = sum(|info| info.counters.input.packets.get());
    let mut drops = BTreeMap::new();
    for info in same {
        for (reason, count) in info.counters.drops.iter() {
            *drops.entry(reason.text(info.reasons)).or_default() += count;
        }
    }
    let gates = same.iter().map(|info| info.gates.len()).max().unwrap_or(0);
    let gate = |gate: usize| {
        let traffic = same.iter().filter_map(|info| info.gates.get(gate));
        traffic.fold(Totals::default(), |sum, t| Totals {
            packets: sum.packets + t.packets.get(),
            bytes: sum.bytes + t.bytes.get(),
        })
    };
    let residence: Vec<&Histogram> = same.iter().map(|info| &info.counters.residence).collect();
    Row {
        name: name.to_owned(),
        function,
        packets,
        bytes: sum(|info| info.counters.input.bytes.get()),
        drops,
        gates: (0..gates).map(gate).collect(),
        cycles_per_packet: sum(|info| info.counters.cycles.get()) as f64 / packets.max(1) as f64,
        residence_ns: Percentiles::of(&residence),
        gauges: gauges.iter().map(|gauge| Gauge { name: gauge.name.to_owned(), value: gauge.value }).collect(),
    }
}
