//! What a run writes: never over a file that it reads, never two outputs into one file, and nothing before it can start.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder with a capture `in.pcap` of 500 packets and a chain file `test.catena`.
struct Place {
    folder: tempfile::TempDir,
}

const PLAIN: &str = "chain c { in -> out }\n";
/// A chain with a way back.
const BOTH: &str = "chain c { nat = NAT(pool = 198.51.100.1) in <-> nat <-> out }\n";
const OLD: &[u8] = b"what was there before\n";

impl Place {
    fn new(chain: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a folder") };
        place.write("test.catena", chain.as_bytes());
        place.write("plain.catena", PLAIN.as_bytes());
        let made = place.run(&["run", "plain.catena", "--in", "gen:count=500,flows=50,seed=1", "--out", "in.pcap"]);
        assert!(made.status.success(), "{}", err(&made));
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at(name), bytes).expect("it can be written");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).expect("it can be read")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        catena_testing::default_signals(&mut command);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("catena starts")
    }

    /// All files with their bytes.
    fn state(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut state: Vec<(PathBuf, Vec<u8>)> = entries
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(path).expect("it can be read")))
            .collect();
        state.sort();
        state
    }

    /// A run of `test.catena` is refused with a message that has these words, and no file is changed or made.
    fn refuses(&self, args: &[&str], words: &[&str]) {
        self.refuses_with(self.command(&[&["run", "test.catena"], args].concat()), words);
    }

    fn refuses_with(&self, mut command: Command, words: &[&str]) {
        let before = self.state();
        let output = command.output().expect("catena starts");
        assert_eq!(output.status.code(), Some(1), "{command:?}: {}", err(&output));
        words.iter().for_each(|word| assert!(err(&output).contains(word), "{command:?}: {word}: {}", err(&output)));
        assert!(before == self.state(), "{command:?}: a file has changed: {}", err(&output));
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn monitor(export: &str) -> String {
    format!("chain c {{ mon = Monitor(export = \"{export}\") in -> mon -> out }}\n")
}

fn monitors(first: &str, second: &str) -> String {
    format!("chain c {{ a = Monitor(export = \"{first}\") b = Monitor(export = \"{second}\") in -> a -> b -> out }}\n")
}

#[test]
fn both_directions_into_one_file_are_refused() {
    let place = Place::new(BOTH);
    let into = |out: &str, back: &str| {
        place
            .refuses(&["--in", "in.pcap", "--out", out, "--back-out", back], &["--out", "--back-out", "are the same "]);
    };
    into("x.pcap", "x.pcap");
    into("x.pcap", "./x.pcap");
    into("-", "-");
    place.write("old.pcap", OLD);
    fs::hard_link(place.at("old.pcap"), place.at("hard.pcap")).expect("a hard link");
    symlink("old.pcap", place.at("soft.pcap")).expect("a link");
    symlink("none.pcap", place.at("loose.pcap")).expect("a link");
    symlink(place.folder.path(), place.at("folder")).expect("a link");
    for (out, back) in [
        ("old.pcap", "hard.pcap"),
        ("soft.pcap", "hard.pcap"),
        ("loose.pcap", "none.pcap"),
        ("none.pcap", "folder/none.pcap"),
    ] {
        into(out, back);
    }
}

#[test]
fn an_export_into_another_output_is_refused() {
    for (chain, args, words) in [
        (monitors("flows", "flows"), &["--in", "in.pcap"][..], &["`a`", "`b`", "flows"]),
        (monitors("flows", "./flows"), &["--in", "in.pcap"], &["`a`", "`b`", "the same file"]),
        (monitors("-", "-"), &["--in", "in.pcap"], &["`a`", "`b`", "standard output"]),
        (monitors("flows", "flows.1"), &["--in", "in.pcap", "--workers", "2"], &["`a`", "`b`", "flows.1"]),
        (monitor("x.pcap"), &["--in", "in.pcap", "--out", "x.pcap"], &["`mon`", "--out", "x.pcap"]),
        (monitor("/dev/stdout"), &["--in", "in.pcap", "--out", "-"], &["`mon`", "--out", "standard output"]),
        (monitor("-"), &["--in", "in.pcap", "--out", "-"], &["`mon`", "--out", "standard output"]),
    ] {
        Place::new(&chain).refuses(args, words);
    }
    // What is wrong with the chain alone, `check` says too.
    for chain in [monitors("flows", "./flows"), monitors("-", "-"), monitor("test.catena")] {
        let place = Place::new(&chain);
        let checked = place.run(&["check", "test.catena"]);
        assert_eq!(checked.status.code(), Some(1), "{chain}");
        assert!(err(&checked).contains("same") || err(&checked).contains("is read"), "{}", err(&checked));
    }
    // With one worker there is no `flows.1` of the first.
    let place = Place::new(&monitors("flows", "flows.1"));
    assert!(place.run(&["run", "test.catena", "--in", "in.pcap"]).status.success());
    assert_eq!(place.read("flows").len(), place.read("flows.1").len());
    // Those of an earlier run with more workers are said.
    let place = Place::new(&monitor("flows"));
    let with = |workers| err(&place.run(&["run", "test.catena", "--in", "in.pcap", "--workers", workers]));
    assert_eq!(with("3"), "");
    let left = |number| format!("catena: flows.{number} is left as it was: this run has not as many workers\n");
    assert_eq!((with("2"), with("1")), (left(2), left(1) + &left(2)));
}

#[test]
fn what_is_read_is_not_written() {
    let place = Place::new(&monitor("in.pcap"));
    place.refuses(&["--in", "in.pcap"], &["`mon`", "in.pcap", "is read"]);
    place.write("test.catena", monitor("test.catena").as_bytes());
    place.refuses(&["--in", "in.pcap"], &["test.catena", "is read"]);
    place.write("rules.acl", b"permit any\n");
    let chain =
        "chain c { a = ACL(rules = file(\"rules.acl\")) mon = Monitor(export = \"rules.acl\") in -> a -> mon -> out }";
    place.write("test.catena", chain.as_bytes());
    place.refuses(&["--in", "in.pcap"], &["rules.acl", "is read"]);

    place.write("test.catena", BOTH.as_bytes());
    fs::hard_link(place.at("in.pcap"), place.at("hard.pcap")).expect("a hard link");
    symlink("in.pcap", place.at("soft.pcap")).expect("a link");
    fs::hard_link(place.at("test.catena"), place.at("chain.pcap")).expect("a hard link");
    for out in ["in.pcap", "./in.pcap", "hard.pcap", "soft.pcap"] {
        place.refuses(&["--in", "in.pcap", "--out", out], &["--out", "--in", "is read"]);
        place.refuses(&["--in", "in.pcap", "--back-out", out], &["--back-out", "is read"]);
        place.refuses(&["--in", "gen:count=1", "--back-in", "in.pcap", "--out", out], &["--out", "--back-in"]);
    }
    place.refuses(&["--in", "in.pcap", "--out", "chain.pcap"], &["chain.pcap", "the chain file"]);
}

#[test]
fn redirected_streams_are_files_too() {
    let place = Place::new(PLAIN);
    fs::hard_link(place.at("in.pcap"), place.at("hard.pcap")).expect("a hard link");
    let open = |name: &str| File::open(place.at(name)).expect("it is there");
    let append =
        |name: &str| File::options().append(true).create(true).open(place.at(name)).expect("it can be written");
    for out in ["in.pcap", "hard.pcap"] {
        let mut command = place.command(&["run", "test.catena", "--in", "-", "--out", out]);
        command.stdin(open("in.pcap"));
        place.refuses_with(command, &["--in", "standard input", "--out", "is read"]);
    }
    // Packets, or the closing table, at the end of the capture they are read from.
    for out in ["-", "null"] {
        let mut command = place.command(&["run", "test.catena", "--in", "in.pcap", "--out", out]);
        command.stdout(append("hard.pcap"));
        place.refuses_with(command, &["standard output", "is read"]);
    }
    // The table over the packets.
    place.write("x.pcap", b"");
    let mut command = place.command(&["run", "test.catena", "--in", "in.pcap", "--out", "x.pcap"]);
    command.stdout(append("x.pcap"));
    place.refuses_with(command, &["--out", "standard output", "the same file"]);
    let mut command = place.command(&["run", "test.catena", "--in", "in.pcap", "--out", "-"]);
    command.stdout(append("x.pcap")).stderr(append("x.pcap"));
    assert_eq!(command.status().expect("catena starts").code(), Some(1));
    assert!(String::from_utf8_lossy(&place.read("x.pcap")).contains("standard error"));
    // Both ends of one stream: each would get a part.
    place.refuses(&["--in", "-", "--back-in", "-"], &["--in", "--back-in", "standard input"]);
}

/// What no output is read as is not written: the library of a chain is mapped into the process that runs it.
#[test]
fn a_library_that_runs_is_not_written() {
    let place = Place::new(PLAIN);
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let include = format!("-I{}", repository.join("include").display());
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-shared", "-fPIC", &include, "-o"]).arg(place.at("sg.pcap"));
    let built = cc.arg(repository.join("examples/native/synguard.c")).status().expect("cc is there");
    assert!(built.success());
    fs::hard_link(place.at("sg.pcap"), place.at("hard.pcap")).expect("a hard link");
    let native = "g = Native(lib = \"sg.pcap\", args = {limit: 100, window: 1s})";
    place.write("test.catena", format!("chain c {{ {native} in -> g -> out }}").as_bytes());
    for out in ["sg.pcap", "./sg.pcap", "hard.pcap"] {
        place.refuses(&["--in", "in.pcap", "--out", out], &["--out", "`g`: sg.pcap", "is read"]);
        place.refuses(&["--in", "in.pcap", "--back-out", out, "--workers", "2"], &["--back-out", "sg.pcap", "is read"]);
        let chain = format!("chain c {{ {native} m = Monitor(export = \"{out}\") in -> g -> m -> out }}");
        place.write("export.catena", chain.as_bytes());
        place.refuses_with(place.command(&["run", "export.catena", "--in", "in.pcap"]), &["`m`", "sg.pcap", "is read"]);
    }
    let mut command = place.command(&["run", "test.catena", "--in", "in.pcap"]);
    command.stdout(File::options().append(true).open(place.at("hard.pcap")).expect("it can be written"));
    place.refuses_with(command, &["standard output", "sg.pcap", "is read"]);
    assert!(place.run(&["run", "test.catena", "--in", "in.pcap", "--out", "x.pcap"]).status.success());
}

/// Run `catena` by a shell with descriptor 5 on its standard output, which is a pipe.
fn through_a_pipe(place: &Place, args: &str) -> Output {
    let script = format!("{{ \"$CATENA\" {args} 5>&1; echo $? >code; }} | cat >through");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(place.folder.path()).env("CATENA", env!("CARGO_BIN_EXE_catena"));
    shell.output().expect("sh starts")
}

#[test]
fn two_outputs_into_one_pipe_are_refused() {
    let names = ["ln.json", "/proc/thread-self/fd/1", "/dev/fd/5", "/dev/fd/1"];
    for name in names {
        let place = Place::new(&monitor(name));
        symlink("/dev/stdout", place.at("ln.json")).expect("a link");
        let refused = through_a_pipe(&place, "run test.catena --in in.pcap --out -");
        assert_eq!(place.read("code"), b"1\n", "{name}: {}", err(&refused));
        assert!(
            ["`mon`", "--out", "are the same "].iter().all(|word| err(&refused).contains(word)),
            "{}",
            err(&refused)
        );
        assert_eq!(place.read("through"), b"", "{name}");
        // Alone there, its records are: the table goes elsewhere.
        let told = through_a_pipe(&place, "run test.catena --in in.pcap --json");
        assert_eq!(place.read("code"), b"0\n", "{name}: {}", err(&told));
        let records = String::from_utf8(place.read("through")).expect("text");
        assert_eq!(records.lines().count(), 50, "{name}");
        assert!(records.lines().all(|line| line.starts_with("{\"ts\":")), "{name}: {records}");
        assert!(err(&told).contains("\"modules\""), "{name}: {}", err(&told));
    }
    // What is told on standard error would be mixed into the packets.
    let place = Place::new(PLAIN);
    through_a_pipe(&place, "run test.catena --in in.pcap --out - 2>&1");
    assert_eq!(place.read("code"), b"1\n");
    assert!(String::from_utf8_lossy(&place.read("through")).contains("standard error are the same pipe"));
}

#[test]
fn one_fifo_has_one_end() {
    let place = Place::new(BOTH);
    let made = Command::new("mkfifo").arg(place.at("ff.pcap")).status().expect("mkfifo is there");
    assert!(made.success());
    symlink("ff.pcap", place.at("soft.pcap")).expect("a link");
    let same = "are the same pipe";
    place.refuses(&["--in", "in.pcap", "--out", "ff.pcap", "--back-out", "soft.pcap"], &["--out", "--back-out", same]);
    place.refuses(&["--in", "ff.pcap", "--out", "soft.pcap"], &["--in", "--out", same]);
    place.refuses(&["--in", "ff.pcap", "--back-in", "soft.pcap"], &["--in", "--back-in", "are the same"]);
    place.write("test.catena", monitor("ff.pcap").as_bytes());
    place.refuses(&["--in", "in.pcap", "--out", "ff.pcap"], &["`mon`", "--out", same]);
}

#[test]
fn an_output_that_nothing_reaches_is_empty_not_old() {
    for (chain, option) in [
        ("chain c { m = Monitor() in -> m -> drop }", "--out"),
        ("chain c { m = Monitor() in -> m -> out }", "--back-out"),
        ("chain c { a = ACL(rules = [\"deny any\"]) in -> a -> out }", "--out"),
    ] {
        for (workers, name) in [("1", "old.pcap"), ("2", "old.pcap"), ("1", "old.pcapng.gz")] {
            let place = Place::new(chain);
            fs::copy(place.at("in.pcap"), place.at(name)).expect("it can be copied");
            let ran = place.run(&["run", "test.catena", "--in", "in.pcap", option, name, "--workers", workers]);
            assert!(ran.status.success(), "{}", err(&ran));
            let mut reader = catena_packet::pcap::Reader::open(place.at(name)).expect("a capture");
            assert!(reader.next().expect("a whole one").is_none(), "{chain} {option} {name}: old packets");
        }
    }
}

#[test]
fn two_runs_do_not_write_one_file() {
    let place = Place::new(&monitor("flows"));
    fs::write(place.at("new.pcap"), b"").expect("it can be written");
    fs::hard_link(place.at("new.pcap"), place.at("hard.pcap")).expect("a hard link");
    let mut first = place
        .command(&["run", "test.catena", "--in", "gen:rate=1kpps,time=wall", "--out", "new.pcap", "--quiet"])
        .spawn()
        .expect("catena starts");
    let begun = std::time::Instant::now();
    while fs::metadata(place.at("new.pcap")).expect("it is there").len() == 0 {
        assert!(begun.elapsed().as_secs() < 60, "the first run begins");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = |args: &[&str]| place.run(&[&["run"], args].concat());
    for args in [
        &["plain.catena", "--in", "in.pcap", "--out", "new.pcap"][..],
        &["plain.catena", "--in", "in.pcap", "--out", "hard.pcap"],
        &["test.catena", "--in", "in.pcap", "--out", "third.pcap"],
    ] {
        let refused = second(args);
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(err(&refused).contains("another run of catena is writing this file"), "{args:?}: {}", err(&refused));
    }
    assert!(!place.at("third.pcap").exists(), "what was made for a run that does not begin is gone");
    // Others may be written, and devices by any number of runs.
    assert!(second(&["plain.catena", "--in", "in.pcap", "--out", "other.pcap"]).status.success());
    // SAFETY: the child is ours and not waited for yet, so the number is its own.
    assert_eq!(unsafe { libc::kill(first.id() as i32, libc::SIGINT) }, 0);
    assert!(first.wait().expect("it ends").success());
    assert!(second(&["plain.catena", "--in", "in.pcap", "--out", "new.pcap"]).status.success(), "the file is free");
}

#[test]
fn no_output_has_no_name_and_nowhere_is_said_one_way() {
    let place = Place::new(&monitor(""));
    place.refuses(&["--in", "in.pcap"], &["export", "an empty name"]);
    let checked = place.run(&["check", "test.catena"]);
    assert_eq!(checked.status.code(), Some(1));
    place.write("test.catena", BOTH.as_bytes());
    for nowhere in ["null", "/dev/null"] {
        let ran = place.run(&["run", "test.catena", "--in", "in.pcap", "--out", nowhere, "--back-out", nowhere]);
        assert!(ran.status.success(), "{nowhere}: {}", err(&ran));
    }
    place.refuses(
        &["--in", "in.pcap", "--out", "x.txt"],
        &["--out x.txt: neither the name of a capture", "nor an interface"],
    );
    place.refuses(&["--in", "lo", "--out", "lo"], &["--in lo", "--out lo", "take in again what it sends"]);
}

#[test]
fn devices_may_take_several_outputs() {
    let place = Place::new(&monitors("/dev/null", "/dev/null"));
    let output = place.run(&["run", "test.catena", "--in", "in.pcap", "--out", "null"]);
    assert!(output.status.success(), "{}", err(&output));
    // A device has no number behind its name.
    let args = ["run", "test.catena", "--in", "in.pcap", "--workers", "2"];
    assert!(place.run(&args).status.success() && !PathBuf::from("/dev/null.1").exists());
    // One log for the table and the errors, as shells make it with `> log 2>&1`.
    let log = || File::options().append(true).create(true).open(place.at("log")).expect("it can be written");
    let mut command = place.command(&["run", "test.catena", "--in", "in.pcap", "--out", "x.pcap"]);
    assert!(command.stdout(log()).stderr(log()).status().expect("catena starts").success());
    assert!(String::from_utf8_lossy(&place.read("log")).contains("500 packets in = 500 out"));
}

#[test]
fn sources_are_opened_before_anything_is_emptied() {
    let place = Place::new(BOTH);
    for name in ["out.pcap", "back.pcap"] {
        place.write(name, OLD);
    }
    place.write("bad.pcap", b"not a capture");
    place.write("empty.pcap", b"");
    for bad in ["bad.pcap", "empty.pcap"] {
        place.refuses(&["--in", "in.pcap", "--back-in", bad, "--out", "out.pcap", "--back-out", "back.pcap"], &[bad]);
        place.refuses(&["--in", bad, "--back-in", "in.pcap", "--out", "out.pcap", "--back-out", "back.pcap"], &[bad]);
    }
    // An output that cannot be written leaves the other ones as they were.
    place.refuses(&["--in", "in.pcap", "--out", "out.pcap", "--back-out", "none/back.pcap"], &["none/back.pcap"]);
    place.write("test.catena", monitor("none/flows").as_bytes());
    place.refuses(&["--in", "in.pcap", "--out", "out.pcap"], &["`mon`", "none/flows: cannot be written", "no folder"]);
}

#[test]
fn a_pipeline_that_does_not_run_empties_no_export() {
    let place = Place::new(&monitor("flows"));
    place.write("flows", OLD);
    for args in [
        &["check", "test.catena"][..],
        &["show", "test.catena", "--stage", "reduced"],
        &["run", "test.catena", "--in", "nowhere.pcap"],
        &["run", "test.catena", "--in", "in.pcap", "--out", "x.txt"],
        &["run", "test.catena", "--in", "in.pcap", "--plan", "none.json"],
        &["run", "test.catena", "--in", "in.pcap", "--core", "999999"],
    ] {
        place.run(args);
        assert_eq!(place.read("flows"), OLD, "{args:?}");
    }
    assert!(place.run(&["run", "test.catena", "--in", "in.pcap", "--workers", "2"]).status.success());
    assert!(place.read("flows").starts_with(b"{\"ts\":") && place.read("flows.1").starts_with(b"{\"ts\":"));
}

#[test]
fn records_on_standard_output_are_whole_and_alone() {
    for (name, workers) in [("-", "1"), ("-", "4"), ("/dev/stdout", "2")] {
        let place = Place::new(&monitor(name));
        let args =
            ["run", "test.catena", "--in", "gen:flows=20k,count=40k,seed=1", "--seed", "1", "--workers", workers];
        let output = place.run(&args);
        assert!(output.status.success(), "{}", err(&output));
        let text = String::from_utf8(output.stdout.clone()).expect("it is text");
        let packets: u64 = text
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .map(|record| record["orig_pkts"].as_u64().unwrap_or(0) + record["resp_pkts"].as_u64().unwrap_or(0))
            .sum();
        assert_eq!(packets, 40_000, "{workers} workers");
        assert!(err(&output).contains("40,000 packets in"), "the table goes to standard error");
    }
}

#[test]
fn equal_seeds_and_packets_give_equal_exports() {
    for format in ["ipfix", "json"] {
        let chain = format!(
            "chain c {{ mon = Monitor(export = \"flows\", format = {format}, idle_timeout = 1s, max_flows = 3000)\nin -> mon -> out }}\n"
        );
        let place = Place::new(&chain);
        let traffic = "gen:flows=20k,new=5k/s,dist=fixed(3),rate=20kpps,duration=10s,seed=7";
        let exports: Vec<Vec<u8>> = (0..4)
            .map(|_| {
                let output = place.run(&["run", "test.catena", "--in", traffic, "--seed", "3"]);
                assert!(output.status.success(), "{}", err(&output));
                place.read("flows")
            })
            .collect();
        assert!(exports[0].len() > 1_000_000, "{} bytes", exports[0].len());
        assert!(exports.iter().all(|export| *export == exports[0]), "{format}");
        // As fast as it goes: the writer falls behind, and the run waits for it.
        let traffic = "gen:flows=400k,count=400k,seed=7";
        let exports: Vec<Vec<u8>> = (0..2)
            .map(|_| {
                let output = place.run(&["run", "test.catena", "--in", traffic, "--seed", "3", "--json"]);
                let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
                let gauges = report["modules"][0]["gauges"].as_array().expect("the monitor has gauges");
                let lost = gauges.iter().find(|gauge| gauge["name"] == "records lost").expect("records are counted");
                assert_eq!(lost["value"], 0, "recorded traffic waits for its records");
                place.read("flows")
            })
            .collect();
        assert!(exports[0] == exports[1], "{format}, fast");
    }
}
