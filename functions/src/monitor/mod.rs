//! Monitor: counts packets and bytes of every flow, follows TCP, exports records (IPv4 and IPv6).
//!
//! ```text
//! Monitor(export = "flows.json", format = json, idle_timeout = 60s, max_flows = 1000000)
//! ```
//!
//! A flow is all packets of a five-tuple, both ways. Packets pass unchanged, each by the gate it came in by (1 for
//! the way back).
//!
//! # Parameters
//!
//! - `export`: a file for the records, or `"-"` for stdout; without it, flows are only counted. Of several
//!   instances the first writes this file, others the same with `.1`, `.2` and so on behind; on stdout their records are
//!   mixed, each of them whole. The file is emptied when a run starts: checking or planning a chain leaves it as it is.
//! - `format`: `json` (default), a line per record, or `ipfix`, messages of RFC 7011 in a file (RFC 5655).
//! - `idle_timeout` (60s): a flow without a packet for this long has ended.
//! - `active_timeout` (1800s): a flow that lasts longer gives a record and counts on from 0 (its TCP flags
//!   and state stay).
//! - `max_flows` (1000000): most flows at a time of each IP version, split evenly between workers. A flow takes some 80 bytes
//!   (IPv6: 140), and only once it is there. When all places are taken, a flow that was not used of late makes room.
//!
//! # Records
//!
//! A record in JSON has these keys, those of Zeek's `conn.log` where it has them:
//!
//! - `ts`, `duration`: time of the first packet in s since 1970, and from there to the last.
//! - `id.orig_h`, `id.orig_p`, `id.resp_h`, `id.resp_p`: who began, and who answered. Who sent the first packet began,
//!   unless that was a SYN with ACK.
//! - `proto`, `ip_proto`: by name and by number.
//! - `conn_state`: of TCP S0 (SYN without answer), S1 (established), SF (closed), S2, S3 (closed by one side), REJ,
//!   RSTO, RSTR, RSTOS0, RSTRH (reset), SH, SHR, OTH (the beginning was not seen); of others SF when answered, else S0.
//! - `orig_pkts`, `orig_ip_bytes`, `resp_pkts`, `resp_ip_bytes`: packets, and bytes from the IP header on.
//! - `orig_tcp_flags`, `resp_tcp_flags`: all flags seen, of SFRPAUEC.
//! - `tcp_rtt`: time in s from SYN to the ACK that ends the handshake: both sides' round trip together.
//! - `end`: why there is a record: `idle`, `active`, `closed` (FIN both ways or RST, a second ago), `forced` (the
//!   run ended), `evicted` (the table was full).
//!
//! IPFIX has the same, with the standard information elements; the way back as their reverse (RFC 5103).
//!
//! # Behaviour
//!
//! - Counts are exact: all records' packets together are the IP packets that came in, unless records were lost.
//! - Fragments and protocols without ports count under ports 0: fragments of TCP and UDP, the first included, are
//!   a flow beside that of whole packets. What is not IP is counted in a figure of its own.
//! - Time comes from packets. Packets out of order in time belong to their flow; its times are the first and the
//!   latest seen, never less than the first packet's.
//! - Records leave through a queue of 16,384 to a thread that writes. When the file is too slow for live traffic,
//!   flows stay in the table longer; only evicted ones, and those about to wrap a counter, are then lost, which is
//!   counted (`records lost`). Replayed captures and generated traffic wait for the file and lose nothing. At the end
//!   everything is written. Records that a full disk did not take are `records lost` too, and the run ends with exit
//!   code 1. A counter wraps at 4 GiB each way: before, the flow gives a record (`active`).
//! - Equal packets and an equal `--seed` give equal files, byte for byte, with one worker. An IPFIX message holds at most
//!   a second of the packets' time; its export time is the latest time in the records up to its end.
//!
//! VLAN tags are read through, and do not tell flows apart: one connection in two VLANs is one flow.
//!
//! # Example
//!
//! ```text
//! mon = Monitor(export = "-")
//! in -> mon -> out          # catena run … | jq 'select(.conn_state == "REJ")'
//! ```
//!
//! # Limits
//!
//! Workers share packets out by the source of what comes in, and by the destination of what comes back. So with several workers
//! both ways of a flow belong on two sides (`in <-> mon <-> out`): where one side brings both, each way may be at another worker,
//! as a flow of its own.
//!
//! # State
//!
//! A flow's counters, per flow, write/read often. They end with the flow; nothing is shared. A record leaves once the packet that
//! ended the flow is through, and it leaves once.
//!
//! # See also
//!
//! Limiter, LB.

