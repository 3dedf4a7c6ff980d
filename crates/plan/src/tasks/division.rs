//! How the cycles of a server's workers are divided: the pipeline as Alpine sees it, its tasks, and what they have to hold.

mod again;

use catena_policy::{Direction, PolicyGraph, Subject};

use catena_plan_alpine::measured::Measured;
use catena_plan_alpine::pipeline::{Figures, pipeline};
use catena_plan_alpine::{
    Alpine, Cost, Ends, Front, Graph, Kind, Objective, Options, Promise, Proof, SchedulerTree, Tasks, Until,
};
use catena_plan_model::demand::relations::traffic;
use catena_plan_model::demand::shares;
use catena_plan_model::placement::Placement;
use catena_plan_model::problem::{Chain, Problem, ServerId};
use catena_plan_model::profile::FULL_BATCH;
use catena_plan_model::relation::{self, Relation, Traffic};

use super::names::{chain_of, name, start, told};
use super::rates::{self, Bound};
use super::{ClassFigures, ROUNDING, Start, TaskFigures, TaskPlan, tree};

/// Who may have less than what is taken to come of everybody is offered this many times that, at most: solvers count to few
/// digits.
const FAR_MORE: f64 = 1e3;

/// A server's tasks with all that they were made of, so that they can be weighed again.
pub struct Division {
    alpine: Alpine,
    /// What the relations say.
    promises: Vec<Promise>,
    /// Ratios of the planned rates, where the relations say nothing.
    implied: Vec<Promise>,
    /// What chains are promised and may have.
    bounds: Vec<Bound>,
    /// Modules by which chains are entered.
    entries: Vec<usize>,
    /// By module, its chain.
    owners: Vec<Option<usize>>,
    /// By module, what it is called.
    names: Vec<String>,
    /// By task, where it begins.
    starts: Vec<Start>,
    chains: Vec<Chain>,
    workers: u32,
    port_cycles: f64,
    classify_cycles: f64,
    queue_cycles: f64,
    options: Options,
    /// Whether the time was not over when they were found.
    in_time: bool,
}

