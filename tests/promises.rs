//! What a file promises holds in a run that nobody planned before.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Seconds of more than a worker can do, four times as much of `rest` as of `web`.
const FLOOD: &str = "gen:flows=2000,size=256,proto=udp:4+tcp:1,rate=60Gbps,duration=2500ms,time=wall";

fn run(folder: &Path, chains: &str, traffic: &str) -> (Value, String) {
    let classes = "class web = \"tcp\"\nclass rest = \"udp\"\n";
    std::fs::write(folder.join("two.catena"), format!("{classes}{chains}")).expect("a chain file");
    let mut catena = Command::new(env!("CARGO_BIN_EXE_catena"));
    let output =
        catena.args(["run", "two.catena", "--in", traffic, "--json"]).current_dir(folder).output().expect("catena");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    (serde_json::from_slice(&output.stdout).expect("JSON"), told)
}

/// What the chains of a report carried, bits per second.
fn carried(report: &Value) -> Vec<f64> {
    let chains = report["promised"].as_array().unwrap_or_else(|| panic!("{report}"));
    chains.iter().map(|chain| chain["carried_bps"].as_f64().expect("a rate")).collect()
}

#[test]
fn who_is_promised_has_it_beside_a_flood_that_comes_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains = "chain x for web { promise 100Mbps.. in -> Monitor() -> out }\n\
                  chain y for rest { in -> Monitor() -> Monitor() -> out }\npriority y > x\n";
    let (report, told) = run(folder.path(), chains, FLOOD);
    let [x, y] = carried(&report)[..] else { panic!("{report}") };
    // Without a promise some thousand packets. A core that is another's for longer than a queue lasts takes what comes meanwhile.
    // Four times as much comes of y: where the core is so slow that nobody has to wait, that is what it has.
    assert!(x > 0.9e8 && y > 3.0 * x, "{x} and {y}: {told}");
    assert_eq!(report["promised"][0]["kept"], x >= 0.98e8, "{report}");
    // What is beyond the promise is left where somebody who comes first takes all.
    assert!(report["promised"][1].get("kept").is_none(), "nothing is promised to y");
}

#[test]
fn a_ratio_holds_where_more_comes_than_can_be_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "in -> Monitor() -> Monitor() -> Monitor() -> out";
    let chains = format!("chain x for web {{ {chain} }}\nchain y for rest {{ {chain} }}\nthroughput x : y = 1 : 2\n");
    // As much of each, so that neither has all that comes. On a quiet core the ratio is within a twentieth; this one is shared with
    // other tests and other machines, and now and then a run is far off: it is the middle of three. Without the relation both have as much.
    let mut ratios = [(); 3].map(|()| {
        let (report, told) = run(folder.path(), &chains, &FLOOD.replace("udp:4", "udp:1"));
        let [x, y] = carried(&report)[..] else { panic!("{report}") };
        (y / x, told)
    });
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!((1.4..2.8).contains(&ratios[1].0), "{ratios:?}");
}

/// As much comes of both, and more than can be done: who comes first has what comes of it, and the other one what is left. On a quiet
/// machine it is 99.8 to 100% and 0 to 0.03% (five runs, optimised); where nobody comes first, 49.9 to 50.1%. The rest is for other guests.
#[test]
fn who_comes_first_has_more_than_who_comes_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "in -> Monitor() -> Monitor() -> Monitor() -> Monitor() -> out";
    let part = |relation: &str| {
        let chains = format!("chain x for web {{ {chain} }}\nchain y for rest {{ {chain} }}\n{relation}\n");
        let (report, told) = run(folder.path(), &chains, &FLOOD.replace("udp:4", "udp:1"));
        let [x, y] = carried(&report)[..] else { panic!("{report}") };
        (x / (x + y), told)
    };
    let (first, last, same) = (part("priority x > y"), part("priority y > x"), part("throughput x : y = 1 : 1"));
    assert!(first.0 > 0.9 && last.0 < 0.1, "{first:?} of all where x comes first, {last:?} where it comes last");
    assert!((0.4..0.6).contains(&same.0), "{same:?} of all where nobody comes first");
}

