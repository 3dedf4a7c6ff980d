//! `catena plan --from`: what runs stays where it is, and what has to be done is said in an order that loses no flow.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const CHAINS: &str = "class web = \"tcp\"\nclass voip = \"udp\"\n\
    chain web for web { promise 5Gbps.. in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
    chain calls for voip { promise 1Gbps..4Gbps in -> Monitor() -> out }\n";
const MORE: &str = "class pings = \"icmp\"\nchain pings for pings { promise 100Mbps..1Gbps in -> Monitor() -> out }\n";

const SWITCH: &str = "[switch]\nname = \"tor\"\nkind = \"plain\"\nports = 32\nport = \"100Gbps\"\n";

fn server(name: &str) -> String {
    format!("[[server]]\nname = \"{name}\"\ncores = 8\nsteering_cores = 1\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n\n")
}

fn rack(servers: &[&str]) -> String {
    let servers: String = servers.iter().map(|name| server(name)).collect();
    format!("name = \"two\"\npacket_bytes = 512\n\n{servers}{SWITCH}")
}

/// Plan; what runs is in `from`, if it is given. Returns what is printed.
fn plan(folder: &Path, from: Option<&str>, to: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(["plan", "chains.catena", "--rack", "rack.toml", "--profile", "none", "-o", to]).current_dir(folder);
    match from {
        Some(from) => command.args(["--from", from]),
        None => command.args(["--seed", "1"]),
    };
    let output = command.output().expect("catena starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a file");
}

/// The lines of the steps, without their numbers.
fn steps(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let (number, step) = line.trim_start().split_once("  ")?;
        number.parse::<u32>().ok()?;
        Some(step.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    lines.collect()
}

fn instances(folder: &Path, name: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder.join(name)).expect("a plan");
    let plan: Value = serde_json::from_str(&text).expect("JSON");
    let all = plan["deployment"]["instances"].as_array().expect("instances");
    let pair = |i: &Value| Some((i["name"].as_str()?.to_owned(), i["slots"].as_str()?.to_owned()));
    all.iter().filter_map(pair).collect()
}

#[test]
fn what_runs_stays_and_changes_are_few() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "chains.catena", CHAINS);
    write(path, "rack.toml", &rack(&["nf1", "nf2"]));
    assert!(!plan(path, None, "1.json").contains("epoch"));

    let same = plan(path, Some("1.json"), "same.json");
    assert!(same.contains("Nothing has to be done: what runs is what epoch 2 plans."), "{same}");
    assert_eq!(instances(path, "same.json"), instances(path, "1.json"));

    // A new chain starts, and whatever ran stays as it is.
    write(path, "chains.catena", &format!("{CHAINS}{MORE}"));
    let new = plan(path, Some("1.json"), "2.json");
    let done = steps(&new);
    assert!(done.len() >= 2 && done[0].starts_with("start pings/monitor@"), "{new}");
    assert!(done.iter().any(|step| step.starts_with("give pings/monitor@")), "{new}");
    assert!(new.contains("No live flow changes its instance.") || done.iter().all(|s| !s.contains("calls/")), "{new}");

    // Other rules: a new copy beside the old one, flows over to it, and the old one stops. Of the others, nothing moves.
    write(path, "chains.catena", &format!("{CHAINS}{MORE}").replace("permit any", "deny any"));
    let changed = plan(path, Some("2.json"), "3.json");
    let done = steps(&changed);
    assert!(done.iter().all(|step| step.contains("web/acl")), "{changed}");
    let order: Vec<&str> = done.iter().filter_map(|step| step.split(' ').next()).collect();
    let mut sorted = order.clone();
    sorted.sort_by_key(|verb| ["start", "move", "stop"].iter().position(|own| own == verb));
    assert_eq!(order, sorted, "{changed}");
    assert!(changed.contains("100% of web") && !changed.contains("of calls"), "{changed}");

    // A server fails: what was there runs elsewhere.
    let failed = instances(path, "3.json").iter().any(|(name, _)| name.contains("@nf1:"));
    write(path, "rack.toml", &rack(if failed { &["nf2"] } else { &["nf1"] }));
    plan(path, Some("3.json"), "4.json");
    let gone = if failed { "@nf1:" } else { "@nf2:" };
    assert!(instances(path, "4.json").iter().all(|(name, _)| !name.contains(gone)));

    // The chain goes, and nothing else does.
    write(path, "chains.catena", &CHAINS.replace("permit any", "deny any"));
    let fewer = plan(path, Some("4.json"), "5.json");
    assert!(steps(&fewer).iter().all(|step| step.contains("pings")), "{fewer}");
    assert!(steps(&fewer).first().is_some_and(|step| step.starts_with("end pings/monitor@")), "{fewer}");

    let json = std::fs::read_to_string(path.join("5.json")).expect("a plan");
    let last: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&last["deployment"]["epoch"], &last["delta"]["epoch"]), (&5.into(), &5.into()));
    assert_eq!(last["deployment"]["seed"], "0000000000000001");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "chains.catena", CHAINS);
    write(path, "rack.toml", &rack(&["nf1"]));
    plan(path, None, "1.json");
    let refused = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.args(["plan", "chains.catena", "--rack", "rack.toml", "--profile", "none"]).args(args);
        let output = command.current_dir(path).output().expect("catena starts");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--strategy", "keep"]).contains("--from OLD.json names it"));
    assert!(refused(&["--from", "rack.toml"]).contains("rack.toml: "));
    let old = std::fs::read_to_string(path.join("1.json")).expect("a plan");
    write(path, "lie.json", &old.replacen("\"slots\": \"", "\"slots\": \"4094, ", 1));
    let lie = refused(&["--from", "lie.json"]);
    assert!(lie.contains("lie.json: "), "{lie}");
    assert!(refused(&["--from", "1.json", "-o", "1.json"]).contains("1.json"));
}