impl Division {
    /// Divide what runs on `server` into tasks, where `placement` says what chains carry. When the time is over, they are those that
    /// were found by then, or each chain has one.
    ///
    /// # Errors
    /// Why the file's relations between chains and classes cannot hold.
    pub fn of(
        policy: &PolicyGraph,
        problem: &Problem,
        server: ServerId,
        placement: &Placement,
        objective: Objective,
        until: Until,
    ) -> Result<Division, String> {
        let about = problem.servers.get(server).ok_or("there is no such server")?;
        let workers = about.cores.max(1);
        let planned = |c: usize| match (placement.rates_bps.get(c), problem.chains.get(c)) {
            (Some(bps), Some(chain)) => bps / chain.packet_bits(),
            _ => 0.0,
        };
        let offered = offered(policy, problem, about.clock_hz, f64::from(workers));
        let several = policy.chains.len() > 1;
        // Of what bringing packets in costs, finding their chain is a module of its own.
        let port_cycles = problem.overheads.visit - problem.overheads.classify;
        // A profile does not tell the two ends apart.
        let half_a_queue = Cost { packet: problem.overheads.queue / 2.0, batch: 0.0 };
        let figures = Figures {
            cycles: &|(c, n)| problem.chains.get(c).and_then(|chain| chain.nodes.get(n)?.server).unwrap_or(0.0),
            batches: &|(c, n)| {
                let node = problem.chains.get(c).and_then(|chain| chain.nodes.get(n));
                node.map_or((0.0, FULL_BATCH), |node| (node.per_batch, node.batch))
            },
            replicable: &|(c, n)| {
                problem.chains.get(c).and_then(|chain| chain.nodes.get(n)).is_none_or(|n| n.replicable)
            },
            packets: &|c, group, direction| match direction {
                Direction::Return => 0.0,
                Direction::Forward => {
                    let classes = policy.chains.get(c).map_or(1, |chain| chain.classes.len().max(1));
                    let part = if group.is_some() { 1.0 / classes as f64 } else { 1.0 };
                    part * offered.get(c).copied().unwrap_or(0.0)
                }
            },
            port_cycles,
            classify_cycles: problem.overheads.classify,
            queue_cycles: problem.overheads.queue,
            queue_ends: Ends { entrance: half_a_queue, drop: 0.0, exit: half_a_queue },
            hz: about.clock_hz,
        };
        // What is left is shared as the plan shares it: what a chain has of that depends on its promise and its limits.
        let shared: Vec<usize> =
            problem.relations.iter().filter(|r| is_share(r)).flat_map(|r| r.members()).map(|m| m.chain).collect();
        let relations = policy.relations.iter().filter_map(|relation| match relation {
            catena_policy::Relation::Share(given) => match parts(policy, problem, placement, given) {
                Some(parts) => Some(catena_policy::Relation::Throughput(parts)),
                None => shared.is_empty().then(|| relation.clone()),
            },
            _ => Some(relation.clone()),
        });
        let about = PolicyGraph { relations: relations.collect(), ..policy.clone() };
        let mut seen = pipeline(&about, &figures).map_err(|error| error.to_string())?;
        let owners: Vec<Option<usize>> =
            seen.graph.modules.iter().enumerate().map(|(m, _)| chain_of(&seen.origins, m)).collect();
        // By its name: what is dropped where it enters its chain comes to none of the chain's functions.
        let chain = |name: &str| policy.chains.iter().position(|chain| Some(&*chain.name) == name.split('/').next());
        let exits: Vec<Option<usize>> = seen.graph.classes.iter().map(|class| chain(&class.name)).collect();
        let classes = |c: usize| -> Vec<usize> { (0..exits.len()).filter(|j| exits[*j] == Some(c)).collect() };
        let mut implied = Vec::new();
        if (seen.promises.is_empty() || !shared.is_empty()) && several {
            let unrelated = seen.promises.is_empty();
            let open = |c: &usize| unrelated || shared.contains(c);
            // Nobody shares with who comes first.
            let levels = relation::levels(problem.chains.len(), &problem.relations);
            for level in 0..levels.iter().max().map_or(0, |last| last + 1) {
                let own = (0..policy.chains.len()).filter(open).filter(|c| levels.get(*c) == Some(&level));
                let own: Vec<usize> = own.filter(|c| !classes(*c).is_empty() && planned(*c) > 1.0).collect();
                let left = |c: usize| {
                    planned(c) - problem.chains.get(c).map_or(0.0, |chain| chain.t_min_bps / chain.packet_bits())
                };
                match own[..] {
                    [] | [_] => {}
                    // What each is promised is not part of what is shared.
                    _ if !shared.is_empty() && own.iter().all(|c| left(*c) > 1.0) => {
                        implied.push(Promise::Beyond(own.iter().map(|c| (classes(*c), left(*c), 0.0)).collect()));
                    }
                    _ => implied.push(Promise::Throughput(own.iter().map(|c| (classes(*c), planned(*c))).collect())),
                }
            }
        }
        // What nothing leaves of has what others leave.
        for relation in &problem.relations {
            let Relation::Last(last) = relation else { continue };
            let (later, first) = (0..exits.len()).partition(|j| exits[*j].is_some_and(|c| last.contains(&c)));
            let order: [Vec<usize>; 2] = [first, later];
            if order.iter().all(|classes| !classes.is_empty()) {
                seen.promises.push(Promise::Priority(order.to_vec()));
            }
            // That names everybody: who is named by nothing else is still with those that are named last.
            let levels = relation::levels(problem.chains.len(), &problem.relations);
            let level = |j: &usize| exits[*j].and_then(|c| levels.get(c)).copied().unwrap_or(0);
            let unnamed = |j: &usize| order[0].contains(j) && !named(&problem.relations, exits[*j]);
            let unnamed: Vec<usize> = (0..exits.len()).filter(unnamed).collect();
            let earlier = |j: &usize| unnamed.first().is_some_and(|first| level(j) < level(first));
            let earlier: Vec<usize> = (0..exits.len()).filter(earlier).collect();
            if !earlier.is_empty() {
                seen.promises.push(Promise::Priority(vec![earlier, unnamed]));
            }
        }
        // Where chains begin, behind the branch that finds them.
        let begins =
            |graph: &Graph, m: usize| graph.modules[m].upstream.is_some_and(|up| graph.modules[up].kind == Kind::Port);
        let entries: Vec<usize> =
            (0..owners.len()).filter(|m| owners[*m].is_some() && begins(&seen.graph, *m)).collect();
        let bounds = rates::bounds(problem, placement, server, classes);
        let capped = |c: usize| problem.chains.get(c).is_some_and(is_capped);
        // Who sends more than its part is to take nothing from who is promised something. Nobody knows beforehand how much comes
        // of whom, and a partition into as few tasks as one mix needs would make a promise for that one alone.
        let related = !policy.relations.is_empty() || !problem.relations.is_empty();
        let promised = related || problem.chains.iter().any(|chain| chain.t_min_bps > 0.0);
        for module in &entries {
            if (promised && entries.len() > 1) || owners[*module].is_some_and(capped) {
                let module = &mut seen.graph.modules[*module];
                module.kind = Kind::Scheduled;
                module.cycles += problem.overheads.queue;
            }
        }
        // The branch that finds the chain is the classifier in front (see `alpine::pipeline`).
        let options = Options { front: Front::Never, objective, until, ..Options::default() };
        let alpine = rates::hold(&seen.graph, (&seen.promises, &implied), &bounds, &entries, options);
        let alpine = alpine.map_err(|refusal| told(&seen.graph, refusal))?;
        let names = (0..seen.graph.modules.len()).map(|m| name(policy, &seen.graph, &seen.origins, m)).collect();
        let starts: Vec<Start> =
            alpine.tasks.tasks.iter().map(|task| start(policy, seen.origins.get(task.start))).collect();
        let twice = starts.iter().enumerate().find(|(n, start)| starts[..*n].contains(start));
        if let Some((_, Start::Class(class))) = twice {
            return Err(format!(
                "{class}: its packets enter their chain at several functions, and would have to wait in one queue in front of \
                 them: put a function there, or relate chains instead of classes"
            ));
        }
        Ok(Division {
            alpine,
            promises: seen.promises,
            implied,
            bounds,
            entries,
            owners,
            names,
            starts,
            chains: problem.chains.clone(),
            workers,
            port_cycles,
            classify_cycles: problem.overheads.classify,
            queue_cycles: problem.overheads.queue,
            in_time: !until.is_over(),
            // Weights that are set anew have their own time.
            options: Options { until: Until::default(), ..options },
        })
    }

