//! The judge of whole plans: whether all that a plan says is so.
//!
//! The placement is held against the problem by the independent checker ([`catena_plan_model::check`]); names and figures of
//! chains, servers, links and tasks against what the checker found. Nothing here is computed by planners, by the estimate
//! or by [`crate::explain`]. A plan is judged before it is shown or written, and whenever one is read.
//!
//! What is not judged: why a plan that is not deployed cannot be; why no tasks were found; whether a better plan exists, which a bound claims, or one with fewer tasks; whether rates of chains
//! follow `priority`, while the tasks' tree is held to it; the packets of a stage or a
//! table; whether the switch is full with a function more. Who decided, the rack's and the profile's digests, and what of a delta shows
//! only beside the plan before are held to the plan's digests alone: a change by hand is found, a plan that was made with a lie is not.

mod bounds;
mod chains;
mod delta;
#[cfg(test)]
mod delta_tests;
mod deployment;
#[cfg(test)]
mod deployment_tests;
mod devices;
#[cfg(test)]
mod devices_tests;
#[cfg(test)]
mod equip_tests;
mod fault;
#[cfg(test)]
mod lie_tests;
mod paths;
#[cfg(test)]
mod said_tests;
mod servers;
mod tasks;
#[cfg(test)]
mod tests;
mod tree;
mod verdict;
#[cfg(test)]
mod verdict_tests;
#[cfg(test)]
mod walk_tests;
#[cfg(test)]
mod whole_tests;
mod workers;

use catena_plan_model::check::{Report, check};
use catena_plan_model::placement::Placement;
use catena_plan_model::problem::{Objective, Problem};
use catena_plan_model::relation::Relation;
use catena_plan_model::switch::Feasible;

use crate::plan::{MadeOf, Plan, Verdict};

pub use fault::Fault;

/// Figures may differ by this part of them: solvers compute with tolerances, and files round.
const TOLERANCE: f64 = 1e-6;

impl Plan {
    /// Whether all that the plan says is so; `switch` says what the switch of its problem holds.
    ///
    /// # Errors
    /// All that is not; if the placement already breaks the problem, that alone.
    pub fn judge(&self, switch: &dyn Feasible) -> Result<(), Vec<Fault>> {
        let faults = |places: Vec<&str>| match places.is_empty() {
            true => Ok(()),
            false => Err(places.into_iter().map(altered).collect()),
        };
        faults(self.altered())?;
        self.judge_said(switch)?;
        // Whoever changed something that shows elsewhere hears what it should be, and not only that it was changed.
        faults(self.misquoted())
    }

    /// Whether all is so that can be held against the rest of the plan.
    fn judge_said(&self, switch: &dyn Feasible) -> Result<(), Vec<Fault>> {
        let Some(placement) = &self.placement else { return self.judge_empty() };
        let report = check(&self.problem, placement, switch)
            .map_err(|violations| violations.into_iter().map(Fault::Placement).collect::<Vec<_>>())?;
        let mut judge = Judge { plan: self, problem: &self.problem, placement, report: &report, faults: Vec::new() };
        judge.heading();
        judge.verdict();
        judge.placed();
        judge.chains();
        judge.servers();
        // What follows goes by chains and servers of the problem.
        let problem = &self.problem;
        if self.chains.len() != problem.chains.len() || self.servers.len() != problem.servers.len() {
            return Err(judge.faults);
        }
        judge.links();
        judge.switch();
        judge.tasks();
        judge.deployment(switch);
        if judge.faults.is_empty() { Ok(()) } else { Err(judge.faults) }
    }

    /// A plan without a placement decides nothing.
    fn judge_empty(&self) -> Result<(), Vec<Fault>> {
        let wrong = |place: &str, what: &str| Err(vec![Fault::Wrong { place: place.into(), what: what.into() }]);
        if self.is_kept() {
            return wrong("verdict", "promises cannot be kept without a placement");
        }
        if self.deployment.is_some()
            || !self.chains.is_empty()
            || self.servers.iter().any(|s| !s.subgroups.is_empty() || s.tasks.is_some())
        {
            return wrong("chains", "nothing is placed, and functions are shown on devices");
        }
        Ok(())
    }
}

fn altered(place: &str) -> Fault {
    let what = "this is not what the plan was made with: it was changed afterwards, as its digest tells";
    Fault::Wrong { place: place.to_owned(), what: what.to_owned() }
}

/// The chains and classes of a ratio of this kind; None: it is of another.
fn subjects<'a>(text: &'a str, kind: &str) -> Option<Vec<&'a str>> {
    let (subjects, _) = text.strip_prefix(kind)?.split_once(" = ")?;
    Some(subjects.split(" : ").collect())
}

/// A plan whose placement the checker found no fault with.
struct Judge<'a> {
    plan: &'a Plan,
    problem: &'a Problem,
    placement: &'a Placement,
    report: &'a Report,
    faults: Vec<Fault>,
}

