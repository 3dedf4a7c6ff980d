//! Whether a set of functions fits the switch: one question, asked of a stage packer, of an OpenFlow
//! switch's fixed tables, or of a real compiler.
//!
//! All answers are *monotone*: what is left of a set that fits, fits. So a set that does not fit rules out
//! every set that contains it, which is what [`Feasible::conflict`] is for: Lemur's brute force compiles
//! one placement after the other (Lemur, §3.2); a cut from a small conflict spares all that share it.

mod bound;
mod compiler;
mod memo;
mod memory;
mod openflow;
mod pack;
mod pisa;
mod plain;
mod search;

use std::fmt;

use crate::problem::{ChainId, NodeId, Problem};
use crate::rack::SwitchKind;

pub use compiler::{Compiled, Compiler};
pub use openflow::OpenFlow;
pub use pisa::{Generation, Pisa};
pub use plain::Plain;

/// Says what a switch can hold.
pub trait Feasible: Send + Sync {
    /// Whether the nodes for which `on_switch[chain][node]` is true fit together. Nodes that `on_switch`
    /// does not mention are not on the switch.
    fn verdict(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict;

    /// What each stage or table would hold, in their order; empty: the set does not fit, or nothing is known
    /// of it.
    fn layout(&self, _problem: &Problem, _on_switch: &[Vec<bool>]) -> Vec<Stage> {
        Vec::new()
    }

    /// A part of a set that does not fit which does not fit either, and would if any one of its nodes
    /// were elsewhere; None: the set fits. No placement with all these nodes on the switch is possible.
    fn conflict(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Option<Vec<(ChainId, NodeId)>> {
        if self.verdict(problem, on_switch).fits() {
            return None;
        }
        // Deletion filter: what can go without making the rest fit is no part of the reason. Whole chains
        // first: most conflicts are between few.
        let mut set = on_switch.to_vec();
        for chain in 0..set.len() {
            let without = vec![false; set[chain].len()];
            let with = std::mem::replace(&mut set[chain], without);
            if self.verdict(problem, &set).fits() {
                set[chain] = with;
            }
        }
        for chain in 0..set.len() {
            for node in 0..set[chain].len() {
                if std::mem::replace(&mut set[chain][node], false) {
                    set[chain][node] = self.verdict(problem, &set).fits();
                }
            }
        }
        Some(members(&set))
    }
}

/// The nodes that are in a set, by chain and node.
#[must_use]
pub fn members(set: &[Vec<bool>]) -> Vec<(ChainId, NodeId)> {
    let nodes = |chain: &Vec<bool>| chain.iter().enumerate().filter(|(_, on)| **on).map(|(n, _)| n).collect::<Vec<_>>();
    set.iter().enumerate().flat_map(|(c, chain)| nodes(chain).into_iter().map(move |n| (c, n))).collect()
}

/// What says whether functions fit a switch of this `kind`.
#[must_use]
pub fn of(kind: &SwitchKind) -> Box<dyn Feasible> {
    match kind {
        SwitchKind::Plain { .. } => Box::new(Plain),
        SwitchKind::Pisa(stages) => Box::new(Pisa::new(*stages)),
        SwitchKind::OpenFlow { tables } => Box::new(OpenFlow::new(tables.clone())),
    }
}

/// What says whether functions fit the switch of `problem`; without a switch, none do.
#[must_use]
pub fn for_problem(problem: &Problem) -> Box<dyn Feasible> {
    problem.switch.as_ref().map_or_else(|| Box::new(Plain) as Box<dyn Feasible>, |switch| of(&switch.kind))
}

/// How much of something is taken, and how much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Taken or needed.
    pub used: u64,
    /// There.
    pub available: u64,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.used, self.available)
    }
}

/// A stage (PISA) or a table (OpenFlow) with what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// What it is called.
    pub name: String,
    /// The functions that have something in it.
    pub holds: Vec<(ChainId, NodeId)>,
    /// SRAM blocks (PISA).
    pub sram: Use,
    /// TCAM blocks (PISA).
    pub tcam: Use,
    /// Tables (PISA).
    pub tables: Use,
    /// Flow entries (OpenFlow).
    pub entries: Use,
}

/// What a switch says to a set of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Stages (PISA) or tables (OpenFlow) that the set takes, the framework's own included; of a set that
    /// does not fit, what it would take if there were more, as far as known.
    pub stages: Use,
    /// SRAM blocks in all stages (PISA).
    pub sram: Use,
    /// TCAM blocks in all stages (PISA).
    pub tcam: Use,
    /// Flow entries in all tables (OpenFlow).
    pub entries: Use,
    /// VLAN numbers for steering (OpenFlow).
    pub vlan_ids: Use,
    /// Why it does not fit; empty: it fits.
    pub overflows: Vec<Overflow>,
    /// Whether the answer is certain. What fits is certain; that nothing was found in the search's node
    /// budget is not. All the same it is the answer from then on, so that answers stay monotone.
    pub proven: bool,
}

impl Verdict {
    /// Whether the set fits.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.overflows.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fits() {
            return write!(f, "fits: {} stages", self.stages);
        }
        for (i, overflow) in self.overflows.iter().enumerate() {
            write!(f, "{}{overflow}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// What a set of functions overflows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Stages: dependencies, or tables that share no stage.
    Stages(Use),
    /// SRAM blocks of all stages.
    Sram(Use),
    /// TCAM blocks of all stages.
    Tcam(Use),
    /// Tables of all stages.
    Tables(Use),
    /// The switch's tables come in another order than these functions of a path.
    TableOrder {
        /// Whose path.
        chain: ChainId,
        /// The functions that a packet meets in one pass, in its order.
        nodes: Vec<NodeId>,
    },
    /// Flow entries of the tables that can hold this function.
    Entries {
        /// The function.
        function: String,
        /// Entries of all that compete for these tables.
        entries: Use,
    },
    /// VLAN numbers.
    VlanIds(Use),
    /// A function that cannot run on this switch at all.
    Unable {
        /// Whose.
        chain: ChainId,
        /// Which.
        node: NodeId,
    },
    /// What a compiler said.
    Compiler(String),
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Overflow::Stages(n) => write!(f, "needs {} stages, {} are there", n.used, n.available),
            Overflow::Sram(n) => write!(f, "needs {} SRAM blocks, {} are there", n.used, n.available),
            Overflow::Tcam(n) => write!(f, "needs {} TCAM blocks, {} are there", n.used, n.available),
            Overflow::Tables(n) => write!(f, "needs {} tables, {} are there", n.used, n.available),
            Overflow::TableOrder { chain, nodes } => {
                write!(f, "chain {chain}: the switch's tables do not come in the order of its functions {nodes:?}")
            }
            Overflow::Entries { function, entries } => {
                write!(f, "tables for `{function}` need {} entries, {} are there", entries.used, entries.available)
            }
            Overflow::VlanIds(n) => write!(f, "needs {} VLAN numbers, {} are there", n.used, n.available),
            Overflow::Unable { chain, node } => write!(f, "chain {chain}: function {node} cannot run on the switch"),
            Overflow::Compiler(text) => write!(f, "the compiler says: {text}"),
        }
    }
}
