//! E2's planning (Lan's dissertation, "A Framework for Network Function Virtualization", §3.2.2 and §3.4):
//! from pipelines to functions and instances on servers of a rack.
//!
//! | step | file |
//! | --- | --- |
//! | 1 the pipelines as one policy graph | [`graph`] |
//! | 2 size: how many instances | [`size`] |
//! | 3 split nodes into instances, with hash ranges | [`keys`], [`instances`] |
//! | 4 place: pack depth-first, then swap; one more instance without moving any | [`pack`], [`swap`], [`incremental`] |
//! | no link overbooked | [`balance`] |
//! | an instance is overloaded (§3.4.3) | [`split`] |
//! | 5 offload to the switch | [`offload`] |
//! | no promise held to one core by a neighbour | `apart` |
//! | all steps in a row, for functions of a plan | [`sites`] |
//! | steps 2 to 4 in a row, for instances of a core each | [`deploy`] |
//! | what a rack sustains (§3.6.2) | [`throughput`] |
//!
//! What joins functions and instances (§3.4.2) belongs to the plan, whoever made it.
//!
//! [`traffic`] is the graph that placement looks at, [`random`] the baseline. All is plain data; the same
//! inputs (and seed) give the same result.

mod apart;
pub mod balance;
pub mod deploy;
pub mod graph;
pub mod headroom;
pub mod incremental;
pub mod instances;
pub mod keys;
pub mod offload;
pub mod pack;
pub mod random;
pub mod sites;
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