#[cfg(test)]
mod chain_tests;
mod counting;
#[cfg(test)]
mod engine_tests;
mod export;
mod flow;
mod ipfix;
mod json;
mod key;
#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod tests;
mod workload;

pub use counting::Monitor;

use std::os::unix::fs::FileTypeExt;

use catena_dataplane::Module;
use catena_state::{Engine, Scope, Share};

use crate::config::{ArgError, Args, Kind, Param};
use crate::descriptor::{Affinity, Build, Descriptor, Recipe};
use crate::effects::{Checksum, Effects, Fields};

use export::{Export, Format};
use flow::Limits;

const SECOND: u64 = 1_000_000_000;

const PARAMS: &[Param] = &[
    Param {
        name: "export",
        kind: Kind::Text,
        default: Some("no export"),
        doc: "file for the flow records; \"-\" is stdout",
    },
    Param { name: "format", kind: Kind::Word(&["json", "ipfix"]), default: Some("json"), doc: "format of the records" },
    Param {
        name: "idle_timeout",
        kind: Kind::Duration,
        default: Some("60s"),
        doc: "time without a packet after which a flow has ended",
    },
    Param {
        name: "active_timeout",
        kind: Kind::Duration,
        default: Some("1800s"),
        doc: "time after which a flow that goes on gives a record",
    },
    Param {
        name: "max_flows",
        kind: Kind::Integer,
        default: Some("1000000"),
        doc: "most flows at a time of each IP version; then those not used of late make room",
    },
];

/// The monitor, to the library.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "Monitor",
    summary: "counts packets and bytes per flow, follows TCP, exports JSON or IPFIX records",
    source: include_str!("mod.rs"),
    params: PARAMS,
    state: &[counting::FLOWS, counting::SUMS, counting::RECORDS],
    affinity: Affinity::Scope(Scope::Connection),
    effects,
    workload: Some(&workload::WORKLOAD),
    build,
    ..Descriptor::DEFAULTS
};

/// It looks at flags and lengths beside keys, and changes nothing.
fn effects(_args: &Args) -> Effects {
    let reads = Fields::NETWORK | Fields::FIVE_TUPLE | Fields::OTHERS;
    Effects { reads, writes: Fields::NONE, turns: false, checksum: Checksum::Kept, ..Effects::ANY }
}

fn build(args: &Args, build: &mut Build<'_>) -> Result<Box<dyn Module>, ArgError> {
    let limits = Limits {
        idle: args.duration("idle_timeout", 60 * SECOND),
        active: args.duration("active_timeout", 1800 * SECOND),
    };
    let max_flows = args.total("max_flows", 1_000_000, 1..=1_000_000_000, build.share)?;
    if args.get("export").is_some() && args.text("export", "").is_empty() {
        return Err(ArgError::new("export", "an empty name; leave `export` out to count flows only"));
    }
    build.deploy(Counting { limits, max_flows, file: file(args, build.share) })
}

/// What makes the monitor.
struct Counting {
    limits: Limits,
    /// Of all instances together.
    max_flows: u64,
    /// Where records go.
    file: Option<(String, Format)>,
}

impl Recipe for Counting {
    type Function<E: Engine> = Monitor<E>;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<Monitor<E>, ArgError> {
        Monitor::new(engine, self.limits, self.max_flows, Export::to(self.file.clone()))
            .map_err(|error| ArgError::no_memory("max_flows", error))
    }
}

fn is_device(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|there| there.file_type().is_char_device())
}

/// Return the file for records, and how they are written to it.
fn file(args: &Args, share: Share) -> Option<(String, Format)> {
    let path = match args.text("export", "") {
        "" => return None,
        "-" | "/dev/stdout" => "-".to_owned(),
        // A device, such as `/dev/null`, is there for all; beside it would be a file in `/dev`.
        path if share.index == 0 || is_device(path) => path.to_owned(),
        path => format!("{path}.{}", share.index),
    };
    let format = match args.text("format", "json") {
        "ipfix" => Format::Ipfix { domain: share.index },
        _ => Format::Json,
    };
    Some((path, format))
}
