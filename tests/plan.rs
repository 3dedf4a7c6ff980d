//! `catena plan` as its user meets it: tables, comparisons, drawings and messages, each held against
//! `tests/plan/NAME.expected`. `CATENA_BLESS=1 cargo test -p catena --test main plan` writes them anew; read the
//! difference before committing it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use catena_plan::plan::{Device, Plan};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A plan of Catena's own functions, by papers' figures, which are the same on every machine.
fn own(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    if !args.contains(&"--profile") {
        return own(&[args, &["--profile", "none"]].concat());
    }
    command.arg("plan").args(args).current_dir(root()).output().expect("catena starts")
}

/// A plan of the paper's functions, which most racks and chains here are for.
fn plan(args: &[&str]) -> Output {
    own(&[args, &["--as", "lemur"]].concat())
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The text with times, which differ from run to run, taken out.
fn timeless(text: &str) -> String {
    let words = |line: &str| {
        let mut kept: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            let number = kept.last().is_some_and(|last| last.parse::<f64>().is_ok());
            if number && (word == "ms" || word == "s") {
                kept.pop();
                kept.push("TIME");
            } else {
                kept.push(word);
            }
        }
        kept.join(" ")
    };
    text.lines().map(|line| words(line) + "\n").collect()
}

#[track_caller]
fn expect(name: &str, text: &str) {
    let path = root().join("tests/plan").join(name).with_extension("expected");
    if std::env::var_os("CATENA_BLESS").is_some() {
        std::fs::write(&path, text).expect("it can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(expected, text, "{name} has changed");
}

/// Standard output and error, as a terminal shows them.
fn both(output: &Output) -> String {
    out(output) + &err(output)
}

const LEMUR: &str = "examples/racks/lemur.toml";
const CHAINS: [&str; 4] = [
    "examples/lemur/chain1.catena",
    "examples/lemur/chain2.catena",
    "examples/lemur/chain3.catena",
    "examples/lemur/chain4.catena",
];

fn with<'a>(files: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    files.iter().chain(more).copied().collect()
}

#[test]
fn one_chain_is_planned_and_explained() {
    let output = plan(&["examples/lemur/chain3.catena", "--rack", LEMUR]);
    assert!(output.status.success(), "{}", err(&output));
    expect("one_chain", &both(&output));
}

#[test]
fn what_cannot_be_kept_names_what_would_help() {
    let output = plan(&["examples/lemur/chain3.catena", "--rack", LEMUR, "--what-if", "cores=4"]);
    assert_eq!(output.status.code(), Some(1));
    expect("broken", &both(&output));
}

#[test]
fn a_smart_nic_takes_what_it_can() {
    let output = plan(&["examples/lemur/chain5.catena", "--rack", "examples/racks/lemur-smartnic.toml"]);
    assert!(output.status.success(), "{}", err(&output));
    expect("smart_nic", &both(&output));
}

#[test]
fn an_openflow_switch_has_its_own_order() {
    let output = plan(&["examples/lemur/chain3.catena", "--rack", "examples/racks/lemur-openflow.toml"]);
    assert!(output.status.success(), "{}", err(&output));
    expect("openflow", &both(&output));
}

#[test]
fn strategies_stand_side_by_side() {
    let output = plan(&with(&CHAINS[1..3], &["--rack", LEMUR, "--compare"]));
    assert!(output.status.success(), "{}", err(&output));
    expect("compare", &timeless(&both(&output)));
}

#[test]
fn every_example_of_lemur_is_compared() {
    let folder = root().join("examples/lemur");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| format!("examples/lemur/{}", entry.expect("an entry").file_name().to_string_lossy()))
        .collect();
    files.sort();
    let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
    args.extend(["--rack", LEMUR, "--compare", "--time-limit", "5s"]);
    let output = plan(&args);
    let text = out(&output);
    assert!(err(&output).lines().all(|line| !line.starts_with("error")), "{}", err(&output));
    for strategy in ["exact", "lemur", "hw", "sw", "min-bounce", "greedy", "no-profiling", "no-cores", "e2"] {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(strategy)), "{strategy}: {text}");
    }
}

