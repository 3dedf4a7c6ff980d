//! `catena plan --from`: what runs stays where it is, and what has to be done is said in an order that loses no flow.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const CHAINS: &str = "class web = \"tcp\"\nclass voip = \"udp\"\n\
    chain web for web { promise 5Gbps..10Gbps in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
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

/// The lines of the steps, without their numbers, and of what goes over in their moment.
fn steps(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start();
        // What goes over in the moment of a step stands below it, without a number.
        let numbered = line.split_once("  ").filter(|(number, _)| number.parse::<u32>().is_ok());
        let below = ["move ", "recover "].iter().any(|verb| line.starts_with(verb)).then_some(line);
        let step = numbered.map(|(_, step)| step).or(below)?;
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
    assert!(!same.contains("have changed"), "{same}");
    assert!(same.contains("Nothing has to be done: what runs is what epoch 2 plans."), "{same}");
    assert_eq!(instances(path, "same.json"), instances(path, "1.json"));

    // A new chain.
    write(path, "chains.catena", &format!("{CHAINS}{MORE}"));
    golden(
        path,
        "1.json",
        "2.json",
        "start pings/monitor@nf1:3 pings/monitor\n\
         install path 3 pings\n\
         equip tor tunnels\n\
         equip nf1 tunnels, schedule\n\
         give pings/monitor@nf1:3 0-4095 pings/monitor\n\
         enter by the new entrances paths 1, 2, 3",
    );

    // Other rules.
    write(path, "chains.catena", &format!("{CHAINS}{MORE}").replace("permit any", "deny any"));
    golden(
        path,
        "2.json",
        "3.json",
        "start web/acl+monitor@nf1:1~3 web/acl, web/monitor\n\
         move web/acl+monitor@nf1:1 to web/acl+monitor@nf1:1~3 0-4095 web/acl, web/monitor\n\
         stop web/acl+monitor@nf1:1",
    );

    // Growing: more is promised than one core carries.
    let larger = format!("{CHAINS}{MORE}").replace("permit any", "deny any").replace("5Gbps..10Gbps", "30Gbps..");
    write(path, "chains.catena", &larger);
    golden(
        path,
        "3.json",
        "4.json",
        "start web/acl+monitor@nf1:4 web/acl, web/monitor\n\
         equip nf1 schedule\n\
         move web/acl+monitor@nf1:1~3 to web/acl+monitor@nf1:4 2048-4095 web/acl, web/monitor",
    );

    // A server fails.
    write(path, "rack.toml", &rack(&["nf2"]));
    write(path, "chains.catena", &larger.replace("30Gbps..", "20Gbps..25Gbps"));
    golden(
        path,
        "4.json",
        "5.json",
        "start web/acl+monitor@nf2:1 web/acl, web/monitor\n\
         start calls/monitor@nf2:2 calls/monitor\n\
         start pings/monitor@nf2:3 pings/monitor\n\
         install path 4 web\n\
         install path 5 calls\n\
         install path 6 pings\n\
         equip tor tunnels\n\
         equip nf2 tunnels, schedule\n\
         enter by the new entrances paths 4, 5, 6\n\
         recover web/acl+monitor@nf1:1~3 to web/acl+monitor@nf2:1 0-2047 web/acl, web/monitor\n\
         recover web/acl+monitor@nf1:4 to web/acl+monitor@nf2:1 2048-4095 web/acl, web/monitor\n\
         recover calls/monitor@nf1:2 to calls/monitor@nf2:2 0-4095 calls/monitor\n\
         recover pings/monitor@nf1:3 to pings/monitor@nf2:3 0-4095 pings/monitor\n\
         remove path 1 web\n\
         remove path 2 calls\n\
         remove path 3 pings\n\
         stop web/acl+monitor@nf1:1~3\n\
         stop web/acl+monitor@nf1:4\n\
         stop calls/monitor@nf1:2\n\
         stop pings/monitor@nf1:3",
    );

    // Shrinking: a chain goes.
    write(path, "chains.catena", &CHAINS.replace("permit any", "deny any").replace("5Gbps..10Gbps", "20Gbps..25Gbps"));
    golden(
        path,
        "5.json",
        "6.json",
        "equip tor tunnels\n\
         equip nf2 tunnels, schedule\n\
         enter by the new entrances paths 4, 5\n\
         remove path 6 pings\n\
         end pings/monitor@nf2:3 pings/monitor\n\
         stop pings/monitor@nf2:3",
    );

    // A promise alone: what its chain may have at most is said to the cores.
    write(path, "chains.catena", &CHAINS.replace("permit any", "deny any").replace("5Gbps..10Gbps", "20Gbps..24Gbps"));
    golden(path, "6.json", "7.json", "equip nf2 schedule");

    let json = std::fs::read_to_string(path.join("6.json")).expect("a plan");
    let last: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&last["deployment"]["epoch"], &last["delta"]["epoch"]), (&6.into(), &6.into()));
    assert_eq!(last["deployment"]["seed"], "0000000000000001");
}

