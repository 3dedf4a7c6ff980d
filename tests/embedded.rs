//! Runs that a program makes: by the library, with ports, sources and outputs of its own; and the page about it.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catena::{Batch, Chain, Context, FramesIn, LoadError, Module, Note, Pulled, Report, Run, Side, Source};
use serde_json::Value;

const EXAMPLE: &str = include_str!("../catena/examples/embed.rs");
const TWO_WAYS: &str =
    "chain c { in <-> ACL(rules = [\"deny udp to any port 53\", \"permit any\"]) <-> Monitor() <-> out }\n";

/// Keeps the bytes of what leaves.
#[derive(Clone, Default)]
struct Keep(Arc<Mutex<Vec<Vec<u8>>>>);

impl Module for Keep {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.0.lock().unwrap().extend(batch.iter().map(|packet| packet.data().to_vec()));
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

impl Keep {
    fn sorted(&self) -> Vec<Vec<u8>> {
        let mut kept = self.0.lock().unwrap().clone();
        kept.sort();
        kept
    }
}

/// A UDP datagram of host `n`, from inside or back to it; with a port that is let through or not.
fn datagram(n: u16, port: u16, is_back: bool) -> Vec<u8> {
    let (host, server) = ([[10, 0], n.to_be_bytes()].concat(), vec![192, 0, 2, 1]);
    let (from, to) = if is_back { (server, host) } else { (host, server) };
    let mut ip = [&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0][..], &from, &to].concat();
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let ports = if is_back { [port, 4000] } else { [4000, port] };
    let udp = [ports[0].to_be_bytes(), ports[1].to_be_bytes(), [0, 8], [0, 0]].concat();
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &ip, &udp].concat()
}

/// Every tenth is not let through.
fn frames(count: u16, is_back: bool) -> Vec<Vec<u8>> {
    (0..count).map(|n| datagram(n, if n % 10 == 0 { 53 } else { 80 }, is_back && n % 10 != 0)).collect()
}

fn source(frames: Vec<Vec<u8>>, port: u16) -> Box<dyn Source> {
    let timed = (1u64..).zip(frames).map(|(n, frame)| (n * 1_000, frame)).collect::<Vec<_>>();
    Box::new(FramesIn::new(timed, port))
}

fn chain(text: &str) -> Chain {
    Chain::parse("test", text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn packets_from_memory_go_both_ways_whatever_the_workers() {
    let chain = chain(TWO_WAYS);
    let there = frames(5_000, false);
    let back: Vec<_> = (0..3_000).map(|n| datagram(n, 443, true)).collect();
    let mut passed: Vec<_> = (0..5_000).filter(|n| n % 10 != 0).map(|n| datagram(n, 80, false)).collect();
    let mut returned = back.clone();
    passed.sort();
    returned.sort();
    for workers in [1, 3] {
        let (out, home) = (Keep::default(), Keep::default());
        let run = Run::of(&chain)
            .source(Side::In, source(there.clone(), 0))
            .exit(Side::In, Box::new(home.clone()))
            .source(Side::Out, source(back.clone(), 1))
            .exit(Side::Out, Box::new(out.clone()));
        let report: Report = run.workers(workers).start().and_then(catena::Running::join).expect("it runs");
        assert_eq!((report.input.packets, report.output.packets, report.dropped), (8_000, 7_500, 500), "{workers}");
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert!(out.sorted() == passed && home.sorted() == returned, "{workers} workers: other packets left");
    }
}

/// Gives the same packet again and again, live, until it is dropped.
struct Endless(Vec<u8>);

impl Source for Endless {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        let Some(mut packet) = cx.pool().take(self.0.len()) else { return Pulled::Idle };
        packet.fill(&self.0);
        batch.push(packet);
        Pulled::More
    }
}

#[test]
fn a_run_is_looked_at_from_any_thread() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<catena::Running>();
    is_shared::<Report>();
    is_shared::<catena::Failure>();
}

