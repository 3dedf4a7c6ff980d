//! Results of benchmarks: one format for all of them, and the reports drawn from it.
//!
//! A result is a JSON line in a file; [`Record`] is its shape. [`report`] draws tables
//! and plots from such files and compares two of them.

pub mod record;
pub mod report;

pub use record::{Point, Record};
