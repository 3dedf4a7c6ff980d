//! Beyond the paper: single moves from the best of the three placements, as long as one helps.
//!
//! The rules of coalescing look at one chain at a time and cannot know what a freed core is worth to the others.
//! So every way of coalescing a chain, and every move of a node or a subgroup, is tried with all
//! cores given anew; where no placement keeps all promises yet, what misses less of them is better.

use super::bridges::bridges;
use super::cores::Allocation;
use super::evaluator::Evaluator;
use super::pattern::{Pattern, sites};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{ChainId, NodeId};

/// Nodes evaluated at most, over all patterns: a bound on time, far above what racks of the paper's size need. On large racks
/// an evaluation takes longer, by the servers that chains share.
const MOST_NODES: usize = 2_000_000;
/// Servers that cost as much of that as a node does.
const SERVERS: usize = 4;

/// The best that moves lead to from `pattern`. `stops` are other sites for each chain, from coalescing.
pub fn improve(
    evaluator: &mut Evaluator<'_>,
    pattern: Pattern,
    allocation: Allocation,
    stops: &[Vec<Vec<Site>>],
) -> (Pattern, Allocation) {
    let nodes: usize = pattern.iter().map(Vec::len).sum();
    let size = nodes * evaluator.problem.servers.len().div_ceil(SERVERS);
    let mut climb = Climb { pattern, allocation, left: MOST_NODES / size.max(1) };
    loop {
        let before = climb.left;
        let mut moved = false;
        for chain in 0..climb.pattern.len() {
            moved |= climb.chain(evaluator, chain, stops.get(chain).map(Vec::as_slice).unwrap_or_default());
        }
        if !moved {
            moved = climb.pairs(evaluator);
        }
        if !moved || climb.left == 0 || climb.left == before {
            return (climb.pattern, climb.allocation);
        }
    }
}

struct Climb {
    pattern: Pattern,
    allocation: Allocation,
    left: usize,
}

impl Climb {
    /// Take `other` as sites of `chain` if that is better.
    fn offer(&mut self, evaluator: &mut Evaluator<'_>, chain: ChainId, other: Vec<Site>) -> bool {
        if evaluator.is_over() {
            self.left = 0;
        }
        if self.left == 0 || other == self.pattern[chain] {
            return false;
        }
        self.left -= 1;
        let before = std::mem::replace(&mut self.pattern[chain], other);
        let allocation = evaluator.allocate(&self.pattern);
        // The switch is asked last: it is what takes longest.
        if allocation.score.better(&self.allocation.score) && evaluator.fits(&self.pattern) {
            self.allocation = allocation;
            return true;
        }
        self.pattern[chain] = before;
        false
    }

    fn chain(&mut self, evaluator: &mut Evaluator<'_>, chain: ChainId, stops: &[Vec<Site>]) -> bool {
        let mut moved = false;
        for stop in stops {
            moved |= self.offer(evaluator, chain, stop.clone());
        }
        let nodes = self.pattern[chain].len();
        for node in 0..nodes {
            if self.left == 0 {
                return moved;
            }
            for site in sites(evaluator.problem, &evaluator.problem.chains[chain].nodes[node]) {
                let other = self.with(chain, &[node], site);
                moved |= self.offer(evaluator, chain, other);
            }
        }
        if self.left == 0 {
            return moved;
        }
        let layout = evaluator.layout(chain, &self.pattern[chain]);
        let order = evaluator.order(chain);
        for (site, bridge) in bridges(&evaluator.problem.chains[chain], &order, &self.pattern[chain], &layout) {
            let other = self.with(chain, &bridge, site);
            moved |= self.offer(evaluator, chain, other);
        }
        for set in layout.groups.iter().map(|g| &g.nodes).chain(layout.stays.iter().map(|s| &s.nodes)) {
            for server in 0..evaluator.problem.servers.len() {
                let other = self.with_class(evaluator, chain, set, Site::Server(server));
                moved |= self.offer(evaluator, chain, other);
            }
            let other = self.with_class(evaluator, chain, set, Site::Switch);
            moved |= self.offer(evaluator, chain, other);
        }
        moved
    }

    fn with(&self, chain: ChainId, nodes: &[NodeId], site: Site) -> Vec<Site> {
        let mut other = self.pattern[chain].clone();
        nodes.iter().for_each(|n| other[*n] = site);
        other
    }

    /// `nodes` on `site`, those of them that can run there.
    fn with_class(&self, evaluator: &Evaluator<'_>, chain: ChainId, nodes: &[NodeId], site: Site) -> Vec<Site> {
        let mut other = self.pattern[chain].clone();
        for &node in nodes {
            if sites(evaluator.problem, &evaluator.problem.chains[chain].nodes[node]).contains(&site) {
                other[node] = site;
            }
        }
        other
    }

    /// Two moves at once: one function's place on a full switch for another's, or two that only together join
    /// subgroups.
    fn pairs(&mut self, evaluator: &mut Evaluator<'_>) -> bool {
        let problem = evaluator.problem;
        let mut moves: Vec<(ChainId, NodeId, Site)> = Vec::new();
        for (chain, row) in self.pattern.iter().enumerate() {
            for (node, now) in row.iter().enumerate() {
                let others = sites(problem, &problem.chains[chain].nodes[node]).into_iter().filter(|s| s != now);
                moves.extend(others.map(|site| (chain, node, site)));
            }
        }
        for (id, &(chain, node, site)) in moves.iter().enumerate() {
            let before = std::mem::replace(&mut self.pattern[chain][node], site);
            for &(other, second, there) in &moves[id + 1..] {
                if self.left == 0 || evaluator.is_over() {
                    self.left = 0;
                    break;
                }
                if (other, second) == (chain, node) {
                    continue;
                }
                self.left -= 1;
                let kept = std::mem::replace(&mut self.pattern[other][second], there);
                let allocation = evaluator.allocate(&self.pattern);
                if allocation.score.better(&self.allocation.score) && evaluator.fits(&self.pattern) {
                    self.allocation = allocation;
                    return true;
                }
                self.pattern[other][second] = kept;
            }
            self.pattern[chain][node] = before;
            if self.left == 0 {
                break;
            }
        }
        false
    }
}
