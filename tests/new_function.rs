//! `catena new`: what it writes builds, passes its own tests, and is laid out as the house does.
//!
//! The library is copied without its other functions, so that building takes seconds; the crates below it are
//! built where the project's own are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the repository").to_owned()
}

/// Copy a folder, but for the folders of functions and what is built.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder is there") {
        let path = entry.expect("a folder's entry can be read").path();
        let name = path.file_name().expect("an entry has a name");
        let is_function = from.ends_with("functions/src") && path.join("mod.rs").is_file();
        if path.is_dir() && !is_function && name != "target" {
            copy(&path, &to.join(name));
        } else if path.is_file() {
            let copied = to.join(name);
            fs::copy(&path, &copied).expect("a file can be copied");
            // Cargo builds again what is younger than its last result.
            let modified = path.metadata().and_then(|m| m.modified()).expect("a file has a time");
            let file = fs::File::options().append(true).open(&copied).expect("the copy can be opened");
            file.set_modified(modified).expect("a time can be set");
        }
    }
}

/// Change a file of the copy.
fn change(path: &Path, change: impl Fn(String) -> String) {
    let text = fs::read_to_string(path).expect("the file is in the copy");
    fs::write(path, change(text)).expect("the copy can be written");
}

/// Keep the lines of a text that `keep`.
fn lines(text: &str, keep: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| keep(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Make a small workspace of the library without functions and the crates below it.
fn small_workspace(root: &Path) {
    let repository = repository();
    for part in [
        "crates/testing",
        "crates/packet",
        "crates/dataplane",
        "crates/state",
        "crates/state-derive",
        "functions",
        ".cargo",
    ] {
        copy(&repository.join(part), &root.join(part));
    }
    for file in ["Cargo.toml", "Cargo.lock", "rustfmt.toml"] {
        fs::copy(repository.join(file), root.join(file)).expect("a file can be copied");
    }
    let left_out = ["policy", "plan", "compile", "bench"].map(|name| format!("catena-{name} = "));
    change(&root.join("Cargo.toml"), |text| {
        let text = lines(&text, |line| !left_out.iter().any(|start| line.starts_with(start)));
        let members = text.lines().find(|line| line.starts_with("members = ")).expect("the workspace has members");
        let text = text.replace(members, "members = [\"crates/*\", \"functions\"]");
        lines(&text, |line| !line.starts_with("default-members = "))
    });
    let functions = root.join("functions");
    let is_there = |name: &str| {
        let source = functions.join("src");
        source.join(format!("{name}.rs")).is_file()
    };
    change(&functions.join("src/lib.rs"), |text| {
        let module = |line: &str| line.strip_prefix("pub mod ").map(|rest| rest.trim_end_matches(';').to_owned());
        lines(&text, |line| module(line).is_none_or(|name| is_there(&name)))
    });
    change(&functions.join("src/registry.rs"), |text| {
        let start = text.find("FUNCTIONS: &[&Descriptor] =").expect("there is a list of functions");
        let end = start + text[start..].find(";\n").expect("the list ends");
        let emptied = format!("{}FUNCTIONS: &[&Descriptor] = &[\n]{}", &text[..start], &text[end..]);
        lines(&emptied, |line| !line.starts_with("use crate::{"))
    });
    // A package of another name, so that the real library's results stay as they are.
    change(&functions.join("Cargo.toml"), |text| {
        let benches = text.find("\n[[bench]]").or_else(|| text.find("\n# A function's benchmark"));
        let text =
            text[..benches.unwrap_or(text.len())].replace("name = \"catena-functions\"", "name = \"new-function\"");
        format!("{}\n[lib]\nname = \"catena_functions\"\n", text.trim_end())
    });
    fs::read_dir(functions.join("benches"))
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_file())
        .for_each(|entry| fs::remove_file(entry.path()).expect("a copied benchmark can be removed"));
}

/// Return whether layout can be checked, and say so if not.
fn has_rustfmt() -> bool {
    let there = Command::new("rustfmt").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        catena_testing::skip("layout is not checked: rustfmt cannot be run", "rustup component add rustfmt");
    }
    there
}

fn catena_new(root: &Path, name: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(["new", name, "--dir"]).arg(root).output().expect("catena starts")
}

fn cargo(root: &Path, args: &[&str]) {
    // This test's program is in `deps` of a profile's folder of the folder for results.
    let program = std::env::current_exe().expect("the test's program has a path");
    let results = program.ancestors().nth(3).expect("the program is in a folder for results");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).env("CARGO_TARGET_DIR", results).env_remove("CARGO_MANIFEST_DIR").args(args);
    let output = command.output().expect("cargo starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "cargo {}:\n{}{}", args.join(" "), text(&output.stdout), text(&output.stderr));
}

#[test]
fn a_new_function_builds_and_passes_its_tests() {
    let root = tempfile::tempdir().expect("there is a folder for temporary files");
    small_workspace(root.path());
    let output = catena_new(root.path(), "PacketQuota");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for said in [
        "packet_quota/mod.rs",
        "packet_quota/workload.rs",
        "packet_quota/tests.rs",
        "benches/packet_quota.rs",
        "registry.rs",
        "cargo test",
    ] {
        assert!(printed.contains(said), "`{said}` is not in\n{printed}");
    }
    if has_rustfmt() {
        cargo(root.path(), &["fmt", "--package", "new-function", "--check"]);
    }
    let build = ["test", "--offline", "--quiet", "--package", "new-function"];
    cargo(root.path(), &[&build[..], &["--lib", "--bench", "packet_quota", "--no-run"]].concat());
    cargo(root.path(), &[&build[..], &["--lib", "packet_quota"]].concat());

    let again = catena_new(root.path(), "PacketQuota");
    let refused = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && refused.contains("not written over"), "{refused}");
}

#[test]
fn the_library_as_it_is_takes_a_new_function() {
    let root = tempfile::tempdir().expect("there is a folder for temporary files");
    let repository = repository();
    for file in ["functions/src/lib.rs", "functions/src/registry.rs", "functions/Cargo.toml"] {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be made");
        fs::copy(repository.join(file), path).expect("a file can be copied");
    }
    let read = |file: &str| fs::read_to_string(root.path().join(file)).expect("the copy can be read");
    let before = read("functions/src/registry.rs").matches("DESCRIPTOR").count();
    assert!(catena_new(root.path(), "PacketQuota").status.success());
    let registry = read("functions/src/registry.rs");
    assert!(registry.matches("DESCRIPTOR").count() == before + 1, "{registry}");
    assert!(registry.contains("&crate::packet_quota::DESCRIPTOR"), "{registry}");
    assert!(read("functions/src/lib.rs").contains("\npub mod packet_quota;\n"));
    assert!(read("functions/Cargo.toml").ends_with("\n\n[[bench]]\nname = \"packet_quota\"\nharness = false\n"));
    if !has_rustfmt() {
        return;
    }
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition=2024", "--check", "--config-path"]).arg(repository.join("rustfmt.toml"));
    let output = rustfmt.arg(root.path().join("functions/src/registry.rs")).output().expect("rustfmt starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
