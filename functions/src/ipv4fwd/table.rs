//! What is looked up for a packet: the routes of both families, and what becomes of it at each next hop.

use std::collections::HashMap;
use std::net::IpAddr;

use catena_packet::wire::ethernet::Mac;

use super::routes::{self, Hop, RouteError, Routes};
use super::{Address, GATES, Lpm, Lpm4, Lpm6, NextHop, Prefix, neighbour};
use crate::config::{ArgError, Args, Value};
use crate::effects::Fields;
use crate::tables::Prepared;

/// What becomes of a packet at its next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It leaves.
    Forward {
        /// The output gate on the way out; on the way back it is the next one.
        gate: u16,
        /// New station addresses: the destination's, and the source's if it is known.
        macs: Option<(Mac, Option<Mac>)>,
    },
    /// It is dropped.
    Discard,
}

/// Routes ready for look-ups, for all workers of a run. Later ones are made beside the workers, which then only swap them in
/// ([`IPv4Fwd::swap`](super::IPv4Fwd::swap)).
pub struct Table {
    pub(super) ipv4: Lpm4,
    pub(super) ipv6: Lpm6,
    /// By the number of a next hop.
    actions: Vec<Action>,
}

impl Table {
    /// Make the table that the arguments `routes`, `neighbours` and `mac` describe; `taken` are the gates
    /// that some edge of the chain leaves by. Takes about a microsecond a route.
    ///
    /// # Errors
    /// The first line that is no route or leads to a gate that nobody takes, and what is wrong with the
    /// others. In a file its place is given.
    pub fn new(args: &Args, taken: &[String]) -> Result<Table, ArgError> {
        let value = args.require("routes")?;
        let routes = read(value)?;
        let (neighbours, own) = (neighbour::table(args)?, neighbour::own(args)?);
        let actions = routes.hops.iter().zip(&routes.hop_lines);
        let actions = actions.map(|(hop, &line)| action(hop, &neighbours, own, taken).map_err(|e| at(value, line, e)));
        let actions = actions.collect::<Result<_, _>>()?;
        Ok(Table { ipv4: filled("IPv4", &routes.ipv4)?, ipv6: filled("IPv6", &routes.ipv6)?, actions })
    }

    /// What becomes of a packet with this next hop, unless it has none.
    #[inline(always)]
    pub(super) fn action(&self, hop: NextHop) -> Option<&Action> {
        // `NextHop::NONE` is beyond the last possible number.
        self.actions.get(usize::from(hop.0))
    }
}

impl Prepared for Table {
    /// The arguments, and the gates that some edge of the chain leaves by.
    type From = (Args, Vec<String>);

    fn prepare((args, taken): &Self::From) -> Result<Table, ArgError> {
        Table::new(args, taken)
    }
}

/// What a function with these arguments does to the station addresses of frames.
pub(super) struct Stations {
    /// Those that it may change.
    pub(super) written: Fields,
    /// Those that it changes in every frame that it forwards.
    pub(super) overwritten: Fields,
}

/// Read the arguments for what they say of station addresses; of those that are wrong nothing is promised.
pub(super) fn stations(args: &Args) -> Stations {
    let nothing_known = Stations { written: Fields::STATIONS, overwritten: Fields::NONE };
    let routes = args.require("routes").and_then(read);
    let (Ok(routes), Ok(neighbours), Ok(own)) = (routes, neighbour::table(args), neighbour::own(args)) else {
        return nothing_known;
    };
    let station = |hop: &Hop| match hop {
        Hop::Forward { via, mac, .. } => Some(mac.is_some() || via.is_some_and(|via| neighbours.contains_key(&via))),
        Hop::Discard => None,
    };
    let mut known = routes.hops.iter().filter_map(station);
    let overwritten = own.is_some() && known.clone().all(|known| known);
    Stations {
        written: if known.any(|known| known) { Fields::STATIONS } else { Fields::NONE },
        overwritten: if overwritten { Fields::STATIONS } else { Fields::NONE },
    }
}

/// The routes of an argument: a file, or strings of one route each.
fn read(value: &Value) -> Result<Routes, ArgError> {
    let mut joined = String::new();
    let text = match value {
        Value::File { text, .. } => text,
        list => {
            for (number, line) in (1..).zip(list.as_list()) {
                let Some(line) = line.as_text().filter(|line| !line.contains('\n')) else {
                    return Err(at(value, number, ArgError::new("routes", "expected one route as a string")));
                };
                joined.push_str(line);
                joined.push('\n');
            }
            &joined
        }
    };
    let routes = routes::parse(text).map_err(|error| {
        let RouteError { line, column, .. } = error;
        at(value, line, ArgError::new("routes", format!("column {column}: {}", error.problem)))
    })?;
    if routes.hops.is_empty() {
        return Err(ArgError::new("routes", "expected at least one route: without any, every packet is dropped"));
    }
    Ok(routes)
}

/// Say where an error is: on a line of a file, or in which string of a list.
fn at(value: &Value, line: usize, error: ArgError) -> ArgError {
    match value {
        Value::File { path, .. } => ArgError { place: Some((path.clone(), line)), ..error },
        _ => ArgError { message: format!("route {line}: {}", error.message), ..error },
    }
}

fn action(
    hop: &Hop,
    neighbours: &HashMap<IpAddr, Mac>,
    own: Option<Mac>,
    taken: &[String],
) -> Result<Action, ArgError> {
    let Hop::Forward { via, gate, mac, .. } = hop else { return Ok(Action::Discard) };
    let gate = gate.unwrap_or(0);
    let Some(name) = GATES.get(usize::from(gate)) else {
        let most = GATES.len() - 1;
        return Err(ArgError::new("routes", format!("expected a gate from 0 to {most}, found `{gate}`")));
    };
    if gate != 0 && !taken.iter().any(|value| value == name) {
        let message = format!("the route leads to gate {gate}, which no edge of the chain leaves by");
        return Err(ArgError::new("routes", message)
            .help(format!("lead it on with `NAME[{gate}] -> ...`, where NAME is this function's")));
    }
    let mac = mac.or_else(|| neighbours.get(via.as_ref()?).copied());
    Ok(Action::Forward { gate: 2 * gate, macs: mac.map(|mac| (mac, own)) })
}

fn filled<A: Address>(family: &str, routes: &[(Prefix<A>, NextHop)]) -> Result<Lpm<A>, ArgError> {
    let mut lpm = Lpm::new(routes.len());
    for &(prefix, hop) in routes {
        lpm.insert(prefix, hop).map_err(|error| ArgError::new("routes", format!("{family}: {error}")))?;
    }
    Ok(lpm)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