    /// What a plan says of the tasks.
    #[must_use]
    pub fn figures(&self) -> TaskPlan {
        let Alpine { graph, tasks, proof, .. } = &self.alpine;
        let about = tasks.tasks.iter().zip(&self.starts).zip(self.weights(tasks));
        let figures = about.map(|((task, start), weight)| TaskFigures {
            start: start.clone(),
            modules: task.modules.iter().map(|m| self.names[*m].clone()).collect(),
            weight,
            packets: task.packets,
            cycles: task.cycles,
        });
        let spent: f64 = tasks.classes.iter().map(|served| served.cycles).sum();
        // Ways that part within a chain end at several places: their packets are of one class all the same.
        let mut classes: Vec<ClassFigures> = Vec::new();
        for (class, served) in graph.classes.iter().zip(&tasks.classes) {
            let packets = served.packets * f64::from(self.workers);
            let cpu = if spent > 0.0 { served.cycles / spent } else { 0.0 };
            match classes.iter_mut().find(|own| own.name == class.name) {
                Some(own) => (own.packets, own.cpu) = (own.packets + packets, own.cpu + cpu),
                None => classes.push(ClassFigures { name: class.name.clone(), packets, cpu }),
            }
        }
        TaskPlan {
            workers: self.workers,
            objective: self.options.objective,
            tasks: figures.collect(),
            tree: self.tree(tasks, |c| self.planned_bits(c)),
            classes,
            minimal: matches!(proof, Proof::Exact | Proof::GeneralPosition),
            cut_short: !self.in_time && matches!(proof, Proof::Found | Proof::AtLeast(_) | Proof::Prescribed),
            port_cycles: self.port_cycles,
            classify_cycles: self.classify_cycles,
            queue_cycles: self.queue_cycles,
        }
    }

    /// The weight of each task among those that it shares with, as planned.
    fn weights(&self, tasks: &Tasks) -> Vec<f64> {
        let (caps, first) = self.rates(tasks, |c| self.planned_bits(c));
        tree::weights(tasks, (&caps, &first))
    }

    /// Bits of a chain's packets, as planned.
    fn planned_bits(&self, chain: usize) -> f64 {
        self.chains[chain].packet_bits()
    }

    /// Whose turn it is, with these weights, where a chain's packets have so many bits.
    fn tree(&self, tasks: &Tasks, bits: impl Fn(usize) -> f64) -> SchedulerTree {
        let (caps, first) = self.rates(tasks, bits);
        tree::of(tasks, &caps, &first)
    }

