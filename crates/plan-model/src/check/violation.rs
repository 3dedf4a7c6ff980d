//! What can be wrong with a placement, with the numbers, for people.

use std::fmt;

use super::Amount;
use crate::placement::{Link, Site, Subgroup};
use crate::switch::Verdict;

/// Something that a placement must not do. Chains, functions and devices are given by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Violation {
    /// The problem itself cannot be.
    Problem {
        /// What is wrong with it.
        what: String,
    },
    /// There are more or fewer of something than there must be.
    Length {
        /// Of what.
        of: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
    /// A function is where it cannot run, or where nothing is.
    Site {
        /// Whose.
        chain: String,
        /// The function.
        node: String,
        /// Where it is.
        site: Site,
    },
    /// A subgroup names a chain, a function, a server or a network card that is not there.
    Index {
        /// The subgroup.
        subgroup: Subgroup,
    },
    /// Connected functions on one server are a subgroup, and the placement does not list it exactly once.
    Subgroup {
        /// Whose.
        chain: String,
        /// The functions.
        nodes: Vec<String>,
        /// How often it is listed.
        found: usize,
    },
    /// A subgroup that is listed is not a maximal set of connected functions on its server.
    NoSubgroup {
        /// Whose.
        chain: String,
        /// The functions.
        nodes: Vec<String>,
    },
    /// A number of cores that is none, or a part of one on a server whose cores are not shared.
    CoreCount {
        /// Whose.
        chain: String,
        /// The functions.
        nodes: Vec<String>,
        /// How many.
        cores: f64,
    },
    /// More than one core for what must not be replicated.
    Replicated {
        /// Whose.
        chain: String,
        /// The functions.
        nodes: Vec<String>,
        /// How many.
        cores: f64,
    },
    /// A subgroup needs more cycles per second than its cores have.
    Cycles {
        /// Whose.
        chain: String,
        /// The functions.
        nodes: Vec<String>,
        /// How many cores.
        cores: f64,
        /// Cycles per second.
        cycles: Amount,
    },
    /// A server gives more cores than it has.
    Cores {
        /// Which.
        server: String,
        /// Cores.
        cores: Amount,
    },
    /// A subgroup beside functions on a SmartNIC does not use that card's link.
    Link {
        /// Whose.
        chain: String,
        /// The functions.
        nodes: Vec<String>,
        /// What it uses.
        link: Link,
        /// The SmartNIC that it must use.
        card: String,
    },
    /// A link carries more than it can.
    Bandwidth {
        /// The server.
        server: String,
        /// Its card.
        card: String,
        /// Bits per second each way.
        bps: Amount,
    },
    /// A chain is spread over servers that no switch joins.
    Apart {
        /// Whose.
        chain: String,
        /// The servers.
        servers: Vec<String>,
    },
    /// Chains are not in the ratio that the file asks for.
    Unrelated {
        /// The relation.
        relation: String,
    },
    /// The switch forwards more than it can.
    Forwarding {
        /// Which.
        switch: String,
        /// Bits per second.
        bps: Amount,
    },
    /// A SmartNIC computes more than it can.
    SmartNicCycles {
        /// Which.
        card: String,
        /// Cycles per second.
        cycles: Amount,
    },
    /// A chain carries less than is guaranteed.
    TooSlow {
        /// Which.
        chain: String,
        /// Its rate, bits per second.
        rate_bps: f64,
        /// The guarantee, bits per second.
        t_min_bps: f64,
    },
    /// A chain carries more than it may, or than can enter.
    TooFast {
        /// Which.
        chain: String,
        /// Bits per second.
        rate: Amount,
    },
    /// A path takes longer than is promised.
    Latency {
        /// Whose.
        chain: String,
        /// Its functions.
        path: Vec<String>,
        /// Nanoseconds.
        latency: Amount,
    },
    /// The switch does not hold what is placed on it.
    Switch {
        /// What it says.
        verdict: Verdict,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Problem { what } => write!(f, "problem: {what}"),
            Violation::Length { of, found, expected } => write!(f, "{found} {of}, there must be {expected}"),
            Violation::Site { chain, node, site } => {
                let place = match site {
                    Site::Switch => "on the switch".to_owned(),
                    Site::Server(id) => format!("on server {id}"),
                    Site::SmartNic(id) => format!("on SmartNIC {id}"),
                };
                write!(f, "chain `{chain}`: `{node}` cannot run {place}")
            }
            Violation::Index { subgroup } => write!(
                f,
                "a subgroup names what is not there: chain {}, functions {:?}, server {}, {:?}",
                subgroup.chain, subgroup.nodes, subgroup.server, subgroup.link
            ),
            Violation::Subgroup { chain, nodes, found } => {
                write!(f, "chain `{chain}`: {} form a subgroup, which is listed {found} times", list(nodes))
            }
            Violation::NoSubgroup { chain, nodes } => write!(
                f,
                "chain `{chain}`: {} are listed as a subgroup, but are not all connected functions of one server",
                list(nodes)
            ),
            Violation::CoreCount { chain, nodes, cores } => {
                write!(f, "chain `{chain}`: {} cannot have {cores} cores", list(nodes))
            }
            Violation::Replicated { chain, nodes, cores } => {
                write!(f, "chain `{chain}`: {} may not be replicated, and have {cores} cores", list(nodes))
            }
            Violation::Cycles { chain, nodes, cores, cycles } => write!(
                f,
                "chain `{chain}`: {} need {:.4e} cycles a second, their {cores} cores have {:.4e}",
                list(nodes),
                cycles.used,
                cycles.available
            ),
            Violation::Cores { server, cores } => {
                write!(f, "server `{server}` gives {} cores of {}", cores.used, cores.available)
            }
            Violation::Link { chain, nodes, link, card } => {
                write!(f, "chain `{chain}`: {} must use the link of SmartNIC `{card}`, not {link:?}", list(nodes))
            }
            Violation::Bandwidth { server, card, bps } => write!(
                f,
                "server `{server}`: {card} carries {} each way, it can {}",
                gigabits(bps.used),
                gigabits(bps.available)
            ),
            Violation::Apart { chain, servers } => {
                write!(f, "chain `{chain}` is spread over {}, which no switch joins", list(servers))
            }
            Violation::Unrelated { relation } => write!(f, "`{relation}` is not kept"),
            Violation::Forwarding { switch, bps } => {
                write!(f, "switch `{switch}` forwards {}, it can {}", gigabits(bps.used), gigabits(bps.available))
            }
            Violation::SmartNicCycles { card, cycles } => write!(
                f,
                "SmartNIC `{card}` needs {:.4e} cycles a second, it has {:.4e}",
                cycles.used, cycles.available
            ),
            Violation::TooSlow { chain, rate_bps, t_min_bps } => {
                write!(f, "chain `{chain}` carries {}, {} is guaranteed", gigabits(*rate_bps), gigabits(*t_min_bps))
            }
            Violation::TooFast { chain, rate } => {
                write!(f, "chain `{chain}` carries {}, it may {}", gigabits(rate.used), gigabits(rate.available))
            }
            Violation::Latency { chain, path, latency } => write!(
                f,
                "chain `{chain}`: the path {} takes {:.3} µs, {:.3} µs are promised",
                path.join(" → "),
                latency.used / 1e3,
                latency.available / 1e3
            ),
            Violation::Switch { verdict } => write!(f, "switch: {verdict}"),
        }
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn gigabits(bps: f64) -> String {
    format!("{:.6} Gbit/s", bps / 1e9)
}
