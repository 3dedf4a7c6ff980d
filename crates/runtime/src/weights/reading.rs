//! How much the port reads.
//!
//! A queue that runs empty gives its chain's turn to the others, whatever ratio they are in. So where more comes than can be done, a
//! plan has the port read a little more of every chain than is served of it: each queue drops some. What that takes is known by what
//! everything costs, but for what no task pays: taking turns, setting clocks. That is a few percent, as much as the port is to read
//! more; who is served most then has all that is read of it, and the others share what it leaves. So what the queues do
//! drop tells whether the port has enough, and corrects it. Where no relation divides what there is nobody is owed a part of it, and the
//! port has what costs say.

use catena_plan::alpine::SchedulerTree;

/// The most that the port's part is corrected by, up and down: a chain whose weight is too large does not wait however much is read,
/// and reading for it in vain is to cost the others little.
const MOST: f64 = 1.15;
/// And where it reads for others: what it costs to hand packets over no plan knows, and who has idle workers loses little.
const MOST_FOR_OTHERS: f64 = 4.0;
/// The most of a worker's cycles that its port has because it reads for others: what it has left of its own work is not to stand still.
const MOST_OF_ALL: f64 = 0.9;
/// What it is corrected by in the beginning: too much, for what is dropped says how much of it is in vain.
pub(super) const FIRST: f64 = 1.1;
/// What one step changes at most, up and down: down is from where a part of what was read was in vain, up from nothing dropped,
/// which does not say how much is missing.
const STEPS: (f64, f64) = (0.04, 0.1);
/// The part of what is missing, or of what was in vain, that one step corrects. What queues drop in a fifth of a second varies by some
/// percent, as what costs are found to be does; and what is dropped too much is lost to all alike, while who has too little of the port gives
/// its turns to another. So it is slower down than up, and more is read the more that varies.
const PARTS: (f64, f64) = (0.5, 0.125);

/// Return how many times as much of the others' cycles the port has, after `before`, where at least `least` of what came to each queue
/// was dropped, and `wanted` shall be; None: of nobody anything has to be. One part more for the port is about one part more that is
/// dropped.
pub(super) fn follow(before: f64, least: Option<f64>, wanted: f64, workers: usize) -> f64 {
    let ((up, down), (of_missing, of_vain)) = (STEPS, PARTS);
    let most = if workers > 1 { MOST_FOR_OTHERS } else { MOST };
    let Some(least) = least else { return 1.0 + (before - 1.0) / 2.0 };
    let step = match wanted - least {
        _ if least < wanted / 4.0 => up,
        missing if missing > 0.0 => missing * of_missing,
        vain => (vain * of_vain).max(-down),
    };
    (before * (1.0 + step)).clamp(1.0 / MOST, most)
}

/// The tree in which the port's task, the first, has so many times as much beside those that stand with it.
pub(super) fn tree(tree: &SchedulerTree, times: f64) -> SchedulerTree {
    let SchedulerTree::Fair(children) = tree else { return tree.clone() };
    let again = |(weight, child): &(u32, SchedulerTree)| {
        let times = if *child == SchedulerTree::Task(0) { times } else { 1.0 };
        (((f64::from(*weight) * times).round() as u32).max(1), child.clone())
    };
    SchedulerTree::Fair(children.iter().map(again).collect())
}

/// The tree of a worker whose port's task reads for so many: a plan's is that of one which reads what it does itself. Where the others have
/// always something to do, that takes as many times the part of a worker's cycles.
pub(super) fn for_all(tree: &SchedulerTree, workers: usize) -> SchedulerTree {
    let SchedulerTree::Fair(children) = tree else { return tree.clone() };
    let all: f64 = children.iter().map(|(weight, _)| f64::from(*weight)).sum();
    let port = children.iter().find(|(_, child)| *child == SchedulerTree::Task(0));
    let Some(part) = port.map(|(weight, _)| f64::from(*weight) / all).filter(|part| *part < MOST_OF_ALL) else {
        return tree.clone();
    };
    let wanted = (part * workers as f64).min(MOST_OF_ALL);
    self::tree(tree, wanted / part * (1.0 - part) / (1.0 - wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_reads_more_until_every_queue_drops_some() {
        // Of a worker whose port reads and serves in the ratio of its weight, 5% are spent on nothing that a task pays for.
        let mut times = FIRST;
        let dropped = |times: f64| (1.0_f64 - 1.0 / (0.95 * times)).max(0.0);
        for _ in 0..30 {
            times = follow(times, Some(dropped(times)), 0.02, 1);
        }
        assert!((dropped(times) - 0.02).abs() < 0.001, "{times}: {}", dropped(times));
        // Half of what is read is read in vain.
        let least = (0..30).fold(times, |times, _| follow(times, Some(0.5), 0.02, 1));
        assert_eq!(least, 1.0 / MOST);
        // Nobody is owed a part.
        assert!(((0..30).fold(times, |times, _| follow(times, None, 0.02, 1)) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn where_what_is_dropped_varies_a_queue_is_seldom_empty() {
        // What is read varies by 4% up and down, at angles that never come again.
        let dropped = |times: f64, look: i32| {
            let varies = 1.0 + 0.04 * (f64::from(look) * 2.4).sin();
            (1.0_f64 - 1.0 / (0.95 * times * varies)).max(0.0)
        };
        let (mut times, mut all, looks) = (FIRST, Vec::new(), 1_000);
        for look in 0..looks {
            all.push(dropped(times, look));
            times = follow(times, all.last().copied(), 0.02, 1);
        }
        let empty = all.iter().filter(|dropped| **dropped < 0.005).count();
        assert!(empty < all.len() / 8, "nothing was dropped in {empty} of {looks} looks");
        let mean = all.iter().sum::<f64>() / f64::from(looks);
        assert!(mean < 0.055, "{mean} are read in vain");
    }

    #[test]
    fn who_reads_for_all_has_as_many_times_the_part() {
        let of = |port: u32| {
            SchedulerTree::Fair(vec![(port, SchedulerTree::Task(0)), (65_536 - port, SchedulerTree::Task(1))])
        };
        let part = |tree: &SchedulerTree| match tree {
            SchedulerTree::Fair(two) => f64::from(two[0].0) / f64::from(two[0].0 + two[1].0),
            _ => panic!("{tree:?}"),
        };
        let near = |is: f64, wanted: f64| assert!((is - wanted).abs() < 1e-3, "{is} instead of {wanted}");
        near(part(&for_all(&of(6_554), 1)), 0.1);
        near(part(&for_all(&of(6_554), 3)), 0.3);
        near(part(&for_all(&of(6_554), 64)), MOST_OF_ALL);
        near(part(&for_all(&of(62_259), 2)), 0.95);
        assert_eq!(for_all(&SchedulerTree::Task(0), 4), SchedulerTree::Task(0));
    }

    #[test]
    fn only_the_port_has_more() {
        let [port, other] = [SchedulerTree::Task(0), SchedulerTree::Task(1)];
        let before = SchedulerTree::Fair(vec![(40_000, port.clone()), (25_536, other.clone())]);
        let after = SchedulerTree::Fair(vec![(44_000, port.clone()), (25_536, other)]);
        assert_eq!(tree(&before, 1.1), after);
        assert_eq!(tree(&port, 1.1), port);
    }
}
