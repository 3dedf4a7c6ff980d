//! What PortScan is measured with, for plans (`catena profile PortScan`): connections that nobody answers are not too many.

use crate::workload::{SHORT_LIVED, Setup, Size, Told, Workload};

/// How PortScan is measured. Its cost grows with the sources and their connections, of which the traffic has one a flow.
pub const WORKLOAD: Workload = Workload {
    size: Some(Size { unit: "sources", told: Told::Traffic, usual: SHORT_LIVED, measured: &[1_000, 10_000, 50_000] }),
    setup: |_| Setup::call("PortScan(detection = 99.999999%, false_alarms = 0.000001%)"),
};
