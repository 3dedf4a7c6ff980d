//! Limiter lets traffic pass at a promised rate and drops what is beyond: of a class as a whole, or of every
//! sender, receiver or flow in it.
//!
//! # Parameters
//!
//! - `rate` (bits or packets a second, required): what passes in the long run, such as `64kbps` or `3Kpps`.
//! - `burst` (a size with a bit rate, a number of packets with a packet rate, or a time at that rate; default
//!   100 ms, but at least 3,044 bytes, two full frames with two VLAN tags, or 2 packets): what passes at once
//!   after a pause. A packet longer than the burst never passes.
//! - `per` (`class`, `src`, `dst` or `flow`, default `class`): what the rate is promised to: everything that
//!   comes here together, every source, every destination, or every flow (addresses, ports and protocol).
//! - `prefix4` (bits, 0 to 32, default 32) and `prefix6` (bits, 0 to 128, default 64): with `per = src` and `dst`,
//!   how much of an address tells one from another. A home has a /64 or more of IPv6 to choose addresses from.
//! - `max_keys` (1 to 16,777,216, default 1,048,576): sources, destinations or flows known at once, of IPv4 and
//!   of IPv6 each, split evenly between workers. One takes about 80 bytes of memory from when it is first seen.
//!
//! # Behaviour
//!
//! Every source, destination or flow has a token bucket (RFC 2697 §3, with bucket C alone), which fills at the
//! rate and holds the burst. A packet that finds enough in it takes its length and passes; else it takes
//! nothing. In any span of *t* seconds no more than `burst` + `rate` · *t* passes. A packet's length is that of
//! its Ethernet frame as it is here: from the destination address, tags and padding included, without
//! preamble, check sequence and gap.
//!
//! On the way back everything is turned round: `src` is the packet's destination, who was the source on the way
//! out. Each direction has buckets of its own, as a line of this rate carries it both ways at once.
//!
//! Attribute `conformance` by output gate: `conform`, the normal way, and `exceed`. Where an edge of the chain
//! leaves by `exceed`, packets over the rate go there; else they are dropped.
//!
//! Dropped and counted: `over the rate`; `longer than the burst`; `no room for another key`, when `max_keys` are
//! known and none has a full bucket (one that has been full for a second and some milliseconds is
//! forgotten, as a new one does what it does); and malformed headers. The first two leave by `exceed` instead,
//! where it is taken.
//!
//! With `per = src`, `dst` and `flow`, ARP passes unlimited. All other frames that are not IPv4 or IPv6 (IPv4 in SNAP,
//! MPLS or PPPoE, say) have nothing that tells whose they are, and share one bucket each way. Fragments count as one
//! flow a pair of hosts and protocol, as a later one has no ports; a first fragment without its whole transport header
//! is malformed.
//!
//! Time is the packets' own where they have one: a recorded trace is limited as the traffic would have been.
//!
//! # State
//!
//! `buckets` of IPv4 and of IPv6, by what `per` says, written and read often. Of several instances each knows its packets only.
//! Sources stay together, so sources and flows keep their whole rate; what several instances may see at once (a
//! class, a destination, a prefix of many sources) has an equal part of rate and burst at each, the burst never
//! less than a full frame if the whole is not, and the rate never less than 1 a second: with less than that for each, more
//! passes in all. Each has an equal part of `max_keys` too: a destination or a prefix that several
//! of them see takes a key at each. Sources stay together as they come in: one that a NAT before Limiter has made is seen by several
//! instances, and each lets it have the whole rate. Addresses of IPv6 stay together by their first 64 bits.
//!
//! VLAN tags are read through, and do not tell senders apart: one address in two VLANs has one bucket.
//!
//! # Example
//!
//! ```text
//! class voip = "udp portrange 16384-32767"
//!
//! chain calls for voip {
//!     limit = Limiter(rate = 64kbps, burst = 4KB, per = src)
//!     in -> limit
//!     limit[conform] -> out
//!     limit[exceed] -> Monitor() -> drop
//! }
//! ```
//!
//! # Limits
//!
//! Time may step back, but inputs whose clocks are more than a second apart cannot be limited together. A burst
//! is at most 1,152,921,504 bytes or 9,223,372,036 packets. Packets are not delayed: this polices, it
//! does not shape.
//!
//! # See also
//!
//! ACL, Monitor; a promise `..1Gbps` of the chain itself.

pub mod bucket;
#[cfg(test)]
mod engine_tests;
mod key;
mod limit;
mod promise;
mod take;
mod workload;

pub use bucket::{Bucket, Rate};
pub use limit::Limiter;

use catena_state::{Engine, Scope};

use self::key::Per;
use crate::config::{ArgError, Args, Kind, Param};
use crate::descriptor::{Affinity, Attribute, Descriptor, Method, Recipe};
use crate::effects::{Checksum, Effects, Fields};

/// What Limiter says about itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "Limiter",
    summary: "lets a class, or every source, destination or flow, pass at a rate",
    source: include_str!("mod.rs"),
    params: &[
        Param { name: "rate", kind: Kind::Rate, default: None, doc: "what passes in the long run" },
        Param {
            name: "burst",
            kind: Kind::OneOf(&[Kind::Size, Kind::Duration, Kind::Integer]),
            default: Some("100ms, at least two full frames"),
            doc: "what passes at once after a pause",
        },
        Param {
            name: "per",
            kind: Kind::Word(&["class", "src", "dst", "flow"]),
            default: Some("class"),
            doc: "what the rate is promised to",
        },
        Param { name: "prefix4", kind: Kind::Integer, default: Some("32"), doc: "bits that tell IPv4 addresses apart" },
        Param { name: "prefix6", kind: Kind::Integer, default: Some("64"), doc: "bits that tell IPv6 addresses apart" },
        Param {
            name: "max_keys",
            kind: Kind::Integer,
            default: Some("1048576"),
            doc: "sources, destinations or flows known at once, of each IP family",
        },
    ],
    attributes: &[Attribute {
        name: "conformance",
        values: &["conform", "exceed"],
        method: Method::Port,
        doc: "whether the packet keeps to the rate",
    }],
    state: &[limit::BUCKETS],
    declared: |args, object| Per::new(args).map_or(object, |per| object.scoped(per.scope())),
    affinity: Affinity::Scope(Scope::Source),
    effects,
    workload: Some(&workload::WORKLOAD),
    build: |args, build| build.deploy(Limited { args: args.clone(), taken: build.taken.to_vec() }),
    ..Descriptor::DEFAULTS
};

/// What makes the limiter.
struct Limited {
    args: Args,
    taken: Vec<String>,
}

impl Recipe for Limited {
    type Function<E: Engine> = Limiter<E>;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<Limiter<E>, ArgError> {
        Limiter::new(engine, &self.args, &self.taken)
    }
}

/// It looks at lengths beside keys, and changes nothing.
fn effects(_args: &Args) -> Effects {
    let reads = Fields::NETWORK | Fields::FIVE_TUPLE | Fields::OTHERS;
    Effects { reads, writes: Fields::NONE, turns: false, checksum: Checksum::Kept, ..Effects::ANY }
}
