//! How chains stand to each other, beside what each is promised.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Chain, ChainId, Objective, Problem};

/// A relation between chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Relation {
    /// Each chain gets all that it can carry before the next one gets more than it is promised.
    Priority {
        /// As the file has it.
        text: String,
        /// The first comes first.
        order: Vec<Traffic>,
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

/// Traffic of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Which chain.
    pub chain: ChainId,
    /// Which of its classes, by its place in the file; absent: all that the chain carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<u32>,
}

impl Traffic {
    /// All that a chain carries.
    #[must_use]
    pub fn of(chain: ChainId) -> Traffic {
        Traffic { chain, class: None }
    }
}

/// A chain in a ratio: `factor × (rate − from_bps)` is the same for all members, but one that carries `cap_bps` may have less.
///
/// Of a chain's classes that a relation names, one by one, nobody knows how much comes: a class may be all of what its chain
/// carries, and all of them together are no more than that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Which.
    pub chain: ChainId,
    /// Which of its classes, by its place in the file; absent: all that the chain carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<u32>,
    /// What a bit per second counts, divided by the chain's weight.
    pub factor: f64,
    /// The rate from which it counts.
    pub from_bps: f64,
    /// The chain's own limit.
    #[serde(default = "crate::unbounded::none", skip_serializing_if = "crate::unbounded::is_none")]
    pub cap_bps: f64,
}

impl Member {
    /// Whose rate it is.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic { chain: self.chain, class: self.class }
    }

    /// What the chain, or its class, has of the ratio's measure.
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

/// The level of each chain: those of level 0 get what they can first. Chains that no priority names have the last one; one
/// with several classes that are named has that of the first of them, for all that it carries may be of that class.
#[must_use]
pub fn levels(chains: usize, relations: &[Relation]) -> Vec<usize> {
    let mut named: HashMap<Traffic, usize> = HashMap::new();
    let orders =
        || relations.iter().filter_map(|r| if let Relation::Priority { order, .. } = r { Some(order) } else { None });
    orders().flatten().for_each(|traffic| _ = named.insert(*traffic, 0));
    // The longest way from the first; the language refuses circles.
    for _ in 0..named.len() {
        for pair in orders().flat_map(|order| order.windows(2)) {
            let least = named[&pair[0]] + 1;
            named.entry(pair[1]).and_modify(|level| *level = least.max(*level));
        }
    }
    let last = named.values().copied().max().unwrap_or(0);
    let mut level: Vec<usize> = vec![last; chains];
    named.iter().for_each(|(traffic, own)| level[traffic.chain] = level[traffic.chain].min(*own));
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

/// Whether some of a problem's traffic comes before other traffic of it.
fn is_ranked(problem: &Problem) -> bool {
    let ranks = |relation: &Relation| match relation {
        Relation::Priority { order, .. } => order.len() > 1,
        Relation::Last(chains) => chains.len() < problem.chains.len(),
        Relation::Ratio { .. } => false,
    };
    problem.chains.len() > 1 && problem.relations.iter().any(ranks)
}

/// Whether the best of a problem's plans is one by its objective: with several levels a fair division is not defined, and
/// planners look for the largest sums instead, of which nothing is proven by the least that a chain has.
#[must_use]
pub fn is_provable(problem: &Problem) -> bool {
    problem.objective != Objective::Fair || !is_ranked(problem)
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
        Relation::Priority { text: String::new(), order: order.iter().copied().map(Traffic::of).collect() }
    }

    #[test]
    fn levels_follow_priorities() {
        assert_eq!(levels(3, &[]), [0, 0, 0]);
        assert_eq!(levels(4, &[priority(&[2, 0]), priority(&[0, 1])]), [1, 2, 0, 2]);
        assert_eq!(levels(2, &[Relation::Last(vec![0])]), [1, 0]);
        assert_eq!(levels(1, &[Relation::Last(vec![0])]), [0]);
    }

    #[test]
    fn a_chain_comes_where_the_first_of_its_classes_does() {
        let class = |chain, class| Traffic { chain, class: Some(class) };
        let order = |order: &[Traffic]| Relation::Priority { text: String::new(), order: order.to_vec() };
        // Chain 0 has the classes 5 and 6, chain 1 has 7 alone, nobody names chain 2.
        let [a, b, c] = [class(0, 5), class(0, 6), Traffic::of(1)];
        assert_eq!(levels(3, &[order(&[a, c, b])]), [0, 1, 2]);
        assert_eq!(levels(3, &[order(&[c, b])]), [1, 0, 1]);
        assert_eq!(levels(3, &[order(&[c, b]), order(&[a, Traffic::of(2)])]), [0, 0, 1]);
        assert_eq!(levels(3, &[order(&[a, b])]), [0, 1, 1]);
        assert_eq!(levels(1, &[order(&[a, b])]), [0]);
    }
}
