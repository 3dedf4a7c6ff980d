//! What Limiter is measured with: a rate of every sender that nobody reaches.

use crate::workload::{SHORT_LIVED, Setup, Size, Told, Workload};

/// How Limiter is measured: by sender, which costs more than a rate for the class as a whole.
pub const WORKLOAD: Workload = Workload {
    size: Some(Size {
        unit: "senders",
        told: Told::Traffic,
        usual: SHORT_LIVED,
        measured: &[1_000, 5_000, 10_000, 20_000, 50_000],
    }),
    setup: |_| Setup::call("Limiter(rate = 100Gbps, per = src)"),
};
