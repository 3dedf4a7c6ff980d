//! How a graph changes, also while it runs: between two batches.

use std::sync::Arc;

use super::{Gate, Graph, Inlet, Node, NodeId, Started};
use crate::module::{Context, Module};

/// A module that was taken out of a graph, and what its end could not write.
pub struct Removed {
    /// The module, which has finished.
    pub module: Box<dyn Module>,
    /// What went wrong when it finished, in words for the user.
    pub failed: Option<String>,
}

impl Graph {
    /// Add a module.
    pub fn add(&mut self, name: &str, module: Box<dyn Module>) -> NodeId {
        let (is_exit, is_polled) = (module.is_exit(), module.is_polled());
        let counters = Arc::default();
        self.nodes.push(Some(Node {
            module,
            name: name.into(),
            counters,
            gates: Vec::new(),
            is_exit,
            started: Started::No,
        }));
        self.numbered = false;
        let id = NodeId((self.nodes.len() - 1) as u32);
        self.polled.extend(is_polled.then_some(id));
        id
    }

    /// Lead an output gate to an inlet; what it led to before is forgotten.
    ///
    /// # Panics
    /// When a module is not in the graph: the caller built it.
    pub fn connect(&mut self, from: NodeId, gate: u16, to: impl Into<Inlet>) {
        let to = to.into();
        assert!(self.nodes[to.node.0 as usize].is_some(), "{to:?} is not in the graph");
        let node = self.nodes[from.0 as usize].as_mut().expect("the module is in the graph");
        while node.gates.len() <= usize::from(gate) {
            node.gates.push(Gate { to: None, place: 0, traffic: Arc::default() });
        }
        node.gates[usize::from(gate)].to = Some(to);
        self.numbered = false;
    }

    /// Put a module between `from`'s gate and whatever that gate leads to. Packets enter and leave it by the gate by which
    /// they enter what comes next, so that it knows the way back from the way out.
    pub fn insert_after(&mut self, from: NodeId, gate: u16, name: &str, module: Box<dyn Module>) -> NodeId {
        let next = self.next(from, gate);
        let node = self.add(name, module);
        let way = next.map_or(0, |next| next.gate);
        self.connect(from, gate, Inlet { node, gate: way });
        if let Some(next) = next {
            self.connect(node, way, next);
        }
        node
    }

    /// Take a module out, between two batches; a gate that led to one of its input gates leads to where its output gate
    /// of the same number leads. The module finishes, and what it still hands on goes its way.
    pub fn remove(&mut self, cx: &mut Context, node: NodeId) -> Option<Removed> {
        let failed = self.finish_one(cx, node)?.err();
        let info = self.nodes[node.0 as usize].as_ref().map(Node::info)?;
        let gone = self.nodes.get_mut(node.0 as usize)?.take()?;
        self.gone.push((node, info));
        let beyond = |gate: u16| gone.gates.get(usize::from(gate)).and_then(|g| g.to).filter(|to| to.node != node);
        for gate in self.nodes.iter_mut().flatten().flat_map(|n| &mut n.gates) {
            if let Some(to) = gate.to.filter(|to| to.node == node) {
                gate.to = beyond(to.gate);
            }
        }
        self.numbered = false;
        Some(Removed { module: gone.module, failed })
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
