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
    /// By node: whether no packet comes to it but in the return direction.
    pub return_only: Vec<bool>,
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
            flow.return_only[node] = back.nodes[node] > 0.0;
        }
        // What returns to a node that packets pass forward too is not reckoned with, and edges to it might make a circle.
        flow.edges.extend(back.edges.into_iter().filter(|&(_, to, _)| only_back[to]));
    }
    flow
}

fn one_way(chain: &Chain, direction: Direction) -> Flow {
    let count = chain.nodes.len();
    let mut flow =
        Flow { nodes: vec![0.0; count], entries: vec![0.0; count], return_only: vec![false; count], edges: Vec::new() };
    let parts = walk(chain, direction, 1.0, |edges, here| divided(edges).map(|part| part * here).collect());
    for (edge, part) in chain.edges.iter().zip(parts).filter(|(edge, _)| edge.direction == direction) {
        let End::Node(to) = edge.to else { continue };
        flow.nodes[to as usize] += part;
        let End::Node(from) = edge.from else {
            flow.entries[to as usize] += part;
            continue;
        };
        let (from, to) = (from as usize, to as usize);
        match flow.edges.iter_mut().find(|(f, t, _)| (*f, *t) == (from, to)) {
            Some((_, _, sum)) => *sum += part,
            None => flow.edges.push((from, to, part)),
        }
    }
    // Sums of many parts may pass 1 by rounding.
    flow.nodes.iter_mut().for_each(|share| *share = share.min(1.0));
    flow.edges.retain(|&(.., share)| share > 0.0);
    flow
}

/// Bits per second that each edge is expected to carry where so many enter at `in` and at `out`: a rate that is written is
/// taken as it is, as E2 sizes instances for it, while [`of`] takes rates relative to each other, as a plan asks what a chain
/// can carry; else an edge's part of what reaches its source; edges without any estimate get equal parts of what the others
/// leave.
#[must_use]
pub fn rates(chain: &Chain, forward_bps: f64, return_bps: f64) -> Vec<f64> {
    let taken = |edges: &[&Edge], here: f64| -> Vec<f64> {
        let stated = |edge: &&Edge| edge.rate_bps.or_else(|| told(edge).map(|part| part * here));
        let left = (here - edges.iter().filter_map(stated).sum::<f64>()).max(0.0);
        let open = edges.iter().filter(|edge| stated(edge).is_none()).count();
        edges.iter().map(|edge| stated(edge).unwrap_or(left / open as f64).max(0.0)).collect()
    };
    let forward = walk(chain, Direction::Forward, forward_bps, taken);
    let back = walk(chain, Direction::Return, return_bps, taken);
    forward.iter().zip(back).map(|(forward, back)| forward + back).collect()
}

/// What each edge of `direction` carries, by its index, where so much enters: `taken` says what the edges of one source
/// take of what arrives there.
fn walk(chain: &Chain, direction: Direction, entering: f64, taken: impl Fn(&[&Edge], f64) -> Vec<f64>) -> Vec<f64> {
    let mut carried = vec![0.0; chain.edges.len()];
    let mut arrived = vec![0.0; chain.nodes.len()];
    let entry = if direction == Direction::Forward { End::In } else { End::Out };
    let nodes = order(chain, direction).into_iter().map(|node| End::Node(node as u32));
    for from in std::iter::once(entry).chain(nodes) {
        let here = if let End::Node(node) = from { arrived[node as usize] } else { entering };
        let leaves = |edge: &Edge| edge.from == from && edge.direction == direction;
        let ids: Vec<usize> = (0..chain.edges.len()).filter(|id| leaves(&chain.edges[*id])).collect();
        let edges: Vec<&Edge> = ids.iter().map(|id| &chain.edges[*id]).collect();
        for (id, amount) in ids.into_iter().zip(taken(&edges, here)) {
            carried[id] = amount;
            if let End::Node(to) = chain.edges[id].to {
                arrived[to as usize] += amount;
            }
        }
    }
    carried
}

/// The ends that packets of `from` go to, with the part of them that does.
pub fn divide(chain: &Chain, from: End, direction: Direction) -> Vec<(End, f64)> {
    let edges: Vec<&Edge> = chain.edges_from(from, direction).collect();
    edges.iter().map(|edge| edge.to).zip(divided(&edges)).collect()
}

/// The parts that the edges of one source take: those that are told, relative to their sum if it is more than everything;
/// the others share the rest.
fn divided(edges: &[&Edge]) -> impl Iterator<Item = f64> {
    let rates: Option<f64> = edges.iter().map(|edge| edge.rate_bps).sum();
    let by_rate = |edge: &Edge| rates.filter(|&sum| sum > 0.0).and_then(|sum| edge.rate_bps.map(|bps| bps / sum));
    let known: Vec<Option<f64>> =
        edges.iter().map(|edge| edge.share.or(by_rate(edge)).or_else(|| told(edge))).collect();
    let sum: f64 = known.iter().flatten().sum();
    let untold = known.iter().filter(|part| part.is_none()).count();
    let rest = (1.0 - sum).max(0.0) / untold.max(1) as f64;
    let scale = if sum > 1.0 { 1.0 / sum } else { 1.0 };
    known.into_iter().map(move |part| part.map_or(rest, |p| p * scale))
}

/// The part that the file tells of an edge: its share, or a split's width.
fn told(edge: &Edge) -> Option<f64> {
    edge.share.or_else(|| split_width(&edge.when))
}

/// The part of the flows that hash splits on an edge take, if there are any.
fn split_width(when: &[Condition]) -> Option<f64> {
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