#[test]
fn a_run_ends_when_it_is_asked_to() {
    let chain = chain(TWO_WAYS);
    for workers in [1, 2] {
        let run = Run::of(&chain).source(Side::In, Box::new(Endless(datagram(1, 80, false)))).workers(workers);
        let running = run.start().expect("it starts");
        while running.packets() < 1_000 {
            assert!(!running.wait(Duration::from_millis(1)), "it ended by itself");
        }
        running.stop();
        assert!(running.wait(Duration::from_secs(30)), "it did not end");
        let report = running.join().expect("it ran");
        assert!(report.input.packets >= 1_000);
        assert_eq!(report.input.packets, report.output.packets + report.dropped);
    }
}

#[test]
fn one_call_runs_a_file_on_captures() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("c.catena"), TWO_WAYS).expect("it can be written");
    let made = catena::run(at("c.catena"), ["gen:flows=10,count=500,seed=3", &at("first.pcap")]).expect("it runs");
    let again = catena::run(at("c.catena"), [&at("first.pcap"), &at("second.pcap")]).expect("it runs");
    assert_eq!((made.input.packets, again.input.packets), (500, made.output.packets));
    assert_eq!(again.module("acl").or(again.module("ACL")).map(|row| row.packets), Some(again.input.packets));
    let over = catena::run(at("c.catena"), [&at("first.pcap"), &at("first.pcap")]).expect_err("it would be lost");
    assert!(over.to_string().contains("would be overwritten while it is read"), "{over}");
}

#[test]
fn what_is_wrong_comes_as_a_value() {
    let error = Chain::parse("test", "chain c { in -> ACL() -> Nothing() -> out }").expect_err("there is no Nothing");
    let LoadError::Wrong { diagnostics, .. } = &error else { panic!("{error}") };
    assert!(!diagnostics.is_empty() && error.to_string().contains("Nothing"), "{error}");
    let refused = chain("chain c { in -> Monitor(max_flows = 0) -> out }");
    let why = Run::of(&refused).inside("gen:count=1").and_then(Run::start).expect_err("no Monitor has room for none");
    assert!(why.to_string().starts_with("test:1: ") && why.to_string().contains("max_flows"), "{why}");
    let sound = chain(TWO_WAYS);
    let why = |run: Run<'_>| run.start().expect_err("it cannot start").to_string();
    assert!(why(Run::of(&sound)).contains("nothing comes from there"));
    let many = Run::of(&sound).inside("gen:count=1").expect("a port").workers(65);
    assert!(why(many).contains("workers 65: a run has 1 to 64"));
    let far = Run::of(&sound).inside("gen:count=1").expect("a port").first_core(Some(999_999));
    assert!(why(far).contains("first_core 999999: this process may run on"));
    let port = Run::of(&sound).inside("nowhere.pcap").err().expect("there is no such file").to_string();
    assert!(port.contains("inside nowhere.pcap: neither a file nor an interface"), "{port}");
}

#[test]
fn a_program_runs_a_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = "name = \"one\"\n[[server]]\nname = \"here\"\ncores = 2\nsteering_cores = 0\nshared = true\nclock = \"2GHz\"\n\
                nics = [\"40Gbps\"]\n";
    std::fs::write(folder.path().join("rack.toml"), rack).expect("it can be written");
    std::fs::write(folder.path().join("c.catena"), TWO_WAYS).expect("it can be written");
    let args = ["plan", "c.catena", "--rack", "rack.toml", "--profile", "none", "-o", "plan.json"];
    let made =
        Command::new(env!("CARGO_BIN_EXE_catena")).args(args).current_dir(&folder).output().expect("catena starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let written = std::fs::read_to_string(folder.path().join("plan.json")).expect("a plan");
    let plan = catena::Plan::from_json(&written).expect("what was written is read");
    let chain = chain(TWO_WAYS);
    let out = Keep::default();
    let run = Run::of(&chain).source(Side::In, source(frames(2_000, false), 0)).exit(Side::Out, Box::new(out.clone()));
    let run = run.planned(Some(catena::Planned::of(plan).expect("it is for one server")));
    let report = run.start().and_then(catena::Running::join).expect("it runs");
    let compared = report.planned.expect("it is held against the plan");
    assert_eq!(compared.functions.len(), 2);
    assert_eq!((report.input.packets, report.output.packets), (2_000, out.sorted().len() as u64));
    let other = self::chain("chain other { in -> Monitor() -> out }");
    let plan = catena::Planned::read(&folder.path().join("plan.json")).expect("a plan");
    let run = Run::of(&other).inside("gen:count=1").expect("a port").planned(Some(plan));
    let why = run.start().expect_err("it is for another file").to_string();
    assert!(why.contains("the plan is for other chains"), "{why}");
}

