//! Whatever a file promises of one core, a run holds it or says what of it is not held, and shows the plan that it goes by.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn output(folder: &Path, args: &[&str]) -> Output {
    let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
    // Without figures that were measured here.
    catena.args(args).current_dir(folder).env("XDG_CACHE_HOME", folder).output().expect("catena")
}

fn told(output: &Output) -> Vec<String> {
    let told = String::from_utf8_lossy(&output.stderr);
    told.lines().filter(|line| line.starts_with("catena: ")).map(str::to_owned).collect()
}

/// Plan and run a file; returns what was told.
fn play(folder: &Path, chains: &str) -> Vec<String> {
    let classes = "class web = \"tcp\"\nclass rest = \"udp\"\n";
    std::fs::write(folder.join("two.catena"), format!("{classes}{chains}")).expect("a chain file");
    let shown = output(folder, &["show", "two.catena", "--stage", "plan", "--format", "json"]);
    let plan: Value = serde_json::from_slice(&shown.stdout).unwrap_or_else(|_| panic!("{chains}: {shown:?}"));
    let said = told(&shown);
    let traffic = "gen:flows=10,proto=udp,rate=10Mbps,count=100,time=wall";
    let run = output(folder, &["run", "two.catena", "--in", traffic, "--json"]);
    let report: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{chains}: {run:?}"));
    assert_eq!(told(&run), said, "{chains}");
    let notes = report["notes"].as_array().cloned().unwrap_or_default();
    let notes: Vec<String> = notes.iter().map(|note| format!("catena: {}", note.as_str().expect("a line"))).collect();
    assert_eq!(notes, said, "{chains}");

    // What is not said is so.
    assert_eq!(shown.status.success(), said.is_empty(), "{chains}: {said:?}");
    let part = plan["held"].as_f64();
    if said.iter().all(|line| !line.contains("not all that")) {
        assert!(plan["verdict"].get("kept").is_some(), "{chains}: {said:?} {}", plan["verdict"]);
        let of_each = part.map(|part| format!("; {}% of each is held", 100.0 * part));
        assert_eq!(of_each.is_some(), !said.is_empty(), "{chains}: {said:?}");
        assert!(of_each.is_none_or(|held| said[0].ends_with(&held)), "{chains}: {said:?}");
    }
    said
}

#[test]
fn a_promise_is_held_or_it_is_said_what_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut halved = 0;
    for relation in ["", "priority a > b", "priority b > a", "cpu a : b = 3 : 1", "throughput a : b = 1 : 1"] {
        for rate in [5, 50, 55, 65, 300] {
            let chains = format!(
                "chain a for web {{ promise {rate}Gbps.. in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }}\n\
                 chain b for rest {{ in -> Monitor() -> out }}\n{relation}\n"
            );
            let said = play(folder.path(), &chains);
            assert!(rate > 5 || said.is_empty(), "{chains}: {said:?}");
            halved += said.len();
        }
    }
    assert!(halved > 5, "{halved}");
}

/// What a tree gives is forecast also where that is less than what is promised.
#[test]
fn what_is_missing_of_a_promise_is_not_all_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = "name = \"one\"\n[[server]]\nname = \"s\"\ncores = 1\nsteering_cores = 0\nshared = true\nclock = \"2.6GHz\"\n\
                nics = [\"400Gbps\"]\n";
    std::fs::write(folder.path().join("rack.toml"), rack).expect("a rack");
    let chains = "class web = \"tcp\"\nclass rest = \"udp\"\n\
                  chain a for web { promise 55Gbps.. in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
                  chain b for rest { in -> Monitor() -> out }\npriority b > a\n";
    std::fs::write(folder.path().join("two.catena"), chains).expect("a chain file");
    let planned = output(folder.path(), &["plan", "two.catena", "--rack", "rack.toml", "--profile", "none"]);
    let text = String::from_utf8_lossy(&planned.stdout).into_owned();
    let gets =
        text.split_once("by `priority b > a`, a gets ").and_then(|(_, rest)| rest.split_once(" Gbit/s of the 55.00"));
    let gets: f64 = gets.and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    // The core does 52.6 of it, whatever b has.
    assert!((48.0..53.0).contains(&gets), "{text}");
}

