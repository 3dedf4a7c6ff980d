//! Packets that a throttled receiver has no CPU for, dropped in software or left where they came: Khalid's dissertation,
//! section 2.3.2, Figure 2.16.

use std::time::Duration;

use catena_isolation::scene::actor::{DATAGRAM, Protocol};
use catena_isolation::scene::turn::{Seen, Times, Traffic, Turn, Way};
use catena_isolation::scene::{Scene, SceneError};
use catena_records::record::{Record, median};

use super::over;
use super::{ACT, Options, QUOTAS};

/// Of the figure: the victim and seven that receive.
const CONTAINERS: usize = 8;
/// Of each receiver, in percent of the core: enough for the first rate, not for the others. The victim has the rest.
const QUOTA: f64 = 2.0;
/// Datagrams a second to all receivers together.
const RATES: [u32; 3] = [50_000, 100_000, 200_000];
/// The paper's factor at high rates in software; that of hardware is near 1, in a figure only.
const PAPER: f64 = 1.19;
/// Where packets are dropped: by softirqs, at the full socket; before the stack has them; before they are polled, where their thread may
/// not run.
const PLACES: [&str; 3] = ["at the socket", "before the stack", "before the poll"];
/// The turns for that, and how long each goes before it is measured, in ms.
const TURNS: [(Turn, u64); 3] = [(Turn::Without, 200), (Turn::EarlyDrop, 1000), (Turn::Threads, 1000)];

/// Measure all of them.
///
/// # Errors
/// When there is no scene.
pub fn rows(options: &Options) -> Result<Vec<Record>, SceneError> {
    let mut rows = Vec::new();
    for rate in RATES {
        let name = format!("7 receivers, {rate} packets/s, dropped");
        if name.contains(&options.only) {
            eprintln!("{name}");
            rows.extend(measure(options, &name, rate)?);
        }
    }
    Ok(rows)
}

/// Of a turn: how much longer the victim took, what network work took, what part of the packets was taken from sockets, and
/// what the receivers cost together.
fn numbers(calm: f64, seen: &Seen, scene: &Scene, rate: u32) -> [f64; 4] {
    let is_here = |name: &str| scene.containers().iter().any(|container| container.cgroup() == name);
    // Before 6.11 a drop is not its socket's: nothing else here is dropped in a network softirq.
    let drops = seen.status.unattributed.iter().filter(|row| row.drops > Some(0));
    let rows = seen.status.cgroups.iter().filter(|row| is_here(&row.name)).chain(drops);
    let softirqs: u64 = rows.filter_map(|row| row.softirq_ns).sum();
    let softirqs = softirqs as f64 * 100.0 / seen.status.interval_ns.max(1) as f64;
    let cost = scene.containers().iter().skip(1).map(|container| seen.cost(container.cgroup())).sum();
    [calm / seen.work.max(f64::MIN_POSITIVE), softirqs + seen.threads, seen.received * 100.0 / f64::from(rate), cost]
}

fn measure(options: &Options, name: &str, rate: u32) -> Result<Vec<Record>, SceneError> {
    let quota = |number| if number == 0 { QUOTAS - (CONTAINERS - 1) as f64 * QUOTA } else { QUOTA };
    let containers: Vec<_> = (0..CONTAINERS).map(|number| (format!("c{number}"), quota(number))).collect();
    let scene = Scene::new(&containers, &[ACT])?;
    let traffic = Traffic { protocol: Protocol::Udp, way: Way::In, rate, size: DATAGRAM, count: CONTAINERS - 1 };
    let mut samples = PLACES.map(|_| [const { Vec::new() }; 4]);
    for _ in 0..options.rounds {
        let play = |turn, before| {
            let times = Times { before: Duration::from_millis(before), measured: options.measured };
            scene.turn(traffic, turn, times, over::is_over)
        };
        let calm = play(Turn::Calm, 1200)?.work;
        for ((turn, before), samples) in TURNS.into_iter().zip(&mut samples) {
            let seen = numbers(calm, &play(turn, before)?, &scene, rate);
            samples.iter_mut().zip(seen).for_each(|(samples, number)| samples.push(number));
        }
    }
    let records = samples.iter_mut().zip(PLACES).flat_map(|(samples, place)| records(name, place, samples));
    let is_highest = |record: &Record| rate == RATES[RATES.len() - 1] && record.case.ends_with(PLACES[0]);
    let paper = |record: Record| Record {
        paper: is_highest(&record).then_some(PAPER).filter(|_| record.unit == FACTOR),
        ..record
    };
    Ok(records.map(paper).collect())
}

const FACTOR: &str = "penalty factor";

fn records(name: &str, place: &str, samples: &mut [Vec<f64>; 4]) -> [Record; 2] {
    let [(factor, of_factor), (network, of_network), (taken, _), (cost, _)] =
        samples.each_mut().map(|samples| median(samples));
    let record = |unit: &str, value, spread| {
        let (bench, case) = ("iron-dropping".to_owned(), format!("{name} {place}"));
        Record { bench, case, unit: unit.to_owned(), value, spread, ..Record::default() }
    };
    let peer = vec![("packets taken, %".to_owned(), taken), ("receivers' cost, %".to_owned(), cost)];
    [Record { peer, ..record("% of a CPU", network, of_network) }, record(FACTOR, factor, of_factor)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_row_for_network_work_and_one_for_the_victim() {
        let [network, victim] =
            records("x", PLACES[0], &mut [vec![1.5], vec![20.0, 30.0, 40.0], vec![60.0], vec![70.0]]);
        assert_eq!((network.value, network.spread, network.peer[0].1, network.peer[1].1), (30.0, 20.0, 60.0, 70.0));
        assert_eq!((victim.value, &victim.unit[..], &victim.case[..]), (1.5, FACTOR, "x at the socket"));
    }
}
