//! What comes of weights.
//!
//! Weights are cycles: what each task is to bring through, times what a packet costs there on average. What one costs by its weight
//! differs from that. What a chain is promised is served in front of all weights, each batch by itself, and costs more; whose promise
//! is a large part of what it gets pays less by its weight than on average, and had too much (a `share` of 3 : 1 was one of 2.5 : 1 on
//! a core with small caches). So what is brought through beyond promises is counted, and who has less of it than its part of what
//! those together have who stand side by side with it, has more weight the next time.
//!
//! Only who waits can have more. Beside somebody who does, whoever has more than its part has too much, also where that is all that
//! comes of it: a weight that was corrected too far in the beginning, when little was known, would stay so for seconds.

use catena_plan::alpine::SchedulerTree;

/// The most that a weight is corrected by, up and down.
const MOST: f64 = 1.3;
/// The part of what is missing that one step corrects: in so short a time a limit lets through what it saved up.
const STEP: f64 = 0.25;

/// What there was for a task to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Has {
    /// Too little to tell anything; or its weight follows something else.
    #[default]
    Nothing,
    /// Less than it could do: it has all that comes.
    Little,
    /// Always something.
    Plenty,
}

/// What a task did since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Did {
    /// Packets that it brought through.
    pub packets: f64,
    /// Bits of one.
    pub bits: f64,
    /// What there was for it.
    pub has: Has,
    /// Cycles of a packet by which its weight was found.
    pub cycles: f64,
}

/// How many times as much weight each task has as costs say.
pub(super) struct Served {
    times: Vec<f64>,
}

impl Served {
    pub fn new(tasks: usize) -> Served {
        Served { times: vec![1.0; tasks] }
    }

    /// Learn from what tasks did in so many seconds of workers, of whom each had this tree but for what is corrected.
    pub fn learn(&mut self, tree: &SchedulerTree, did: &[Did], seconds: f64) {
        let mut first = vec![0.0; did.len()];
        promised(tree, &mut first);
        let beyond = |task: usize| {
            let Did { packets, bits, has, cycles } = *did.get(task)?;
            let beyond = packets - if first[task] == 0.0 { 0.0 } else { first[task] * seconds / bits };
            // A tenth of what it did tells enough; less may be what a limit let through later.
            (has != Has::Nothing && cycles.is_normal() && beyond.is_finite() && beyond > 0.1 * packets)
                .then_some(beyond)
        };
        self.step(tree, did, &beyond);
    }

    fn step(&mut self, tree: &SchedulerTree, did: &[Did], beyond: &dyn Fn(usize) -> Option<f64>) {
        match tree {
            SchedulerTree::Fair(children) => {
                children.iter().for_each(|(_, child)| self.step(child, did, beyond));
                let members = children.iter().filter_map(|(weight, child)| match child {
                    SchedulerTree::Task(task) => Some((*task, f64::from(*weight) / did[*task].cycles, beyond(*task)?)),
                    _ => None,
                });
                let (waiting, others): (Vec<_>, Vec<_>) =
                    members.partition(|(task, ..): &Member| did[*task].has == Has::Plenty);
                // Who waits has so much of each part; of the others only who has more is held against them.
                let (part, is) = sum(&waiting);
                let has_more = |(_, its_part, its): &Member| its * part > its_part * is;
                let members: Vec<Member> = others.into_iter().filter(has_more).chain(waiting).collect();
                let all = sum(&members);
                for (task, part, is) in members {
                    let missing = (part / all.0) / (is / all.1);
                    self.times[task] = (self.times[task] * missing.powf(STEP)).clamp(1.0 / MOST, MOST);
                }
            }
            SchedulerTree::Priority(children) | SchedulerTree::RoundRobin(children) => {
                children.iter().for_each(|child| self.step(child, did, beyond));
            }
            SchedulerTree::Task(_) | SchedulerTree::Limit { .. } => {}
        }
    }

