//! The tasks of a server on which whole chains run: what Alpine makes of the planned rates or, where the file
//! says how chains share, of that.
//!
//! Every worker runs all chains for its part of the flows, with the same tasks and the same tree, so that shares
//! hold on each worker and in sum. What comes in is not known when a plan is made: each chain is taken to be
//! offered as much as any, unless all edges at `in` have rate estimates, and more in all than the server carries.

mod division;
mod names;
mod rates;
mod tree;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use catena_plan_alpine::{Objective, SchedulerTree};
use catena_plan_model::figures::gbit;
use catena_plan_model::problem::Problem;
use catena_plan_model::relation::Relation;

pub use division::{Division, Related};

/// What a promise may be missed by, relative: a queue costs cycles that no plan of rates knows of.
const ROUNDING: f64 = 1e-2;

/// The tasks of each worker of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPlan {
    /// How many workers have these tasks.
    pub workers: u32,
    /// What was looked for among the tasks that keep what is promised.
    pub objective: Objective,
    /// The tasks; the first reads the port.
    pub tasks: Vec<TaskFigures>,
    /// Whose turn it is.
    pub tree: SchedulerTree,
    /// What each class of traffic gets of a saturated server.
    pub classes: Vec<ClassFigures>,
    /// Whether it is proven that no fewer tasks do; of those that serve the most packets nothing of the kind is known.
    pub minimal: bool,
    /// Whether the time for planning was over before fewer tasks, or tasks that serve more packets, were ruled out: with more
    /// time there may be some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Cycles per packet of bringing it in and out again.
    #[serde(default)]
    pub port_cycles: f64,
    /// Cycles per packet of finding its chain.
    #[serde(default)]
    pub classify_cycles: f64,
    /// Cycles per packet of a queue in front of a task: putting it in, and the turn of the task that takes it out.
    #[serde(default)]
    pub queue_cycles: f64,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFigures {
    /// Where it begins.
    pub start: Start,
    /// The modules that run to completion in it: `port`, `classify`, and functions as `chain/function`.
    pub modules: Vec<String>,
    /// Its part of the cycles of those that it shares with: of its level; of all, if there are several and it is the port's.
    pub weight: f64,
    /// Packets per second that one worker's takes in, where more comes than the worker can do.
    pub packets: f64,
    /// Cycles per second that it takes of its worker then.
    pub cycles: f64,
}

/// Where a task begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Start {
    /// At the port.
    Port,
    /// At a function.
    Function {
        /// Its chain.
        chain: String,
        /// Its name there.
        node: String,
    },
    /// Where a class enters its chain.
    Class(String),
}

/// What a class of traffic gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassFigures {
    /// Unique: its chain, and the class if it has a way of its own.
    pub name: String,
    /// Packets per second of all workers.
    pub packets: f64,
    /// Its part of the cycles that are spent for classes, 0 to 1.
    pub cpu: f64,
}

/// Packets per second that all classes of a chain get together.
fn carried(plan: &TaskPlan, chain: &str) -> f64 {
    let own = |class: &&ClassFigures| {
        class.name.strip_prefix(chain).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    plan.classes.iter().filter(own).map(|class| class.packets).sum()
}

/// What of a chain's promise the file's relations do not leave it where more comes in than the server can do; None: the
/// tasks keep all promises, or there are no relations.
#[must_use]
pub fn broken(problem: &Problem, plan: &TaskPlan) -> Option<String> {
    let written = problem.relations.iter().map(Relation::text).filter(|text| !text.is_empty());
    let texts: Vec<String> =
        written.chain(problem.unseen.iter().map(String::as_str)).map(|text| format!("`{text}`")).collect();
    if texts.is_empty() {
        return None;
    }
    let late = |chain: &&catena_plan_model::problem::Chain| {
        carried(plan, &chain.name) * chain.packet_bits() < chain.t_min_bps * (1.0 - ROUNDING)
    };
    let chain = problem.chains.iter().find(late)?;
    let gets = carried(plan, &chain.name) * chain.packet_bits();
    let (gets, promised) = (gbit(gets), gbit(chain.t_min_bps));
    let (by, name) = (texts.join(", "), &chain.name);
    Some(format!(
        "by {by}, {name} gets {gets} Gbit/s of the {promised} promised where more comes in of every chain than the workers can do"
    ))
}

#[cfg(test)]
mod tests;
