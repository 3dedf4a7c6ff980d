//! What `show --stage plan` shows, `plan` plans and `run` runs is one plan: of every example, and of files that none is like.

use std::path::Path;
use std::process::{Command, Output};

use catena_functions::registry;
use catena_plan::paper;
use catena_plan::profile::{Cost, Cycles};
use serde_json::{Value, json};

/// A machine like the one that a run plans for, with two workers.
const RACK: &str = "name = \"this machine\"\n[[server]]\nname = \"here\"\ncores = 2\nsteering_cores = 0\nshared = true\n\
    clock = \"2.5GHz\"\nnics = [\"400Gbps\"]\n";

fn output(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(args).current_dir(folder).env("XDG_CACHE_HOME", folder).output().expect("catena starts")
}

fn catena(folder: &Path, args: &[&str]) -> Value {
    let output = output(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The examples, in a folder with the file in C that one of them runs, built.
fn examples(into: &Path) -> Vec<String> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut chains = Vec::new();
    copy(&from, into, "examples", &mut chains);
    let built = into.join("examples/native/build");
    std::fs::create_dir_all(&built).expect("a folder");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-I"]).arg(from.join("../include")).arg(from.join("native/synguard.c"));
    let status = cc.arg("-o").arg(built.join("synguard.so")).status();
    assert!(status.expect("`cc` is there: the project is built with it").success());
    chains.sort();
    chains
}

/// Copy a folder, and note the chain files in it.
fn copy(from: &Path, into: &Path, under: &str, chains: &mut Vec<String>) {
    std::fs::create_dir_all(into.join(under)).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), format!("{under}/{}", entry.file_name().to_string_lossy()));
        match path.is_dir() {
            true => copy(&path, into, &name, chains),
            false => _ = std::fs::copy(&path, into.join(&name)).expect("a copy"),
        }
        if path.extension().is_some_and(|end| end == "catena") {
            chains.push(name);
        }
    }
}

/// Chain files that no example is like.
const OWN: [(&str, &str); 4] = [
    ("one chain", "in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out\n"),
    ("two-way", "in <-> NAT(pool = 198.51.100.0/24) <-> out\n"),
    (
        "classes",
        "class web = \"tcp port 80\"\nclass rest = \"udp\"\n\
         chain a for web { in -> ACL(rules = [\"permit any\"]) -> [ \"net 10.0.0.0/8\": Monitor(), else: drop ] -> out }\n\
         chain b for rest { in -> Monitor() -> out }\n",
    ),
    (
        "promised",
        "class web = \"tcp\"\nclass rest = \"udp\"\n\
         chain a for web { promise 10Mbps..1Gbps in -> Monitor() -> out }\n\
         chain b for rest { in -> ACL(rules = [\"permit any\"]) -> out }\ncpu a : b = 1 : 2\n",
    ),
];

/// Something for every function.
fn profile() -> String {
    let mut profile = paper::profile();
    for function in registry::FUNCTIONS {
        let cost = || Cost { server: Cycles::constant(100.0), smart_nic: None, source: None };
        profile.functions.entry(function.name.to_owned()).or_insert_with(cost);
    }
    profile.to_text().expect("text")
}

/// Whether `catena check` finds nothing wrong, of a paper's functions or the library's.
fn passes(folder: &Path, file: &str, paper: &[&str]) -> bool {
    output(folder, &[&["check", file], paper].concat()).status.success()
}

