//! Weighed again: the same tasks by what a run counted.

use std::time::Instant;

use catena_plan_alpine::graph::ClassId;
use catena_plan_alpine::measured::Measured;
use catena_plan_alpine::{Alpine, Graph, Options, SchedulerTree, Until};

use super::super::rates::{self, Bound};
use super::Division;

/// The part of what comes that a chain is taken to have at least, for more of it may come at any time.
const HARDLY_ANY: f64 = 1e-3;
/// Of whom less than this part of what comes is, has nothing to share with others who wait.
const SILENT: f64 = 0.01;

impl Division {
    /// Whose turn it is at the costs that were measured, where so many packets came to each module that a task begins at, of so many
    /// bits (0: not known): the same tasks, weighed again, and how many cycles a packet of each takes by that. None: at these costs no
    /// weights are found, or not within a second.
    ///
    /// A ratio is one of those of whom something comes. By the letter, `throughput a : b = 1 : 2` lets `b` have nothing while `a` is silent, and the
    /// port read in vain for a packet of `a`. What is promised to somebody silent it has by the limit in front of all weights.
    #[must_use]
    pub fn weighed(&self, costs: &Measured, came: &[f64], bits: &[f64]) -> Option<(SchedulerTree, Vec<f64>)> {
        let seen = |entries: &mut dyn Iterator<Item = usize>| {
            let told =
                entries.filter_map(|entry| Some((*came.get(entry)?, *bits.get(entry).filter(|bits| **bits > 0.0)?)));
            let (packets, bits) = told.fold((0.0, 0.0), |(all, sum), (came, bits)| (all + came, sum + came * bits));
            (packets > 0.0).then(|| bits / packets)
        };
        let entry = |class: &usize| self.alpine.graph.entry(*class);
        let mut bounds = rates::sized(&self.bounds, |subject| seen(&mut subject.iter().map(entry)));
        let all: f64 = self.entries.iter().filter_map(|entry| came.get(*entry)).sum();
        let is_silent = |subject: &[ClassId]| {
            let mut own: Vec<usize> = subject.iter().map(entry).collect();
            own.sort_unstable();
            own.dedup();
            all > 0.0 && own.iter().filter_map(|entry| came.get(*entry)).sum::<f64>() < SILENT * all
        };
        let [promises, implied] =
            [&self.promises, &self.implied].map(|all| rates::heard(all, (&self.bounds, &bounds), is_silent));
        bounds.iter_mut().for_each(|bound| bound.forget_if(is_silent));
        let mixed = Alpine { graph: self.mixed(came, &bounds, costs), ..self.alpine.clone() };
        let options = Options { until: Until::of(Instant::now()), ..self.options };
        let tasks = rates::weigh_again(&mixed, (&promises, &implied), &bounds, costs, options)?;
        let of = |c: usize| self.entries.iter().copied().filter(move |m| self.owners[*m] == Some(c));
        let each = tasks.tasks.iter().map(|task| task.cycles / task.packets).collect();
        Some((self.tree(&tasks, |c| seen(&mut of(c)).unwrap_or_else(|| self.planned_bits(c))), each))
    }

    /// The pipeline with as much of each chain as came, in the ratio: no less in all than was thought, nor than could be read if nothing
    /// else was done, for more comes than can be done; and of no chain less than it is promised. Were it thought that less comes, the port
    /// would read too little for who comes first, and who comes last had what that leaves.
    fn mixed(&self, came: &[f64], bounds: &[Bound], costs: &Measured) -> Graph {
        let mut graph = self.alpine.graph.clone();
        let entries: Vec<usize> = (0..graph.classes.len()).map(|class| graph.entry(class)).collect();
        // What comes to no function waits nowhere, and nobody counts it.
        let enters = |class: &usize| self.owners[entries[*class]].is_some();
        let mut own: Vec<usize> = (0..entries.len()).filter(enters).map(|class| entries[class]).collect();
        own.sort_unstable();
        own.dedup();
        let arrived = |entry: usize| came.get(entry).copied().unwrap_or(0.0);
        let all: f64 = own.iter().map(|entry| arrived(*entry)).sum();
        if all <= 0.0 || own.iter().any(|entry| !self.alpine.tasks.tasks.iter().any(|task| task.start == *entry)) {
            return graph;
        }
        let of = |costs: &[f64], n: usize| costs.get(n).copied().unwrap_or(0.0);
        let read = of(&costs.sources, 0) + self.parts(0).map(|(m, part)| part * of(&costs.modules, m)).sum::<f64>();
        let readable = if read > 0.0 { graph.hz / read } else { 0.0 };
        let planned: f64 = graph.classes.iter().map(|class| class.packets).sum();
        let thought = planned.max(readable);
        let mut by_entry = vec![0.0; graph.modules.len()];
        graph.classes.iter().zip(&entries).for_each(|(class, entry)| by_entry[*entry] += class.packets);
        for (class, entry) in graph.classes.iter_mut().zip(&entries).filter(|(_, entry)| own.contains(entry)) {
            let part = (arrived(*entry) / all).max(HARDLY_ANY);
            class.packets *= part * thought / by_entry[*entry];
        }
        let short = bounds.iter().map(|bound| bound.missing(&graph)).fold(1.0, f64::max);
        graph.classes.iter_mut().for_each(|class| class.packets *= short);
        graph
    }
}
