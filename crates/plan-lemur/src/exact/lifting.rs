//! Making the most of a set of nodes that the switch does not hold.
//!
//! A conflict says that parts of some chains do not fit together. Often another part of a chain would do as
//! well as the one that happened to be asked about: any three NATs as well as these three. A cut that counts
//! all such parts spares asking about each of them (lifting, as for cover inequalities of knapsacks).

use std::time::Instant;

use super::options::Options;
use catena_plan_model::problem::{ChainId, NodeId, Problem};
use catena_plan_model::switch::Feasible;

/// Parts of chains of which the switch does not hold one of each chain together.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// For each chain that is involved, sets of its nodes, any of which is enough.
    pub parts: Vec<(ChainId, Vec<Vec<bool>>)>,
    /// Whether all of this is certain.
    pub proven: bool,
}

/// What lifting asks.
pub struct Lifting<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// Who answers.
    pub switch: &'a dyn Feasible,
    /// The sets of nodes that choices put on the switch are what matters.
    pub options: &'a [Options],
    /// How many questions remain.
    pub questions: usize,
    /// When to stop asking.
    pub until: Instant,
}

impl Lifting<'_> {
    /// The conflict between all `nodes`, with as many other parts as the questions allow.
    #[must_use]
    pub fn lift(mut self, nodes: &[(ChainId, NodeId)]) -> Conflict {
        let mut conflict = Conflict { parts: Vec::new(), proven: true };
        for &(chain, node) in nodes {
            if conflict.parts.last().is_none_or(|(c, _)| *c != chain) {
                conflict.parts.push((chain, vec![vec![false; self.problem.chains[chain].nodes.len()]]));
            }
            if let Some((_, parts)) = conflict.parts.last_mut() {
                parts[0][node] = true;
            }
        }
        let certain = self.collide(&conflict, None);
        conflict.proven = certain == Some(true);
        for place in 0..conflict.parts.len() {
            self.widen(&mut conflict, place);
        }
        conflict
    }

    /// Add what other sets of the chain at `place` collide with all that the others have.
    fn widen(&mut self, conflict: &mut Conflict, place: usize) {
        let chain = conflict.parts[place].0;
        let mut candidates: Vec<Vec<bool>> = self.options[chain].choices.iter().map(|c| c.on_switch()).collect();
        candidates.sort();
        candidates.dedup();
        // Large ones first: what is part of a set that fits, fits.
        candidates.sort_by_key(|set| std::cmp::Reverse(set.iter().filter(|on| **on).count()));
        let mut fitting: Vec<Vec<bool>> = Vec::new();
        for set in candidates {
            let known = conflict.parts[place].1.iter().any(|part| contains(&set, part));
            if known || fitting.iter().any(|other| contains(other, &set)) {
                continue;
            }
            match self.collide(conflict, Some((place, &set))) {
                // An uncertain answer is not worth losing the proof for.
                Some(proven) if proven || !conflict.proven => {
                    let parts = &mut conflict.parts[place].1;
                    parts.retain(|part| !contains(part, &set));
                    parts.push(set);
                }
                _ => fitting.push(set),
            }
            if self.questions == 0 {
                return;
            }
        }
    }

    /// Whether no combination of parts fits, `instead` being the only part of the chain at its place; and
    /// whether that is certain.
    fn collide(&mut self, conflict: &Conflict, instead: Option<(usize, &Vec<bool>)>) -> Option<bool> {
        let count = |place: usize| match instead {
            Some((at, _)) if at == place => 1,
            _ => conflict.parts[place].1.len(),
        };
        let mut at = vec![0; conflict.parts.len()];
        let mut certain = true;
        loop {
            let mut on: Vec<Vec<bool>> = self.problem.chains.iter().map(|c| vec![false; c.nodes.len()]).collect();
            for (place, (chain, parts)) in conflict.parts.iter().enumerate() {
                let part = match instead {
                    Some((i, set)) if i == place => set,
                    _ => &parts[at[place]],
                };
                on[*chain].clone_from(part);
            }
            // The conflict itself is always worth the question; beyond, the budget decides.
            if instead.is_some() && (self.questions == 0 || Instant::now() >= self.until) {
                return None;
            }
            self.questions = self.questions.saturating_sub(1);
            let verdict = self.switch.verdict(self.problem, &on);
            if verdict.fits() {
                return None;
            }
            certain &= verdict.proven;
            let Some(turn) = (0..at.len()).find(|&place| at[place] + 1 < count(place)) else { return Some(certain) };
            at[turn] += 1;
            at[..turn].fill(0);
        }
    }
}

fn contains(set: &[bool], part: &[bool]) -> bool {
    part.iter().zip(set).all(|(part, set)| *set || !*part)
}
