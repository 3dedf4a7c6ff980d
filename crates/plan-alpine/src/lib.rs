//! Alpine: which modules make up a task, and how tasks share a worker, so that classes get what they were
//! promised (Lan's dissertation, chapter 5).
//!
//! # Model
//!
//! Packets of a class go from a source through modules to an exit. A task is a module and all downstream of
//! it up to the next tasks; it runs to completion (§5.1.1). A queue in front of a module makes it begin a
//! task of its own. A worker that cannot serve everything lets queues overflow, and drop-tail keeps the mix
//! of classes in what is left. So the state of a worker is one number a module: the part `σ_k`, of the
//! packets meant for it, that module `k` sees. Within a task all modules have the same; downstream of a queue
//! it may be less, never more. Class `j` then gets
//!
//! - cycles `T_j = r_j Σ σ_k c_k` over its path,
//! - packets `R_j = r_j σ_exit`,
//!
//! and a task takes the cycles `σ_i Σ r_j c_k` over its classes and modules; these, made to sum to 1, are its
//! weight. Everything but "does a task begin here" is linear.
//!
//! # What differs from the dissertation
//!
//! §5.3 has weights `w_i` and splits a task's cycles among classes by input rate (`q_ij`); the parts `σ_i =
//! w_i / load_i` are implied. Weights in all tasks are free there, so `σ` may *rise* downstream: a queue is
//! then to give more packets than arrive. Its own example (Figure 5.3: A, then B or C, equal costs and
//! rates, `T1 : T2 = 3 : 1`) is of that kind. Cut between A and B, with A and C in one task, A sees `σ_A` of
//! both classes; `T2 = 2 σ_A`, `T1 = σ_A + σ_B`, and 3 : 1 would need `σ_B = 5 σ_A`: five times as many
//! packets as A ever sends to B. The most that can be had is to cut before C and leave B with A: `T1 = 2 σ_A`,
//! `T2 = σ_A + σ_C >= σ_A`, that is 2 : 1. (The dissertation meets its 3 : 1 because its scheduler counts
//! cycles spent looking into an empty queue, the "excess cycles" of its footnote to 1 : 4 : 1.) Here `σ` never
//! rises, so promises that are kept are kept with packets.
//!
//! The price: when the modules that a class shares with others take more than was promised to it,
//! no partition helps ([`Refusal::Starved`]). What then remains is to drop its packets before they reach those
//! modules: a classifier in front ([`Front`]), which sends the classes that would starve, or if that is not
//! enough all, into queues of their own: the dissertation's manual strategy, but the classes that
//! are best off still run to completion behind the classifier, so that `n` classes need `n` tasks and not
//! `n + 1`. The plan says so ([`Alpine::apart`]).
//!
//! Ports, and the framework's own finding of a packet's class, work for everybody before anyone knows for
//! whom: they load the worker and count for no class ([`Kind::Port`]).
//!
//! # How it is solved
//!
//! One ratio promise over all classes: in closed form ([`greedy`]). Small graphs: by trying partitions, most of which
//! linear algebra refuses ([`few`]). Anything else: as a mixed-integer program ([`program`]), one level of priority after the other, higher levels first; the number of tasks is
//! minimal for each level given the ones above. Weights are then those that serve the most packets, with the
//! queues' own cost reckoned in. Or the most packets instead of the fewest tasks, with costs by batches
//! ([`Objective::MostPackets`], `throughput`).
//!
//! Ratios bind when a worker has more to do than it can: schedulers rest for nobody. To hold them on an idle
//! worker too, [`tree::SchedulerTree::limited`] adds rate limits.

mod few;
pub mod graph;
pub mod greedy;
pub mod measured;
pub mod pipeline;
pub mod program;
pub mod promise;
pub mod strategy;
pub mod tasks;
mod throughput;
pub mod tree;
mod until;
pub mod workers;

#[cfg(test)]
mod tests;

pub use graph::{Class, ClassId, Cost, Ends, Graph, Kind, Malformed, Module, ModuleId};
pub use promise::{Conflict, Levels, Promise, Subject};
pub use strategy::{Alpine, Front, Objective, Options, Proof, Refusal, Strategy, solve, weigh};
pub use tasks::{Served, Task, Tasks};
pub use tree::SchedulerTree;
pub use until::Until;
pub use workers::Assignment;
