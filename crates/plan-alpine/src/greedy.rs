//! The partition in closed form, where one ratio promise names every class.
//!
//! Let `σ_k` be the part of its packets that module `k` sees, and `c_k` its cost. A packet of class `j`
//! costs, averaged over those that came in, `Σ σ_k c_k` over the class's path, and shall cost `τ_j` (the
//! weight over the input rate, on a common scale). What modules above `v` have spent on a packet is the same
//! for all classes that go through `v`: call it `u`; let `C_j` be the cost of class `j`'s path from `v` on.
//! As `σ` never rises downstream, `u + σ_v C_j >= τ_j` must hold for each class below `v`. The greedy
//! rule takes the least that does, `σ_v = max (τ_j − u) / C_j`, and begins a task at `v` if that is less than
//! upstream's. The class where the maximum is reached runs to completion from `v` on.
//!
//! *Feasible if any partition is.* In every solution `σ_v >= max (τ_j − u) / C_j`, so behind `v` a packet
//! has cost at least `u + σ_v c_v >= max (u (1 − c_v / C_j) + τ_j c_v / C_j)`, which grows with `u`
//! (`C_j >= c_v`). By induction from the root the rule spends the least possible before every module. It
//! fails only if that exceeds some `τ_j`, and then every solution does.
//!
//! *Most throughput.* For the same reason each class's exit sees the most it can, `(τ_j − u) / c_exit`.
//!
//! *Fewest tasks in general position.* Every task has a class that runs to completion in it, so there are at
//! most as many tasks as classes, `n`, and fewer where ties occur. Conversely the costs of the classes are
//! linear in the `σ` of the tasks: `m` tasks reach an `m`-dimensional subspace, and there are finitely many
//! partitions, so promises that `m < n` tasks can keep are a set of measure zero. Inside that set the rule may
//! be beaten: behind a chain of two modules, three leaves of cost 1, 2, 3 that shall cost
//! `τ = U + s·(1, 2, 3)` need two tasks (cut once, so that upstream costs `U`), where the rule takes three. So
//! small graphs are handed to the exact program as well ([`super::program`]).
//!
//! A queue costs cycles of its own. The rule adds them to `C_j` where it cuts, so shares hold with the queues
//! reckoned in. "Feasible if any is" and "most throughput" are then no longer exact: a class that has too
//! little to do could burn cycles in queues. The bound by general position holds as before.
//!
//! For a throughput promise the exits' `σ` themselves are given: the same rule with `σ_v = max ρ_j` below
//! `v`. It is minimal always: if a solution has a larger `σ_v`, every way down from `v` has a task more,
//! and one of them is spared by lowering `σ_v` to the maximum, at the price of at most one at `v`.

use super::graph::{ClassId, Graph, Kind};
use super::program::has_queue;
use super::promise::{Levels, Promise};

/// Relative distance below which two shares are the same: what double precision leaves after sums.
const SAME: f64 = 1e-9;
/// A class must keep this part of its cycles for its last module: less is as good as nothing served.
const LEAST: f64 = 1e-5;

/// Where tasks begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Cuts {
    /// For each module, whether a task begins there.
    pub starts: Vec<bool>,
    /// For each module, the part of its packets that it sees, on a common scale.
    pub sigma: Vec<f64>,
}

/// Classes whose shared modules alone take more than what they were promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starved(pub Vec<ClassId>);

/// A ratio promise that names every class once, on a graph that the rule fits.
#[derive(Clone, Debug, PartialEq)]
pub enum Whole {
    /// Cycles: weight of each class.
    Cpu(Vec<f64>),
    /// Packets: weight of each class.
    Throughput(Vec<f64>),
}

impl Whole {
    /// See whether there is one level, and one ratio promise whose subjects are all classes one by one.
    #[must_use]
    pub fn named(graph: &Graph, promises: &[Promise], levels: &Levels) -> Option<Whole> {
        let [promise] = promises else { return None };
        let (Promise::Cpu(members) | Promise::Throughput(members)) = promise else { return None };
        let mut weights = vec![0.0; graph.classes.len()];
        for (subject, weight) in members {
            let [class] = subject[..] else { return None };
            weights[class] = *weight;
        }
        match (levels.count == 1 && weights.iter().all(|w| *w > 0.0), promise) {
            (false, _) => None,
            (true, Promise::Cpu(_)) => Some(Whole::Cpu(weights)),
            (true, _) => Some(Whole::Throughput(weights)),
        }
    }

