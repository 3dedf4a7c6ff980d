//! Who runs when on a worker that runs whole chains: the scheduler's tree against the tasks, the relations and the upper ends
//! of promises.

use super::Judge;
use super::tasks::Seen;
use crate::tasks::{Start, TaskPlan};
use catena_plan_alpine::tree::{SchedulerTree, Unit};
use catena_plan_model::problem::ChainId;
use catena_plan_model::relation::Relation;

/// Weights are whole numbers: each may be off by this part of all.
const WEIGHT: f64 = 1.0 / 32_768.0;
/// A limit saves up what comes in this many seconds.
const SAVED_SECONDS: f64 = 1e-2;

/// Who has all that it gets by its promise has still this part of its weight.
const LEFT: f64 = 0.01;
/// Who gets so much of what it may have is held by its limit alone, and its weight is so many times what it takes.
const HELD: (f64, f64) = (0.98, 3.0);

/// A chain in an order, or one of its classes by name.
type Standing<'a> = (ChainId, Option<&'a str>);

impl Judge<'_> {
    pub(super) fn tree(&mut self, at: &str, plan: &TaskPlan, seen: &Seen) {
        let at = format!("{at}.tree");
        let mut scheduled = plan.tree.tasks();
        scheduled.sort_unstable();
        // Who is promised something stands in front of all levels, and on its own one again.
        scheduled.dedup();
        self.same(format!("{at}: tasks"), &scheduled, &(0..plan.tasks.len()).collect());
        if scheduled.last().is_some_and(|last| *last >= plan.tasks.len()) {
            return;
        }
        let levels = match &plan.tree {
            SchedulerTree::Fair(both) => match &both[..] {
                [(port, SchedulerTree::Task(0)), (others, SchedulerTree::Priority(levels))] => {
                    self.beside(&at, plan, [*port, *others]);
                    self.promised(&at, plan, seen, levels)
                }
                _ => std::slice::from_ref(&plan.tree),
            },
            one => std::slice::from_ref(one),
        };
        let promised = (0..self.problem.chains.len())
            .any(|id| self.problem.chains[id].t_min_bps > 0.0 && self.is_first(&self.entering(plan, seen, id)));
        if promised && levels.len() == 1 && std::ptr::eq(&raw const levels[0], &raw const plan.tree) {
            self.wrong(&at, "what chains are promised stands in front of nothing");
        }
        let beyond = self.beyond(plan, seen);
        for (n, level) in levels.iter().enumerate() {
            let place = if levels.len() > 1 { format!("{at}.priority[{n}]") } else { at.clone() };
            let all: f64 = level.tasks().iter().map(|task| beyond[*task]).sum();
            // Who gets nothing where others take all has its weights for when they do not: only their sum is known.
            let sum: f64 = level.tasks().iter().map(|task| plan.tasks[*task].weight).sum();
            if all <= 0.0 {
                self.close(format!("{place}: weights"), sum, 1.0, 1.0);
            }
            for task in level.tasks().into_iter().filter(|_| all > 0.0) {
                let is = beyond[task] / all;
                self.close(format!("{place}: weight of task {task}"), plan.tasks[task].weight, is, 1.0);
            }
            self.level(&place, plan, level);
        }
        self.priorities(&at, plan, seen, levels);
        self.limits(&at, plan, seen, levels);
    }

    /// The cycles of each task, but for those that what its chain is promised takes in front of all levels; of a chain that gets all
    /// that it may have some more.
    fn beyond(&self, plan: &TaskPlan, seen: &Seen) -> Vec<f64> {
        let mut cycles: Vec<f64> = plan.tasks.iter().map(|task| task.cycles).collect();
        for (id, chain) in self.problem.chains.iter().enumerate() {
            let tasks = self.entering(plan, seen, id);
            let all: f64 = tasks.iter().map(|task| plan.tasks[*task].packets).sum();
            if chain.t_min_bps > 0.0 && all > 0.0 && self.is_first(&tasks) {
                let promised = chain.t_min_bps / f64::from(plan.workers) / chain.packet_bits();
                tasks.iter().for_each(|task| cycles[*task] *= (1.0 - promised / all).max(LEFT));
            }
            let most = chain.t_max_bps / f64::from(plan.workers) / chain.packet_bits();
            if chain.t_max_bps < chain.ingress_bps && all >= most * HELD.0 {
                tasks.iter().for_each(|task| cycles[*task] *= HELD.1);
            }
        }
        cycles
    }

    /// In front of all levels stands what chains are promised, and nothing else; returns the levels.
    fn promised<'a>(
        &mut self,
        at: &str,
        plan: &TaskPlan,
        seen: &Seen,
        all: &'a [SchedulerTree],
    ) -> &'a [SchedulerTree] {
        let wanted = plan.tasks.len() - 1;
        // The levels are the last ones that have every task once.
        let mut from = all.len();
        let mut found = 0;
        while found < wanted && from > 0 {
            from -= 1;
            found += all[from].tasks().len();
        }
        let levels = &all[from..];
        let mut held = Vec::new();
        all[..from].iter().for_each(|tree| gather(tree, &mut held));
        let in_limits: usize = held.iter().map(|limit| limit.tasks.len()).sum();
        if from > 1 || in_limits != all[..from].iter().map(|tree| tree.tasks().len()).sum::<usize>() {
            self.wrong(at, "in front of all levels stands what is promised, held to that, and nothing else");
        }
        for (id, chain) in self.problem.chains.iter().enumerate() {
            let tasks = self.entering(plan, seen, id);
            let is = if self.is_first(&tasks) { chain.t_min_bps / f64::from(plan.workers) } else { 0.0 };
            let own: Vec<&Held> =
                held.iter().filter(|limit| limit.tasks.iter().any(|task| tasks.contains(task))).collect();
            let has = match own[..] {
                [] => 0.0,
                [limit] if limit.tasks.len() == tasks.len() && limit.unit == Unit::Bits => limit.bps,
                _ => f64::NAN,
            };
            if has.is_nan() || (has - is).abs() > 1.0 + is * super::TOLERANCE {
                self.wrong(at, format!("{} has {has} bit/s before all levels, and is promised {is}", chain.name));
            }
        }
        held.iter().for_each(|limit| self.saves(at, limit));
        self.side_by_side(at, plan, &all[..from], levels);
        levels
    }

    /// Promises are kept beside each other, whoever they are made to; the tasks of one share it by weight.
    fn side_by_side(&mut self, at: &str, plan: &TaskPlan, front: &[SchedulerTree], levels: &[SchedulerTree]) {
        let limits: Vec<&SchedulerTree> = match front {
            [SchedulerTree::Fair(children)] => {
                if children.iter().any(|(weight, _)| *weight != children[0].0 || *weight == 0) {
                    self.wrong(at, "in front of all levels, promises do not have the same weight each");
                }
                children.iter().map(|(_, child)| child).collect()
            }
            other => other.iter().collect(),
        };
        for limit in limits {
            let SchedulerTree::Limit { child, .. } = limit else {
                self.wrong(at, "in front of all levels stands what is not held to a rate");
                continue;
            };
            // Weights are those of a level: what is on several has no common one.
            let tasks = child.tasks();
            if levels.iter().any(|level| tasks.iter().all(|task| level.tasks().contains(task))) {
                self.level(at, plan, child);
            }
        }
    }

    /// Whether what a chain with these tasks is promised stands in front of all: where it waits beside others.
    fn is_first(&self, tasks: &[usize]) -> bool {
        !tasks.is_empty() && self.problem.chains.len() > 1
    }

    /// A limit saves up no more than it should.
    pub(super) fn saves(&mut self, at: &str, limit: &Held) {
        self.same(format!("{at}: what a limit counts"), &limit.unit, &Unit::Bits);
        let saved = limit.bps * SAVED_SECONDS;
        if limit.burst < 1.0 || (limit.burst - saved).abs() > 1.0 + SAVED_SECONDS {
            self.wrong(at, format!("{} bits are saved up where {} a second may pass", limit.burst, limit.bps));
        }
    }

    /// The tasks that a chain enters by.
    fn entering(&self, plan: &TaskPlan, seen: &Seen, id: ChainId) -> Vec<usize> {
        let nodes = &self.problem.chains[id].nodes;
        let enters = |task: &&usize| match (&plan.tasks[**task].start, seen.begins[**task]) {
            (Start::Function { .. }, Some((_, node))) => nodes[node].entry > 0.0,
            _ => true,
        };
        seen.of[id].iter().filter(enters).copied().collect()
    }

    /// The port's task has its part beside all others.
    fn beside(&mut self, at: &str, plan: &TaskPlan, has: [u32; 2]) {
        let [port, others] = has.map(f64::from);
        let all: f64 = plan.tasks.iter().map(|task| task.cycles).sum();
        let is = if all > 0.0 { plan.tasks[0].cycles / all } else { 0.5 };
        self.close(format!("{at}: weight of task 0"), plan.tasks[0].weight, is, 1.0);
        let part = port / (port + others);
        if (part - is).abs() > WEIGHT {
            self.wrong(at, format!("the port's task has {part} of the cycles, and needs {is}"));
        }
    }

    /// On a level all share by weight.
    fn level(&mut self, at: &str, plan: &TaskPlan, tree: &SchedulerTree) {
        match tree {
            SchedulerTree::Task(_) => {}
            SchedulerTree::Limit { child, .. } => match **child {
                SchedulerTree::Limit { .. } => self.wrong(at, "a limit within a limit"),
                _ => self.level(at, plan, child),
            },
            SchedulerTree::Fair(children) => {
                let sum: f64 = children.iter().map(|(weight, _)| f64::from(*weight)).sum();
                let weight =
                    |tree: &SchedulerTree| tree.tasks().iter().map(|task| plan.tasks[*task].weight).sum::<f64>();
                let all = weight(tree);
                for (n, (has, child)) in children.iter().enumerate() {
                    let (has, is) = (
                        f64::from(*has) / sum,
                        if all > 0.0 { weight(child) / all } else { 1.0 / children.len() as f64 },
                    );
                    if (has - is).abs() > WEIGHT * children.len() as f64 {
                        self.wrong(
                            format!("{at}.fair[{n}]"),
                            format!("it has {has} of the cycles, its tasks need {is}"),
                        );
                    }
                    self.level(&format!("{at}.fair[{n}]"), plan, child);
                }
            }
            SchedulerTree::Priority(_) | SchedulerTree::RoundRobin(_) => {
                self.wrong(at, "neither turns nor priorities within a level are planned");
            }
        }
    }

    /// Who comes first by the file comes first in the tree, and nobody else does.
    fn priorities(&mut self, at: &str, plan: &TaskPlan, seen: &Seen, levels: &[SchedulerTree]) {
        let mut level = vec![0; seen.begins.len()];
        for (n, tree) in levels.iter().enumerate() {
            tree.tasks().into_iter().for_each(|task| level[task] = n);
        }
        // The first and the last level of a chain, or of one of its classes; who waits for no turn is before all.
        let of = |(chain, class): Standing<'_>| {
            let is_own = |task: &&usize| {
                class.is_none_or(|class| matches!(&plan.tasks[**task].start, Start::Class(own) if own == class))
            };
            let own = || seen.of[chain].iter().filter(is_own).map(|task| level[*task]);
            (own().min().unwrap_or(0), own().max().unwrap_or(0))
        };
        let all: Vec<ChainId> = (0..self.problem.chains.len()).collect();
        let mut before: Vec<(Standing<'_>, Standing<'_>, String)> = Vec::new();
        for relation in &self.problem.relations {
            match relation {
                Relation::Priority { order, text } => {
                    let names = text.split_once(' ').map_or("", |(_, names)| names).split('>').map(str::trim);
                    let standing =
                        order.iter().zip(names).map(|(traffic, name)| (traffic.chain, traffic.class.map(|_| name)));
                    let standing: Vec<Standing<'_>> = standing.collect();
                    before.extend(standing.windows(2).map(|pair| (pair[0], pair[1], format!("`{text}`"))));
                }
                Relation::Last(last) => {
                    for first in all.iter().filter(|chain| !last.contains(chain)) {
                        let why = "what leaves nothing has what others leave";
                        before.extend(last.iter().map(|later| ((*first, None), (*later, None), why.to_owned())));
                    }
                }
                Relation::Ratio { .. } => {}
            }
        }
        if before.is_empty() && self.problem.unseen.is_empty() && levels.len() > 1 {
            self.wrong(at, "nobody comes first by the file");
        }
        // The packets of a chain without functions leave in the port's task: they wait for nobody, and nobody for them.
        let waits = |chain: ChainId| !self.problem.chains[chain].nodes.is_empty();
        before.retain(|(first, later, _)| waits(first.0) && waits(later.0));
        for (first, later, why) in before {
            if of(later).0 <= of(first).1 {
                let [first, later] =
                    [first, later].map(|(chain, class)| class.unwrap_or(&self.problem.chains[chain].name));
                self.wrong(at, format!("{first} does not come before {later}: {why}"));
            }
        }
    }

    /// Who may not have all that comes is held to what it may have, beyond what it has before all levels; nobody else is.
    fn limits(&mut self, at: &str, plan: &TaskPlan, seen: &Seen, levels: &[SchedulerTree]) {
        let mut held = Vec::new();
        levels.iter().for_each(|level| gather(level, &mut held));
        let mut limit_of: Vec<Option<usize>> = vec![None; plan.tasks.len()];
        for (n, limit) in held.iter().enumerate() {
            limit.tasks.iter().for_each(|task| limit_of[*task] = Some(n));
            let mut chains: Vec<Option<ChainId>> =
                limit.tasks.iter().map(|task| seen.begins[*task].map(|place| place.0)).collect();
            chains.dedup();
            if !matches!(chains[..], [Some(_)]) {
                self.wrong(at, "what is held to a rate is not one chain");
            }
            self.saves(at, limit);
        }
        let workers = f64::from(plan.workers);
        for (id, chain) in self.problem.chains.iter().enumerate() {
            let entering = self.entering(plan, seen, id);
            let capped = chain.t_max_bps < chain.ingress_bps;
            if capped && (entering.is_empty() || entering.iter().any(|task| limit_of[*task].is_none())) {
                self.wrong(at, format!("{} may not have all that comes, and is not held to a rate", chain.name));
                continue;
            }
            if seen.of[id].iter().any(|task| limit_of[*task].is_some() && !(capped && entering.contains(task))) {
                self.wrong(at, format!("{} may have all that comes, and is held to a rate", chain.name));
            }
            if !capped {
                continue;
            }
            let mut own: Vec<usize> = entering.iter().filter_map(|task| limit_of[*task]).collect();
            own.sort_unstable();
            own.dedup();
            let sum: f64 = own.iter().map(|limit| held[*limit].bps).sum();
            let first = if self.is_first(&entering) { chain.t_min_bps } else { 0.0 };
            let is = (chain.t_max_bps - first) / workers;
            // Each limit is a whole number, and 1 at least.
            if (sum - is).abs() > own.len() as f64 + is * super::TOLERANCE {
                self.wrong(at, format!("{} is held to {sum} bit/s of a worker, not to {is}", chain.name));
            }
        }
    }
}

/// A rate limit of a tree.
pub(super) struct Held {
    pub unit: Unit,
    pub bps: f64,
    pub burst: f64,
    pub tasks: Vec<usize>,
}

/// Every limit of a tree.
fn gather(tree: &SchedulerTree, into: &mut Vec<Held>) {
    match tree {
        SchedulerTree::Task(_) => {}
        SchedulerTree::Limit { unit, rate, burst, child } => {
            into.push(Held { unit: *unit, bps: *rate as f64, burst: *burst as f64, tasks: child.tasks() });
            gather(child, into);
        }
        SchedulerTree::Fair(children) => children.iter().for_each(|(_, child)| gather(child, into)),
        SchedulerTree::Priority(children) | SchedulerTree::RoundRobin(children) => {
            children.iter().for_each(|child| gather(child, into));
        }
    }
}
