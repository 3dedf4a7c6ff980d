//! The rows: who shares a core with the victim, and what the paper tells of the same.

use catena_isolation::scene::actor::{DATAGRAM, Protocol};
use catena_isolation::scene::turn::{Traffic, Turn, Way};

/// Datagrams a second to all receivers together: more than any quota here pays for.
const FLOOD: u32 = 150_000;
/// Containers on the core for receivers (Figures 2.4 and 2.5), and for senders (Figures 2.1 and 2.3).
const RECEIVERS: usize = 10;
const SENDERS: usize = 3;

/// A row.
pub struct Case {
    /// What the interferers do.
    pub name: &'static str,
    pub traffic: Traffic,
    /// Containers on the core, the victim among them.
    pub containers: usize,
    /// Whether a hierarchical token bucket holds the containers' devices to a rate.
    pub is_shaped: bool,
    /// How quotas are enforced.
    pub enforced: Turn,
    /// The paper's numbers, its largest over all rates, without and with, where its text has them.
    pub paper: [Option<f64>; 2],
}

const fn receivers(name: &'static str, protocol: Protocol, count: usize, paper: [Option<f64>; 2]) -> Case {
    let (rate, enforced) = match protocol {
        Protocol::Udp => (FLOOD, Turn::Threads),
        Protocol::Tcp => (4, Turn::Threads),
    };
    let traffic = Traffic { protocol, way: Way::In, size: DATAGRAM, rate, count };
    Case { name, traffic, containers: RECEIVERS, is_shaped: false, enforced, paper }
}

const fn senders(name: &'static str, protocol: Protocol, is_shaped: bool, paper: [Option<f64>; 2]) -> Case {
    let rate = match protocol {
        Protocol::Udp => 0,
        Protocol::Tcp => 4,
    };
    let traffic = Traffic { protocol, way: Way::Out, size: DATAGRAM, rate, count: SENDERS - 1 };
    Case { name, traffic, containers: SENDERS, is_shaped, enforced: Turn::Accounts, paper }
}

/// The paper's text tells the ends of ranges: "maximums of 2.45 to 4.45" for UDP receivers, "from 2.2 to 6" for TCP receivers
/// (section 2.3.1); 1.18 for UDP senders behind a token bucket, 1 without one, 1.85 for TCP senders.
pub const CASES: [Case; 10] = [
    receivers("no traffic, 10 containers", Protocol::Udp, 0, [None, None]),
    receivers("1 UDP receiver", Protocol::Udp, 1, [Some(2.45), Some(1.05)]),
    receivers("3 UDP receivers", Protocol::Udp, 3, [None, Some(1.05)]),
    receivers("9 UDP receivers", Protocol::Udp, 9, [Some(4.45), Some(1.05)]),
    receivers("1 TCP receiver", Protocol::Tcp, 1, [Some(2.2), Some(1.05)]),
    receivers("3 TCP receivers", Protocol::Tcp, 3, [None, Some(1.05)]),
    senders("2 UDP senders", Protocol::Udp, false, [Some(1.0), Some(1.01)]),
    senders("2 UDP senders, HTB", Protocol::Udp, true, [Some(1.11), Some(1.01)]),
    senders("2 TCP senders", Protocol::Tcp, false, [None, Some(1.04)]),
    senders("2 TCP senders, HTB", Protocol::Tcp, true, [Some(1.85), Some(1.04)]),
];
