//! The ways to partition that Lan's dissertation compares (§5.5.2), behind one door.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::few;
use super::graph::{ClassId, Graph, Kind, Malformed};
use super::greedy::{Starved, Whole};
use super::program::{Ask, Nothing, Program, Queues};
use super::promise::{Conflict, Levels, Promise};
use super::tasks::{Partition, Tasks};
use super::until::Until;

/// Graphs up to this many modules are solved by the exact program even where the closed form applies.
const SMALL: usize = 32;

/// A way to partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The fewest tasks that keep the promises.
    Alpine,
    /// A classifier in front and a queue for each class.
    Manual,
    /// A queue behind each branch; weights from the program.
    SemiManual,
    /// One task for each source, whatever was promised.
    RunToCompletion,
}

/// When [`Strategy::Alpine`] may put a classifier in front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Front {
    /// Never.
    Never,
    /// When no partition keeps the promises without.
    #[default]
    LastResort,
    /// Also when it serves more packets with as few tasks.
    WhenFaster,
}

/// What [`Strategy::Alpine`] looks for among the partitions that keep the promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The fewest tasks, as the dissertation (§5.3.3).
    #[default]
    FewestTasks,
    /// The most packets that leave, by costs in place.
    MostPackets,
}

/// How to solve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The way.
    pub strategy: Strategy,
    /// What [`Strategy::Alpine`] looks for.
    pub objective: Objective,
    /// Whether a classifier may be put in front.
    pub front: Front,
    /// Seconds that the solver may take for each level of priority.
    pub seconds: f64,
    /// When all of it has to end, whatever these are.
    pub until: Until,
    /// The part of what comes to a queue that it drops at least, if the promises can be kept so. With 0, the most
    /// throughput, a queue may get just what its task takes; then it runs empty at times, and the task loses its turn.
    pub surplus: f64,
}

impl Default for Options {
    fn default() -> Self {
        let (strategy, objective) = (Strategy::Alpine, Objective::FewestTasks);
        Options { strategy, objective, front: Front::LastResort, seconds: 20.0, until: Until::default(), surplus: 0.02 }
    }
}

/// How good the number of tasks, or of packets, is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The strategy prescribes it.
    Prescribed,
    /// No partition into fewer exists: the exact program has seen to all of them.
    Exact,
    /// No partition into fewer exists unless the promises stand in a special relation to the costs that has
    /// probability 0 (see [`super::greedy`]): as many tasks as classes.
    GeneralPosition,
    /// Not fewer than this many; the solver's time was over, or classes are tied.
    AtLeast(usize),
    /// No other partition serves more packets, by the costs given, of those where a task that begins on the last stretch to
    /// an exit begins at its head; of the number of tasks nothing is known.
    Most,
    /// The partition that serves most of those that were tried.
    Found,
}