#[test]
fn a_plan_that_was_made_for_one_file_runs_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.catena");
    let of = |rule: &str| format!("chain a {{ in -> ACL(rules = [\"{rule}\"]) -> Monitor() -> out }}");
    std::fs::write(&file, of("permit any")).expect("it can be written");
    let made = || catena::plan(&file, ["gen:count=1", "null"]).expect("it can be planned");
    let run = |text: &str| {
        let chain = chain(text);
        let run = Run::of(&chain).inside("gen:count=1").expect("a port").planned(Some(made()));
        run.start().and_then(catena::Running::join).map_err(|error| error.to_string())
    };
    run(&of("permit any")).expect("it is the same");
    let why = run(&of("deny any")).expect_err("it is for another file");
    assert!(why.contains("the plan was made for a run of another file"), "{why}");
}

/// A report's rows of promises but for the rates that were measured.
fn promises(report: &Value) -> Vec<[Value; 4]> {
    let rows = report["promised"].as_array().map_or(&[][..], Vec::as_slice);
    rows.iter().map(|row| ["chain", "t_min_bps", "t_max_bps", "kept"].map(|key| row[key].clone())).collect()
}

const PROMISED: &str = "class web = \"tcp\"\nclass rest = \"udp\"\nchain a for web { promise 1Mbps..1Gbps in -> Monitor() -> out }\n\
    chain b for rest { in -> ACL(rules = [\"permit any\"]) -> out }\ncpu a : b = 1 : 2\n";

#[test]
fn the_library_runs_and_reports_what_the_command_does() {
    const TRAFFIC: &str = "gen:flows=50,size=128,proto=udp:1+tcp:1,rate=10Mbps,count=500,time=wall";
    let folder = tempfile::tempdir().expect("a folder");
    let own = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
        folder.path().join(name)
    };
    let edge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edge.catena");
    let (promised, too_much) =
        (own("c.catena", PROMISED), own("d.catena", &PROMISED.replace("1Mbps..1Gbps", "900Gbps..")));
    for (file, rows, notes) in [(&edge, None, 0), (&promised, Some(2), 0), (&too_much, Some(2), 1)] {
        for workers in [1, 2] {
            let (name, count) = (file.display().to_string(), workers.to_string());
            let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
            catena.args(["run", &name, "--in", TRAFFIC, "--workers", &count, "--seed", "5", "--json", "--quiet"]);
            let output = catena.output().expect("catena starts");
            let theirs: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let chain = Chain::load(file).expect("it is sound");
            let run = Run::of(&chain).inside(TRAFFIC).expect("a port").workers(workers).seed(Some(5));
            let ours = run.start().and_then(catena::Running::join).expect("it runs");
            let told: String = ours.notes.iter().map(|note| format!("catena: {note}\n")).collect();
            assert_eq!((String::from_utf8_lossy(&output.stderr), ours.notes.len()), (told.into(), notes), "{name}");
            let ours: Value = serde_json::from_str(&ours.json().expect("text")).expect("JSON");
            assert!(ours["deployment"].is_string() && ours["deployment"] == theirs["deployment"], "{name}");
            assert_eq!(promises(&ours), promises(&theirs), "{name}, {workers} workers");
            rows.iter().for_each(|rows| assert_eq!(promises(&ours).len(), *rows, "{name}: nothing is reported"));
        }
    }
}

