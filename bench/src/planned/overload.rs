//! What chains get of each other where more comes of each than can be done.
//!
//! How much is done in all depends on what it costs to make so many packets, which a profile of slower traffic does not know. So what is
//! held to the plan is what the file's relations say: what one chain gets for what the other one gets, beyond what they are promised.

use std::path::Path;

use catena_records::record::{Record, median};
use serde_json::Value;

use super::cases::Case;
use super::catena;

/// How far it may be from the planned one.
const OFF: f64 = 0.05;
/// How long a run is.
const LONG: &str = "10s";

/// What one of two chains gets.
struct Gets {
    /// Bits per second.
    promised: f64,
    planned: f64,
    carried: f64,
    /// Cycles spent on its packets, those of receiving them as well.
    spent: f64,
}

/// Run the plan of `case` several times, with as much traffic as can be made.
pub fn measured(folder: &Path, case: &Case, traffic: &str, runs: usize) -> Result<Vec<Record>, String> {
    let (flows, _) = traffic.rsplit_once(",rate=").ok_or("the traffic has no rate")?;
    let input = format!("{flows},rate=unlimited,time=wall");
    let plan: Value = super::read(&folder.join("plan.json"))?;
    let (mut name, mut planned, mut all) = (String::new(), 0.0, Vec::new());
    for _ in 0..runs {
        let args = ["run", "case.catena", "--no-reduce", "--plan", "plan.json", "--in", &input, "--duration", LONG];
        let accounts = case.tail.starts_with("cpu").then_some("--tenants");
        let text = catena(folder, &args.into_iter().chain(["--json"]).chain(accounts).collect::<Vec<_>>())?;
        let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let two = gets(&plan, &report).ok_or("plan and report are not of two chains")?;
        let (what, shall, is) = relation(case, &two)?;
        (name, planned) = (format!("{}: {what}", case.name), shall);
        all.push(is);
    }
    let (value, spread) = median(&mut all);
    Ok(vec![Record {
        bench: "planned".to_owned(),
        case: name,
        unit: "ratio".to_owned(),
        value,
        spread,
        bar: Some(planned * (1.0 + OFF)),
        floor: Some(planned * (1.0 - OFF)),
        peer: vec![("planned".to_owned(), planned)],
        limit: Some(format!("off by {:+.1}%", 100.0 * (value / planned - 1.0))),
        ..Record::default()
    }])
}

/// What the case's relation says, and what is planned and measured of it.
fn relation(case: &Case, [a, b]: &[Gets; 2]) -> Result<(&'static str, f64, f64), String> {
    let beyond = |of: fn(&Gets) -> f64| (of(a) - a.promised) / (of(b) - b.promised);
    match case.tail.split(' ').next() {
        Some("throughput" | "share") => {
            Ok(("what a gets beyond its promise, of what b gets", beyond(|of| of.planned), beyond(|of| of.carried)))
        }
        // Who comes last has its promise, and what the first leaves.
        Some("priority") => Ok(("what a gets, of its promise", a.planned / a.promised, a.carried / a.promised)),
        Some("cpu") => Ok(("what is spent on a's packets, of what on b's", case.ratio(), a.spent / b.spent)),
        _ => Err(format!("{}: it has no relation", case.name)),
    }
}

fn gets(plan: &Value, report: &Value) -> Option<[Gets; 2]> {
    let bits = plan["packet_bytes"].as_f64()? * 8.0;
    let one = |n: usize| {
        let (promised, account) = (&report["promised"][n], &report["tenants"]["accounts"][n]);
        let spent = ["own_cycles", "receive_cycles", "queue_cycles"].map(|key| account[key].as_f64().unwrap_or(0.0));
        Some(Gets {
            promised: promised["t_min_bps"].as_f64()?,
            planned: plan["servers"][0]["tasks"]["classes"][n]["packets"].as_f64()? * bits,
            carried: promised["carried_bps"].as_f64()?,
            spent: spent.iter().sum(),
        })
    };
    Some([one(0)?, one(1)?])
}
