//! The fewest tasks by trying partitions, fewest tasks first: for graphs so small that this takes less time than the
//! integer program.
//!
//! What makes it fast is that most partitions are refused without a solver. With the tasks given, the cycles (or packets)
//! of a promise's subjects are linear in the tasks' parts `σ`, `T = A σ`, a column for each task. The promise asks for `T`
//! in the direction of its weights; if that lies outside the span of the columns, no `σ` keeps it, whatever else holds.
//! With fewer tasks than subjects nearly all weights do (see [`super::greedy`], "in general position"). What is left goes
//! to the linear program with that partition.

use super::graph::{ClassId, Graph};
use super::program::{Ask, FLOOR, Nothing, Program, Queues, has_queue};
use super::promise::{Levels, Promise};

/// More partitions than this are not tried, and no more linear programs solved: then the integer program is faster.
const PARTITIONS: usize = 1 << 15;
const PROGRAMS: usize = 150;
/// Weights this far from the span of the columns, relative to their length, are outside: far more than the program's
/// tolerances allow.
const OUTSIDE: f64 = 1e-6;
/// What is left of a column, relative to its length, if it depends on the others.
const DEPENDENT: f64 = 1e-12;

/// Find where tasks begin so that there are the fewest, at most `most`, and the most throughput among those with as few.
///
/// None: there are too many partitions to try.
///
/// # Errors
/// No partition into at most `most` tasks keeps the promises, the solver failed, or the time was over.
pub fn fewest(program: &Program, most: usize) -> Option<Result<Vec<bool>, Nothing>> {
    let graph = program.graph;
    let spared = spared(graph, program.promises, program.levels);
    let given: Vec<bool> = graph.modules.iter().map(|module| module.always_starts()).collect();
    let free: Vec<usize> =
        (0..given.len()).filter(|m| !given[*m] && graph.modules[*m].cuttable && !spared[*m]).collect();
    let always = given.iter().filter(|g| **g).count();
    let (mut tried, mut solved) = (0, 0);
    for extra in 0..=free.len().min(most.saturating_sub(always)) {
        tried += choices(free.len(), extra);
        if tried > PARTITIONS {
            return None;
        }
        let mut best: Option<(f64, Vec<bool>)> = None;
        let mut chosen: Vec<usize> = (0..extra).collect();
        loop {
            if program.until.is_over() {
                // Of those with as few tasks, others might serve more.
                return Some(best.map(|(_, starts)| starts).ok_or(Nothing::Unsolved));
            }
            let mut starts = given.clone();
            chosen.iter().for_each(|c| starts[free[*c]] = true);
            if may_keep(graph, program.promises, &starts) {
                solved += 1;
                if solved > PROGRAMS {
                    return None;
                }
                match program.solve(Ask::Weights(&starts, Queues::Charged, 0.0)) {
                    Ok(found) if found.worst_off >= FLOOR => {
                        let served = graph.classes.iter().map(|class| class.packets * found.sigma[class.exit]).sum();
                        if best.as_ref().is_none_or(|(most, _)| served > *most) {
                            best = Some((served, starts));
                        }
                    }
                    Ok(_) | Err(Nothing::Impossible) => {}
                    Err(Nothing::Unsolved) => return Some(Err(Nothing::Unsolved)),
                }
            }
            if !next(&mut chosen, free.len()) {
                break;
            }
        }
        if let Some((_, starts)) = best {
            return Some(Ok(starts));
        }
    }
    Some(Err(Nothing::Impossible))
}

/// Whether [`fewest`] sees all there is to decide: one level of priority, and nobody begins a task for another's sake.
#[must_use]
pub fn applies(levels: &Levels) -> bool {
    levels.count == 1 && !levels.cut.contains(&true)
}

/// Modules where no task needs to begin, because it may as well begin right upstream: on the last stretch
/// before an exit, which is one class's alone. The same cycles can be made up with one part from further
/// up. (Where both cycles and packets are promised, the two are not the same; nor are they before a branch,
/// where what follows may need the very part that a cut further down gives it.)
pub(super) fn spared(graph: &Graph, promises: &[Promise], levels: &Levels) -> Vec<bool> {
    let cpu = promises.iter().any(|p| matches!(p, Promise::Cpu(_)));
    let throughput = promises.iter().any(|p| matches!(p, Promise::Throughput(_) | Promise::Beyond(_)));
    let downstream = graph.downstream();
    let mut ends = vec![false; graph.modules.len()];
    graph.classes.iter().for_each(|class| ends[class.exit] = true);
    let mut last = vec![false; graph.modules.len()];
    for m in (0..last.len()).rev() {
        last[m] = match downstream[m][..] {
            [] => true,
            [next] => !ends[m] && last[next],
            _ => false,
        };
    }
    let same = |up: usize| {
        let upstream = &graph.modules[up];
        let cut = upstream.cuttable || upstream.always_starts() || levels.cut[up];
        cut && last[up]
    };
    let spared = |module: &super::graph::Module| !(cpu && throughput) && module.upstream.is_some_and(same);
    graph.modules.iter().map(spared).collect()
}

