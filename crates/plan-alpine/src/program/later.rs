//! What levels of lower priority have of the modules that a level decides.
//!
//! A port that all chains are read from is decided with the first chains that it serves. They may have all that they want when it
//! reads little, and nothing of theirs would let it read more: what comes after them would then wait in the card while the worker
//! has cycles left. So among the solutions that are best for a level one is taken that is best for those behind it.

use super::{Ask, Linear, Model, Program};
use catena_solver::{Limits, Solution};

/// What a level may lose to those behind it, relative: less than solvers' tolerances.
const SAME: f64 = 1e-6;

impl Program<'_> {
    /// Return a solution that is as good for the level as `best`, and the best of these for later ones; `None`: there are none, or
    /// none was found in time.
    pub(super) fn best_for_later(
        &self,
        mut model: Model,
        best: &Solution,
        (ask, packets, scale): (Ask, &[f64], f64),
        limits: impl Fn() -> Limits,
    ) -> Option<Solution> {
        if self.level + 1 >= self.levels.count {
            return None;
        }
        self.keep(&mut model, best);
        self.add_later(&mut model, ask, packets, scale);
        let shares = model.shares.len();
        let mut found = None;
        for level in self.level + 1..self.levels.count {
            model.fair = model.column(0.0, 1.0 / scale);
            Program { level, ..self.clone() }.promised(&mut model, ask);
            // What is promised to it is its own affair.
            model.shares.truncate(shares);
            // As it does it then: first what nobody related shares as evenly as can be, then throughput.
            let Ok(fairest) = model.minimise([(model.fair, -1.0)], &limits()) else { break };
            model.problem.set_bounds(model.fair, 0.999 * fairest.of(model.fair), f64::INFINITY);
            let most: f64 = self.graph.classes.iter().map(|class| class.packets).sum();
            let served: Vec<_> =
                model.throughput.terms.iter().map(|(column, packets)| (*column, -packets / most)).collect();
            let solution = model.minimise(served, &limits()).unwrap_or(fairest);
            if !model.keeps_shares(&solution) {
                break;
            }
            self.keep(&mut model, &solution);
            found = Some(solution);
        }
        found
    }

    /// Hold a level to the throughput that it has; the next one has its own.
    fn keep(&self, model: &mut Model, solution: &Solution) {
        let own = std::mem::take(&mut model.throughput);
        let served: f64 = own.terms.iter().map(|(column, packets)| packets * solution.of(*column)).sum();
        model.row(served * (1.0 - SAME), f64::INFINITY, &own);
    }

    /// Add the modules of later levels, and that all together have no more than there is.
    fn add_later(&self, model: &mut Model, ask: Ask, packets: &[f64], scale: f64) {
        let mut load = Linear::default();
        for m in (0..packets.len()).filter(|m| self.levels.module[*m] >= self.level) {
            let sigma = model.sigma[m].unwrap_or_else(|| self.later(model, m, ask, scale));
            model.sigma[m] = Some(sigma);
            let cost = packets[m] * (self.graph.modules[m].cycles + self.queue(m, ask));
            load.add(sigma, cost * scale / self.left.max(f64::MIN_POSITIVE));
        }
        model.row(f64::NEG_INFINITY, 1.0, &load);
    }

    /// The column of a later module, which sees no more than the one before it.
    fn later(&self, model: &mut Model, m: usize, ask: Ask, scale: f64) -> catena_solver::Column {
        let Some(up) = self.graph.modules[m].upstream else { return model.column(0.0, 1.0 / scale) };
        let joins = !matches!(ask, Ask::Weights(starts, ..) if starts[m]);
        match model.sigma[up] {
            Some(above) if joins => above,
            Some(above) => {
                let sigma = model.column(0.0, 1.0 / scale);
                let terms = [(sigma, 1.0), (above, -1.0)].into_iter().collect();
                model.row(f64::NEG_INFINITY, 0.0, &Linear { terms, constant: 0.0 });
                sigma
            }
            None => model.column(if joins { self.sigma[up] / scale } else { 0.0 }, self.sigma[up] / scale),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::graph::Kind;
    use crate::promise::Promise;
    use crate::strategy::{Options, weigh};
    use crate::tests::graph;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Chains of which one after the other comes first, and may have no more than a part: while there are cycles, what waits
        /// behind them is served.
        #[test]
        fn who_comes_later_has_what_is_left(
            read in 10.0..100.0_f64,
            chains in prop::collection::vec((30.0..400.0_f64, 1e6..8e6_f64, 0.01..1.0_f64), 2..5),
        ) {
            let mut modules = vec![(None, read), (Some(0), 20.0)];
            modules.extend(chains.iter().map(|(cycles, ..)| (Some(1), *cycles)));
            let classes: Vec<(usize, f64)> = chains.iter().enumerate().map(|(j, (_, packets, _))| (j + 2, *packets)).collect();
            let mut graph = graph(&modules, &classes);
            graph.queue_cycles = 10.0;
            graph.modules[..2].iter_mut().for_each(|module| module.kind = Kind::Port);
            graph.modules[2..].iter_mut().for_each(|module| module.kind = Kind::Scheduled);
            let last = chains.len() - 1;
            let may = |j: usize| if j == last { chains[j].1 } else { chains[j].1 * chains[j].2 };
            let mut promises = vec![Promise::Priority((0..chains.len()).map(|j| vec![j]).collect())];
            promises.extend((0..last).map(|j| Promise::Rate { subject: vec![j], least: 0.0, most: Some(may(j)) }));
            let starts: Vec<bool> = (0..modules.len()).map(|m| m != 1).collect();
            let tasks = weigh(&graph, &promises, &starts, Options::default()).unwrap();
            // Queues drop 2% so as not to run empty.
            let is_full = |j: usize| tasks.classes[j].packets >= 0.95 * may(j);
            prop_assert!(
                tasks.idle < 0.06 * graph.hz || (0..chains.len()).all(is_full),
                "{} idle: {:?}", tasks.idle / graph.hz, tasks.classes
            );
        }
    }
}