/// Plan from what runs, and hold the steps against what they have to be.
fn golden(folder: &Path, from: &str, to: &str, wanted: &str) {
    let text = plan(folder, Some(from), to);
    let done = steps(&text);
    let rack = if from == "4.json" { ", the rack" } else { "" };
    let since = format!("was planned, these have changed: the chain files{rack}.");
    assert!(text.contains(&since), "{text}");
    let wanted: Vec<&str> = wanted.lines().map(str::trim).collect();
    assert_eq!(done, wanted, "{from} to {to}:\n{}\n{text}", done.join("\n"));
}

/// What was changed since, what was asked for and the steps are in the file: word for word as they were printed.
#[test]
fn a_plan_that_follows_is_shown_as_it_was_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "rack.toml", &rack(&["nf1", "nf2"]));
    write(path, "chains.catena", CHAINS);
    plan(path, None, "1.json");
    write(path, "chains.catena", &format!("{CHAINS}{MORE}"));
    let catena = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        let output = command.args(line.split(' ')).current_dir(path).output().expect("catena starts");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let asked = "plan chains.catena --rack rack.toml --profile none --from 1.json --what-if cores=6 -o 2.json";
    let printed = catena(asked);
    for said in ["What if: cores=6", "these have changed: the chain files, the rack.", "From epoch 1 to 2"] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    assert_eq!(catena("show 2.json --stage plan"), printed);
}

#[test]
fn a_plan_of_the_same_has_nothing_to_do() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let shared = rack(&["nf1"]).replace("cores = 8", "cores = 4\nshared = true");
    write(path, "shared.toml", &shared);
    write(
        path,
        "shared.catena",
        "class a = \"tcp\"\nclass b = \"udp\"\n\
         chain x for a { in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
         chain y for b { in -> Monitor() -> NAT(pool = 198.51.100.0/24) -> out }\n",
    );
    let at = |name: &str| path.join(name).to_str().expect("a path").to_owned();
    let example = |name: &str| root.join("examples").join(name).to_str().expect("a path").to_owned();
    let mut worlds: Vec<(Vec<String>, &str)> = Vec::new();
    let shared = || vec![at("shared.catena"), "--rack".into(), at("shared.toml"), "--profile".into(), "none".into()];
    worlds.extend(["exact", "lemur"].map(|strategy| (shared(), strategy)));
    for strategy in ["lemur", "sw", "hw", "min-bounce", "greedy", "no-cores"] {
        for (chain, rack) in
            [("acl", "lemur"), ("chain1", "lemur"), ("chain2", "lemur-openflow"), ("chain5", "lemur-smartnic")]
        {
            let (chain, rack) = (example(&format!("lemur/{chain}.catena")), example(&format!("racks/{rack}.toml")));
            worlds.push((vec![chain, "--rack".into(), rack, "--as".into(), "lemur".into()], strategy));
        }
    }
    let mut none = Vec::new();
    for (world, strategy) in worlds {
        let plan = |more: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
            command.arg("plan").args(&world).args(more).current_dir(path).output().expect("catena starts")
        };
        if !plan(&["--strategy", strategy, "-o", "same.json"]).status.success() {
            none.push((world[0].rsplit('/').next().expect("a name").to_owned(), strategy));
            continue;
        }
        let output = plan(&["--from", "same.json"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("Nothing has to be done"), "{world:?}, {strategy}:\n{text}");
    }
    // These find no plan.
    let none: Vec<(&str, &str)> = none.iter().map(|(chain, strategy)| (chain.as_str(), *strategy)).collect();
    let of_two = ["lemur", "sw", "hw", "min-bounce", "greedy", "no-cores"].map(|strategy| ("chain2.catena", strategy));
    assert_eq!(none, [&of_two[..1], &[("chain1.catena", "sw")], &of_two[1..]].concat());
}

