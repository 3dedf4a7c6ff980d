//! Builds the BPF programs with clang. Without one the crate builds all the same and says at run time that it has no program.

use std::path::Path;
use std::process::Command;

/// Sources in `bpf`, without their ends; each becomes an object of the same name.
const PROGRAMS: [&str; 2] = ["account", "drop"];
/// Compilers that are tried where `CLANG` does not name one; Debian has some by their version only.
const COMPILERS: [&str; 7] = ["clang", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-14"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // With what it includes.
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let object = |program: &str| Path::new(&folder).join(format!("{program}.bpf.o"));
    let named = std::env::var("CLANG").ok();
    let compilers = named.as_deref().map_or(COMPILERS.to_vec(), |named| vec![named]);
    let mut problem = format!("there was no {}", compilers[0]);
    for compiler in compilers {
        match PROGRAMS.iter().try_for_each(|program| build(compiler, program, &object(program))) {
            Ok(()) => {
                println!("cargo::rustc-env=ACCOUNT_PROBLEM=");
                return;
            }
            Err(Some(said)) => {
                problem = format!("{compiler} failed: {said}");
                println!("cargo::warning=catena-isolation: {problem}");
            }
            Err(None) => {}
        }
    }
    // Once there is one. Where one was found nothing is made anew for another path: Cargo's own commands have other ones than those
    // that they run.
    println!("cargo::rerun-if-env-changed=PATH");
    for program in PROGRAMS {
        std::fs::write(object(program), []).expect("OUT_DIR can be written");
    }
    println!("cargo::rustc-env=ACCOUNT_PROBLEM={problem}");
}

/// Build a program; where that fails, return what the compiler says, or `None` if there is no such compiler.
fn build(compiler: &str, program: &str, object: &Path) -> Result<(), Option<String>> {
    let mut command = Command::new(compiler);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"]);
    command.arg(format!("bpf/{program}.bpf.c")).arg("-o").arg(object);
    let output = command.output().map_err(|_| None)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Some(said.lines().next().unwrap_or("it says nothing").to_owned()))
}
