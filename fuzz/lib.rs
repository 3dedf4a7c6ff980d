//! What fuzz targets share with property tests: generators, references and properties.
//!
//! [`frames`], [`properties`] and [`reference`] are the very files of `crates/packet/tests/wire`; [`borders`],
//! [`fragments`] and [`pipeline`] need nothing of a fuzzer, so that a plain test can play seeds and findings.

pub mod borders;
pub mod fragments;
pub mod pipeline;

#[path = "../crates/packet/tests/wire/frames.rs"]
pub mod frames;
#[path = "../crates/packet/tests/wire/properties.rs"]
pub mod properties;
#[path = "../crates/packet/tests/wire/reference.rs"]
pub mod reference;