/// Whatever relation it is in, for a chain that has all that it may have is in none.
#[test]
fn who_may_have_so_much_has_it_beside_a_flood() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "in -> Monitor() -> Monitor() -> out";
    for relation in ["share x : y = 5 : 1", "throughput x : y = 5 : 1", ""] {
        let chains =
            format!("chain x for web {{ promise ..200Mbps {chain} }}\nchain y for rest {{ {chain} }}\n{relation}\n");
        // Beside a `share` it was 5% of it. A core that is another's for a while takes some, never adds any: who has too little has
        // another try.
        let mut tries: Vec<(f64, f64, String)> = Vec::new();
        while tries.len() < 3 && tries.iter().all(|(x, ..)| *x < 1.2e8) {
            let (report, told) = run(folder.path(), &chains, &FLOOD.replace("udp:4", "udp:1"));
            let [x, y] = carried(&report)[..] else { panic!("{report}") };
            assert!(x < 2.05e8 && y > x, "{relation}: {x} and {y}: {told}");
            tries.push((x, y, told));
        }
        assert!(tries.iter().any(|(x, ..)| *x >= 1.2e8), "{relation}: {tries:?}");
    }
}

#[test]
fn a_ratio_with_somebody_silent_costs_nobody_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "in -> Monitor() -> out";
    let carried = |first: &str, relation: &str| {
        let chains = format!("chain x for web {{ {first} {chain} }}\nchain y for rest {{ {chain} }}\n{relation}\n");
        let (report, told) = run(folder.path(), &chains, &FLOOD.replace("udp:4+tcp:1", "udp:1"));
        report["output"]["packets"].as_f64().unwrap_or_else(|| panic!("{report}: {told}"))
    };
    // By the letter of the ratio nothing comes through, and the worker reads in vain for the other: 3% of what it could.
    let without = carried("", "");
    for (first, relation) in [("", "throughput x : y = 1 : 2"), ("promise 10Mbps..", "share x : y = 1 : 2")] {
        let with = carried(first, relation);
        assert!(with > without / 3.0, "{with} packets with `{relation}`, {without} without");
    }
}

#[test]
fn a_replay_loses_nothing_to_promises() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains =
        "chain x for web { promise ..1Mbps in -> Monitor() -> out }\nchain y for rest { in -> Monitor() -> out }\n";
    let (report, told) = run(folder.path(), chains, "gen:flows=200,proto=udp:4+tcp:1,count=100k");
    assert_eq!((&report["output"]["packets"], &told[..]), (&Value::from(100_000), ""));
    assert!(report.get("promised").is_none(), "{report}");
}

#[test]
fn promises_that_nothing_holds_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains =
        "chain x for web { promise 900Gbps.. in -> Monitor() -> out }\nchain y for rest { in -> Monitor() -> out }\n";
    let few = "gen:flows=20,proto=udp:4+tcp:1,count=2k,rate=20kpps,time=wall";
    let (report, told) = run(folder.path(), chains, few);
    assert!(
        told.starts_with(
            "catena: the promised rates are more than what 1 of this machine's cores are thought to carry;"
        ),
        "{told}"
    );
    assert_eq!(report["output"]["packets"], 2_000);
}

/// What is let in is counted once, whichever functions it meets first, and no packet of the way back is.
#[test]
fn no_more_is_taken_in_than_came() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains = "chain x for web { promise ..5Mbps in -> [ \"tcp portrange 1-65535\": ACL(rules = [\"permit any\"]), else: ] \
                  -> Monitor() -> out }\nchain y for rest { in -> Monitor() -> out }\n";
    let traffic = "gen:flows=20,size=256,proto=tcp,rate=20Mbps,duration=2s,time=wall";
    let (report, told) = run(folder.path(), chains, traffic);
    let (came, taken) = (report["promised"][0]["came_bps"].as_f64(), report["promised"][0]["carried_bps"].as_f64());
    let (came, taken) = (came.expect("a rate"), taken.expect("a rate"));
    // A burst is taken in at once; all that waited is taken in at the end.
    assert!(came > 1.2e7 && taken < 0.8 * came, "{taken} of {came}: {told}");
    let left = report["output"]["bytes"].as_f64().expect("a count") * 8.0 / report["seconds"].as_f64().expect("a time");
    assert!((taken / left - 1.0).abs() < 0.01, "{taken}, and {left} left: {report}");
}

/// Nobody counts the packets of a chain without functions: nothing is said of them.
#[test]
fn what_nobody_counts_is_not_called_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let chains = "chain x for web { in -> Monitor() -> out }\nchain y for rest { promise 1Gbps.. in -> out }\n";
    let (report, _) = run(folder.path(), chains, "gen:flows=10,proto=udp,rate=10Mbps,count=200,time=wall");
    let y = &report["promised"][1];
    let absent = ["kept", "came_bps", "carried_bps"].iter().all(|key| y.get(key).is_none());
    assert!(y["chain"] == "y" && absent, "{y}");
}
