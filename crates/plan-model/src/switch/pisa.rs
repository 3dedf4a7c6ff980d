//! Functions on a PISA switch: their tables packed into stages.
//!
//! What must come after what (Lemur, §4.2 and appendix A.2.2): tables of one function as [`Table::after`]
//! says; all tables of a function after those of the function before it on a path, as it reads what that one
//! wrote; at a merge after all branches. Branches of one function and different chains depend on each other
//! in nothing: their tables share stages (optimisation d). After a stay on a server a packet passes the switch
//! from its first stage again, so functions before and after a stay do not depend on each other either.
//!
//! The framework (§4.2, §5.3: "one each to encapsulate and decapsulate packets"): packets that come from a
//! server lose their tag in a stage before the functions they go to, and packets that go to one are tagged in
//! a stage after those they come from. New packets are steered in the first stage, beside the first functions
//! (c), indices are updated once a pass (b), and a chain all on the switch has no tags (a). The tags'
//! tables have few entries; their memory is not counted. If the framework takes more than two stages, the
//! others are kept for it always.
//!
//! All this is monotone: what leaves the switch had a stage, and the tags that become necessary find place
//! there. A function without tables counts as one table without memory.
//!
//! [`Table::after`]: crate::catalogue::Table::after

use std::sync::{Mutex, PoisonError};

use super::memo::{Memo, Set, on};
use super::memory::{self, Demand};
use super::pack::{Packed, Pieces, Windows, list, pack};
use super::{Feasible, Overflow, Stage, Use, Verdict};
use crate::catalogue::Table;
use crate::estimate::topological;
use crate::problem::{ChainId, NodeId, Problem};
use crate::rack::Stages;

/// No switch has more stages; more are not looked at.
const MOST_STAGES: usize = 256;
/// Nodes of the search for one set, some tens of milliseconds.
const BUDGET: u32 = 10_000;

/// How the switch's program is put together (Lemur, §5.2, compares the three).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// Functions one after another, all chains in a row, each followed by an update of its tag; steering and
    /// tags in stages of their own. What a program without any of §4.2's optimisations takes.
    Naive,
    /// Branches and chains share stages, but the framework's stages are its own: an estimate from above.
    Conservative,
    /// All of §4.2's optimisations.
    #[default]
    Packed,
}

/// A PISA switch.
#[derive(Debug)]
pub struct Pisa {
    stages: Stages,
    generation: Generation,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chains: Vec<Functions>,
    memo: Memo,
}

/// A chain's functions, cut for the switch.
#[derive(Debug)]
struct Functions {
    /// What they were made from.
    tables: Vec<Option<Vec<Table>>>,
    edges: Vec<(NodeId, NodeId)>,
    order: Vec<NodeId>,
    cut: Vec<Cut>,
}

/// A function's tables in parts that stages can hold.
#[derive(Debug)]
enum Cut {
    /// What depends on an earlier part names it.
    Parts(Vec<Part>),
    /// It cannot run on the switch.
    Unable,
    /// A table is too large.
    TooLarge(Overflow),
}

#[derive(Debug)]
struct Part {
    demand: Demand,
    after: Vec<usize>,
    /// No other part of the function depends on it.
    last: bool,
}

impl Pisa {
    /// A switch with `stages`, its program generated with all optimisations.
    #[must_use]
    pub fn new(stages: Stages) -> Pisa {
        Pisa::generated(stages, Generation::Packed)
    }

    /// A switch whose program is generated in a given way.
    #[must_use]
    pub fn generated(stages: Stages, generation: Generation) -> Pisa {
        Pisa { stages, generation, state: Mutex::default() }
    }

    /// Stages that the framework takes from the functions always.
    fn reserved(&self) -> usize {
        let framework = self.stages.framework_stages as usize;
        match self.generation {
            Generation::Packed => framework.saturating_sub(2),
            Generation::Conservative => framework,
            Generation::Naive => framework + 1,
        }
    }

    /// The stages that functions can have.
    fn bins(&self) -> Vec<Demand> {
        let stages = (self.stages.stages as usize).min(MOST_STAGES);
        vec![memory::capacity(&self.stages); stages.saturating_sub(self.reserved())]
    }

    /// The chains' functions, cut anew only if they are not those of the last call.
    fn prepare(&self, state: &mut State, problem: &Problem) {
        let same = state.chains.len() == problem.chains.len()
            && state.chains.iter().zip(&problem.chains).all(|(functions, chain)| {
                functions.tables.len() == chain.nodes.len()
                    && functions.edges.len() == chain.edges.len()
                    && functions.edges.iter().zip(&chain.edges).all(|(&(from, to), e)| (from, to) == (e.from, e.to))
                    && functions.tables.iter().zip(&chain.nodes).all(|(tables, node)| *tables == node.pisa)
            });
        if same {
            return;
        }
        let cut = |tables: &Option<Vec<Table>>| match tables {
            None => Cut::Unable,
            Some(tables) => self.cut(tables),
        };
        state.chains = problem
            .chains
            .iter()
            .map(|chain| {
                let tables: Vec<Option<Vec<Table>>> = chain.nodes.iter().map(|node| node.pisa.clone()).collect();
                Functions {
                    cut: tables.iter().map(cut).collect(),
                    tables,
                    edges: chain.edges.iter().map(|edge| (edge.from, edge.to)).collect(),
                    order: topological(chain),
                }
            })
            .collect();
        state.memo = Memo::default();
    }