/// Where a part of what is promised is planned for, nobody is told that all is kept.
#[test]
fn what_is_shown_of_too_much_is_a_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("d.catena");
    std::fs::write(&file, PROMISED.replace("1Mbps..1Gbps", "900Gbps..")).expect("it can be written");
    let show = |more: &[&str]| {
        let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
        let output = catena.args(["show", "--stage", "plan"]).arg(&file).args(more).output().expect("catena starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = show(&[]);
    assert!(code == Some(1) && text.starts_with("Not all that is promised is kept, but "), "{code:?} {text}");
    let plan: Value = serde_json::from_str(&show(&["--format", "json"]).1).expect("JSON");
    let part = plan["held"].as_f64().expect("a part");
    let planned = plan["chains"][0]["t_min_bps"].as_f64().expect("a rate");
    assert!(part < 1.0 && (planned - part * 900e9).abs() < 2.0, "{part} {planned}");
}

#[test]
fn one_call_keeps_promises_and_another_has_the_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.catena");
    std::fs::write(&file, PROMISED).expect("it can be written");
    let ports = ["gen:flows=50,size=128,proto=udp:1+tcp:1,rate=10Mbps,count=500,time=wall", "null"];
    let report = catena::run(&file, ports).expect("it runs");
    let kept: Vec<_> = report.promised.iter().flat_map(|promised| &promised.chains).map(|chain| chain.kept).collect();
    assert_eq!((kept, report.notes), (vec![Some(true), None], vec![]));
    let planned = catena::plan(&file, ports).expect("there is a plan");
    assert!(planned.plan().is_kept() && planned.tasks().is_some(), "what is promised is held by tasks");
    let (digest, chain) = (planned.deployment(), Chain::load(&file).expect("it is sound"));
    let run = Run::of(&chain).inside(ports[0]).expect("a port").planned(Some(planned));
    let report = run.start().and_then(catena::Running::join).expect("it runs");
    assert!(digest.is_some() && report.deployment == digest, "another plan ran");
    let why = catena::plan(folder.path().join("none.catena"), ports).expect_err("there is no such file").to_string();
    assert!(why.contains("none.catena: there is no such file"), "{why}");
}

#[test]
fn notes_are_told_and_not_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = folder.path().join("flows.json");
    let text = format!("chain c {{ in -> Monitor(export = \"{}\") -> out }}", export.display());
    let (chain, notes) = (chain(&text), Mutex::new(Vec::new()));
    for workers in [2, 1] {
        let run = Run::of(&chain).inside("gen:count=1000").expect("a port").workers(workers);
        let run = run.tell(|note| notes.lock().unwrap().push(note.clone()));
        run.start().and_then(catena::Running::join).expect("it runs");
    }
    let numbered = folder.path().join("flows.json.1");
    assert_eq!(*notes.lock().unwrap(), [Note::LeftAsItWas(numbered)]);
}

#[test]
fn the_page_shows_the_example() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/embed.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let (before, rest) = text.split_once("<!-- embed.rs -->\n```rust\n").expect("the page has a place for it");
    let (shown, after) = rest.split_once("```\n").expect("the block ends");
    if std::env::var_os("CATENA_BLESS").is_some() {
        let blessed = format!("{before}<!-- embed.rs -->\n```rust\n{EXAMPLE}```\n{after}");
        std::fs::write(&page, blessed).expect("the page can be written");
        return;
    }
    assert!(
        shown == EXAMPLE,
        "docs/embed.md shows another program than catena/examples/embed.rs: CATENA_BLESS=1 rewrites it"
    );
}

#[test]
fn the_example_runs() {
    // In the profile of this test, so that the crates are not built anew.
    let folder = Path::new(env!("CARGO_BIN_EXE_catena")).parent().and_then(Path::file_name).expect("a folder");
    let profile = if folder == "debug" { "dev".as_ref() } else { folder };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--package", "catena", "--example", "embed", "--profile"]).arg(profile);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo, which runs this test, is there");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains(" runs guard/") && printed.contains("1,000,000 packets in = "), "{printed}");
    assert!(printed.ends_with("3 from memory, 1 dropped, 2 kept\n"), "{printed}");
}
