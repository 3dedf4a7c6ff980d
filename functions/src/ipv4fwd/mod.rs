//! IPv4Fwd forwards packets by the longest prefix that covers their destination, IPv4 and IPv6.
//!
//! # Parameters
//!
//! - `routes` (required): a file, or a list of strings with one route each. A route is a prefix and where it
//!   leads, or a line as `ip route` and `ip -6 route` print it:
//!
//!   ```text
//!   10.1.0.0/24                via 192.0.2.1         # a next router; `via` may be left out
//!   10.2.0.0/16                192.0.2.2 gate 1      # leaves by gate 1
//!   2001:db8::/32              via fe80::1 mac 02:00:00:00:00:01
//!   blackhole 198.51.100.0/24                        # or unreachable, prohibit: dropped
//!   default                    via 192.0.2.1 dev eth0
//!   ```
//!
//!   `default` without an address stands for both families. Of several routes to one prefix the one with
//!   the lowest metric counts.
//! - `checksum` (`true` or `false`, default `true`): verify the header checksum of IPv4.
//! - `ttl` (`true` or `false`, default `true`): take one off the TTL or hop limit.
//! - `neighbours` (record, default empty): the station addresses of next routers by their addresses,
//!   `{"192.0.2.1": "02:00:00:00:00:01"}`; a `mac` in the route comes first.
//! - `mac` (string, default none): the address of this station.
//!
//! # Behaviour
//!
//! A packet's header checksum is verified, its route is looked up, its TTL lowered (the checksum follows,
//! RFC 1624), and it leaves. Where the station address of its next router is known, it becomes the
//! destination of the frame, and `mac`, if given, the source; else both stay as they are, as on a bump in
//! the wire. What follows the addresses, VLAN tags included, stays in any case.
//!
//! Attribute `gate`, 0 to 7, by output gate: the gate that the route names, else 0, the normal way. A route to
//! a gate that no edge of the chain leaves by is an error: its packets would go astray. `dev` is read over.
//!
//! On the way back the same routes hold, with gates of their own.
//!
//! Dropped and counted: `no route`, `discarded by a route`, `bad IPv4 header checksum`, `TTL expired` (a packet
//! whose TTL or hop limit is 0 or 1 is not forwarded, RFC 1812 §5.3.1, RFC 8200 §3), and malformed headers.
//!
//! ARP, IPv6 neighbour discovery (which hop limit 255 keeps to its link, RFC 4861 §11.2) and all that is not IP
//! pass untouched, the normal way.
//!
//! Routes are replaced under traffic between two batches: a packet sees the old ones or the new ones.
//!
//! # Example
//!
//! ```text
//! fwd = IPv4Fwd(routes = ["10.1.0.0/16 192.0.2.1", "10.2.0.0/16 192.0.2.2 gate 1", "blackhole 10.3.0.0/16"],
//!               neighbours = {"192.0.2.1": "02:00:00:00:00:01"}, mac = "02:00:00:00:00:fe")
//! in -> fwd
//! fwd[1] -> Monitor() -> out
//! fwd -> out
//! ```
//!
//! # Limits
//!
//! At most 16,777,216 routes of each family, 65,535 different next hops, in a table that all workers share. No ICMP errors are sent. Destinations
//! on the link itself (a route without `via`) keep their frame's addresses unless the route has a `mac`. Packets
//! to multicast groups need a route like all others. IPv4 options are not acted upon. Source addresses are not
//! checked (see ACL).
//!
//! # See also
//!
//! ACL, Limiter, LB.

mod address;
mod block;
mod forward;
mod lookup;
mod lpm;
mod neighbour;
pub mod routes;
mod table;
mod workload;

pub use address::{Address, BadLength, Prefix};
pub use forward::IPv4Fwd;
pub use lpm::{InsertError, Lpm, MAX_ROUTES};
pub use table::Table;

