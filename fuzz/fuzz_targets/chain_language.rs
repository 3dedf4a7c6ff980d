//! The bytes as a chain file, judged with the whole function library.
#![no_main]

use std::sync::LazyLock;

use catena_compile::library;
use catena_policy::Library;
use libfuzzer_sys::fuzz_target;

static LIBRARY: LazyLock<Library> = LazyLock::new(library::signatures);

fuzz_target!(|bytes: &[u8]| catena_policy::fuzz_one(bytes, &LIBRARY));
