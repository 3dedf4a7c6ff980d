//! Builds the BPF program with clang. Without one the crate builds all the same and says at run time that it has no program.

use std::path::Path;
use std::process::Command;

const SOURCE: &str = "bpf/account.bpf.c";
/// Compilers that are tried where `CLANG` does not name one; Debian has some by their version only.
const COMPILERS: [&str; 7] = ["clang", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-14"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // With what it includes.
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let object = Path::new(&folder).join("account.bpf.o");
    let named = std::env::var("CLANG").ok();
    let compilers = named.as_deref().map_or(COMPILERS.to_vec(), |named| vec![named]);
    let mut problem = format!("there was no {}", compilers[0]);
    for compiler in compilers {
        let mut command = Command::new(compiler);
        command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", SOURCE, "-o"]).arg(&object);
        match command.output() {
            Ok(output) if output.status.success() => {
                println!("cargo::rustc-env=ACCOUNT_PROBLEM=");
                return;
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                problem = format!("{compiler} failed: {}", said.lines().next().unwrap_or("it says nothing"));
                println!("cargo::warning=catena-isolation: {problem}");
            }
            Err(_) => {}
        }
    }
    // Once there is one. Where one was found nothing is made anew for another path: Cargo's own commands have other ones than those
    // that they run.
    println!("cargo::rerun-if-env-changed=PATH");
    std::fs::write(&object, []).expect("OUT_DIR can be written");
    println!("cargo::rustc-env=ACCOUNT_PROBLEM={problem}");
}
