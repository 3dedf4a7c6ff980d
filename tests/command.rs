//! The command as a Unix user meets it: what it prints where, what it exits with.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn catena(args: &[&str], stdin: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("catena starts");
    let (mut pipe, input) = (child.stdin.take().expect("a pipe"), stdin.to_vec());
    // It may end before it has read all.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&input)));
    let output = child.wait_with_output().expect("catena ends");
    writer.join().expect("the writer ends");
    output
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A chain file in a folder of its own.
fn chain(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("test.catena");
    std::fs::write(&path, text).expect("a chain file");
    (folder, path)
}

#[test]
fn usage_errors_exit_with_2() {
    for args in [&["walk"][..], &["run"], &["run", "x.catena", "--workers", "0"], &["show", "x", "--stage", "moon"]] {
        let output = catena(args, b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
        assert!(out(&output).is_empty());
    }
    assert!(out(&catena(&["--version"], b"")).starts_with("catena "));
}

#[test]
fn a_wrong_name_is_shown_with_the_likely_one() {
    let (_folder, path) = chain("chain c { in -> ACl(rules = [\"permit any\"]) -> out }\n");
    let output = catena(&["check", &path.display().to_string()], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("test.catena:1:17") && err(&output).contains("`ACL`"), "{}", err(&output));
    assert!(out(&output).contains("1 error"), "{}", out(&output));
}

#[test]
fn what_only_a_function_can_know_is_shown_with_its_place() {
    let (folder, path) = chain("chain c {\n    in -> ACL(rules = file(\"bad.acl\")) -> out\n}\n");
    std::fs::write(folder.path().join("bad.acl"), "permit any\npermitt tcp from any to any\n").expect("a rule file");
    let check = catena(&["check", &path.display().to_string()], b"");
    assert_eq!(check.status.code(), Some(1));
    assert!(err(&check).contains("bad.acl:2") && err(&check).contains("permit"), "{}", err(&check));
    let run = catena(&["run", &path.display().to_string(), "--in", "gen:count=1"], b"");
    assert!(err(&run).contains("test.catena:2: ") && err(&run).contains("bad.acl:2"), "{}", err(&run));
}

#[test]
fn a_port_that_is_none_is_said_and_nothing_is_emptied() {
    let (folder, path) = chain("chain c { in -> out }\n");
    let path = path.display().to_string();
    let target = folder.path().join("keep.pcap");
    std::fs::write(&target, "keep").expect("a file");
    let text = target.display().to_string();
    let output = catena(&["run", &path, "--in", "nowhere0", "--out", &text], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("nowhere0: neither a file nor an interface"), "{}", err(&output));
    let output = catena(&["run", &path, "--in", "gen:flowz=3", "--out", &text], b"");
    assert!(err(&output).contains("flows"), "{}", err(&output));
    let output = catena(&["run", &path, "--in", &text, "--out", &text], b"");
    assert!(err(&output).contains("would be overwritten"), "{}", err(&output));
    assert_eq!(std::fs::read(&target).expect("the file is there"), b"keep");
    let output = catena(&["run", &path, "--in", "gen:count=1", "--out", "x.txt"], b"");
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
}

#[test]
fn captures_go_through_pipes() {
    let (folder, path) = chain("chain c { in -> out }\n");
    let path = path.display().to_string();
    let made = catena(&["run", &path, "--in", "gen:count=50,size=100", "--out", "-"], b"");
    assert!(made.status.success(), "{}", err(&made));
    assert!(err(&made).contains("50 packets in = 50 out + 0 dropped"), "the table goes to standard error");
    let file = folder.path().join("copy.pcap.gz");
    let copied = catena(&["run", &path, "--in", "-", "--out", &file.display().to_string()], &made.stdout);
    assert!(out(&copied).contains("50 packets in = 50 out"), "{}{}", out(&copied), err(&copied));
    let again = catena(&["run", &path, "--in", &file.display().to_string(), "--out", "-"], b"");
    assert_eq!(again.stdout, made.stdout, "the same bytes after a file in gzip");
    let cut = catena(&["run", &path, "--in", "-"], &made.stdout[..made.stdout.len() - 7]);
    assert_eq!(cut.status.code(), Some(1));
    assert!(err(&cut).contains("cut off after record 49") && out(&cut).contains("49 packets in"), "{}", err(&cut));
}

#[test]
fn fmt_changes_only_layout() {
    let (_folder, path) = chain("chain   c{in->  out} # why\n");
    let text = path.display().to_string();
    let before = out(&catena(&["show", &text, "--format", "json"], b""));
    assert_eq!(catena(&["fmt", "--check", &text], b"").status.code(), Some(1));
    assert!(catena(&["fmt", &text], b"").status.success());
    assert!(catena(&["fmt", "--check", &text], b"").status.success());
    let source = std::fs::read_to_string(&path).expect("the file is there");
    assert!(source.contains("# why") && source.contains("in -> out"), "{source}");
    let strip = |json: &str| {
        let mut value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        forget_places(&mut value);
        value
    };
    assert_eq!(strip(&before), strip(&out(&catena(&["show", &text, "--format", "json"], b""))));
}

fn forget_places(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.remove("span");
            fields.values_mut().for_each(forget_places);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(forget_places),
        _ => {}
    }
}