    /// What chains are held to, and what they have before all others.
    fn rates(&self, tasks: &Tasks, bits: impl Fn(usize) -> f64) -> (Vec<tree::Cap>, Vec<tree::Cap>) {
        let planned = &self.alpine.tasks;
        let (mut caps, mut first) = (Vec::new(), Vec::new());
        // Who has no other beside it needs nothing before them.
        let alone = self.chains.len() < 2;
        for (c, chain) in self.chains.iter().enumerate() {
            let enters = |n: usize| {
                let start = planned.tasks[n].start;
                self.entries.contains(&start) && self.owners[start] == Some(c)
            };
            let entering: Vec<tree::Entry> = tasks
                .tasks
                .iter()
                .enumerate()
                .filter(|(n, _)| enters(*n))
                .map(|(n, task)| tree::Entry { task: n, packets: task.packets, weight: task.weight })
                .collect();
            // What a chain is promised it has before all weights and levels: those are for what is left.
            let of_worker = |bps: f64| bps / f64::from(self.workers);
            let promised = if entering.is_empty() || alone { 0.0 } else { of_worker(chain.t_min_bps) };
            if promised > 0.0 {
                first.push(tree::Cap { tasks: entering.clone(), bps: promised, bits: bits(c), full: false });
            }
            if is_capped(chain) {
                let most = of_worker(chain.t_max_bps);
                // A little less is what ratios are asked for beside it.
                let full =
                    entering.iter().map(|own| own.packets * bits(c)).sum::<f64>() >= most * (1.0 - 2.0 * ROUNDING);
                caps.push(tree::Cap { tasks: entering, bps: (most - promised).max(0.0), bits: bits(c), full });
            }
        }
        (caps, first)
    }

    /// The modules of the pipeline by name: `port`, `classify`, and functions as `chain/function`; ways that classes have of
    /// their own have the same ones again.
    #[must_use]
    pub fn modules(&self) -> &[String] {
        &self.names
    }

    /// The tasks: the module that each begins at, and all its modules, as indices of [`Division::modules`].
    pub fn tasks(&self) -> impl Iterator<Item = (usize, &[usize])> {
        self.alpine.tasks.tasks.iter().map(|task| (task.start, &task.modules[..]))
    }

    /// By task, where it begins.
    #[must_use]
    pub fn starts(&self) -> &[Start] {
        &self.starts
    }

    /// The modules of a task, and of each the part of the task's packets that comes to it, as planned.
    pub fn parts(&self, task: usize) -> impl Iterator<Item = (usize, f64)> {
        let (packets, task) = (self.alpine.graph.packets(), &self.alpine.tasks.tasks[task]);
        task.modules.iter().map(move |m| (*m, packets[*m] / packets[task.start]))
    }

    /// The modules behind a queue that a task fills.
    pub fn entrances_in(&self, task: usize) -> impl Iterator<Item = usize> {
        let (graph, tasks) = (&self.alpine.graph, &self.alpine.tasks);
        let filled = move |start: &usize| graph.modules[*start].upstream.is_some_and(|up| tasks.task_of[up] == task);
        tasks.tasks.iter().map(|task| task.start).filter(filled)
    }

    /// Whether every chain waits in a queue that the port's task fills.
    #[must_use]
    pub fn all_wait(&self) -> bool {
        self.entries.iter().all(|entry| self.alpine.tasks.tasks.iter().any(|task| task.start == *entry))
    }

    /// The part of what comes to a queue that it shall drop at least, where more comes than can be done.
    #[must_use]
    pub fn surplus(&self) -> f64 {
        self.options.surplus
    }

    /// The modules behind a queue that the port's task fills, of chains that a relation divides what there is with, or puts before
    /// others: these are to find their queues full.
    pub fn related(&self) -> impl Iterator<Item = Related> {
        let shared = self.implied.iter().filter(|ratio| matches!(ratio, Promise::Beyond(_)));
        let subjects = self.promises.iter().chain(shared).flat_map(|promise| match promise {
            Promise::Cpu(_) | Promise::Throughput(_) | Promise::Beyond(_) => promise.subjects(),
            // The last has what the others leave.
            Promise::Priority(order) => order.iter().rev().skip(1).collect(),
            Promise::Rate { .. } => Vec::new(),
        });
        let mut entries: Vec<usize> = subjects.flatten().map(|class| self.alpine.graph.entry(*class)).collect();
        entries.sort_unstable();
        entries.dedup();
        let related = |module: usize| Related {
            module,
            promised_bps: self.owners[module].map_or(0.0, |c| self.chains[c].t_min_bps),
            chain: self.entrances_in(0).filter(|m| self.owners[*m] == self.owners[module]).collect(),
        };
        self.entrances_in(0).filter(move |m| entries.contains(m)).map(related)
    }

