//! The dataplane: modules, gates, tasks, queues, scheduler trees, workers, ports, counters.
//!
//! The way of a packet: a [`worker`] asks its [`schedule`] tree for a task; the [`task`]'s source fills a
//! batch; the [`graph`] carries it from [`module`] to module along gates until every packet has left by a
//! port, waits in a [`queue`] before another task, or was dropped with a counted reason.
//!
//! This crate has never heard of policies, chains or promises.

pub mod attribute;
pub mod branch;
pub mod clock;
pub mod counter;
mod datagrams;
pub mod generator;
pub mod graph;
pub mod module;
pub mod order;
pub mod own;
pub mod pipeline;
pub mod port;
pub mod queue;
pub mod rebalance;
pub mod schedule;
pub mod slots;
pub mod steer;
pub mod task;
pub mod worker;

pub use graph::{Graph, Inlet, NodeId};
pub use module::{Context, Module, Pulled, Reason, Source};
pub use order::Order;
pub use pipeline::{Pipeline, TaskId};
pub use schedule::Tree;
pub use worker::{Worker, WorkerHandle};