/// Whether the plans that are planned, shown and run of a file are one.
fn agree(path: &Path, name: &str) {
    let text = std::fs::read_to_string(path.join(name)).expect("a chain file");
    let plan = ["plan", name, "--rack", "rack.toml", "--profile", "profile.json", "--json"];
    let planned = catena(path, &[&plan[..], &["--seed", "5"]].concat());
    let shown = catena(path, &["show", "--stage", "plan", name, "--workers", "2", "--seed", "5", "--format", "json"]);
    let parts = |plan: &Value| {
        let mut runs = plan["deployment"].clone();
        runs.as_object_mut().expect("an object").remove("follows");
        // The digest of the tree, whose weights are compared below: this machine's clock is measured anew each time.
        let schedule = runs["devices"][0].as_object_mut().and_then(|here| here.remove("schedule"));
        assert!(schedule.is_some_and(|digest| digest.is_string()), "{name}");
        runs
    };
    assert_eq!(parts(&shown), parts(&planned), "{name}");
    let tree = |plan: &Value| plan["servers"][0]["tasks"]["tree"].clone();
    let [one, other] = [&shown, &planned].map(tree);
    if text.contains("promise") {
        assert!(one.is_object(), "{name}: what is promised is held by a tree");
        near(&one, &other).unwrap_or_else(|what| panic!("{name}: {what} in {one}, {other}"));
    }

    // What follows the plan that is shown names its digest, as a run does.
    std::fs::write(path.join("shown.json"), shown.to_string()).expect("a plan");
    let next = catena(path, &[&plan[..], &["--from", "shown.json"]].concat());
    let digest = next["deployment"]["follows"].as_str().expect("it follows the one that is shown").to_owned();
    let steps = next["delta"]["steps"].as_array().expect("steps");
    let schedule = json!({ "do": "equip", "on": "here", "with": ["schedule"] });
    assert!(steps.iter().all(|step| *step == schedule), "{name}: {}", next["delta"]);
    let traffic = "gen:flows=50,size=128,rate=10Mbps,count=500,time=wall";
    let run = ["run", name, "--in", traffic, "--workers", "2", "--seed", "5", "--json", "--quiet"];
    assert_eq!(catena(path, &run)["deployment"], digest, "{name}");
}

/// Hold two values to the same shape, with numbers that hardly differ.
fn near(one: &Value, other: &Value) -> Result<(), String> {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            let [a, b] = [a, b].map(|number| number.as_f64().unwrap_or(f64::NAN));
            ((a - b).abs() <= 0.02 * a.abs().max(b.abs())).then_some(()).ok_or_else(|| format!("{a} and {b}"))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a.iter().zip(b).try_for_each(|(a, b)| near(a, b)),
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().try_for_each(|(key, value)| near(value, b.get(key).unwrap_or(&Value::Null)))
        }
        (a, b) if a == b => Ok(()),
        (a, b) => Err(format!("{a} and {b}")),
    }
}

/// A file of functions that the library lacks is refused by all three in the same words, which name each of these functions.
fn refused(path: &Path, name: &str) -> String {
    let all: [&[&str]; 3] = [
        &["run", name, "--in", "gen:count=1", "--quiet"],
        &["plan", name, "--rack", "rack.toml", "--profile", "none"],
        &["show", "--stage", "plan", name],
    ];
    let [run, planned, shown] = all.map(|args| {
        let output = output(path, args);
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?} passes");
        String::from_utf8(output.stderr).expect("text")
    });
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((words(&planned), words(&shown)), (words(&run), words(&run)), "{name}");
    let why = run.lines().filter(|line| line.starts_with("error[unknown-function]: there is no function `")).count();
    assert!(why > 0, "{name} is no example of what the library lacks, and it does not pass: {run}");
    run.lines().last().unwrap_or_default().to_owned()
}