/// A partition with its schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alpine {
    /// How it was made.
    pub strategy: Strategy,
    /// The graph, with the classifier if one was put in front, and the copies behind it.
    pub graph: Graph,
    /// The tasks.
    pub tasks: Tasks,
    /// How good it is known to be.
    pub proof: Proof,
    /// The classes that the classifier in front takes apart; empty: there is none.
    pub apart: Vec<ClassId>,
    /// Whether weights reckon with the queues' own cost. If not, no weights did, and shares are off by
    /// [`Tasks::error`].
    pub queues_charged: bool,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The graph.
    Malformed(Malformed),
    /// The promises contradict each other.
    Conflict(Conflict),
    /// The promises cannot be kept: the modules these classes share with others take more than they were
    /// promised. Empty if it is not known which.
    Starved(Vec<ClassId>),
    /// A class that a classifier in front cannot know.
    NotInFront(ClassId),
    /// The solver ran out of time or failed.
    Unsolved,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Malformed(malformed) => malformed.fmt(f),
            Refusal::Conflict(conflict) => conflict.fmt(f),
            Refusal::Starved(classes) if classes.is_empty() => f.write_str("no partition keeps the promises"),
            Refusal::Starved(classes) => {
                write!(f, "classes {classes:?} share modules that alone take more than they were promised")
            }
            Refusal::NotInFront(class) => write!(f, "class {class} cannot be told by its packets' headers"),
            Refusal::Unsolved => f.write_str("the solver found nothing in time"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Nothing> for Refusal {
    fn from(nothing: Nothing) -> Self {
        match nothing {
            Nothing::Impossible => Refusal::Starved(Vec::new()),
            Nothing::Unsolved => Refusal::Unsolved,
        }
    }
}

/// Partition `graph` into tasks and schedule them so that `promises` are kept.
///
/// # Errors
/// Why that cannot be.
pub fn solve(graph: &Graph, promises: &[Promise], options: Options) -> Result<Alpine, Refusal> {
    graph.check().map_err(Refusal::Malformed)?;
    let graph = graph.pruned();
    let run = Run { graph, promises, options };
    match options.strategy {
        Strategy::Alpine if options.objective == Objective::MostPackets => run.most_packets(),
        Strategy::Alpine => run.alpine(),
        Strategy::Manual => run.manual(),
        Strategy::SemiManual => run.semi_manual(),
        Strategy::RunToCompletion => run.run_to_completion(),
    }
}

/// Weigh the tasks that begin at `starts` so that `promises` are kept, with the costs of `graph` as they are.
///
/// # Errors
/// Why no weights keep them.
pub fn weigh(graph: &Graph, promises: &[Promise], starts: &[bool], options: Options) -> Result<Tasks, Refusal> {
    graph.check().map_err(Refusal::Malformed)?;
    let run = Run { graph: graph.clone(), promises, options };
    let levels = run.levels(graph)?;
    run.plan(graph, &levels, starts, Proof::Prescribed, Vec::new()).map(|plan| plan.tasks)
}

pub(super) struct Run<'a> {
    pub(super) graph: Graph,
    pub(super) promises: &'a [Promise],
    pub(super) options: Options,
}

