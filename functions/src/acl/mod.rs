//! ACL: permits or denies packets by addresses, ports and protocol; the first rule that matches decides.
//!
//! Permitted packets leave by the gate of their direction, denied ones are dropped and counted. It keeps no state:
//! each packet is judged by itself, on the way out and on the way back by the same rules.
//!
//! # Parameters
//!
//! - `rules`: where the rules stand. Required. A file, in the notation below or as `iptables-save` and
//!   `ip6tables-save` print it (recognised by its first line, `*filter` after comments); a rule in quotes; a
//!   record; or a list of any of these, which are read in this order as one list of rules.
//! - `default`: what becomes of packets that no rule matches: `deny` (the default, as firewalls do) or `permit`. A
//!   file of iptables brings the policy of its chain as its last rule, so that `default` is only for the other
//!   family of addresses.
//! - `chain`: the built-in chain of iptables that packets enter: "FORWARD" (the default), "INPUT" or "OUTPUT".
//! - `leave_out`: matches of iptables that cannot be said here and whose rules are to be left out instead of being an
//!   error, such as `["conntrack", "in-interface"]`. Default: none.
//!
//! - `unparsed`: what becomes of frames that are not IPv4, IPv6 or ARP: `pass` or `drop`. Default: what the rules say of
//!   every packet, see below.
//!
//! - `source_routes`: what becomes of packets with a source route, see below: `drop` (the default), or `pass`: the rules
//!   judge them by their destination address, as all others.
//!
//! Exported attribute `verdict`: `permit` or `deny`. With an edge for `acl[deny]`, denied packets take it instead of
//! being dropped.
//!
//! # Rules
//!
//! One rule a line, in words:
//!
//! ```text
//! # the edge: comments begin with a hash and end with the line
//! permit tcp from 10.0.0.0/8 to any port 80-443
//! deny   udp from any port 53 to 2001:db8::/32
//! permit udp to 192.0.2.1 port 123,5060,16384-32767
//! permit icmp
//! deny any
//! ```
//!
//! `ACTION [PROTOCOL] [from ADDRESS [port PORTS]] [to ADDRESS [port PORTS]]`, where at least one
//! word follows the action:
//!
//! - ACTION: `permit` or `deny`.
//! - PROTOCOL: `any`, a name (`tcp`, `udp`, `icmp`, `icmpv6`, `sctp`, `gre`, `esp`, `ah`, `ospf`, …),
//!   a number of 0 to 255, or a range of numbers such as `50-51`.
//! - ADDRESS: `any`, an address, or a network such as `10.0.0.0/8` or `2001:db8::/32`.
//! - PORTS: a port, a range such as `80-443`, or several of these with commas.
//!
//! What is not said matches everything. A rule without addresses applies to IPv4 and IPv6, one with
//! an address to packets of its family only. `port 0-65535` asks for just that a packet has ports. Mistakes are
//! reported with file, line, column, what was expected and the likely word.
//!
//! As a record, in Lemur's spelling, a rule is `{'dst_ip': '10.0.0.0/8', 'drop': False}`, with any of `src_ip`,
//! `dst_ip`, `src_port`, `dst_port`, `ip_proto` and `drop` (without it the rule permits). As in Lemur, packets that
//! no record matches are dropped, unless `default = permit`.
//!
//! # Rules of iptables
//!
//! Read are the chain `FORWARD` of the `filter` table (or the one of `chain`) and the chains it leads to, with
//! `RETURN`, gotos, `!`, `multiport`, `iprange` and the chain's policy; `REJECT` denies without an answer. The rules
//! hold for one family: for both, give both files, `rules = [file("v4.rules"), file("v6.rules")]`. Rules that look
//! at connections, interfaces, rates or flags cannot be said in a list of rules; unless they only log or mark, they
//! are an error that names line and match, or are left out if `leave_out` has the name of the match (`conntrack`,
//! `in-interface`, `tcp-flags`, …). See [`iptables`].
//!
//! # Behaviour
//!
//! Rules see addresses and ports as the packet carries them when it comes, below any VLAN tags and behind IPv6
//! extension headers; in a tunnel, those of the outer packet. A rule that asks for a port never matches a packet that
//! carries none: an ICMP message, a later fragment. So a later fragment is judged by rules without ports alone; to stop
//! a datagram, deny its first fragment: the others are of no use then.
//!
//! Fragments cannot get a datagram past the rules that deny it whole, however the receiver reassembles them. Dropped
//! by name, whatever the rules say, are a first fragment without its whole transport header (RFC 1858 §3.2.1, RFC 7112
//! §5), one whose headers take more than 128 bytes, and a later fragment that could overwrite a header (RFC 1858
//! §3.2.2, RFC 3128): one of TCP before byte 20, of SCTP or DCCP before byte 12, of IPv6 or of an authentication header
//! before byte 128. An atomic fragment (RFC 6946) is a whole packet.
//!
//! ARP always passes: without it no neighbour is reached. Any other frame that is not IPv4 or IPv6 has nothing that
//! rules could look at: IPv4 inside 802.3 SNAP, MPLS or PPPoE, and LLDP, spanning tree or EAPOL too. Of the rules only
//! those match it that match every packet (`permit any`, `deny any`); the first of them decides, or else `default`. With
//! `unparsed = pass` or `drop` that is said outright. Such frames are counted as `not IPv4, IPv6 or ARP`.
//!
//! A packet with a source route goes on from its destination address to nodes that no rule looks at. It is dropped and
//! counted as `source route`, whatever the rules say, unless `source_routes = pass`: IPv4 options with a loose or strict
//! source route (RFC 7126 §4.3, §4.4) or that cannot be read; IPv6 with a routing header that has segments left, of type 0
//! (RFC 5095), 4 (segment routing: RFC 8754 §5.1 lets none in from outside) or any other but type 2 of Mobile IPv6, whose
//! one segment is the same node (RFC 6275 §6.4). Inside a domain of segment routing or RPL, say `pass`.
//!
//! Malformed headers are dropped and counted by what is wrong with them. Denied packets are counted as `denied by a
//! rule` and `denied by default`.
//!
//! The table shows, as gauges, the `rules`, the `rules left out`, and the `packets searched for`: those whose flow was
//! not among the remembered ones.
//!
//! Rules are compiled into search trees ([`classifier`]), and each worker remembers the rulings of recent flows
//! ([`matcher`]), 49,152 of IPv4 and 32,768 of IPv6. Cycles per packet of the look-up alone on a virtual AMD EPYC
//! (Zen 4, 2.6 GHz), over lists after ClassBench's three families (`cargo bench --bench acl`):
//!
//! | rules | IPv4 new flow | IPv4 known flow | IPv6 new flow | IPv6 known flow |
//! | ---: | ---: | ---: | ---: | ---: |
//! | 100 | 35–46 | 11–12 | 59–78 | 14–15 |
//! | 1,000 | 51–62 | 11–12 | 78–104 | 14–15 |
//! | 10,000 | 76–123 | 11–12 | 152–195 | 14–15 |
//! | 100,000 | 190–226 | 11–12 | 287–410 | 14–15 |
//!
//! Where flows are not known (a scan, or more flows than are remembered), a worker stops remembering and tries again
//! after a while: that costs a few cycles a packet.
//!
//! # Example
//!
//! ```text
//! acl = ACL(rules = ["permit tcp to 192.0.2.0/24 port 80,443", "permit icmp"])
//!
//! in -> acl
//! acl[deny] -> Monitor() -> drop
//! acl -> out
//! ```
//!
//! # Limits
//!
//! At most 4,194,304 rules, of one line with lists of ports at most 32,768. While rules are compiled they take up to 1,500
//! bytes each; then under 192 bytes a rule for IPv4 and 384 for IPv6, plus 256 KiB each, which all workers share, and
//! 3 MiB per worker for remembered flows. Compiling 100,000 rules takes one to four seconds, once a run. There are no rules
//! about interfaces, flags, ICMP types, VLANs, MAC addresses or connections, and no counters per rule.
//!
//! # See also
//!
//! `Limiter`, `NAT`, `Monitor`

