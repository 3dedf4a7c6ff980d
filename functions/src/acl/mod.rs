//! ACL
pub mod classifier;
pub mod key;
pub mod rule;
pub mod synthetic;
