//! Limiter: lets a class, or every key of one, pass at a promised rate and drops what is beyond.

pub mod bucket;

pub use bucket::{Bucket, Rate};