#[test]
fn the_whole_plan_is_json_and_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let (json, svg) = (folder.path().join("plan.json"), folder.path().join("plan.svg"));
    let (json_name, svg_name) = (json.display().to_string(), svg.display().to_string());
    let args = ["--rack", LEMUR, "--strategy", "lemur", "--json", "-o", &json_name, "--draw", &svg_name];
    let output = plan(&with(&CHAINS[2..3], &args));
    assert!(output.status.success(), "{}", err(&output));
    let printed = Plan::from_json(&out(&output)).expect("a plan");
    let written = Plan::from_json(&std::fs::read_to_string(&json).expect("it is there")).expect("a plan");
    assert_eq!(printed, written);
    assert!(printed.is_kept() && printed.chains.len() == 1);
    let cores: usize = printed.servers.iter().map(|server| server.workers.len()).sum();
    assert_eq!(cores as f64, printed.cores_used(), "every core has a number");
    let drawing = std::fs::read_to_string(&svg).expect("it is there");
    assert!(drawing.starts_with("<svg") && drawing.trim_end().ends_with("</svg>") && drawing.contains("chain3"));
}

/// The device of each function of a chain with `unparsed = drop` or without, and the plan as it is printed.
fn with_and_without_guard(path: &str, args: &[&str]) -> [(Vec<(String, Device)>, String); 2] {
    let folder = tempfile::tempdir().expect("a folder");
    [("unparsed = drop", "guarded.catena"), ("", "open.catena")].map(|(statement, name)| {
        let file = folder.path().join(name).display().to_string();
        std::fs::write(&file, format!("chain c {{ promise 1Gbps..  {statement}\n {path} }}\n")).expect("a chain file");
        let output = plan(&with(&[&file, "--json"], args));
        let planned = Plan::from_json(&out(&output)).unwrap_or_else(|_| panic!("{}", both(&output)));
        let functions = planned.chains.iter().flat_map(|chain| &chain.functions);
        let devices = functions.map(|function| (function.name.clone(), function.device)).collect();
        (devices, both(&plan(&with(&[&file], args))))
    })
}

#[test]
fn what_drops_unparsed_frames_is_on_a_server() {
    let on = |names: [&str; 3], devices: [Device; 3]| -> Vec<(String, Device)> {
        names.map(str::to_owned).into_iter().zip(devices).collect()
    };
    let said = "`unparsed = drop` is done on a server";
    use Device::{P4Switch as Switch, Server};
    for strategy in ["exact", "hw", "lemur", "greedy", "min-bounce"] {
        let args = ["--rack", LEMUR, "--strategy", strategy];
        let names = ["acl", "encrypt", "nat"];
        let [guarded, open] = with_and_without_guard("in -> ACL() -> Encrypt() -> NAT() -> out", &args);
        assert_eq!(guarded.0, on(names, [Server, Server, Switch]), "{strategy}");
        assert_eq!(open.0[0].1, Switch, "{strategy}");
        assert!(guarded.1.contains(said) && !open.1.contains(said), "{}", guarded.1);
        // On the way back packets meet the last function first.
        let [guarded, _] = with_and_without_guard("in <-> ACL() <-> Encrypt() <-> NAT() <-> out", &args);
        assert_eq!(guarded.0, on(names, [Server; 3]), "{strategy}");
    }
    // A SmartNIC does not do it either.
    let args = ["--rack", "examples/racks/lemur-smartnic.toml", "--strategy", "hw"];
    let [guarded, open] = with_and_without_guard("in -> FastEncrypt() -> Limiter() -> out", &args);
    assert_eq!((guarded.0[0].1, open.0[0].1), (Server, Device::SmartNic), "{}", guarded.1);
}

#[test]
fn e2_offloads_nothing_that_drops_unparsed_frames() {
    let args = ["--rack", LEMUR, "--strategy", "e2"];
    let [guarded, open] = with_and_without_guard("in -> ACL() -> Encrypt() -> out", &args);
    assert_eq!((guarded.0[0].1, open.0[0].1), (Device::Server, Device::P4Switch), "{} {}", guarded.1, open.1);
}

#[test]
fn no_way_past_what_drops_unparsed_frames_is_planned() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.catena").display().to_string();
    for (path, said) in [
        (
            "in -> [ \"tcp\": ACL(), else: ] -> out",
            "c: in: `unparsed = drop` is done on a server in front of a function",
        ),
        ("in -> ACL() -> out\n out -> in", "some packets meet none"),
        ("in -> IPv4Fwd() -> ACL() -> out", "in front of IPv4Fwd, which no server runs"),
    ] {
        std::fs::write(&file, format!("chain c {{ promise 1Gbps..  unparsed = drop\n {path} }}\n"))
            .expect("a chain file");
        let output = plan(&[&file, "--rack", LEMUR]);
        assert_eq!(output.status.code(), Some(1), "{}", both(&output));
        assert!(err(&output).contains(said), "{}", both(&output));
        std::fs::write(&file, format!("chain c {{ promise 1Gbps..\n {path} }}\n")).expect("a chain file");
        let output = plan(&[&file, "--rack", LEMUR]);
        assert!(!both(&output).contains("cannot be planned"), "{}", both(&output));
    }
}

