//! `catena isolate demo`: a flooded container slows the one beside it, and with enforcement no more.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use catena_isolation::Status;
use catena_isolation::names::in_table;
use catena_isolation::scene::actor::{DATAGRAM, Protocol};
use catena_isolation::scene::turn::{Seen, Times, Traffic, Turn, Way};
use catena_isolation::scene::{INSIDE, OUTSIDE, Scene, SceneError};
use catena_runtime::table::{Table, thousands};
use serde::Serialize;

use super::table::{RECEIVED_BY_THREADS, known};
use crate::Failure;
use crate::arguments::DemoOptions;
use crate::run::signals;
use crate::streams::report;

/// What a container may use, in percent of one CPU: both together leave some of it idle.
const QUOTA: f64 = 40.0;
/// How this program does a part of the scene.
const ACT: [&str; 2] = ["isolate", "act"];
/// Shortest turn: below it a period of 100 ms, in which a quota may or may not be refilled, is too much of it.
const SHORTEST: Duration = Duration::from_millis(500);
/// How long a turn goes before it is measured, with quotas of the kernel and with enforced ones, whose first periods pay debt.
const BEFORE: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1500)];
const INTERRUPTED: u8 = 130;

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    /// Packets sent a second.
    rate: u32,
    /// What each container may use, in ns of CPU a second.
    quota_ns: u64,
    victim: &'a str,
    flooded: &'a str,
    turns: &'a [Seen],
    penalty_without: f64,
    penalty_with: f64,
}

/// Play the scene, and say what came of it.
///
/// # Errors
/// What is missing on this machine, by name.
pub fn demo(options: &DemoOptions) -> Result<ExitCode, Failure> {
    if options.interval < SHORTEST || options.interval > Duration::from_secs(60) {
        return Err("--interval: from 500ms to 60s".into());
    }
    // Before anything is made, so that all is removed.
    let signalled = signals::listen()?;
    match play(options, || signalled.load(Ordering::Relaxed)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Ended::Scene(SceneError::Interrupted)) => Ok(ExitCode::from(INTERRUPTED)),
        Err(Ended::Scene(error)) => Err(format!("isolate demo: {error}").into()),
        Err(Ended::Printing(failure)) => Err(failure),
    }
}

/// Why the demo ended early.
enum Ended {
    Scene(SceneError),
    Printing(Failure),
}

impl From<SceneError> for Ended {
    fn from(error: SceneError) -> Ended {
        Ended::Scene(error)
    }
}

fn play(options: &DemoOptions, is_over: impl Fn() -> bool) -> Result<(), Ended> {
    let scene = Scene::new(&[("victim".to_owned(), QUOTA), ("flooded".to_owned(), QUOTA)], &ACT)?;
    let [victim, flooded] = [0, 1].map(|number| scene.containers()[number].cgroup());
    let say = |text: String| if options.json { Ok(()) } else { report(text).map_err(Ended::Printing) };
    let rate = thousands(u64::from(options.rate));
    say(format!(
        "Two containers share CPU {INSIDE}, with a quota of {QUOTA}% of it each. One, the victim, computes. The other receives\n\
         {rate} packets a second, sent from CPU {OUTSIDE}. A container costs what its processes take, without network work of\n\
         others (hosted), and with its own. This takes some ten seconds.\n"
    ))?;
    let traffic = Traffic { protocol: Protocol::Udp, way: Way::In, size: DATAGRAM, rate: options.rate, count: 1 };
    let mut turns: Vec<Seen> = Vec::new();
    for (turn, heading) in [
        (Turn::Calm, "No traffic: both compute"),
        (Turn::Without, "Flooded, without enforcement"),
        (Turn::Threads, "Flooded, with enforcement"),
    ] {
        let before = BEFORE[usize::from(turn == Turn::Threads)];
        let seen = scene.turn(traffic, turn, Times { before, measured: options.interval }, &is_over)?;
        let work = thousands(seen.work as u64);
        say(format!("\n{heading}; the victim does {work} pieces of work a second:\n\n{}", table(&seen, &scene, turn)))?;
        turns.push(seen);
    }
    let [calm, without, with] = [0, 1, 2].map(|number| turns[number].work);
    let [penalty_without, penalty_with] = [without, with].map(|work| calm / work.max(f64::MIN_POSITIVE));
    if options.json {
        let quota_ns = (QUOTA * 1e7) as u64;
        let turns = &turns[..];
        let told = Report { rate: options.rate, quota_ns, victim, flooded, turns, penalty_without, penalty_with };
        let text = serde_json::to_string(&told).map_err(|error| Ended::Printing(error.into()))?;
        return report(text + "\n").map_err(Ended::Printing);
    }
    say(format!(
        "\nThe victim takes {penalty_without:.2} times as long beside the flood without enforcement, {penalty_with:.2} times with it.\n"
    ))
}

/// Return the containers' parts, in percent of one CPU.
fn table(seen: &Seen, scene: &Scene, turn: Turn) -> String {
    let heading = ["container", "own CPU", "network CPU", "hosted", "cost", "packets", "drops"];
    let mut table = Table::new(&heading, &[false, true, true, true, true, true, true]);
    let Status { cgroups, interval_ns, .. } = &seen.status;
    let percent = |ns: u64| format!("{:.2}%", ns as f64 * 100.0 / (*interval_ns).max(1) as f64);
    for container in scene.containers() {
        let cgroup = container.cgroup();
        let Some(row) = cgroups.iter().find(|row| row.name == cgroup) else { continue };
        let [cpu, network] = [row.cpu_ns, row.softirq_ns].map(|ns| known(ns, percent));
        let [packets, drops] = [row.packets, row.drops].map(|count| known(count, thousands));
        let cost = format!("{:.2}%", seen.cost(cgroup));
        table.row(vec![in_table(container.name()), cpu, network, percent(row.hosted_ns), cost, packets, drops]);
    }
    if turn == Turn::Threads {
        return format!("{table}flooded: {RECEIVED_BY_THREADS}\n");
    }
    table.to_string()
}
