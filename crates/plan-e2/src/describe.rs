//! What E2 has to know of each function (Lan's dissertation, §3.2.2, "NF descriptions"): how its traffic may
//! be split, what it rewrites, how its attributes leave it, and what it costs.

use catena_policy::{Attribute, Library};
use serde::{Deserialize, Serialize};

use super::merge::{PGraph, PNode};
use catena_plan_model::catalogue::{Affinity, Catalogue, Fields, Platform};
use catena_plan_model::profile::Profile;

/// A function's description, one a node of the policy graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Scaling and affinity constraints.
    pub affinity: Affinity,
    /// The header fields that differ between its inner side (where forward packets enter) and its outer one,
    /// stated for forward packets.
    pub rewrites: Fields,
    /// Cycles per packet on a server's core, worst case.
    pub cycles: f64,
    /// What it exports, and by which method.
    pub attributes: Vec<Attribute>,
    /// Where it can run.
    pub platforms: Vec<Platform>,
}

impl Description {
    /// Bits per second that a core of `clock_hz` carries with packets of `packet_bytes`.
    #[must_use]
    pub fn capacity_bps(&self, clock_hz: f64, packet_bytes: f64) -> f64 {
        clock_hz / self.cycles.max(f64::MIN_POSITIVE) * packet_bytes * 8.0
    }
}

/// A function that the catalogue or the profile lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// The node.
    pub node: String,
    /// Its function.
    pub function: String,
    /// What has no entry for it.
    pub lacking: Lacking,
}

/// What has no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lacking {
    /// The catalogue.
    Catalogue,
    /// The profile.
    Profile,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lacking = match self.lacking {
            Lacking::Catalogue => "catalogue",
            Lacking::Profile => "profile",
        };
        write!(f, "`{}`: the {lacking} has no entry for the function {}", self.node, self.function)
    }
}

impl std::error::Error for Unknown {}

/// Describe the nodes of `graph`.
///
/// # Errors
/// The first node whose function the catalogue or the profile lacks.
pub fn describe(
    graph: &PGraph,
    catalogue: &Catalogue,
    profile: &Profile,
    library: &Library,
) -> Result<Vec<Description>, Unknown> {
    let describe = |node: &PNode| {
        let unknown = |lacking| Unknown { node: node.name.clone(), function: node.function.clone(), lacking };
        let traits = catalogue.find_with(&node.function, &node.args).ok_or_else(|| unknown(Lacking::Catalogue))?;
        let cost = profile.functions.get(&node.function).ok_or_else(|| unknown(Lacking::Profile))?;
        let size = traits.size.as_ref().map_or(0.0, |size| size.of(&node.args));
        Ok(Description {
            affinity: traits.affinity,
            rewrites: traits.rewrites,
            cycles: cost.server.worst(size),
            attributes: library.find(&node.function).map_or_else(Vec::new, |s| s.attributes.clone()),
            platforms: traits.platforms.clone(),
        })
    };
    graph.nodes.iter().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_is_named() {
        let node = PNode { name: "n".into(), function: "Nat".into(), args: vec![], members: vec![] };
        let graph = PGraph { nodes: vec![node], edges: vec![] };
        let profile = Profile {
            version: 1,
            port: None,
            machine: catena_plan_model::profile::Machine::default(),
            overheads: catena_plan_model::profile::Overheads::default(),
            functions: std::collections::BTreeMap::new(),
        };
        let unknown = describe(&graph, &Catalogue::default(), &profile, &Library::default()).unwrap_err();
        assert_eq!(unknown.to_string(), "`n`: the catalogue has no entry for the function Nat");
    }
}
