//! What `catena plan` and those who read its files tell of cards, promises, files and machines.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A machine of two cores and one card of 40 Gbit/s.
const MACHINE: &str = "name = \"bench\"\n[[server]]\nname = \"localhost\"\ncores = 2\nsteering_cores = 0\nshared = true\n\
     clock = \"2.5GHz\"\nnics = [\"40Gbps\"]\n";
/// Two chains without functions, which together are promised more than a card carries.
const BARE: &str = "class w = \"udp port 80\"\nclass v = \"udp port 81\"\n\
     chain a for w { promise 30Gbps.. in -> out }\nchain b for v { promise 30Gbps.. in -> out }\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// What `catena` does in `folder` with these words, its profiles kept there too.
fn catena(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(line.split_whitespace()).current_dir(folder).env("XDG_CACHE_HOME", folder).stdin(Stdio::null());
    command.output().expect("catena starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_chain_without_functions_loads_the_card_of_a_machine_without_a_switch() {
    let folder = folder(&[("bare.catena", BARE), ("machine.toml", MACHINE)]);
    for strategy in ["exact", "lemur", "brute"] {
        let line = format!("plan bare.catena --rack machine.toml --profile none --strategy {strategy}");
        let output = catena(folder.path(), &line);
        let text = out(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("These promises conflict: a, b."), "{text}");
        assert!(text.contains("20.00 Gbit/s more on the network card"), "{text}");
    }
    std::fs::write(folder.path().join("bare.catena"), BARE.replace("30Gbps", "10Gbps")).expect("a file");
    let text = out(&catena(folder.path(), "plan bare.catena --rack machine.toml --profile none"));
    assert!(text.contains("localhost.eth0  40.00  40.00  Gbit/s each way"), "{text}");
    // Behind a switch they never come to a card.
    let switch = "[switch]\nkind = \"plain\"\nports = 4\nport = \"100Gbps\"\n".to_owned();
    std::fs::write(folder.path().join("rack.toml"), MACHINE.to_owned() + &switch).expect("a file");
    let text = out(&catena(folder.path(), "plan bare.catena --rack rack.toml --profile none"));
    assert!(text.contains("The chains carry 200.00 Gbit/s"), "{text}");
}

#[test]
fn where_nothing_is_promised_no_rate_is_shown() {
    let folder = folder(&[("free.catena", "chain c { in -> Monitor(max_flows = 1000) -> out }\n")]);
    let output = catena(folder.path(), "show free.catena --stage plan");
    let text = out(&output);
    assert!(output.status.success(), "{text}{}", err(&output));
    assert!(text.starts_with("The file promises nothing."), "{text}");
    assert!(!text.contains("0.00"), "{text}");
    let row: Vec<&str> = text.lines().find(|line| line.starts_with("c ")).expect("a row").split_whitespace().collect();
    assert_eq!(row[..4], ["c", "-", "-", "-"], "{text}");
}

#[test]
fn a_share_of_nothing_is_told() {
    let chain = |name: &str, class: &str, promise: &str| {
        format!("chain {name} for {class} {{ {promise} in -> Monitor(max_flows = 1000) -> out }}\n")
    };
    let classes = "class w = \"udp port 80\"\nclass v = \"udp port 81\"\nclass u = \"udp port 82\"\n";
    let file = |relations: &str| {
        let chains = chain("a", "w", "") + &chain("b", "v", "") + &chain("c", "u", "promise 19Gbps..");
        classes.to_owned() + &chains + relations
    };
    let folder =
        folder(&[("share.catena", &file("share a : b = 70 : 30\npriority c > a\n")), ("machine.toml", MACHINE)]);
    let plan = || out(&catena(folder.path(), "plan share.catena --rack machine.toml --profile none"));
    let told = "`share a : b = 70 : 30` has nothing to divide: its chains carry nothing beyond what they are promised.";
    assert!(plan().contains(told), "{}", plan());
    std::fs::write(
        folder.path().join("share.catena"),
        file("share a : b = 70 : 30\n").replace("19Gbps..", "19Gbps..20Gbps"),
    )
    .expect("a file");
    assert!(!plan().contains("nothing to divide"), "{}", plan());
}

const ONE: &str = "chain c { in -> Monitor(max_flows = 1000) -> out }\n";
const TWO: &str = "chain d { in -> Limiter(rate = 64kbps) -> out }\n";
const SWITCH: &str = "[switch]\nkind = \"plain\"\nports = 4\nport = \"100Gbps\"\n";

#[test]
fn what_this_machine_cannot_run_is_told_when_it_is_written() {
    let folder = folder(&[("one.catena", ONE), ("two.catena", TWO), ("machine.toml", MACHINE)]);
    let at = folder.path();
    let written = |line: &str| {
        let output = catena(at, &format!("plan {line} --profile none --output plan.json"));
        assert!(output.status.success(), "{}", err(&output));
        err(&output)
    };
    assert_eq!(written("one.catena --rack machine.toml"), "");
    let told = "catena: plan.json is not for `catena run --plan` here: ";
    std::fs::write(at.join("switch.toml"), MACHINE.to_owned() + SWITCH).expect("a file");
    let text = written("one.catena --rack switch.toml");
    assert!(text.contains(told) && text.contains("the rack has a switch; plan with a rack such as"), "{text}");
    std::fs::write(at.join("large.toml"), MACHINE.replace("cores = 2", "cores = 1024")).expect("a file");
    assert!(written("one.catena --rack large.toml").contains("it has 1024 workers"), "{told}");
    let text = written("one.catena two.catena --rack machine.toml");
    assert!(text.contains("a run takes one; put the chains into one file"), "{text}");
    // And what run says of it.
    let text = err(&catena(at, "run one.catena --in gen:count=1 --plan plan.json"));
    assert!(text.contains("for c, d, and the file has c; run the file that was planned, or plan this one"), "{text}");
}

#[test]
fn a_saved_plan_is_shown_as_it_was_printed() {
    let folder = folder(&[("one.catena", ONE), ("machine.toml", MACHINE)]);
    let printed = out(&catena(folder.path(), "plan one.catena --rack machine.toml --profile none -o plan.json"));
    let shown = catena(folder.path(), "show plan.json --stage plan");
    assert_eq!((out(&shown), err(&shown)), (printed, String::new()));
    let without = err(&catena(folder.path(), "show plan.json"));
    assert!(without.contains("a plan is shown by --stage plan"), "{without}");
}

#[test]
fn the_name_of_standard_output_is_standard_output() {
    let folder = folder(&[("one.catena", ONE), ("machine.toml", MACHINE)]);
    for name in ["-", "/dev/stdout"] {
        let output = catena(folder.path(), &format!("plan one.catena --rack machine.toml --profile none -o {name}"));
        catena_plan::plan::Plan::from_json(&out(&output)).expect("a plan and nothing else");
        assert!(err(&output).contains("All promises are kept"), "{}", err(&output));
    }
}

#[test]
fn what_cannot_be_written_is_told_before_functions_are_measured() {
    let folder = folder(&[("one.catena", ONE), ("machine.toml", MACHINE)]);
    let text = err(&catena(folder.path(), "plan one.catena --rack machine.toml -o none/plan.json"));
    assert!(text.contains("there is no folder none"), "{text}");
    assert!(!text.contains("measuring"), "{text}");
}

/// What functions cost is kept in a file of its own, and planning reads it.
#[test]
#[cfg_attr(debug_assertions, ignore = "it measures, for minutes where nothing is optimised: make test-optimised")]
fn a_plan_is_not_written_over_what_is_kept_of_the_machine() {
    let folder = folder(&[("one.catena", ONE), ("machine.toml", MACHINE)]);
    catena(folder.path(), "plan one.catena --rack machine.toml");
    let kept =
        std::fs::read_dir(folder.path().join("catena")).expect("a folder").next().expect("a file").expect("an entry");
    let before = std::fs::read(kept.path()).expect("what is kept");
    let output = catena(folder.path(), &format!("plan one.catena --rack machine.toml -o {}", kept.path().display()));
    assert!(!output.status.success() && err(&output).contains("what is kept of this machine"), "{}", err(&output));
    assert_eq!(std::fs::read(kept.path()).expect("what is kept"), before);
}

/// Whoever writes a rack or a plan writes no lines of the verdict.
#[test]
fn a_name_in_a_plan_is_of_one_line() {
    let folder = folder(&[("one.catena", ONE), ("machine.toml", MACHINE)]);
    catena(folder.path(), "plan one.catena --rack machine.toml --profile none -o plan.json");
    let plan = std::fs::read_to_string(folder.path().join("plan.json")).expect("a plan");
    let mut plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    plan["rack"] = "x\nAll promises are kept".into();
    std::fs::write(folder.path().join("plan.json"), plan.to_string()).expect("a file");
    let text = err(&catena(folder.path(), "show plan.json --stage plan"));
    assert!(text.lines().count() == 1 && text.contains("is no name of a rack"), "{text}");
}

#[test]
fn a_chain_file_given_twice_is_told_with_its_places() {
    let folder = folder(&[("one.catena", ONE), ("two.catena", TWO), ("machine.toml", MACHINE)]);
    let line = "plan one.catena two.catena ./one.catena --rack machine.toml --profile none";
    let text = err(&catena(folder.path(), line));
    assert_eq!(text, "catena: ./one.catena: chain file 3 is chain file 1 again (one.catena); give it once\n");
}

#[test]
fn racks_and_files_of_papers_are_checked() {
    let lemur = "chain c { in -> Encrypt() -> out }\n";
    let folder = folder(&[("lemur.catena", lemur), ("machine.toml", MACHINE), ("bad.toml", "name = rack\n")]);
    let check = |line: &str| {
        let output = catena(folder.path(), &format!("check {line}"));
        (output.status.code(), out(&output) + &err(&output))
    };
    assert_eq!(check("machine.toml"), (Some(0), "machine.toml: a rack of 1 server: good\n".to_owned()));
    assert_eq!(check("--as lemur lemur.catena").1, "lemur.catena: 1 chain, 1 function: good\n");
    assert_eq!(check("lemur.catena").0, Some(1));
    let (code, text) = check("bad.toml");
    assert!(code == Some(1) && text.contains("bad.toml:1:8") && text.contains("a text without quotes"), "{text}");
}

#[test]
fn what_is_no_rack_and_what_is_no_plan_is_told_in_plain_words() {
    let folder = folder(&[("one.catena", ONE), ("machine.toml", MACHINE), ("empty.json", "{}")]);
    let at = folder.path();
    catena(at, "plan one.catena --rack machine.toml --profile none -o plan.json");
    let text = err(&catena(at, "plan one.catena --rack plan.json --profile none"));
    assert_eq!(text.matches("error[").count(), 1, "{text}");
    assert!(text.contains("this is not a rack, which is TOML"), "{text}");
    let from =
        |name: &str| err(&catena(at, &format!("plan one.catena --rack machine.toml --profile none --from {name}")));
    let hint = "; `catena plan … --output FILE` writes plans\n";
    assert_eq!(from("machine.toml"), format!("catena: machine.toml: line 1: this is not JSON{hint}"));
    assert_eq!(from("empty.json"), format!("catena: empty.json: line 1: `version` is missing{hint}"));
    let run = err(&catena(at, "run one.catena --in gen:count=1 --plan machine.toml"));
    assert_eq!(run, format!("catena: machine.toml: line 1: this is not JSON{hint}"));
}

#[test]
fn the_search_for_what_would_help_is_within_the_time_limit() {
    let functions = ["Encrypt", "ACL", "NAT", "Monitor", "Limiter", "Dedup", "UrlFilter", "LB", "BPF", "Tunnel"];
    let mut chains = String::new();
    for id in 0..400 {
        let (first, second) = (functions[id % 10], functions[(id / 10 + id + 1) % 10]);
        let promise = 20 + id * 37 % 180;
        chains += &format!(
            "class k{id} = \"udp port {}\"\nchain c{id} for k{id} {{ promise {promise}Mbps.. in -> {first}() -> {second}() -> out }}\n",
            1000 + id
        );
    }
    let rack = include_str!("../examples/racks/lemur.toml");
    let folder = folder(&[("many.catena", &chains), ("rack.toml", rack)]);
    let began = std::time::Instant::now();
    let output = catena(folder.path(), "plan many.catena --rack rack.toml --as lemur --profile none --time-limit 4s");
    // Four searches of this time each took twice as long.
    assert!(began.elapsed().as_secs_f64() < 6.0, "{:?}", began.elapsed());
    let text = out(&output);
    assert!(text.contains("No plan keeps all promises"), "{text}");
    assert!(text.contains("Not every question was answered: more time (--time-limit) may find more."), "{text}");
}

/// All of planning has the time that was asked for: what is looked for before the search, too, and where a run plans for itself.
#[test]
fn a_chain_of_a_thousand_functions_is_planned_within_the_time_limit() {
    let chain = vec!["Monitor()"; 1_000].join(" -> ");
    let rack = include_str!("../examples/racks/lemur.toml");
    let folder = folder(&[
        ("long.catena", &format!("chain x {{ promise 1Mbps.. in -> {chain} -> out }}\n")),
        ("rack.toml", rack),
    ]);
    // One took more than a minute each.
    for how in ["exact", "brute", "lemur"] {
        let began = std::time::Instant::now();
        let command = format!("plan long.catena --rack rack.toml --profile none --time-limit 1s --strategy {how}");
        catena(folder.path(), &command);
        assert!(began.elapsed().as_secs_f64() < 10.0, "{how}: {:?}", began.elapsed());
    }
    let began = std::time::Instant::now();
    let ran = catena(folder.path(), "run long.catena --in gen:flows=2,count=20");
    assert!(ran.status.success() && began.elapsed().as_secs_f64() < 10.0, "{:?}: {}", began.elapsed(), err(&ran));
}

#[test]
fn flow_tables_that_are_too_small_are_what_has_to_grow() {
    let rack = include_str!("../examples/racks/lemur-openflow.toml");
    let chain = "chain c { promise 1Gbps.. in -> IPv4Fwd() -> out }\n";
    let folder = folder(&[("c.catena", chain), ("rack.toml", rack)]);
    let plan = |more: &str| {
        let output = catena(folder.path(), &format!("plan c.catena --rack rack.toml --as lemur --profile none {more}"));
        (output.status.code(), out(&output))
    };
    let (code, text) = plan("--what-if entries=10");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("find no place on this rack, whatever is promised"), "{text}");
    assert!(!text.contains("t_min"), "{text}");
    let entries = text.split("(--what-if entries=").nth(1).and_then(|rest| rest.split(')').next()).expect("a remedy");
    let needed: u32 = entries.parse().expect("a number");
    // What is said does, and less does not.
    assert_eq!(plan(&format!("--what-if entries={needed}")).0, Some(0), "{text}");
    assert_eq!(plan(&format!("--what-if entries={}", needed - 1)).0, Some(1), "{text}");
}

