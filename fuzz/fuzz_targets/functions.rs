//! The bytes as packets through a chain of functions, in both directions.
#![no_main]

use catena_fuzz::pipeline;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pipeline::packets_are_accounted_for(bytes));
