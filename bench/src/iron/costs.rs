//! What a received packet costs, by its kind (Khalid's dissertation, Table 2.15), and by how much one cost for all would be wrong.

use std::time::Duration;

use catena_isolation::scene::actor::{DATAGRAM, Protocol};
use catena_isolation::scene::turn::{Times, Traffic, Turn, Way};
use catena_isolation::scene::{Scene, SceneError};
use catena_records::record::{Record, median};

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
    let mut udp = None;
    for (kind, (name, protocol, is_tunnelled, paper)) in KINDS.into_iter().enumerate() {
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
        let traffic = Traffic { protocol, way: Way::In, size: DATAGRAM, rate, count: 1 };
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
        udp = if kind == 0 { Some(value) } else { udp };
        rows.push(Record {
            bench: "iron-costs".to_owned(),
            case: name,
            unit: "us of softirq".to_owned(),
            value,
            spread,
            paper: Some(paper),
            peer: beside(gap, value, udp),
            ..Record::default()
        });
    }
    Ok(rows)
}

/// Return what stands beside a cost: the gap, and how wrong a UDP packet's cost, where it was measured, would be for this one.
fn beside(gap: f64, value: f64, udp: Option<f64>) -> Vec<(String, f64)> {
    let mut beside = vec![("accounts' gap, %".to_owned(), gap)];
    let wrong = |udp: f64| ("UDP's cost for all would be wrong by, %".to_owned(), (udp / value - 1.0) * 100.0);
    beside.extend(udp.map(wrong));
    beside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_compared_with_that_of_udp_or_with_none() {
        assert_eq!(beside(0.5, 4.0, None), [("accounts' gap, %".to_owned(), 0.5)]);
        assert_eq!(beside(0.5, 4.0, Some(1.0))[1], ("UDP's cost for all would be wrong by, %".to_owned(), -75.0));
        assert_eq!(KINDS[0].1, Protocol::Udp);
    }
}