#[test]
fn an_overloaded_instance_is_relieved_and_stays_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "chains.catena", CHAINS);
    write(path, "rack.toml", &rack(&["nf1", "nf2"]));
    plan(path, None, "1.json");
    let name = instances(path, "1.json").into_iter().map(|(name, _)| name).find(|name| name.starts_with("web/"));
    let name = name.expect("web runs");
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(["plan", "chains.catena", "--rack", "rack.toml", "--profile", "none", "--from", "1.json"]);
    command.args(["--overloaded", &name, "-o", "2.json"]).current_dir(path);
    let output = command.output().expect("catena starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let done = steps(&text);
    assert!(
        done.len() == 3
            && done[0].starts_with("start web/")
            && done[1] == "equip nf1 schedule"
            && done[2].starts_with(&format!("move {name} to ")),
        "{text}"
    );
    assert!(text.contains("Live flows that change their instance: 50% of web."), "{text}");
    // What is planned next lets it be, and so do other rules.
    let again = plan(path, Some("2.json"), "3.json");
    assert!(again.contains("Nothing has to be done"), "{again}");
    write(path, "chains.catena", &CHAINS.replace("permit any", "deny any"));
    plan(path, Some("3.json"), "4.json");
    let web = |file: &str| -> Vec<String> {
        let own = instances(path, file).into_iter().filter(|(name, _)| name.starts_with("web/"));
        own.map(|(_, slots)| slots).collect()
    };
    assert_eq!(web("4.json"), web("2.json"));
}

#[test]
fn what_a_change_is_to_live_flows_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "rack.toml", &rack(&["nf1", "nf2"]));
    let followed = |change: &dyn Fn(&str) -> String| {
        write(path, "chains.catena", CHAINS);
        plan(path, None, "1.json");
        write(path, "chains.catena", &change(CHAINS));
        let text = plan(path, Some("1.json"), "2.json");
        assert!(!text.contains("No live flow changes its instance."), "{text}");
        text
    };
    let classes = "Classes are others, or of other chains: live flows whose class changes go to another chain.";
    let swapped = followed(&|text| {
        text.replace("web for web", "web for x").replace("for voip", "for web").replace("for x", "for voip")
    });
    assert!(swapped.contains(classes), "{swapped}");
    let narrower = followed(&|text| text.replace("\"tcp\"", "\"tcp port 80\""));
    assert!(narrower.contains(classes), "{narrower}");
    let renamed = followed(&|text| text.replace("chain web", "chain site"));
    assert!(renamed.contains("Flows end in web/acl, web/monitor."), "{renamed}");
    // Regrouped, flows go over in the moment in which packets go another way.
    let regrouped =
        followed(&|text| text.replace("ACL(rules = [\"permit any\"]) -> Monitor()", "ACL(rules = [\"permit any\"])"));
    let done = steps(&regrouped);
    let over = done.iter().position(|step| step.starts_with("move web/acl+monitor@")).expect("flows go over");
    assert!(done[over - 1].starts_with("enter"), "{regrouped}");
}

#[test]
fn tiny_shares_that_are_swapped_are_a_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write(path, "rack.toml", &rack(&["nf1"]));
    let of = |first: &str, second: &str| {
        let arms = format!("{first}: Monitor(), {second}: ACL(rules = [\"permit any\"]), else: Monitor()");
        write(path, "chains.catena", &format!("chain web {{ promise 1Gbps..2Gbps in -> [ {arms} ] -> out }}\n"));
    };
    of("0.001%", "0.002%");
    plan(path, None, "1.json");
    of("0.002%", "0.001%");
    let text = plan(path, Some("1.json"), "2.json");
    assert!(!text.contains("Nothing has to be done") && text.contains("the chain files"), "{text}");
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
