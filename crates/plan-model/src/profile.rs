//! What functions cost: measured on a machine, or taken from a paper and marked so (Lemur, §3.2 and §5.2).

mod text;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use text::Unreadable;

/// The format's version; files of another one are refused.
pub const VERSION: u32 = 1;

/// Packets in a full batch: as the dataplane has them.
pub const FULL_BATCH: f64 = 32.0;
/// Packets that a queue between two tasks holds: as pipelines are built.
pub const QUEUE_PACKETS: usize = 1024;
/// Flows that live at once in what comes to a server, of which a chain has its part: as functions are measured.
pub const FLOWS: f64 = 10_000.0;
/// Other functions of a core beside which functions are measured: the other three of a chain of four.
pub const OTHERS: f64 = 3.0;

/// Steps of a filter for a network of IPv4 addresses, such as `dst net 203.0.0.0/17` (`catena_policy::Filter::steps`).
pub const NETWORK_STEPS: u32 = 2;

/// The contents of `profile.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`VERSION`].
    pub version: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// The port whose packets `overheads.visit` is about, if one was named: its costs are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// What the framework itself costs.
    pub overheads: Overheads,
    /// One entry a function, by name.
    pub functions: BTreeMap<String, Cost>,
}

impl Profile {
    /// The functions of `self`, and those of `other` that `self` lacks.
    #[must_use]
    pub fn completed_by(mut self, other: &Profile) -> Profile {
        for (name, cost) in &other.functions {
            self.functions.entry(name.clone()).or_insert_with(|| cost.clone());
        }
        self
    }

    /// The same where every cycle that a plan reckons with is `factor` of them, the framework's as the functions': what a
    /// plan then has left over is headroom of the whole, wherever packets spend it. What was measured stays as it is.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Profile {
        self.overheads = self.overheads.times(factor);
        for cost in self.functions.values_mut() {
            for cycles in std::iter::once(&mut cost.server).chain(&mut cost.smart_nic) {
                let Cycles { base, per_unit, per_batch, per_flow, in_turn, alone, .. } = cycles;
                let beside = [base, per_unit, per_batch, per_flow, in_turn].into_iter();
                let alone = alone.iter_mut().flat_map(|a| [&mut a.saved, &mut a.per_flow, &mut a.per_batch]);
                beside.chain(alone).for_each(|cycles| *cycles *= factor);
            }
        }
        self
    }
}

/// A machine that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cycles of the counter in a second.
    pub clock_hz: f64,
    /// Number of cores.
    pub cores: u32,
    /// When, in RFC 3339.
    pub date: String,
}

/// What the framework itself costs, in cycles per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overheads {
    /// Reading a packet in and sending it out again, with its tags (Lemur, §5.3: "about 220").
    pub visit: f64,
    /// Spreading a subgroup's packets over several cores (Lemur, §5.3: "about 180").
    pub spread: f64,
    /// A queue between two tasks of one core.
    pub queue: f64,
    /// Finding a packet's class: each that is tried, if its filter has [`NETWORK_STEPS`] steps.
    pub classify: f64,
    /// Each step that a filter has beyond those, or less.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub step: f64,
    /// Dividing packets by class, however many are tried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub branch: f64,
    /// For each bit that the class tells, 1 of two that are as frequent and 2 of four: the processor foresees fewer branches, and
    /// batches are divided smaller.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub choice: f64,
    /// Of `visit`, parsing headers: without a switch in front, a chain's first function does it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parse: f64,
    /// What parsing takes of a batch beside its packets: who comes first behind a branch pays for all behind it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parse_batch: f64,
}

/// What a function costs on one kind of device, in cycles per packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// On a server's core.
    pub server: Cycles,
    /// On a network card, in the card's own cycles, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smart_nic: Option<Cycles>,
    /// Where the figures come from, if not from measuring: a paper's title and table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Cycles per packet as a line over the size parameter, with what is known of how they spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cycles {
    /// What the size counts; empty if the cost does not depend on one.
    pub unit: String,
    /// Cycles at size 0.
    pub base: f64,
    /// Cycles more for each unit of size.
    pub per_unit: f64,
    /// Largest relative distance of a measured mean from the line, 0 to 1.
    pub line_error: f64,
    /// The worst run relative to the mean, 1 or more.
    pub worst_factor: f64,
    /// Cycles that a batch takes beside those of its packets. The line is through full batches
    /// ([`FULL_BATCH`]), which have them too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub per_batch: f64,
    /// Cycles more for each flow that lives at once. The line is for [`FLOWS`], or where the size counts flows for so many;
    /// a function that gets a part of the packets gets that part of the flows, and finds more of them in the caches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub per_flow: f64,
    /// Cycles more that a batch takes where those of [`OTHERS`] other chains came since the one before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_turn: f64,
    /// What it costs where no other function's state is in the caches. All else is beside [`OTHERS`] functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// What was measured, one row a setting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Runs>,
}