use crate::config::{ArgError, Args, Kind, Param};
use crate::descriptor::{Affinity, Attribute, Build, Descriptor, Method};
use crate::effects::{Checksum, Effects, Fields};

/// The values of the attribute `gate`.
const GATES: &[&str] = &["0", "1", "2", "3", "4", "5", "6", "7"];

/// What IPv4Fwd says about itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "IPv4Fwd",
    summary: "forwards packets by longest-prefix match, IPv4 and IPv6",
    source: include_str!("mod.rs"),
    params: &[
        Param {
            name: "routes",
            kind: Kind::OneOf(&[Kind::File, Kind::List(&Kind::Text)]),
            default: None,
            doc: "prefixes and where they lead, or what `ip route` prints",
        },
        Param { name: "checksum", kind: Kind::Bool, default: Some("true"), doc: "verify the IPv4 header checksum" },
        Param { name: "ttl", kind: Kind::Bool, default: Some("true"), doc: "take one off the TTL or hop limit" },
        Param {
            name: "neighbours",
            kind: Kind::Record,
            default: Some("{}"),
            doc: "station addresses of next routers, by their addresses",
        },
        Param { name: "mac", kind: Kind::Text, default: Some("none"), doc: "the address of this station" },
    ],
    attributes: &[Attribute {
        name: "gate",
        values: GATES,
        method: Method::Port,
        doc: "the gate that the packet's route names; 0 is the normal way",
    }],
    affinity: Affinity::None,
    effects,
    workload: Some(&workload::WORKLOAD),
    build: |args, build| Ok(Box::new(made(args, build)?)),
    spared: Some(|args, spared, build| Ok(Box::new(made(args, build)?.sparing(spared)))),
    ..Descriptor::DEFAULTS
};

/// Make an instance: the first of a run makes the table of routes, the others share it.
fn made(args: &Args, build: &Build<'_>) -> Result<IPv4Fwd, ArgError> {
    let table = build.once::<Table>((args.clone(), build.taken.to_vec()))?;
    Ok(IPv4Fwd::by(table, args))
}

/// Routes are all that it knows: it keeps no state.
fn effects(args: &Args) -> Effects {
    let on = |name, fields| if args.flag(name, true) { fields } else { Fields::NONE };
    let stations = table::stations(args);
    let read = Fields::NETWORK
        | Fields::DESTINATION
        | Fields::PROTOCOL
        | on("ttl", Fields::TTL)
        | on("checksum", Fields::CHECKSUM | Fields::SOURCE);
    Effects {
        // Neighbour discovery is known by its hop limit and type.
        reads: read | Fields::TTL | Fields::OTHERS,
        writes: stations.written | on("ttl", Fields::TTL | Fields::CHECKSUM),
        overwrites: stations.overwritten,
        observes: false,
        turns: false,
        checksum: if args.flag("checksum", true) { Checksum::Verified } else { Checksum::Kept },
        verdicts: None,
    }
}

/// Longest-prefix match over IPv4 addresses in host byte order.
pub type Lpm4 = Lpm<u32>;

/// Longest-prefix match over IPv6 addresses in host byte order.
pub type Lpm6 = Lpm<u128>;

/// The number of a next hop, or [`NextHop::NONE`]; what it stands for is the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct NextHop(u16);

impl NextHop {
    /// No route covers the address.
    pub const NONE: NextHop = NextHop(u16::MAX);

    /// How many distinct next hops there can be: 65,535, numbered from 0.
    pub const COUNT: usize = u16::MAX as usize;

    /// The next hop of number `id`; 65,535 is [`NextHop::NONE`].
    pub const fn new(id: u16) -> NextHop {
        NextHop(id)
    }

    /// The number, or `None` where no route covers the address.
    #[inline]
    pub const fn id(self) -> Option<u16> {
        if self.0 == u16::MAX { None } else { Some(self.0) }
    }
}

#[cfg(test)]
mod lpm_tests;
