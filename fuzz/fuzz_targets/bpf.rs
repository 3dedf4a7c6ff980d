//! The bytes as a filter program and the packet it is run on.
#![no_main]

use catena_fuzz::borders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| borders::filter_ends(bytes));