    /// The tree in which tasks that stand side by side have weights by what came of them. What they have together, and others beside
    /// them, stays.
    pub fn tree(&self, tree: &SchedulerTree) -> SchedulerTree {
        let again = |children: &[SchedulerTree]| children.iter().map(|child| self.tree(child)).collect();
        match tree {
            SchedulerTree::Fair(children) => {
                let times = |child: &SchedulerTree| match child {
                    SchedulerTree::Task(task) if self.times[*task] != 1.0 => Some(self.times[*task]),
                    _ => None,
                };
                let corrected = children.iter().filter_map(|(weight, child)| Some((f64::from(*weight), times(child)?)));
                let sum = corrected.fold((0.0, 0.0), |sum, (weight, times)| (sum.0 + weight, sum.1 + weight * times));
                let child = |(weight, child): &(u32, SchedulerTree)| {
                    let times = times(child).map_or(1.0, |times| times * sum.0 / sum.1);
                    (((f64::from(*weight) * times).round() as u32).max(1), self.tree(child))
                };
                SchedulerTree::Fair(children.iter().map(child).collect())
            }
            SchedulerTree::Priority(children) => SchedulerTree::Priority(again(children)),
            SchedulerTree::RoundRobin(children) => SchedulerTree::RoundRobin(again(children)),
            other => other.clone(),
        }
    }
}

/// A task, what it was to bring through, and what it did.
type Member = (usize, f64, f64);

/// What all of them were to bring through, and what they did.
fn sum(members: &[Member]) -> (f64, f64) {
    members.iter().fold((0.0, 0.0), |sum, (_, part, is)| (sum.0 + part, sum.1 + is))
}

/// Bits per second that single tasks have in front of weights, by task; not a number where several tasks have some together.
fn promised(tree: &SchedulerTree, first: &mut [f64]) {
    match tree {
        // Of levels the first has what is promised; a limit among weights is the most that somebody has.
        SchedulerTree::Priority(levels) => match levels.first() {
            Some(SchedulerTree::Fair(children)) => children.iter().for_each(|(_, child)| limit(child, first)),
            Some(one) => limit(one, first),
            None => {}
        },
        SchedulerTree::Fair(children) => children.iter().for_each(|(_, child)| promised(child, first)),
        _ => {}
    }
}

