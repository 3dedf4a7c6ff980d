//! `--what-if KEY=VALUE`: typed changes of a rack and of promises, to plan again with.
//!
//! A key is a rack's (`servers`, `packet_bytes`), the switch's (`stages`, `port`, …), a server's (`cores`, `nic`,
//! …; of all servers, or behind a server's name: `nf1.cores`), or a chain's behind its name (`chain3.t_min`).

use std::fmt;

use catena_policy::{PolicyGraph, likely};

use crate::rack::units::{Measure, amount};
use crate::rack::{MAX_CORES, MAX_SERVERS, Rack, Server, SwitchKind};

/// A change that was read, and can be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// As written.
    pub text: String,
    target: Option<String>,
    key: Key,
    value: Number,
}

/// A value in base units.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    /// Bits per second, cycles per second or nanoseconds.
    Amount(f64),
    /// A whole number.
    Count(u32),
    /// Whether.
    Flag(bool),
    /// No limit at all.
    Unlimited,
}

/// Why there is no such change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongEdit {
    /// As written.
    pub text: String,
    /// One sentence, and the keys there are.
    pub why: String,
}

impl fmt::Display for WrongEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--what-if '{}': {}", self.text, self.why)
    }
}

impl std::error::Error for WrongEdit {}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Servers,
    PacketBytes,
    Stages,
    SramBlocks,
    TcamBlocks,
    Entries,
    Port,
    Capacity,
    Pass,
    Bounce,
    Cores,
    SteeringCores,
    Shared,
    Clock,
    Nic,
    SmartNic,
    TMin,
    TMax,
    DMax,
}

/// Whose a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Rack,
    Switch,
    Server,
    Chain,
}

/// What a key's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count { least: u32, most: u32 },
    Flag,
    Amount { measure: Measure, zero: bool, unlimited: bool },
}

const RATE: Kind = Kind::Amount { measure: Measure::Rate, zero: false, unlimited: false };
const TIME: Kind = Kind::Amount { measure: Measure::Time, zero: true, unlimited: false };

const fn count(least: u32, most: u32) -> Kind {
    Kind::Count { least, most }
}

/// All keys, whose they are and what they take.
const KEYS: [(&str, Key, Owner, Kind); 19] = [
    ("servers", Key::Servers, Owner::Rack, count(1, MAX_SERVERS)),
    ("packet_bytes", Key::PacketBytes, Owner::Rack, count(64, 65_535)),
    ("stages", Key::Stages, Owner::Switch, count(1, 256)),
    ("sram_blocks", Key::SramBlocks, Owner::Switch, count(0, 4_096)),
    ("tcam_blocks", Key::TcamBlocks, Owner::Switch, count(0, 4_096)),
    ("entries", Key::Entries, Owner::Switch, count(1, u32::MAX - 1)),
    ("port", Key::Port, Owner::Switch, RATE),
    ("capacity", Key::Capacity, Owner::Switch, RATE),
    ("pass", Key::Pass, Owner::Switch, TIME),
    ("bounce", Key::Bounce, Owner::Switch, TIME),
    ("cores", Key::Cores, Owner::Server, count(1, MAX_CORES)),
    ("steering_cores", Key::SteeringCores, Owner::Server, count(0, MAX_CORES)),
    ("shared", Key::Shared, Owner::Server, Kind::Flag),
    ("clock", Key::Clock, Owner::Server, Kind::Amount { measure: Measure::Clock, zero: false, unlimited: false }),
    ("nic", Key::Nic, Owner::Server, RATE),
    ("smart_nic", Key::SmartNic, Owner::Server, RATE),
    ("t_min", Key::TMin, Owner::Chain, Kind::Amount { measure: Measure::Rate, zero: true, unlimited: false }),
    ("t_max", Key::TMax, Owner::Chain, Kind::Amount { measure: Measure::Rate, zero: false, unlimited: true }),
    ("d_max", Key::DMax, Owner::Chain, Kind::Amount { measure: Measure::Time, zero: false, unlimited: true }),
];

/// The keys there are, for people.
#[must_use]
pub fn keys() -> String {
    let of = |owner: Owner| KEYS.iter().filter(|k| k.2 == owner).map(|k| k.0).collect::<Vec<_>>().join(", ");
    format!(
        "{}, {}, {} (of all servers, or as SERVER.cores), CHAIN.t_min, CHAIN.t_max, CHAIN.d_max",
        of(Owner::Rack),
        of(Owner::Switch),
        of(Owner::Server)
    )
}

