//! Lowers a policy graph and its plan to what each kind of device needs.
//!
//! [`backend`] is where a plan's devices get what they need, each from the back end of its kind; that of servers is here.
//! [`library`] tells the chain language what functions there are; [`host`] lowers a checked policy graph to
//! the modules and links of a host pipeline, as plain data that can be printed and drawn; [`tasks`] says where
//! queues divide it; [`reduce`](mod@reduce) takes redundant logic out of it; [`build`] makes the pipeline itself.
//! [`catalogue`] tells planners what the functions allow.

pub mod backend;
pub mod build;
pub mod catalogue;
pub mod filter;
pub mod host;
pub mod library;
pub mod names;
mod print;
pub mod reduce;
pub mod tasks;

pub use build::{BuildError, Built, Queued, Side, build, try_modules};
pub use host::{Host, Lowered, lower};
pub use reduce::{Counts, Findings, reduce};
