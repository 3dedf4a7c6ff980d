//! Lemur's placer: chains over a switch, servers and SmartNICs (Yen et al., Meeting SLOs in Cross-Platform
//! NFV, CoNEXT 2020).
//!
//! [`place`] runs one of the strategies that the paper compares (§5.1) and its two ablations (§5.3).

pub mod baselines;
pub mod bounce;
pub mod bridges;
pub mod brute;
pub mod coalesce;
pub mod cores;
#[cfg(test)]
mod counterexamples;
pub mod evaluator;
pub mod exact;
pub mod experiment;
pub mod heuristic;
pub mod improve;
pub mod keep;
pub mod ladder;
pub mod links;
pub mod pattern;
pub mod rates;
pub mod related;
#[cfg(test)]
mod sample;
pub mod servers;
pub mod spare;
pub mod stages;
#[cfg(test)]
mod tests;
mod why;

use std::time::Instant;

use serde::{Deserialize, Serialize};

use catena_plan_model::placement::Outcome;
use catena_plan_model::problem::Problem;
use catena_plan_model::switch::Feasible;

/// How to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The heuristic of §3.2, and moves from what it finds.
    Lemur,
    /// The heuristic of §3.2 alone.
    Plain,
    /// As much as possible on the switch, spare cores evenly.
    HwPreferred,
    /// As much as possible on servers, spare cores evenly.
    SwPreferred,
    /// The fewest bounces between switch and servers, spare cores evenly.
    MinBounce,
    /// As much as possible on the switch; promises first, then chain by chain.
    Greedy,
    /// The heuristic, which believes that all functions cost the same.
    NoProfiling,
    /// The heuristic with one core for each subgroup.
    NoCores,
    /// All patterns with all cores (§3.2, "Brute-force Placement").
    Brute,
    /// The mixed-integer model, with proof.
    Exact,
}

impl Strategy {
    /// The strategies of this module, in the order of Figure 2.
    pub const PLACED_HERE: [Strategy; 8] = [
        Strategy::Lemur,
        Strategy::Plain,
        Strategy::HwPreferred,
        Strategy::SwPreferred,
        Strategy::MinBounce,
        Strategy::Greedy,
        Strategy::NoProfiling,
        Strategy::NoCores,
    ];

    /// What the paper calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Lemur => "Lemur",
            Strategy::Plain => "Lemur without moves",
            Strategy::HwPreferred => "HW Preferred",
            Strategy::SwPreferred => "SW Preferred",
            Strategy::MinBounce => "Minimum Bounce",
            Strategy::Greedy => "Greedy",
            Strategy::NoProfiling => "No Profiling",
            Strategy::NoCores => "No Core Allocation",
            Strategy::Brute => "Brute Force",
            Strategy::Exact => "Exact",
        }
    }
}

/// Place the chains of `problem` by `strategy`; `switch` says what the switch can hold. Exact planning and brute force
/// stop after [`exact::Settings`]' time, with what they have found by then.
#[must_use]
pub fn place(problem: &Problem, strategy: Strategy, switch: &dyn Feasible) -> Outcome {
    place_until(problem, strategy, switch, None)
}

/// The same, which stops at `until` with the best found by then.
#[must_use]
pub fn place_until(problem: &Problem, strategy: Strategy, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let time = || match until {
        Some(until) => until.saturating_duration_since(Instant::now()),
        None => exact::Settings::default().time,
    };
    match strategy {
        Strategy::Lemur => baselines::lemur(problem, switch, until),
        Strategy::Plain => baselines::plain(problem, switch, until),
        Strategy::HwPreferred => baselines::hardware_preferred(problem, switch, until),
        Strategy::SwPreferred => baselines::software_preferred(problem, switch, until),
        Strategy::MinBounce => baselines::minimum_bounce(problem, switch, until),
        Strategy::Greedy => baselines::greedy(problem, switch, until),
        Strategy::NoProfiling => baselines::without_profiling(problem, switch, until),
        Strategy::NoCores => baselines::without_cores(problem, switch, until),
        Strategy::Exact => {
            // Proof needs time beside the heuristic.
            let start = baselines::lemur(problem, switch, until.map(|_| Instant::now() + time() / 2));
            let settings = exact::Settings { time: time(), ..exact::Settings::default() };
            exact::plan(problem, switch, start.placement(), &settings).outcome
        }
        Strategy::Brute => {
            let until = Instant::now() + time();
            brute::plan(problem, switch, &mut |_| Instant::now() < until).0
        }
    }
}