impl Cycles {
    /// The same number of cycles whatever the size and the run.
    #[must_use]
    pub fn constant(cycles: f64) -> Cycles {
        Cycles { base: cycles, worst_factor: 1.0, ..Cycles::default() }
    }

    /// Mean cycles per packet at `size`.
    #[must_use]
    pub fn mean(&self, size: f64) -> f64 {
        self.base + self.per_unit * size
    }

    /// Worst-case cycles per packet at `size`: what plans reckon with (Lemur, §5.2).
    #[must_use]
    pub fn worst(&self, size: f64) -> f64 {
        self.mean(size) * self.worst_factor.max(1.0)
    }

    /// Worst-case cycles per packet at `size`, in the company that a function has: of the flows it has its part; a branch before it
    /// leaves it with a part of a batch, which has a whole batch's costs; the fewer others there are, the more of its state stays in
    /// the caches; and the more chains take turns with its own, the less of its code.
    #[must_use]
    pub fn worst_in(&self, size: f64, company: Company) -> f64 {
        let Company { part, of_a_batch, functions, chains } = company;
        // No fewer flows than packets in a batch: whose state that is stays in the nearest cache.
        let fewer = FLOWS - (FLOWS * part).clamp(FULL_BATCH, FLOWS);
        let cost = |saved: f64, per_flow: f64, per_batch: f64| {
            let mean = (self.mean(size) - saved - per_flow * fewer).max(0.0);
            mean * self.worst_factor.max(1.0) + per_batch * smaller(FULL_BATCH * of_a_batch)
        };
        let in_turn =
            self.in_turn * (chains / OTHERS).clamp(0.0, 1.0) / (FULL_BATCH * of_a_batch).clamp(1.0, FULL_BATCH);
        let beside = cost(0.0, self.per_flow, self.per_batch);
        let Some(Alone { saved, per_flow, per_batch }) = self.alone else { return in_turn + beside };
        let others = (functions / OTHERS).clamp(0.0, 1.0);
        in_turn + others * beside + (1.0 - others) * cost(saved, per_flow, per_batch)
    }
}

/// What a function meets on a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Company {
    /// The part of a server's packets that comes to it, 0 to 1.
    pub part: f64,
    /// The part of a batch, 0 to 1.
    pub of_a_batch: f64,
    /// Other functions that each packet of the core meets on average.
    pub functions: f64,
    /// Other chains that take turns with its own: each has its queue.
    pub chains: f64,
}

/// What a function costs where it has the caches for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Cycles per packet less, in full batches and with all flows.
    pub saved: f64,
    /// As [`Cycles::per_flow`].
    pub per_flow: f64,
    /// As [`Cycles::per_batch`].
    pub per_batch: f64,
}

impl Overheads {
    /// All of them, `factor` times as much.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Overheads {
        let Overheads { visit, spread, queue, classify, step, branch, choice, parse, parse_batch } = &mut self;
        for cycles in [visit, spread, queue, classify, step, branch, choice, parse, parse_batch] {
            *cycles *= factor;
        }
        self
    }

    /// Cycles per packet that tries a filter of so many steps.
    #[must_use]
    pub fn tried(&self, steps: u32) -> f64 {
        (self.classify + self.step * (f64::from(steps) - f64::from(NETWORK_STEPS))).max(0.0)
    }

    /// Cycles per packet of parsing headers, where batches come with so many packets.
    #[must_use]
    pub fn parse_in_batches(&self, packets: f64) -> f64 {
        self.parse + self.parse_batch * smaller(packets)
    }
}

/// By how much more of a batch's own costs a packet has in batches of so many packets than in full ones.
fn smaller(packets: f64) -> f64 {
    1.0 / packets.clamp(1.0, FULL_BATCH) - 1.0 / FULL_BATCH
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_zero(cycles: &f64) -> bool {
    *cycles == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Runs in one setting: a row like Lemur's Table 4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// The size parameter.
    pub size: f64,
    /// What the traffic and the cores were.
    pub setting: Setting,
    /// Whether no other function's state was in the caches.
    #[serde(default, skip_serializing_if = "is_false")]
    pub alone: bool,
    /// Number of runs.
    pub count: u32,
    /// Cycles per packet: mean over the runs.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// Not passed by 95 of 100 runs.
    pub p95: f64,
    /// The most.
    pub max: f64,
}

/// What the traffic and the cores were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Few flows that live long.
    LongLived,
    /// Ten thousand new flows a second.
    ShortLived,
    /// As short-lived, a quarter of the flows and of the packets, in full batches.
    FewerFlows,
    /// The same in batches of a quarter of the usual packets.
    SmallBatches,
    /// As fewer flows, in turn with chains of three other functions.
    InTurn,
    /// Packets come from another core.
    AcrossCores,
    /// Packets come from another socket.
    AcrossSockets,
}
