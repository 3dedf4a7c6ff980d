//! What `show --stage plan` shows, `plan` plans and `run` runs is one plan.

use std::path::Path;
use std::process::Command;

use catena_functions::registry;
use catena_plan::paper;
use catena_plan::profile::{Cost, Cycles};
use serde_json::{Value, json};

/// A machine like the one that a run plans for, with two workers.
const RACK: &str = "name = \"this machine\"\n[[server]]\nname = \"here\"\ncores = 2\nsteering_cores = 0\nshared = true\n\
    clock = \"2.5GHz\"\nnics = [\"400Gbps\"]\n";

fn catena(folder: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    let output = command.args(args).current_dir(folder).env("XDG_CACHE_HOME", folder).output().expect("catena starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Chain files that this library can run.
fn files() -> Vec<(&'static str, String)> {
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
        std::fs::read_to_string(path).expect("an example")
    };
    let own = |text: &str| text.to_owned();
    vec![
        ("edge", example("edge.catena")),
        ("one chain", own("in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out\n")),
        ("two-way", own("in <-> NAT(pool = 198.51.100.0/24) <-> out\n")),
        (
            "classes",
            own("class web = \"tcp port 80\"\nclass rest = \"udp\"\n\
                 chain a for web { in -> ACL(rules = [\"permit any\"]) -> [ \"net 10.0.0.0/8\": Monitor(), else: drop ] -> out }\n\
                 chain b for rest { in -> Monitor() -> out }\n"),
        ),
        (
            "promised",
            own("class web = \"tcp\"\nclass rest = \"udp\"\n\
                 chain a for web { promise 10Mbps..1Gbps in -> Monitor() -> out }\n\
                 chain b for rest { in -> ACL(rules = [\"permit any\"]) -> out }\ncpu a : b = 1 : 2\n"),
        ),
    ]
}

/// Something for every function: that it costs something else here is nothing to who runs where.
fn profile() -> String {
    let mut profile = paper::profile();
    for function in registry::FUNCTIONS {
        let cost = || Cost { server: Cycles::constant(100.0), smart_nic: None, source: None };
        profile.functions.entry(function.name.to_owned()).or_insert_with(cost);
    }
    profile.to_text().expect("text")
}

#[test]
fn show_plan_and_run_agree() {
    for (name, text) in files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::write(path.join("c.catena"), &text).expect("a chain file");
        std::fs::write(path.join("rack.toml"), RACK).expect("a rack");
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edge.acl");
        std::fs::copy(rules, path.join("edge.acl")).expect("the example's rules");
        std::fs::write(path.join("profile.json"), profile()).expect("a profile");
        let plan = ["plan", "c.catena", "--rack", "rack.toml", "--profile", "profile.json", "--json"];
        let planned = catena(path, &[&plan[..], &["--seed", "5"]].concat());
        let shown =
            catena(path, &["show", "--stage", "plan", "c.catena", "--workers", "2", "--seed", "5", "--format", "json"]);
        let parts = |plan: &Value| {
            let mut runs = plan["deployment"].clone();
            runs.as_object_mut().expect("an object").remove("follows");
            // What functions cost is in the weights, and the profile has other costs than this machine.
            let schedule = runs["devices"][0].as_object_mut().and_then(|here| here.remove("schedule"));
            assert!(schedule.is_some_and(|digest| digest.is_string()), "{name}");
            runs
        };
        assert_eq!(parts(&shown), parts(&planned), "{name}");
        let tree = |plan: &Value| plan["servers"][0]["tasks"]["tree"].is_object();
        if text.contains("promise") {
            assert!(tree(&shown) && tree(&planned), "{name}: what is promised is held by a tree");
        }

        // What follows the plan that is shown names its digest, as a run does.
        std::fs::write(path.join("shown.json"), shown.to_string()).expect("a plan");
        let next = catena(path, &[&plan[..], &["--from", "shown.json"]].concat());
        let digest = next["deployment"]["follows"].as_str().expect("it follows the one that is shown").to_owned();
        let steps = next["delta"]["steps"].as_array().expect("steps");
        let schedule = json!({ "do": "equip", "on": "here", "with": ["schedule"] });
        assert!(steps.iter().all(|step| *step == schedule), "{name}: {}", next["delta"]);
        let traffic = "gen:flows=50,size=128,rate=10Mbps,count=500,time=wall";
        let run = ["run", "c.catena", "--in", traffic, "--workers", "2", "--seed", "5", "--json", "--quiet"];
        assert_eq!(catena(path, &run)["deployment"], digest, "{name}");
    }
}
