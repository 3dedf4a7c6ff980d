//! What `catena plan` calls kept, proven or impossible, held against what can be said by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use catena_plan::plan::Plan;

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("catena-verdicts-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

/// The text that `catena plan` prints of these chains on this rack, and the plan it writes.
fn planned(name: &str, chains: &str, rack: &str, more: &[&str]) -> (String, Option<Plan>) {
    let folder = folder(name);
    let at = |file: &str| folder.join(file);
    fs::write(at("chains.catena"), chains).expect("it can be written");
    fs::write(at("rack.toml"), rack).expect("it can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.arg("plan").arg(at("chains.catena")).arg("--rack").arg(at("rack.toml"));
    // By papers' figures, which are the same on every machine.
    command.args(["--profile", "none"]);
    command.arg("--output").arg(at("plan.json"));
    let output = command.args(more).output().expect("catena starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let plan = fs::read_to_string(at("plan.json")).ok().map(|json| Plan::from_json(&json).expect("it is a plan"));
    remove(&folder);
    (text, plan)
}

fn remove(folder: &Path) {
    fs::remove_dir_all(folder).expect("it can be removed");
}

/// Dedup and Encrypt are functions of the paper alone.
const PAPER: [&str; 2] = ["--as", "lemur"];
const SWITCH: &str = "[switch]\nname = \"tor\"\nkind = \"plain\"\nports = 4\nport = \"40Gbps\"\n";
const SERVERS: &str =
    "[[server]]\nname = \"nf\"\ncount = 2\ncores = 2\nsteering_cores = 0\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";
const LONG: &str = "chain x { promise 500Mbps.. in -> Dedup -> Encrypt -> Monitor -> out }\n";

#[test]
fn a_chain_spans_two_servers_only_where_a_switch_joins_them() {
    let servers = |plan: Option<Plan>| {
        let plan = plan.expect("the promise can be kept");
        let mut on: Vec<String> = plan.chains[0].functions.iter().map(|f| f.on.clone()).collect();
        on.dedup();
        on.len()
    };
    let (_, alone) = planned("alone", LONG, SERVERS, &PAPER);
    assert_eq!(servers(alone), 1);
    let (_, joined) = planned("joined", LONG, &format!("{SWITCH}{SERVERS}"), &PAPER);
    assert_eq!(servers(joined), 2);
    // One server carries 1.13 Gbit/s of it with its two cores, and no more servers help.
    let (text, plan) = planned("more", &LONG.replace("500M", "1300M"), SERVERS, &PAPER);
    assert!(text.contains("No plan keeps all promises"), "{text}");
    assert!(plan.is_none_or(|plan| !plan.is_kept()));
}

#[test]
fn a_plan_keeps_to_the_capacity_of_the_switch() {
    let rack = format!("{SWITCH}capacity = \"2Gbps\"\n{SERVERS}").replace("40G", "2G");
    let (text, plan) = planned("capacity", "chain x { in -> Monitor -> out }\n", &rack, &[]);
    let plan = plan.expect("nothing is promised");
    // To the server and from it.
    assert!((plan.rate_bps() - 1e9).abs() < 1e3, "{text}");
    assert!(text.contains("switch: tor forwards 2 Gbit/s in all"), "{text}");
    let (text, _) = planned("too_much", "chain x { promise 1.9Gbps.. in -> Monitor -> out }\n", &rack, &[]);
    assert!(text.contains("This would do: 1.80 Gbit/s more through the switch."), "{text}");
}

#[test]
fn more_cores_help_a_server_whose_only_card_is_a_smart_nic() {
    let card = "smart_nics = [{ name = \"agilio\", rate = \"40Gbps\", socket = 0, cores = 60, clock = \"800MHz\" }]\n";
    let rack = |cores| format!("{SWITCH}[[server]]\nname = \"nf1\"\ncores = {cores}\nclock = \"1.7GHz\"\n{card}");
    let chain = "chain x { promise 5Gbps..10Gbps in -> Dedup -> out }\n";
    let (text, _) = planned("few", chain, &rack(8), &PAPER);
    assert!(text.contains("more cores on nf1"), "{text}");
    let (text, plan) = planned("enough", chain, &rack(16), &PAPER);
    assert!(matches!(plan.expect("it can be kept").verdict.gap(), Some(gap) if gap == 0.0), "{text}");
}

const HERE: &str = "packet_bytes = 512\n[[server]]\nname = \"here\"\ncores = 2\nsteering_cores = 0\nshared = true\nclock = \"2.5GHz\"\nnics = [\"40Gbps\"]\n";

/// An ACL with as many rules as one is taken to have that does not say: 4,091 cycles a packet.
fn acl() -> String {
    format!("ACL(rules = [{}])", ["\"permit any\""; 1000].join(", "))
}

/// Two chains with these functions and this behind them.
fn two(first: &str, second: &str, relation: &str) -> String {
    let classes = "class a = \"udp port 1\"\nclass b = \"udp port 2\"\n";
    format!("{classes}chain w for a {{ {first} }}\nchain x for b {{ {second} }}\n{relation}\n")
}

fn rates(plan: Option<Plan>, text: &str) -> Vec<f64> {
    let plan = plan.unwrap_or_else(|| panic!("{text}"));
    assert!(plan.is_kept(), "{text}");
    plan.chains.iter().map(|chain| chain.rate_bps / 1e9).collect()
}

#[test]
fn what_is_left_is_shared_as_the_file_says() {
    let monitor = "in -> Monitor() -> out";
    let (text, plan) = planned("share", &two(monitor, monitor, "share w : x = 70% : 30%"), HERE, &[]);
    let rates = rates(plan, &text);
    assert!((rates[0] - 28.0).abs() < 1e-3 && (rates[1] - 12.0).abs() < 1e-3, "{text}");
}

#[test]
fn who_has_priority_goes_first_and_the_other_is_told_why() {
    let monitor = "in -> Monitor() -> out";
    let (text, plan) = planned("priority", &two(monitor, monitor, "priority w > x"), HERE, &[]);
    let rates = rates(plan, &text);
    assert!((rates[0] - 40.0).abs() < 1e-3 && rates[1] < 1e-3, "{text}");
    assert!(text.contains("the file: priority w > x"), "{text}");
    assert!(text.contains("No plan that holds the file's relations carries more: that is proven."), "{text}");
}

#[test]
fn what_only_drops_takes_nothing_from_what_goes_on() {
    let chains = two("in -> Monitor() -> drop", &format!("in -> {} -> out", acl()), "");
    let (text, plan) = planned("drop", &chains, HERE, &[]);
    let rates = rates(plan, &text);
    assert!(rates[0] < 1e-3 && rates[1] > 4.5, "{text}");
    assert!(text.contains("nothing leaves it: it gets what others leave"), "{text}");
    assert!(!text.contains("the file's relations"), "the file has none: {text}");
    let why = "No plan in which chains come last whose packets are all dropped carries more: that is proven.";
    assert!(text.contains(why), "{text}");
}

#[test]
fn two_way_chains_share_cycles() {
    let monitor = "in <-> Monitor() <-> out";
    let (text, plan) = planned("two_way", &two(monitor, monitor, "cpu w : x = 3 : 1"), HERE, &[]);
    let rates = rates(plan, &text);
    assert!((rates[0] / rates[1] - 3.0).abs() < 1e-3, "{text}");
}

#[test]
fn a_promise_that_a_ratio_leaves_no_room_for_is_not_kept() {
    let acl = |least: &str| format!("promise {least}.. in -> {} -> out", acl());
    let chains = |least: &str| two(&acl(least), &acl("1Gbps"), "cpu w : x = 1 : 9");
    let (text, plan) = planned("ratio", &chains("2Gbps"), HERE, &[]);
    assert!(plan.is_none_or(|plan| !plan.is_kept()) && text.contains("that is proven"), "{text}");
    assert!(text.contains("The promises could be kept without `cpu w : x = 1 : 9`."), "{text}");
    let (text, plan) = planned("ratio_kept", &chains("100Mbps"), HERE, &[]);
    let plan = plan.unwrap_or_else(|| panic!("{text}"));
    let tasks = plan.servers[0].tasks.as_ref().expect("whole chains run here");
    for (chain, class) in plan.chains.iter().zip(&tasks.classes) {
        assert!(class.packets * 512.0 * 8.0 >= chain.t_min_bps, "{text}");
    }
}

#[test]
fn what_runs_on_every_worker_is_planned_on_several_cores() {
    let chains = two("in -> Monitor() -> NAT(pool = 198.51.100.0/24) -> out", &format!("in -> {} -> out", acl()), "");
    let (text, plan) = planned("nat", &chains, HERE, &[]);
    let plan = plan.unwrap_or_else(|| panic!("{text}"));
    let tasks = plan.servers[0].tasks.as_ref().expect("whole chains run here");
    assert_eq!(tasks.workers, 2);
    assert!(plan.servers[0].subgroups.iter().all(|group| group.replicable), "{text}");
    assert!(!text.contains("may have one only"), "{text}");
}

#[test]
fn comments_in_a_list_of_rules_cost_nothing_whatever_plans() {
    let rules = folder("rules").join("r.acl");
    fs::write(&rules, "# nothing but a comment\n".repeat(222)).expect("it can be written");
    let cycles = |rules: &str| -> Vec<String> {
        let chain = format!("chain c {{ promise 1Gbps.. in -> ACL(rules = {rules}) -> out }}\n");
        let one = |strategy: &str| {
            let (text, _) = planned("comments", &chain, HERE, &["--strategy", strategy, "--json"]);
            let line = text.lines().find(|line| line.contains("\"cycles\"")).unwrap_or_else(|| panic!("{text}"));
            let digits = line.split(':').nth(1).unwrap_or_default();
            let number: f64 = digits.trim().trim_end_matches(',').parse().unwrap_or_else(|_| panic!("{line}"));
            format!("{number:.0}")
        };
        ["exact", "e2"].map(one).to_vec()
    };
    assert_eq!(cycles(&format!("file({:?})", rules.display().to_string())), ["110", "110"]);
    assert_eq!(cycles("\"permit tcp\""), cycles("[\"permit tcp\"]"));
    remove(rules.parent().expect("it is in a folder"));
}

#[test]
fn what_a_promise_of_delay_assumes_stands_beside_the_verdict() {
    let slow = "promise ..10Mbps within 1ms in -> Monitor() -> out";
    let (text, plan) = planned("delay", &two(slow, "in -> Monitor() -> out", ""), HERE, &[]);
    let plan = plan.unwrap_or_else(|| panic!("{text}"));
    let chain = &plan.chains[0];
    // 1,024 packets of 512 bytes at 10 Mbit/s, of which each of two workers has a half: 1,221 a second.
    assert!((chain.queue_ns.expect("a queue in front of the limit") - 1024.0 / 1221.0 * 1e9).abs() < 1e6, "{text}");
    assert!(chain.batch_ns > 31.0 * chain.latency_ns && chain.batch_ns < 1e6, "{text}");
    assert!(text.contains("Delays are those of a packet that waits for no other, forward."), "{text}");
    let wait =
        "w: offered more than it carries, it fills a queue of 1024 packets, up to 838.9 ms long, so the promise holds";
    assert!(text.contains(wait), "{text}");
    // A part of a shared core is as large as its traffic: that keeps nobody from carrying more.
    assert!(!text.contains("cores: monitor has"), "{text}");
    // Nothing is said where nothing is promised.
    let (text, plan) = planned("no_delay", &two("in -> Monitor() -> out", "in -> Monitor() -> out", ""), HERE, &[]);
    assert!(plan.is_some() && !text.contains("Delays are"), "{text}");
}

#[test]
fn the_best_of_a_comparison_is_the_one_that_is_proven_to_be() {
    // The second does more with a cycle: who carries most in all is not who holds the priority.
    let chains = two("in -> Encrypt -> out", "in -> Monitor -> out", "priority w > x");
    let rack = format!("{SWITCH}{}", SERVERS.replace("count = 2\n", ""));
    let (text, plan) = planned("compared", &chains, &rack, &[&PAPER[..], &["--compare"]].concat());
    let line = text.lines().find(|line| line.starts_with("exact ")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("kept, best"), "{text}");
    assert!(text.contains("Best here: exact"), "{text}");
    assert!(plan.expect("the best one is written").chains[0].rate_bps > 2e9, "{text}");
}

#[test]
fn chains_and_classes_that_a_relation_only_implies_are_named() {
    let monitor = "in -> Monitor() -> out";
    let more = format!("class c = \"tcp\"\nchain y for c {{ in -> {} -> out }}\npriority w > x", acl());
    let three = two(monitor, monitor, &more);
    let (text, _) = planned("unnamed", &three, HERE, &[]);
    let after = "No `priority` names y: with those that it names last; `priority w > x > y` has them after those.\n";
    assert!(text.contains(after), "{text}");
    assert_eq!(text.matches("the file: priority w > x").count(), 2, "{text}");
    let (text, _) = planned("class", &two(monitor, monitor, "priority b > a"), HERE, &[]);
    assert!(text.contains("In `priority b > a` the class a is all of chain w.\n"), "{text}");
    assert!(text.contains("In `priority b > a` the class b is all of chain x.\n") && !text.contains("names"), "{text}");
}

#[test]
fn what_would_do_does_when_it_is_tried() {
    let rack = |cores| {
        format!("{SWITCH}{}", SERVERS.replace("count = 2\ncores = 2", &format!("sockets = 2\ncores = {cores}")))
    };
    let chain = LONG.replace("500M", "1300M");
    let (text, _) = planned("does", &chain, &rack(2), &PAPER);
    // The same on both sockets.
    let more: u32 = text
        .split("This would do: ")
        .nth(1)
        .or_else(|| text.split("these would do:\n").nth(1))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_else(|| panic!("{text}"));
    assert!(more.is_multiple_of(2) && text.contains("more cores on nf"), "{text}");
    let (text, plan) = planned("done", &chain, &rack(2 + more), &PAPER);
    assert!(plan.is_some_and(|plan| plan.is_kept()), "{text}");
}

#[test]
fn what_a_run_refuses_is_not_planned() {
    let folder = folder("refused");
    let (chains, rack) = (folder.join("c.catena"), folder.join("rack.toml"));
    fs::write(&rack, HERE).expect("it can be written");
    let said = |args: &[&std::ffi::OsStr]| {
        let output = Command::new(env!("CARGO_BIN_EXE_catena")).args(args).output().expect("catena starts");
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let refused = [
        ("ACL()", "`ACL` needs `rules`"),
        ("ACL(rules = \"allow tcp\")", ":2: f: `rules`: "),
        ("Monitor(max_flows = 0)", ":2: f: `max_flows`: expected a whole number from 1 to "),
        ("NAT()", "`NAT` needs `pool`"),
        ("NAT(pool = 198.51.100.0/24, block = 70000)", ":2: f: `block`: "),
        ("Limiter(rate = 0bps)", ":2: f: `rate`: "),
    ];
    for (function, message) in refused {
        fs::write(&chains, format!("chain c {{\n  f = {function}\n  in -> f -> out\n}}\n")).expect("a chain file");
        let run = said(&["run".as_ref(), chains.as_ref(), "--in".as_ref(), "gen:flows=1,count=1".as_ref()]);
        assert!(run.contains(message), "{function}: {run}");
        for strategy in ["exact", "e2"] {
            let strategy = ["--strategy".as_ref(), strategy.as_ref()];
            let plan: [&std::ffi::OsStr; 4] = ["plan".as_ref(), chains.as_ref(), "--rack".as_ref(), rack.as_ref()];
            assert_eq!(said(&[&plan[..], &strategy[..]].concat()), run, "{function}");
        }
    }
    remove(&folder);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "it measures, for minutes where nothing is optimised: make test-optimised")]
fn what_nobody_measured_is_measured_once_and_kept() {
    let folder = folder("quick");
    let at = |file: &str| folder.join(file);
    fs::write(at("c.catena"), "chain c { in -> ACL(rules = [\"permit any\"]) -> out }\n").expect("a chain file");
    fs::write(at("rack.toml"), HERE).expect("a rack");
    let plan = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.args(["plan", "c.catena", "--rack", "rack.toml"]).args(more).current_dir(&folder);
        let output = command.env("XDG_CACHE_HOME", &folder).output().expect("catena starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (first, said) = plan(&[]);
    if said.contains("cannot measure here") {
        return catena_testing::skip("a plan that measures: no core can be had", "let tests run on the last core");
    }
    assert!(said.contains("measuring ACL on this machine") && !first.contains("not measured"), "{said}{first}");
    assert_eq!(fs::read_dir(at("catena")).expect("a cache folder").count(), 1);
    let (second, said) = plan(&[]);
    assert!(said.is_empty() && second == first, "{said}{second}");
    let (papers, said) = plan(&["--profile", "none"]);
    assert!(said.is_empty() && papers.contains("* not measured on this machine"), "{said}{papers}");
    remove(&folder);
}

/// Their packets leave where they are told apart: they wait for nobody, and nobody for them.
#[test]
fn chains_without_functions_stand_beside_others() {
    let web = "class web = \"tcp port 80\"\n";
    let server = "[[server]]\nname = \"nf\"\ncores = 1\nsteering_cores = 0\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";
    for (n, chains) in [
        "chain lb for web { promise 1Gbps in -> Monitor() -> out }\nchain rest { in -> drop }\n",
        "chain a for web { in -> Monitor() -> out }\nchain b { in -> out }\npriority b > a\n",
        "chain a for web { in -> Monitor() -> out }\nchain b { promise 1Gbps.. in -> out }\npriority a > b\n",
    ]
    .into_iter()
    .enumerate()
    {
        for strategy in ["exact", "lemur", "greedy"] {
            let more = ["--strategy", strategy];
            let (text, plan) = planned(&format!("bare{n}{strategy}"), &format!("{web}{chains}"), server, &more);
            assert!(plan.is_some_and(|plan| plan.is_kept()) && !text.contains("internal error"), "{text}");
        }
    }
}

#[test]
fn a_plan_that_is_kept_is_not_lost_to_one_that_is_not() {
    let folder = folder("lost");
    let at = |file: &str| folder.join(file);
    let server = "[[server]]\nname = \"nf\"\ncores = 1\nsteering_cores = 0\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";
    fs::write(at("rack.toml"), server).expect("it can be written");
    let plan = |promise: &str| {
        fs::write(at("c.catena"), format!("chain c {{ promise {promise}.. in -> Monitor() -> out }}\n"))
            .expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.args(["plan", "c.catena", "--rack", "rack.toml", "--profile", "none", "-o", "running.json"]);
        let output = command.current_dir(&folder).output().expect("catena starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(plan("1Gbps").0, Some(0));
    let running = fs::read_to_string(at("running.json")).expect("a plan");
    let (code, told) = plan("60Gbps");
    assert!(code == Some(1) && told.contains("running.json is left as it was"), "{told}");
    assert_eq!(fs::read_to_string(at("running.json")).expect("a plan"), running);
    remove(&folder);
}
