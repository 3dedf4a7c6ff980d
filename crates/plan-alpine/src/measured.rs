//! Weights from what everything costs where it stands.
//!
//! A profile knows what a function costs alone and in full batches. In a pipeline it costs what the caches and the batches
//! make of it, and a queue what is in it; shares that were planned from a profile are off by as much. Once the tasks run,
//! their counters tell, and the same partition is weighed again.

use super::graph::{Class, Graph, Kind, Module};
use super::promise::Promise;
use super::strategy::{Options, Refusal, weigh};
use super::tasks::Tasks;

/// Cycles per packet as they were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Of each module of the graph; 0 at the port, which is a source.
    pub modules: Vec<f64>,
    /// Of the entrance of the queue in front of each module, by all that come to it, dropped or not; 0 where there is none.
    pub entrances: Vec<f64>,
    /// Of taking a packet from the source of each task.
    pub sources: Vec<f64>,
}

/// Weigh `tasks` of `graph` so that `promises` are kept at these costs, the entrance of each queue where it is paid: by all
/// that come to it, in the task in front. Like what comes before it, it is work that loads the worker and counts for no class:
/// who drops most of what comes would otherwise have used up its part of the cycles before it is served at all.
///
/// # Errors
/// Why no weights keep them.
pub fn weighed(
    graph: &Graph,
    tasks: &Tasks,
    promises: &[Promise],
    costs: &Measured,
    options: Options,
) -> Result<Tasks, Refusal> {
    let (mut modules, mut starts): (Vec<Module>, Vec<bool>) = (Vec::new(), Vec::new());
    let mut new = vec![0; graph.modules.len()];
    let of = |costs: &[f64], n: usize| costs.get(n).copied().unwrap_or(0.0);
    for (m, module) in graph.modules.iter().enumerate() {
        let task = tasks.task_of[m];
        let begins = tasks.tasks[task].start == m;
        let source = if begins { of(&costs.sources, task) } else { 0.0 };
        let mut upstream = module.upstream.map(|up| new[up]);
        if begins && upstream.is_some() {
            let (name, cycles) = ("entrance".to_owned(), of(&costs.entrances, m));
            modules.push(Module { name, cycles, upstream, kind: Kind::Port, cuttable: false, ..module.clone() });
            starts.push(false);
            upstream = Some(modules.len() - 1);
        }
        new[m] = modules.len();
        modules.push(Module { cycles: of(&costs.modules, m) + source, upstream, ..module.clone() });
        starts.push(begins);
    }
    let classes = graph.classes.iter().map(|class| Class { exit: new[class.exit], ..class.clone() }).collect();
    weigh(&Graph { modules, classes, queue_cycles: 0.0, ..*graph }, promises, &starts, options)
}
