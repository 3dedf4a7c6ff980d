//! What the accounts cost: Khalid's dissertation, section 2.3.2, "Performance overhead".

use std::time::Duration;

use catena_isolation::scene::traced::Load;
use catena_isolation::scene::turn::Times;
use catena_isolation::scene::{Scene, SceneError};
use catena_records::record::{Record, median};

use super::{ACT, Options};

/// Pairs a round: they are short, so that what else the machine does is in both halves of a pair.
const PAIRS: u64 = 3;
/// The most that a receiver may lose of its throughput, in percent.
const LOST: f64 = 5.0;
/// The most that a packet alone in its softirq may cost more, in us.
const ADDED: f64 = 0.2;
/// The paper's receiver gets 1.93 Gbps without and 1.90 with it, which throttles it as well.
const PAPER: f64 = (1.0 - 1.90 / 1.93) * 100.0;

struct Kind {
    name: &'static str,
    load: Load,
    unit: &'static str,
    /// What is compared: its name, unit, bar, the paper's number, and how.
    compared: (&'static str, &'static str, f64, Option<f64>),
    compare: fn([f64; 2]) -> f64,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "tracing, 1 UDP receiver at full rate",
        load: Load::Full,
        unit: "packets/s",
        compared: ("lost", "%", LOST, Some(PAPER)),
        compare: |[without, with]| (1.0 - with / without) * 100.0,
    },
    Kind {
        name: "tracing, a packet alone in its softirq",
        load: Load::Lone,
        unit: "us of CPU",
        compared: ("added", "us of CPU", ADDED, None),
        compare: |[without, with]| with - without,
    },
];

/// Measure both.
///
/// # Errors
/// When there is no scene.
pub fn rows(options: &Options) -> Result<Vec<Record>, SceneError> {
    let mut rows = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.name.contains(&options.only)) {
        eprintln!("{}", kind.name);
        let scene = Scene::new(&[("receiver".to_owned(), 100.0)], &[ACT])?;
        let times = Times { before: Duration::from_millis(200), measured: options.measured / 2 };
        let pairs = scene.pairs(kind.load, times, usize::try_from(PAIRS * options.rounds).unwrap_or(usize::MAX))?;
        rows.extend(records(kind, &pairs));
    }
    Ok(rows)
}

fn records(kind: &Kind, pairs: &[[f64; 2]]) -> [Record; 3] {
    let record = |how: &str, unit: &str, mut samples: Vec<f64>| {
        let (value, spread) = median(&mut samples);
        let (bench, case) = ("iron-tracing".to_owned(), format!("{}: {how}", kind.name));
        Record { bench, case, unit: unit.to_owned(), value, spread, ..Record::default() }
    };
    let (name, unit, bar, paper) = kind.compared;
    let compared = pairs.iter().map(|pair| (kind.compare)(*pair)).collect();
    [
        record("without", kind.unit, pairs.iter().map(|pair| pair[0]).collect()),
        record("with", kind.unit, pairs.iter().map(|pair| pair[1]).collect()),
        Record { bar: Some(bar), paper, ..record(name, unit, compared) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_compared_one_by_one() {
        let [without, with, lost] = records(&KINDS[0], &[[100.0, 90.0], [1000.0, 1000.0], [10.0, 9.8]]);
        assert_eq!((without.value, with.value), (100.0, 90.0));
        assert!((lost.value - 2.0).abs() < 1e-9 && lost.holds() == Some(true), "{lost:?}");
        let [_, _, added] = records(&KINDS[1], &[[3.0, 3.5]]);
        assert_eq!((added.value, added.holds()), (0.5, Some(false)));
    }
}
