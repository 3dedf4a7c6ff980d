//! What keeps a chain from carrying more, as data and in words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{gigabits, short};

/// What keeps a chain from carrying more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind")]
pub enum Bound {
    /// The most it is allowed.
    TMax,
    /// The port that it comes in by.
    Port {
        /// What the port carries.
        bps: f64,
    },
    /// The cores of a subgroup.
    Cores {
        /// The server.
        server: String,
        /// The subgroup's functions.
        functions: Vec<String>,
        /// Its cores.
        cores: f64,
        /// Why it has no more.
        limit: CoreLimit,
    },
    /// A link.
    Link {
        /// Which.
        link: String,
        /// What it carries.
        bps: f64,
    },
    /// A relation between chains.
    Relation {
        /// As the file has it; empty: nothing leaves the chain, and others go first.
        text: String,
    },
    /// What the switch forwards in all.
    Switch {
        /// Which.
        switch: String,
        /// What it can.
        bps: f64,
    },
    /// A SmartNIC's cores.
    SmartNic {
        /// Which.
        smart_nic: String,
    },
}

/// Why a subgroup has no more cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CoreLimit {
    /// It may run on one only, because of this function.
    Single(String),
    /// The server has no more.
    AllTaken,
    /// The server has more, which the plan does not use: whether that would help is known where the plan is proven to be the
    /// best, and it would not.
    Spare,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::TMax => f.write_str("its own upper limit"),
            Bound::Port { bps } => write!(f, "port: {} Gbit/s come in", gigabits(*bps)),
            Bound::Cores { server, functions, cores, limit } => {
                let names = match &functions[..] {
                    [first, .., last] if functions.len() > 3 => {
                        format!("{first} … {last} ({} functions)", functions.len())
                    }
                    few => few.join(" -> "),
                };
                match limit {
                    CoreLimit::Single(function) => write!(f, "core: {names}: {function} may have one only"),
                    CoreLimit::AllTaken => write!(f, "cores: {names} has {}; {server} has no more", short(*cores)),
                    CoreLimit::Spare => {
                        write!(f, "cores: {names} fills its {}; {server} has others, unused here", short(*cores))
                    }
                }
            }
            Bound::Link { link, bps } => write!(f, "link: {link} is full ({} Gbit/s)", gigabits(*bps)),
            Bound::Relation { text } if text.is_empty() => f.write_str("nothing leaves it: it gets what others leave"),
            Bound::Relation { text } => write!(f, "the file: {text}"),
            Bound::Switch { switch, bps } => write!(f, "switch: {switch} forwards {} Gbit/s in all", gigabits(*bps)),
            Bound::SmartNic { smart_nic } => write!(f, "SmartNIC: the cores of {smart_nic}"),
        }
    }
}
