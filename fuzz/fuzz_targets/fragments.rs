//! The bytes as an attack by fragments on an ACL: datagrams, how they are cut, and rules.
#![no_main]

use catena_fuzz::fragments;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fragments::none_gets_past(bytes));