mod cache;
pub mod classifier;
mod compiled;
pub mod error;
pub mod filter;
pub mod flow;
pub mod iptables;
pub mod list;
pub mod matcher;
mod options;
pub mod parse;
mod record;
pub mod synthetic;
mod workload;

pub use crate::rules::{key, protocol, rule};
pub use filter::Filter;
pub use list::List;

use catena_dataplane::Module;

use crate::config::{ArgError, Args, Kind, Param};
use crate::descriptor::{Affinity, Attribute, Build, Descriptor, Method};
use crate::effects::{Checksum, Effects, Fields, Spared};
use crate::rules::Verdicts;
use compiled::{Compiled, Source};
use options::Options;

/// ACL for the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "ACL",
    summary: "permits or denies packets by addresses, ports and protocol",
    source: include_str!("mod.rs"),
    params: &[
        Param {
            name: "rules",
            kind: Kind::List(&Kind::OneOf(&[Kind::File, Kind::Text, Kind::Record])),
            default: None,
            doc: "the rules, of which the first that matches decides",
        },
        Param {
            name: "default",
            kind: Kind::Word(&["permit", "deny"]),
            default: Some("deny"),
            doc: "what becomes of packets that no rule matches",
        },
        Param {
            name: "chain",
            kind: Kind::Text,
            default: Some("FORWARD"),
            doc: "chain of iptables that packets enter",
        },
        Param {
            name: "leave_out",
            kind: Kind::List(&Kind::Text),
            default: Some("none"),
            doc: "matches of iptables whose rules are left out",
        },
        Param {
            name: "unparsed",
            kind: Kind::Word(&["pass", "drop"]),
            default: Some("what the rules say of every packet"),
            doc: "what becomes of frames that are not IPv4, IPv6 or ARP",
        },
        Param {
            name: "source_routes",
            kind: Kind::Word(&["drop", "pass"]),
            default: Some("drop"),
            doc: "what becomes of packets with a source route; `pass`: the rules judge them",
        },
    ],
    attributes: &[Attribute {
        name: "verdict",
        values: &["permit", "deny"],
        method: Method::Port,
        doc: "what the rules say; denied packets are dropped unless an edge takes them",
    }],
    // What is remembered of flows follows from the rules alone.
    affinity: Affinity::None,
    effects,
    workload: Some(&workload::WORKLOAD),
    build,
    spared: Some(spared),
    ..Descriptor::DEFAULTS
};

