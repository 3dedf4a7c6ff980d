//! A plan that was made is run: tasks with queues between them, and the plan held against what was measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const CHAINS: &str = "class web = \"tcp\"\nclass rest = \"udp\"\n\
    chain a for web { in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
    chain b for rest { in -> Monitor() -> out }\n\
    cpu a : b = 1 : 3\n";

const RACK: &str = "name = \"one\"\npacket_bytes = 512\n\n[[server]]\nname = \"here\"\ncores = 1\nsteering_cores = 0\n\
    shared = true\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";

fn catena(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_catena")).args(args).current_dir(folder).output().expect("catena starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with chains, a rack and the plan for them.
fn planned() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    std::fs::write(path.join("two.catena"), CHAINS).expect("a chain file");
    std::fs::write(path.join("rack.toml"), RACK).expect("a rack");
    let output = catena(&path, &["plan", "two.catena", "--rack", "rack.toml", "--profile", "none", "-o", "plan.json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (folder, path)
}

/// A plan says what there would be if more came than can be done: where less comes, nothing is off.
#[test]
fn what_did_not_come_is_not_what_is_off() {
    let (_folder, path) = planned();
    let run = |traffic: &str| -> Value {
        let output = catena(&path, &["run", "two.catena", "--in", traffic, "--plan", "plan.json", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let few = run("gen:flows=20,size=512,proto=udp:1+tcp:1,rate=20Mbps,count=1000,time=wall");
    let notes = |report: &Value, of: &str| -> Vec<Value> {
        report["planned"][of].as_array().expect("rows").iter().map(|row| row["note"].clone()).collect()
    };
    assert_eq!(notes(&few, "chains"), ["all that came", "all that came"]);
    for of in ["functions", "framework"] {
        let notes = notes(&few, of);
        assert!(!notes.is_empty() && notes.iter().all(|note| note == "few packets"), "{of}: {few}");
    }
    let many = run("gen:flows=200,size=512,proto=udp:1+tcp:1,count=400000");
    assert_eq!(notes(&many, "chains")[0], Value::Null, "a waits for b, and loses packets: {many}");
    assert_eq!(notes(&many, "functions").last(), Some(&Value::Null), "{many}");
}

#[test]
fn a_plan_divides_a_run_and_every_packet_is_accounted_for() {
    let (_folder, path) = planned();
    // Packets come by the time that they carry, all at once: the port is never idle, so the queue overflows.
    let traffic = "gen:flows=200,size=512,proto=udp:1+tcp:1,count=200000";
    let output = catena(&path, &["run", "two.catena", "--in", traffic, "--plan", "plan.json", "--json", "--seed", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).expect(pointer);
    assert_eq!(number("/input/packets"), 200_000);
    assert_eq!(number("/output/packets") + number("/dropped"), 200_000);
    let modules = report["modules"].as_array().expect("modules");
    let module = |name: &str| modules.iter().find(|m| m["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
    let packets = |name: &str| module(name)["packets"].as_u64().expect("a count");
    // Both wait for their turn, each in a queue of its own, and a gets less than comes.
    let lost = |queue: &str| module(queue)["drops"]["queue full"].as_u64().unwrap_or(0);
    for (queue, function) in [("queue a/acl", "a/acl"), ("queue b/monitor", "b/monitor")] {
        assert_eq!(packets(queue), packets(function) + lost(queue));
    }
    let (lost, served) = (lost("queue a/acl"), packets("a/acl"));
    assert!(lost > 0 && served > 0, "{lost} lost, {served} served");
    assert_eq!(packets("queue b/monitor") + packets("queue a/acl"), 200_000);
    let functions = report["planned"]["functions"].as_array().expect("what was planned");
    let names: Vec<&str> = functions.iter().filter_map(|f| f["name"].as_str()).collect();
    assert_eq!(names, ["a/acl", "a/monitor", "b/monitor"]);
    for row in functions.iter().chain(report["planned"]["chains"].as_array().expect("chains")) {
        let [planned, measured, residual] = ["planned", "measured", "residual"].map(|k| row[k].as_f64().expect(k));
        assert!((planned * (1.0 + residual) - measured).abs() <= 1e-6 * measured, "{row}");
    }
}

#[test]
fn tasks_that_serve_most_packets_hold_the_same_ratio_and_run() {
    let (_folder, path) = planned();
    let tasks = |name: &str, how: &[&str]| -> Value {
        let args = [&["plan", "two.catena", "--rack", "rack.toml", "--profile", "none", "-o", name], how].concat();
        let output = catena(&path, &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let plan = std::fs::read(path.join(name)).expect("a plan");
        serde_json::from_slice::<Value>(&plan).expect("JSON").pointer("/servers/0/tasks").expect("tasks").clone()
    };
    let ratio = |tasks: &Value| {
        let cpu = |class: usize| tasks["classes"][class]["cpu"].as_f64().expect("a part");
        cpu(1) / cpu(0)
    };
    let (fewest, most) =
        (tasks("fewest.json", &["--tasks", "fewest"]), tasks("most.json", &["--tasks", "most-packets"]));
    assert_eq!((&fewest["minimal"], &most["minimal"]), (&Value::Bool(true), &Value::Bool(false)));
    assert!((ratio(&fewest) - 3.0).abs() < 1e-6 && (ratio(&most) - 3.0).abs() < 1e-6, "{fewest}\n{most}");
    let traffic = "gen:flows=200,size=512,proto=udp:1+tcp:1,count=100000";
    let output = catena(&path, &["run", "two.catena", "--in", traffic, "--plan", "most.json", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).expect(pointer);
    assert_eq!(number("/output/packets") + number("/dropped"), 100_000);
    let unknown = catena(&path, &["plan", "two.catena", "--rack", "rack.toml", "--profile", "none", "--tasks", "many"]);
    assert!(text(&unknown.stderr).contains("most-packets"), "{}", text(&unknown.stderr));
}

#[test]
fn a_class_waits_where_it_enters_its_chain() {
    let (_folder, path) = planned();
    let chains = "class web = \"tcp\"\nclass rest = \"udp\"\n\
        chain a for web, rest { in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
        cpu web : rest = 1 : 3\n";
    std::fs::write(path.join("one.catena"), chains).expect("a chain file");
    let output = catena(&path, &["plan", "one.catena", "--rack", "rack.toml", "--profile", "none", "-o", "one.json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let plan: Value = serde_json::from_slice(&std::fs::read(path.join("one.json")).expect("a plan")).expect("JSON");
    let starts = plan.pointer("/servers/0/tasks/tasks").and_then(Value::as_array).expect("tasks");
    let starts: Vec<&Value> = starts.iter().map(|task| &task["start"]).collect();
    let class = |name: &str| serde_json::json!({ "class": name });
    assert_eq!(starts, [&serde_json::json!("port"), &class("web"), &class("rest")]);
    let traffic = "gen:flows=200,size=512,proto=udp:1+tcp:1,count=100000";
    let output = catena(&path, &["run", "one.catena", "--in", traffic, "--plan", "one.json", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let modules = report["modules"].as_array().expect("modules");
    let packets = |name: &str| {
        let module = modules.iter().find(|m| m["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
        (module["packets"].as_u64().expect("a count"), module["drops"]["queue full"].as_u64().unwrap_or(0))
    };
    let ((web, lost), (rest, also)) = (packets("queue web"), packets("queue rest"));
    assert!(lost > 0 && web > lost, "{web} came, {lost} were lost");
    assert_eq!((web + rest, packets("acl").0), (100_000, 100_000 - lost - also));
}

#[test]
fn a_plan_for_other_chains_or_of_another_kind_is_refused() {
    let (_folder, path) = planned();
    std::fs::write(path.join("one.catena"), "chain c { in -> Monitor() -> out }\n").expect("a chain file");
    let run = |file: &str, plan: &str| {
        let output = catena(&path, &["run", file, "--in", "gen:count=10", "--plan", plan]);
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    assert!(run("one.catena", "plan.json").contains("for other chains"));
    let written = |name: &str, chains: String| std::fs::write(path.join(name), chains).expect("a chain file");
    written(
        "turned.catena",
        CHAINS.replace("ACL(rules = [\"permit any\"]) -> Monitor()", "Monitor() -> ACL(rules = [\"permit any\"])"),
    );
    assert!(run("turned.catena", "plan.json").contains("for other functions than chain a has"));
    written("more.catena", CHAINS.replace("for rest {", "for rest { promise 1Mbps.."));
    assert!(run("more.catena", "plan.json").contains("promises more of chain b than the plan keeps"));
    written("capped.catena", CHAINS.replace("for rest {", "for rest { promise ..1Mbps"));
    assert!(run("capped.catena", "plan.json").contains("lets chain b have less than the plan does"));
    let planned = catena(
        &path,
        &["plan", "capped.catena", "--rack", "rack.toml", "--profile", "none", "--output", "capped.json"],
    );
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    assert!(run("two.catena", "capped.json").contains("lets chain b have more than the plan does"));
    // A promise that the plan alone has would be served before what the file says.
    for (promise, what) in [("promise 1Mbps..", "t_min"), ("promise within 100ms", "d_max")] {
        written("less.catena", CHAINS.replace("for rest {", &format!("for rest {{ {promise}")));
        let plan = ["plan", "less.catena", "--rack", "rack.toml", "--profile", "none", "--output", "less.json"];
        let planned = catena(&path, &plan);
        assert!(planned.status.success(), "{}", text(&planned.stderr));
        let said = run("two.catena", "less.json");
        assert!(said.contains("keeps a promise of chain b that the file does not make"), "{what}: {said}");
    }
    let branch = |part: &str| format!("]) -> [ \"tcp port 9\" ~ {part}: Monitor(), else: ]");
    let parts = |part: &str| CHAINS.replace("]) -> Monitor()", &branch(part));
    written("parts.catena", parts("30%"));
    let plan = ["plan", "parts.catena", "--rack", "rack.toml", "--profile", "none", "--output", "parts.json"];
    let planned = catena(&path, &plan);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    written("parts.catena", parts("40%"));
    let said = run("parts.catena", "parts.json");
    assert!(
        said.contains("other parts of the packets of chain a: 0.3 go from acl to monitor, by the file 0.4 do"),
        "{said}"
    );
    let other = |name: &str, from: &str, to: &str| {
        written(name, CHAINS.replace(from, to));
        let said = run(name, "plan.json");
        assert!(said.contains("the plan is for another policy than the file: "), "{said}");
        said
    };
    assert!(other("ratio.catena", "1 : 3", "3 : 1").contains("relation `cpu a : b = 1 : 3` is planned"));
    assert!(other("first.catena", "cpu a : b = 1 : 3", "priority a > b").contains("`cpu a : b = 1 : 3` is planned"));
    assert!(other("class.catena", "\"tcp\"", "\"tcp port 80\"").contains("class `web = "));
    assert!(other("rules.catena", "permit any", "deny any").contains("argument `rules` of acl in chain a"));
    assert!(run("two.catena", "rack.toml").contains("rack.toml: "));
    assert!(run("two.catena", "nothing.json").contains("nothing.json: "));
    let plan = std::fs::read_to_string(path.join("plan.json")).expect("a plan");
    let (is, was) = (catena_plan::plan::VERSION, catena_plan::plan::VERSION - 1);
    let old = plan.replacen(&format!("\"version\": {is}"), &format!("\"version\": {was}"), 1);
    std::fs::write(path.join("old.json"), old).expect("a file");
    assert!(run("two.catena", "old.json").contains(&format!("version {is} is expected")));
}

#[test]
fn a_plan_that_somebody_broke_is_refused() {
    let (_folder, path) = planned();
    let plan: Value = serde_json::from_slice(&std::fs::read(path.join("plan.json")).expect("a plan")).expect("JSON");
    let refused = |at: &str, value: Value, why: &str| {
        let mut broken = plan.clone();
        *broken.pointer_mut(at).expect(at) = value;
        std::fs::write(path.join("broken.json"), broken.to_string()).expect("a file");
        let output = catena(&path, &["run", "two.catena", "--in", "gen:count=10", "--plan", "broken.json"]);
        assert_eq!(output.status.code(), Some(1), "{at}");
        assert!(text(&output.stderr).contains(why), "{at}: {}", text(&output.stderr));
    };
    for workers in [0, 65, u32::MAX] {
        let why = format!("servers[0].tasks.workers: the plan says {workers}, it is 1");
        refused("/servers/0/tasks/workers", workers.into(), &why);
    }
    refused("/servers/0/tasks/tasks", Value::Array(Vec::new()), "servers[0].tasks.tasks: a/acl is left out");
    refused("/servers/0/tasks/tasks/1/start", "port".into(), "begins at the port");
    refused(
        "/servers/0/tasks/tree",
        serde_json::json!({"task": 1}),
        "tasks.tree: tasks: the plan says [1], it is [0, 1, 2]",
    );
    refused(
        "/servers/0/tasks/tree",
        serde_json::json!({"priority": [{"task": 0}, {"task": 7}]}),
        "tasks: the plan says [0, 7]",
    );
    let nowhere = serde_json::json!({"function": {"chain": "a", "node": "nobody"}});
    refused("/servers/0/tasks/tasks/1/start", nowhere, "there is no a/nobody");
    // A rate is not what the placement says, and what the placement says is more than the port brings.
    refused("/chains/0/rate_bps", 1e9.into(), "chains[0].rate_bps: the plan says 1000000000, it is ");
    refused("/placement/rates_bps/0", 1e12.into(), "chain `a` carries 1000.000000 Gbit/s, it may 40.000000 Gbit/s");
}

#[test]
fn what_a_chain_may_have_is_in_bits_whatever_its_packets_are_like() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("one.catena"), "chain x { promise ..10Mbps in -> Monitor() -> out }\n").expect("a file");
    std::fs::write(path.join("rack.toml"), RACK).expect("a rack");
    let output = catena(path, &["plan", "one.catena", "--rack", "rack.toml", "--profile", "none", "-o", "plan.json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for size in [64, 1500] {
        let traffic = format!("gen:flows=20,size={size},rate=100Mbps,duration=1s,time=wall");
        let output = catena(path, &["run", "one.catena", "--in", &traffic, "--plan", "plan.json", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let bits = 8.0 * report.pointer("/output/bytes").and_then(Value::as_f64).expect("bytes");
        // What the time of the run allows, on a core that others may take half of; what waits in the queue goes out at the end, and a batch goes out whole.
        let seconds = report["seconds"].as_f64().expect("a time");
        let queue = (1024.0 + 2.0 * 32.0) * 8.0 * f64::from(size);
        let most = 1e7 * 1.05 * seconds.max(1.0) + queue;
        assert!(bits > 1e7 * 0.5 && bits < most, "{size} bytes: {bits} bits in {seconds} s");
    }
}

#[test]
fn weights_follow_what_functions_cost_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    // By the paper that the plan is made with a rule list takes a hundred cycles and a monitor twenty; here ten and fifty. With
    // the planned weights b would get a fifth of what it should.
    let acl = "ACL(rules = [\"permit any\"])";
    let chains = format!(
        "class web = \"tcp\"\nclass rest = \"udp\"\n\
         chain a for web {{ in -> {acl} -> {acl} -> {acl} -> out }}\n\
         chain b for rest {{ in -> Monitor() -> Monitor() -> out }}\nthroughput a : b = 1 : 1\n"
    );
    std::fs::write(path.join("two.catena"), chains).expect("a file");
    std::fs::write(path.join("rack.toml"), RACK).expect("a rack");
    let plan = ["plan", "two.catena", "--rack", "rack.toml", "--as", "lemur", "-o", "plan.json"];
    let output = catena(path, &plan);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // As fast as it is taken: there is always more than the worker can do.
    let traffic = "gen:flows=500,size=128,proto=udp:1+tcp:1,count=50M";
    let output = catena(path, &["run", "two.catena", "--in", traffic, "--plan", "plan.json", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let modules = report["modules"].as_array().expect("modules");
    let packets =
        |name: &str| modules.iter().find(|m| m["name"] == name).and_then(|m| m["packets"].as_f64()).expect(name);
    let (ratio, times) = (packets("b/monitor") / packets("a/acl"), &report["planned"]["weighed"]);
    // The core is shared with other tests, and what functions cost with it.
    assert!(times.as_u64() > Some(0) && (0.5..2.0).contains(&ratio), "{ratio}, weighed {times} times");
}

/// Two sockets, and a card on the second, where the core that steers is: functions run on the cores of both, but for that one.
#[test]
fn workers_run_on_the_cores_that_the_plan_names() {
    let (_folder, path) = planned();
    let cores = |number: u32| {
        let rack = format!(
            "name = \"two\"\npacket_bytes = 512\n\n[[server]]\nname = \"here\"\nsockets = 2\ncores = {number}\nsteering_cores = 1\n\
             shared = true\nclock = \"2GHz\"\nnics = [{{ name = \"eth0\", rate = \"40Gbps\", socket = 1 }}]\n"
        );
        std::fs::write(path.join("rack.toml"), rack).expect("a rack");
        let output =
            catena(&path, &["plan", "two.catena", "--rack", "rack.toml", "--profile", "none", "-o", "plan.json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        catena::Planned::read(&path.join("plan.json")).expect("a plan to run").cores().expect("cores")
    };
    assert_eq!(cores(8), [0, 1, 2, 3, 5, 6, 7]);
    assert_eq!(cores(2), [0]);
    let output = catena(&path, &["run", "two.catena", "--in", "gen:count=10", "--plan", "plan.json", "--json"]);
    let told = text(&output.stderr);
    // Where this process may not run on core 0, nobody can hold the run to the plan.
    assert!(output.status.success() || told.contains("the plan's core 0: this process may run on"), "{told}");
}

#[test]
fn a_function_that_only_packets_on_the_way_back_meet_is_planned_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let run = |args: &[&str]| -> Output {
        let output = catena(path, args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        output
    };
    let count = |output: &Output, function: &str| -> u64 {
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let modules = report["modules"].as_array().expect("modules");
        let module = modules.iter().find(|m| m["name"] == function).unwrap_or_else(|| panic!("{function}: {report}"));
        module["packets"].as_u64().expect("a count")
    };
    std::fs::write(path.join("rack.toml"), RACK).expect("a rack");
    std::fs::write(path.join("pass.catena"), "chain c { in -> out }\n").expect("a chain file");
    run(&["run", "pass.catena", "--in", "gen:flows=10,count=300", "--out", "back.pcap"]);
    // Beside a function that packets meet forward, behind one that both directions meet, between two of them, and where forward
    // there is none.
    for ways in [
        "in -> Monitor() -> out\n out -> mon -> in",
        "acl = ACL(rules = [\"permit any\"])\n in -> acl -> out\n out -> acl -> mon -> in",
        "acl = ACL(rules = [\"permit any\"])\n fwd = Monitor()\n in -> fwd -> acl -> out\n out -> acl -> mon -> fwd -> in",
        "in -> out\n out -> mon -> in",
    ] {
        let file = format!("chain c {{\n mon = Monitor()\n {ways}\n}}\n");
        std::fs::write(path.join("back.catena"), file).expect("a chain file");
        let plan = ["plan", "back.catena", "--rack", "rack.toml", "--profile", "none", "-o", "plan.json"];
        let shown = text(&run(&plan).stdout);
        let mut functions = shown.lines().filter(|line| line.contains(" mon") && line.contains(" here "));
        assert!(functions.any(|line| line.contains(" all ")), "{shown}");
        let plan: Value =
            serde_json::from_slice(&std::fs::read(path.join("plan.json")).expect("a plan")).expect("JSON");
        let segments = plan.pointer("/deployment/segments").and_then(Value::as_array).expect("segments");
        let runs = |segment: &&Value| {
            segment["functions"].as_array().is_some_and(|functions| functions.contains(&"c/mon".into()))
        };
        assert_eq!(segments.iter().filter(runs).count(), 1, "{}", plan["deployment"]);
        let packets = ["run", "back.catena", "--json", "--in", "gen:flows=10,count=200", "--back-in", "back.pcap"];
        assert_eq!(count(&run(&packets), "mon"), 300, "{ways}");
        let planned = [&packets[..], &["--plan", "plan.json"]].concat();
        assert_eq!(count(&run(&planned), "mon"), 300, "{ways}, by the plan");
    }
}
