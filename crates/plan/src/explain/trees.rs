//! The scheduler tree of each core: who runs when (Lemur, §4.2: "a per-core tree").

use super::View;
use crate::plan::{SubgroupPlan, WorkerPart};
use catena_plan_alpine::tree::{SchedulerTree, Unit};

impl View<'_> {
    /// The tree for `parts` of a core: cycles in the ratio of their shares, and where a chain may not have all
    /// that could come in, no more than it may (Lemur, §4.2: "We also use the scheduler to enforce t_max").
    pub(super) fn tree(&self, parts: &[WorkerPart], subgroups: &[SubgroupPlan]) -> SchedulerTree {
        let leaf = |task: usize, part: &WorkerPart| match self.limit(part, subgroups) {
            Some(bps) => SchedulerTree::limit(Unit::Bits, bps, SchedulerTree::Task(task)),
            None => SchedulerTree::Task(task),
        };
        let weight = |part: &WorkerPart| SchedulerTree::weight(part.share);
        match parts {
            [only] => leaf(0, only),
            several => SchedulerTree::Fair(several.iter().enumerate().map(|(i, p)| (weight(p), leaf(i, p))).collect()),
        }
    }

    /// Bits per second that a part of a core may take in; None: as many as come.
    fn limit(&self, part: &WorkerPart, subgroups: &[SubgroupPlan]) -> Option<f64> {
        let subgroup = subgroups.get(part.subgroup)?;
        let (id, chain) = self.problem.chains.iter().enumerate().find(|(_, chain)| chain.name == subgroup.chain)?;
        let visits = self.layouts.get(id)?.groups.iter().find(|group| {
            let names = group.nodes.iter().map(|&node| self.node_name(id, node));
            names.eq(subgroup.functions.iter().cloned())
        });
        let part_of_all = part.share / subgroup.cores.max(f64::MIN_POSITIVE);
        let bps = chain.t_max_bps * visits?.visits * part_of_all;
        (chain.t_max_bps < chain.ingress_bps).then_some(bps)
    }
}
