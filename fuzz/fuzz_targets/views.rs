//! Every accessor of every view that accepts the bytes.
#![no_main]

use catena_fuzz::properties;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| properties::views_never_panic(bytes));
