//! NAT: many inside addresses behind few external ones (carrier-grade NAPT, RFC 4787, 5382, 5508, 6888).
//!
//! Packets that come in by gate 0 are from inside: their source address and port become an external one, and
//! they leave by gate 0. Packets that come in by gate 1 are from outside: their destination becomes the inside
//! endpoint it stands for, and they leave by gate 1.
//!
//! # Parameters
//!
//! - `pool`: the external addresses: a prefix, an address, a range of addresses, or a list of these, IPv4, IPv6
//!   or both. Required. A family without an address in the pool passes untouched. All addresses of an IPv4
//!   prefix are used (/16 at most); of an IPv6 prefix the first 256 after the routers' anycast address. Loopback,
//!   link-local, multicast and reserved addresses are refused: no router forwards a packet from or to them.
//! - `ports`: first and last external port. Default 1024-65535.
//! - `block`: ports in a block, 1 to 1024; 0 counts as 1. Default 64. A host gets its ports in blocks of
//!   neighbouring ports, all on one external address, so that a log needs a line a block (RFC 6888 §4). What is
//!   left of `ports` after whole blocks is not used.
//! - `max_mappings`: most mappings at a time, of each family, split evenly between workers. Default: as many as there are
//!   ports, up to 4194304.
//! - `max_per_host`: most ports a host may use at a time (RFC 6888 REQ-4); 0, the default, for any number.
//! - `filtering`: which packets from outside a mapping lets in (RFC 4787 REQ-8): `independent` (the default), all;
//!   `address`, those of addresses that the inside endpoint has sent to; `address_port`, those of endpoints that
//!   it has sent to.
//! - `udp_timeout`, `icmp_timeout`: how long a mapping of UDP or of ICMP queries, and a session of it, lives after
//!   the last packet from inside. Default 300s and 60s.
//! - `tcp_timeout`, `tcp_transitory`: the same for established TCP, and for TCP that opens or closes. Default 7440s
//!   and 240s (RFC 5382 REQ-5). It is established when the outside has answered and the inside has acknowledged
//!   that; it closes with a FIN or a RST from inside.
//!
//! # Behaviour
//!
//! A *host* is an inside address of IPv4, or all inside addresses of an IPv6 /64, in one VLAN, since one machine can use any number
//! of these. A /64 that has used up its external address goes on with another; an IPv4 host stays on its own.
//!
//! Tags of VLANs stay as they are, and addresses of different VLANs are those of different hosts: the same inside endpoint
//! in two VLANs has two mappings, and shares nothing. An answer passes in the VLAN of its mapping only, so whatever is
//! outside must send it back in the VLAN that it came from; so does a hairpin. A VLAN is one customer tag, one service tag
//! (802.1ad) or both, by their identifiers; a tag with identifier 0 is none.
//!
//! Mappings are endpoint-independent: as long as it lives, an inside endpoint appears as the same external
//! endpoint to everyone (RFC 4787 REQ-1). One external port serves one mapping, whatever its protocol. Packets
//! from inside keep a mapping alive, packets from outside do not (RFC 4787 REQ-6).
//!
//! TCP, UDP and queries of ICMP (by their identifier) are translated, and so are ICMP errors in both
//! directions, with the packet they are about (RFC 5508). All checksums are updated, never recomputed: a wrong
//! one stays wrong. A packet from inside to an external endpoint of NAT's own is translated both ways and
//! leaves by gate 1 (hairpinning, RFC 4787 REQ-9). Later fragments follow their first for 30 s.
//!
//! What goes out in fragments gets a new identification, the same for all fragments of a datagram, and so does each IPv4
//! packet that routers may fragment (without the flag DF): hosts that share an external address choose theirs without
//! knowing of each other, and the receiver would mix their datagrams (RFC 6864 §5.3.1). There are 4,096 counters, and a
//! secret hash of external address, destination and protocol chooses one: an identification comes again after 65,536
//! packets of all that share a counter; with n instances, after 65,536 / n, n rounded up to a power of two. What comes in keeps its identification, as it keeps its source.
//!
//! What is not IP, ARP above all, passes. So does, untranslated in both directions, what is sent to the link itself:
//! neighbour discovery, DHCP, routers' hellos, multicast DNS. Destinations of the link are 169.254.0.0/16,
//! 224.0.0.0/24 and 255.255.255.255, fe80::/10, and groups up to the scope of a link (ff02::/16, ff01::/16). Everything
//! else is dropped and counted: `protocol cannot be translated` (GRE, ESP, SCTP, and what an authentication header
//! covers), `source or destination that must not leave its link`, `no mapping` (unsolicited packets from outside),
//! `no port left`, `host has as many ports as it may`, `as many mappings as there may be`, `filtered: nothing was
//! sent there`, `host has as many sessions as it may`, `fragment without its first`, `VLAN that is not that of the
//! mapping`, `more than two VLAN tags`.
//!
//! What must not leave its link is: a source of 169.254.0.0/16, 0.0.0.0/8, fe80::/10 or :: with a destination beyond
//! the link (RFC 3927 §2.7, RFC 4291 §2.5.2 and §2.5.6); a source of 127.0.0.0/8, 224.0.0.0/3, ::1 or ff00::/8; a
//! destination of 127.0.0.0/8, 0.0.0.0/8, ::1 or ::.
//!
//! # Under attack
//!
//! Every table has a bound. With `max_per_host`, no single host takes one from the others.
//!
//! - Ports: `max_per_host` for each host. Each block belongs to one host, so as many hosts as there are blocks take the
//!   whole pool with a packet each: with the defaults 1,008 for an external address, such as an IPv4 /22 or an IPv6
//!   /54, whose source addresses may be false. Against that, let an `ACL` before NAT permit the sources that exist,
//!   with as few addresses or subnets each as they need; take a smaller `block` (1: as many hosts as ports) or a
//!   larger `pool`.
//! - Sessions, which `filtering` other than `independent` keeps of every remote address or endpoint that was sent to:
//!   four for each mapping that there may be; a host has at most 1/32 of them, or 64, and less when little is free. A
//!   packet that would need another is dropped, since its answer would be. A session ends with its connection, like a
//!   mapping, and lets nothing in without its mapping.
//! - Datagrams whose first fragment was seen: 8192, shared likewise; later fragments of the others are dropped.
//! - Before a packet is refused, what is over by then is looked for and taken back. That goes for established TCP too, of
//!   which the outside sent a FIN or a RST and the inside nothing for `tcp_transitory` (RFC 7857 §2.2): a host's
//!   own, or everybody's where all are short. Without such want, no packet from outside shortens a life, as anybody can
//!   forge it. A flood of packets to refuse costs less than twice, for each, what a translation does.
//!
//! With several instances, instance i of n uses the blocks whose number modulo n is i, of every address: a
//! packet from outside to port p belongs to instance ((p - first port) / block) mod n. An address needs a block for each
//! instance. Each has an equal part of `max_mappings`, and four sessions for each mapping of it; datagrams whose first fragment was
//! seen are 8192 at each. A packet from inside to an external endpoint of another worker's instance gets its new source, and
//! goes there as one from outside; where captures are replayed, hairpins are within an instance, and others are dropped (`no mapping`). Later fragments from outside go to the instance of their first. A host, an IPv4 address or an IPv6 /64, is at one
//! instance, with all of `max_per_host`. Where slots go from one worker to another (`--rebalance`), a host's blocks go with it and are
//! the other instance's from then on; packets from outside follow them.
//!
//! # Example
//!
//! ```text
//! in <-> Monitor() <-> NAT(pool = 198.51.100.0/24, block = 256, max_per_host = 2048) <-> out
//! ```
//!
//! # Limits
//!
//! A TCP mapping with several connections has one state: the end of one shortens the timeout of all to
//! `tcp_transitory`. Fragments that come before their first are dropped (RFC 4787 REQ-14 asks for any order; holding
//! them back would be one more table to fill), and later fragments of hairpins too. Time
//! to live is not decremented: NAT is no hop. An ICMP error from outside quotes the identification that NAT gave, not that
//! of the inside host. An unused mapping's port is free again some milliseconds after its timeout, where no more than a million
//! end a second. Ports of a block are given in turn, so they can be guessed. Payloads that name addresses (FTP, SIP) are not looked
//! into.
//!
//! # See also
//!
//! `ACL`, `LB`, `Monitor`

