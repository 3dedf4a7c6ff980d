//! What would have to be added so that promises are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What would help: each remedy does alone, which was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedies {
    /// Chains whose promises cannot all be kept.
    pub conflict: Vec<String>,
    /// Whether the promises of all of these but any one were kept in a plan.
    #[serde(default)]
    pub minimal: bool,
    /// Relations between chains, as the file has them, without which all promises could be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<String>,
    /// Cores more, by server.
    pub cores: Vec<(String, u32)>,
    /// Bits per second more, by link.
    pub links: Vec<(String, f64)>,
    /// Cycles per second more, by SmartNIC.
    pub smart_nics: Vec<(String, f64)>,
    /// Bits per second more that the switch would have to forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarding: Option<f64>,
    /// Stages more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// Entries of each flow table of the switch, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Whether the functions find no place even if nothing is promised.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheld: bool,
    /// Chains that no placement makes quick enough, with the least nanoseconds that a packet takes.
    pub late: Vec<(String, f64)>,
    /// Chains that are promised more than can enter them, with the bits per second that can.
    pub choked: Vec<(String, f64)>,
    /// Whether all questions could be answered in the time allowed.
    pub complete: bool,
}
