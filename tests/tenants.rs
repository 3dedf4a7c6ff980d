//! Tenants that share a worker: what their packets cost comes out of their own part.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Monitors in a row: each costs about as much as receiving a packet.
const DEAR: usize = 20;

/// What a run tells of a tenant.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// In parts of all cycles of the run.
    cost: f64,
    charged: f64,
    /// Packets that its functions took in, for each million cycles of the run: what it has of the core, whatever else takes of it.
    rate: f64,
}

/// Run two tenants with as many Monitors as `x` and `y` say, of whom so many packets come, more than a worker can do.
fn run(folder: &Path, [x, y]: [usize; 2], [of_x, of_y]: [u32; 2]) -> [Account; 2] {
    let chain = |monitors| vec!["Monitor()"; monitors].join(" -> ");
    let chains = format!(
        "class web = \"tcp\"\nclass rest = \"udp\"\nchain x for web {{ in -> {} -> out }}\nchain y for rest {{ in -> {} -> out }}\n\
         cpu x : y = 1 : 1\n",
        chain(x),
        chain(y)
    );
    std::fs::write(folder.join("two.catena"), chains).expect("a chain file");
    let traffic = format!("gen:flows=64,size=256,proto=tcp:{of_x}+udp:{of_y},rate=60Gbps,duration=1200ms,time=wall");
    let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
    let args = ["run", "two.catena", "--in", &traffic, "--tenants", "--json"];
    let output = catena.args(args).current_dir(folder).output();
    let output = output.expect("catena");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let told = &report["tenants"];
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"));
    let cycles = number(told, "cycles");
    let accounts = ["x", "y"].map(|name| {
        let accounts = told["accounts"].as_array().unwrap_or_else(|| panic!("{report}"));
        let row = accounts.iter().find(|row| row["tenant"] == name).unwrap_or_else(|| panic!("{report}"));
        let charged = number(row, "receive_cycles") + number(row, "queue_cycles");
        let taken = number(row, "packets") - number(row, "dropped");
        let cost = number(row, "own_cycles") + charged;
        Account { cost: cost / cycles, charged: charged / cycles, rate: taken * 1e6 / cycles }
    });
    // Every cycle is on one account.
    let sum = accounts.iter().map(|account| account.cost).sum::<f64>() + number(told, "others_cycles") / cycles;
    assert!((sum - 1.0).abs() < 1e-6, "{sum}: {told}");
    accounts
}

/// Wait until no other test of this file runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing half done behind.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn median(turns: &[[Account; 2]], of: impl Fn(&[Account; 2]) -> f64) -> f64 {
    let mut values: Vec<f64> = turns.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn best(turns: &[[Account; 2]], of: impl Fn(&[Account; 2]) -> f64) -> f64 {
    turns.iter().map(of).fold(0.0, f64::max)
}

#[test]
fn a_tenant_with_dear_packets_takes_nothing_from_one_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let _alone = alone();
    let (mut cheap, mut dear) = (Vec::new(), Vec::new());
    // Others share the core, and the caches are on no account: of turns that alternate, three to nine of each, medians of parts
    // and the best of rates. Seen in turns of one run, with no difference in the parts: rates of 1,812 down to 1,190.
    for turn in 1..=9 {
        cheap.push(run(folder.path(), [1, 1], [1, 1]));
        dear.push(run(folder.path(), [1, DEAR], [1, 1]));
        // What it has for its own functions is a part of all cycles; how far that goes, the machine decides in each turn anew.
        let [own_cheap, own_dear] = [&cheap, &dear].map(|turns| median(turns, |[x, _]| x.cost - x.charged));
        let [beside_cheap, beside_dear] = [&cheap, &dear].map(|turns| best(turns, |[x, _]| x.rate));
        // Its packets are many times as dear: it carries a small part of what it did, and costs as much.
        let is_dear = median(&dear, |[_, y]| y.rate) < median(&cheap, |[_, y]| y.rate) / 5.0;
        let costs = [median(&dear, |[x, _]| x.cost), median(&dear, |[_, y]| y.cost)];
        let is_held = costs.iter().all(|cost| (0.44..0.56).contains(cost));
        let takes_nothing = own_dear > 0.9 * own_cheap && beside_dear > 0.9 * beside_cheap;
        if turn >= 3 && is_dear && is_held && takes_nothing {
            return;
        }
    }
    panic!("{cheap:#?}\n{dear:#?}");
}

#[test]
fn who_has_most_packets_pays_for_receiving_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let _alone = alone();
    let mut turns = Vec::new();
    for _ in 0..6 {
        turns.push(run(folder.path(), [DEAR, 1], [1, 2]));
        let [x, y] = [0, 1].map(|tenant| median(&turns, |turn| turn[tenant].cost));
        let [of_x, of_y] = [0, 1].map(|tenant| median(&turns, |turn| turn[tenant].charged));
        // Twice as many packets are received for y; queues and interruptions are in it, too. More would not do: unoptimised,
        // receiving is two thirds of all cycles, and what is received for a tenant has to fit into its part. By own cycles
        // alone each would have as much of what the port leaves, and y what the port does for it besides: seen without charges, 0.38 and 0.62.
        if turns.len() >= 2 && of_y > 1.5 * of_x && [x, y].iter().all(|cost| (0.46..0.54).contains(cost)) {
            return;
        }
    }
    panic!("{turns:#?}");
}

#[test]
fn who_asks_for_tenants_relates_chains_by_cpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |relation: &str, more: &[&str]| {
        let chains = format!(
            "class web = \"tcp\"\nclass rest = \"udp\"\nchain x for web {{ in -> Monitor() -> out }}\n\
             chain y for rest {{ in -> Monitor() -> out }}\n{relation} x : y = 1 : 1\n"
        );
        std::fs::write(folder.path().join("two.catena"), chains).expect("a chain file");
        let traffic = "gen:flows=20,proto=tcp:1+udp:1,count=2k,rate=20kpps,time=wall";
        let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
        catena.args(["run", "two.catena", "--in", traffic, "--json"]).args(more).current_dir(folder.path());
        catena.output().expect("catena")
    };
    // Parts of cycles are of functions' own, unless it is said that they are tenants'.
    let report: Value = serde_json::from_slice(&run("cpu", &[]).stdout).expect("JSON");
    assert!(report.get("tenants").is_none() && report["output"]["packets"] == 2_000, "{report}");
    let refused = run("throughput", &["--tenants"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("--tenants: no `cpu` relation"), "{said}");
}
