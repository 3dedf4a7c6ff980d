//! What runs of a plan: copies of functions on cores, and which flows each has.
//!
//! A plan says how much of a rack a chain gets; its deployment says what is started there. Everything has a name that it
//! keeps from one plan to the next, so that two deployments can be compared ([`crate::delta`]) and whoever carries a plan
//! out can say what it is about.
//!
//! Flows are numbered by one hash everywhere: that of their inside address, in the deployment's seed. Its first bits are
//! the flow's *slot* ([`ranges::SLOTS`]). An instance has a set of slots; those of a segment's instances are all slots, each
//! once. These are targets: while a deployment replaces another one, flows that live may still be where they were.

pub mod devices;
pub mod entrances;
mod make;
pub mod paths;
pub mod ranges;
mod relieve;
mod runs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Device;
use devices::{Holds, Tunnel};
use entrances::Entrance;
use paths::Path;
use ranges::Slots;

pub use make::Before;
pub use paths::Ways;

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// 1 for the first one, and one more for each that follows.
    pub epoch: u64,
    /// The digest of the deployment that it follows; absent: nothing ran before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Seed of the hash that numbers flows, 16 digits to the base of 16. Who knows it can choose flows that meet one core.
    pub seed: String,
    /// What runs to completion together.
    pub segments: Vec<Segment>,
    /// Its copies.
    pub instances: Vec<Instance>,
    /// The highest number that a path ever had.
    #[serde(default)]
    pub spi: u32,
    /// Which way packets go; none where chains are known in numbers alone.
    #[serde(default)]
    pub paths: Vec<Path>,
    /// Which packets enter which, in this order at each side.
    #[serde(default)]
    pub entrances: Vec<Entrance>,
    /// The devices that take part, and what they have to hold.
    #[serde(default)]
    pub devices: Vec<Holds>,
    /// What joins the switch and the others, by link and device; none where there is no switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<Tunnel>,
}

/// Functions that run to completion together, on one kind of device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Unique: its chain and functions, `web/acl+nat`.
    pub name: String,
    /// Its functions, as `chain/function`.
    pub functions: Vec<String>,
    /// What it runs on.
    pub device: Device,
    /// What stands for that which its functions were told: with other arguments or other edges it is another segment.
    pub told: String,
}

/// A running copy of a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Unique: the segment, the device and the core, `web/acl+nat@nf1:4`. Where something else had that name when the instance
    /// was to start, the epoch stands behind it: `web/acl+nat@nf1:4~7`.
    pub name: String,
    /// Whose copy.
    pub segment: String,
    /// The device's name.
    pub on: String,
    /// The core's number; absent where a device has none to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Which flows it has.
    pub slots: Slots,
    /// The epoch that started it.
    pub since: u64,
}

impl Deployment {
    /// The seed as a number; None: it is none.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        let digits = self.seed.len() == 16 && self.seed.bytes().all(|digit| digit.is_ascii_hexdigit());
        u64::from_str_radix(&self.seed, 16).ok().filter(|_| digits)
    }

    /// What stands for the deployment as it is: of another one it is another, but for chance.
    #[must_use]
    pub fn digest(&self) -> String {
        crate::policy::fnv_of(self)
    }

    /// The instances of a segment.
    pub fn of<'a>(&'a self, segment: &'a str) -> impl Iterator<Item = &'a Instance> {
        self.instances.iter().filter(move |instance| instance.segment == segment)
    }

    /// The paths that somebody enters, ascending.
    #[must_use]
    pub fn entered(&self) -> Vec<u32> {
        let mut paths: Vec<u32> = self.entrances.iter().map(|entrance| entrance.spi).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// The segment that runs a function of a chain, as `chain/function`.
    #[must_use]
    pub fn running(&self, function: &str) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.functions.iter().any(|own| own == function))
    }
}

/// What a segment of one chain is called.
pub(crate) fn segment_name(chain: &str, functions: &[String]) -> String {
    format!("{chain}/{}", functions.join("+"))
}

/// What an instance is called.
pub(crate) fn name(segment: &str, on: &str, core: Option<u32>) -> String {
    match core {
        Some(core) => format!("{segment}@{on}:{core}"),
        None => format!("{segment}@{on}"),
    }
}
