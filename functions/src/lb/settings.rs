//! The balancer's arguments, read and checked.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use catena_state::Share;

use crate::addresses;
use crate::config::{ArgError, Args, Kind, Param, Value};
use crate::tables::Prepared;

use super::connection::Timeouts;
use super::maglev;

const SECOND: u64 = 1_000_000_000;
/// Most backends; the attribute and the table's entries hold their number in 16 bits, and a rack has fewer.
const MOST_BACKENDS: usize = 4096;
const MOST_WEIGHT: u64 = 256;
/// Most places of a ranking: the sum of all weights, at worst.
const MOST_PLACES: u64 = 65_535;

/// Most entries of `vip`: a packet that no connection knows is held against each.
const MOST_VIPS: usize = 256;

const DESTINATION: Kind = Kind::OneOf(&[Kind::Address, Kind::Endpoint, Kind::Prefix]);
const BACKEND: Kind = Kind::OneOf(&[Kind::Address, Kind::Endpoint, Kind::Record]);

pub(super) const PARAMS: &[Param] = &[
    Param {
        name: "vip",
        kind: Kind::List(&DESTINATION),
        default: None,
        doc: "the addresses, addresses with a port, or prefixes that clients send to",
    },
    Param {
        name: "backends",
        kind: Kind::List(&BACKEND),
        default: None,
        doc: "the servers: addresses, with a port where it differs; with a weight as {server: …, weight: 1..256}",
    },
    Param {
        name: "method",
        kind: Kind::Word(&["least_connections", "consistent_hash"]),
        default: Some("least_connections"),
        doc: "which server a new connection gets",
    },
    Param {
        name: "max_connections",
        kind: Kind::Integer,
        default: Some("1000000"),
        doc: "most connections at a time; further ones replace half-open ones, or are dropped",
    },
    Param {
        name: "drain",
        kind: Kind::Bool,
        default: Some("true"),
        doc: "whether connections of a server that goes down stay with it to their end, or move at once",
    },
    Param {
        name: "tcp_established",
        kind: Kind::Duration,
        default: Some("7440s"),
        doc: "time without a packet after which an established TCP connection is forgotten",
    },
    Param {
        name: "tcp_transitory",
        kind: Kind::Duration,
        default: Some("240s"),
        doc: "the same for a TCP connection that is half-open, closes or is closed",
    },
    Param { name: "udp", kind: Kind::Duration, default: Some("300s"), doc: "the same for UDP and all other protocols" },
    Param {
        name: "hash_seed",
        kind: Kind::Integer,
        default: Some("0"),
        doc: "with consistent_hash: balancers with the same seed and backends choose alike",
    },
];

/// Addresses that clients send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vip {
    pub(super) ip: IpAddr,
    /// Leading bits of `ip` that count.
    pub(super) length: u8,
    pub(super) port: Option<u16>,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backend {
    pub(super) ip: IpAddr,
    pub(super) port: Option<u16>,
    pub(super) weight: u32,
}

/// How new connections choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Least,
    Hash,
}

/// All arguments.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) vips: Vec<Vip>,
    pub(super) backends: Vec<Backend>,
    pub(super) method: Method,
    /// Of all instances together.
    pub(super) max_connections: u64,
    pub(super) drain: bool,
    pub(super) timeouts: Timeouts,
    pub(super) hash_seed: u64,
    /// Where instances begin: worked out by the first of them.
    pub(super) all_up: Arc<AllUp>,
}

/// The tables of `consistent_hash` with all servers up, of IPv4 and of IPv6.
#[derive(Debug, Default)]
pub(super) struct AllUp(pub(super) [OnceLock<maglev::Table>; 2]);

impl Prepared for AllUp {
    type From = Args;

    fn prepare(_args: &Args) -> Result<Self, ArgError> {
        Ok(AllUp::default())
    }
}

impl Settings {
    pub(super) fn read(args: &Args, share: Share) -> Result<Settings, ArgError> {
        let vips: Option<Vec<Vip>> = args.require("vip")?.as_list().iter().map(vip).collect();
        let vips =
            vips.ok_or_else(|| ArgError::new("vip", "expected addresses, with or without a port, or prefixes"))?;
        let backends = args.require("backends")?.as_list();
        let backends = backends.iter().map(backend).collect::<Result<Vec<_>, _>>()?;
        check(&vips, &backends)?;
        let method = match args.text("method", "least_connections") {
            "consistent_hash" => Method::Hash,
            _ => Method::Least,
        };
        let timeouts = Timeouts {
            tcp_established: args.duration("tcp_established", 7440 * SECOND),
            tcp_transitory: args.duration("tcp_transitory", 240 * SECOND),
            udp: args.duration("udp", 300 * SECOND),
        };
        Ok(Settings {
            vips,
            backends,
            method,
            max_connections: args.total("max_connections", 1_000_000, 1..=100_000_000, share)?,
            drain: args.flag("drain", true),
            timeouts,
            hash_seed: args.integer("hash_seed", 0, 0..=i64::MAX as u64)?,
            all_up: Arc::default(),
        })
    }
}

