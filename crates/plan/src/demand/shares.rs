//! Which part of a chain's packets reaches each function and takes each edge.
//!
//! Estimates that the file gives count (Lemur, §3.2: operators know the splits from measurements); what is
//! left over is divided evenly.

use catena_policy::{Chain, Condition, Direction, Edge, End, PolicyGraph};

/// Parts of a chain's packets, 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// By node.
    pub nodes: Vec<f64>,
    /// By node: what enters the chain there.
    pub entries: Vec<f64>,
    /// From, to, part.
    pub edges: Vec<(usize, usize, f64)>,
}

/// The part of what comes to a server that is each chain's: as the chains' rate estimates say, if every edge at
/// `in` has one, and evenly otherwise. Where a switch finds a packet's chain, batches are of one chain's packets.
pub fn offered(graph: &PolicyGraph, by_switch: bool) -> Vec<f64> {
    let estimate = |chain: &Chain| -> Option<f64> {
        let edges = chain.edges_from(End::In, Direction::Forward);
        edges.map(|edge| edge.rate_bps).sum::<Option<f64>>().filter(|bps| *bps > 0.0)
    };
    if by_switch {
        return vec![1.0; graph.chains.len()];
    }
    let told: Option<Vec<f64>> = graph.chains.iter().map(estimate).collect();
    let relative = told.unwrap_or_else(|| vec![1.0; graph.chains.len()]);
    let all: f64 = relative.iter().sum();
    relative.iter().map(|part| part / all).collect()
}

/// What is taken for a node that no packet is expected at: it must run somewhere all the same.
const HARDLY: f64 = 1e-6;

/// Divide the packets of `chain` that go forward. Nodes that only the way back passes get their part from it.
pub fn of(chain: &Chain) -> Flow {
    let mut flow = one_way(chain, Direction::Forward);
    if flow.nodes.contains(&0.0) {
        let back = one_way(chain, Direction::Return);
        let only_back: Vec<bool> = flow.nodes.iter().map(|&share| share == 0.0).collect();
        for node in (0..only_back.len()).filter(|&n| only_back[n]) {
            flow.nodes[node] = back.nodes[node].max(HARDLY);
            flow.entries[node] = back.entries[node];
        }
        flow.edges.extend(back.edges.into_iter().filter(|&(from, to, _)| only_back[from] || only_back[to]));
    }
    flow
}

fn one_way(chain: &Chain, direction: Direction) -> Flow {
    let count = chain.nodes.len();
    let mut flow = Flow { nodes: vec![0.0; count], entries: vec![0.0; count], edges: Vec::new() };
    let source = if direction == Direction::Forward { End::In } else { End::Out };
    for (to, part) in divide(chain, source, direction) {
        if let End::Node(id) = to {
            flow.entries[id as usize] += part;
            flow.nodes[id as usize] += part;
        }
    }
    for node in order(chain, direction) {
        let here = flow.nodes[node];
        for (to, part) in divide(chain, End::Node(node as u32), direction) {
            let End::Node(to) = to else { continue };
            let (to, part) = (to as usize, here * part);
            flow.nodes[to] += part;
            match flow.edges.iter_mut().find(|(f, t, _)| (*f, *t) == (node, to)) {
                Some((_, _, sum)) => *sum += part,
                None => flow.edges.push((node, to, part)),
            }
        }
    }
    // Sums of many parts may pass 1 by rounding.
    flow.nodes.iter_mut().for_each(|share| *share = share.min(1.0));
    flow.edges.retain(|&(.., share)| share > 0.0);
    flow
}

/// The ends that packets of `from` go to, with the part of them that does.
pub(crate) fn divide(chain: &Chain, from: End, direction: Direction) -> Vec<(End, f64)> {
    let edges: Vec<&Edge> = chain.edges_from(from, direction).collect();
    let known: Vec<Option<f64>> = parts(&edges);
    let told: f64 = known.iter().flatten().sum();
    let untold = known.iter().filter(|part| part.is_none()).count();
    let rest = (1.0 - told).max(0.0) / untold.max(1) as f64;
    // Estimates that add up to more than everything are taken relative to their sum.
    let scale = if told > 1.0 { 1.0 / told } else { 1.0 };
    edges.iter().zip(known).map(|(edge, part)| (edge.to, part.map_or(rest, |p| p * scale))).collect()
}

/// What the file tells: shares; rates, relative to each other where all edges have one; a split's width.
fn parts(edges: &[&Edge]) -> Vec<Option<f64>> {
    let rates: Option<f64> = edges.iter().map(|edge| edge.rate_bps).sum();
    let told = |edge: &&Edge| {
        let by_rate = rates.filter(|&sum| sum > 0.0).and_then(|sum| edge.rate_bps.map(|bps| bps / sum));
        edge.share.or(by_rate).or_else(|| split_width(&edge.when))
    };
    edges.iter().map(told).collect()
}

/// The part of the flows that hash splits on an edge take, if there are any.
pub(crate) fn split_width(when: &[Condition]) -> Option<f64> {
    let widths = when.iter().filter_map(|condition| match condition {
        Condition::Split { from, to, .. } => Some(to - from),
        _ => None,
    });
    widths.reduce(|a, b| a * b)
}

/// The nodes so that every edge of `direction` goes on.
fn order(chain: &Chain, direction: Direction) -> Vec<usize> {
    let edges: Vec<(usize, usize)> = chain
        .edges
        .iter()
        .filter(|edge| edge.direction == direction)
        .filter_map(|edge| match (edge.from, edge.to) {
            (End::Node(from), End::Node(to)) => Some((from as usize, to as usize)),
            _ => None,
        })
        .collect();
    let mut waiting = vec![0_usize; chain.nodes.len()];
    edges.iter().for_each(|&(_, to)| waiting[to] += 1);
    let mut order: Vec<usize> = (0..waiting.len()).filter(|&n| waiting[n] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        let node = order[next];
        next += 1;
        for &(_, to) in edges.iter().filter(|(from, _)| *from == node) {
            waiting[to] -= 1;
            if waiting[to] == 0 {
                order.push(to);
            }
        }
    }
    order
}
