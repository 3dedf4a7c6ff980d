//! Relations about classes that are some of several of their chain: planners, tasks and the check know of them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const CLASSES: &str = "class calls = \"udp\"\nclass web = \"tcp port 80\"\nclass mail = \"tcp port 25\"\n\
     chain both for calls, web { in -> Monitor() -> out }\n\
     chain post for mail { in -> ACL(rules = \"permit any\") -> Monitor() -> out }\n";
/// A server with cores for all that its card brings, and one that is short of them.
const RACKS: [&str; 3] = [
    "name = \"roomy\"\n[[server]]\nname = \"s\"\ncores = 4\nshared = true\nsteering_cores = 0\nclock = \"3GHz\"\nnics = [\"10Gbps\"]\n",
    "name = \"short\"\n[[server]]\nname = \"s\"\ncores = 1\nshared = true\nsteering_cores = 0\nclock = \"1GHz\"\nnics = [\"100Gbps\"]\n",
    include_str!("../examples/racks/lemur.toml"),
];

fn catena(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.args(words).current_dir(folder).env("XDG_CACHE_HOME", folder).stdin(Stdio::null());
    command.output().expect("catena starts")
}

/// Plan for a rack: the plan's file, and what is in it.
fn plan(folder: &Path, rack: &str, relation: &str, objective: &str) -> (String, Value) {
    std::fs::write(folder.join("classes.catena"), format!("{CLASSES}{relation}\n")).expect("a file");
    std::fs::write(folder.join("rack.toml"), rack).expect("a file");
    let line = format!("plan classes.catena --rack rack.toml --profile none --seed 1 --json --objective {objective}");
    let output = catena(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{relation}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let plan = serde_json::from_str(&text).expect("JSON");
    (text, plan)
}

fn rates(plan: &Value) -> [f64; 2] {
    [0, 1].map(|chain| plan["placement"]["rates_bps"][chain].as_f64().expect("a rate"))
}

#[test]
fn a_ratio_with_a_class_bounds_the_other_chain() {
    let folder = tempfile::tempdir().expect("a folder");
    for rack in RACKS {
        let free = rates(&plan(folder.path(), rack, "", "fair").1);
        assert!((free[0] / free[1] - 1.0).abs() < 1e-3, "{free:?}");
        let (_, related) = plan(folder.path(), rack, "throughput web : post = 3 : 1", "fair");
        let [both, post] = rates(&related);
        assert!((both / post - 3.0).abs() < 1e-3 && both > 1.2 * free[0], "{both} {post}, without: {free:?}");
        assert_eq!(related["unseen"], Value::Null, "planners know of it");
        assert!(related["verdict"]["kept"]["bound_bps"].is_f64(), "{}", related["verdict"]);
        // It asks for nothing that is there anyway.
        let (_, loose) = plan(folder.path(), rack, "throughput web : post = 1 : 3", "fair");
        assert!((rates(&loose)[0] / free[0] - 1.0).abs() < 1e-3, "{:?}, without: {free:?}", rates(&loose));
    }
}

#[test]
fn a_chain_comes_where_the_first_of_its_classes_does() {
    let folder = tempfile::tempdir().expect("a folder");
    for rack in RACKS {
        for (relation, first) in
            [("priority calls > post > web", 0), ("priority post > web", 1), ("priority web > post", 0)]
        {
            let (_, plan) = plan(folder.path(), rack, relation, "marginal");
            let rates = rates(&plan);
            assert!(rates[first] > 1e8 && rates[1 - first] < rates[first] / 2.0, "{relation}: {rates:?}");
            assert_eq!((&plan["unseen"], plan["verdict"]["kept"]["bound_bps"].is_f64()), (&Value::Null, true));
        }
    }
}

#[test]
fn tasks_give_classes_what_relations_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let has = |plan: &Value, name: &str, figure: &str| -> f64 {
        let classes = plan["servers"][0]["tasks"]["classes"].as_array().expect("classes");
        let class = classes.iter().find(|class| class["name"] == name).unwrap_or_else(|| panic!("{name}: {classes:?}"));
        class[figure].as_f64().expect("a figure")
    };
    for (relation, figure, ratio) in [
        ("throughput web : post = 3 : 1", "packets", 3.0),
        ("cpu web : post = 1 : 2", "cpu", 0.5),
        ("share web : post = 3 : 1", "packets", 3.0),
    ] {
        let (_, plan) = plan(folder.path(), RACKS[1], relation, "fair");
        let is = has(&plan, "both/web", figure) / has(&plan, "post", figure);
        assert!((is / ratio - 1.0).abs() < 0.02, "{relation}: {is}");
    }
}

#[test]
fn a_plan_that_breaks_the_ratio_is_refused_by_its_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let relation = "throughput web : post = 3 : 1";
    let (text, plan) = plan(folder.path(), RACKS[0], relation, "fair");
    let [both, post] = rates(&plan);
    let run = |text: &str| {
        std::fs::write(folder.path().join("plan.json"), text).expect("a file");
        let output = catena(folder.path(), &["run", "classes.catena", "--in", "gen:count=1", "--plan", "plan.json"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let mut lie = plan.clone();
    lie["placement"]["rates_bps"] = serde_json::json!([both * 0.9, post]);
    let told = run(&lie.to_string());
    assert!(told.contains(relation), "{told}");
    assert!(!run(&text).contains(relation), "{}", run(&text));
}