    /// A function's tables in parts, so that what a part depends on comes first.
    fn cut(&self, tables: &[Table]) -> Cut {
        if tables.is_empty() {
            return Cut::Parts(vec![Part { demand: [0, 0, 1], after: Vec::new(), last: true }]);
        }
        let stage = memory::capacity(&self.stages);
        let mut parts: Vec<Part> = Vec::new();
        let mut cut: Vec<Option<std::ops::Range<usize>>> = vec![None; tables.len()];
        while let Some(next) = (0..tables.len()).find(|&t| {
            cut[t].is_none() && tables[t].after.iter().all(|&before| cut.get(before).is_none_or(Option::is_some))
        }) {
            let table = &tables[next];
            let Some(demands) = memory::parts(table, &stage, self.stages.stages as usize) else {
                return Cut::TooLarge(self.too_large(table));
            };
            let after: Vec<usize> = table.after.iter().filter_map(|&t| cut.get(t)?.clone()).flatten().collect();
            after.iter().for_each(|&part| parts[part].last = false);
            cut[next] = Some(parts.len()..parts.len() + demands.len());
            parts.extend(demands.into_iter().map(|demand| Part { demand, after: after.clone(), last: true }));
        }
        // Tables that wait for each other cannot be ordered.
        if cut.iter().all(Option::is_some) { Cut::Parts(parts) } else { Cut::Unable }
    }

    fn too_large(&self, table: &Table) -> Overflow {
        let stage = memory::capacity(&self.stages);
        let one = memory::demand(table, 1);
        let (need, there) = if one.iter().zip(&stage).all(|(need, there)| need <= there) {
            (
                memory::demand(table, table.entries),
                stage.map(|blocks| u64::from(blocks) * u64::from(self.stages.stages)),
            )
        } else {
            (one, stage.map(u64::from))
        };
        let over = |kind: usize| Use { used: u64::from(need[kind]), available: there[kind] };
        match () {
            () if over(1).used > over(1).available => Overflow::Tcam(over(1)),
            () if over(2).used > over(2).available => Overflow::Tables(over(2)),
            () => Overflow::Sram(over(0)),
        }
    }

    /// The pieces of a set, and whose they are; what cannot be on the switch at all.
    fn pieces(&self, chains: &[Functions], on_switch: &[Vec<bool>]) -> (Pieces, Vec<(ChainId, NodeId)>, Vec<Overflow>) {
        let (mut pieces, mut owners, mut unable) = (Pieces::default(), Vec::new(), Vec::new());
        let framework = if self.generation == Generation::Packed { self.stages.framework_stages } else { 0 };
        for (chain, functions) in chains.iter().enumerate() {
            let mut start = vec![0; functions.cut.len()];
            for &node in functions.order.iter().filter(|&&node| on(on_switch, chain, node)) {
                let parts = match &functions.cut[node] {
                    Cut::Parts(parts) => parts,
                    Cut::Unable => {
                        unable.push(Overflow::Unable { chain, node });
                        continue;
                    }
                    Cut::TooLarge(overflow) => {
                        unable.push(overflow.clone());
                        continue;
                    }
                };
                let into = |n: NodeId| functions.edges.iter().filter(move |e| e.1 == n).map(|e| e.0);
                let untag = framework > 0 && into(node).any(|from| !on(on_switch, chain, from));
                let leaves = functions.edges.iter().any(|&(from, to)| from == node && !on(on_switch, chain, to));
                let tag = framework > 1 && leaves;
                start[node] = pieces.len();
                for part in parts {
                    let head = usize::from(untag && part.after.is_empty());
                    let piece = pieces.push(part.demand, head, usize::from(tag && part.last));
                    owners.push((chain, node));
                    part.after.iter().for_each(|&before| pieces.order(start[node] + before, piece));
                    if !part.after.is_empty() {
                        continue;
                    }
                    for from in into(node).filter(|&from| on(on_switch, chain, from)) {
                        let Cut::Parts(earlier) = &functions.cut[from] else { continue };
                        let lasts = earlier.iter().enumerate().filter(|(_, part)| part.last);
                        lasts.for_each(|(i, _)| pieces.order(start[from] + i, piece));
                    }
                }
            }
        }
        (pieces, owners, unable)
    }

    /// The stages that `pieces` take in `at`, tags included.
    fn depth(pieces: &Pieces, at: &[usize]) -> usize {
        at.iter().zip(&pieces.tail).map(|(bin, tail)| bin + 1 + tail).max().unwrap_or(0)
    }

