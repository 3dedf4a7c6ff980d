//! From what runs to what a new plan wants to run: steps, in an order in which no flow is ever without an instance.
//!
//! First everything new starts, and new paths are laid. Then flows go over, function by function where these are regrouped; then packets
//! enter by the new classes; what they left behind goes last. Who carries a delta out may leave live flows where they are until they end (Lan's dissertation, §3.5.2,
//! migration avoidance): a step says where new flows go, and that nothing is without an instance meanwhile is so either way.

mod between;
mod follow;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::deployment::ranges::{SLOTS, Slots};

pub use follow::Astray;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// The digest of the deployment that it changes.
    pub from: String,
    /// The epoch that it leads to.
    pub epoch: u64,
    /// In this order.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Step {
    /// An instance starts, and has no flows yet.
    Start {
        /// Which.
        instance: String,
        /// Its functions, as `chain/function`.
        functions: Vec<String>,
        /// The device's name.
        on: String,
        /// The core's number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        core: Option<u32>,
    },
    /// A path is there from now on: the rules at its functions, and its hops. Nobody enters it yet.
    Install {
        /// Its number.
        spi: u32,
        /// Whose.
        chain: String,
    },
    /// The flows of these slots are one instance's from now on. Nobody had them: their functions are new.
    Give {
        /// For these functions.
        functions: Vec<String>,
        /// Which flows.
        slots: Slots,
        /// Who gets them.
        to: String,
    },
    /// The flows of these slots go from one instance to another.
    Move {
        /// What of them: the state of these functions.
        functions: Vec<String>,
        /// Which flows.
        slots: Slots,
        /// Whose range becomes narrower.
        from: String,
        /// Whose becomes wider.
        to: String,
        /// Whether the first one's device is no more: what it knew is lost, unless it is kept elsewhere.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gone: bool,
    },
    /// Packets enter other paths than before, or others enter: all entrances of the plan are put in place of the old ones, at once.
    Enter {
        /// The paths that somebody enters now.
        paths: Vec<u32>,
    },
    /// A path is no more: nobody enters it.
    Remove {
        /// Its number.
        spi: u32,
        /// Whose.
        chain: String,
    },
    /// Flows end here: their functions are not planned any more.
    End {
        /// Which functions.
        functions: Vec<String>,
        /// Whose flows.
        from: String,
    },
    /// An instance stops; it has no flows.
    Stop {
        /// Which.
        instance: String,
    },
}

impl Delta {
    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The part of a function's flows that go from one instance to another, 0 to 1.
    #[must_use]
    pub fn moved(&self, function: &str) -> f64 {
        let slots = |step: &Step| match step {
            Step::Move { functions, slots, .. } if functions.iter().any(|own| own == function) => slots.len(),
            _ => 0,
        };
        self.steps.iter().map(slots).sum::<usize>() as f64 / f64::from(SLOTS)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Start { instance, .. } => write!(f, "start {instance}"),
            Step::Give { functions, slots, to } => write!(f, "give {to} slots {slots} ({})", functions.join(", ")),
            Step::Move { functions, slots, from, to, gone } => {
                let verb = if *gone { "recover" } else { "move" };
                write!(f, "{verb} slots {slots} from {from} to {to} ({})", functions.join(", "))
            }
            Step::Install { spi, chain } => write!(f, "install path {spi} of {chain}"),
            Step::Enter { paths } => {
                let paths: Vec<String> = paths.iter().map(u32::to_string).collect();
                write!(f, "let packets enter by the new classes: paths {}", paths.join(", "))
            }
            Step::Remove { spi, chain } => write!(f, "remove path {spi} of {chain}"),
            Step::End { functions, from } => write!(f, "end {} at {from}", functions.join(", ")),
            Step::Stop { instance } => write!(f, "stop {instance}"),
        }
    }
}