/// A plan that is written is shown as it was planned, word for word and number for number; its file is not run by it.
fn written_is_shown(path: &Path, name: &str, rack: &str) -> bool {
    // What nobody proves takes no time.
    let plan =
        ["plan", name, "--as", "lemur", "--rack", rack, "--strategy", "lemur", "--seed", "5", "--output", "p.json"];
    _ = std::fs::remove_file(path.join("p.json"));
    let planned = output(path, &plan);
    if !path.join("p.json").exists() {
        // Some racks have nowhere for a function.
        let why = String::from_utf8_lossy(&planned.stderr).into_owned();
        assert!(!planned.status.success() && why.contains("cannot be planned"), "{name} on {rack}: {why}");
        return false;
    }
    let shown = output(path, &["show", "--stage", "plan", "p.json"]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&planned.stdout), "{name} on {rack}");
    assert_eq!(shown.status.code(), planned.status.code(), "{name} on {rack}");
    let written = std::fs::read_to_string(path.join("p.json")).expect("a plan");
    let json = output(path, &["show", "--stage", "plan", "p.json", "--format", "json"]).stdout;
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert_eq!(value(&String::from_utf8_lossy(&json)), value(&written), "{name} on {rack}");
    let run = output(path, &["run", name, "--plan", "p.json", "--in", "gen:count=1", "--quiet"]);
    let why = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success() && why.contains("there is no function"), "{name} on {rack}: {why}");
    planned.status.success()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let clock = format!("{:.6}GHz", catena_dataplane::clock::hertz() as f64 / 1e9);
    std::fs::write(path.join("rack.toml"), RACK.replace("2.5GHz", &clock)).expect("a rack");
    std::fs::write(path.join("profile.json"), profile()).expect("a profile");
    // A run and what shows its plan take what is kept of this machine: the same.
    let kept = catena_planner::quick::path().and_then(|path| Some(path.file_name()?.to_owned())).expect("a place");
    std::fs::create_dir(path.join("catena")).expect("a folder");
    std::fs::write(path.join("catena").join(kept), profile()).expect("a profile");
    folder
}

#[test]
fn show_plan_and_run_agree() {
    let folder = folder();
    for (name, text) in OWN {
        let name = format!("{name}.catena");
        std::fs::write(folder.path().join(&name), text).expect("a chain file");
        agree(folder.path(), &name);
    }
}

#[test]
fn show_plan_and_run_agree_on_every_example() {
    let folder = folder();
    let path = folder.path();
    let (mut run, mut planned, mut neither) = (0, 0, 0);
    let examples = examples(path);
    let racks = std::fs::read_dir(path.join("examples/racks")).expect("a folder");
    let name = |entry: std::fs::DirEntry| format!("examples/racks/{}", entry.file_name().to_string_lossy());
    let racks: Vec<String> = racks.map(|entry| name(entry.expect("an entry"))).collect();
    for name in examples {
        if passes(path, &name, &[]) {
            agree(path, &name);
            run += 1;
            continue;
        }
        let why = refused(path, &name);
        let is_papers = passes(path, &name, &["--as", "lemur"]);
        assert_eq!(why.contains("catena plan --as lemur"), is_papers, "{name}: {why}");
        if !is_papers {
            neither += 1;
            continue;
        }
        planned += 1;
        let placed = racks.iter().filter(|rack| written_is_shown(path, &name, rack)).count();
        assert!(placed > 0, "{name} is placed on no rack");
    }
    assert!(run >= 2 && planned >= 7, "{run} that run, {planned} of a paper, {neither} of neither");
}

#[test]
fn a_plan_without_time_for_tasks_says_so_and_is_run() {
    let folder = folder();
    let path = folder.path();
    examples(path);
    let name = "examples/edge.catena";
    let plan = ["plan", name, "--rack", "rack.toml", "--profile", "profile.json", "--seed", "5"];
    let text = output(path, &[&plan[..], &["--time-limit", "0ms", "--output", "p.json"]].concat());
    assert!(text.status.success(), "{}", String::from_utf8_lossy(&text.stderr));
    assert!(
        String::from_utf8_lossy(&text.stdout)
            .contains("The time limit was over before the search for the workers' tasks")
    );
    let written: Value = serde_json::from_slice(&std::fs::read(path.join("p.json")).expect("a plan")).expect("JSON");
    let tasks = &written["servers"][0]["tasks"];
    assert!(tasks["tree"].is_object() && tasks["cut_short"] == true, "{tasks}");
    let enough = catena(path, &[&plan[..], &["--json"]].concat());
    assert!(enough["servers"][0]["tasks"]["cut_short"].is_null());
    let next = catena(path, &[&plan[..6], &["--from", "p.json", "--json"]].concat());
    let traffic = "gen:flows=50,size=128,rate=10Mbps,count=500,time=wall";
    let run = catena(path, &["run", name, "--plan", "p.json", "--in", traffic, "--json", "--quiet"]);
    assert_eq!(run["deployment"], next["deployment"]["follows"]);
}
