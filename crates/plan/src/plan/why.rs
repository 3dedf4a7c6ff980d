//! Why a function runs where it does, as data and in words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::short;
use catena_plan_model::figures::us;

/// Why a function runs where it does, and not on another device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind")]
pub enum Why {
    /// It can run on no other kind of device.
    OnlyThere,
    /// On the switch it takes no core.
    NoCore {
        /// Cycles per packet that it would take on a server; absent: it cannot run there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server_cycles: Option<f64>,
    },
    /// On the card it takes no core.
    CardForCore {
        /// Cycles per packet of the card.
        card_cycles: f64,
        /// Cycles per packet of a core that it would take.
        server_cycles: f64,
    },
    /// Frames that are not IP are dropped in front of it, which servers do.
    Guarded,
    /// There is no switch.
    NoSwitch,
    /// The switch runs no functions.
    Forwards,
    /// The switch cannot run it.
    NotOnSwitch,
    /// The switch's tables come in another order than the chain.
    TableOrder,
    /// The switch has no room for it.
    SwitchFull {
        /// What would be too much, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with_it: Option<String>,
    },
    /// With it on the switch packets would be late.
    Late {
        /// Nanoseconds of the longest path then.
        then_ns: f64,
        /// Nanoseconds promised.
        most_ns: f64,
    },
    /// With it on the switch packets would go to servers more often.
    Bounces {
        /// The functions that it stays beside.
        beside: Vec<String>,
        /// Visits to servers per packet now.
        now: f64,
        /// And then.
        then: f64,
    },
    /// Apart, functions need another core.
    Core {
        /// The functions that it stays beside.
        beside: Vec<String>,
    },
    /// Other limits bind first.
    NoGain,
}

/// Some names, and how many more there are.
fn few(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [first, second, _, _, ..] => format!("{first}, {second} and {} more", names.len() - 2),
        few => few.join(", "),
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::OnlyThere => f.write_str("runs only there"),
            Why::NoCore { server_cycles: None } => f.write_str("takes no core there"),
            Why::NoCore { server_cycles: Some(cycles) } => {
                write!(f, "takes no core there; on a server {cycles:.0} cycles a packet")
            }
            Why::CardForCore { card_cycles, server_cycles } => {
                write!(f, "takes no core there; {card_cycles:.0} cycles of the card for {server_cycles:.0} of a core")
            }
            Why::Guarded => f.write_str("`unparsed = drop` is done on a server"),
            Why::NoSwitch => f.write_str("there is no switch"),
            Why::Forwards => f.write_str("the switch only forwards"),
            Why::NotOnSwitch => f.write_str("cannot run on the switch"),
            Why::TableOrder => f.write_str("the switch's tables come in another order than the chain"),
            Why::SwitchFull { with_it: Some(overflow) } => write!(f, "the switch is full: with it, it {overflow}"),
            Why::SwitchFull { with_it: None } => f.write_str("the switch is full"),
            Why::Late { then_ns, most_ns } => {
                let (then, most) = (us(*then_ns), us(*most_ns));
                write!(f, "latency: with it on the switch {then} us, promised are {most}")
            }
            Why::Bounces { beside, now, then } => {
                let (beside, now, then) = (few(beside), short(*now), short(*then));
                write!(f, "stays beside {beside}: {then} bounces instead of {now} with it on the switch")
            }
            Why::Core { beside } => write!(f, "stays beside {}: apart they need another core", few(beside)),
            Why::NoGain => f.write_str("no gain elsewhere: other limits bind first"),
        }
    }
}
