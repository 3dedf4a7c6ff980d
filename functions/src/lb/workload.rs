//! What LB is measured with: connections to virtual addresses, spread over 16 servers.

use crate::workload::{SERVERS, SHORT_LIVED, Setup, Size, Told, Workload};

const BACKENDS: u64 = 16;

/// How LB is measured. Its cost grows with the connections: those that it knows are found in a table, and only new
/// ones get a server, by a ranking that does not slow down with its length.
pub const WORKLOAD: Workload = Workload {
    size: Some(Size {
        unit: "connections",
        told: Told::Traffic,
        usual: SHORT_LIVED,
        measured: &[1_000, 5_000, 10_000, 20_000, 50_000],
    }),
    setup: |_| {
        let backends: Vec<String> = (1..=BACKENDS).map(|i| format!("10.1.0.{i}")).collect();
        let backends = backends.join(", ");
        // Connections that have ended are forgotten soon, so that the size is what there are.
        let times = "tcp_established = 1s, tcp_transitory = 1s, udp = 1s";
        Setup::call(&format!("LB(vip = {SERVERS}, backends = [{backends}], {times})"))
    },
};
