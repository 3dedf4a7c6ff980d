//! Step 1: the pipelines become one policy graph (E2's PGraph): "the union of the individual pipelines with
//! one node for each NF and edges copied from the individual pipelines" (Lan's dissertation, §3.4.1).
//!
//! What is one NF? Two nodes of *different* chains are the same when name, function and arguments are the
//! same. The name is what an operator has to tell instances apart; the function and its arguments must agree
//! too, because a node runs one configuration. Two NATs with one name and one pool have to be one: apart,
//! they would hand out the same addresses twice. Nodes of *one* chain are never merged, as the language makes
//! another instance of each mention. [`Sharing::Apart`] keeps every chain's nodes to itself.

use std::collections::HashMap;

use catena_policy::{ChainId, Condition, Direction, End, NodeId, PolicyGraph, Value};
use serde::{Deserialize, Serialize};

use catena_plan_model::demand::shares::rates;

/// Index of a node in [`PGraph::nodes`].
pub type PNodeId = usize;

/// The policy graph of all chains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PGraph {
    /// One node a function instance of the policy.
    pub nodes: Vec<PNode>,
    /// The edges of all chains, in the order of chains and of each chain's edges.
    pub edges: Vec<PEdge>,
}

/// A function of the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PNode {
    /// As the chains call it.
    pub name: String,
    /// The function's name.
    pub function: String,
    /// What it was given.
    pub args: Vec<(String, Value)>,
    /// The nodes of chains that it stands for.
    pub members: Vec<(ChainId, NodeId)>,
}

/// One of the two sides of the rack, each a set of the switch's external ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Where chains begin.
    In,
    /// Where chains end.
    Out,
}

/// Where an edge begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PEnd {
    /// A switch port to the outside.
    Port(Side),
    /// A function.
    Node(PNodeId),
    /// The packet ends here.
    Drop,
}

/// Traffic from one function to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PEdge {
    /// Where from.
    pub from: PEnd,
    /// Where to.
    pub to: PEnd,
    /// Which way.
    pub direction: Direction,
    /// Whose.
    pub chain: ChainId,
    /// Its position among the edges of the same chain, source and direction: the first that matches takes
    /// the packet.
    pub order: u32,
    /// The filters: all must hold.
    pub when: Vec<Condition>,
    /// Bits per second expected.
    pub bps: f64,
}

/// What is expected to enter a chain, bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// At `in`.
    pub forward_bps: f64,
    /// At `out`.
    pub return_bps: f64,
}

/// Which nodes of different chains are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Those with the same name, function and arguments.
    #[default]
    Named,
    /// None.
    Apart,
}

/// Merge the chains of `graph`, of which `demands` says what enters each (missing ones: nothing).
#[must_use]
pub fn merge(graph: &PolicyGraph, demands: &[Demand], sharing: Sharing) -> PGraph {
    let mut merged = PGraph::default();
    let mut known: HashMap<(&str, &str), Vec<PNodeId>> = HashMap::new();
    for (c, chain) in (0..).zip(&graph.chains) {
        let mut ids = Vec::with_capacity(chain.nodes.len());
        for node in &chain.nodes {
            let same = known.entry((&node.name, &node.function)).or_default();
            let own = |n: &PNode| n.args == node.args && n.members.iter().all(|m| m.0 != c);
            let found = match sharing {
                Sharing::Named => same.iter().copied().find(|&id| merged.nodes.get(id).is_some_and(own)),
                Sharing::Apart => None,
            };
            let id = found.unwrap_or(merged.nodes.len());
            if found.is_none() {
                same.push(id);
                merged.nodes.push(PNode {
                    name: node.name.clone(),
                    function: node.function.clone(),
                    args: node.args.clone(),
                    members: Vec::new(),
                });
            }
            merged.nodes[id].members.push((c, node.id));
            ids.push(id);
        }
        let demand = demands.get(c as usize).copied().unwrap_or_default();
        let rates = rates(chain, demand.forward_bps, demand.return_bps);
        let end = |end: End| match end {
            End::In => PEnd::Port(Side::In),
            End::Out => PEnd::Port(Side::Out),
            End::Drop => PEnd::Drop,
            End::Node(id) => ids.get(id as usize).map_or(PEnd::Drop, |&id| PEnd::Node(id)),
        };
        merged.edges.extend(chain.edges.iter().zip(rates).map(|(edge, bps)| PEdge {
            from: end(edge.from),
            to: end(edge.to),
            direction: edge.direction,
            chain: c,
            order: edge.order,
            when: edge.when.clone(),
            bps,
        }));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_policy::{Chain, Edge, Node, Promise, Span, Unparsed};

    fn edge(from: End, to: End, order: u32, share: Option<f64>) -> Edge {
        let span = Span::default();
        Edge { from, to, direction: Direction::Forward, when: vec![], order, share, rate_bps: None, span }
    }

    fn chain(name: &str, functions: &[(&str, &str)], edges: Vec<Edge>) -> Chain {
        let node = |(id, (name, function)): (u32, &(&str, &str))| Node {
            id,
            name: (*name).into(),
            function: (*function).into(),
            args: vec![],
            span: Span::default(),
        };
        let nodes = (0..).zip(functions).map(node).collect();
        Chain {
            name: name.into(),
            classes: vec![],
            promise: Promise::default(),
            unparsed: Unparsed::default(),
            nodes,
            edges,
            span: Span::default(),
        }
    }

    /// in -> a -> [60%: b, rest: out] ; b -> out
    fn branching(name: &str) -> Chain {
        let edges = vec![
            edge(End::In, End::Node(0), 0, None),
            edge(End::Node(0), End::Node(1), 0, Some(0.6)),
            edge(End::Node(0), End::Out, 1, None),
            edge(End::Node(1), End::Out, 0, None),
        ];
        chain(name, &[("fw", "ACL"), ("mon", "Monitor")], edges)
    }

    #[test]
    fn rates_follow_shares_and_rates_written() {
        let mut chain = branching("a");
        assert_eq!(rates(&chain, 100.0, 0.0), [100.0, 60.0, 40.0, 60.0]);
        chain.edges[1].rate_bps = Some(70.0);
        assert_eq!(rates(&chain, 100.0, 0.0), [100.0, 70.0, 30.0, 70.0]);
    }

    #[test]
    fn nodes_are_one_by_name_function_and_arguments() {
        let mut other = branching("b");
        other.nodes[1].args.push(("max_flows".into(), Value::Integer(7)));
        let graph = PolicyGraph { chains: vec![branching("a"), other], ..PolicyGraph::default() };
        let demands = [Demand { forward_bps: 100.0, return_bps: 0.0 }; 2];
        let merged = merge(&graph, &demands, Sharing::Named);
        // The ACL is shared, the monitors differ in their arguments.
        assert_eq!(merged.nodes.len(), 3);
        assert_eq!(merged.nodes[0].members, [(0, 0), (1, 0)]);
        assert_eq!(merged.edges.len(), 8);
        assert_eq!(merged.edges[5].to, PEnd::Node(2));
        assert_eq!(merge(&graph, &demands, Sharing::Apart).nodes.len(), 4);
    }

    #[test]
    fn one_chain_keeps_its_nodes_apart() {
        let two = chain("c", &[("m", "Monitor"), ("m", "Monitor")], vec![]);
        let graph = PolicyGraph { chains: vec![two], ..PolicyGraph::default() };
        assert_eq!(merge(&graph, &[], Sharing::Named).nodes.len(), 2);
    }
}
