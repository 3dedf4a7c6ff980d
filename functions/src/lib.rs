//! The function library: one folder a function.
