//! Says it when the compiler is known to lose code: rust-lang/rust issue 158206.
//!
//! Seen in rustc 1.95.0 and in a nightly of 1.97; others are tried rather than looked up. The sources avoid what
//! such a compiler gets wrong, and the tests in the release profile read the optimised code of every crate.

use std::path::Path;
use std::process::Command;

/// Loses a line when it is optimised by such a compiler, and then ends with 1.
const PROBE: &str = include_str!("../tests/compiler/probe.rs");

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../tests/compiler/probe.rs");
    let from = |name| std::env::var_os(name).unwrap_or_default();
    let (folder, rustc) = (from("OUT_DIR"), from("RUSTC"));
    let (source, program) = (Path::new(&folder).join("probe.rs"), Path::new(&folder).join("probe"));
    if std::fs::write(&source, PROBE).is_err() {
        return;
    }
    let built = Command::new(&rustc).arg("-Copt-level=3").arg(&source).arg("-o").arg(&program).output();
    // A compiler that cannot build it, such as one without a linker for this machine, says so with the crate.
    if !built.is_ok_and(|output| output.status.success()) {
        return;
    }
    if Command::new(&program).status().is_ok_and(|status| status.code() == Some(1)) {
        println!(
            "cargo::warning=this rustc loses code when it optimises (rust-lang/rust issue 158206). Catena's sources \
             avoid what it gets wrong, and `make test` looks for it in every function; a newer compiler is better still."
        );
    }
}
