//! From a plan to the tasks of its workers, where one server runs whole chains.

use catena_plan_alpine::Objective;
use catena_plan_model::placement::{Placement, Site};
use catena_plan_model::problem::Problem;
use catena_policy::PolicyGraph;

use crate::plan::{Plan, Verdict};
use crate::policy::Policy;
use crate::tasks::{self, Division};

/// Why `placement` is not run by workers that each run all chains for their part of the flows; None: it is.
///
/// `replicable` says of a subgroup, by its index, whether it may have several cores.
#[must_use]
pub fn not_whole(problem: &Problem, placement: &Placement, replicable: impl Fn(usize) -> bool) -> Option<String> {
    let [server] = &problem.servers[..] else {
        return Some(format!("the rack has {} servers", problem.servers.len()));
    };
    if problem.switch.is_some() {
        return Some("the rack has a switch".to_owned());
    }
    if placement.sites.iter().flatten().any(|site| *site != Site::Server(0)) {
        return Some("functions run on a SmartNIC".to_owned());
    }
    if !server.shared && placement.subgroups.len() > 1 {
        return Some(format!("the cores of {} are not shared: each runs one chain", server.name));
    }
    let single = placement.subgroups.iter().enumerate().find(|(n, _)| server.cores > 1 && !replicable(*n));
    let chain = single.and_then(|(_, group)| problem.chains.get(group.chain));
    chain.map(|chain| format!("{} must stay on one core of {}", chain.name, server.cores))
}

impl Plan {
    /// The plan, which is for `policy`, with the tasks of its workers, if all run all chains: the cores of the server take the flows as they come.
    #[must_use]
    pub fn scheduled(mut self, policy: &PolicyGraph, objective: Objective) -> Plan {
        self.policy = Some(Policy::of(policy));
        let (Some(placement), [server]) = (&self.placement, &mut self.servers[..]) else { return self };
        let groups = &server.subgroups;
        if not_whole(&self.problem, placement, |n| groups.get(n).is_some_and(|group| group.replicable)).is_some() {
            return self;
        }
        match Division::of(policy, &self.problem, 0, placement, objective).map(|division| division.figures()) {
            Ok(tasks) => {
                if let Some(why) = tasks::broken(&self.problem, &tasks) {
                    self.verdict = Verdict::Broken { proven: false, why, remedies: None };
                }
                // One tree is enough to say who runs when.
                server.workers.iter_mut().for_each(|worker| worker.tree = None);
                self.set_tasks(0, tasks);
            }
            Err(why) => self.verdict = Verdict::Broken { proven: false, why, remedies: None },
        }
        self
    }
}
