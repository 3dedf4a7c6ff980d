//! Bridges are those that a search along the edges finds, anew for each two subgroups.

use proptest::prelude::*;

use super::*;
use crate::sample::node;
use catena_plan_model::problem::Edge;

/// Nodes that edges connect, whichever way, through nodes inside, with the node that each was reached from.
fn reached(chain: &Chain, from: &[usize], inside: impl Fn(usize) -> bool) -> Vec<(usize, Option<usize>)> {
    let mut reached: Vec<(usize, Option<usize>)> = from.iter().map(|n| (*n, None)).collect();
    let mut next = 0;
    while let Some(&(here, _)) = reached.get(next) {
        next += 1;
        for edge in &chain.edges {
            for (a, b) in [(edge.from, edge.to), (edge.to, edge.from)] {
                if a == here && inside(b) && !reached.iter().any(|(n, _)| *n == b) {
                    reached.push((b, Some(here)));
                }
            }
        }
    }
    reached
}

/// The nodes that edges lead to from `start`, forward or backward.
fn directed(chain: &Chain, start: &[NodeId], forward: bool) -> Vec<NodeId> {
    let mut nodes = start.to_vec();
    let mut next = 0;
    while let Some(&here) = nodes.get(next) {
        next += 1;
        for edge in &chain.edges {
            let (from, to) = if forward { (edge.from, edge.to) } else { (edge.to, edge.from) };
            if from == here && !nodes.contains(&to) {
                nodes.push(to);
            }
        }
    }
    nodes.split_off(start.len())
}

fn between(chain: &Chain, sites: &[Site], a: &[NodeId], b: &[NodeId]) -> Option<Vec<NodeId>> {
    let (after, before) = (directed(chain, a, true), directed(chain, b, false));
    let off = |n: &NodeId| !matches!(sites[*n], Site::Server(_));
    let nodes: Vec<NodeId> = after.into_iter().filter(|n| before.contains(n)).filter(off).collect();
    nodes.iter().all(|n| chain.nodes[*n].server.is_some()).then_some(nodes)
}

fn simply(chain: &Chain, sites: &[Site], layout: &Layout) -> Vec<(Site, Vec<NodeId>)> {
    let mut found: Vec<(Site, Vec<NodeId>)> = Vec::new();
    let free = |node: NodeId| !matches!(sites[node], Site::Server(_)) && chain.nodes[node].server.is_some();
    let mut add = |server, mut nodes: Vec<NodeId>| {
        nodes.sort_unstable();
        if !nodes.is_empty() && !found.iter().any(|(_, known)| *known == nodes) {
            found.push((Site::Server(server), nodes));
        }
    };
    for (id, from) in layout.groups.iter().enumerate() {
        let inside = |n| free(n) || layout.groups.iter().any(|g| g.nodes.contains(&n));
        let reached = reached(chain, &from.nodes, inside);
        for to in layout.groups.iter().skip(id + 1).filter(|to| to.server == from.server) {
            if let Some((end, _)) = reached.iter().find(|(n, _)| to.nodes.contains(n)) {
                let mut way = Vec::new();
                let mut here = *end;
                while let Some(&(_, Some(before))) = reached.iter().find(|(n, _)| *n == here) {
                    here = before;
                    if free(here) {
                        way.push(here);
                    }
                }
                add(from.server, way);
            }
            for (a, b) in [(from, to), (to, from)] {
                if let Some(ways) = between(chain, sites, &a.nodes, &b.nodes) {
                    add(from.server, ways);
                }
            }
        }
        let others = layout.groups.iter().filter(|g| g.server == from.server && g.nodes != from.nodes);
        let others: Vec<NodeId> = others.flat_map(|g| g.nodes.iter().copied()).collect();
        let ways = [between(chain, sites, &from.nodes, &others), between(chain, sites, &others, &from.nodes)];
        ways.into_iter().flatten().for_each(|ways| add(from.server, ways));
    }
    found
}

/// A chain of up to 90 nodes on the switch and two servers, with the subgroups that its sites make.
fn placed() -> impl Strategy<Value = (Chain, Vec<Site>, Layout)> {
    let about = (0..3_usize, 0..5_usize, proptest::collection::vec(0..1000_usize, 1..3));
    proptest::collection::vec(about, 2..90).prop_map(|nodes| {
        let mut chain = crate::sample::chain("c", vec![node("a", Some(1.0), true, true)], &[]);
        let mut sites = Vec::new();
        chain.nodes.clear();
        for (id, (site, able, from)) in nodes.into_iter().enumerate() {
            sites.push(if site == 0 { Site::Switch } else { Site::Server(site - 1) });
            let server = (site > 0 || able > 0).then_some(1.0);
            chain.nodes.push(node(&format!("n{id}"), server, true, true));
            // Most follow the one before, as in a file; some come together.
            let mut ends: Vec<usize> = from.iter().map(|n| id.saturating_sub(1 + n % 3)).filter(|n| *n < id).collect();
            ends.sort_unstable();
            ends.dedup();
            chain.edges.extend(ends.into_iter().map(|from| Edge { from, to: id, share: 0.5 }));
        }
        let mut owner: Vec<usize> = (0..sites.len()).collect();
        for edge in &chain.edges {
            if sites[edge.from] == sites[edge.to] {
                let (low, high) = (owner[edge.from].min(owner[edge.to]), owner[edge.from].max(owner[edge.to]));
                owner.iter_mut().filter(|o| **o == high).for_each(|o| *o = low);
            }
        }
        let mut layout = Layout {
            groups: Vec::new(),
            stays: Vec::new(),
            smart_nic_cycles: Vec::new(),
            latency_ns: 0.0,
            on_link: 1.0,
            passes: 0.0,
            direct: 0.0,
            joined: true,
        };
        for (first, site) in sites.iter().enumerate() {
            let Site::Server(server) = *site else { continue };
            let nodes: Vec<NodeId> = (0..sites.len()).filter(|n| owner[*n] == first).collect();
            if !nodes.is_empty() {
                let group =
                    Group { nodes, server, smart_nic: None, visits: 1.0, cost: 1.0, spread: 0.0, replicable: true };
                layout.groups.push(group);
            }
        }
        (chain, sites, layout)
    })
}

proptest! {
    #[test]
    fn bridges_are_those_of_a_search_along_the_edges((chain, sites, layout) in placed()) {
        let found = bridges(&chain, &Order::of(&chain), &sites, &layout);
        prop_assert_eq!(found, simply(&chain, &sites, &layout));
    }
}