/// The rules are all there is, and source routes.
fn effects(args: &Args) -> Effects {
    let drops_routes = options::source_routes(args) == rule::Action::Deny;
    Effects {
        reads: Fields::NETWORK | Fields::FIVE_TUPLE | if drops_routes { Fields::OTHERS } else { Fields::NONE },
        writes: Fields::NONE,
        overwrites: Fields::NONE,
        observes: false,
        turns: false,
        checksum: Checksum::Kept,
        verdicts: Some(|args| {
            let Options { rules, default, unparsed, source_routes, .. } = Options::read(args)?;
            Ok(Verdicts { rules, default, unparsed, source_routes })
        }),
    }
}

/// Build an instance for a host.
fn build(args: &Args, build: &mut Build<'_>) -> Result<Box<dyn Module>, ArgError> {
    spared(args, &Spared::default(), build)
}

/// Build an instance that leaves out what it is spared.
fn spared(args: &Args, spared: &Spared, build: &mut Build<'_>) -> Result<Box<dyn Module>, ArgError> {
    let diverts = diverts(build);
    let source = Source { args: args.clone(), spared: spared.clone(), diverts };
    let compiled = build.once::<Compiled>(source)?;
    Ok(Box::new(Filter::sparing(&compiled, spared, build, diverts)?))
}

/// Whether denied packets leave by a gate of their own.
fn diverts(build: &Build<'_>) -> bool {
    build.taken.iter().any(|value| value == "deny")
}

#[cfg(test)]
pub(crate) mod tests;