/// Nor the time of somebody whose packets can be so fast.
#[test]
fn a_time_that_cannot_be_leaves_others_theirs() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = play(
        folder.path(),
        "chain a for web { promise 1Mbps.. within 10ns in -> Monitor() -> out }\n\
         chain b for rest { promise 1Mbps..10Mbps within 300ms in -> Monitor() -> out }\n",
    );
    let [why] = &said[..] else { panic!("{said:?}") };
    assert!(why.contains("a takes at least"), "{why}");
    let shown = output(folder.path(), &["show", "two.catena", "--stage", "plan", "--format", "json"]);
    let plan: Value = serde_json::from_slice(&shown.stdout).expect("a plan");
    let times: Vec<Option<f64>> = (0..2).map(|c| plan["chains"][c]["d_max_ns"].as_f64()).collect();
    assert_eq!(times, [None, Some(3e8)]);
}

/// Whoever reads a plan afterwards has not heard what was said when it was made.
#[test]
fn a_plan_says_what_it_is_not_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains = "chain a { promise 1Mbps.. within 10ns in -> Monitor() -> out }\n";
    std::fs::write(folder.path().join("one.catena"), chains).expect("a chain file");
    let shown = output(folder.path(), &["show", "one.catena", "--stage", "plan", "--format", "json"]);
    let plan: Value = serde_json::from_slice(&shown.stdout).expect("a plan");
    let why = plan["left_out"][0].as_str().expect("a reason");
    assert!(why.contains("0.01 us are promised") && plan["left_out"].as_array().map(Vec::len) == Some(1), "{plan}");
    let kept = folder.path().join("plan.json");
    std::fs::write(&kept, &shown.stdout).expect("the plan is kept");
    let again = output(folder.path(), &["show", "plan.json", "--stage", "plan"]);
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    assert_eq!(again.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("Not all that is promised is planned ({why}), but the rest is kept")), "{text}");
    // It is not taken out, nor is another line put in.
    for changed in [Value::Null, serde_json::json!(["nothing"]), serde_json::json!([why, "two\nlines"])] {
        let mut lying = plan.clone();
        match changed {
            Value::Null => drop(lying.as_object_mut().expect("an object").remove("left_out")),
            texts => lying["left_out"] = texts,
        }
        std::fs::write(&kept, lying.to_string()).expect("the plan is kept");
        let refused = output(folder.path(), &["show", "plan.json", "--stage", "plan"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && said.contains("left_out"), "{said}");
    }
}

/// A paper's figures and guesses have a star, and where they are from stands below.
#[test]
fn what_nobody_measured_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains = "chain a { promise 1Mbps.. in -> IPv4Fwd(routes = [\"0.0.0.0/0\"]) -> Monitor() -> out }\n";
    std::fs::write(folder.path().join("one.catena"), chains).expect("a chain file");
    let shown = output(folder.path(), &["show", "one.catena", "--stage", "plan"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    for line in ["ipv4fwd*", "monitor*", "not measured on this machine", "IPv4Fwd: a guess"] {
        assert!(text.contains(line), "{line} is not in {text} {shown:?}");
    }
}

#[test]
fn a_time_that_cannot_be_costs_nobody_else_what_is_promised() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = play(
        folder.path(),
        "chain a for web { promise 1Mbps.. within 10ns in -> Monitor() -> out }\n\
         chain b for rest { promise 1Gbps.. in -> Monitor() -> out }\n",
    );
    let [why] = &said[..] else { panic!("{said:?}") };
    let (_, takes) = why.split_once("not all that two.catena promises is held: a takes at least ").expect(why);
    let (takes, promised) = takes.split_once(" us, ").expect(why);
    assert_eq!(promised, "0.01 us are promised", "{why}");
    // What the machine takes for a packet in a Monitor.
    assert!((0.011..10.0).contains(&takes.parse::<f64>().expect(why)), "{why}");
}
