//! Skips: a test that cannot do its work here says so where it is seen.
//!
//! The harness swallows what a test that passes prints, so each skip is also a line of the file that `CATENA_SKIPS`
//! names; `make test` prints that file last. With `CATENA_REQUIRE_ALL=1` a skip is a failure.

use std::fs::OpenOptions;
use std::io::Write;

/// Skip what this machine cannot do: record the `reason`, then return to the test, which leaves out what it skips.
///
/// # Panics
/// With `CATENA_REQUIRE_ALL=1`, saying the `remedy`: what to install or to do.
pub fn skip(reason: &str, remedy: &str) {
    record(reason);
    let is_required = std::env::var_os("CATENA_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!is_required, "skipped although CATENA_REQUIRE_ALL=1: {reason}; {remedy}");
}

/// Skip what needs data that is not part of the project, such as real captures: recorded, but never demanded.
pub fn skip_extra(reason: &str) {
    record(reason);
}

/// Skip what this kernel, or who may do what on this machine, does not allow: recorded, but never demanded, for no package
/// mends it.
pub fn skip_kernel(reason: &str) {
    record(reason);
}

/// Print a skip, and append it to the file that `CATENA_SKIPS` names, if any.
fn record(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    let line = match std::env::var("CARGO_PKG_NAME") {
        Ok(package) => format!("{package}: {test}: {reason}\n"),
        Err(_) => format!("{test}: {reason}\n"),
    };
    eprint!("skipped: {line}");
    let Some(path) = std::env::var_os("CATENA_SKIPS") else { return };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // Many programs append at once: one call writes the whole line.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("CATENA_SKIPS={}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::{skip, skip_extra};

    /// Does what its environment asks; run by itself it does nothing.
    #[test]
    fn a_test_that_skips() {
        match std::env::var("CATENA_TEST_SKIPS").as_deref() {
            Ok("required") => skip("there is no wheel here", "invent it"),
            Ok("extra") => skip_extra("there is no second wheel here"),
            _ => {}
        }
    }

    fn run(kind: &str, list: &std::path::Path, require: &str) -> Output {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", "skips::tests::a_test_that_skips", "--test-threads=2"]);
        command.env("CATENA_TEST_SKIPS", kind).env("CATENA_SKIPS", list).env("CATENA_REQUIRE_ALL", require);
        command.env("CARGO_PKG_NAME", "wheels").output().expect("this program starts")
    }

    #[test]
    fn a_skip_is_listed_and_fails_where_all_is_required() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("skips");
        for (kind, require, passes) in [
            ("required", "", true),
            ("required", "1", false),
            ("extra", "", true),
            ("extra", "1", true),
            ("", "1", true),
        ] {
            let output = run(kind, &list, require);
            assert_eq!(output.status.success(), passes, "{kind} {require}: {output:?}");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains("running 1 test"), "{text}");
            assert_eq!(text.contains("there is no wheel here; invent it"), !passes, "{text}");
        }
        let test = "wheels: skips::tests::a_test_that_skips: there is no";
        let lines =
            [("wheel", 2), ("second wheel", 2)].map(|(what, times)| format!("{test} {what} here\n").repeat(times));
        assert_eq!(std::fs::read_to_string(&list).expect("it was written"), lines.concat());
    }
}
