//! How near containers come to their limits under enforcement: Khalid's dissertation, section 2.3.2, Figure 2.14.

use std::time::Duration;

use catena_isolation::scene::actor::{DATAGRAM, Protocol, Role};
use catena_isolation::scene::turn::{Seen, Times, Traffic, Turn, Way};
use catena_isolation::scene::{Scene, SceneError};
use catena_records::record::{Record, median};

use super::over;
use super::{ACT, Options};

/// Of the figure: three containers, in percent of the core.
const QUOTA: f64 = 30.0;
/// What senders and receivers may be off by, in percent of the core.
const OFF: f64 = 0.5;
/// Datagrams a second to the receiver of the figure that threads hold: more than its quota pays for.
const FLOOD: u32 = 150_000;
/// What packets are to take of the core to the one that accounts hold, in softirqs alone: no quota pays for more, as what comes is
/// received all the same. With what its process takes for them it is more than the quota.
const BY_SOFTIRQS: f64 = QUOTA * 2.0 / 3.0;
/// How much longer than a penalty these are measured: idle time is known to a hundredth of a second.
const LONGER: u32 = 4;

/// Measure all of them, one after the other. A row is missing where the machine does not hold still for it.
///
/// # Errors
/// When there is no scene.
pub fn rows(options: &Options) -> impl Iterator<Item = Result<Record, SceneError>> {
    type Measure = fn(&Options) -> Result<Option<Record>, SceneError>;
    let all: [(&str, Measure); 8] = [
        ("2 UDP senders, 30% each", |options| all_three(options, SENDERS, Turn::Accounts).map(Some)),
        ("1 UDP receiver, 30%, with accounts", |options| idle(options).map(Some)),
        ("1 UDP receiver, 30%, with threads", |options| all_three(options, RECEIVER, Turn::Threads).map(Some)),
        ("1 UDP receiver, as much as it takes, with accounts", |options| limited(options, Turn::Accounts, false)),
        ("1 UDP receiver, as much as it takes, with threads", |options| limited(options, Turn::Threads, false)),
        ("1 UDP receiver, as much as it takes, with early drop", |options| limited(options, Turn::EarlyDrop, false)),
        ("1 UDP receiver, as much as it takes and a burst, with accounts", |options| {
            limited(options, Turn::Accounts, true)
        }),
        ("1 UDP receiver, as much as it takes and a burst, with threads", |options| {
            limited(options, Turn::Threads, true)
        }),
    ];
    let chosen = all.into_iter().filter(|(name, _)| name.contains(&options.only));
    chosen.filter_map(|(name, measure)| {
        eprintln!("{name}");
        let row = measure(options).transpose()?;
        Some(row.map(|row| Record { bench: "iron-limits".to_owned(), case: format!("{name}: {}", row.case), ..row }))
    })
}

fn times(options: &Options) -> Times {
    Times { before: Duration::from_secs(2), measured: options.measured * LONGER }
}

/// Play rounds in containers with these quotas, and take a number of each.
fn rounds(
    options: &Options,
    quotas: &[f64],
    traffic: Traffic,
    turn: Turn,
    number: impl Fn(&Scene, &Seen) -> f64,
) -> Result<(f64, f64), SceneError> {
    let containers: Vec<(String, f64)> = (0..).map(|n| format!("c{n}")).zip(quotas.iter().copied()).collect();
    let mut scene = Scene::new(&containers, &[ACT])?;
    if traffic.way == Way::Out {
        scene.sink()?;
    }
    let mut samples = Vec::new();
    for _ in 0..options.rounds {
        samples.push(number(&scene, &scene.turn(traffic, turn, times(options), over::is_over)?));
    }
    Ok(median(&mut samples))
}

/// Two that send as fast as they can.
const SENDERS: Traffic = Traffic { protocol: Protocol::Udp, way: Way::Out, size: DATAGRAM, rate: 0, count: 2 };
/// One that is flooded.
const RECEIVER: Traffic = Traffic { protocol: Protocol::Udp, way: Way::In, size: DATAGRAM, rate: FLOOD, count: 1 };

/// Figure 2.14a: three containers together, on whichever CPU.
fn all_three(options: &Options, traffic: Traffic, turn: Turn) -> Result<Record, SceneError> {
    let all = |scene: &Scene, seen: &Seen| scene.containers().iter().map(|one| seen.cost(one.cgroup())).sum();
    let (value, spread) = rounds(options, &[QUOTA; 3], traffic, turn, all)?;
    let (case, unit) = ("CPU of all three".to_owned(), "% of a CPU".to_owned());
    Ok(Record {
        case,
        unit,
        value,
        spread,
        bar: Some(3.0 * QUOTA + OFF),
        floor: Some(3.0 * QUOTA - OFF),
        paper: Some(90.02),
        ..Record::default()
    })
}

