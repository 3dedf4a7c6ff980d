//! What a planner decides: where each function runs, with how many cores, at which rates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{ChainId, NodeId, ServerId};

/// Where a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// On the switch.
    Switch,
    /// On a server's cores.
    Server(ServerId),
    /// On a SmartNIC, by its index in the problem.
    SmartNic(usize),
}

/// A decision for a whole problem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Site of every node, by chain and node.
    pub sites: Vec<Vec<Site>>,
    /// The subgroups, each a maximal connected set of a chain's nodes on one server.
    pub subgroups: Vec<Subgroup>,
    /// What each chain carries, bits per second.
    pub rates_bps: Vec<f64>,
}

/// Functions of a chain that one server runs to completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subgroup {
    /// Whose.
    pub chain: ChainId,
    /// Its nodes, ascending.
    pub nodes: Vec<NodeId>,
    /// Where.
    pub server: ServerId,
    /// Cores: a whole number, or on a server with shared cores a part.
    pub cores: f64,
    /// By which link its packets come and go.
    pub link: Link,
}

/// A network card of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// An ordinary one, by its index in the server.
    Nic(usize),
    /// A SmartNIC, by its index in the problem.
    SmartNic(usize),
}

/// What a planner says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Outcome {
    /// All promises can be kept, like this.
    Placed {
        /// The decision.
        placement: Placement,
        /// The objective's value: marginal bits per second, summed, or summed by weight; for a fair division the least
        /// of a chain relative to its weight.
        marginal_bps: f64,
        /// No placement has more than this; None: the planner proves nothing.
        bound_bps: Option<f64>,
    },
    /// No placement keeps all promises, or this planner found none.
    Infeasible {
        /// Whether that is proven.
        proven: bool,
        /// What is in the way, for people.
        why: String,
    },
}

impl Outcome {
    /// The placement, if there is one.
    #[must_use]
    pub fn placement(&self) -> Option<&Placement> {
        match self {
            Outcome::Placed { placement, .. } => Some(placement),
            Outcome::Infeasible { .. } => None,
        }
    }

    /// The marginal bits per second, if there is a placement.
    #[must_use]
    pub fn marginal_bps(&self) -> Option<f64> {
        match self {
            Outcome::Placed { marginal_bps, .. } => Some(*marginal_bps),
            Outcome::Infeasible { .. } => None,
        }
    }
}
