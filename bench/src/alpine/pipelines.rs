//! The pipelines that Alpine is measured on, as shapes: modules by upstream, and where classes end.
//!
//! Lan's dissertation does not print its pipelines: §5.5.2 names Click's IP router, firewall and transparent
//! proxy, Table 5.4 their number of modules (8, 4, 7), and there are five classes of equal rate. Trees of these sizes
//! stand here for them, one module more for the port; where there are fewer exits than classes, classes share
//! paths, so that some ratios need a classifier in front. Binary trees are those of Figures 5.9 and 5.10.

use catena_plan::alpine::{Class, Ends, Graph, Kind, Module};
use catena_plan::profile::FULL_BATCH;

/// A tree of modules without their costs.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What it is called.
    pub name: String,
    /// The module that each one's packets come from; None: the port.
    pub upstream: Vec<Option<usize>>,
    /// The module that each class ends at.
    pub exits: Vec<usize>,
}

/// What a shape does not say.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Cycles per second of a worker.
    pub hz: f64,
    /// Packets per second of each class.
    pub packets: f64,
    /// Cycles per packet of the port.
    pub port: f64,
    /// Cycles per packet of each module.
    pub modules: Vec<f64>,
    /// Of that, cycles of a batch however few packets it has, and how many it had; of each module, where it is known.
    pub batches: Vec<(f64, f64)>,
    /// Cycles per packet of a queue.
    pub queue: f64,
    /// What its ends take, where it is known.
    pub ends: Ends,
    /// Cycles per packet of a classifier in front.
    pub classify: f64,
    /// Of that, each class that is tried.
    pub classify_each: f64,
}

impl Shape {
    /// The three of Table 5.4: IP router, firewall and transparent proxy.
    pub fn pipelines() -> [Shape; 3] {
        let shape = |name: &str, upstream: &[usize], exits: &[usize]| Shape {
            name: name.to_owned(),
            upstream: std::iter::once(None).chain(upstream.iter().copied().map(Some)).collect(),
            exits: exits.to_vec(),
        };
        [
            shape("IP router", &[0, 1, 2, 2, 2, 2, 2], &[3, 4, 5, 6, 7]),
            shape("firewall", &[0, 0, 0], &[1, 2, 3, 1, 2]),
            shape("transparent proxy", &[0, 0, 1, 1, 2, 2], &[3, 4, 5, 6, 6]),
        ]
    }

    /// The binary tree with so many modules on each path, a class for each leaf.
    pub fn binary(depth: usize) -> Shape {
        let count = (1usize << depth) - 1;
        Shape {
            name: format!("binary tree of depth {depth}"),
            upstream: (0..count).map(|m| (m > 0).then(|| (m.max(1) - 1) / 2)).collect(),
            exits: (count / 2..count).collect(),
        }
    }

    /// What Alpine plans: module `m` is module `m + 1` of the graph, behind the port.
    pub fn graph(&self, figures: &Figures) -> Graph {
        let port = Module {
            name: "port".to_owned(),
            cycles: figures.port,
            per_batch: 0.0,
            batch: FULL_BATCH,
            upstream: None,
            kind: Kind::Port,
            cuttable: false,
            replicable: true,
            origin: 0,
        };
        let batches = |m: usize| figures.batches.get(m).copied().unwrap_or((0.0, FULL_BATCH));
        let module = |(m, up): (usize, &Option<usize>)| Module {
            name: format!("m{m}"),
            cycles: figures.modules.get(m).copied().unwrap_or(0.0),
            per_batch: batches(m).0,
            batch: batches(m).1,
            upstream: Some(up.map_or(0, |up| up + 1)),
            kind: Kind::Function,
            cuttable: true,
            replicable: true,
            origin: m + 1,
        };
        let class = |(j, exit): (usize, &usize)| Class {
            name: format!("c{j}"),
            exit: exit + 1,
            packets: figures.packets,
            known_in_front: true,
        };
        Graph {
            modules: std::iter::once(port).chain(self.upstream.iter().enumerate().map(module)).collect(),
            classes: self.exits.iter().enumerate().map(class).collect(),
            hz: figures.hz,
            queue_cycles: figures.queue,
            queue_ends: figures.ends,
            classify_cycles: figures.classify,
            classify_each: figures.classify_each,
        }
    }
}
