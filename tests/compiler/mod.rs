//! Whether the compiler kept what the sources say.
//!
//! rustc 1.95 and others (rust-lang/rust issue 158206) remove a comparison whose result is still used, when it is
//! also branched on: the optimised code then reads a `bool` that nothing wrote. That is seen in the optimised MIR,
//! exactly and for every form that the source may have.

mod mir;

use std::path::{Path, PathBuf};
use std::process::Command;

fn rustc() -> PathBuf {
    std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from)
}

/// Build a program optimised; returns its optimised MIR and whether it ended with 0.
fn built(source: &Path) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let program = folder.path().join("program");
    let output = Command::new(rustc())
        .args(["--edition=2024", "-Copt-level=3", "--emit=mir,link", "-o"])
        .arg(&program)
        .arg(source)
        .output()
        .expect("the compiler that built this test is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("program.mir")).expect("MIR was asked for");
    let status = Command::new(&program).status().expect("what was built runs");
    (text, status.success())
}

#[test]
fn what_the_compiler_loses_is_found() {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/compiler/probe.rs");
    let (text, is_right) = built(&probe);
    let found = mir::unwritten(&text);
    assert_eq!(found.is_empty(), is_right, "the program is right: {is_right}; found: {found:?}");
}

/// In optimised tests only: building the product takes minutes.
#[cfg(not(debug_assertions))]
#[test]
fn the_compiler_lost_nothing_of_the_product() {
    let messages = crate::product::build();
    // Cargo names what it built: `deps/libcatena_nat-HASH.rmeta`, and the MIR is beside it as `catena_nat-HASH.mir`;
    // and `catena`, which is the same file as `deps/catena-HASH`.
    let named =
        |ending: &'static str| messages.split('"').filter(move |word| word.ends_with(ending)).map(PathBuf::from);
    let built = named(".rmeta").chain(crate::product::programs(&messages).map(|program| in_deps(&program)));
    let mut read = Vec::new();
    for file in built {
        let Some(stem) = file.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let path = file.with_file_name(format!("{}.mir", stem.trim_start_matches("lib")));
        // Only the crates of the workspace were asked for their MIR.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let found = mir::unwritten(&text);
        assert!(
            found.is_empty(),
            "{stem}: the compiler lost the comparison that these functions use; write `if x {{ n += 1 }}` for \
             `n += uN::from(x)`, or set what is stored in both branches:\n  {}",
            found.join("\n  ")
        );
        read.push(stem.to_owned());
    }
    let parts = ["packet", "dataplane", "state", "functions", "policy", "plan", "compile", "runtime"];
    for stem in parts.iter().map(|part| format!("libcatena_{part}-")).chain(["catena-".to_owned()]) {
        let is_there = read.iter().any(|name| name.starts_with(&stem));
        assert!(is_there, "the MIR of {stem} was not found among {read:?}");
    }
}

/// Return the name that a program has where it was built: the same file, with its hash.
#[cfg(not(debug_assertions))]
fn in_deps(program: &Path) -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    if program.parent().is_some_and(|folder| folder.ends_with("deps")) {
        return program.to_owned();
    }
    let inode = |path: &Path| path.metadata().map(|file| file.ino()).ok();
    let deps = program.with_file_name("deps");
    let mut files = deps.read_dir().expect("Cargo builds in `deps`").flatten().map(|file| file.path());
    let is_it = |path: &PathBuf| path.extension().is_none() && inode(path) == inode(program);
    files.find(is_it).expect("Cargo links what it built in `deps`")
}
