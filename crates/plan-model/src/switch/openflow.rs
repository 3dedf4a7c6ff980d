//! Functions on an OpenFlow switch: its tables come in a fixed order and hold so many entries each.
//!
//! "An OpenFlow switch has fixed table order, so the Placer must check whether a configuration violates the
//! switch table order" (Lemur, §5.3): in one pass a packet meets the tables from first to last, so the
//! functions that come one after another on a path, without a stay on a server between them, must lie in
//! tables further and further down. A function lies in one table that can hold it, and its entries beside
//! those of others. What the tables need to forward packets is not counted.
//!
//! There is no NSH; the 12 bits of a VLAN tag tell where in its chain a packet is (same section). Every
//! function where packets change between switch and servers needs a number, and so do the packets that come
//! back from a chain's end. So that what is left of a set that fits, fits, numbers are counted for the part of
//! the set that needs most of them.

use std::sync::{Mutex, PoisonError};

use super::memo::{Memo, Set, on};
use super::memory::Demand;
use super::pack::{Packed, Pieces, Windows, pack};
use super::{Feasible, Overflow, Stage, Use, Verdict};
use crate::estimate::topological;
use crate::problem::{ChainId, NodeId, Problem};
use crate::rack::FlowTable;

/// VLAN numbers: 12 bits, of which all zeros and all ones are reserved (IEEE 802.1Q).
const VLAN_IDS: u64 = 4094;
/// Nodes of the search for one set.
const BUDGET: u32 = 10_000;

/// An OpenFlow switch.
#[derive(Debug)]
pub struct OpenFlow {
    tables: Vec<FlowTable>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chains: Vec<Functions>,
    memo: Memo,
}

/// What answers depend on: each function's name and entries, and the edges.
type Functions = (Vec<(String, Option<u32>)>, Vec<(NodeId, NodeId)>);

impl OpenFlow {
    /// A switch with these tables, in their order.
    #[must_use]
    pub fn new(tables: Vec<FlowTable>) -> OpenFlow {
        OpenFlow { tables, state: Mutex::default() }
    }

    fn bins(&self) -> Vec<Demand> {
        self.tables.iter().map(|table| [table.entries, 0, 0]).collect()
    }

