//! From a plan to the tasks of its workers, where one server runs whole chains.

use catena_plan_alpine::{Objective, Until};
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::{Link, Outcome, Placement, Site, Subgroup};
use catena_plan_model::problem::{Chain, Problem};
use catena_policy::PolicyGraph;

use crate::plan::{Plan, Verdict};
use crate::policy::Policy;
use crate::tasks::{self, Division};

/// The part of a core that a chain has of which no rate is planned.
const NEXT_TO_NOTHING: f64 = 1e-9;

/// The strategy of a plan that promises nothing: it has no rates, for its chains carry what comes.
const UNPROMISED: &str = "whole chains";

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
        return Some(format!("the cores of {} are not shared: each runs one part of the chains", server.name));
    }
    let single = placement.subgroups.iter().enumerate().find(|(n, _)| server.cores > 1 && !replicable(*n));
    let chain = single.and_then(|(_, group)| problem.chains.get(group.chain));
    chain.map(|chain| format!("{} must stay on one core of {}", chain.name, server.cores))
}

/// Why the cores of the only server do not do what is promised, where some chains have no function: no group of functions has their
/// cycles, and bringing packets in and out takes them all the same. None: they do, or every chain has functions.
fn too_many_pass(problem: &Problem) -> Option<String> {
    let server = problem.servers.first()?;
    let passes = |chain: &&Chain| chain.nodes.is_empty() && chain.t_min_bps > 0.0;
    let first = problem.chains.iter().find(passes)?;
    let cycles = |chain: &Chain| match chain.nodes.len() {
        0 => problem.overheads.visit,
        nodes => Layout::of(problem, chain, &vec![Site::Server(0); nodes]).groups.iter().map(|group| group.cost).sum(),
    };
    let cores: f64 = problem
        .chains
        .iter()
        .map(|chain| chain.t_min_bps / chain.packet_bits() * cycles(chain) / server.clock_hz)
        .sum();
    (cores > f64::from(server.cores)).then(|| {
        format!(
            "{}: what is promised takes {cores:.1} cores of {}, of which there are {}: also packets that no function sees are \
             brought in and out",
            first.name, server.name, server.cores
        )
    })
}

/// All chains on the only server, of which nothing is promised: each worker has all of them, and they carry what comes.
#[must_use]
pub fn unpromised(problem: &Problem) -> Outcome {
    let mut placement = Placement::default();
    for (id, chain) in problem.chains.iter().enumerate() {
        let sites = vec![Site::Server(0); chain.nodes.len()];
        for group in Layout::of(problem, chain, &sites).groups {
            placement.subgroups.push(Subgroup {
                chain: id,
                nodes: group.nodes,
                server: 0,
                cores: NEXT_TO_NOTHING,
                link: Link::Nic(0),
            });
        }
        placement.sites.push(sites);
        placement.rates_bps.push(0.0);
    }
    Outcome::Placed { placement, marginal_bps: 0.0, bound_bps: None }
}

impl Plan {
    /// The plan, which is of [`unpromised`].
    #[must_use]
    pub fn without_rates(self) -> Plan {
        Plan { strategy: UNPROMISED.to_owned(), ..self }
    }

    /// Whether no rates are planned, as nothing is promised: every worker runs all chains, and they carry what comes.
    #[must_use]
    pub fn has_no_rates(&self) -> bool {
        self.strategy == UNPROMISED && self.rate_bps() == 0.0
    }

    /// The plan, which is for `policy`.
    #[must_use]
    pub fn for_policy(mut self, policy: &PolicyGraph) -> Plan {
        self.policy = Some(Policy::of(policy));
        self
    }

    /// The plan, which is for `policy`, with the tasks of its workers, if all run all chains: the cores of the server take the flows as
    /// they come.
    #[must_use]
    pub fn scheduled(self, policy: &PolicyGraph, objective: Objective) -> Plan {
        self.scheduled_until(policy, objective, Until::default())
    }

    /// The same where the search for tasks has to end in time.
    #[must_use]
    pub fn scheduled_until(mut self, policy: &PolicyGraph, objective: Objective, until: Until) -> Plan {
        self = self.for_policy(policy);
        let (Some(placement), [server]) = (&self.placement, &mut self.servers[..]) else { return self };
        let groups = &server.subgroups;
        if not_whole(&self.problem, placement, |n| groups.get(n).is_some_and(|group| group.replicable)).is_some() {
            return self;
        }
        // What comes to no function waits nowhere, and nobody can hold it to a rate.
        let empty =
            self.problem.chains.iter().find(|chain| chain.nodes.is_empty() && chain.t_max_bps < chain.ingress_bps);
        if let Some(chain) = empty {
            let why = format!(
                "{} may not have all that comes, and has no function in front of which it could wait: put one there, such as \
                 Monitor(), or leave its upper end out",
                chain.name
            );
            self.verdict = Verdict::Broken { proven: true, why, remedies: None };
            return self;
        }
        if let Some(why) = too_many_pass(&self.problem) {
            self.verdict = Verdict::Broken { proven: false, why, remedies: None };
            return self;
        }
        match Division::of(policy, &self.problem, 0, placement, objective, until).map(|division| division.figures()) {
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
