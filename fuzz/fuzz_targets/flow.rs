//! Flow keys, ports and identifiers of the bytes as a frame, and of a likely frame made of them.
#![no_main]

use catena_fuzz::{frames, properties};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    properties::flow_agrees(bytes);
    properties::flow_agrees(&frames::frame(bytes));
});
