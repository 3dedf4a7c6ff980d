//! What NAT is measured with: mappings of TCP and UDP, every flow another sender's.

use crate::workload::{SHORT_LIVED, Setup, Size, Told, Workload};

/// How NAT is measured. `max_mappings` does not tell its size: it bounds the memory, not the traffic.
pub const WORKLOAD: Workload = Workload {
    size: Some(Size {
        unit: "mappings",
        told: Told::Traffic,
        usual: SHORT_LIVED,
        measured: &[1_000, 5_000, 10_000, 20_000, 50_000],
    }),
    setup: |_| {
        // Mappings that have ended are forgotten soon, so that the size is what there are.
        Setup::call("NAT(pool = 198.18.0.0/20, tcp_timeout = 1s, tcp_transitory = 1s, udp_timeout = 1s)")
    },
};
