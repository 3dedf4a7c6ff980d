//! Runs a chain file's pipeline on workers of this machine.
//!
//! A [`Chain`] is a chain file that was read; [`trial`] lowers it and builds its functions once, so that what they refuse is
//! said before a port is opened; [`ports`] are what packets come from and go to. This crate writes nothing to a terminal: what
//! a run has to say goes to its [`Listener`](notes::Listener).

pub mod chain;
pub mod cores;
mod failure;
pub mod file;
pub mod files;
pub mod inode;
pub mod interface;
pub mod moving;
pub mod names;
pub mod notes;
pub mod outputs;
pub mod planned;
pub mod ports;
pub mod promised;
pub mod report;
pub mod stdout;
pub mod table;
pub mod trial;
mod weights;
pub mod workers;

pub use chain::{Chain, LoadError};
pub use failure::Failure;
pub use ports::{Port, Ports};
