//! Measuring one case: a pipeline of its own, samples of on-CPU time.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catena_dataplane::attribute::Attributes;
use catena_dataplane::generator::{Generator, Rate, Spec};
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::task::Task;
use catena_dataplane::worker::{pin_this_thread, thread_cpu_ns};
use catena_dataplane::{Context, Inlet, Pipeline, clock};
use catena_functions::{Args, Build, Tables, registry};
use catena_packet::clock::Root;
use catena_packet::wire::Seed;
use catena_packet::{Depot, DepotHandle};
use catena_records::record::median;
use catena_state::{Share, Team};

use crate::cases::{Case, LIVE, NEW_FLOWS, Step};
use crate::in_turn::InTurn;

/// A sample is the median of so many stretches of this length: what disturbs one of them for a moment (another
/// program on the core, an interrupt, the caches cold after it) does not get into the figure.
const STRETCHES: usize = 40;
const STRETCH: Duration = Duration::from_millis(10);
/// How long a case runs before its first sample, at least; and each flow has had three packets by then, or as many come and
/// gone as live.
const WARM_UP: Duration = Duration::from_millis(600);
/// Packets that may wait in a function for the other worker's answers.
const MOST_WAITING: usize = 128;
/// Steps between two looks at the clock.
const STEPS: usize = 500;

/// A case ready to run.
pub struct Prepared {
    pipeline: Pipeline,
    context: Context,
    /// Packets of the warm-up, at least.
    warm_up: u64,
    warm: bool,
    /// Whether it answers another worker, and is answered.
    in_team: bool,
    _depot: DepotHandle,
}

impl Prepared {
    /// Build the pipeline of a case.
    ///
    /// # Errors
    /// What a function or the generator refuses.
    pub fn new(case: &Case) -> Result<Self, String> {
        Self::share(case, (Share::WHOLE, None))
    }

    /// Build the pipeline of a case for one worker of a team.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn share(case: &Case, part: (Share, Option<&Arc<Team>>)) -> Result<Self, String> {
        let mut prepared = Self::of((case.traffic, case.answers), &case.functions, part)?;
        if case.traffic == NEW_FLOWS {
            prepared.warm_up = 4 * LIVE / u64::from(part.0.count);
        }
        Ok(prepared)
    }

    /// Build a pipeline of this traffic through these functions.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn of(
        (traffic, answers): (&str, Option<Ipv4Addr>),
        functions: &[Step],
        (share, team): (Share, Option<&Arc<Team>>),
    ) -> Result<Self, String> {
        let depot = Depot::map(16 * 1024, 16).map_err(|error| error.to_string())?;
        let mut pipeline = Pipeline::new(Time::Packets);
        let mut attributes = Attributes::default();
        let seed = Seed::from_number(11);
        let mut chain = Vec::new();
        for (name, args) in functions {
            let descriptor = registry::find(name).ok_or_else(|| format!("the library has no {name}"))?;
            let mut build = Build {
                instance: name,
                seed,
                share,
                team,
                attributes: &mut attributes,
                taken: &[],
                tables: &Tables::default(),
            };
            let args = Args::new(args.iter().cloned());
            let module = (descriptor.build)(&args, &mut build).map_err(|error| format!("{name}: {error}"))?;
            chain.push(pipeline.graph.add(name, module));
        }
        chain.push(pipeline.graph.add("sink", Box::new(Sink)));
        for pair in chain.windows(2) {
            pipeline.graph.connect(pair[0], 0, pair[1]);
        }
        if answers.is_some() {
            // Of one function: what comes back leaves where what goes out does.
            pipeline.graph.connect(chain[0], 1, chain[1]);
        }
        let mut spec: Spec = traffic.parse().map_err(|error| format!("{error}"))?;
        spec.seed += share.index as u64;
        // All workers together have the flows of one.
        spec.flows /= u64::from(share.count);
        spec.rate = spec.rate.map(|rate| match rate {
            Rate::Packets(rate) => Rate::Packets(rate / f64::from(share.count)),
            Rate::Bits(rate) => Rate::Bits(rate / f64::from(share.count)),
        });
        let source = Generator::new(&spec).map_err(|(key, problem)| format!("{key}: {problem:?}"))?;
        let task = match answers {
            None => Task::new("source", Box::new(source), chain[0]),
            Some(server) => {
                let in_turn = InTurn { packets: source, server, batches: 0 };
                let inlets = [0, 1].map(|gate| Inlet { node: chain[0], gate }).to_vec();
                Task::by_side("source", Box::new(in_turn), inlets, false)
            }
        };
        pipeline.add_task(task.rooted(Root::first()));
        let context = Context::new(&depot, 1);
        let (warm_up, in_team) = (3 * spec.flows, team.is_some());
        Ok(Prepared { pipeline, context, warm_up, warm: false, in_team, _depot: depot })
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
    ///
    /// # Errors
    /// When the thread cannot be pinned.
    pub fn warm_up(&mut self, core: usize) -> Result<(), String> {
        if !pin_this_thread(core) {
            return Err(format!("cannot pin to core {core}"));
        }
        if !self.warm {
            self.run(WARM_UP);
            while self.packets() < self.warm_up {
                self.run(WARM_UP);
            }
            self.warm = true;
        }
        Ok(())
    }

    /// Run for a while; returns packets per ns of the time that passed.
    pub fn rate(&mut self, time: Duration) -> f64 {
        let (before, start) = (self.packets(), Instant::now());
        self.run(time);
        (self.packets() - before) as f64 / start.elapsed().as_nanos() as f64
    }

    /// Run for a while.
    pub fn run(&mut self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            self.steps();
        }
    }

    /// Run some batches, and let the functions tidy up.
    pub fn steps(&mut self) {
        for _ in 0..STEPS {
            if self.in_team {
                self.pipeline.graph.poll(&mut self.context);
                // As a replay does: who waits brings nothing more, rather than lose it.
                if self.pipeline.graph.most_waiting() > MOST_WAITING {
                    continue;
                }
            }
            self.pipeline.step(&mut self.context);
        }
        self.tick();
    }

    /// Let the functions tidy up, as they do every now and then.
    pub fn tick(&mut self) {
        self.pipeline.graph.tick(&mut self.context);
    }

    /// Return a gauge of the functions, if one of them has it.
    pub fn gauge(&self, name: &str) -> Option<u64> {
        let mut found = None;
        self.pipeline.graph.gauges(&mut |_, gauge| found = if gauge.name == name { Some(gauge.value) } else { found });
        found
    }

    /// A dropped packet costs less than one that passes; rules that deny are the exception, they are the case.
    ///
    /// # Errors
    /// When packets were dropped: which function dropped how many, and why.
    pub fn nothing_lost(&self) -> Result<(), String> {
        let nodes = self.pipeline.graph.nodes();
        let mut others = nodes.iter().filter(|(_, node)| &*node.name != "ACL");
        let lost = others.find_map(|(_, node)| Some((node, node.counters.drops.iter().next()?)));
        lost.map_or(Ok(()), |(node, (reason, count))| {
            Err(format!("{} dropped {count} packets: {}", node.name, reason.text(node.reasons)))
        })
    }

    /// Return how many packets have come.
    pub fn packets(&self) -> u64 {
        self.pipeline.tasks().map(|(_, task)| task.counters().input.packets.get()).sum()
    }
}
