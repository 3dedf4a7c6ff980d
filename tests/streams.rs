//! Standard streams that take nothing, and cores that are not there.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).stdin(Stdio::null());
    command
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Commands that print.
const PRINTING: [&[&str]; 12] = [
    &["run", "examples/edge.catena", "--in", "gen:count=1"],
    &["run", "examples/edge.catena", "--in", "gen:count=1", "--json"],
    &["run", "examples/edge.catena", "--in", "gen:count=100", "--out", "-"],
    &["check", "examples/edge.catena"],
    &["fmt", "-"],
    &["show", "examples/edge.catena"],
    &["show", "examples/edge.catena", "--stage", "host", "--format", "json"],
    &["functions"],
    &["functions", "NAT", "--json"],
    &["plan", "examples/lemur/chain3.catena", "--rack", "examples/racks/lemur.toml", "--strategy", "lemur"],
    &["bench", "report"],
    &["run", "--help"],
];

fn full() -> File {
    File::options().write(true).open("/dev/full").expect("Linux has it")
}

fn printing(args: &[&str]) -> Command {
    let mut command = command(args);
    if args.contains(&"-") && args[0] == "fmt" {
        let chain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edge.catena");
        command.stdin(File::open(chain).expect("the example"));
    }
    command
}

#[test]
fn a_full_standard_output_is_an_error_with_a_message() {
    for args in PRINTING {
        let output = printing(args).stdout(full()).output().expect("catena starts");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", err(&output));
        assert!(err(&output).contains("No space left on device"), "{args:?}: {}", err(&output));
        assert!(!err(&output).contains("panicked"), "{args:?}: {}", err(&output));
    }
}

#[test]
fn a_full_standard_error_changes_no_outcome() {
    for args in PRINTING {
        let status = printing(args).stdout(Stdio::null()).stderr(full()).status().expect("catena starts");
        assert_eq!(status.code(), Some(0), "{args:?}");
        let status = printing(args).stdout(full()).stderr(full()).status().expect("catena starts");
        assert_eq!(status.code(), Some(1), "{args:?}");
    }
    let status = command(&["run", "none.catena", "--in", "gen"]).stderr(full()).status().expect("catena starts");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    for args in PRINTING {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = printing(args).stdout(writer).output().expect("catena starts");
        assert!(!output.status.success(), "{args:?}");
        assert!(!err(&output).contains("panicked"), "{args:?}: {}", err(&output));
    }
}

#[test]
fn a_closed_standard_output_is_an_error_where_it_is_needed() {
    for args in PRINTING {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_catena")]).args(args);
        shell.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        let chain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edge.catena");
        let output = shell.stdin(File::open(chain).expect("the example")).output().expect("sh starts");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", err(&output));
        assert!(err(&output).contains("standard output"), "{args:?}: {}", err(&output));
    }
}

#[test]
fn cores_are_checked_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcap");
    std::fs::write(&out, "kept").expect("a file");
    let written = out.display().to_string();
    let run = |more: &[&str]| {
        let args = [&["run", "examples/edge.catena", "--in", "gen:count=1", "--out", &written], more].concat();
        let output = command(&args).output().expect("catena starts");
        (output.status.code(), err(&output))
    };
    for more in [&["--core", "999999"][..], &["--core", "1023"], &["--core", "0", "--workers", "64"]] {
        let (code, error) = run(more);
        assert_eq!(code, Some(1), "{more:?}: {error}");
        assert!(error.contains("--core") && error.contains("may run on core"), "{more:?}: {error}");
        assert_eq!(std::fs::read(&out).expect("it is there"), b"kept", "{more:?}");
    }
    assert_eq!(run(&["--core", "0"]), (Some(0), String::new()));
    // One core is taken away from the process: the error says which are left.
    let mut shell = Command::new("taskset");
    shell.args(["-c", "0", env!("CARGO_BIN_EXE_catena"), "run", "examples/edge.catena", "--in", "gen:count=1"]);
    shell.args(["--core", "0", "--workers", "2"]).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    match shell.output() {
        Ok(output) => {
            assert_eq!(output.status.code(), Some(1));
            assert!(err(&output).contains("may run on core 0 only"), "{}", err(&output));
        }
        Err(_) => println!("skipped: taskset is not installed"),
    }
}
