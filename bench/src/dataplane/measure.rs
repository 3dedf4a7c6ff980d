//! Measuring one case: a pipeline of its own, samples of on-CPU time.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use catena_bench::record::{Record, median};
use catena_dataplane::attribute::Attributes;
use catena_dataplane::generator::{Generator, Spec};
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::task::Task;
use catena_dataplane::worker::{pin_this_thread, thread_cpu_ns};
use catena_dataplane::{Context, Pipeline, clock};
use catena_functions::{Args, Build, registry};
use catena_packet::wire::Seed;
use catena_packet::{Depot, DepotHandle};
use catena_state::Share;

use crate::cases::Case;

/// A sample is the median of so many stretches of this length: what disturbs one of them for a moment (another
/// program on the core, an interrupt, the caches cold after it) does not get into the figure.
const STRETCHES: usize = 40;
const STRETCH: Duration = Duration::from_millis(10);
/// How long a case runs before its first sample, at least; and each flow has had three packets by then.
const WARM_UP: Duration = Duration::from_millis(600);
/// Steps between two looks at the clock.
const STEPS: usize = 500;

/// A case ready to run.
pub struct Prepared {
    pipeline: Pipeline,
    context: Context,
    flows: u64,
    warm: bool,
    _depot: DepotHandle,
}

impl Prepared {
    /// Build the pipeline of a case.
    ///
    /// # Errors
    /// What a function or the generator refuses.
    pub fn new(case: &Case) -> Result<Self, String> {
        Self::share(case, Share::WHOLE)
    }

    fn share(case: &Case, share: Share) -> Result<Self, String> {
        let depot = Depot::map(16 * 1024, 16).map_err(|error| error.to_string())?;
        let mut pipeline = Pipeline::new(Time::Packets);
        let mut attributes = Attributes::default();
        let seed = Seed::from_number(11);
        let mut chain = Vec::new();
        for (name, args) in &case.functions {
            let descriptor = registry::find(name).ok_or_else(|| format!("the library has no {name}"))?;
            let mut build = Build { seed, share, attributes: &mut attributes, taken: &[] };
            let args = Args::new(args.iter().cloned());
            let module = (descriptor.build)(&args, &mut build).map_err(|error| format!("{name}: {error}"))?;
            chain.push(pipeline.graph.add(name, module));
        }
        chain.push(pipeline.graph.add("sink", Box::new(Sink)));
        for pair in chain.windows(2) {
            pipeline.graph.connect(pair[0], 0, pair[1]);
        }
        let mut spec: Spec = case.traffic.parse().map_err(|error| format!("{error}"))?;
        spec.seed += u64::from(share.index);
        let source = Generator::new(&spec).map_err(|(key, problem)| format!("{key}: {problem:?}"))?;
        pipeline.add_task(Task::new("source", Box::new(source), chain[0]));
        let context = Context::new(&depot, 1);
        Ok(Prepared { pipeline, context, flows: spec.flows, warm: false, _depot: depot })
    }

    /// Run for a while on a core; returns cycles per packet.
    ///
    /// # Errors
    /// When packets were dropped: then the figure would not be the case's.
    pub fn sample(&mut self, core: usize) -> Result<f64, String> {
        self.warm_up(core)?;
        let mut stretches = [0.0; STRETCHES];
        for cycles in &mut stretches {
            let (before, start) = (self.packets(), thread_cpu_ns());
            self.run(STRETCH);
            let (packets, ns) = (self.packets() - before, thread_cpu_ns() - start);
            *cycles = ns as f64 * clock::hertz() as f64 / 1e9 / packets as f64;
        }
        self.nothing_lost()?;
        Ok(median(&mut stretches).0)
    }

    /// Pin the calling thread to a core, and run until every flow is known, if that has not been done.
    fn warm_up(&mut self, core: usize) -> Result<(), String> {
        if !pin_this_thread(core) {
            return Err(format!("cannot pin to core {core}"));
        }
        if !self.warm {
            self.run(WARM_UP);
            while self.packets() < 3 * self.flows {
                self.run(WARM_UP);
            }
            self.warm = true;
        }
        Ok(())
    }

    fn run(&mut self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            for _ in 0..STEPS {
                self.pipeline.step(&mut self.context);
            }
            self.pipeline.graph.tick(&mut self.context);
        }
    }

    /// A dropped packet costs less than one that passes; rules that deny are the exception, they are the case.
    fn nothing_lost(&self) -> Result<(), String> {
        let nodes = self.pipeline.graph.nodes();
        let mut others = nodes.iter().filter(|(_, node)| &*node.name != "ACL");
        let lost = others.find_map(|(_, node)| Some((node, node.counters.drops.iter().next()?)));
        lost.map_or(Ok(()), |(node, (reason, count))| {
            Err(format!("{} dropped {count} packets: {}", node.name, reason.text(node.reasons)))
        })
    }

    fn packets(&self) -> u64 {
        self.pipeline.tasks().map(|(_, task)| task.counters().input.packets.get()).sum()
    }
}

/// Measure what a second worker on a second core adds, as a part of what the first does alone.
///
/// Both are built and warm before; then the first runs alone and with the second in turn, on the same memory, so
/// that neither the luck of its placing nor the mapping of more of it gets into the ratio.
///
/// # Errors
/// As [`Prepared::new`] and [`Prepared::sample`].
pub fn second_worker(case: &Case, samples: usize) -> Result<Record, String> {
    let together = Barrier::new(2);
    let rate = |prepared: &mut Prepared, core| prepared.sample(core).map(|cycles| clock::hertz() as f64 / cycles);
    let (first, second) = std::thread::scope(|scope| {
        let together = &together;
        let worker = |index: u32, core: usize| {
            scope.spawn(move || {
                let mut prepared = Prepared::share(case, Share { index, count: 2 })?;
                let warm = prepared.warm_up(core);
                let mut rates = Vec::new();
                for _ in 0..samples {
                    together.wait();
                    let alone = if index == 0 { rate(&mut prepared, core) } else { Ok(0.0) };
                    together.wait();
                    rates.push((alone, rate(&mut prepared, core)));
                }
                together.wait();
                warm?;
                rates.into_iter().map(|(alone, both)| Ok((alone?, both?))).collect::<Result<Vec<(f64, f64)>, String>>()
            })
        };
        let (first, second) = (worker(0, 1), worker(1, 0));
        (first.join(), second.join())
    });
    let ended = || "a worker ended by a panic".to_owned();
    let (first, second) = (first.map_err(|_| ended())??, second.map_err(|_| ended())??);
    let added = first.iter().zip(&second).map(|((alone, both), (_, beside))| (both + beside - alone) / alone);
    let (value, spread) = median(&mut added.collect::<Vec<f64>>());
    Ok(Record {
        bench: "dataplane".to_owned(),
        case: format!("{}: a second worker adds", case.name),
        unit: "of the first one's rate (at least 0.9)".to_owned(),
        value,
        spread,
        ..Record::default()
    })
}