#[test]
fn what_is_promised_is_what_its_tasks_get() {
    let chains = "class k0 = \"udp port 1000\"\nclass k1 = \"udp port 1001\"\n\
        chain c0 for k0 { in -> ACL(rules = [\"permit any\"]) -> Monitor(max_flows = 1000) -> out }\n\
        chain c1 for k1 { promise 2Gbps..10Gbps in -> Monitor(max_flows = 1000) -> ACL(rules = [\"permit any\"]) -> out }\n\
        priority c0 > c1\n";
    let rack = include_str!("../examples/racks/this-machine.toml");
    let folder = folder(&[("c.catena", chains), ("rack.toml", rack)]);
    let output = catena(folder.path(), "plan c.catena --rack rack.toml --profile none --json");
    let plan = catena_plan::plan::Plan::from_json(&out(&output)).expect("a plan");
    let tasks = plan.servers[0].tasks.as_ref().expect("tasks");
    let packets: f64 = tasks.classes.iter().filter(|class| class.name == "c1").map(|class| class.packets).sum();
    let gets = packets * plan.packet_bytes * 8.0;
    assert!(gets > 2e9 * 0.9998, "{gets}");
}

#[test]
fn what_enters_a_chain_behind_an_empty_arm_waits_apart_from_what_ran_before() {
    let chains = "class web = \"tcp\"\nclass rest = \"udp\"\n\
        chain a for web { promise 1Mbps.. in -> [ \"port 80\" ~ 22%: Monitor(), else: ] -> Monitor() -> out }\n\
        chain b for rest { in -> Monitor() -> out }\n";
    let rack = include_str!("../examples/racks/this-machine.toml");
    let folder = folder(&[("c.catena", chains), ("rack.toml", rack)]);
    let output = catena(folder.path(), "plan c.catena --rack rack.toml --profile none -o plan.json");
    assert!(output.status.success(), "{}{}", out(&output), String::from_utf8_lossy(&output.stderr));
    let plan = std::fs::read_to_string(folder.path().join("plan.json")).expect("a plan");
    let plan = catena_plan::plan::Plan::from_json(&plan).expect("a plan");
    let tasks = &plan.servers[0].tasks.as_ref().expect("tasks").tasks;
    let both: Vec<_> = tasks.iter().filter(|task| task.modules == ["a/monitor", "a/monitor2"]).collect();
    assert!(both.len() == 1 && tasks.iter().any(|task| task.modules == ["a/monitor2"]), "{tasks:?}");
    let output = catena(folder.path(), "run c.catena --in gen:flows=40,proto=tcp:1+udp:1,count=2k --json");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["output"]["packets"], 2_000, "{report}");
}

