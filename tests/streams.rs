//! Standard streams and disks that take nothing more, and cores that are not there.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
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
    &[
        "plan",
        "examples/lemur/chain3.catena",
        "--rack",
        "examples/racks/lemur.toml",
        "--as",
        "lemur",
        "--strategy",
        "lemur",
    ],
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
        // A run has more to end than its table; other commands do nothing but print.
        if args[0] == "run" && !args.contains(&"--help") {
            assert_eq!(output.status.code(), Some(1), "{args:?}");
            assert!(err(&output).contains("Broken pipe"), "{args:?}: {}", err(&output));
        } else {
            assert_eq!((output.status.signal(), err(&output)), (Some(libc::SIGPIPE), String::new()), "{args:?}");
        }
    }
}

/// Make a FIFO, and let somebody read a little of it and leave.
fn left_by_its_reader(folder: &Path, name: &str) -> std::thread::JoinHandle<()> {
    let path = folder.join(name);
    let made = Command::new("mkfifo").arg(&path).status().expect("coreutils are there");
    assert!(made.success());
    std::thread::spawn(move || {
        let mut start = [0; 24];
        File::open(&path).expect("somebody writes").read_exact(&mut start).expect("it has a beginning");
    })
}

#[test]
fn a_reader_who_leaves_does_not_end_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("m.catena"), "chain c { m = Monitor(export = \"flows\") in <-> m <-> out }").expect("a chain");
    let run = |args: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.arg("run").args(args.split(' ')).current_dir(folder.path()).stdin(Stdio::null());
        command.output().expect("catena starts")
    };
    let made = run("m.catena --in gen:flows=10,count=500,seed=3 --out back.pcap");
    assert!(made.status.success(), "{}", err(&made));

    // The capture, of which the first packets alone fit into the pipe.
    let reader = left_by_its_reader(folder.path(), "f.pcap");
    let ports = "--in gen:flows=9,count=45000,seed=1 --out f.pcap --back-in back.pcap --back-out back.pcap.gz";
    let left = run(&format!("m.catena --json {ports}"));
    reader.join().expect("the reader leaves");
    assert_eq!(left.status.code(), Some(1), "{}", err(&left));
    assert!(err(&left).contains("f.pcap") && err(&left).contains("Broken pipe"), "{}", err(&left));
    let report: serde_json::Value = serde_json::from_slice(&left.stdout).expect("the report is JSON");
    let [input, output, dropped] = [&report["input"]["packets"], &report["output"]["packets"], &report["dropped"]]
        .map(|n| n.as_u64().expect("a count"));
    assert_eq!(input, 45_000 + 500);
    assert_eq!(input, output + dropped);
    assert!(dropped > 30_000, "{dropped} did not arrive");
    // The other outputs are whole.
    let mut reader = catena_packet::pcap::Reader::open(at("back.pcap.gz")).expect("a capture");
    while reader.next().expect("it is whole").is_some() {}
    assert_eq!(reader.records(), 500);
    assert_eq!(std::fs::read_to_string(at("flows")).expect("the export").lines().count(), 19);

    // The export.
    std::fs::remove_file(at("flows")).expect("it is there");
    let reader = left_by_its_reader(folder.path(), "flows");
    let left = run("m.catena --in gen:flows=20k,count=20k,seed=1 --out out.pcap.gz");
    reader.join().expect("the reader leaves");
    assert_eq!(left.status.code(), Some(1), "{}", err(&left));
    assert!(err(&left).contains("flows") && err(&left).contains("Broken pipe"), "{}", err(&left));
    assert!(String::from_utf8_lossy(&left.stdout).contains("20,000 packets in = 20,000 out"));
    let mut reader = catena_packet::pcap::Reader::open(at("out.pcap.gz")).expect("a capture");
    while reader.next().expect("it is whole").is_some() {}
    assert_eq!(reader.records(), 20_000);
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
        Err(_) => catena_testing::skip("taskset is not installed", "install util-linux"),
    }
}

/// Run the chain in a folder where no file grows beyond `kib`, as on a full disk; returns its report.
fn run_on_a_full_disk(folder: &Path, kib: u32, args: &str) -> serde_json::Value {
    let script = format!("ulimit -f {}; exec \"$CATENA\" run c.catena --json {args}", kib * 2);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder).env("CATENA", env!("CARGO_BIN_EXE_catena"));
    let output = shell.output().expect("sh starts");
    assert_eq!(output.status.code(), Some(1), "{args}: {}", err(&output));
    assert!(err(&output).contains("File too large"), "{args}: {}", err(&output));
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}

#[test]
fn what_a_full_disk_did_not_take_is_no_output() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("c.catena"), "chain c { in -> out }").expect("a chain");
    for (name, workers) in [("x.pcap", 1), ("x.pcap", 2), ("x.pcapng", 1), ("x.pcapng", 2)] {
        // The last one fails only when the file is closed.
        for (count, kib) in [(20_000, 300), (20_000, 321), (5_000, 371)] {
            let args = format!("--in gen:flows=9,size=60,count={count},seed=1 --out {name} --workers {workers}");
            let report = run_on_a_full_disk(folder.path(), kib, &args);
            let mut reader = catena_packet::pcap::Reader::open(folder.path().join(name)).expect("a capture");
            while reader.next().is_ok_and(|record| record.is_some()) {}
            let [input, output] = ["input", "output"].map(|side| report[side]["packets"].as_u64().expect("a count"));
            assert_eq!(output, reader.records(), "{args} {kib}");
            assert_eq!(input, output + report["dropped"].as_u64().expect("a count"), "{args} {kib}");
        }
    }
}

#[test]
fn records_that_a_full_disk_did_not_take_are_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in ["json", "ipfix"] {
        let chain = format!("chain c {{ m = Monitor(export = \"flows\", format = {format}) in -> m -> out }}");
        std::fs::write(folder.path().join("c.catena"), chain).expect("a chain");
        for kib in [300, 333] {
            let report = run_on_a_full_disk(folder.path(), kib, "--in gen:flows=9k,size=60,count=18k,seed=1");
            let gauges =
                report["modules"].as_array().into_iter().flatten().flat_map(|m| m["gauges"].as_array()).flatten();
            let all: std::collections::HashMap<&str, u64> =
                gauges.filter_map(|g| Some((g["name"].as_str()?, g["value"].as_u64()?))).collect();
            let file = std::fs::read(folder.path().join("flows")).expect("it is there");
            let written =
                if format == "json" { file.iter().filter(|b| **b == b'\n').count() as u64 } else { messages(&file) };
            assert!(written > 100 && all["flows"] == 9000, "{format} {kib}: {written}");
            assert_eq!(written + all["records lost"], 9000, "{format} {kib}");
            assert_eq!(all["packets in lost records"], 2 * all["records lost"], "{format} {kib}");
        }
    }
}

/// Count the data records of IPFIX messages that are whole, by the sequence number behind them (RFC 7011, §3.1).
fn messages(mut file: &[u8]) -> u64 {
    let mut records = 0;
    while let Some(length) = file.get(2..4).map(|n| usize::from(u16::from_be_bytes([n[0], n[1]]))) {
        let Some(message) = file.get(..length) else { break };
        // Of IPv4: set header of 4 bytes, and 66 a record.
        if message.get(16..18) == Some(&[1, 0]) {
            records += (length as u64 - 20) / 66;
        }
        file = &file[length..];
    }
    records
}
