//! What a received packet costs, by its kind (Khalid's dissertation, Table 2.15), and by how much one cost for all would be wrong
//! (section 2.3.2, "Packet cost variation").

use std::time::Duration;

use catena_isolation::Row;
use catena_isolation::scene::actor::{DATAGRAM, Protocol};
use catena_isolation::scene::turn::{Times, Traffic, Turn, Way};
use catena_isolation::scene::{Scene, SceneError};
use catena_records::record::{Record, median};

use super::over;
use super::{ACT, Options};

/// Datagrams a second: fewer than the receiver can take.
const RATE: u32 = 20_000;

/// A kind of packets.
struct Kind {
    name: &'static str,
    protocol: Protocol,
    /// Bytes of a datagram.
    size: usize,
    is_tunnelled: bool,
    /// The paper's us, where it has the kind. Its tunnel is GRE.
    paper: Option<f64>,
}

const KINDS: [Kind; 4] = [
    kind("a UDP packet", Protocol::Udp, DATAGRAM, false, Some(0.706)),
    kind("a TCP packet", Protocol::Tcp, DATAGRAM, false, Some(1.670)),
    kind("a UDP packet in VXLAN", Protocol::Udp, DATAGRAM, true, Some(1.184)),
    kind("a small UDP packet", Protocol::Udp, SMALL, false, None),
];

/// Bytes of a small datagram.
const SMALL: usize = 64;

const fn kind(name: &'static str, protocol: Protocol, size: usize, is_tunnelled: bool, paper: Option<f64>) -> Kind {
    Kind { name, protocol, size, is_tunnelled, paper }
}

/// Measure all of them. All are needed for the mean.
///
/// # Errors
/// When there is no scene.
pub fn rows(options: &Options) -> Result<Vec<Record>, SceneError> {
    let is_wanted = |case: &str| case.contains(&options.only);
    let needs_all = KINDS.iter().any(|kind| is_wanted(&fixed_case(kind.name)));
    let mut rows: Vec<Record> = Vec::new();
    let (mut udp, mut all) = (None, Vec::new());
    for (number, kind) in KINDS.iter().enumerate() {
        let name = format!("{}: cost of receiving", kind.name);
        if !needs_all && !is_wanted(&name) {
            continue;
        }
        eprintln!("{name}");
        let (costs, gap) = measure(options, kind)?;
        let (value, spread) = median(&mut costs.clone());
        all.push(costs);
        udp = if number == 0 { Some(value) } else { udp };
        rows.push(Record {
            bench: "iron-costs".to_owned(),
            case: name,
            unit: "us of softirq".to_owned(),
            value,
            spread,
            paper: kind.paper,
            peer: beside(gap, value, udp),
            ..Record::default()
        });
    }
    if needs_all {
        rows.extend(fixed(&all));
    }
    rows.retain(|row| is_wanted(&row.case));
    Ok(rows)
}

/// Return a packet's cost in each round, in us, and the accounts' largest gap, in percent.
fn measure(options: &Options, kind: &Kind) -> Result<(Vec<f64>, f64), SceneError> {
    let containers = [("victim".to_owned(), 10.0), ("receiver".to_owned(), 85.0)];
    let mut scene = Scene::new(&containers, &[ACT])?;
    if kind.is_tunnelled {
        scene.tunnel()?;
    }
    let rate = if kind.protocol == Protocol::Udp { RATE } else { 1 };
    let traffic = Traffic { protocol: kind.protocol, way: Way::In, size: kind.size, rate, count: 1 };
    let times = Times { before: Duration::from_millis(300), measured: options.measured };
    let (mut costs, mut gap) = (Vec::new(), 0.0_f64);
    for _ in 0..options.rounds {
        let seen = scene.turn(traffic, Turn::Without, times, over::is_over)?;
        let receiver = scene.containers()[1].cgroup();
        let row = seen.status.cgroups.iter().find(|row| row.name == receiver);
        let seen_of = |row: &Row| Some(row.softirq_ns? as f64 / 1e3 / row.packets?.max(1) as f64);
        costs.push(row.and_then(seen_of).unwrap_or(0.0));
        gap = gap.max(seen.status.gap * 100.0);
    }
    Ok((costs, gap))
}

fn fixed_case(name: &str) -> String {
    format!("one cost for all packets: error for {name}")
}

/// Return by how much the mean of the kinds' costs is wrong for each, where there are costs of each in rounds.
fn fixed(costs: &[Vec<f64>]) -> Vec<Record> {
    let mean = |round: usize| costs.iter().map(|costs| costs[round]).sum::<f64>() / costs.len() as f64;
    let record = |(kind, costs): (&Kind, &Vec<f64>)| {
        let mut errors: Vec<f64> =
            costs.iter().enumerate().map(|(round, cost)| (mean(round) / cost - 1.0) * 100.0).collect();
        let (value, spread) = median(&mut errors);
        let (bench, unit) = ("iron-costs".to_owned(), "% of its cost".to_owned());
        Record { bench, case: fixed_case(kind.name), unit, value, spread, ..Record::default() }
    };
    KINDS.iter().zip(costs).map(record).collect()
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
        assert_eq!((KINDS[0].protocol, KINDS[0].size, KINDS[0].is_tunnelled), (Protocol::Udp, DATAGRAM, false));
    }

    #[test]
    fn one_cost_for_all_is_too_much_for_cheap_packets_and_too_little_for_others() {
        let rows = fixed(&[1.0, 5.0, 1.0, 1.0].map(|cost| vec![cost, 3.0 * cost]));
        assert_eq!(rows.iter().map(|row| row.value).collect::<Vec<_>>(), [100.0, -60.0, 100.0, 100.0]);
        assert_eq!(rows[1].case, "one cost for all packets: error for a TCP packet");
    }
}
