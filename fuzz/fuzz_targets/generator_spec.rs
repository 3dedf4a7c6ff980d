//! The bytes as the specification of generated traffic.
#![no_main]

use catena_fuzz::borders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| borders::traffic_is_well_formed(bytes));