/// The number of ways to choose `k` of `n`, or at least more than [`PARTITIONS`].
fn choices(n: usize, k: usize) -> usize {
    (0..k).fold(1, |ways, i| if ways > PARTITIONS { ways } else { ways * (n - i) / (i + 1) })
}

/// Make the next choice of `chosen.len()` out of `n` in order; false after the last.
fn next(chosen: &mut [usize], n: usize) -> bool {
    let k = chosen.len();
    let Some(i) = (0..k).rev().find(|i| chosen[*i] < n - k + i) else { return false };
    chosen[i] += 1;
    (i + 1..k).for_each(|j| chosen[j] = chosen[j - 1] + 1);
    true
}

/// Whether the weights of every promise lie in the span of what the tasks can give, as far as this can tell.
pub(super) fn may_keep(graph: &Graph, promises: &[Promise], starts: &[bool]) -> bool {
    let mut task_of = vec![0; graph.modules.len()];
    let mut count = 0;
    for (m, module) in graph.modules.iter().enumerate() {
        task_of[m] = match module.upstream {
            Some(up) if !starts[m] => task_of[up],
            _ => {
                count += 1;
                count - 1
            }
        };
    }
    promises.iter().all(|promise| {
        let (members, cpu) = match promise {
            Promise::Priority(_) | Promise::Rate { .. } | Promise::Beyond(_) => return true,
            Promise::Cpu(members) => (members, true),
            Promise::Throughput(members) => (members, false),
        };
        let mut columns = vec![vec![0.0; members.len()]; count];
        for (row, (subject, _)) in members.iter().enumerate() {
            let mut add = |class: &ClassId| {
                let packets = graph.classes[*class].packets;
                if !cpu {
                    columns[task_of[graph.classes[*class].exit]][row] += packets;
                    return;
                }
                for m in graph.path(*class) {
                    let queue = if starts[m] && has_queue(graph, m) { graph.queue_cycles } else { 0.0 };
                    columns[task_of[m]][row] += packets * (graph.modules[m].charged() + queue);
                }
            };
            subject.iter().for_each(&mut add);
        }
        spans(columns, members.iter().map(|(_, weight)| *weight).collect())
    })
}

/// Whether `wanted` is in the span of the columns (Gram and Schmidt's orthogonalisation, each column twice).
fn spans(columns: Vec<Vec<f64>>, mut wanted: Vec<f64>) -> bool {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let length = dot(&wanted, &wanted).sqrt();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let without = |vector: &mut Vec<f64>, basis: &[Vec<f64>]| {
        for unit in basis.iter().chain(basis) {
            let part = dot(vector, unit);
            vector.iter_mut().zip(unit).for_each(|(v, u)| *v -= part * u);
        }
    };
    for mut column in columns {
        let before = dot(&column, &column).sqrt();
        without(&mut column, &basis);
        let left = dot(&column, &column).sqrt();
        if left > before * DEPENDENT {
            column.iter_mut().for_each(|c| *c /= left);
            basis.push(column);
        }
    }
    without(&mut wanted, &basis);
    dot(&wanted, &wanted).sqrt() <= length * OUTSIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_choices_come_once() {
        let mut chosen = vec![0, 1, 2];
        let mut count = 1;
        while next(&mut chosen, 6) {
            assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
            count += 1;
        }
        assert_eq!((count, choices(6, 3), choices(9, 0)), (20, 20, 1));
        assert!(choices(400, 200) > PARTITIONS);
        assert!(!next(&mut [], 3));
    }

    #[test]
    fn a_vector_is_in_the_span_of_its_parts_only() {
        let columns = vec![vec![1.0, 1.0, 0.0], vec![0.0, 0.0, 2.0], vec![2.0, 2.0, 2.0]];
        assert!(spans(columns.clone(), vec![3.0, 3.0, 1.0]));
        assert!(!spans(columns, vec![3.0, 3.1, 1.0]));
    }
}
