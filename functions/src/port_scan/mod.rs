//! PortScan: drops new connections of sources that look for open ports.
//!
//! # Parameters
//!
//! - `benign` (80%): how many of a benign source's first connections succeed.
//! - `scanner` (20%): how many of a scanner's do; fewer than a benign source's.
//! - `detection` (99%): how many scanners are found.
//! - `false_alarms` (1%): how many benign sources may be taken for one.
//! - `timeout` (3s): a connection that nobody has answered by then has failed.
//! - `memory` (10min): how long a scanner stays blocked, and what is known of others is kept after its last use.
//! - `max_sources` (1000000): most sources that something is known of; `max_contacts` (1000000): most pairs of a source and a
//!   destination.
//!
//! # Behaviour
//!
//! A source that looks for open ports does not know where they are: most of its attempts fail. PortScan watches the first TCP
//! connection of each source (IPv4 and IPv6) to each destination. One that is answered by SYN and ACK has succeeded; one that
//! is answered by RST, or not at all, has failed. Each outcome moves the source's likelihood of being a scanner up or down,
//! until one of two thresholds is reached (the threshold random walk of Jung, Paxson, Berger and Balakrishnan, "Fast Portscan
//! Detection Using Sequential Hypothesis Testing", §4). With the defaults four failures more than successes tell a scanner. A
//! source that is found benign is watched anew, as it may change.
//!
//! New connections (SYN without ACK) of a scanner are dropped and counted as `source scans ports`, until `memory` has passed
//! since its last outcome. All other packets pass: those of connections that are there, other protocols, and fragments. The first
//! way (input gate 0) is that of those who are watched; answers come on the way back.
//!
//! # With several instances
//!
//! Packets are shared out by inside address, and each instance knows the sources that it meets. `max_sources` and `max_contacts`
//! are the total of all instances, of which each has an equal part.
//!
//! # Under attack
//!
//! Sources can be forged, and a flood of them fills the tables. Then what is known stays, new sources are not watched
//! (`unwatched` counts what was not noted of them), and no packet is dropped for it. A victim whose address is forged can be taken
//! for a scanner, and its new connections are dropped here for as long as `memory` says. So put PortScan where sources are checked,
//! for example behind an ACL that permits only the addresses of each customer (BCP 38).
//!
//! # Example
//!
//! ```text
//! in -> PortScan(timeout = 2s, memory = 1h) -> out
//! ```
//!
//! # See also
//!
//! Limiter, Monitor.

mod hosts;
mod watch;
mod workload;

use catena_dataplane::Module;
use catena_state::{Engine, Scope, Share};

use crate::config::{ArgError, Args, Kind, Param, Value};
use crate::descriptor::{Affinity, Build, Descriptor, Recipe};
use crate::effects::{Effects, Fields};
use hosts::Rules;
use watch::PortScan;

const SECOND: u64 = 1_000_000_000;
/// The most entries that a table may be asked to have.
const MOST: u64 = 1 << 28;

const fn param(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Param {
    Param { name, kind, default: Some(default), doc }
}

/// The function, to the library.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "PortScan",
    summary: "drops new connections of sources that look for open ports",
    source: include_str!("mod.rs"),
    params: &[
        param("benign", Kind::Percent, "80%", "first connections of a benign source that succeed"),
        param("scanner", Kind::Percent, "20%", "first connections of a scanner that succeed"),
        param("detection", Kind::Percent, "99%", "scanners that are found"),
        param("false_alarms", Kind::Percent, "1%", "benign sources that are taken for one"),
        param("timeout", Kind::Duration, "3s", "when a connection without an answer has failed"),
        param("memory", Kind::Duration, "10min", "how long a scanner is blocked and others are known"),
        param("max_sources", Kind::Integer, "1000000", "most sources that something is known of"),
        param("max_contacts", Kind::Integer, "1000000", "most pairs of source and destination"),
    ],
    // Khalid's dissertation, Table 3.12.
    state: &[watch::SOURCES, watch::CONTACTS, watch::LOST],
    affinity: Affinity::Scope(Scope::Source),
    // It looks at TCP's flags, too.
    effects: |_| Effects {
        reads: Fields::NETWORK | Fields::FIVE_TUPLE | Fields::OTHERS,
        writes: Fields::NONE,
        ..Effects::ANY
    },
    workload: Some(&workload::WORKLOAD),
    build,
    ..Descriptor::DEFAULTS
};

/// Build an instance for a host.
fn build(args: &Args, build: &mut Build<'_>) -> Result<Box<dyn Module>, ArgError> {
    build.deploy(Settings::read(args, build.share)?)
}

/// What the arguments say.
#[derive(Clone, Copy, Debug)]
struct Settings {
    rules: Rules,
    timeout: u64,
    memory: u64,
    /// Of all instances together, as the next one.
    max_sources: u64,
    max_contacts: u64,
}

impl Settings {
    fn read(args: &Args, share: Share) -> Result<Settings, ArgError> {
        let part = |name: &str, default: f64| match args.get(name) {
            Some(Value::Percent(part)) => *part,
            _ => default,
        };
        let [benign, scanner] = [part("benign", 0.8), part("scanner", 0.2)];
        let [detection, false_alarms] = [part("detection", 0.99), part("false_alarms", 0.01)];
        let is_between = |less: f64, more: f64| 0.0 < less && less < more && more < 1.0;
        if !is_between(scanner, benign) {
            return Err(ArgError::new(
                "scanner",
                "expected more than 0% and less than `benign`, which is less than 100%",
            ));
        }
        if !is_between(false_alarms, detection) {
            let message = "expected more than 0% and less than `detection`, which is less than 100%";
            return Err(ArgError::new("false_alarms", message));
        }
        let time = |name: &str, default: u64| match args.duration(name, default) {
            0 => Err(ArgError::new(name, "expected more than 0")),
            ns => Ok(ns),
        };
        let memory = time("memory", 600 * SECOND)?;
        Ok(Settings {
            rules: Rules::new([benign, scanner], [detection, false_alarms], memory),
            timeout: time("timeout", 3 * SECOND)?,
            memory,
            max_sources: args.total("max_sources", 1_000_000, 1..=MOST, share)?,
            max_contacts: args.total("max_contacts", 1_000_000, 1..=MOST, share)?,
        })
    }
}

impl Recipe for Settings {
    type Function<E: Engine> = PortScan<E>;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<PortScan<E>, ArgError> {
        PortScan::new(engine, *self).map_err(|error| {
            ArgError::no_memory(if error.object == "contacts" { "max_contacts" } else { "max_sources" }, error)
        })
    }
}

#[cfg(test)]
mod tests;
