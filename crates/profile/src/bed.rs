//! The bed that chains are measured on: packets from memory, a chain's pipeline, a sink, on one core.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catena_dataplane::generator::{Generator, Spec};
use catena_dataplane::graph::NodeCounters;
use catena_dataplane::pipeline::Time;
use catena_dataplane::task::{Task, TaskCounters};
use catena_dataplane::worker::thread_cpu_ns;
use catena_dataplane::{Context, Pipeline, Source, clock};
use catena_functions::workload;
use catena_packet::clock::Root;
use catena_packet::{Depot, DepotHandle};

use super::chain::{Chain, Line};
use super::companion::Companion;

/// ns of the packets' time between two ticks, as a worker has them.
const TICK_NS: u64 = 1_000_000;
/// Batches between two looks at the clock: about a tick.
const STEPS: usize = 100;
/// How long a bed runs before it is measured, at least; each flow has had three packets by then.
const WARM_UP: Duration = Duration::from_millis(100);
/// The least time of the packets themselves that warming up takes where flows end: by then as many have been
/// forgotten as have begun: a flow lives for a second, and is forgotten one second later.
const SETTLE_NS: u64 = 2_500_000_000;

/// How long to wait for a first packet.
const SILENCE: Duration = Duration::from_secs(10);

/// Traffic to measure with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Flows that live at once.
    pub flows: u64,
    /// New ones a second, if any end.
    pub new: Option<u64>,
    /// One of so many parts of what comes to a server: of these flows, of the new ones, and of the packets a second.
    pub parts: u64,
}

impl Traffic {
    /// Make its packets.
    ///
    /// # Errors
    /// What the generator refuses.
    pub fn source(self, seed: u64) -> Result<Box<dyn Source>, String> {
        let of = |all: u64| (all / self.parts.max(1)).max(1);
        let text = workload::traffic(of(self.flows), self.new.map(of), of(workload::PACKETS));
        let mut spec: Spec = text.parse().map_err(|error| format!("{text}: {error}"))?;
        spec.seed = spec.seed.wrapping_add(seed);
        let source = Generator::new(&spec).map_err(|(key, problem)| format!("{text}: {key}: {problem:?}"))?;
        Ok(Box::new(source))
    }
}

/// What a stretch of packets cost, in cycles per packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// All together: time of the thread on its core.
    pub whole: f64,
    /// Each function, in the order of the chain, by the packets that came to it.
    pub functions: Vec<f64>,
}

/// A chain with its traffic.
pub struct Bed {
    pipeline: Pipeline,
    context: Context,
    functions: Vec<Arc<NodeCounters>>,
    input: Arc<TaskCounters>,
    traffic: Traffic,
    ticked: u64,
    _depot: DepotHandle,
}

impl Bed {
    /// Build a chain and its traffic, beside other functions or alone; `seed` places all otherwise in memory.
    ///
    /// # Errors
    /// What is wrong with the chain.
    pub fn new(chain: &Chain, traffic: Traffic, beside: bool, seed: u64) -> Result<Bed, String> {
        let companion = beside.then(|| Companion::of(traffic.flows));
        Self::of_line(Line::new(chain, seed, companion)?, traffic, seed)
    }

    /// Bring traffic to a line.
    ///
    /// # Errors
    /// What is wrong with the traffic.
    pub fn of_line(line: Line, traffic: Traffic, seed: u64) -> Result<Bed, String> {
        Self::of_source(line, traffic.source(seed)?, traffic, seed)
    }

    /// Bring a source's packets, which are traffic of the kind given, to a line.
    ///
    /// # Errors
    /// When the system has no memory for packets.
    pub fn of_source(line: Line, source: Box<dyn Source>, traffic: Traffic, seed: u64) -> Result<Bed, String> {
        let mut pipeline = Pipeline::with(line.graph, Time::Packets);
        pipeline.add_task(Task::new("source", source, line.inlet).rooted(Root::first()));
        Self::of(pipeline, line.functions, traffic, seed)
    }

    /// Make the bed of a pipeline, whose first task brings the traffic.
    ///
    /// # Errors
    /// When the system has no memory for packets.
    pub fn of(
        pipeline: Pipeline,
        functions: Vec<Arc<NodeCounters>>,
        traffic: Traffic,
        seed: u64,
    ) -> Result<Bed, String> {
        let depot = Depot::map(16 * 1024, 16).map_err(|error| error.to_string())?;
        let input = pipeline.tasks().next().map(|(_, task)| task.counters().clone()).unwrap_or_default();
        let context = Context::new(&depot, seed);
        Ok(Bed { pipeline, context, functions, input, traffic, ticked: 0, _depot: depot })
    }

    /// Run until every flow is known and, where flows end, as many go as come.
    ///
    /// # Errors
    /// When packets are dropped.
    pub fn warm_up(&mut self) -> Result<(), String> {
        let (start, settled) = (Instant::now(), self.traffic.new.map_or(0, |_| SETTLE_NS));
        self.steps(STEPS);
        let begun = self.context.now();
        while start.elapsed() < WARM_UP
            || self.input.input.packets.get() < 3 * self.traffic.flows
            || self.context.now() < begun + settled
        {
            self.steps(STEPS);
            if start.elapsed() > SILENCE && self.input.input.packets.get() == 0 {
                return Err("no packets come".to_owned());
            }
        }
        Line::nothing_lost(&self.pipeline.graph)
    }

    /// Run for a while and tell what it cost.
    pub fn stretch(&mut self, time: Duration) -> Stretch {
        let packets = self.input.input.packets.get();
        let counted = |f: &Arc<NodeCounters>| (f.cycles.get(), f.input.packets.get());
        let before: Vec<(u64, u64)> = self.functions.iter().map(counted).collect();
        let (start, cpu) = (Instant::now(), thread_cpu_ns());
        while start.elapsed() < time {
            self.steps(STEPS);
        }
        let ns = thread_cpu_ns() - cpu;
        let packets = (self.input.input.packets.get() - packets).max(1) as f64;
        let spent = self.functions.iter().map(counted).zip(before);
        let spent = spent.map(|(now, before)| (now.0 - before.0) as f64 / (now.1 - before.1).max(1) as f64);
        Stretch { whole: ns as f64 * clock::hertz() as f64 / 1e9 / packets, functions: spent.collect() }
    }

    /// Return how many packets the batches of each function had so far, on average.
    #[cfg(test)]
    pub fn batches(&self) -> Vec<f64> {
        let of = |f: &Arc<NodeCounters>| f.input.packets.get() as f64 / f.batches.get().max(1) as f64;
        self.functions.iter().map(of).collect()
    }

    /// Check that all packets went through.
    ///
    /// # Errors
    /// Who dropped how many, and why.
    pub fn nothing_lost(&self) -> Result<(), String> {
        Line::nothing_lost(&self.pipeline.graph)
    }

    /// Run so many batches, and a tick when it is due.
    pub fn steps(&mut self, batches: usize) {
        for _ in 0..batches {
            self.pipeline.step(&mut self.context);
        }
        if self.context.now() >= self.ticked + TICK_NS {
            self.ticked = self.context.now();
            self.pipeline.graph.tick(&mut self.context);
        }
    }
}
