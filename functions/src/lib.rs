//! The function library: one folder a function.
//!
//! A folder holds all there is of its function: the descriptor (parameters, state objects, attributes,
//! constraints), the manual as the head comment of its `mod.rs`, the code, the tests. [`registry`] is the one
//! place that lists them. A stateful function implements [`Function`], in two steps, and knows nothing of
//! where its state lives; a stateless one is a module of the dataplane.

#[macro_use]
mod copied;

pub mod acl;
mod addresses;
pub mod config;
pub mod descriptor;
pub mod effects;
mod fair_map;
mod family;
pub mod function;
pub mod ipv4fwd;
pub mod lb;
pub mod limiter;
pub mod manifest;
pub mod monitor;
pub mod nat;
pub mod native;
pub mod port_scan;
pub mod registry;
mod rewrite;
pub mod rules;
mod shares;
pub mod tables;
#[cfg(test)]
pub mod testing;
pub mod workload;

pub use config::{Args, Kind, Param, Value};
pub use descriptor::{Affinity, Attribute, Build, Descriptor, Method, Recipe, Returns, Rewrites};
pub use effects::{Effects, Fields, Spared};
pub use function::{Function, Runner, Step};
pub use tables::{Prepared, Tables};
pub use workload::Workload;
