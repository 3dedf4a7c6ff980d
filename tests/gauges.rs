//! Gauges of several workers: what each has a part of is summed, what all have alike is told once.

use std::collections::BTreeMap;
use std::process::Command;

const CHAIN: &str = r#"
chain c {
    mon = Monitor()
    acl = ACL(rules = [file("rules.v4")], leave_out = "conntrack")
    fwd = IPv4Fwd(routes = ["0.0.0.0/0 192.0.2.1", "10.0.0.0/8 192.0.2.2", "::/0 2001:db8::1"])
    lb = LB(vip = 192.0.2.10, backends = [10.9.0.1, 10.9.0.2])
    in -> mon -> acl -> fwd -> lb -> out
}
"#;
const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j ACCEPT\n-A FORWARD -p udp -j ACCEPT\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n";

/// What all workers have a part of.
const BOUNDED: &str = r#"
chain c {
    total = Limiter(rate = 100Gbps)
    lim = Limiter(rate = 1Gbps, per = src)
    scan = PortScan()
    nat = NAT(pool = 198.51.100.0/28, block = 16)
    in -> total -> lim -> scan -> nat -> out
}
"#;

fn run(folder: &std::path::Path, args: &[&str]) -> String {
    of_input(folder, "gen:count=2000,flows=100,seed=1", args)
}

fn of_input(folder: &std::path::Path, input: &str, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.current_dir(folder).args(["run", "c.catena", "--in", input, "--out", "null"]);
    let output = command.args(["--seed", "1"]).args(args).output().expect("catena starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Return the gauges of a chain with so many workers, by module and name.
fn gauges(folder: &std::path::Path, workers: &str) -> BTreeMap<String, u64> {
    let report: serde_json::Value =
        serde_json::from_str(&run(folder, &["--workers", workers, "--json"])).expect("a report");
    let modules = report["modules"].as_array().expect("modules");
    let of = |module: &serde_json::Value| {
        let gauges = module["gauges"].as_array().expect("gauges").clone();
        let name = module["name"].as_str().expect("a name").to_owned();
        gauges.into_iter().map(move |g| {
            let gauge = g["name"].as_str().expect("a name");
            (format!("{name}: {gauge}"), g["value"].as_u64().expect("a number"))
        })
    };
    // How often rules are searched depends on how packets are shared out.
    modules.iter().flat_map(of).filter(|(gauge, _)| gauge != "acl: packets searched for").collect()
}

#[test]
fn workers_have_rules_and_backends_in_common_and_share_flows() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("c.catena"), CHAIN).expect("a chain file");
    std::fs::write(folder.path().join("rules.v4"), RULES).expect("rules");
    let gauges = |workers| gauges(folder.path(), workers);
    let alone = gauges("1");
    for (gauge, value) in [
        ("mon: flows", 100),
        ("acl: rules", 3),
        ("acl: rules left out", 1),
        ("fwd: IPv4 routes", 2),
        ("fwd: IPv6 routes", 1),
        ("lb: backends up", 2),
    ] {
        assert_eq!(alone.get(gauge), Some(&value), "{gauge} of {alone:?}");
    }
    assert_eq!(gauges("4"), alone);
    let table = run(folder.path(), &["--workers", "4"]);
    for line in ["\nlb: 2 backends up\n", "\nacl: 3 rules, 1 rules left out, ", "\nfwd: 2 IPv4 routes, 1 IPv6 routes\n"]
    {
        assert!(table.contains(line), "{line:?} is not in {table}");
    }
}

#[test]
fn a_total_is_the_same_with_any_number_of_workers() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("c.catena"), BOUNDED).expect("a chain file");
    let alone = gauges(folder.path(), "1");
    assert_eq!(alone.get("total: keys"), Some(&1), "{alone:?}");
    assert!(alone.get("nat: free blocks").is_some_and(|free| *free > 0), "{alone:?}");
    assert_eq!(gauges(folder.path(), "3"), alone);
}

/// Each worker by itself, and all together where they share a balancer, as they do of live traffic.
#[test]
fn a_bound_is_the_total_of_all_workers() {
    let folder = tempfile::tempdir().expect("a folder");
    for (call, name) in [
        ("NAT(pool = 198.51.100.0/24, max_mappings = 10)", "mappings"),
        ("Limiter(rate = 1pps, per = src, max_keys = 10)", "keys"),
        ("Monitor(max_flows = 10)", "flows evicted"),
        ("LB(vip = 192.0.2.10, backends = [10.9.0.1], max_connections = 10)", "connections"),
    ] {
        let chain = format!("chain c {{\n    bounded = {call}\n    in -> bounded -> out\n}}\n");
        std::fs::write(folder.path().join("c.catena"), chain).expect("a chain file");
        for time in ["", ",time=wall"] {
            let input = format!("gen:count=300,flows=300,dst=192.0.2.10,seed=1{time}");
            let report = of_input(folder.path(), &input, &["--workers", "3", "--json"]);
            let report: serde_json::Value = serde_json::from_str(&report).expect("a report");
            let modules = report["modules"].as_array().expect("modules");
            let module = modules.iter().find(|module| module["name"] == "bounded").expect("it is there");
            let gauges = module["gauges"].as_array().expect("gauges");
            let gauge = gauges.iter().find(|gauge| gauge["name"] == name).and_then(|gauge| gauge["value"].as_u64());
            // What is evicted makes room for the rest: of 300 flows as many stay as there may be.
            let expected = if name == "flows evicted" { 290 } else { 10 };
            assert_eq!(gauge, Some(expected), "{call} of {input}");
        }
    }
}
