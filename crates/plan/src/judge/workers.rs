//! Whose turn it is on a core that has parts of subgroups: each has cycles by its part of the core, and no more comes in of a chain
//! than it may have.

use super::Judge;
use super::tree::Held;
use crate::plan::{WorkerPart, WorkerPlan};
use catena_plan_alpine::tree::SchedulerTree;
use catena_plan_model::placement::Subgroup;
use catena_plan_model::problem::{Problem, ServerId};

/// Weights are parts of a core: so many are all of it.
const CORE: f64 = 65_536.0;

impl Judge<'_> {
    pub(super) fn worker_tree(&mut self, at: &str, server: ServerId, worker: &WorkerPlan, tree: &SchedulerTree) {
        let mut tasks = tree.tasks();
        tasks.sort_unstable();
        self.same(format!("{at}: tasks"), &tasks, &(0..worker.parts.len()).collect());
        if tasks.len() != worker.parts.len() || tasks.last().is_some_and(|last| *last >= worker.parts.len()) {
            return;
        }
        let SchedulerTree::Fair(children) = tree else { return self.leaf(at, server, worker, tree) };
        for (n, (weight, child)) in children.iter().enumerate() {
            let at = format!("{at}.fair[{n}]");
            let is = CORE * child.tasks().into_iter().map(|task| worker.parts[task].share).sum::<f64>();
            let near = (f64::from(*weight) - is).abs() <= 1.0;
            if !near {
                self.wrong(&at, format!("it has {weight} of {CORE} parts of the core, and needs {is}"));
            }
            self.leaf(&at, server, worker, child);
        }
    }

    /// A task, held to a rate where its chain may not have all that comes.
    fn leaf(&mut self, at: &str, server: ServerId, worker: &WorkerPlan, leaf: &SchedulerTree) {
        let (task, held) = match leaf {
            SchedulerTree::Task(task) => (*task, None),
            SchedulerTree::Limit { unit, rate, burst, child } => match **child {
                SchedulerTree::Task(task) => {
                    let (unit, bps, burst) = (*unit, *rate as f64, *burst as f64);
                    (task, Some(Held { unit, bps, burst, tasks: vec![task] }))
                }
                _ => return self.wrong(at, "not a task is held to a rate"),
            },
            _ => return self.wrong(at, "neither turns nor priorities are planned here"),
        };
        let part = &worker.parts[task];
        let mut placed = self.placement.subgroups.iter().filter(|group| group.server == server);
        let Some(group) = placed.nth(part.subgroup) else { return };
        match (held, most(self.problem, group, part)) {
            (None, None) => {}
            (Some(held), Some(is)) => {
                if (held.bps - is).abs() > 1.0 + is * super::TOLERANCE {
                    self.wrong(at, format!("it is held to {} bit/s, not to {is}", held.bps));
                }
                self.saves(at, &held);
            }
            (Some(_), None) => self.wrong(at, "it may have all that comes, and is held to a rate"),
            (None, Some(_)) => self.wrong(at, "it may not have all that comes, and is not held to a rate"),
        }
    }
}

/// Bits per second of its chain that a subgroup's part of a core may take in: each visit counts. None: as many as come.
fn most(problem: &Problem, group: &Subgroup, part: &WorkerPart) -> Option<f64> {
    let chain = &problem.chains[group.chain];
    let entering: f64 = group.nodes.iter().map(|node| chain.nodes[*node].entry).sum();
    let inside = |node: usize| group.nodes.contains(&node);
    let edges = chain.edges.iter().filter(|edge| inside(edge.to) && !inside(edge.from));
    let visits = entering + edges.map(|edge| edge.share).sum::<f64>();
    (chain.t_max_bps < chain.ingress_bps).then(|| chain.t_max_bps * visits * part.share / group.cores)
}
