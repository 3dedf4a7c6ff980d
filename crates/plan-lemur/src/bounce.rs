//! The pattern with the fewest bounces: a minimum cut.
//!
//! A packet bounces where it goes from the switch to a server. On a chain whose edges carry known parts of the
//! traffic, the patterns with the fewest bounces a packet are the minimum cuts between what must be on the
//! switch (with where traffic comes in) and what must not.

use std::collections::VecDeque;

use catena_plan_model::problem::Chain;

/// Where a node may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// On the switch only.
    Switch,
    /// Off the switch only.
    Off,
    /// Either.
    Either,
}

/// Which nodes are on the switch in a pattern with the fewest bounces; of several such patterns the one with
/// most on the switch, or with least.
#[must_use]
pub fn fewest_bounces(chain: &Chain, sides: &[Side], most_on_switch: bool) -> Vec<bool> {
    let count = chain.nodes.len();
    let (source, sink) = (count, count + 1);
    let mut capacity = vec![vec![0.0_f64; count + 2]; count + 2];
    for (node, side) in sides.iter().enumerate() {
        capacity[source][node] += chain.nodes[node].entry;
        match side {
            Side::Switch => capacity[source][node] = f64::INFINITY,
            Side::Off => capacity[node][sink] = f64::INFINITY,
            Side::Either => {}
        }
    }
    for edge in &chain.edges {
        capacity[edge.from][edge.to] += edge.share;
    }
    saturate(&mut capacity, source, sink);
    let open = |from: usize, to: usize| capacity[from][to] > 1e-12;
    if most_on_switch {
        // All but what can still reach the sink.
        let reaches = search(count + 2, sink, |from, to| open(to, from));
        (0..count).map(|n| reaches[n].is_none() && n != sink).collect::<Vec<bool>>()
    } else {
        let reached = search(count + 2, source, open);
        (0..count).map(|n| reached[n].is_some()).collect()
    }
}

/// Breadth first from `start`: for each that is reached, from where (`start` from itself).
fn search(count: usize, start: usize, open: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut from = vec![None; count];
    from[start] = Some(start);
    let mut queue = VecDeque::from([start]);
    while let Some(here) = queue.pop_front() {
        for (next, before) in from.iter_mut().enumerate() {
            if before.is_none() && open(here, next) {
                *before = Some(here);
                queue.push_back(next);
            }
        }
    }
    from
}

/// Push flow from `source` to `sink` along shortest ways until none is open (Edmonds and Karp).
fn saturate(capacity: &mut [Vec<f64>], source: usize, sink: usize) {
    loop {
        let from = search(capacity.len(), source, |a, b| capacity[a][b] > 1e-12);
        let mut way = Vec::new();
        let mut here = sink;
        while let Some(before) = from[here].filter(|b| *b != here) {
            way.push((before, here));
            here = before;
        }
        let least = way.iter().map(|(a, b)| capacity[*a][*b]).fold(f64::INFINITY, f64::min);
        // A way without bound goes from what must be on the switch to what must not be: not through an edge.
        if way.is_empty() || !least.is_finite() {
            return;
        }
        for (a, b) in way {
            capacity[a][b] -= least;
            capacity[b][a] += least;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    fn bounces(chain: &Chain, on: &[bool]) -> f64 {
        let entries: f64 = chain.nodes.iter().zip(on).filter(|(_, on)| !**on).map(|(n, _)| n.entry).sum();
        entries + chain.edges.iter().filter(|e| on[e.from] && !on[e.to]).map(|e| e.share).sum::<f64>()
    }

    proptest! {
        #[test]
        fn no_pattern_bounces_less(
            chain in sample::chains(7),
            sides in prop::collection::vec(0..3, 7),
            most: bool,
        ) {
            let sides: Vec<Side> = sides.iter().take(chain.nodes.len())
                .map(|s| [Side::Switch, Side::Off, Side::Either][*s as usize]).collect();
            let found = fewest_bounces(&chain, &sides, most);
            let allowed = |on: &[bool]| sides.iter().zip(on)
                .all(|(s, on)| *s == Side::Either || (*s == Side::Switch) == *on);
            prop_assert!(allowed(&found));
            let patterns = (0..1_u32 << chain.nodes.len())
                .map(|bits| (0..chain.nodes.len()).map(|n| bits >> n & 1 == 1).collect::<Vec<bool>>())
                .filter(|on| allowed(on));
            let least = patterns.clone().map(|on| bounces(&chain, &on)).fold(f64::INFINITY, f64::min);
            prop_assert!((bounces(&chain, &found) - least).abs() < 1e-9);
            let count = |on: &[bool]| on.iter().filter(|o| **o).count();
            for on in patterns.filter(|on| bounces(&chain, on) < least + 1e-9) {
                let (other, ours) = (count(&on), count(&found));
                prop_assert!((most && other <= ours) || (!most && other >= ours), "{:?}", on);
            }
        }
    }
}
