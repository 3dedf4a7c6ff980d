//! Step 5: offloading to the switch, opportunistically: "a NF is considered as a candidate for offloading to
//! the switch only if, at the end of the placement, that NFs is adjacent to a switch port, and the switch has
//! available resources to run it" (Lan's dissertation, §3.4.1).
//!
//! A function goes to the switch with all its instances, as the switch has one copy of it. It counts as
//! adjacent if an edge joins it with a port to the outside, or with a function that is on the switch by now.
//! Beyond the paper's words it goes only if server links then carry no more than before: a function in the
//! midst of others that has one edge to a port would make all else bounce.

use super::graph::{PEnd, PGraph, PNodeId};
use super::instances::{IEnd, IGraph, InstanceId};
use super::traffic::Places;
use catena_plan_model::problem::ServerId;

/// Where an instance is in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// On the switch.
    Switch,
    /// On a server.
    Server(ServerId),
}

/// What goes to the switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offload {
    /// The functions, in the order in which they went.
    pub nodes: Vec<PNodeId>,
    /// Cores that they leave.
    pub freed: usize,
    /// Bits per second that server links carry less, both ends of an edge between servers counted.
    pub saved_bps: f64,
}

impl Offload {
    /// Where each instance is.
    #[must_use]
    pub fn sites(&self, graph: &IGraph, places: &Places) -> Vec<Site> {
        let site = |(instance, &server): (&super::instances::Instance, &ServerId)| {
            if self.nodes.contains(&instance.node) { Site::Switch } else { Site::Server(server) }
        };
        graph.instances.iter().zip(&places.server).map(site).collect()
    }
}

/// Offload functions of `policy` that are `able` to run on the switch, as long as `room` holds them. Those that save
/// most go first.
pub fn offload(
    policy: &PGraph,
    graph: &IGraph,
    places: &Places,
    able: &dyn Fn(PNodeId) -> bool,
    room: &mut dyn FnMut(&[PNodeId]) -> bool,
) -> Offload {
    let mut left: Vec<PNodeId> = (0..policy.nodes.len()).filter(|node| able(*node)).collect();
    let mut done = Offload::default();
    loop {
        let adjacent = |n: PNodeId| {
            policy.edges.iter().any(|edge| match (edge.from, edge.to) {
                (a, PEnd::Node(b)) if b == n => on_switch(&done.nodes, a),
                (PEnd::Node(a), b) if a == n => on_switch(&done.nodes, b),
                _ => false,
            })
        };
        let mut candidates: Vec<(f64, PNodeId)> = left
            .iter()
            .filter(|&&n| adjacent(n))
            .map(|&n| (saving(graph, places, &done.nodes, n), n))
            .filter(|&(saving, _)| saving >= 0.0)
            .collect();
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let fitting = candidates.into_iter().find(|&(_, n)| {
            done.nodes.push(n);
            let holds = room(&done.nodes);
            done.nodes.pop();
            holds
        });
        let Some((saving, node)) = fitting else { break };
        done.nodes.push(node);
        done.saved_bps += saving;
        done.freed += graph.of_node.get(node).map_or(0, Vec::len);
        left.retain(|&n| n != node);
    }
    done
}

fn on_switch(nodes: &[PNodeId], end: PEnd) -> bool {
    match end {
        PEnd::Port(_) => true,
        PEnd::Node(node) => nodes.contains(&node),
        PEnd::Drop => false,
    }
}

/// Bits per second less on server links when `node` joins `nodes` on the switch.
fn saving(graph: &IGraph, places: &Places, nodes: &[PNodeId], node: PNodeId) -> f64 {
    let mut saved = 0.0;
    let site = |id: InstanceId| {
        let there = graph.instances.get(id).is_none_or(|i| nodes.contains(&i.node));
        if there { None } else { places.server.get(id).copied() }
    };
    for &id in graph.of_node.get(node).into_iter().flatten() {
        for edge in graph.at.get(id).into_iter().flatten().filter_map(|&e| graph.edges.get(e)) {
            let other = if edge.from == IEnd::Instance(id) { edge.to } else { edge.from };
            let other = match other {
                // A packet that is dropped crosses no link.
                IEnd::Drop => continue,
                IEnd::Port(_) => None,
                IEnd::Instance(other) => site(other),
            };
            let links = |a: Option<ServerId>, b: Option<ServerId>| {
                if a == b { 0.0 } else { f64::from(u8::from(a.is_some()) + u8::from(b.is_some())) }
            };
            saved += edge.bps * (links(site(id), other) - links(None, other));
        }
    }
    saved
}

#[cfg(test)]
mod tests {
    use super::super::keys::Splitting;
    use super::super::sample;
    use super::*;
    use catena_plan_model::catalogue::{Affinity, Fields};

    fn graph(policy: &PGraph, counts: &[u32]) -> IGraph {
        let splitting = vec![Splitting { affinity: Affinity::Any, rewrites: Fields(0) }; policy.nodes.len()];
        IGraph::build(policy, &splitting, counts).unwrap()
    }

    #[test]
    fn the_ends_of_a_line_go_and_then_what_is_next_to_them() {
        let policy = sample::line(4, 8.0);
        let graph = graph(&policy, &[2, 1, 1, 1]);
        let places = Places { server: vec![0; 5], free: vec![0] };
        let able = |node: PNodeId| node != 2;
        let uses = [10, 60, 1, 30];
        let room = |free: u64| move |nodes: &[PNodeId]| nodes.iter().map(|&node| uses[node]).sum::<u64>() <= free;
        let done = offload(&policy, &graph, &places, &able, &mut room(100));
        assert_eq!((&done.nodes[..], done.freed, done.saved_bps), (&[0, 1, 3][..], 4, 0.0));
        let done = offload(&policy, &graph, &places, &able, &mut room(60));
        assert_eq!(done.nodes, [0, 3]);
        assert_eq!(done.sites(&graph, &places)[1..3], [Site::Switch, Site::Server(0)]);
        assert_eq!(offload(&policy, &graph, &places, &|node| node == 3, &mut room(60)).nodes, [3]);
        assert!(offload(&policy, &graph, &places, &able, &mut room(0)).nodes.is_empty());
    }

    #[test]
    fn a_function_in_the_midst_of_others_stays() {
        // A sends a little to a port and much through B and C, which are on its server.
        let mut policy = sample::line(3, 8.0);
        policy.edges.push(sample::edge(PEnd::Node(1), PEnd::Port(super::super::graph::Side::Out), 1.0));
        let graph = graph(&policy, &[1, 1, 1]);
        let places = Places { server: vec![0; 3], free: vec![0] };
        let done = offload(&policy, &graph, &places, &|node| node == 1, &mut |_: &[PNodeId]| true);
        assert!(done.nodes.is_empty());
    }
}