fn check(vips: &[Vip], backends: &[Backend]) -> Result<(), ArgError> {
    if vips.is_empty() {
        return Err(ArgError::new("vip", "expected at least one address"));
    }
    if vips.len() > MOST_VIPS {
        return Err(
            ArgError::new("vip", format!("there can be {MOST_VIPS} at most")).help("prefixes hold many addresses")
        );
    }
    if backends.len() > MOST_BACKENDS {
        return Err(ArgError::new("backends", format!("there can be {MOST_BACKENDS} at most")));
    }
    for vip in vips {
        if !backends.iter().any(|b| b.ip.is_ipv4() == vip.ip.is_ipv4()) {
            let family = if vip.ip.is_ipv4() { "IPv4" } else { "IPv6" };
            return Err(ArgError::new("backends", format!("none is {family}, as {} is", vip.ip))
                .help("a backend must be of the same IP version as the address before it"));
        }
        if vip.port.is_none() && vips.iter().any(|v| v.port.is_some() && vip.contains(v.ip)) {
            return Err(ArgError::new("vip", format!("{} stands there with and without a port", vip.ip)));
        }
    }
    for (i, backend) in backends.iter().enumerate() {
        if vips.iter().any(|vip| vip.contains(backend.ip)) {
            return Err(ArgError::new("backends", format!("{} is also a `vip`", backend.ip)));
        }
        if backends[..i].iter().any(|b| (b.ip, b.port) == (backend.ip, backend.port)) {
            return Err(
                ArgError::new("backends", format!("{} stands there twice", backend.ip)).help("give it a weight")
            );
        }
    }
    if backends.iter().map(|b| u64::from(b.weight)).sum::<u64>() > MOST_PLACES {
        return Err(ArgError::new("backends", format!("the weights add up to more than {MOST_PLACES}")));
    }
    Ok(())
}

impl Vip {
    /// Return the first and the last address.
    pub(super) fn range(&self) -> (IpAddr, IpAddr) {
        addresses::range(self.ip, self.length)
    }

    fn contains(&self, ip: IpAddr) -> bool {
        let (first, last) = self.range();
        ip.is_ipv4() == first.is_ipv4() && (first..=last).contains(&ip)
    }
}

fn vip(value: &Value) -> Option<Vip> {
    match *value {
        Value::Endpoint(endpoint) => {
            let ip = endpoint.ip();
            Some(Vip { ip, length: if ip.is_ipv4() { 32 } else { 128 }, port: Some(endpoint.port()) })
        }
        _ => value.as_prefix().map(|(ip, length)| Vip { ip, length, port: None }),
    }
}

/// Return where the servers are that `backends` names, of an argument that may yet prove wrong.
pub(super) fn servers(args: &Args) -> Vec<IpAddr> {
    let backends = args.get("backends").map_or(&[][..], Value::as_list);
    backends.iter().filter_map(|value| Some(backend(value).ok()?.ip)).collect()
}

fn destination(value: &Value) -> Option<(IpAddr, Option<u16>)> {
    match *value {
        Value::Address(ip) => Some((ip, None)),
        Value::Endpoint(endpoint) => Some((endpoint.ip(), Some(endpoint.port()))),
        _ => None,
    }
}

fn backend(value: &Value) -> Result<Backend, ArgError> {
    let error = |what: &str| ArgError::new("backends", what).help("for example {server: 10.0.0.1:80, weight: 3}");
    let (server, weight) = match value {
        Value::Record(fields) => {
            let get = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, value)| value);
            if let Some((name, _)) = fields.iter().find(|(n, _)| n != "server" && n != "weight") {
                return Err(error(&format!("`{name}` is unknown here, only `server` and `weight` are not")));
            }
            let weight = match get("weight") {
                None => 1,
                Some(value) => value
                    .as_integer()
                    .filter(|w| (1..=MOST_WEIGHT).contains(w))
                    .ok_or_else(|| error(&format!("`weight` must be a whole number from 1 to {MOST_WEIGHT}")))?,
            };
            (get("server").ok_or_else(|| error("the record has no `server`"))?, weight)
        }
        single => (single, 1),
    };
    let (ip, port) = destination(server).ok_or_else(|| error("expected an address, with or without a port"))?;
    Ok(Backend { ip, port, weight: weight as u32 })
}
