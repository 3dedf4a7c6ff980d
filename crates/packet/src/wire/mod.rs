//! Header views, the layer parser, flow keys and checksums.
//!
//! Three ways to look at a packet, from the fastest to the most detailed:
//!
//! 1. [`parse`] runs once per packet when it enters and returns [`Layers`]: eight bytes that say where each
//!    header stands. It decides what is malformed, and so what is dropped and counted.
//! 2. [`FlowKeyV4`], [`FlowKeyV6`] and [`FlowKey`] read the 5-tuple through those offsets; [`Seed`] hashes it.
//! 3. One file a protocol holds a *view*: a `Packet<T>` over bytes, checked once by `new_checked`, whose
//!    accessors then never panic. All files have the same shape: who has read one has read all.
//!
//! Nothing here allocates, and nothing here is `unsafe`.
#![forbid(unsafe_code)]

pub mod arp;
mod bytes;
pub mod checksum;
pub mod ethernet;
mod flow;
pub mod gre;
mod hash;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6ext;
mod layers;
mod malformed;
pub mod nsh;
pub mod number;
pub mod sctp;
mod source_route;
pub mod tcp;
pub mod udp;
pub mod vlan;
pub mod vxlan;

pub use flow::{FlowKey, FlowKeyV4, FlowKeyV6, destination_address, icmp_identifier, ports, source_address};
pub use hash::Seed;
pub use layers::{Layers, MAX_VLAN_TAGS, Net, parse, parse_ip};
pub use malformed::Malformed;
pub use source_route::is_source_routed;