#[test]
fn what_no_function_sees_is_brought_in_and_out_by_cores_too() {
    let chains = "class a = \"udp\"\nchain z for a { promise 39Gbps.. in -> out }\n";
    let rack = |cores: u32| {
        format!(
            "name = \"one\"\npacket_bytes = 64\n[[server]]\nname = \"s\"\ncores = {cores}\nsteering_cores = 0\nshared = true\n\
             clock = \"2.5GHz\"\nnics = [\"40Gbps\"]\n"
        )
    };
    let plan = |cores: u32| {
        let folder = folder(&[("c.catena", chains), ("rack.toml", &rack(cores))]);
        let output = catena(folder.path(), "plan c.catena --rack rack.toml --profile none");
        (output.status.code(), out(&output))
    };
    let (code, text) = plan(1);
    assert!(
        code == Some(1) && text.contains("z: what is promised takes 6.7 cores of s, of which there are 1"),
        "{text}"
    );
    assert_eq!(plan(7).0, Some(0));
}

/// Promises of 400 Gbit/s on a link that carries as much leave nothing to a chain that may have 13 bit/s.
const FULL: &str = "class w = \"udp port 80\"\nclass v = \"udp port 81\"\nclass u = \"udp port 82\"\n\
     chain a for w { promise ..13bps in -> Monitor(max_flows = 1000) -> out }\n\
     chain b for v { promise 200Gbps.. in -> Monitor(max_flows = 1000) -> out }\n\
     chain c for u { promise 200Gbps.. in -> Monitor(max_flows = 1000) -> out }\ncpu b : a = 1 : 1\n";

