//! The bytes as rules, in both notations, and as packets that the classifier and the list itself must agree on.
#![no_main]

use catena_fuzz::borders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| borders::rules_mean_what_they_say(bytes));
