//! What tests of several crates share: skips that are listed, network namespaces, and children that start with the
//! signals every program expects.

pub mod namespace;
mod signals;
mod skips;

pub use signals::default_signals;
pub use skips::{skip, skip_extra, skip_kernel};
