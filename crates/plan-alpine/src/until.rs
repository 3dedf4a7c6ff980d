//! When solving ends: whoever asks for a partition may have to answer by a certain time.
//!
//! The search for the partition ends first. What is left is for the weights of the partition that was found by then: linear
//! programs, which are small beside the search. So there are tasks even where the time is too short to look for the fewest.

use std::time::{Duration, Instant};

/// Weights have this much time, though the time that was asked for is over.
const GRACE: Duration = Duration::from_secs(1);

/// When solving is to be over, however long each level may take. Absent: nobody waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    search: Option<Instant>,
    weights: Option<Instant>,
}

impl Until {
    /// From now to `end`, half of it for the search.
    #[must_use]
    pub fn of(end: Instant) -> Until {
        let now = Instant::now();
        let search = now + end.saturating_duration_since(now) / 2;
        Until { search: Some(search), weights: Some(end.max(now + GRACE)) }
    }

    /// Whether the search is to be over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.search.is_some_and(|search| Instant::now() >= search)
    }

    /// The same where only a part of what is left of the search may be taken: one of so many.
    #[must_use]
    pub(crate) fn one_of(self, several: usize) -> Until {
        let now = Instant::now();
        let part = |end: Instant| now + end.saturating_duration_since(now) / several.max(1) as u32;
        Until { search: self.search.map(part), ..self }
    }

    /// What is left of the search; no more than `most` seconds.
    pub(crate) fn search(&self, most: f64) -> Duration {
        left(self.search, most)
    }

    /// What is left for weights; no more than `most` seconds.
    pub(crate) fn weights(&self, most: f64) -> Duration {
        left(self.weights, most)
    }
}

fn left(end: Option<Instant>, most: f64) -> Duration {
    let most = Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX);
    end.map_or(most, |end| most.min(end.saturating_duration_since(Instant::now())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::{Front, Objective, Options, Refusal, solve};
    use crate::tests::graph;
    use crate::{Graph, Promise};

    /// A deep tree whose leaves are classes, which share in groups: no closed form knows its tasks.
    fn groups() -> (Graph, Vec<Promise>) {
        let mut state = 11_u64;
        let mut random = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % most
        };
        let mut modules: Vec<(Option<usize>, f64)> = vec![(None, 50.0)];
        for m in 1..240 {
            modules.push((Some(random(m).max(m / 3)), 50.0 + random(400) as f64));
        }
        let inner: Vec<usize> = modules.iter().filter_map(|(up, _)| *up).collect();
        let leaves: Vec<usize> = (0..modules.len()).filter(|m| !inner.contains(m)).collect();
        let classes: Vec<(usize, f64)> = leaves.iter().map(|leaf| (*leaf, 1e5 + 1e3 * random(1000) as f64)).collect();
        let member = |first: usize| ((first..classes.len()).step_by(9).collect(), 1.0 + first as f64);
        (graph(&modules, &classes), vec![Promise::Throughput((0..9).map(member).collect())])
    }

    #[test]
    fn a_search_ends_in_time() {
        let (graph, promises) = groups();
        for objective in [Objective::FewestTasks, Objective::MostPackets] {
            for millis in [0, 600] {
                let began = Instant::now();
                let until = Until::of(began + Duration::from_millis(millis));
                let found =
                    solve(&graph, &promises, Options { objective, until, front: Front::Never, ..Options::default() });
                let took = began.elapsed();
                // Weights have a second of grace; a busy machine may take some more.
                assert!(took < Duration::from_secs(6), "{objective:?}, {millis} ms: {took:?}");
                assert!(matches!(found, Ok(_) | Err(Refusal::Unsolved)), "{objective:?}, {millis} ms");
            }
        }
    }

    #[test]
    fn the_search_has_half_of_the_time_and_levels_share_it() {
        let until = Until::of(Instant::now() + Duration::from_secs(100));
        let near = |left: Duration, seconds: f64| (left.as_secs_f64() - seconds).abs() < 5.0;
        assert!(near(until.search(1e9), 50.0) && near(until.weights(1e9), 100.0) && !until.is_over());
        assert!(near(until.one_of(5).search(1e9), 10.0) && near(until.search(20.0), 20.0));
        let over = Until::of(Instant::now());
        assert!(over.is_over() && over.search(20.0).is_zero() && !over.weights(20.0).is_zero());
        assert_eq!(Until::default().search(20.0), Duration::from_secs(20));
    }
}