/// What the guard costs is counted where it was measured what a branch does.
#[test]
fn what_drops_unparsed_frames_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile.json");
    std::fs::write(&profile, PROFILE.replace("\"queue\"", "\"branch\": 40.0, \"queue\"")).expect("a profile");
    let file = folder.path().join("c.catena").display().to_string();
    let cycles = |statement: &str| -> Vec<f64> {
        let chain = format!("chain c {{ promise 10Mbps..  {statement}\n in -> IPv4Fwd() -> NAT() -> out }}\n");
        std::fs::write(&file, chain).expect("a chain file");
        let rack = "examples/racks/this-machine.toml";
        let output = plan(&[&file, "--rack", rack, "--json", "--profile", &profile.display().to_string()]);
        let planned = Plan::from_json(&out(&output)).unwrap_or_else(|_| panic!("{}", both(&output)));
        planned.chains.iter().flat_map(|chain| &chain.functions).filter_map(|function| function.cycles).collect()
    };
    let (guarded, open) = (cycles("unparsed = drop"), cycles(""));
    let more: Vec<f64> = guarded.iter().zip(&open).map(|(with, without)| (with - without).round()).collect();
    assert_eq!(more, [40.0, 0.0], "{guarded:?} {open:?}");
}

/// A profile in which forwarding was measured.
const PROFILE: &str = r#"{
    "version": 1,
    "machine": { "processor": "test", "clock_hz": 2.5e9, "cores": 2, "date": "2026-01-01T00:00:00Z" },
    "overheads": { "visit": 100.0, "spread": 50.0, "queue": 20.0, "classify": 10.0 },
    "functions": {
        "IPv4Fwd": {
            "server": { "unit": "", "base": 100.0, "per_unit": 0.0, "line_error": 0.0, "worst_factor": 1.1 }
        }
    }
}"#;

#[test]
fn a_margin_is_reckoned_with_as_cost() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = folder.path().join("x.catena");
    std::fs::write(&chain, "chain x { in -> Monitor -> UrlFilter -> out }\n").expect("a chain file");
    let chain = chain.display().to_string();
    // Of functions, and of all that a packet costs: the framework too.
    let cycles = |margin: &[&str]| -> Vec<f64> {
        let rack = ["--rack", "examples/racks/this-machine.toml", "--json"];
        let output = plan(&[&[chain.as_str()][..], &rack, margin].concat());
        let plan = Plan::from_json(&out(&output)).unwrap_or_else(|_| panic!("{}", both(&output)));
        let functions = plan.chains.iter().flat_map(|chain| &chain.functions).filter_map(|function| function.cycles);
        let subgroups = plan.servers.iter().flat_map(|server| &server.subgroups).map(|group| group.cycles);
        functions.chain(subgroups).collect()
    };
    let (profiled, careful) = (cycles(&[]), cycles(&["--margin", "10"]));
    assert!(profiled.len() == 3 && profiled[2] > profiled[0] + profiled[1] + 100.0, "{profiled:?}");
    assert_eq!(profiled.len(), careful.len());
    assert!(profiled.iter().zip(&careful).all(|(a, b)| (b / a - 1.1).abs() < 1e-9), "{profiled:?} {careful:?}");
    assert!(err(&plan(&with(&CHAINS[2..3], &["--rack", LEMUR, "--margin=2000"]))).contains("--margin"));
}

#[test]
fn what_was_measured_counts_and_bears_no_mark() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile.json");
    std::fs::write(&profile, PROFILE).expect("a profile");
    let profile_name = profile.display().to_string();
    let args =
        ["examples/lemur/chain2.catena", "--rack", "examples/racks/this-machine.toml", "--profile", &profile_name];
    let output = plan(&with(&args, &["--what-if", "chain2.t_min=500Mbps"]));
    assert!(output.status.success(), "{}", both(&output));
    expect("measured", &both(&output));
    assert!(out(&output).contains("ipv4fwd ") && out(&output).contains("encrypt*"), "{}", out(&output));

    std::fs::write(&profile, PROFILE.replace("\"version\": 1", "\"version\": 7")).expect("a profile");
    assert!(err(&plan(&args)).contains("version 7 of the format, expected 1"));
}