    /// What everything costs as planned.
    #[must_use]
    pub fn planned(&self) -> Measured {
        let (modules, queue) = (&self.alpine.graph.modules, self.alpine.graph.queue_cycles);
        Measured {
            // What the port takes is its task's source.
            modules: modules
                .iter()
                .map(|module| match (module.upstream, module.kind) {
                    (None, _) => 0.0,
                    (_, Kind::Scheduled) => (module.cycles - queue).max(0.0),
                    _ => module.cycles,
                })
                .collect(),
            entrances: vec![queue / 2.0; modules.len()],
            sources: self
                .alpine
                .tasks
                .tasks
                .iter()
                .map(|task| match modules[task.start].upstream {
                    None => modules[task.start].cycles,
                    Some(_) => queue / 2.0,
                })
                .collect(),
        }
    }
}

/// A module behind a queue that shall find it full.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// Which, by its index in [`Division::modules`].
    pub module: usize,
    /// What is promised to its chain, in bits per second.
    pub promised_bps: f64,
    /// All such modules of its chain, for what is promised is of all its classes together.
    pub chain: Vec<usize>,
}

/// What each subject of a `share` has as the plan divides what is left, where it names a class that is one of several of its
/// chain; None: it names none.
fn parts(
    policy: &PolicyGraph,
    problem: &Problem,
    placement: &Placement,
    given: &[(Subject, f64)],
) -> Option<Vec<(Subject, f64)>> {
    let whose: Vec<Traffic> = given.iter().map(|(subject, _)| traffic(policy, *subject)).collect::<Option<_>>()?;
    let all = || whose.iter().zip(given);
    whose.iter().find(|of| of.class.is_some())?;
    let carries = |of: &Traffic| placement.rates_bps.get(of.chain).copied().unwrap_or(0.0);
    let left = |(of, (_, weight)): (&Traffic, &(Subject, f64))| {
        let promised = problem.chains.get(of.chain).map_or(0.0, |chain| chain.t_min_bps);
        (carries(of) - promised) / weight
    };
    let level = all().filter(|(of, _)| of.class.is_none()).map(left).fold(0.0, f64::max);
    // Where chains have nothing beyond their promises, or none is named, nothing but the ratio is known.
    let has = |(of, (subject, weight)): (&Traffic, &(Subject, f64))| match of.class {
        _ if level <= 0.0 => (*subject, *weight),
        None => (*subject, carries(of)),
        Some(_) => (*subject, level * weight),
    };
    Some(all().map(has).collect())
}

/// Whether a chain may have less than can come.
fn is_capped(chain: &Chain) -> bool {
    chain.t_max_bps < chain.ingress_bps
}

/// Whether a relation shares what is left beyond promises among chains.
fn is_share(relation: &Relation) -> bool {
    relation.text().starts_with("share ") && relation.members().iter().all(|member| member.class.is_none())
}

/// Packets per second that one of `workers` is offered of each chain: no more than a port brings.
fn offered(policy: &PolicyGraph, problem: &Problem, hz: f64, workers: f64) -> Vec<f64> {
    let relative = shares::offered(policy, false);
    // Enough of every chain to fill a worker with it alone.
    let cost = |c: usize| -> f64 {
        let nodes = problem.chains.get(c).map_or(&[][..], |chain| &chain.nodes);
        problem.overheads.visit + nodes.iter().map(|n| n.share * n.server.unwrap_or(0.0)).sum::<f64>()
    };
    let least = (0..relative.len()).map(|c| relative[c] * cost(c).max(1.0)).fold(f64::INFINITY, f64::min);
    let most = |c: usize| {
        let chain = problem.chains.get(c);
        let packets = |bps: f64| chain.map_or(f64::INFINITY, |chain| bps / chain.packet_bits() / workers);
        chain.map_or(f64::INFINITY, |chain| packets(chain.ingress_bps).min(FAR_MORE * packets(chain.t_max_bps)))
    };
    relative.iter().enumerate().map(|(c, r)| (r * hz / least).min(most(c))).collect()
}

/// Whether a `priority` names a chain.
fn named(relations: &[Relation], chain: Option<usize>) -> bool {
    let names = |relation: &Relation| match relation {
        Relation::Priority { order, .. } => order.iter().any(|traffic| Some(traffic.chain) == chain),
        Relation::Ratio { .. } | Relation::Last(_) => false,
    };
    relations.iter().any(names)
}
