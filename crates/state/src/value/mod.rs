//! What values of shared objects are made of: reserved at once, bounded, and changed by operations without an allocation.

pub mod by_key;
mod counts;
mod list;
mod loads;
mod places;
pub mod ports;
mod table;
#[cfg(test)]
mod tests;

pub use counts::{Add, Admit, Counts, Get, LeastAndAdd, Replace, Set, Take};
pub use list::{Length, List, Pop, Push};
pub use loads::{Loads, SetUp};
pub use places::Places;
pub use table::Table;