#[test]
fn e2_plans_as_the_others_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("profile.json"), PROFILE).expect("a profile");
    let (profile, json) = (at("profile.json"), at("plan.json"));
    let rack = "examples/racks/central-office.toml";
    let args = ["examples/lemur/chain3.catena", "--rack", rack, "--profile", &profile, "--strategy", "e2", "-o", &json];
    let output = plan(&args);
    assert!(output.status.success(), "{}", both(&output));
    expect("e2", &out(&output));
    // It is written, judged when it is read, and says what runs.
    let plan = Plan::from_json(&std::fs::read_to_string(&json).expect("it is there")).expect("a plan");
    let deployment = plan.deployment.as_ref().expect("something runs");
    assert!(plan.is_kept() && plan.strategy == "e2" && !deployment.instances.is_empty());
}

#[test]
fn e2_stands_in_the_comparison_as_the_others_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile.json");
    std::fs::write(&profile, PROFILE).expect("a profile");
    let profile_name = profile.display().to_string();
    let args = ["--rack", LEMUR, "--compare", "--profile", &profile_name];
    let row = |text: &str| text.lines().find(|line| line.starts_with("e2 ")).map(str::to_owned);
    let text = out(&plan(&with(&CHAINS[2..3], &args)));
    assert!(row(&text).is_some_and(|row| row.starts_with("e2            kept")), "{text}");
    // Without the profile nobody knows what forwarding costs on a server: it is on the switch from the start.
    let text = out(&plan(&with(&CHAINS[2..3], &args[..3])));
    assert!(row(&text).is_some_and(|row| row.starts_with("e2            kept")), "{text}");
    // Much more than the rack has is not carried.
    let text = out(&plan(&with(&CHAINS[2..3], &with(&args, &["--what-if", "chain3.t_min=50Gbps"]))));
    assert!(text.contains("  e2: ") && text.contains("cores"), "{text}");
}

#[test]
fn plans_of_another_version_are_refused() {
    assert!(Plan::from_json("{\"version\": 99}").expect_err("refused").contains("version 99"));
    assert!(Plan::from_json("[]").is_err() && Plan::from_json("").is_err());
}

#[test]
fn wrong_inputs_are_shown_with_their_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let (rack, chain) = (folder.path().join("rack.toml"), folder.path().join("c.catena"));
    let good = std::fs::read_to_string(root().join(LEMUR)).expect("the example");
    std::fs::write(&rack, good.replace("socket = 0", "socket = 2")).expect("a rack");
    let rack_name = rack.display().to_string();
    let output = plan(&["examples/lemur/chain3.catena", "--rack", &rack_name]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("rack.toml:22:") && err(&output).contains("socket 2"), "{}", err(&output));

    std::fs::write(&chain, "chain c { in -> Dedupp -> ACL -> out }\n").expect("a chain");
    let chain_name = chain.display().to_string();
    let output = plan(&[&chain_name, "--rack", LEMUR]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("c.catena:1:17") && err(&output).contains("Dedupp"), "{}", err(&output));

    std::fs::write(&rack, good.replace("name = \"nf1\"", "name = \"tofino\"")).expect("a rack");
    let output = plan(&["examples/lemur/chain3.catena", "--rack", &rack_name]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("rack.toml:17:") && err(&output).contains("both called `tofino`"),
        "{}",
        err(&output)
    );

    for (edit, word) in [("corse=8", "did you mean `cores`?"), ("chain9.t_min=1Gbps", "did you mean `chain3`?")] {
        let output = plan(&["examples/lemur/chain3.catena", "--rack", LEMUR, "--what-if", edit]);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains(word), "{}", err(&output));
    }
}

