//! What a received packet costs, by its kind (Khalid's dissertation, Table 2.15), and by how much one cost for all would be wrong.

use std::time::Duration;

use catena_bench::record::{Record, median};
use catena_isolation::scene::actor::Protocol;
use catena_isolation::scene::turn::{Times, Traffic, Turn};
use catena_isolation::scene::{Scene, SceneError};

use super::{ACT, Options};

/// Datagrams a second: fewer than the receiver can take.
const RATE: u32 = 20_000;

/// Kinds of packets: by what, whether through a tunnel, and the paper's us. Its tunnel is GRE.
const KINDS: [(&str, Protocol, bool, f64); 3] = [
    ("a UDP packet", Protocol::Udp, false, 0.706),
    ("a TCP packet", Protocol::Tcp, false, 1.670),
    ("a UDP packet in VXLAN", Protocol::Udp, true, 1.184),
];

/// Measure all of them.
///
/// # Errors
/// When there is no scene.
pub fn rows(options: &Options) -> Result<Vec<Record>, SceneError> {
    let mut rows: Vec<Record> = Vec::new();
    for (name, protocol, is_tunnelled, paper) in KINDS {
        let name = format!("{name}: cost of receiving");
        if !name.contains(&options.only) {
            continue;
        }
        eprintln!("{name}");
        let containers = [("victim".to_owned(), 10.0), ("receiver".to_owned(), 85.0)];
        let mut scene = Scene::new(&containers, &[ACT])?;
        if is_tunnelled {
            scene.tunnel()?;
        }
        let rate = if protocol == Protocol::Udp { RATE } else { 1 };
        let traffic = Traffic { protocol, sends: false, rate, count: 1 };
        let times = Times { before: Duration::from_millis(300), measured: options.measured };
        let (mut costs, mut gap) = (Vec::new(), 0.0_f64);
        for _ in 0..options.rounds {
            let seen = scene.turn(traffic, Turn::Without, times, || false)?;
            let receiver = scene.containers()[1].cgroup();
            let row = seen.status.cgroups.iter().find(|row| row.name == receiver);
            costs.push(row.map_or(0.0, |row| row.softirq_ns as f64 / 1e3 / row.packets.max(1) as f64));
            gap = gap.max(seen.status.gap * 100.0);
        }
        let (value, spread) = median(&mut costs);
        let first = rows.first().map_or(value, |udp| udp.value);
        rows.push(Record {
            bench: "iron-costs".to_owned(),
            case: name,
            unit: "us of softirq".to_owned(),
            value,
            spread,
            paper: Some(paper),
            peer: vec![
                ("accounts' gap, %".to_owned(), gap),
                ("UDP's cost for all would be wrong by, %".to_owned(), (first / value - 1.0) * 100.0),
            ],
            ..Record::default()
        });
    }
    Ok(rows)
}
