//! The function library: one folder a function.

pub mod acl;