    /// The stages that a list takes if there are more than enough, as far as tried.
    fn wanted(&self, pieces: &Pieces) -> Option<usize> {
        let more = vec![memory::capacity(&self.stages); self.bins().len() + pieces.len().min(MOST_STAGES)];
        let windows = Windows::of(pieces, more.len()).ok()?;
        list(pieces, &more, &windows).map(|at| Pisa::depth(pieces, &at))
    }

    fn decide(&self, chains: &[Functions], on_switch: &[Vec<bool>]) -> Verdict {
        let bins = self.bins();
        let (pieces, owners, unable) = self.pieces(chains, on_switch);
        let total = |kind: usize| pieces.demand.iter().map(|demand| u64::from(demand[kind])).sum::<u64>();
        let there = |kind: usize| bins.iter().map(|bin| u64::from(bin[kind])).sum::<u64>();
        let taken = |kind: usize| Use { used: total(kind), available: there(kind) };
        let mut verdict =
            Verdict { sram: taken(0), tcam: taken(1), overflows: unable, proven: true, ..Verdict::default() };
        verdict.stages.available = u64::from(self.stages.stages);
        if !verdict.fits() {
            return verdict;
        }
        let (depth, fits) = match self.generation {
            Generation::Naive => {
                let depth = self.in_a_row(&pieces, &owners);
                (depth, depth <= bins.len())
            }
            _ => match pack(&pieces, &bins, BUDGET) {
                Packed::Bins(at) => (Pisa::depth(&pieces, &at), true),
                other => {
                    verdict.proven = other == Packed::Never;
                    (self.wanted(&pieces).unwrap_or_default().max(bins.len() + 1), false)
                }
            },
        };
        verdict.stages.used = (depth + self.reserved()) as u64;
        if self.generation == Generation::Packed && has_tags(chains, on_switch) {
            verdict.stages.used = verdict.stages.used.max(u64::from(self.stages.framework_stages));
        }
        if !fits {
            let kinds: [fn(Use) -> Overflow; 3] = [Overflow::Sram, Overflow::Tcam, Overflow::Tables];
            let over = kinds.iter().enumerate().filter(|(kind, _)| total(*kind) > there(*kind));
            verdict.overflows = over.map(|(kind, overflow)| overflow(taken(kind))).collect();
            if verdict.overflows.is_empty() {
                verdict.overflows.push(Overflow::Stages(verdict.stages));
            }
        }
        verdict
    }

    /// The stages of functions in a row, each followed by one that updates the tag.
    fn in_a_row(&self, pieces: &Pieces, owners: &[(ChainId, NodeId)]) -> usize {
        let mut depth = 0;
        let mut from = 0;
        for piece in 0..pieces.len() {
            if owners.get(piece + 1) == owners.get(piece) {
                continue;
            }
            let mut alone = Pieces::default();
            for p in from..=piece {
                alone.push(pieces.demand[p], 0, 0);
                pieces.before[p].iter().filter(|&&b| b >= from).for_each(|b| alone.order(b - from, p - from));
            }
            depth += self.wanted(&alone).unwrap_or(MOST_STAGES) + 1;
            from = piece + 1;
        }
        depth
    }
}

/// Whether some packets carry tags: some chain is not all on the switch.
fn has_tags(chains: &[Functions], on_switch: &[Vec<bool>]) -> bool {
    chains.iter().enumerate().any(|(chain, functions)| (0..functions.cut.len()).any(|node| !on(on_switch, chain, node)))
}

impl Feasible for Pisa {
    fn verdict(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.prepare(&mut state, problem);
        let State { chains, memo } = &mut *state;
        let nodes: Vec<usize> = chains.iter().map(|functions| functions.cut.len()).collect();
        memo.answer(Set::of(&nodes, on_switch), || self.decide(chains, on_switch))
    }

    fn layout(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Vec<Stage> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.prepare(&mut state, problem);
        let (pieces, owners, unable) = self.pieces(&state.chains, on_switch);
        let bins = self.bins();
        let (true, Packed::Bins(at)) = (unable.is_empty(), pack(&pieces, &bins, BUDGET)) else { return Vec::new() };
        let mut stages: Vec<Stage> = bins
            .iter()
            .enumerate()
            .map(|(bin, there)| {
                let [sram, tcam, tables] = there.map(|blocks| Use { used: 0, available: u64::from(blocks) });
                Stage { name: format!("stage {}", bin + 1), sram, tcam, tables, ..Stage::default() }
            })
            .collect();
        for ((bin, demand), owner) in at.into_iter().zip(&pieces.demand).zip(owners) {
            let stage = &mut stages[bin];
            stage.sram.used += u64::from(demand[0]);
            stage.tcam.used += u64::from(demand[1]);
            stage.tables.used += u64::from(demand[2]);
            if !stage.holds.contains(&owner) {
                stage.holds.push(owner);
            }
        }
        stages
    }
}

#[cfg(test)]
#[path = "pisa_tests.rs"]
pub(super) mod tests;
