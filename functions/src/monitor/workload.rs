//! What Monitor is measured with: flows that it counts and exports to nowhere.

use crate::workload::{SHORT_LIVED, Setup, Size, Told, Workload};

/// How Monitor is measured. `max_flows` does not tell its size: it bounds the memory, not the traffic.
pub const WORKLOAD: Workload = Workload {
    size: Some(Size {
        unit: "flows",
        told: Told::Traffic,
        usual: SHORT_LIVED,
        measured: &[1_000, 5_000, 10_000, 20_000, 50_000],
    }),
    // Flows that have ended are forgotten soon, so that the size is what there are.
    setup: |_| Setup::call("Monitor(idle_timeout = 1s)"),
};
