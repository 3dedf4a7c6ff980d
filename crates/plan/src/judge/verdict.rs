//! Whether the verdict of a plan that is placed is so. The placement keeps what is promised, or the checker had refused it: what is
//! called broken breaks in the tasks of the workers.

use super::Judge;
use super::tasks::sum;
use crate::plan::Verdict;
use crate::tasks::TaskPlan;
use catena_plan_model::problem::Chain;

/// What a promise may be missed by, relative: a queue costs cycles that no plan of rates knows of.
pub(super) const ROUNDING: f64 = 1e-2;

impl Judge<'_> {
    pub(super) fn placed(&mut self) {
        let (plan, problem) = (self.plan, self.problem);
        let tasks = plan.servers.iter().find_map(|server| server.tasks.as_ref());
        // Only the workers of a chain file's only server have tasks.
        let server = plan.servers.first().filter(|_| plan.policy.is_some());
        let lacks = tasks.is_none() && server.is_some_and(|server| self.no_tasks(server).is_none());
        let related = !problem.relations.is_empty() || !problem.unseen.is_empty();
        let least = problem.chains.iter().any(|chain| chain.t_min_bps > 0.0);
        // A run of which nothing is promised has no rates, and needs no tasks that would hold them.
        let held = related || problem.chains.iter().any(is_capped);
        let promised = least || held && !plan.has_no_rates();
        let Verdict::Broken { proven, remedies, .. } = &plan.verdict else {
            if lacks && promised {
                self.wrong("verdict", "promises are said to be kept, and the workers have no tasks that keep them");
            }
            return;
        };
        // Of all that breaks where something is placed, this alone is proven.
        let passes = |chain: &Chain| chain.nodes.is_empty() && is_capped(chain);
        if *proven && !(lacks && problem.chains.iter().any(passes)) {
            self.wrong("verdict.proven", "no plan is said to keep the promises, and nothing shows that");
        }
        if remedies.is_some() {
            self.wrong("verdict.remedies", "the rack carries what is promised, and more is said to be needed");
        }
        // What cannot run keeps nothing.
        let runs = plan.deployment.is_some();
        let late = tasks.is_some_and(|tasks| self.late(tasks).is_some());
        if runs && !late && !(lacks && promised) {
            self.wrong("verdict", "promises are said to be broken, and every chain gets what it is promised");
        }
    }

    /// A chain that gets less than it is promised by tasks that hold what the file relates, and how much it gets.
    pub(super) fn late(&self, plan: &TaskPlan) -> Option<(&Chain, f64)> {
        let problem = self.problem;
        let written = problem.relations.iter().any(|relation| !relation.text().is_empty());
        if !written && problem.unseen.is_empty() {
            return None;
        }
        let gets = |chain: &Chain| sum(plan, chain, |class| class.packets) * chain.packet_bytes * 8.0;
        let mut all = problem.chains.iter().map(|chain| (chain, gets(chain)));
        all.find(|(chain, gets)| *gets < chain.t_min_bps * (1.0 - ROUNDING))
    }
}

/// Whether a chain may have less than can come.
fn is_capped(chain: &Chain) -> bool {
    chain.t_max_bps < chain.ingress_bps
}
