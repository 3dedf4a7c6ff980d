//! What values of shared objects are made of: reserved at once, bounded, and changed by operations without an allocation.

mod counts;
mod loads;
mod places;
pub mod ports;
mod table;

pub use counts::{Add, Counts, Get};
pub use loads::Loads;
pub use places::Places;
pub use table::Table;
