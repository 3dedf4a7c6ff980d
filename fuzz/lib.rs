//! What fuzz targets share with property tests: the generator of frames, the reference parser and the properties. They
//! are the very files of `crates/packet/tests/wire`, so that one text serves both.

#[path = "../crates/packet/tests/wire/frames.rs"]
pub mod frames;
#[path = "../crates/packet/tests/wire/properties.rs"]
pub mod properties;
#[path = "../crates/packet/tests/wire/reference.rs"]
pub mod reference;
