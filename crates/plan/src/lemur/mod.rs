//! Lemur: placement of chains over switch, servers and SmartNICs.

pub mod brute;
pub mod exact;
