//! ACL
mod cache;
pub mod classifier;
pub mod key;
pub mod matcher;
pub mod rule;
pub mod synthetic;