    /// See whether the rule fits: one level, one ratio promise whose subjects are all classes one by one,
    /// every class with an exit of its own at the end of the tree, queues allowed everywhere.
    #[must_use]
    pub fn of(graph: &Graph, promises: &[Promise], levels: &Levels) -> Option<Whole> {
        let whole = Whole::named(graph, promises, levels)?;
        let cpu = matches!(whole, Whole::Cpu(_));
        let mut classes_at = vec![0; graph.modules.len()];
        graph.classes.iter().for_each(|class| classes_at[class.exit] += 1);
        let downstream = graph.downstream();
        let fits = |(m, module): (usize, &super::graph::Module)| {
            let alone = module.upstream.is_some_and(|up| downstream[up].len() == 1);
            let idle = alone && module.kind == Kind::Port;
            let free =
                module.upstream.is_none() || idle || (module.cuttable && (!cpu || module.kind != Kind::Scheduled));
            let leaf = downstream[m].is_empty();
            free && classes_at[m] == usize::from(leaf) && !(cpu && leaf && module.charged() <= 0.0)
        };
        graph.modules.iter().enumerate().all(fits).then_some(whole)
    }

    /// Cut.
    ///
    /// # Errors
    /// The classes that no partition without a classifier in front can serve as promised.
    pub fn cut(&self, graph: &Graph) -> Result<Cuts, Starved> {
        let weights = match self {
            Whole::Cpu(weights) | Whole::Throughput(weights) => weights,
        };
        let target: Vec<f64> = weights.iter().zip(&graph.classes).map(|(w, class)| w / class.packets).collect();
        let below = classes_below(graph);
        // Cost from each module to each exit: costs from the sources, subtracted.
        let mut from_source = vec![0.0; graph.modules.len()];
        let mut spent = vec![0.0; graph.modules.len()];
        let mut cuts = Cuts { starts: vec![false; graph.modules.len()], sigma: vec![0.0; graph.modules.len()] };
        let mut starved = Vec::new();
        for (m, module) in graph.modules.iter().enumerate() {
            let above = module.upstream.map_or(0.0, |up| from_source[up]);
            from_source[m] = above + module.charged();
        }
        for (m, module) in graph.modules.iter().enumerate() {
            let before = module.upstream.map_or(0.0, |up| from_source[up]);
            let used = module.upstream.map_or(0.0, |up| spent[up]);
            let need = |j: &ClassId, queue: f64| match self {
                Whole::Cpu(_) => (target[*j] - used) / (from_source[graph.classes[*j].exit] - before + queue),
                Whole::Throughput(_) => target[*j],
            };
            let most = |queue: f64| below[m].iter().map(|j| need(j, queue)).fold(0.0, f64::max);
            let least = most(0.0);
            let upstream = module.upstream.map(|up| cuts.sigma[up]);
            let joined = upstream.filter(|up| least >= up * (1.0 - SAME) && !module.always_starts());
            cuts.starts[m] = joined.is_none();
            let queue = if joined.is_none() && has_queue(graph, m) { graph.queue_cycles } else { 0.0 };
            cuts.sigma[m] = joined.unwrap_or_else(|| most(queue).min(upstream.unwrap_or(f64::INFINITY)));
            spent[m] = used + cuts.sigma[m] * (module.charged() + queue);
            if let Whole::Cpu(_) = self {
                let short = |j: &&ClassId| graph.classes[**j].exit == m && target[**j] - used <= LEAST * target[**j];
                starved.extend(below[m].iter().filter(short).copied());
            }
        }
        if starved.is_empty() { Ok(cuts) } else { Err(Starved(starved)) }
    }
}

/// The classes through each module.
fn classes_below(graph: &Graph) -> Vec<Vec<ClassId>> {
    let mut below = vec![Vec::new(); graph.modules.len()];
    for j in 0..graph.classes.len() {
        graph.path(j).for_each(|m| below[m].push(j));
    }
    below
}
