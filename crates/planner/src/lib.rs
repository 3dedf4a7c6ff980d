//! From chain files, a rack and a profile to a plan: the one way to a plan, for the command and for programs alike.
//!
//! [`Inputs`] are what a plan is made of; a [`Case`] is the same in numbers, which any [`Strategy`] decides; every plan is judged by
//! the independent check before it is returned. [`Here`] plans a run for the machine at hand. What functions cost there is measured
//! and kept by [`quick`].
//!
//! This crate writes nothing to a terminal: what planning has to say goes to a closure, as [`Remark`]s or a run's notes.

mod case;
mod here;
mod inputs;
mod known;
pub mod quick;
mod remarks;
mod remedied;
mod strategy;

pub use case::{Case, Decision, How, Runs};
pub use here::{Here, for_traffic};
pub use inputs::{Asked, Costs, Inputs, check_paper, check_rack, findings, refused};
pub use known::Known;
pub use remarks::Remark;
pub use strategy::{Paper, Strategy};