#[test]
fn promises_that_just_fill_a_link_are_planned_beside_a_limit_of_some_bits() {
    let folder = folder(&[("full.catena", FULL)]);
    let output = catena(folder.path(), "show full.catena --stage plan --workers 64");
    assert!(output.status.success() && !err(&output).contains("internal error"), "{}", err(&output));
    assert!(!out(&output).starts_with("The file promises nothing."), "{}", out(&output));
}

/// Nothing can hold a chain to a rate whose packets wait nowhere: that is said of it, and costs no other chain its promise.
#[test]
fn an_upper_end_of_a_chain_without_functions_ends_no_other_promise() {
    let classes = "class w = \"udp port 80\"\nclass v = \"udp port 81\"\n";
    let bare = "chain a for w { promise ..1Gbps in -> out }\n";
    let other = "chain b for v { promise 1Gbps..2Gbps in -> Monitor(max_flows = 1000) -> out }\n";
    let folder = folder(&[("bare.catena", &format!("{classes}{bare}{other}")), ("machine.toml", MACHINE)]);
    let output = catena(folder.path(), "show bare.catena --stage plan --workers 2");
    let (text, told) = (out(&output), err(&output));
    assert!(text.contains("), but the rest is kept") && text.contains("1 to 2"), "{text}{told}");
    let why = "line 3: chain a may have at most 1 Gbit/s, and has no function in front of which packets could wait; put one there";
    assert!(told.contains(why), "{told}");
    let run = catena(folder.path(), "run bare.catena --in gen:count=1000,time=wall,proto=udp --json");
    let report: serde_json::Value = serde_json::from_str(&out(&run)).expect("JSON");
    assert_eq!(report["promised"][1]["t_min_bps"], 1e9, "{report}");
    assert!(err(&run).contains(why), "{}", err(&run));
    // Whoever plans alone hears it, and what to try.
    let text = out(&catena(folder.path(), "plan bare.catena --rack machine.toml --profile none"));
    assert!(text.contains("a may not have all that comes") && text.contains("put one there"), "{text}");
    // Nothing else is promised: then nothing is held, and why is said.
    std::fs::write(folder.path().join("bare.catena"), format!("{classes}{bare}")).expect("a file");
    let told = err(&catena(folder.path(), "show bare.catena --stage plan --workers 2"));
    assert!(told.contains("is held by nothing: line 3: chain a may have at most 1 Gbit/s"), "{told}");
}

/// What is shown is what a run does that has its packets from there.
#[test]
fn the_port_that_packets_come_by_is_planned_for() {
    let chains = "class w = \"udp\"\nchain a for w { promise 1Gbps..2Gbps in -> Monitor(max_flows = 1000) -> out }\n";
    let folder = folder(&[("one.catena", chains)]);
    let shown = |port: &str| {
        let output = catena(folder.path(), &format!("show one.catena --stage plan --workers 2 {port}"));
        (out(&output), err(&output))
    };
    for live in ["", "--in gen:count=10,time=wall"] {
        let (text, told) = shown(live);
        assert!(text.starts_with("All promises are kept") && told.is_empty(), "{live}: {text}{told}");
    }
    let (text, told) = shown("--in gen:count=10");
    assert!(text.starts_with("The file promises nothing.") && told.contains("no plan of rates for it"), "{text}{told}");
    assert!(shown("--in nowhere0").1.contains("--in nowhere0: neither a file nor an interface"), "it is no port");
}