impl Judge<'_> {
    fn wrong(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.faults.push(Fault::Wrong { place: place.into(), what: what.into() });
    }

    /// What the plan says must be what is.
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, place: impl Into<String>, says: &T, is: &T) {
        if says != is {
            let (says, is) = (format!("{says:?}"), format!("{is:?}"));
            self.faults.push(Fault::Differs { place: place.into(), says, is });
        }
    }

    /// A figure must be the other one, but for the tolerance of figures of this size.
    fn close(&mut self, place: impl Into<String>, says: f64, is: f64, size: f64) {
        let near = (says - is).abs() <= TOLERANCE * size.abs().max(1e-3);
        if !near {
            self.faults.push(Fault::Differs { place: place.into(), says: says.to_string(), is: is.to_string() });
        }
    }

    /// Two lists must be of one length; whether they are.
    fn as_many(&mut self, place: &str, says: usize, is: usize) -> bool {
        self.same(format!("{place}: entries"), &says, &is);
        says == is
    }

    /// What is said of the whole.
    fn heading(&mut self) {
        let (plan, problem) = (self.plan, self.problem);
        self.same("objective", &plan.objective, &problem.objective);
        self.same("replication", &plan.replication, &problem.replication);
        self.same("unseen", &plan.unseen, &problem.unseen);
        if plan.held.is_some_and(|part| !(part > 0.0 && part < 1.0)) {
            self.wrong("held", "it is no part of what is promised");
        }
        let Some(policy) = &plan.policy else { return self.packets() };
        let names = |policy: &crate::policy::Policy| policy.chains.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        let chains: Vec<String> = problem.chains.iter().map(|chain| chain.name.clone()).collect();
        // What it should be is not said: that would only help whoever wrote another policy into the plan.
        if plan.made_of.as_ref().is_some_and(|made| made.policy != MadeOf::policy(policy, problem)) {
            self.faults.push(altered("made_of.policy"));
        }
        self.same("policy.chains", &names(policy), &chains);
        self.relations(&policy.relations);
        self.packets();
    }

    /// The relations of the file are those that were planned, and those of which it is known that nothing holds them.
    fn relations(&mut self, written: &[String]) {
        let problem = self.problem;
        let related = problem.relations.iter().map(Relation::text).filter(|text| !text.is_empty());
        let known: Vec<&str> = related.chain(problem.unseen.iter().map(String::as_str)).collect();
        for text in &known {
            if !written.iter().any(|relation| relation == text) {
                self.wrong("policy.relations", format!("`{text}` was planned, and is not there"));
            }
        }
        // A ratio of cycles or packets says more than a share of what is left, which is then not planned.
        let ratios = known.iter().filter_map(|text| subjects(text, "cpu ").or_else(|| subjects(text, "throughput ")));
        let told: Vec<&str> = ratios.flatten().collect();
        for text in written.iter().filter(|text| !known.contains(&text.as_str())) {
            let is_told = subjects(text, "share ").is_some_and(|all| all.iter().any(|own| told.contains(own)));
            if !is_told {
                self.wrong("policy.relations", format!("`{text}` is there, and was not planned"));
            }
        }
    }

    fn packets(&mut self) {
        let (plan, problem) = (self.plan, self.problem);
        for (id, chain) in problem.chains.iter().enumerate() {
            self.same(format!("packet_bytes of chain {id}"), &plan.packet_bytes, &chain.packet_bytes);
        }
    }

    /// What is kept, how much is beyond the promises, and that no less is said to be the most.
    fn verdict(&mut self) {
        let Verdict::Kept { marginal_bps, bound_bps } = self.plan.verdict else { return };
        let beyond: Vec<(f64, f64)> =
            self.problem.chains.iter().zip(&self.report.chains).map(|(c, r)| (c.weight, r.marginal_bps)).collect();
        let mut is = 0.0;
        match self.problem.objective {
            Objective::Marginal => beyond.iter().for_each(|(_, bps)| is += bps),
            Objective::Weighted => beyond.iter().for_each(|(weight, bps)| is += weight * bps),
            Objective::Fair => {
                let mut relative: Vec<f64> =
                    beyond.iter().filter(|(weight, _)| *weight > 0.0).map(|(weight, bps)| bps / weight).collect();
                relative.sort_by(f64::total_cmp);
                is = relative.first().copied().unwrap_or(0.0);
            }
        }
        let size: f64 = self.placement.rates_bps.iter().zip(&beyond).map(|(rate, (w, _))| rate * w.max(1.0)).sum();
        self.close("verdict.marginal_bps", marginal_bps, is, size);
        if bound_bps.is_some_and(|bound| bound < is - TOLERANCE * size) {
            self.wrong("verdict.bound_bps", format!("no plan is said to have more, and this one has {is}"));
        }
        // Some chain comes before another one, where a fair division is not what planners look for.
        let ranked = self.problem.relations.iter().any(|relation| match relation {
            Relation::Priority { order, .. } => order.len() > 1 && self.problem.chains.len() > 1,
            Relation::Last(chains) => chains.len() < self.problem.chains.len(),
            Relation::Ratio { .. } => false,
        });
        if bound_bps.is_some() && ranked && self.problem.objective == Objective::Fair {
            self.wrong("verdict.bound_bps", "nothing is proven of a fair division where chains come first");
        }
        if bound_bps.is_some() && !self.problem.unseen.is_empty() {
            self.wrong("verdict.bound_bps", "nothing is proven of relations within chains");
        }
    }
}
