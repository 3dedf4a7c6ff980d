//! What `catena isolate` refuses, or fails to do, and in which words.

use super::*;

#[test]
fn what_is_missing_is_said_by_name() {
    // SAFETY: the call takes nothing and cannot fail.
    if !has("setpriv") || unsafe { libc::geteuid() } != 0 {
        return;
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-all", "--inh-caps", "-all", CATENA, "isolate", "status", "--count", "1"]);
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    // A build without clang has no program, whatever the rights.
    let is_named = said.contains("missing capabilities CAP_BPF and CAP_PERFMON") || said.contains("install clang");
    assert!(is_named && output.stdout.is_empty(), "{said}");
}

#[test]
fn intervals_have_bounds_and_the_journal_is_no_file_for_metrics() {
    let said = |args: &[&str]| text(&Command::new(CATENA).arg("isolate").args(args).output().unwrap().stderr);
    for interval in ["1ms", "25h", "10000000000000000000s"] {
        assert_eq!(said(&["status", "--interval", interval]), "catena: --interval: from 10ms to 24h\n");
        assert_eq!(said(&["enforce", "--interval", interval]), "catena: --interval: from the period to 24h\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let [journal, again] = ["j", "../j"].map(|name| folder.path().join("in").join(name).display().to_string());
    std::fs::create_dir(folder.path().join("in")).unwrap();
    let twice = |other: &str| said(&["enforce", "--journal", &journal, "--prometheus", other]);
    assert_eq!(twice(&journal), "catena: --prometheus: that file is the journal\n");
    assert_eq!(twice(&again.replace("in/..", "in/../in")), "catena: --prometheus: that file is the journal\n");
}

#[test]
fn metrics_that_were_not_written_last_fail_the_command() {
    // SAFETY: the call takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [place, aside] = ["metrics", "aside"].map(|name| folder.path().join(name));
    std::fs::create_dir(&place).unwrap();
    let file = place.join("a.prom");
    let mut command = Command::new(CATENA);
    command.args(["isolate", "status", "--interval", "150ms", "--count", "4", "--prometheus"]).arg(&file);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let is_written = becomes(|| file.exists());
    _ = std::fs::rename(&place, &aside);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    if !is_written {
        return skip_kernel(&format!("no accounts: {}", said.trim()));
    }
    let last = format!("catena: --prometheus: {}: the last metrics could not be written\n", file.display());
    assert!(output.status.code() == Some(1) && said.ends_with(&last), "{:?}: {said}", output.status);
}

#[test]
fn who_is_not_root_is_told_so() {
    // SAFETY: the call takes nothing and cannot fail.
    if !has("setpriv") || unsafe { libc::geteuid() } != 0 {
        return;
    }
    for (command, words) in [("enforce", "needs root (CAP_BPF and CAP_PERFMON"), ("demo", "needs root (CAP_SYS_ADMIN")]
    {
        let mut as_nobody = Command::new("setpriv");
        as_nobody.args(["--reuid", "65534", "--clear-groups", CATENA, "isolate", command]);
        let output = as_nobody.output().unwrap();
        let said = text(&output.stderr);
        if said.contains("Permission denied") && said.contains("setpriv: ") {
            return catena_testing::skip("nobody may run the program", "build it where others may read");
        }
        assert!(
            output.status.code() == Some(1) && said.starts_with(&format!("catena: isolate {command}: {words}")),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_be_enforced_is_said_by_name() {
    let enforce = |words: &[&str]| {
        let output = Command::new(CATENA).args(["isolate", "enforce"]).args(words).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = enforce(&["/a=30"]);
    assert!(code == Some(2) && said.contains("expected percent of one CPU"), "{said}");
    let (code, said) = enforce(&["--period", "1ms"]);
    assert!(code == Some(1) && said.contains("--period: from 10ms to 500ms"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal").display().to_string();
    let (code, said) = enforce(&["/no-such-cgroup", "--journal", &journal]);
    assert!(code == Some(1) && said.starts_with("catena: isolate enforce: "), "{said}");
}

#[test]
fn a_name_obeyed_by_a_terminal_is_escaped_in_messages() {
    let output = Command::new(CATENA).args(["isolate", "enforce", "/a\u{1b}[2J\rb"]).output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success() && !said.trim_end_matches('\n').contains(char::is_control), "{said:?}");
}