#[test]
fn every_stage_is_shown_in_every_form() {
    for stage in ["policy", "host"] {
        for (format, sign) in [("text", "internet"), ("json", "{"), ("dot", "digraph"), ("svg", "<svg")] {
            let output = catena(&["show", "examples/edge.catena", "--stage", stage, "--format", format], b"");
            if format == "svg" && err(&output).contains("cannot be run") {
                catena_testing::skip("Graphviz is not installed", "install graphviz");
                continue;
            }
            assert!(output.status.success() && out(&output).contains(sign), "{stage} {format}: {}", err(&output));
        }
    }
}

#[test]
fn lemurs_chains_parse_and_check_names_what_is_missing() {
    for file in ["acl", "branch", "chain1", "chain2", "chain3", "chain4", "chain5"] {
        let path = format!("examples/lemur/{file}.catena");
        let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&path)).expect("the example");
        assert!(catena(&["fmt", "-"], &text).status.success(), "{file} parses");
        let output = catena(&["check", &path], b"");
        let unexpected: Vec<String> = err(&output)
            .lines()
            .filter(|line| line.starts_with("error"))
            .filter(|line| {
                !line.starts_with("error[unknown-function]") && !line.starts_with("error[missing-parameter]")
            })
            .map(str::to_owned)
            .collect();
        assert!(unexpected.is_empty(), "{file}: {unexpected:?}");
    }
}

#[test]
fn manual_pages_have_what_a_user_looks_for() {
    let list = out(&catena(&["functions"], b""));
    for function in ["ACL", "IPv4Fwd", "LB", "Limiter", "Monitor", "NAT", "Native"] {
        assert!(list.contains(function), "{list}");
        let page = out(&catena(&["functions", function], b""));
        assert!(page.starts_with(function) && page.contains("Parameters") && page.len() > 1000, "{page}");
    }
    let output = catena(&["functions", "nat"], b"");
    assert!(err(&output).contains("did you mean `NAT`?"), "{}", err(&output));
}

