//! E2's planning (Lan's dissertation, "A Framework for Network Function Virtualization", §3.2.2 and §3.4):
//! from pipelines to instances on servers of a rack, joined by filters and tunnels.
//!
//! | step | file |
//! | --- | --- |
//! | what is known of each function (§3.2.2) | [`describe`] |
//! | 1 merge the pipelines into one policy graph | [`merge`] |
//! | 2 size: how many instances | [`size`] |
//! | 3 split nodes into instances, with hash ranges | [`keys`], [`instances`] |
//! | 4 place: pack depth-first, then swap; one more instance without moving any | [`pack`], [`swap`], [`incremental`] |
//! | no link overbooked | [`balance`] |
//! | an instance is overloaded (§3.4.3) | [`split`] |
//! | 5 offload to the switch | [`offload`] |
//! | interconnect (§3.4.2) | [`interconnect`] |
//! | all steps in a row | [`deploy`] |
//! | what a rack sustains (§3.6.2) | [`throughput`] |
//!
//! [`traffic`] is the graph that placement looks at, [`random`] the baseline. All is plain data; the same
//! inputs (and seed) give the same result.

pub mod balance;
pub mod deploy;
pub mod describe;
pub mod headroom;
pub mod incremental;
pub mod instances;
pub mod interconnect;
pub mod keys;
pub mod merge;
pub mod offload;
pub mod pack;
pub mod random;
pub mod size;
pub mod split;
pub mod swap;
pub mod throughput;
pub mod traffic;

#[cfg(test)]
mod figures;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod sample;
