//! The product: the command as `make run` builds it, in the release profile.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What stands before rustc, here and in `make build`, so that what either built is there for the other.
const WRAPPER: &str = "tests/compiler/mir";

/// The folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the tests are in the repository")
}

/// Build the command in the release profile, if it is not built; returns Cargo's messages, which name what it built.
pub fn build() -> String {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--package", "catena", "--release", "--message-format=json", "--quiet"])
        .current_dir(root())
        .env("RUSTC_WORKSPACE_WRAPPER", root().join(WRAPPER))
        .output()
        .expect("cargo, which runs this test, is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The programs that messages of Cargo name.
pub fn programs(messages: &str) -> impl Iterator<Item = PathBuf> {
    messages.split("\"executable\":\"").skip(1).filter_map(|rest| rest.split('"').next()).map(PathBuf::from)
}