mod both;
mod coming;
pub mod family;
mod fragments;
mod hairpin;
mod icmp;
mod identifications;
pub mod inward;
mod mapping;
mod options;
mod outward;
mod owner;
mod plan;
mod reasons;
mod rewrite;
mod sessions;
mod space;
mod translate;
mod v4;
mod v6;
mod workload;

pub use both::Both;
pub use translate::Napt;

use catena_dataplane::Module;
use catena_state::{Engine, Scope};

use crate::config::{ArgError, Args, Kind, Param};
use crate::descriptor::{Affinity, Build, Descriptor, Recipe, Rewrites};
use crate::effects::{Checksum, Effects, Fields};
use crate::family::{V4, V6};
use family::Translate;
use options::{Options, Spaces};
use space::Space;

const fn param(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Param {
    Param { name, kind, default: Some(default), doc }
}

/// NAT for the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "NAT",
    summary: "many inside addresses behind few external ones",
    source: include_str!("mod.rs"),
    params: &[
        Param {
            name: "pool",
            kind: Kind::List(&Kind::OneOf(&[Kind::Prefix, Kind::Address, Kind::AddressRange])),
            default: None,
            doc: "external addresses",
        },
        param("ports", Kind::Range, "1024-65535", "first and last external port"),
        param("block", Kind::Integer, "64", "ports that a host gets at once"),
        param("max_mappings", Kind::Integer, "as many as ports", "most mappings at a time"),
        param("max_per_host", Kind::Integer, "0 (any number)", "most ports of a host, an IPv4 address or IPv6 /64"),
        param(
            "filtering",
            Kind::Word(&["independent", "address", "address_port"]),
            "independent",
            "who may send to a mapping from outside",
        ),
        param("udp_timeout", Kind::Duration, "300s", "life of an unused UDP mapping"),
        param("tcp_timeout", Kind::Duration, "7440s", "life of an unused TCP mapping, once established"),
        param("tcp_transitory", Kind::Duration, "240s", "life of an unused TCP mapping that opens or closes"),
        param("icmp_timeout", Kind::Duration, "60s", "life of an unused mapping of ICMP queries"),
    ],
    // Khalid's dissertation, Table 3.12, and what blocks, hairpins and fragments add to it.
    state: &[
        mapping::PORTS,
        mapping::MAPPINGS,
        mapping::EXTERNAL,
        sessions::SESSIONS,
        sessions::SESSION_SHARES,
        fragments::FRAGMENTS,
        fragments::FRAGMENT_SHARES,
        identifications::IDENTIFICATIONS,
        translate::PACKETS,
    ],
    affinity: Affinity::Scope(Scope::Source),
    returns: owner::returns,
    owner: Some(owner::owner),
    effects,
    rewrites: Rewrites::Source,
    workload: Some(&workload::WORKLOAD),
    build,
    ..Descriptor::DEFAULTS
};