fn limit(tree: &SchedulerTree, first: &mut [f64]) {
    if let SchedulerTree::Limit { rate, child, .. } = tree {
        let of = child.tasks();
        let each = if of.len() == 1 { *rate as f64 } else { f64::NAN };
        of.into_iter().for_each(|task| first[task] += each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_plan::alpine::tree::Unit;

    fn task(task: usize) -> SchedulerTree {
        SchedulerTree::Task(task)
    }

    fn first(rate: u64, child: SchedulerTree) -> SchedulerTree {
        SchedulerTree::Limit { unit: Unit::Bits, rate, burst: 1, child: Box::new(child) }
    }

    /// A port, and two tasks of which the first shall bring through three times as much beyond what is promised: packets cost 200 and
    /// 100 cycles, as far as is known, and have 500 bits.
    fn tree() -> SchedulerTree {
        let promised = SchedulerTree::Fair(vec![(1, first(500_000, task(1))), (1, first(1_000_000, task(2)))]);
        let beyond = SchedulerTree::Fair(vec![(60_000, task(1)), (10_000, task(2))]);
        SchedulerTree::Fair(vec![(40_000, task(0)), (25_000, SchedulerTree::Priority(vec![promised, beyond]))])
    }

    fn beyond(tree: &SchedulerTree) -> [f64; 2] {
        let SchedulerTree::Fair(sides) = tree else { panic!("{tree:?}") };
        let SchedulerTree::Priority(levels) = &sides[1].1 else { panic!("{tree:?}") };
        let SchedulerTree::Fair(two) = &levels[1] else { panic!("{tree:?}") };
        assert_eq!(
            (sides[0].clone(), levels[0].clone()),
            ((40_000, task(0)), {
                let SchedulerTree::Fair(sides) = self::tree() else { unreachable!() };
                let SchedulerTree::Priority(levels) = &sides[1].1 else { unreachable!() };
                levels[0].clone()
            })
        );
        [0, 1].map(|n| f64::from(two[n].0))
    }

    /// What tasks do in a second, if their packets cost `costs` by their weights.
    fn did(weights: [f64; 2], costs: [f64; 2]) -> [Did; 3] {
        let all: f64 = weights.iter().sum();
        let one = |n: usize| {
            let beyond = 1e6 * weights[n] / all / costs[n];
            let promised = [1_000.0, 2_000.0][n];
            Did { packets: promised + beyond, bits: 500.0, has: Has::Plenty, cycles: [200.0, 100.0][n] }
        };
        [Did { packets: 1e6, bits: 500.0, has: Has::Nothing, cycles: 300.0 }, one(0), one(1)]
    }

    #[test]
    fn what_packets_cost_by_their_weight_is_made_up_for() {
        for costs in [[200.0, 100.0], [190.0, 80.0], [160.0, 100.0]] {
            let mut served = Served::new(3);
            for _ in 0..40 {
                let weights = beyond(&served.tree(&tree()));
                served.learn(&tree(), &did(weights, costs), 1.0);
            }
            let [a, b] = beyond(&served.tree(&tree()));
            assert!((a + b - 70_000.0).abs() <= 2.0, "what both have stays: {a} {b}");
            let ratio = (a / costs[0]) / (b / costs[1]);
            assert!((ratio - 3.0).abs() < 0.01, "{ratio} at {costs:?}");
        }
    }

    #[test]
    fn only_who_waits_has_more_weight_and_only_beside_one_who_has_more_than_its_part() {
        // The second one has all that comes: where it is twice its part, of costs that are half of what is known, and where it is half.
        let corrected = |has: Has, costs: f64| {
            let mut served = Served::new(3);
            let mut did = did([60_000.0, 10_000.0], [200.0, costs]);
            did[2].has = has;
            (0..10).for_each(|_| served.learn(&tree(), &did, 1.0));
            served.tree(&tree())
        };
        let [before, after] = [tree(), corrected(Has::Little, 50.0)].map(|tree| beyond(&tree));
        assert!(after[0] > before[0] && after[1] < before[1], "{after:?}");
        assert_eq!(after, beyond(&corrected(Has::Plenty, 50.0)));
        assert_eq!(corrected(Has::Little, 200.0), tree());
        assert_ne!(corrected(Has::Plenty, 200.0), tree());
        // Where nobody waits everybody has what comes; and some of what others do is not to be compared.
        let mut served = Served::new(3);
        let idle = did([60_000.0, 10_000.0], [200.0, 50.0]).map(|did| Did { has: Has::Little, ..did });
        (0..10).for_each(|_| served.learn(&tree(), &idle, 1.0));
        assert_eq!((served.tree(&tree()), corrected(Has::Nothing, 50.0)), (tree(), tree()));
        // Nor what is not known: nobody brought anything, packets without a size.
        let nothing = idle.map(|did| Did { packets: 0.0, has: Has::Plenty, ..did });
        let unsized_ = did([6.0, 1.0], [400.0, 50.0]).map(|did| Did { bits: 0.0, ..did });
        let [without, endless] =
            [0.0, f64::INFINITY].map(|cycles| did([6.0, 1.0], [400.0, 50.0]).map(|did| Did { cycles, ..did }));
        for did in [nothing, unsized_, without, endless] {
            served.learn(&tree(), &did, 1.0);
            assert_eq!(served.tree(&tree()), tree());
        }
    }

    #[test]
    fn a_weight_is_corrected_so_far_and_no_further() {
        let mut served = Served::new(3);
        (0..100).for_each(|_| served.learn(&tree(), &did([10.0, 50.0], [200.0, 100.0]), 1.0));
        let [a, b] = beyond(&served.tree(&tree()));
        assert!((a / b / 6.0 - MOST * MOST).abs() < 0.01, "{a} {b}");
    }

    #[test]
    fn what_is_promised_to_several_tasks_together_is_not_known_of_one() {
        let both = SchedulerTree::Fair(vec![(1, task(1)), (1, task(2))]);
        let mut rates = [0.0; 4];
        promised(
            &SchedulerTree::Priority(vec![SchedulerTree::Fair(vec![(1, first(7, both)), (1, first(9, task(3)))])]),
            &mut rates,
        );
        assert!(rates[0] == 0.0 && rates[1].is_nan() && rates[2].is_nan() && rates[3] == 9.0, "{rates:?}");
        // So neither is corrected, whatever they do.
        let both = SchedulerTree::Fair(vec![(1, task(1)), (1, task(2))]);
        let beyond = SchedulerTree::Fair(vec![(60_000, task(1)), (10_000, task(2))]);
        let together = SchedulerTree::Priority(vec![first(1_500_000, both), beyond]);
        let mut served = Served::new(3);
        served.learn(&together, &did([10.0, 50.0], [200.0, 100.0]), 1.0);
        assert_eq!(served.tree(&together), together);
        // A limit among weights promises nothing.
        let mut rates = [0.0; 2];
        promised(&SchedulerTree::Fair(vec![(1, first(7, task(1))), (1, task(0))]), &mut rates);
        assert_eq!(rates, [0.0; 2]);
    }
}