#[test]
fn what_is_no_input_is_said_with_what_was_expected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (empty, binary) = (file("empty", b""), file("binary", b"\xff\xfe"));
    let native = file("native.catena", b"chain c { in -> Native(lib = \"f.so\") -> out }\n");
    let old = file("profile.json", b"{\n \"version\": 99\n}\n");
    let chain = "examples/lemur/chain3.catena";
    for (args, said) in [
        (&["none.catena", "--rack", LEMUR][..], "none.catena: there is no such file; expected a chain file"),
        (&["examples", "--rack", LEMUR], "examples: this is a folder; expected a chain file"),
        (&[&empty, "--rack", LEMUR], "there is no chain to plan"),
        (&[chain, "--rack", "none.toml"], "none.toml: there is no such file; expected a rack"),
        (&[chain, "--rack", &binary], "binary: this is no text: byte 0 is not UTF-8; expected a rack"),
        (&[chain, "--rack", LEMUR, "--profile", &empty], "empty:1: the file is empty; `catena profile` writes"),
        (&[chain, "--rack", LEMUR, "--profile", &old], "profile.json:2: version 99"),
        (&[&native, "--rack", LEMUR], "write that into a profile"),
        (&["examples/lemur/chain1.catena", "--rack", "examples/racks/central-office.toml"], "`catena profile IPv4Fwd`"),
        (&[chain, "--rack", LEMUR, "--draw", "none/plan.svg"], "plan.svg: cannot be written: there is no folder none"),
        (
            &[chain, "--rack", LEMUR, "--what-if", "chain3.t_min=100Gbps", "--what-if", "port=40Gbps"],
            "than the 40 Gbit/s",
        ),
    ] {
        let output = plan(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(both(&output).contains(said), "{args:?}: {}", both(&output));
    }
}

#[test]
fn a_switch_gets_no_function_that_catena_has_no_program_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.catena").display().to_string();
    std::fs::write(
        &file,
        "chain c { promise 100Mbps.. in -> ACL(rules = \"permit any\") -> NAT(pool = 198.51.100.0/24) -> out }\n",
    )
    .expect("a chain file");
    let devices = |plan: fn(&[&str]) -> Output, strategy: &str| -> Vec<Device> {
        let output = plan(&[&file, "--rack", LEMUR, "--strategy", strategy, "--json"]);
        let planned = Plan::from_json(&out(&output)).unwrap_or_else(|_| panic!("{}", both(&output)));
        planned.chains.iter().flat_map(|chain| &chain.functions).map(|function| function.device).collect()
    };
    for strategy in ["exact", "hw", "lemur", "greedy"] {
        assert_eq!(devices(own, strategy), [Device::Server; 2], "{strategy}");
    }
    assert_eq!(devices(plan, "hw"), [Device::P4Switch; 2]);
    // What is only the paper's is no function, and what nobody measured has no cost.
    std::fs::write(&file, "chain c { in -> Dedup() -> out }\n").expect("a chain file");
    assert!(err(&own(&[&file, "--rack", LEMUR])).contains("there is no function `Dedup`"));
    std::fs::write(&file, "chain c { in -> IPv4Fwd(routes = [\"0.0.0.0/0 192.0.2.1\"]) -> out }\n")
        .expect("a chain file");
    assert!(err(&own(&[&file, "--rack", LEMUR])).contains("`catena profile IPv4Fwd` measures it"));
}

#[test]
fn several_files_may_use_the_same_names() {
    let output = plan(&["examples/lemur/acl.catena", "examples/lemur/branch.catena", "--rack", LEMUR, "--json"]);
    let planned = Plan::from_json(&out(&output)).unwrap_or_else(|wrong| panic!("{wrong}: {}", err(&output)));
    let names: Vec<&str> = planned.chains.iter().map(|chain| chain.name.as_str()).collect();
    assert_eq!(names, ["acl", "branch"]);
}

#[test]
fn the_examples_racks_are_good() {
    for entry in std::fs::read_dir(root().join("examples/racks")).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let source = std::fs::read_to_string(&path).expect("the file can be read");
        let functions = ["ACL", "Detunnel", "Forward", "IPv4Fwd", "Monitor", "Tunnel"];
        let parsed = catena_plan::rack::parse(&source, &functions);
        assert!(parsed.diagnostics.is_empty(), "{}: {:?}", path.display(), parsed.diagnostics);
    }
}

#[test]
fn the_sizes_of_the_book_are_those_that_are_profiled() {
    let book = std::fs::read_to_string(root().join("docs/profiles.md")).expect("the book");
    let thousands = |n: u64| match n {
        n if n < 1_000 => n.to_string(),
        n => format!("{},{:03}", n / 1_000, n % 1_000),
    };
    let mut found = 0;
    for function in catena_functions::registry::FUNCTIONS {
        let Some(size) = function.workload.and_then(|workload| workload.size) else { continue };
        let sizes: Vec<String> = size.measured.iter().map(|n| thousands(*n)).collect();
        let row = format!("| {} | {} | {} | ", function.name, size.unit, sizes.join(", "));
        let line = book.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("no {row}"));
        assert!(line.contains(&thousands(size.usual)), "{line}");
        found += 1;
    }
    assert!(found > 5, "{found}");
}
