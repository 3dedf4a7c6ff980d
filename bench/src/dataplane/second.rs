//! Measuring what a second worker on a second core adds, as a part of what the first does alone.
//!
//! What runs alone is a worker that has everything; what runs together are two that share what they have in common, as
//! those of `catena run` do over interfaces. All are built and warm before. Then come short rounds: the one alone while the
//! second core sleeps, and both together, within milliseconds of each other. A worker counts its packets by the time that
//! passed and keeps on working until the other has counted too, so that all of what counts as together was.
//!
//! A second worker can add what a second core has, and a host may give none (see [`core_probe`]). So the workers
//! probe their cores between the parts of a round; rounds in which either core was shared are kept apart. Both
//! figures are recorded: of the rounds with two cores, and of all.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use catena_records::record::{Record, median};
use catena_state::{Share, Team};

use crate::cases::Case;
use crate::core_probe;
use crate::measure::Prepared;

/// A sample is a pair of workers newly built, so that the luck of their memory's placing shows in the spread, and
/// the median of so many rounds.
const ROUNDS: usize = 150;
/// How long a worker runs before it counts, and how long it counts.
const LEAD: Duration = Duration::from_millis(1);
const STRETCH: Duration = Duration::from_millis(5);
/// A core is whole when its probe takes at most so much of the least that any took in the run. What is
/// shared with light work may pass; two busy threads of one core cannot.
const WHOLE: f64 = 1.05;
/// A sample with fewer rounds on two whole cores says nothing of them.
const FEWEST: usize = 10;

/// What one worker saw of one round.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Cycles of the probe: alone, then with the other before and after they ran together.
    probes: [f64; 3],
    /// Packets per ns of the one that works alone, which is on the first core; and with the other.
    alone: f64,
    both: f64,
}

/// One round, of both workers.
struct Round {
    /// The slowest probe.
    probe: f64,
    /// What the second worker added, as a part of the first one's rate alone.
    added: f64,
}

/// Measure a case: of the rounds with two whole cores, if there were enough, and of all.
///
/// # Errors
/// As [`Prepared::new`] and [`Prepared::sample`].
pub fn second_worker(case: &Case, samples: usize) -> Result<Vec<Record>, String> {
    let mut fastest = f64::INFINITY;
    let mut rounds: Vec<Vec<Round>> = Vec::new();
    for _ in 0..samples {
        let (first, second) = pair(case)?;
        let probes = first.iter().flat_map(|seen| seen.probes).chain(second.iter().flat_map(|seen| seen.probes));
        fastest = probes.filter(|probe| *probe > 0.0).fold(fastest, f64::min);
        let part = |of: fn(&Seen, &Seen) -> f64| {
            let mut all: Vec<f64> = first.iter().zip(&second).map(|(a, b)| of(a, b)).collect();
            median(&mut all).0
        };
        eprintln!(
            "{}: of what one does alone, the first does {:.2} and the second {:.2}",
            case.name,
            part(|first, _| first.both / first.alone),
            part(|first, second| second.both / first.alone)
        );
        rounds.push(first.iter().zip(&second).map(|(first, second)| round(first, second)).collect());
    }
    let of = |most: f64, name: &str, floor: Option<f64>| {
        let mut kept = 0;
        let mut medians = Vec::new();
        for sample in &rounds {
            let mut added: Vec<f64> = sample.iter().filter(|round| round.probe <= most).map(|r| r.added).collect();
            kept += added.len();
            if added.len() >= FEWEST {
                medians.push(median(&mut added).0);
            }
        }
        let (value, spread) = median(&mut medians);
        let all = samples * ROUNDS;
        let record = Record {
            bench: "dataplane".to_owned(),
            case: format!("{}: a second worker adds{name}", case.name),
            unit: "of the first one's rate".to_owned(),
            floor,
            value,
            spread,
            limit: Some(format!("{kept} of {all} rounds")),
            ..Record::default()
        };
        (!medians.is_empty()).then_some(record)
    };
    let whole = of(fastest * WHOLE, ", each on a core of its own", case.second.filter(|floor| *floor > 0.0));
    if whole.is_none() {
        eprintln!("{}: there were no two whole cores for long enough to measure a second worker", case.name);
    }
    let any = of(f64::INFINITY, ", whatever the host gives", None);
    Ok(whole.into_iter().chain(any).collect())
}

fn round(first: &Seen, second: &Seen) -> Round {
    let probes = first.probes.iter().chain(&second.probes);
    Round { probe: probes.copied().fold(0.0, f64::max), added: (first.both + second.both - first.alone) / first.alone }
}

/// Build two workers and run all rounds of one sample.
fn pair(case: &Case) -> Result<(Vec<Seen>, Vec<Seen>), String> {
    let (warm, counted, failed) = Default::default();
    let meeting = Meeting { team: Team::new(2), barrier: Barrier::new(2), warm, counted, failed };
    let (first, second) = std::thread::scope(|scope| {
        let meeting = &meeting;
        let worker = |index, core| scope.spawn(move || worker(case, meeting, index, core));
        let (first, second) = (worker(0, 1), worker(1, 0));
        (first.join(), second.join())
    });
    let ended = || "a worker ended by a panic".to_owned();
    Ok((first.map_err(|_| ended())??, second.map_err(|_| ended())??))
}

/// Where the two wait for each other.
struct Meeting {
    team: Arc<Team>,
    barrier: Barrier,
    /// How many have warmed up, or could not.
    warm: AtomicUsize,
    /// How many have counted their packets, over all rounds.
    counted: AtomicUsize,
    /// Whether one could not be built; then neither begins.
    failed: AtomicBool,
}

fn worker(case: &Case, meeting: &Meeting, index: u32, core: usize) -> Result<Vec<Seen>, String> {
    let alone = (index == 0).then(|| warmed(case, (Share::WHOLE, None), core)).transpose();
    let built = alone.and_then(|alone| {
        let share = Share { index, count: 2 };
        Ok((alone, Prepared::share(case, (share, Some(&meeting.team)))?))
    });
    meeting.failed.fetch_or(built.is_err(), Ordering::Relaxed);
    meeting.barrier.wait();
    let (mut alone, mut prepared) = built?;
    if meeting.failed.load(Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    // They answer each other.
    let outcome = prepared.warm_up(core);
    meeting.failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
    meeting.warm.fetch_add(1, Ordering::AcqRel);
    while meeting.warm.load(Ordering::Acquire) < 2 {
        prepared.run(Duration::from_micros(1));
    }
    outcome?;
    if meeting.failed.load(Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let mut rounds = vec![Seen::default(); ROUNDS];
    for (i, seen) in rounds.iter_mut().enumerate() {
        meeting.barrier.wait();
        if let Some(alone) = &mut alone {
            seen.probes[0] = core_probe::cycles();
            alone.run(LEAD);
            seen.alone = alone.rate(STRETCH);
        }
        meeting.barrier.wait();
        seen.probes[1] = core_probe::cycles();
        prepared.run(LEAD);
        seen.both = prepared.rate(STRETCH);
        meeting.counted.fetch_add(1, Ordering::Relaxed);
        while meeting.counted.load(Ordering::Relaxed) < 2 * (i + 1) {
            prepared.run(Duration::from_micros(1));
        }
        seen.probes[2] = core_probe::cycles();
    }
    prepared.nothing_lost()?;
    Ok(rounds)
}

fn warmed(case: &Case, part: (Share, Option<&Arc<Team>>), core: usize) -> Result<Prepared, String> {
    let mut prepared = Prepared::share(case, part)?;
    prepared.warm_up(core)?;
    Ok(prepared)
}
