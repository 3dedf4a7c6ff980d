//! The bytes as a capture file: pcap or pcapng, plain or compressed.
#![no_main]

use catena_fuzz::borders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| borders::capture_ends(bytes));