/// Datagrams a second to a receiver that has the CPU that it takes for them.
const STEADY: u32 = 50_000;
/// The most that it may lose of them, in percent, and what the paper's loses: 1.93 Gbps become 1.90 ("Performance overhead").
const LOST: f64 = 2.0;
const PAPER_LOST: f64 = (1.0 - 1.90 / 1.93) * 100.0;
/// Of a receiver whose need is measured: all of the core, as there.
const PLENTY: f64 = 100.0;
/// A round counts if packets cost the same before and after it, to this part: a machine of which others have a half now and then has no
/// quota that is what they take.
const STEADY_WITHIN: f64 = 0.05;
/// Rounds that are played for each that is to be counted, at most.
const TRIED: u64 = 8;

/// A receiver that is alone on its core and may have all of it, and the same one with a quota that is what it took: it goes on receiving
/// all the same. One that `keeps` has a burst of one period: what it did not need in one pays for what it needs more in another.
fn limited(options: &Options, enforced: Turn, keeps: bool) -> Result<Option<Record>, SceneError> {
    let traffic = Traffic { protocol: Protocol::Udp, way: Way::In, size: DATAGRAM, rate: STEADY, count: 1 };
    // The shorter they are, the less changes from one to the next.
    let times = Times { before: Duration::from_secs(1), measured: options.measured };
    let (mut lost, mut quotas, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds * TRIED {
        let play = |quota: f64| {
            let mut scene = Scene::new(&[("nobody".to_owned(), QUOTA), ("receiver".to_owned(), quota)], &[ACT])?;
            scene.set_victim(Role::Rest);
            if keeps {
                scene.keep(1)?;
            }
            let seen = scene.turn(traffic, enforced, times, over::is_over)?;
            Ok::<_, SceneError>((seen.received, seen.cost(scene.containers()[1].cgroup())))
        };
        let (without, took) = play(PLENTY)?;
        let (with, cost) = play(took)?;
        let (_, took_after) = play(PLENTY)?;
        if (took_after / took.max(f64::MIN_POSITIVE) - 1.0).abs() > STEADY_WITHIN {
            eprintln!("not counted: packets took {took:.1}% before and {took_after:.1}% after it");
            continue;
        }
        lost.push((1.0 - with / without.max(1.0)) * 100.0);
        quotas.push(took);
        costs.push(cost);
        if lost.len() as u64 == options.rounds {
            break;
        }
    }
    if lost.is_empty() {
        eprintln!("  not measured: this machine is never as fast as a moment before: try again when nothing else runs");
        return Ok(None);
    }
    let [(value, spread), (quota, _), (cost, _)] = [&mut lost, &mut quotas, &mut costs].map(|samples| median(samples));
    let (case, unit) = ("packets lost".to_owned(), "%".to_owned());
    let peer = vec![("quota, %".to_owned(), quota), ("receivers' cost, %".to_owned(), cost)];
    Ok(Some(Record { case, unit, value, spread, bar: Some(LOST), paper: Some(PAPER_LOST), peer, ..Record::default() }))
}

/// Figure 2.14b: what a receiver beside two that compute leaves of their core. Threads may run on another one, and leave more.
fn idle(options: &Options) -> Result<Record, SceneError> {
    let rate = flood(options)?;
    let traffic = Traffic { rate, ..RECEIVER };
    let (value, spread) = rounds(options, &[QUOTA; 3], traffic, Turn::Accounts, |_, seen| seen.idle)?;
    let (case, unit) = ("idle".to_owned(), "% of a CPU".to_owned());
    let idle = 100.0 - 3.0 * QUOTA;
    let (floor, bar) = (Some(idle - OFF), Some(idle + OFF));
    let peer = vec![("datagrams/s".to_owned(), f64::from(rate))];
    Ok(Record { case, unit, value, spread, floor, bar, paper: Some(10.07), peer, ..Record::default() })
}

/// Return how many datagrams a second take [`BY_SOFTIRQS`], by what those of a smaller flood take: packets cost one machine twice what
/// they cost another.
fn flood(options: &Options) -> Result<u32, SceneError> {
    let (of_packets, _) =
        rounds(options, &[QUOTA; 3], Traffic { rate: STEADY, ..RECEIVER }, Turn::Without, |scene, seen| {
            let receiver = scene.containers()[1].cgroup();
            let row = seen.status.cgroups.iter().find(|row| row.name == receiver);
            let ns = row.and_then(|row| row.softirq_ns).unwrap_or(0);
            ns as f64 * 100.0 / seen.status.interval_ns.max(1) as f64
        })?;
    // Of nothing there is no rate.
    let rate = f64::from(STEADY) * BY_SOFTIRQS / of_packets.max(1.0);
    Ok(rate as u32)
}
