//! The layer parser against the reference parser: the bytes as a frame, and a likely frame made of them.
#![no_main]

use catena_fuzz::{frames, properties};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    properties::layers_agree(bytes);
    let frame = frames::frame(bytes);
    properties::layers_agree(&frame);
    properties::views_agree_with_layers(&frame);
});
