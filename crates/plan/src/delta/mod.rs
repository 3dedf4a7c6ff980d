//! From what runs to what a new plan wants to run: steps, in an order in which no flow is ever without an instance.
//!
//! First everything new starts, new paths are laid, and devices get what they have to hold for both. Then flows go over, function by function where these are regrouped; then packets
//! enter by the new classes; what they left behind goes last. Who carries a delta out may leave live flows where they are until they end (Lan's dissertation, §3.5.2,
//! migration avoidance): a step says where new flows go, and that nothing is without an instance meanwhile is so either way.

mod between;
mod follow;
#[cfg(test)]
mod tests;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ranges::{SLOTS, Slots};

pub use follow::Astray;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    /// The digest of the deployment that it changes.
    pub from: String,
    /// The epoch that it leads to.
    pub epoch: u64,
    /// What is not as it was when what it changes was planned, for people. Only a digest of the plan tells whether it was changed by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// In this order. What the plan alone does not show of them, for want of the one before, a digest does.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "do")]
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
    /// A device holds what the plan says from now on, beside what it still needs for paths that have yet to be removed and instances
    /// that have yet to stop.
    Equip {
        /// The device's name.
        on: String,
        /// What of it is not as it was.
        with: Vec<Part>,
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
    Move(Move),
    /// Packets enter other paths than before, or others enter: all entrances of the plan are put in place of the old ones, at once.
    Enter {
        /// The paths that somebody enters now.
        paths: Vec<u32>,
        /// Whether packets of live flows may be of another chain then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        others: bool,
        /// What goes over in the same moment: flows of functions that run in another segment or on another device then. Until that
        /// moment their packets come to the old one, and from it on to the new one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moves: Vec<Move>,
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

/// A part of what a device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// All that a switch does: it is of another kind than the one before, or was not there, and has none of the paths and entrances.
    Whole,
    /// The stages or tables of a switch.
    Tables,
    /// What packets on its links say, how they say it, and the addresses of both ends.
    Tunnels,
    /// The cores of a server, their tasks, and whose turn it is: weights and limits.
    Schedule,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Whole => "all that it does",
            Part::Tables => "tables",
            Part::Tunnels => "tunnels",
            Part::Schedule => "schedule",
        })
    }
}

/// Flows that go from one instance to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// What of them: the state of these functions.
    pub functions: Vec<String>,
    /// Which flows.
    pub slots: Slots,
    /// Whose range becomes narrower.
    pub from: String,
    /// Whose becomes wider.
    pub to: String,
    /// Whether the first one's device is no more: what it knew is lost, unless it is kept elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

impl Delta {
    /// All flows that go from one instance to another.
    pub fn moves(&self) -> impl Iterator<Item = &Move> {
        self.steps.iter().flat_map(|step| match step {
            Step::Move(one) => std::slice::from_ref(one),
            Step::Enter { moves, .. } => moves,
            _ => &[],
        })
    }

    /// Whether all flows of a function end.
    #[must_use]
    pub fn ends(&self, function: &str) -> bool {
        let end =
            |step: &Step| matches!(step, Step::End { functions, .. } if functions.iter().any(|own| own == function));
        self.steps.iter().any(end)
    }

    /// Whether packets of live flows may be of another chain than before.
    #[must_use]
    pub fn reclassifies(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Enter { others: true, .. }))
    }

    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The part of a function's flows that go from one instance to another, 0 to 1.
    #[must_use]
    pub fn moved(&self, function: &str) -> f64 {
        let own = self.moves().filter(|one| one.functions.iter().any(|own| own == function));
        own.map(|one| one.slots.len()).sum::<usize>() as f64 / f64::from(SLOTS)
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Move { functions, slots, from, to, gone } = self;
        let verb = if *gone { "recover" } else { "move" };
        write!(f, "{verb} slots {slots} from {from} to {to} ({})", functions.join(", "))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Start { instance, .. } => write!(f, "start {instance}"),
            Step::Give { functions, slots, to } => write!(f, "give {to} slots {slots} ({})", functions.join(", ")),
            Step::Move(one) => one.fmt(f),
            Step::Install { spi, chain } => write!(f, "install path {spi} of {chain}"),
            Step::Equip { on, with } => {
                let with: Vec<String> = with.iter().map(Part::to_string).collect();
                write!(f, "equip {on} ({})", with.join(", "))
            }
            Step::Enter { paths, moves, .. } => {
                let paths: Vec<String> = paths.iter().map(u32::to_string).collect();
                write!(f, "let packets enter by the new entrances: paths {}", paths.join(", "))?;
                moves.iter().try_for_each(|one| write!(f, "; {one}"))
            }
            Step::Remove { spi, chain } => write!(f, "remove path {spi} of {chain}"),
            Step::End { functions, from } => write!(f, "end {} at {from}", functions.join(", ")),
            Step::Stop { instance } => write!(f, "stop {instance}"),
        }
    }
}