impl Edit {
    /// Read `KEY=VALUE`.
    ///
    /// # Errors
    /// When there is no such key, or the value is none of its.
    pub fn parse(text: &str) -> Result<Edit, WrongEdit> {
        let wrong = |why: String| WrongEdit { text: text.to_owned(), why };
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| wrong(format!("expected KEY=VALUE, such as cores=8; keys: {}", keys())))?;
        let (path, value) = (path.trim(), value.trim());
        // Names of chains and servers may hold dots themselves; keys do not.
        let (target, key) = match path.rsplit_once('.') {
            Some((target, key)) => (Some(target.to_owned()), key),
            None => (None, path),
        };
        let Some(&(_, key, owner, kind)) = KEYS.iter().find(|(name, ..)| *name == key) else {
            return Err(wrong(match likely(key, KEYS.iter().map(|k| k.0)) {
                Some(meant) => format!("there is no key `{key}`; did you mean `{meant}`? Keys: {}", keys()),
                None => format!("there is no key `{key}`; keys: {}", keys()),
            }));
        };
        match (owner, &target) {
            (Owner::Chain, None) => return Err(wrong(format!("of which chain? Write CHAIN.{path}=…"))),
            (Owner::Rack | Owner::Switch, Some(_)) => {
                return Err(wrong("there is one of it in a rack: write it without a name before the dot".to_owned()));
            }
            _ => {}
        }
        let value = read(value, kind).map_err(wrong)?;
        Ok(Edit { text: text.to_owned(), target, key, value })
    }

    /// Make the change.
    ///
    /// # Errors
    /// When there is no such server or chain, or the change contradicts what is there.
    pub fn apply(&self, rack: &mut Rack, graph: &mut PolicyGraph) -> Result<(), WrongEdit> {
        let wrong = |why: String| WrongEdit { text: self.text.clone(), why };
        match (self.key, self.value) {
            (Key::TMin | Key::TMax | Key::DMax, value) => self.promise(value, graph).map_err(wrong),
            (Key::Servers, Number::Count(n)) => servers(rack, n as usize).map_err(wrong),
            (Key::PacketBytes, Number::Count(n)) => {
                rack.packet_bytes = f64::from(n);
                Ok(())
            }
            (
                Key::Stages
                | Key::SramBlocks
                | Key::TcamBlocks
                | Key::Entries
                | Key::Port
                | Key::Capacity
                | Key::Pass
                | Key::Bounce,
                value,
            ) => self.switch(value, rack).map_err(wrong),
            (_, value) => self.servers(value, rack).map_err(wrong),
        }
    }

    fn promise(&self, value: Number, graph: &mut PolicyGraph) -> Result<(), String> {
        let name = self.target.as_deref().unwrap_or_default();
        let names: Vec<String> = graph.chains.iter().map(|c| c.name.clone()).collect();
        let Some(chain) = graph.chains.iter_mut().find(|chain| chain.name == name) else {
            return Err(nobody("chain", name, &names));
        };
        let amount = match value {
            Number::Amount(amount) => Some(amount.round() as u64),
            _ => None,
        };
        let promise = &mut chain.promise;
        match self.key {
            Key::TMin => promise.t_min_bps = amount.unwrap_or(0),
            Key::TMax => promise.t_max_bps = amount,
            _ => promise.d_max_ns = amount,
        }
        match promise.t_max_bps {
            Some(most) if most < promise.t_min_bps => {
                Err(format!("`{name}` would guarantee more than it allows: {promise}"))
            }
            _ => Ok(()),
        }
    }

    fn switch(&self, value: Number, rack: &mut Rack) -> Result<(), String> {
        let Some(switch) = &mut rack.switch else {
            return Err("the rack has no switch".to_owned());
        };
        match (self.key, value, &mut switch.kind) {
            (Key::Port, Number::Amount(bps), _) => switch.port_bps = bps,
            (Key::Capacity, Number::Amount(bps), _) => switch.capacity_bps = bps,
            (Key::Pass, Number::Amount(ns), _) => switch.pass_ns = ns,
            (Key::Bounce, Number::Amount(ns), _) => switch.bounce_ns = ns,
            (Key::Stages, Number::Count(n), SwitchKind::Pisa(stages)) if n > stages.framework_stages => {
                stages.stages = n;
            }
            (Key::Stages, Number::Count(_), SwitchKind::Pisa(stages)) => {
                return Err(format!("{} stages are taken by steering and tags alone", stages.framework_stages));
            }
            (Key::SramBlocks, Number::Count(n), SwitchKind::Pisa(stages)) => stages.sram_blocks = n,
            (Key::TcamBlocks, Number::Count(n), SwitchKind::Pisa(stages)) => stages.tcam_blocks = n,
            (Key::Entries, Number::Count(n), SwitchKind::Plain { entries }) => *entries = n,
            (Key::Entries, Number::Count(n), SwitchKind::OpenFlow { tables }) => {
                tables.iter_mut().for_each(|table| table.entries = n);
            }
            _ => return Err(format!("`{}` is not of this kind of switch", switch.name)),
        }
        if switch.port_bps > switch.capacity_bps {
            return Err("a port would be faster than all of the switch".to_owned());
        }
        Ok(())
    }

    fn servers(&self, value: Number, rack: &mut Rack) -> Result<(), String> {
        let names: Vec<String> = rack.servers.iter().map(|s| s.name.clone()).collect();
        let meant = |server: &Server| self.target.as_ref().is_none_or(|name| *name == server.name);
        if let Some(name) = self.target.as_ref().filter(|name| !names.contains(name)) {
            return Err(nobody("server", name, &names));
        }
        let mut changed = 0;
        for server in rack.servers.iter_mut().filter(|server| meant(server)) {
            changed += self.server(value, server)?;
        }
        if changed == 0 {
            return Err("there is no such network card to change".to_owned());
        }
        Ok(())
    }

    /// Change one server; how many things were changed.
    fn server(&self, value: Number, server: &mut Server) -> Result<usize, String> {
        match (self.key, value) {
            (Key::Cores, Number::Count(n)) if n.is_multiple_of(server.sockets) => {
                server.cores_per_socket = n / server.sockets;
            }
            (Key::Cores, Number::Count(n)) => {
                return Err(format!(
                    "{n} cores do not divide over the {} sockets of `{}`",
                    server.sockets, server.name
                ));
            }
            (Key::SteeringCores, Number::Count(n)) => server.steering_cores = n,
            (Key::Shared, Number::Flag(on)) => server.shared = on,
            (Key::Clock, Number::Amount(hz)) => server.clock_hz = hz,
            (Key::Nic, Number::Amount(bps)) => {
                server.nics.iter_mut().for_each(|nic| nic.bps = bps);
                return Ok(server.nics.len());
            }
            (Key::SmartNic, Number::Amount(bps)) => {
                server.smart_nics.iter_mut().for_each(|nic| nic.bps = bps);
                return Ok(server.smart_nics.len());
            }
            _ => return Ok(0),
        }
        let cores = server.sockets * server.cores_per_socket;
        if server.steering_cores >= cores {
            let (name, steering) = (&server.name, server.steering_cores);
            return Err(format!("{steering} of {cores} cores of `{name}` for steering leave none for functions"));
        }
        Ok(1)
    }
}

