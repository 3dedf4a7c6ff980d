//! Runs a chain file's pipeline on workers of this machine.
//!
//! A [`Chain`] is a chain file that was read; a [`Run`] gives it ports, workers and a plan; [`Running`] is what a run is once it
//! has started, and a [`Report`] what came of it:
//!
//! 1. [`trial`] lowers the chain and builds its functions once, so that what they refuse is said before a port is opened.
//! 2. [`files`] and `outputs` see to it that nothing is written over that is read, or that another run writes.
//! 3. A [`Planner`] plans the run, unless it was given a plan: this crate makes none.
//! 4. `workers` builds the pipeline for each worker and the queues between them; with a plan, `weights` follow what functions
//!    cost.
//! 5. [`report`] adds up what the workers counted.
//!
//! This crate writes nothing to a terminal: what a run has to say goes to whoever it [tells](Run::tell).

pub mod chain;
mod cores;
mod entered;
mod failure;
pub mod file;
pub mod files;
pub mod inode;
mod interface;
mod moving;
pub mod names;
pub mod notes;
mod outputs;
pub mod planned;
pub mod ports;
pub mod promised;
pub mod replace;
pub mod report;
mod run;
mod running;
pub mod stdout;
pub mod table;
pub mod tenants;
pub mod trial;
mod unplanned;
mod weights;
mod workers;

pub use chain::{Chain, LoadError};
pub use failure::Failure;
pub use names::Names;
pub use notes::Note;
pub use planned::Planned;
pub use ports::{Port, Ports};
pub use report::Report;
pub use run::{Run, fresh_seed};
pub use running::Running;
pub use unplanned::{Planner, Unplanned};
