//! The bytes as routes.
#![no_main]

use catena_fuzz::borders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| borders::routes_hold_together(bytes));
