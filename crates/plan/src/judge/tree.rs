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
/// What figures that solvers found may be off by, relative.
const SOLVED: f64 = 1e-3;

impl Judge<'_> {
    pub(super) fn tree(&mut self, at: &str, plan: &TaskPlan, seen: &Seen) {
        let at = format!("{at}.tree");
        let mut scheduled = plan.tree.tasks();
        scheduled.sort_unstable();
        self.same(format!("{at}: tasks"), &scheduled, &(0..plan.tasks.len()).collect());
        if scheduled.last().is_some_and(|last| *last >= plan.tasks.len()) {
            return;
        }
        let levels = match &plan.tree {
            SchedulerTree::Priority(levels) => &levels[..],
            one => std::slice::from_ref(one),
        };
        for (n, level) in levels.iter().enumerate() {
            let place = if levels.len() > 1 { format!("{at}.priority[{n}]") } else { at.clone() };
            let all: f64 = level.tasks().iter().map(|task| plan.tasks[*task].cycles).sum();
            // Who gets nothing where others take all has its weights for when they do not: only their sum is known.
            let sum: f64 = level.tasks().iter().map(|task| plan.tasks[*task].weight).sum();
            if all <= 0.0 {
                self.close(format!("{place}: weights"), sum, 1.0, 1.0);
            }
            for task in level.tasks().into_iter().filter(|_| all > 0.0) {
                let is = plan.tasks[task].cycles / all;
                self.close(format!("{place}: weight of task {task}"), plan.tasks[task].weight, is, 1.0);
            }
            self.level(&place, plan, level);
        }
        self.priorities(&at, seen, levels);
        self.limits(&at, plan, seen, levels);
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
                    let (has, is) = (f64::from(*has) / sum, if all > 0.0 { weight(child) / all } else { 0.0 });
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
    fn priorities(&mut self, at: &str, seen: &Seen, levels: &[SchedulerTree]) {
        let mut level = vec![0; seen.begins.len()];
        for (n, tree) in levels.iter().enumerate() {
            tree.tasks().into_iter().for_each(|task| level[task] = n);
        }
        let port = level[0];
        // The first and the last level of each chain.
        let of: Vec<(usize, usize)> = seen
            .of
            .iter()
            .map(|tasks| {
                let own = || tasks.iter().map(|task| level[*task]);
                (own().min().unwrap_or(port), own().max().unwrap_or(port))
            })
            .collect();
        let all: Vec<ChainId> = (0..self.problem.chains.len()).collect();
        let mut before: Vec<(ChainId, ChainId, String)> = Vec::new();
        for relation in &self.problem.relations {
            match relation {
                Relation::Priority { order, text } => {
                    before.extend(order.windows(2).map(|pair| (pair[0], pair[1], format!("`{text}`"))));
                }
                Relation::Last(last) => {
                    for first in all.iter().filter(|chain| !last.contains(chain)) {
                        let why = "what leaves nothing has what others leave";
                        before.extend(last.iter().map(|later| (*first, *later, why.to_owned())));
                    }
                }
                Relation::Ratio { .. } => {}
            }
        }
        if before.is_empty() && self.problem.within.is_empty() && levels.len() > 1 {
            self.wrong(at, "nobody comes first by the file");
        }
        for (first, later, why) in before {
            if of[later].0 <= of[first].1 {
                let [first, later] = [first, later].map(|chain| &self.problem.chains[chain].name);
                self.wrong(at, format!("{first} does not come before {later}: {why}"));
            }
        }
        if port != 0 {
            self.wrong(at, "the port's task does not come first: nothing would be read");
        }
    }

    /// Who may not have all that comes is held to what it may have, and who comes before others that are promised something to
    /// what it gets; nobody else is.
    fn limits(&mut self, at: &str, plan: &TaskPlan, seen: &Seen, levels: &[SchedulerTree]) {
        let mut held = Vec::new();
        gather(&plan.tree, &mut held);
        let mut limit_of: Vec<Option<usize>> = vec![None; plan.tasks.len()];
        for (n, limit) in held.iter().enumerate() {
            limit.tasks.iter().for_each(|task| limit_of[*task] = Some(n));
            let mut chains: Vec<Option<ChainId>> =
                limit.tasks.iter().map(|task| seen.begins[*task].map(|place| place.0)).collect();
            chains.dedup();
            if !matches!(chains[..], [Some(_)]) {
                self.wrong(at, "what is held to a rate is not one chain");
            }
            self.same(format!("{at}: what a limit counts"), &limit.unit, &Unit::Bits);
            let saved = limit.bps * SAVED_SECONDS;
            if limit.burst < 1.0 || (limit.burst - saved).abs() > 1.0 {
                self.wrong(at, format!("{} bits are saved up where {} a second may pass", limit.burst, limit.bps));
            }
        }
        let before = self.before_promised(seen, levels);
        let workers = f64::from(plan.workers);
        for (id, chain) in self.problem.chains.iter().enumerate() {
            let enters = |task: &&usize| match (&plan.tasks[**task].start, seen.begins[**task]) {
                (Start::Function { .. }, Some((_, node))) => chain.nodes[node].entry > 0.0,
                _ => true,
            };
            let entering: Vec<usize> = seen.of[id].iter().filter(enters).copied().collect();
            let capped = chain.t_max_bps < chain.ingress_bps;
            let must = |task: &usize| capped || before[*task];
            if (capped && entering.is_empty()) || entering.iter().any(|task| must(task) && limit_of[*task].is_none()) {
                self.wrong(at, format!("{} may not have all that comes, and is not held to a rate", chain.name));
                continue;
            }
            if seen.of[id].iter().any(|task| limit_of[*task].is_some() && !(must(task) && entering.contains(task))) {
                self.wrong(at, format!("{} may have all that comes, and is held to a rate", chain.name));
            }
            let mut own: Vec<usize> = entering.iter().filter_map(|task| limit_of[*task]).collect();
            own.sort_unstable();
            own.dedup();
            let sum: f64 = own.iter().map(|limit| held[*limit].bps).sum();
            // Each limit is a whole number, and 1 at least.
            let rounded = own.len() as f64;
            let most = chain.t_max_bps / workers * (1.0 + super::TOLERANCE) + rounded;
            let first = entering.iter().any(|task| before[*task]);
            let limited = entering.iter().filter(|task| limit_of[**task].is_some());
            let gets = limited.map(|task| plan.tasks[*task].packets).sum::<f64>() * 8.0 * chain.packet_bytes;
            let least = if first { gets } else { most - 2.0 * rounded } * (1.0 - SOLVED) - rounded;
            if capped && sum > most || !own.is_empty() && sum < least {
                self.wrong(at, format!("{} is held to {sum} bit/s of a worker, not to {least} to {most}", chain.name));
            }
            if first && !capped && sum > gets * (1.0 + SOLVED) + rounded {
                self.wrong(at, format!("{} is held to {sum} bit/s of a worker, and gets {gets}", chain.name));
            }
        }
    }

    /// By task: whether a chain that is promised something has nothing but later levels.
    fn before_promised(&self, seen: &Seen, levels: &[SchedulerTree]) -> Vec<bool> {
        let mut level = vec![0; seen.begins.len()];
        for (n, tree) in levels.iter().enumerate() {
            tree.tasks().into_iter().for_each(|task| level[task] = n);
        }
        let promised = self.problem.chains.iter().zip(&seen.of).filter(|(chain, _)| chain.t_min_bps > 0.0);
        let last = promised.filter_map(|(_, tasks)| tasks.iter().map(|task| level[*task]).min()).max().unwrap_or(0);
        (0..level.len()).map(|task| seen.begins[task].is_some() && level[task] < last).collect()
    }
}

/// A rate limit of a tree.
struct Held {
    unit: Unit,
    bps: f64,
    burst: f64,
    tasks: Vec<usize>,
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
