//! Digests of what stands in a plan's file once, with nothing beside it that it could be held against: so that what somebody changed by
//! hand is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Plan, ServerPlan, Verdict};
use crate::policy::fnv_of;
use catena_plan_model::problem::Problem;

/// The digests. They are no signature: who changes a plan and these too is not found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Digests {
    /// Of what had to be decided: costs, promises, devices.
    pub problem: String,
    /// Of what no plan is said to exceed, if promises were kept.
    pub bound: String,
    /// Of how many cores a socket of each server has.
    pub sockets: String,
    /// Of how many cores of each server are for steering.
    pub steering: String,
    /// Of what else is said once: the rack's name, the changes that were asked for, whose figures are borrowed, and what is proven of
    /// tasks.
    pub said: String,
    /// Of how far paths are numbered.
    pub numbered: String,
    /// Of the part of the promises that was planned for; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

impl Digests {
    pub(crate) fn of(problem: &Problem, verdict: &Verdict, servers: &[ServerPlan]) -> Digests {
        let bound = match verdict {
            Verdict::Kept { bound_bps, .. } => *bound_bps,
            Verdict::Broken { .. } => None,
        };
        let sockets: Vec<u32> = servers.iter().map(|server| server.cores_per_socket).collect();
        let steering: Vec<usize> = servers.iter().map(|server| server.steering.len()).collect();
        Digests {
            problem: fnv_of(problem),
            bound: fnv_of(&bound),
            sockets: fnv_of(&sockets),
            steering: fnv_of(&steering),
            said: String::new(),
            numbered: String::new(),
            held: None,
        }
    }

    fn held(part: Option<f64>) -> Option<String> {
        part.map(|part| fnv_of(&part))
    }
}

impl Plan {
    /// Digest anew what is said once.
    pub fn seal(&mut self) {
        let (said, numbered) = (self.said(), self.numbered());
        if let Some(digests) = &mut self.digests {
            (digests.said, digests.numbered) = (said, numbered);
        }
    }

    fn said(&self) -> String {
        let functions = self.chains.iter().flat_map(|chain| &chain.functions);
        let borrowed: Vec<bool> = functions.map(|function| function.borrowed).collect();
        let tasks = self.servers.iter().filter_map(|server| server.tasks.as_ref());
        let proven: Vec<(bool, bool)> = tasks.map(|tasks| (tasks.minimal, tasks.cut_short)).collect();
        fnv_of(&((&self.rack, &self.what_if, &self.borrowed), (borrowed, proven)))
    }

    fn numbered(&self) -> String {
        fnv_of(&self.deployment.as_ref().map(|deployment| deployment.spi))
    }

    /// The plan, which is for this part of the promises alone; None: for all of them.
    #[must_use]
    pub fn for_part(mut self, part: Option<f64>) -> Plan {
        self.held = part;
        self.digests.iter_mut().for_each(|digests| digests.held = Digests::held(part));
        self
    }

    /// What its figures follow from, and was changed since the plan was made, as far as its digests tell; nothing where it has none.
    #[must_use]
    pub fn altered(&self) -> Vec<&'static str> {
        let Some(made) = &self.digests else { return Vec::new() };
        let is = Digests::of(&self.problem, &self.verdict, &self.servers);
        // What was proven of a placement is not said of one that is given up afterwards.
        let bound = self.is_kept() && made.bound != is.bound;
        let parts = [
            ("problem", made.problem != is.problem),
            ("verdict.bound_bps", bound),
            ("servers: cores_per_socket", made.sockets != is.sockets),
            ("servers: steering", made.steering != is.steering),
            ("held", made.held != Digests::held(self.held)),
        ];
        parts.into_iter().filter_map(|(what, altered)| altered.then_some(what)).collect()
    }

    /// What of that which is said once was changed, as far as its digests tell.
    pub(crate) fn misquoted(&self) -> Vec<&'static str> {
        let Some(made) = &self.digests else { return Vec::new() };
        let parts = [
            ("rack, what_if, borrowed, or minimal or cut_short of tasks", made.said != self.said()),
            ("deployment.spi", made.numbered != self.numbered()),
        ];
        parts.into_iter().filter_map(|(what, altered)| altered.then_some(what)).collect()
    }
}
