//! What values of shared objects are made of: reserved at once, bounded, and changed by operations without an allocation.

mod counts;
mod loads;
pub mod ports;
mod slots;
mod table;

pub use counts::{Add, Counts, Get};
pub use loads::Loads;
pub use slots::Slots;
pub use table::Table;
