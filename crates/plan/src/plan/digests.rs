//! Digests of what stands in a plan's file once, with nothing beside it that it could be held against: so that what somebody changed by
//! hand is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MadeOf, Plan, ServerPlan, Verdict};
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
    /// Of what else is said once: the rack's name, the changes that were asked for, whose figures are borrowed, which promises are left
    /// out, and what was looked for in tasks and is proven of them.
    pub said: String,
    /// Of how far paths are numbered.
    pub numbered: String,
    /// Of who decided.
    pub strategy: String,
    /// Of the policy, and of the digests that it, rack and profile have: whoever reads a plan has none of them beside it.
    pub made_of: String,
    /// Of the steps that lead here from what runs: whoever reads a plan has not the one before.
    pub steps: String,
    /// Of what is said to have changed since the plan before.
    pub changed: String,
    /// Of the part of the promises that was planned for, and of none if it was all of them: whoever takes the part out of a plan does not
    /// make it keep all.
    pub held: String,
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
            strategy: String::new(),
            made_of: String::new(),
            steps: String::new(),
            changed: String::new(),
            held: Digests::held(None),
        }
    }

    /// The digests of what is said once, in the order of [`Plan::said_once`].
    fn once(&mut self) -> [&mut String; 6] {
        let Digests { said, numbered, strategy, made_of, steps, changed, .. } = self;
        [said, numbered, strategy, made_of, steps, changed]
    }

    fn held(part: Option<f64>) -> String {
        fnv_of(&part)
    }
}

impl Plan {
    /// Digest anew what is said once.
    pub fn seal(&mut self) {
        let said = self.said_once().map(|(_, is, _)| is);
        if let Some(digests) = &mut self.digests {
            digests.once().into_iter().zip(said).for_each(|(digest, is)| *digest = is);
        }
    }

    /// What is said once: its place in the plan, its digest as it is, and the one that the plan has.
    fn said_once(&self) -> [(&'static str, String, Option<&String>); 6] {
        let made = |of: fn(&Digests) -> &String| self.digests.as_ref().map(of);
        // The policy itself: its digest beside it says only that the two fit, and anybody can make one that does.
        let policy = self.policy.as_ref().map(|policy| MadeOf::policy(policy, &self.problem));
        let parts = (policy, &self.made_of);
        let delta = self.delta.as_ref();
        [
            (
                "rack, what_if, borrowed, left_out, or minimal, cut_short or objective of tasks",
                self.said(),
                made(|made| &made.said),
            ),
            ("deployment.spi", self.numbered(), made(|made| &made.numbered)),
            ("strategy", fnv_of(&self.strategy), made(|made| &made.strategy)),
            ("policy or made_of", fnv_of(&parts), made(|made| &made.made_of)),
            ("delta.steps", fnv_of(&delta.map(|delta| &delta.steps)), made(|made| &made.steps)),
            ("delta.changed", fnv_of(&delta.map(|delta| &delta.changed)), made(|made| &made.changed)),
        ]
    }

    fn said(&self) -> String {
        let functions = self.chains.iter().flat_map(|chain| &chain.functions);
        let borrowed: Vec<bool> = functions.map(|function| function.borrowed).collect();
        let tasks = self.servers.iter().filter_map(|server| server.tasks.as_ref());
        let proven: Vec<_> = tasks.map(|tasks| (tasks.minimal, tasks.cut_short, tasks.objective)).collect();
        fnv_of(&((&self.rack, &self.what_if, &self.borrowed, &self.left_out), (borrowed, proven)))
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

    /// Return whether all that the file promises is kept, and the whole of it.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        self.is_kept() && self.held.is_none() && self.left_out.is_empty()
    }

    /// Say what the file promises and this is no plan of.
    #[must_use]
    pub fn leaving_out(mut self, left_out: Vec<String>) -> Plan {
        self.left_out = left_out;
        self.seal();
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
        let said = self.said_once().into_iter();
        said.filter_map(|(what, is, made)| made.is_some_and(|made| *made != is).then_some(what)).collect()
    }
}
