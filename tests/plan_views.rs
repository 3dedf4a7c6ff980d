//! One plan has one truth: its text, its JSON, its picture and the tasks of its workers say the same.

use std::process::Command;

use catena_plan::plan::{ChainPlan, Plan, gigabits, ranges};

/// What `catena plan` shows of chains on a rack: text, JSON, picture.
fn views(name: &str, chains: &str, rack: &str, more: &[&str]) -> (String, Plan, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |file: &str| folder.path().join(file);
    std::fs::write(at("chains.catena"), chains).expect("a chain file");
    std::fs::write(at("rack.toml"), rack).expect("a rack");
    let plan = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command
            .args(["plan", "chains.catena", "--rack", "rack.toml", "--profile", "none", "--seed", "7"])
            .current_dir(folder.path());
        let output = command.args(more).args(options).output().expect("catena starts");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = plan(&["--output", "plan.json", "--draw", "plan.svg"]);
    let json = plan(&["--json"]);
    let written = std::fs::read_to_string(at("plan.json")).expect("a plan");
    assert_eq!(json, written, "{name}: what is printed is what is written");
    (text, Plan::from_json(&written).expect("a plan"), std::fs::read_to_string(at("plan.svg")).expect("a picture"))
}

/// The cells of a table's rows whose heading begins with these words.
fn table(text: &str, heading: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let mut lines = text
        .lines()
        .skip_while(|line| !cells(line).starts_with(&heading.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()));
    lines.by_ref().take(2).for_each(drop);
    lines.take_while(|line| !line.is_empty()).map(cells).collect()
}

fn gbit(bps: f64) -> String {
    format!("{:.2}", (bps / 1e7).round() / 1e2 + 0.0)
}

fn compare(name: &str, (text, plan, picture): (String, Plan, String)) {
    let rows = table(&text, &["chain", "promised", "planned"]);
    for chain in &plan.chains {
        let row = rows.iter().find(|row| row[0] == chain.name).unwrap_or_else(|| panic!("{name}: {text}"));
        let promised = chain.promised().unwrap_or_else(|| "-".to_owned());
        assert_eq!((&row[1], &row[2]), (&promised, &gbit(chain.rate_bps)), "{name}");
        assert!(
            picture.contains(&format!("carries {} Gbit/s", gbit(chain.rate_bps)))
                || picture.contains(&format!("carries {} Gbit/s", gigabits(chain.rate_bps))),
            "{name}: {picture}"
        );
        for function in &chain.functions {
            assert!(picture.contains(&format!(">{}<", function.name)), "{name}: {} is not drawn", function.name);
        }
        functions(name, &text, chain);
    }
    for server in &plan.servers {
        let Some(tasks) = &server.tasks else { continue };
        assert_eq!(tasks.workers as usize, server.workers.len(), "{name}: a worker on each core");
        // Every core runs every chain.
        let cores: Vec<u32> = server.workers.iter().map(|worker| worker.core).collect();
        for function in plan.chains.iter().flat_map(|chain| &chain.functions) {
            assert_eq!(function.cores, cores, "{name}: {}", function.name);
        }
        for row in table(&text, &["promised", "gets"]) {
            let own = |class: &&catena_plan::tasks::ClassFigures| class.name == row[0];
            let packets: f64 = tasks.classes.iter().filter(own).map(|class| class.packets).sum();
            assert_eq!(row[2], gbit(packets * plan.packet_bytes * 8.0), "{name}: {}", row[0]);
        }
        for chain in &plan.chains {
            let own = |name: &str| name.split('/').next() == Some(&chain.name);
            let packets: f64 = tasks.classes.iter().filter(|c| own(&c.name)).map(|class| class.packets).sum();
            let bps = packets * plan.packet_bytes * 8.0;
            assert!(bps <= chain.t_max_bps.unwrap_or(f64::INFINITY) * 1.001, "{name}: {} has {bps}", chain.name);
        }
    }
}

/// The rows of a chain's functions: where they run.
fn functions(name: &str, text: &str, chain: &ChainPlan) {
    let rows = table(text, &["chain", "function", "runs on"]);
    let first = rows.iter().position(|row| row[0] == chain.name).unwrap_or_else(|| panic!("{name}: {text}"));
    for (n, function) in chain.functions.iter().enumerate() {
        let row = &rows[first + n][usize::from(n == 0)..];
        let mark = if function.borrowed { "*" } else { "" };
        assert_eq!((&row[0], &row[1]), (&format!("{}{mark}", function.name), &function.on), "{name}");
        if !function.cores.is_empty() {
            assert_eq!(row[2], ranges(&function.cores), "{name}: {}", function.name);
        }
    }
}

const CLASSES: &str = "class a = \"src net 10.1.0.0/16\"\nclass b = \"src net 10.2.0.0/16\"\n";
const MACHINE: &str = "packet_bytes = 512\n[[server]]\nname = \"here\"\ncores = 4\nsteering_cores = 0\nshared = true\n\
                       clock = \"2.5GHz\"\nnics = [\"10Gbps\"]\n";
const RACK: &str = "[switch]\nname = \"tor\"\nkind = \"plain\"\nports = 8\nport = \"40Gbps\"\n[[server]]\nname = \"nf\"\n\
                    count = 2\ncores = 4\nsteering_cores = 1\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";

#[test]
fn all_views_of_a_plan_say_the_same() {
    let two = |x: &str, y: &str, more: &str| {
        let acl = "ACL(rules = [\"permit any\"])";
        format!(
            "{CLASSES}chain x for a {{ {x} in -> {acl} -> Monitor() -> out }}\nchain y for b {{ {y} in -> Monitor() -> out }}\n{more}\n"
        )
    };
    let cases = [
        ("plain", two("", "", "")),
        ("promised", two("promise 100Mbps..", "promise ..2Gbps", "")),
        ("priority", two("promise 1Gbps..", "", "priority y > x")),
        ("ratio with an upper end", two("promise ..10Mbps", "", "cpu x : y = 100 : 1")),
        ("share", two("promise 1Gbps..", "", "share x : y = 1 : 3")),
        (
            "classes",
            format!("{CLASSES}chain x for a, b {{ promise ..3Gbps in -> Monitor() -> out }}\ncpu a : b = 1 : 3\n"),
        ),
        ("one", "chain x { promise ..10Mbps in -> Monitor() -> out }\n".to_owned()),
    ];
    for (name, chains) in &cases {
        compare(name, views(name, chains, MACHINE, &[]));
        compare(name, views(name, chains, RACK, &[]));
        compare(name, views(name, chains, MACHINE, &["--strategy", "lemur", "--objective", "fair"]));
    }
    let racks = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/racks/");
    let lemur = std::fs::read_to_string(format!("{racks}lemur.toml")).expect("a rack");
    let chain = "chain x { promise 500Mbps.. in -> ACL -> Encrypt -> Monitor -> out }\n";
    compare("a programmable switch", views("lemur", chain, &lemur, &["--as", "lemur"]));
}