/// It rewrites endpoints, and sends hairpins back.
fn effects(_args: &Args) -> Effects {
    let endpoints = Fields::SOURCE | Fields::DESTINATION | Fields::PORTS | Fields::OTHERS;
    let reads = Fields::NETWORK | endpoints | Fields::PROTOCOL;
    Effects { reads, writes: endpoints | Fields::CHECKSUM, checksum: Checksum::Kept, ..Effects::ANY }
}

/// Build an instance for a host.
fn build(args: &Args, build: &mut Build<'_>) -> Result<Box<dyn Module>, ArgError> {
    let (options, spaces) = (Options::read(args, build.share)?, Spaces::read(args, build.share)?);
    match spaces {
        Spaces { v4: Some(v4), v6: Some(v6) } => {
            build.deploy(OfBoth { v4: OfOne { space: v4, options }, v6: OfOne { space: v6, options } })
        }
        Spaces { v4: Some(space), v6: None } => build.deploy(OfOne { space, options }),
        Spaces { v4: None, v6: Some(space) } => build.deploy(OfOne { space, options }),
        Spaces { v4: None, v6: None } => Err(ArgError::new("pool", "has no address")),
    }
}

/// What makes a NAT of one family.
struct OfOne<F: Translate> {
    space: Space<F>,
    options: Options,
}

impl<F: Translate> Recipe for OfOne<F> {
    type Function<E: Engine> = Napt<E, F>;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<Napt<E, F>, ArgError> {
        Napt::new(engine, self.space.clone(), &self.options).map_err(|error| {
            let of_blocks = matches!(error.object, "hosts" | "blocks" | "claims");
            ArgError::no_memory(if of_blocks { "pool" } else { "max_mappings" }, error)
        })
    }
}

/// What makes a NAT of both families.
struct OfBoth {
    v4: OfOne<V4>,
    v6: OfOne<V6>,
}

impl Recipe for OfBoth {
    type Function<E: Engine> = Both<E>;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<Both<E>, ArgError> {
        Ok(Both { v4: self.v4.make(engine)?, v6: self.v6.make(engine)? })
    }
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod full_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod identification_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vlan_tests;