/// That there is nobody of this name.
fn nobody(what: &str, name: &str, names: &[String]) -> String {
    if let Some(meant) = likely(name, names.iter().map(String::as_str)) {
        return format!("there is no {what} `{name}`; did you mean `{meant}`?");
    }
    let shown = names.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if names.len() > 8 { ", …" } else { "" };
    format!("there is no {what} `{name}`; there are: {shown}{more}")
}

/// Make it this many servers: the last are taken away, or the last one is copied.
fn servers(rack: &mut Rack, count: usize) -> Result<(), String> {
    let Some(last) = rack.servers.last().cloned() else {
        return Err("the rack has no server to copy".to_owned());
    };
    rack.servers.truncate(count);
    for i in rack.servers.len() + 1.. {
        if rack.servers.len() >= count {
            break;
        }
        let name = format!("{}+{i}", last.name);
        rack.servers.push(Server { name, ..last.clone() });
    }
    let cards: usize = rack.servers.iter().map(|s| s.nics.len() + s.smart_nics.len()).sum();
    match &rack.switch {
        Some(switch) if cards > switch.ports as usize => {
            Err(format!("{cards} network cards would not fit the {} ports of `{}`", switch.ports, switch.name))
        }
        _ => Ok(()),
    }
}

fn read(text: &str, kind: Kind) -> Result<Number, String> {
    match kind {
        Kind::Flag => text.parse().map(Number::Flag).map_err(|_| format!("`{text}` is neither true nor false")),
        Kind::Count { least, most } => match text.parse() {
            Ok(n) if (least..=most).contains(&n) => Ok(Number::Count(n)),
            _ => Err(format!("`{text}` is no whole number from {least} to {most}")),
        },
        Kind::Amount { unlimited: true, .. } if text == "none" => Ok(Number::Unlimited),
        Kind::Amount { measure, zero, .. } => match amount(text, measure) {
            Ok(number) if number > 0.0 || zero => Ok(Number::Amount(number)),
            Ok(_) => Err(format!("`{text}` is nothing; expected {}", measure.expected())),
            Err(wrong) => {
                let hint = wrong.likely.map_or(String::new(), |unit| format!("; did you mean `{unit}`?"));
                Err(wrong.message + &hint)
            }
        },
    }
}

#[cfg(test)]
mod tests;