impl Run<'_> {
    fn levels(&self, graph: &Graph) -> Result<Levels, Refusal> {
        Levels::of(graph, self.promises).map_err(Refusal::Conflict)
    }

    fn alpine(&self) -> Result<Alpine, Refusal> {
        let plain = self.fewest(&self.graph, Vec::new());
        let starved = match &plain {
            Ok(plan) if self.options.front != Front::WhenFaster => return Ok(plan.clone()),
            Err(Refusal::Starved(classes)) if self.options.front != Front::Never => classes.clone(),
            Ok(_) => Vec::new(),
            Err(_) => return plain,
        };
        let known: Vec<ClassId> =
            (0..self.graph.classes.len()).filter(|j| self.graph.classes[*j].known_in_front).collect();
        // Only those that starve, if that is enough; then everybody that can be told.
        let few: Vec<ClassId> = starved.iter().copied().filter(|j| known.contains(j)).collect();
        let tries = [few, known].into_iter().filter(|apart| !apart.is_empty());
        let fronted = tries.map(|apart| self.fewest(&self.graph.classified(&apart), apart));
        let fewest = |best: Option<Alpine>, next: Alpine| match best {
            Some(best) if rank(&best) >= rank(&next) => Some(best),
            _ => Some(next),
        };
        match plain {
            Ok(plain) => fronted.flatten().fold(Some(plain), fewest).ok_or(Refusal::Unsolved),
            Err(refusal) => fronted.flatten().fold(None, fewest).ok_or(refusal),
        }
    }

    /// The fewest tasks on a graph as it is.
    fn fewest(&self, graph: &Graph, apart: Vec<ClassId>) -> Result<Alpine, Refusal> {
        let levels = self.levels(graph)?;
        let count = |starts: &[bool]| starts.iter().filter(|s| **s).count();
        let quick = Whole::of(graph, self.promises, &levels).map(|whole| whole.cut(graph));
        let small = graph.modules.len() <= SMALL;
        let (starts, proof) = match quick {
            Some(Ok(cuts)) => {
                let tasks = count(&cuts.starts);
                match small.then(|| self.exact(graph, &levels, Ask::Fewer(tasks))) {
                    Some(Ok((starts, least))) => {
                        let tasks = count(&starts);
                        (starts, if tasks <= least { Proof::Exact } else { Proof::AtLeast(least) })
                    }
                    Some(Err(Nothing::Impossible)) => (cuts.starts, Proof::Exact),
                    _ if tasks == graph.classes.len() => (cuts.starts, Proof::GeneralPosition),
                    _ => (cuts.starts, Proof::AtLeast(1)),
                }
            }
            // Cycles burnt in queues may help where the closed form sees no way; but never more tasks than
            // classes, which suffice with a classifier in front (as the dissertation bounds them, §5.3.1).
            Some(Err(Starved(classes))) if !small || graph.queue_cycles <= 0.0 => {
                return Err(Refusal::Starved(classes));
            }
            Some(Err(Starved(classes))) => {
                let most = Ask::Fewer(graph.classes.len() + 1);
                let (starts, least) = self.exact(graph, &levels, most).map_err(|_| Refusal::Starved(classes))?;
                let tasks = count(&starts);
                (starts, if tasks <= least { Proof::Exact } else { Proof::AtLeast(least) })
            }
            None => match self.exact(graph, &levels, Ask::Fewest) {
                Ok((starts, least)) => {
                    let tasks = count(&starts);
                    (starts, if tasks <= least { Proof::Exact } else { Proof::AtLeast(least) })
                }
                Err(nothing) => return Err(nothing.into()),
            },
        };
        self.plan(graph, &levels, &starts, proof, apart)
    }

    /// All partitions of a small graph, or the exact program, one level of priority after the other; returns also a
    /// bound on the number of tasks.
    fn exact(&self, graph: &Graph, levels: &Levels, ask: Ask) -> Result<(Vec<bool>, usize), Nothing> {
        if graph.modules.len() <= SMALL && few::applies(levels) {
            let sigma = vec![0.0; graph.modules.len()];
            let Options { seconds, until, .. } = self.options;
            let promises = self.promises;
            let program = Program {
                graph,
                promises,
                levels,
                level: 0,
                sigma: &sigma,
                left: graph.hz,
                reserved: 0.0,
                seconds,
                until,
            };
            let most = match ask {
                Ask::Fewer(than) => than.saturating_sub(1),
                _ => graph.modules.len(),
            };
            if let Some(tried) = few::fewest(&program, most) {
                return tried.map(|starts| (starts.clone(), starts.iter().filter(|s| **s).count()));
            }
        }
        let mut starts = vec![false; graph.modules.len()];
        let mut least = 0;
        self.by_level(graph, levels, |program| {
            let found = program.solve(ask)?;
            starts.iter_mut().zip(&found.starts).for_each(|(all, own)| *all |= *own);
            least += found.least_tasks;
            Ok(found.sigma)
        })?;
        Ok((starts, least))
    }

    /// Solve each level with what the ones above leave; returns the part each module sees.
    pub(super) fn by_level(
        &self,
        graph: &Graph,
        levels: &Levels,
        mut solve: impl FnMut(&Program) -> Result<Vec<f64>, Nothing>,
    ) -> Result<Vec<f64>, Nothing> {
        let packets = graph.packets();
        let mut sigma = vec![0.0; graph.modules.len()];
        let mut left = graph.hz;
        for level in 0..levels.count {
            let Options { seconds, until, .. } = self.options;
            // Each has as much of the time that is left as the others that come.
            let until = until.one_of(levels.count - level);
            let promises = self.promises;
            // What later levels are promised is not for this one.
            let reserved = levels.reserved(graph, self.promises, level);
            let program = Program { graph, promises, levels, level, sigma: &sigma, left, reserved, seconds, until };
            let own = solve(&program)?;
            for m in (0..own.len()).filter(|m| levels.module[*m] == level) {
                sigma[m] = own[m];
                left -= own[m] * packets[m] * graph.modules[m].cycles;
            }
        }
        Ok(sigma)
    }

    /// Weights for a partition, which maximise throughput.
    fn weigh(&self, graph: &Graph, levels: &Levels, starts: &[bool]) -> Result<Partition, Nothing> {
        let weigh = |queues, surplus| {
            let ask = Ask::Weights(starts, queues, surplus);
            let sigma = self.by_level(graph, levels, |program| program.solve(ask).map(|found| found.sigma))?;
            Ok(Partition { starts: starts.to_vec(), sigma, queues })
        };
        // A partition may be possible only where a queue drops nothing; and the queues' own cost may be what does
        // not fit.
        let mut ways = vec![(Queues::Charged, 0.0), (Queues::Free, 0.0)];
        if self.options.surplus > 0.0 {
            ways.insert(0, (Queues::Charged, self.options.surplus));
        }
        let mut last = Err(Nothing::Impossible);
        for (queues, surplus) in ways {
            last = weigh(queues, surplus);
            if last != Err(Nothing::Impossible) {
                break;
            }
        }
        last
    }

    fn plan(
        &self,
        graph: &Graph,
        levels: &Levels,
        starts: &[bool],
        proof: Proof,
        apart: Vec<ClassId>,
    ) -> Result<Alpine, Refusal> {
        let partition = self.weigh(graph, levels, starts)?;
        let mut tasks = Tasks::of(graph, levels, &partition.starts, &partition.sigma);
        // Weights without the queues' cost: all of a level shrink to make room for it. And levels that were weighed with
        // more than the ones above leave have that.
        tasks.fit(graph, levels);
        let queues_charged = partition.queues == Queues::Charged;
        Ok(Alpine { strategy: self.options.strategy, graph: graph.clone(), tasks, proof, apart, queues_charged })
    }

    fn manual(&self) -> Result<Alpine, Refusal> {
        if let Some(class) = self.graph.classes.iter().position(|class| !class.known_in_front) {
            return Err(Refusal::NotInFront(class));
        }
        let apart: Vec<ClassId> = (0..self.graph.classes.len()).collect();
        let graph = self.graph.classified(&apart);
        let levels = self.levels(&graph)?;
        let behind_port = |up: usize| graph.modules[up].kind == Kind::Port;
        let start = |module: &super::graph::Module| {
            module.always_starts() || (module.kind != Kind::Port && module.upstream.is_some_and(behind_port))
        };
        let starts: Vec<bool> = graph.modules.iter().map(start).collect();
        self.plan(&graph, &levels, &starts, Proof::Prescribed, apart)
    }

    fn semi_manual(&self) -> Result<Alpine, Refusal> {
        let graph = &self.graph;
        let levels = self.levels(graph)?;
        let downstream = graph.downstream();
        let branches = |up: usize| downstream[up].len() > 1;
        let start = |(m, module): (usize, &super::graph::Module)| {
            module.always_starts() || levels.cut[m] || (module.cuttable && module.upstream.is_some_and(branches))
        };
        let starts: Vec<bool> = graph.modules.iter().enumerate().map(start).collect();
        self.plan(graph, &levels, &starts, Proof::Prescribed, Vec::new())
    }

    fn run_to_completion(&self) -> Result<Alpine, Refusal> {
        let graph = &self.graph;
        let levels = Levels::of(graph, &[]).map_err(Refusal::Conflict)?;
        let packets = graph.packets();
        let load: f64 = packets.iter().zip(&graph.modules).map(|(p, module)| p * module.cycles).sum();
        let sigma = vec![if load > 0.0 { (graph.hz / load).min(1.0) } else { 1.0 }; graph.modules.len()];
        let starts: Vec<bool> = graph.modules.iter().map(super::graph::Module::always_starts).collect();
        let tasks = Tasks::of(graph, &levels, &starts, &sigma);
        let graph = graph.clone();
        let strategy = self.options.strategy;
        Ok(Alpine { strategy, graph, tasks, proof: Proof::Prescribed, apart: Vec::new(), queues_charged: true })
    }
}

/// Fewer tasks first, then more throughput.
fn rank(plan: &Alpine) -> (std::cmp::Reverse<usize>, u64) {
    (std::cmp::Reverse(plan.tasks.tasks.len()), plan.tasks.throughput() as u64)
}