    /// The pieces of a set, and whose they are; what cannot be on the switch at all.
    fn pieces(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> (Pieces, Vec<(ChainId, NodeId)>, Vec<Overflow>) {
        let (mut pieces, mut owners, mut unable) = (Pieces::default(), Vec::new(), Vec::new());
        for (id, chain) in problem.chains.iter().enumerate() {
            let mut piece_of = vec![None; chain.nodes.len()];
            for node in topological(chain).into_iter().filter(|&node| on(on_switch, id, node)) {
                let function = &chain.nodes[node].function;
                let can: Vec<bool> = self.tables.iter().map(|table| table.functions.contains(function)).collect();
                let (Some(entries), true) = (chain.nodes[node].openflow, can.contains(&true)) else {
                    unable.push(Overflow::Unable { chain: id, node });
                    continue;
                };
                let piece = pieces.push([entries, 0, 0], 0, 0);
                pieces.allowed[piece] = can;
                owners.push((id, node));
                piece_of[node] = Some(piece);
                let before = chain.edges.iter().filter(|edge| edge.to == node).filter_map(|edge| piece_of[edge.from]);
                before.for_each(|before| pieces.order(before, piece));
            }
        }
        (pieces, owners, unable)
    }

    fn decide(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let bins = self.bins();
        let (pieces, owners, unable) = self.pieces(problem, on_switch);
        let entries = Use {
            used: pieces.demand.iter().map(|demand| u64::from(demand[0])).sum(),
            available: bins.iter().map(|bin| u64::from(bin[0])).sum(),
        };
        let vlan_ids = Use { used: vlan_ids(problem, on_switch), available: VLAN_IDS };
        let stages = Use { used: 0, available: bins.len() as u64 };
        let mut verdict = Verdict { stages, entries, vlan_ids, overflows: unable, proven: true, ..Verdict::default() };
        if vlan_ids.used > VLAN_IDS {
            verdict.overflows.push(Overflow::VlanIds(vlan_ids));
        }
        if !verdict.fits() {
            return verdict;
        }
        match pack(&pieces, &bins, BUDGET) {
            Packed::Bins(at) => verdict.stages.used = at.iter().max().map_or(0, |last| *last as u64 + 1),
            other => {
                verdict.proven = other == Packed::Never;
                verdict.overflows = match Windows::of(&pieces, bins.len()) {
                    Err(piece) => vec![out_of_order(&pieces, &owners, piece)],
                    Ok(_) => self.crowded(problem, &pieces, &owners),
                };
            }
        }
        verdict
    }

    /// The functions whose tables are too small for all that must lie in them; if order and room together
    /// are the reason, the one with the most entries.
    fn crowded(&self, problem: &Problem, pieces: &Pieces, owners: &[(ChainId, NodeId)]) -> Vec<Overflow> {
        let name = |piece: usize| {
            let (chain, node) = owners[piece];
            &problem.chains[chain].nodes[node].function
        };
        let inside = |part: &[bool], whole: &[bool]| part.iter().zip(whole).all(|(part, whole)| *whole || !part);
        let compete = |piece: usize| {
            let tables = &pieces.allowed[piece];
            let all = (0..pieces.len()).filter(|&p| inside(&pieces.allowed[p], tables));
            let used = all.map(|p| u64::from(pieces.demand[p][0])).sum();
            let there = self.tables.iter().zip(tables).filter(|(_, can)| **can);
            let entries = Use { used, available: there.map(|(table, _)| u64::from(table.entries)).sum() };
            Overflow::Entries { function: name(piece).clone(), entries }
        };
        let mut over: Vec<Overflow> = Vec::new();
        for piece in 0..pieces.len() {
            let overflow = compete(piece);
            let short = matches!(&overflow, Overflow::Entries { entries, .. } if entries.used > entries.available);
            if short && !over.contains(&overflow) {
                over.push(overflow);
            }
        }
        if over.is_empty() {
            over.extend((0..pieces.len()).max_by_key(|&p| (pieces.demand[p][0], std::cmp::Reverse(p))).map(compete));
        }
        over
    }
}

/// The path through `piece` for which no tables come in its order.
fn out_of_order(pieces: &Pieces, owners: &[(ChainId, NodeId)], piece: usize) -> Overflow {
    let mut path = vec![piece];
    while let Some(&before) = path.first().and_then(|&p| pieces.before[p].iter().max()) {
        path.insert(0, before);
    }
    while let Some(&after) = path.last().and_then(|&p| pieces.after[p].iter().min()) {
        path.push(after);
    }
    let nodes = path.iter().map(|&p| owners[p].1).collect();
    Overflow::TableOrder { chain: owners[piece].0, nodes }
}

/// The most VLAN numbers that a part of the set needs.
fn vlan_ids(problem: &Problem, on_switch: &[Vec<bool>]) -> u64 {
    let of_chain = |(id, chain): (ChainId, &crate::problem::Chain)| {
        let changes = |node: NodeId| {
            let entry = chain.nodes[node].entry > 0.0;
            let mut around = chain.edges.iter().filter(|edge| edge.to == node);
            entry || around.any(|edge| on(on_switch, id, edge.from) || on(on_switch, id, node))
        };
        1 + (0..chain.nodes.len()).filter(|&node| changes(node)).count() as u64
    };
    problem.chains.iter().enumerate().map(of_chain).sum()
}

impl Feasible for OpenFlow {
    fn verdict(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let same = state.chains.len() == problem.chains.len()
            && state.chains.iter().zip(&problem.chains).all(|((functions, edges), chain)| {
                let same_node = |((name, entries), node): (&(String, Option<u32>), &crate::problem::Node)| {
                    *name == node.function && *entries == node.openflow
                };
                functions.len() == chain.nodes.len()
                    && edges.len() == chain.edges.len()
                    && functions.iter().zip(&chain.nodes).all(same_node)
                    && edges.iter().zip(&chain.edges).all(|(&(from, to), e)| (from, to) == (e.from, e.to))
            });
        if !same {
            let copy = |chain: &crate::problem::Chain| {
                let functions = chain.nodes.iter().map(|node| (node.function.clone(), node.openflow)).collect();
                (functions, chain.edges.iter().map(|edge| (edge.from, edge.to)).collect())
            };
            *state = State { chains: problem.chains.iter().map(copy).collect(), memo: Memo::default() };
        }
        let nodes: Vec<usize> = problem.chains.iter().map(|chain| chain.nodes.len()).collect();
        state.memo.answer(Set::of(&nodes, on_switch), || self.decide(problem, on_switch))
    }

    fn layout(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Vec<Stage> {
        let (pieces, owners, unable) = self.pieces(problem, on_switch);
        let (true, Packed::Bins(at)) = (unable.is_empty(), pack(&pieces, &self.bins(), BUDGET)) else {
            return Vec::new();
        };
        let table = |table: &FlowTable| Stage {
            name: table.name.clone(),
            entries: Use { used: 0, available: u64::from(table.entries) },
            ..Stage::default()
        };
        let mut stages: Vec<Stage> = self.tables.iter().map(table).collect();
        for ((bin, demand), owner) in at.into_iter().zip(&pieces.demand).zip(owners) {
            stages[bin].holds.push(owner);
            stages[bin].entries.used += u64::from(demand[0]);
        }
        stages
    }
}

#[cfg(test)]
#[path = "openflow_tests.rs"]
mod tests;
