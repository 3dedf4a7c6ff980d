//! LB: spreads connections over servers (layer 4, IPv4 and IPv6).
//!
//! ```text
//! LB(vip = ADDRESS[:PORT] or PREFIX or [..], backends = [ADDRESS[:PORT], {server: .., weight: N}, ..])
//! ```
//!
//! Clients send to a virtual address (VIP). Every new connection gets a server, and stays with it: the
//! destination address of its packets becomes the server's, and the port too where the backend names one. On the
//! way back (input gate 1 to output gate 1) the source becomes the VIP again. Checksums are updated (RFC 1624), MAC
//! addresses are not touched. What is not for a VIP passes as it is.
//!
//! # Parameters
//!
//! - `vip`: the addresses that clients send to, singly or as prefixes, at most 256 entries. With a port, only
//!   TCP, UDP and SCTP to that port are balanced; without, every protocol.
//! - `backends`: the servers, at most 4,096, of the same IP version as the VIP before them. Of weight 1 to 256: a
//!   server of weight 3 gets three times as many connections as one of weight 1 (the default).
//! - `method`: `least_connections` (default): the server with the fewest active connections for its weight, of all
//!   workers: a worker knows those of others as of their latest batch, so no packet waits (in a replay from files, as of the packet
//!   before; of each worker alone, where a capture comes by a pipe or a plan has divided the pipeline). `consistent_hash`:
//!   the server that the five-tuple's hash names (Maglev hashing, Eisenbud et al., NSDI 2016, §3.4): balancers with the
//!   same `backends` and `hash_seed` choose alike, and when one of n servers goes, the connections of the others stay
//!   where they are, but for a few in a hundred. The hash is not secret.
//! - `max_connections` (1,000,000): most connections at a time, split evenly between workers. A connection takes some 110
//!   bytes (IPv6: 170).
//! - `drain` (true): whether connections of a server that goes down stay with it to their end. With
//!   `false` their next packet gets another server; TCP clients will see a reset by that server.
//! - `tcp_established` (7440s), `tcp_transitory` (240s), `udp` (300s; also for all other protocols): time
//!   without a packet, either way, after which a connection is forgotten (defaults: RFC 5382, RFC 4787). Transitory: it
//!   is half-open or closed, or one side has sent FIN. A connection is kept at least that long, and at most a
//!   quarter longer plus the time of one round through the table; a half-open one may go earlier, see below.
//! - `hash_seed` (0): see `consistent_hash`.
//!
//! # Attributes
//!
//! - `backend`: the number of the packet's server, from 1, in the order of `backends`; 0 where LB did nothing.
//!
//! # Behaviour
//!
//! - Affinity: a connection stays with its server whatever other servers do. TCP connections that were open before
//!   the balancer started are taken in at their first packet.
//! - Half-open connections: a client's packet may have a false source, so none establishes a connection by itself. TCP is
//!   established when the client acknowledges the number of the server's SYN, or when the server sends data or FIN; SCTP
//!   when the server sends COOKIE ACK, data, or what acknowledges or probes (RFC 9260 §5.1), not by INIT ACK or ABORT. Until
//!   then the connection is half-open; one of TCP that began before the balancer did is kept for `tcp_established` once the
//!   server has sent anything. UDP, ICMP and all other protocols prove nothing, as servers answer false senders too: these
//!   connections are half-open to their end, whoever answers.
//! - Full table: a new connection takes the place of the one that has been half-open or closed longest, and is refused
//!   only when there is none. An established connection never gives way. So a flood from false sources refuses nobody,
//!   whatever its protocol and whether or not the servers answer it;
//!   but a handshake must be over before as many new connections come as there are half-open ones in a full table.
//! - UDP and other protocols without proof in a full table: the connection goes that is longest without an answer of its
//!   server, of which the first is noted and then one each quarter of `udp`. Its client's next packet opens another, perhaps at
//!   another server; `consistent_hash` names the same one again. Choose `max_connections` so large that no flood goes round the
//!   table while a client waits: a million entries last 333 s at 3,000 packets a second from false sources.
//! - A client's RST may be false too. It ends a connection's count, but the entry does not give way, and a SYN after it goes to
//!   the same server, if that is up: what the server sends next says whether the old connection lives or a new one begins.
//! - Direct server return: where the servers' packets do not pass LB, all connections stay half-open. The
//!   clients' packets keep them as long as the table has room; choose `max_connections` large enough, and
//!   `tcp_transitory` as long as clients may be silent.
//! - Active connections: a connection counts from its first packet to its FIN both ways, its RST, or its
//!   time-out, and its end counts once. A SYN with the addresses and ports of a connection that both sides or the server
//!   closed opens a new one.
//! - New connections avoid a server that is down. Which are is told by who embeds the function (`Balancer::set_backend`): no command
//!   of `catena` tells it yet, and no health checks are made.
//! - Fragments: the first one is balanced by its ports; the later ones follow it in any order, for up to 4,096 datagrams at a
//!   time and 30 s. Later fragments that come before their first are dropped, and counted. A client (of IPv6: a /64) has 128
//!   datagrams at a time (64 with several workers, which split the room), fewer as room runs out; half of the room is kept for established connections.
//! - Echo requests to a VIP without a port are balanced, all of a client to one server. ICMP errors and neighbour
//!   discovery for a VIP pass untouched: path MTU discovery by ICMP does not reach the servers; clamp TCP's MSS.
//! - SCTP keeps its port, because its checksum covers it, not the address. Other protocols whose
//!   checksum covers addresses (UDP-Lite, DCCP) or that authenticate them (AH) do not survive a new address.
//! - Two connections of one client port to two VIPs that meet at one server and port are the same to the server: on the
//!   way back the younger one is meant.
//!
//! # Drops
//!
//! `no backend up`; `connection table full` (all connections are established ones of TCP or SCTP; nothing could be
//! rewritten on the way back, so there is no fallback without a table); `segment of no connection` (a FIN or RST that
//! no connection knows); `fragment without its first`. In a replay from files by several workers a new connection waits for all workers to
//! come as far, and nothing is dropped; where most packets are new connections one worker is many times faster.
//!
//! VLAN tags are read through, and do not tell connections apart: one client in two VLANs has one connection.
//!
//! # Example
//!
//! ```text
//! lb = LB(vip = 192.0.2.10:443, backends = [10.0.0.1:8443, {server: 10.0.0.2:8443, weight: 3}])
//! in -> lb -> [ backend == 2: Monitor() ] -> out
//! ```
//!
//! # State
//!
//! Khalid's dissertation, Table 3.12. Connection to server mapping: per flow, write/read often (the table has "write rarely",
//! and does not count that packets renew a connection). Active connections per server: cross-flow, write/read often. Bytes per
//! server: cross-flow, write mostly, read rarely.
//!
//! # See also
//!
//! NAT, Monitor.

