//! What may be swapped without changing anything: equal branches of a chain, equal servers of a rack.
//!
//! Of placements that differ by a swap alone only one has to be looked at. For a chain like Lemur's
//! chain 4, whose three branches are the same, that is one of six.

use std::collections::BTreeMap;

use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, Node, NodeId, Problem};

/// Two shares that arithmetic alone made differ are equal.
const SAME_SHARE: f64 = 1e-9;

/// A permutation of a chain's nodes: where each of them goes.
pub type Swap = Vec<NodeId>;

/// Permutations of `chain`'s nodes, each the exchange of two equal parts, under which nothing changes:
/// neither what nodes are able to and cost nor which edges there are.
#[must_use]
pub fn swaps(chain: &Chain) -> Vec<Swap> {
    let count = chain.nodes.len();
    let (mut before, mut after) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for edge in &chain.edges {
        before[edge.to].push(edge.from);
        after[edge.from].push(edge.to);
    }
    before.iter_mut().for_each(|nodes| nodes.sort_unstable());
    // What comes before either stays where it is, for a chain has no circles: so it must come before both.
    let mut beside: BTreeMap<&[NodeId], Vec<NodeId>> = BTreeMap::new();
    for (node, comes_before) in before.iter().enumerate() {
        beside.entry(comes_before).or_default().push(node);
    }
    let mut found: Vec<Swap> = Vec::new();
    for nodes in beside.values() {
        for (at, &a) in nodes.iter().enumerate() {
            for &b in &nodes[at + 1..] {
                let Some(swap) = exchange(chain, &after, a, b) else { continue };
                if !found.contains(&swap) && keeps_edges(chain, &swap) {
                    found.push(swap);
                }
            }
        }
    }
    found
}

/// The exchange of `a` and of what follows it with `b` and what follows that, up to where they meet.
fn exchange(chain: &Chain, after: &[Vec<NodeId>], a: NodeId, b: NodeId) -> Option<Swap> {
    let mut to: Swap = (0..chain.nodes.len()).collect();
    let mut open = vec![(a, b)];
    while let Some((a, b)) = open.pop() {
        if a == b || (to[a] == b && to[b] == a) {
            continue;
        }
        if to[a] != a || to[b] != b || !same_node(&chain.nodes[a], &chain.nodes[b]) {
            return None;
        }
        (to[a], to[b]) = (b, a);
        if after[a].len() != after[b].len() {
            return None;
        }
        open.extend(after[a].iter().copied().zip(after[b].iter().copied()));
    }
    Some(to)
}

fn same_node(a: &Node, b: &Node) -> bool {
    a.function == b.function
        && same_share(a.share, b.share)
        && same_share(a.entry, b.entry)
        && a.server == b.server
        && a.smart_nic == b.smart_nic
        && a.pisa == b.pisa
        && a.openflow == b.openflow
        && a.replicable == b.replicable
}

fn same_share(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_SHARE
}

fn keeps_edges(chain: &Chain, to: &Swap) -> bool {
    chain.edges.iter().all(|edge| {
        let image = (to[edge.from], to[edge.to]);
        let there = |e: &&catena_plan_model::problem::Edge| (e.from, e.to) == image && same_share(e.share, edge.share);
        let alike = |e: &&catena_plan_model::problem::Edge| {
            (e.from, e.to) == (edge.from, edge.to) && same_share(e.share, edge.share)
        };
        chain.edges.iter().filter(there).count() == chain.edges.iter().filter(alike).count()
    })
}

/// More images of a set than this are not looked for.
const MOST_IMAGES: usize = 500;

/// The sets of nodes that `set` may become by applying `swaps` again and again, itself first; of very many some.
#[must_use]
pub fn images(set: &[bool], swaps: &[Swap]) -> Vec<Vec<bool>> {
    let mut found = vec![set.to_vec()];
    let mut next = 0;
    while next < found.len() && found.len() < MOST_IMAGES {
        for swap in swaps {
            let mut image = vec![false; set.len()];
            for (node, &on) in found[next].iter().enumerate() {
                image[swap[node]] = on;
            }
            if !found.contains(&image) {
                found.push(image);
            }
        }
        next += 1;
    }
    found
}

/// Whether none of `swaps` makes `sites`, the sites of a chain's first nodes, come earlier in order: of all
/// placements that swaps turn into each other at least the first one passes.
#[must_use]
pub fn first_of_swaps(sites: &[Site], swaps: &[Swap]) -> bool {
    swaps.iter().all(|swap| {
        // Up to the first node whose image has no site yet.
        let images = swap.iter().map_while(|&node| sites.get(node));
        let differ = sites.iter().zip(images).find(|(site, image)| site != image);
        differ.is_none_or(|(site, image)| site < image)
    })
}

/// The class of each server: servers of the same class differ by name alone. One with SmartNICs is in a
/// class of its own.
#[must_use]
pub fn server_classes(problem: &Problem) -> Vec<usize> {
    let smart = |server: usize| problem.smart_nics.iter().any(|nic| nic.server == server);
    let mut classes: Vec<usize> = Vec::new();
    for (id, server) in problem.servers.iter().enumerate() {
        let twin = problem.servers[..id].iter().enumerate().position(|(other, s)| {
            !smart(id)
                && !smart(other)
                && s.cores == server.cores
                && s.shared == server.shared
                && s.clock_hz == server.clock_hz
                && s.nics_bps == server.nics_bps
        });
        classes.push(twin.map_or(id, |twin| classes[twin]));
    }
    classes
}

/// Whether `sites` uses the servers of every class in their order: of all placements that differ by names of
/// equal servers exactly one does.
#[must_use]
pub fn first_of_servers(sites: &[Site], classes: &[usize]) -> bool {
    let mut used = vec![false; classes.len()];
    for site in sites {
        let Site::Server(server) = *site else { continue };
        if !used[server] {
            let earlier = (0..server).any(|other| classes[other] == classes[server] && !used[other]);
            if earlier {
                return false;
            }
            used[server] = true;
        }
    }
    true
}
