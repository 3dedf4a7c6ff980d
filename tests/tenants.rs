//! Tenants that share a worker: what their packets cost comes out of their own part.

use std::path::Path;
use std::process::Command;

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
    let traffic = format!("gen:flows=2000,size=256,proto=tcp:{of_x}+udp:{of_y},rate=60Gbps,duration=1500ms,time=wall");
    let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
    let output = catena.args(["run", "two.catena", "--in", &traffic, "--json"]).current_dir(folder).output();
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

/// Other tests share the core, and what packets cost with it: it must be seen once in six times.
fn seen(mut shows: impl FnMut() -> Result<(), String>) {
    let mut hidden = Vec::new();
    while let Err(why) = shows() {
        hidden.push(why);
        assert!(hidden.len() < 6, "{hidden:#?}");
    }
}

#[test]
fn a_tenant_with_dear_packets_takes_nothing_from_one_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    seen(|| {
        let [before, dear, after] = [1, DEAR, 1].map(|monitors| run(folder.path(), [1, monitors], [1, 1]));
        let beside_cheap = (before[0].rate + after[0].rate) / 2.0;
        // Its packets are many times as dear: it carries a small part of what it did, and costs as much.
        let is_dear = dear[1].rate < after[1].rate / 5.0;
        let is_held = (0.46..0.54).contains(&dear[1].cost) && (0.46..0.54).contains(&dear[0].cost);
        // Seen, on a core that builds shared: 0.80 to 1.15 times as much in seven turns, 1.03 in the middle.
        let is_left = dear[0].rate > 0.95 * beside_cheap;
        let all = format!("{before:?}\n{dear:?}\n{after:?}");
        if is_dear && is_held && is_left { Ok(()) } else { Err(all) }
    });
}

#[test]
fn who_has_most_packets_pays_for_receiving_them() {
    let folder = tempfile::tempdir().expect("a folder");
    seen(|| {
        let [x, y] = run(folder.path(), [DEAR, 1], [1, 4]);
        // By own cycles alone each would have as much of what the port leaves, and y what the port does for it besides: seen without
        // accounts, 0.39 to 0.46, and the rest.
        let is_charged = y.charged > 3.0 * x.charged;
        let is_held = (0.46..0.54).contains(&x.cost) && (0.46..0.54).contains(&y.cost);
        if is_charged && is_held { Ok(()) } else { Err(format!("{x:?}\n{y:?}")) }
    });
}

#[test]
fn a_file_without_parts_of_cpu_has_no_tenants() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains = "class web = \"tcp\"\nclass rest = \"udp\"\nchain x for web { in -> Monitor() -> out }\n\
                  chain y for rest { in -> Monitor() -> out }\nthroughput x : y = 1 : 1\n";
    std::fs::write(folder.path().join("two.catena"), chains).expect("a chain file");
    let traffic = "gen:flows=20,proto=tcp:1+udp:1,count=2k,rate=20kpps,time=wall";
    let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
    let output = catena.args(["run", "two.catena", "--in", traffic, "--json"]).current_dir(folder.path()).output();
    let report: Value = serde_json::from_slice(&output.expect("catena").stdout).expect("JSON");
    assert!(report.get("tenants").is_none() && report["output"]["packets"] == 2_000, "{report}");
}