mod active;
mod admission;
mod balancer;
mod connection;
mod family;
mod known;
mod maglev;
mod open;
mod proof;
mod room;
mod servers;
mod settings;
mod side;
mod stages;
#[cfg(test)]
mod tests;
mod vips;
mod workload;

pub use balancer::{BackendInfo, Balancer};

use catena_dataplane::Module;
use catena_dataplane::attribute::Slot;
use catena_state::{Engine, Scope};

use crate::config::{ArgError, Args};
use crate::descriptor::{Affinity, Attribute, Build, Descriptor, Method, Recipe, Returns, Rewrites};
use crate::effects::{Checksum, Effects, Fields};

use settings::Settings;

/// The balancer, to the library.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "LB",
    summary: "spreads connections over servers: least connections or consistent hashing",
    source: include_str!("mod.rs"),
    params: settings::PARAMS,
    attributes: &[Attribute {
        name: "backend",
        values: &[],
        method: Method::Metadata,
        doc: "the number of the packet's server, from 1; 0 for none",
    }],
    state: &[side::CONNECTIONS, side::BACK, side::PARTS, balancer::CONNECTIONS, balancer::BYTES, balancer::EVENTS],
    affinity: Affinity::Scope(Scope::Connection),
    // No `owner`: the client's address tells, it is the inside one both ways.
    returns,
    effects,
    rewrites: Rewrites::Destination,
    workload: Some(&workload::WORKLOAD),
    build,
    ..Descriptor::DEFAULTS
};

/// It rewrites one endpoint.
fn effects(_args: &Args) -> Effects {
    let endpoints = Fields::SOURCE | Fields::DESTINATION | Fields::PORTS | Fields::OTHERS;
    let reads = Fields::NETWORK | endpoints | Fields::PROTOCOL;
    Effects { reads, writes: endpoints | Fields::CHECKSUM, turns: false, checksum: Checksum::Kept, ..Effects::ANY }
}

fn build(args: &Args, build: &mut Build<'_>) -> Result<Box<dyn Module>, ArgError> {
    let settings = Settings { all_up: build.once(args.clone())?, ..Settings::read(args, build.share)? };
    let slot = build.attributes.slot("backend").map_err(|most| {
        ArgError::new("backends", format!("the attribute `backend` has no room beside {most} others in the pipeline"))
    })?;
    build.deploy(Balancing { settings, slot })
}

/// What makes the balancer.
struct Balancing {
    settings: Settings,
    slot: Slot,
}

impl Recipe for Balancing {
    type Function<E: Engine> = Balancer<E>;
    const IS_ORDERED: bool = true;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<Balancer<E>, ArgError> {
        Balancer::new(engine, self.settings.clone(), self.slot)
            .map_err(|error| ArgError::no_memory("max_connections", error))
    }
}

/// Packets on the way back come from the servers.
fn returns(args: &Args) -> Returns {
    let prefix = |ip: std::net::IpAddr| (ip, if ip.is_ipv4() { 32 } else { 128 });
    Returns { destinations: Vec::new(), sources: settings::servers(args).into_iter().map(prefix).collect() }
}