#[test]
fn a_reduced_chain_says_what_was_taken_out_and_counts_the_same() {
    let text = "chain c {
    company = ACL(rules = [\"deny udp to any port 53\", \"permit udp\"])
    mon = Monitor()
    department = ACL(rules = [\"deny udp to any port 53\", \"deny udp to any port 1000-30000\", \"permit udp\"])
    in -> company -> mon -> department -> out
}
";
    let (_folder, path) = chain(text);
    let path = path.display().to_string();
    let shown = out(&catena(&["show", &path, "--stage", "reduced"], b""));
    let lines = [
        "duplicated department rule 1 of 3 company lets none",
        "duplicated department its look-up among 2 rules on the way out company finds",
        "unused company reading source address and destination address",
        "headers are parsed once a packet, by company",
        "company: ACL",
    ];
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    lines.iter().for_each(|line| assert!(shown.contains(line), "{line}: {shown}"));
    let json = out(&catena(&["show", &path, "--stage", "reduced", "--format", "json"], b""));
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["findings"][0]["logic"], "duplicated");
    assert_eq!(json["findings"][0]["taken_out"], true);
    assert_eq!(json["host"]["modules"][0]["name"], "company");

    let traffic = "gen:flows=1000,count=20k,dport=1-60000,seed=1";
    let run = |more: &[&str]| {
        let output = catena(&[&["run", &path, "--in", traffic, "--json", "--seed", "1"], more].concat(), b"");
        let report: serde_json::Value = serde_json::from_str(&out(&output)).expect("the report is JSON");
        let counts = |name: &str| {
            let modules = report["modules"].as_array().cloned().unwrap_or_default();
            let of = modules.into_iter().find(|row| row["name"] == name).expect("every function has a row");
            (of["packets"].clone(), of["drops"].clone())
        };
        (report["output"].clone(), ["company", "mon", "department"].map(counts))
    };
    let (as_it_is, reduced) = (run(&["--no-reduce"]), run(&[]));
    assert_eq!(as_it_is, reduced);
    let denied = reduced.1[2].1["denied by a rule"].as_u64();
    assert!(denied.is_some_and(|n| n > 5_000), "{reduced:?}");
    assert_eq!(catena(&["run", &path, "--in", traffic, "--no-reduce", "--early-drops"], b"").status.code(), Some(2));
}

#[test]
fn what_is_written_on_llvm_gets_its_words_as_they_were_typed() {
    for (command, variable) in [("analyze", "CATENA_ANALYZE"), ("reduce", "CATENA_REDUCE")] {
        let words = ["--input", "in.pcap", "nf.bc", "--", "-c", "--", "nf.rules"];
        let mut started = Command::new(env!("CARGO_BIN_EXE_catena"));
        let output = started.arg(command).args(words).env(variable, "/bin/echo").output().expect("catena starts");
        assert_eq!(out(&output), "--input in.pcap nf.bc -- -c -- nf.rules\n", "{command}: {}", err(&output));
        let mut started = Command::new(env!("CARGO_BIN_EXE_catena"));
        let output = started.args([command, "--", "make"]).env(variable, "/bin/echo").output().expect("catena starts");
        assert_eq!(out(&output), "-- make\n", "{command}: {}", err(&output));
    }
}

/// The manual pages of the book are those of the code.
#[test]
fn the_book_has_the_manuals_of_the_code() {
    let output = catena(&["functions", "--book", "docs/functions", "--check"], b"");
    assert!(output.status.success(), "{}", err(&output));
}

/// A table that finds no memory names its parameter, before anything is opened; also where a panic would print its way.
#[test]
fn a_table_that_finds_no_memory_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("out.pcap"), "kept").expect("a file");
    // 34 times 32,761 rules.
    let ports = (0..181).map(|port| port.to_string()).collect::<Vec<_>>().join(",");
    let rules = format!("permit tcp from any port {ports} to any port {ports}\n").repeat(34);
    std::fs::write(at("many.acl"), rules).expect("a file");
    for (call, parameter) in [
        ("Monitor(max_flows = 1000000000)", "max_flows"),
        ("Limiter(rate = 1pps, per = src, max_keys = 16777216)", "max_keys"),
        ("NAT(pool = 198.18.0.0/24, max_mappings = 10000000)", "max_mappings"),
        ("LB(vip = 192.0.2.1, backends = [10.0.0.1], max_connections = 10000000)", "max_connections"),
        ("ACL(rules = file(\"many.acl\"))", "rules"),
    ] {
        std::fs::write(at("c.catena"), format!("chain c {{ in <-> {call} <-> out }}")).expect("a chain");
        for command in ["check c.catena", "run c.catena --in gen:count=1 --out out.pcap"] {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit -v 1500000; exec \"$CATENA\" {command}")]).env("RUST_BACKTRACE", "1");
            let output = shell.env("CATENA", env!("CARGO_BIN_EXE_catena")).current_dir(folder.path()).output();
            let output = output.expect("sh starts");
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{call}, {command}: {error}");
            let said = error.contains(parameter) && error.contains("the system has no memory");
            assert!(said && !error.contains("panicked"), "{call}, {command}: {error}");
        }
        assert_eq!(std::fs::read(at("out.pcap")).expect("it is there"), b"kept");
    }
}

#[test]
fn a_file_of_many_functions_is_checked_in_the_memory_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let class = |n: usize| format!("class k{n} = \"src net 10.0.{n}.0/24\"\n");
    let chain = |n: usize| format!("chain c{n} for k{n} {{ in -> Limiter(rate = 1Mbps, per = src) -> out }}\n");
    // The tables of all of them together are 3 GB.
    let text: String = (0..200).map(class).chain((0..200).map(chain)).collect();
    std::fs::write(folder.path().join("many.catena"), text).expect("a chain file");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 1500000; exec \"$0\" check many.catena", env!("CARGO_BIN_EXE_catena")]);
    let output = shell.current_dir(folder.path()).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("200 functions"), "{said}");
}
