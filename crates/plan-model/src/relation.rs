//! How chains stand to each other, beside what each is promised.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Chain, ChainId, Objective, Problem};

/// A relation between chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Each chain gets all that it can carry before the next one gets more than it is promised.
    Priority {
        /// As the file has it.
        text: String,
        /// The first comes first.
        order: Vec<ChainId>,
    },
    /// What the chains get is in a ratio.
    Ratio {
        /// As the file has it.
        text: String,
        /// The chains, at least two.
        members: Vec<Member>,
    },
    /// Nothing leaves these chains, so they get what all others leave.
    Last(Vec<ChainId>),
}

/// A chain in a ratio: `factor × (rate − from_bps)` is the same for all members, but one that carries `cap_bps` may have less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Which.
    pub chain: ChainId,
    /// What a bit per second counts, divided by the chain's weight.
    pub factor: f64,
    /// The rate from which it counts.
    pub from_bps: f64,
    /// The chain's own limit.
    #[serde(default = "crate::unbounded::none", skip_serializing_if = "crate::unbounded::is_none")]
    pub cap_bps: f64,
}

impl Member {
    /// What the chain has of the ratio's measure.
    #[must_use]
    pub fn has(&self, rate_bps: f64) -> f64 {
        self.factor * (rate_bps - self.from_bps)
    }
}

impl Relation {
    /// As the file has it; empty for what it does not say.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Relation::Priority { text, .. } | Relation::Ratio { text, .. } => text,
            Relation::Last(_) => "",
        }
    }

    /// The members of a ratio.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        if let Relation::Ratio { members, .. } = self { members } else { &[] }
    }
}

/// The level of each chain: those of level 0 get what they can first. Chains that no priority names have the last one.
#[must_use]
pub fn levels(chains: usize, relations: &[Relation]) -> Vec<usize> {
    let mut level = vec![0; chains];
    let mut named = vec![false; chains];
    // The longest way from the first; the language refuses circles.
    for _ in 0..chains {
        for relation in relations {
            let Relation::Priority { order, .. } = relation else { continue };
            order.iter().for_each(|&chain| named[chain] = true);
            for pair in order.windows(2) {
                level[pair[1]] = level[pair[1]].max(level[pair[0]] + 1);
            }
        }
    }
    let last = level.iter().copied().max().unwrap_or(0);
    for chain in (0..chains).filter(|&chain| !named[chain]) {
        level[chain] = last;
    }
    for relation in relations {
        let Relation::Last(chains) = relation else { continue };
        chains.iter().for_each(|&chain| level[chain] = last + 1);
    }
    // Levels that nobody has are none.
    let mut used = level.clone();
    used.sort_unstable();
    used.dedup();
    level.iter().map(|l| used.binary_search(l).unwrap_or(0)).collect()
}

/// Whether the best of a problem's plans is one by its objective: with several levels a fair division is not defined, and
/// planners look for the largest sums instead, of which nothing is proven by the least that a chain has.
#[must_use]
pub fn is_provable(problem: &Problem) -> bool {
    problem.objective != Objective::Fair || levels(problem.chains.len(), &problem.relations).iter().all(|l| *l == 0)
}

/// What the chains of each level carry beyond their promises, by weight if the objective says so: of two plans the better
/// one has more on the first level that differs.
#[must_use]
pub fn by_level(problem: &Problem, rates_bps: &[f64]) -> Vec<f64> {
    let levels = levels(problem.chains.len(), &problem.relations);
    let mut sums = vec![0.0; levels.iter().max().map_or(0, |last| last + 1)];
    let weight = |chain: &Chain| if problem.objective == Objective::Marginal { 1.0 } else { chain.weight };
    for ((chain, rate), level) in problem.chains.iter().zip(rates_bps).zip(levels) {
        sums[level] += weight(chain) * (rate - chain.t_min_bps);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(order: &[ChainId]) -> Relation {
        Relation::Priority { text: String::new(), order: order.to_vec() }
    }

    #[test]
    fn levels_follow_priorities() {
        assert_eq!(levels(3, &[]), [0, 0, 0]);
        assert_eq!(levels(4, &[priority(&[2, 0]), priority(&[0, 1])]), [1, 2, 0, 2]);
        assert_eq!(levels(2, &[Relation::Last(vec![0])]), [1, 0]);
        assert_eq!(levels(1, &[Relation::Last(vec![0])]), [0]);
    }
}
