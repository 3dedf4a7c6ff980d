//! Answers about sets of functions, remembered so that they never contradict each other.
//!
//! What a packer proves is monotone by nature. What it gives up on is not: it may fail on a set after it
//! found room for a larger one. So what was given up on stays "does not fit", for all that contains it too,
//! and a set of which a larger one is known to fit is never given up on.

use std::collections::HashMap;

use super::Verdict;
use crate::problem::{ChainId, NodeId};

/// More answers than this are not kept (some 13 MB).
const MOST_ANSWERS: usize = 1 << 16;

/// A set of functions: one bit a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Set(Box<[u64]>);

impl Set {
    /// Of nodes in chains with so many `nodes`.
    pub fn of(nodes: &[usize], on_switch: &[Vec<bool>]) -> Set {
        let mut words = vec![0; nodes.iter().sum::<usize>().div_ceil(64)];
        let mut offset = 0;
        for (chain, count) in nodes.iter().enumerate() {
            for (node, _) in on_switch.get(chain).into_iter().flatten().take(*count).enumerate().filter(|(_, on)| **on)
            {
                words[(offset + node) / 64] |= 1 << ((offset + node) % 64);
            }
            offset += count;
        }
        Set(words.into_boxed_slice())
    }

    /// Whether all of it is in `other`.
    pub fn within(&self, other: &Set) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
}

/// Whether `on_switch` has a node.
pub(super) fn on(on_switch: &[Vec<bool>], chain: ChainId, node: NodeId) -> bool {
    on_switch.get(chain).and_then(|nodes| nodes.get(node)).copied().unwrap_or(false)
}

/// Answers to one problem.
#[derive(Debug, Default)]
pub(super) struct Memo {
    known: HashMap<Set, Verdict>,
    unsure: Vec<(Set, Verdict)>,
}

impl Memo {
    /// The answer for `set`: the one given before, or `decide`'s, unless it would contradict another.
    pub fn answer(&mut self, set: Set, decide: impl FnOnce() -> Verdict) -> Verdict {
        if let Some(verdict) = self.known.get(&set) {
            return verdict.clone();
        }
        if let Some((_, verdict)) = self.unsure.iter().find(|(part, _)| part.within(&set)) {
            return verdict.clone();
        }
        let mut verdict = decide();
        if !verdict.fits() && !verdict.proven {
            match self.larger_that_fits(&set) {
                Some(larger) => verdict = larger.clone(),
                None => self.unsure.push((set.clone(), verdict.clone())),
            }
        }
        self.keep(set, &verdict);
        verdict
    }

    /// What is known of `set` from another set: one that contains it fits, or one that it contains does not.
    pub fn implied(&self, set: &Set) -> Option<Verdict> {
        let smaller =
            || self.known.iter().filter(|(part, v)| !v.fits() && part.within(set)).min_by_key(|(part, _)| *part);
        self.larger_that_fits(set).or_else(|| smaller().map(|(_, verdict)| verdict)).cloned()
    }

    fn larger_that_fits(&self, set: &Set) -> Option<&Verdict> {
        let larger = self.known.iter().filter(|(larger, verdict)| verdict.fits() && set.within(larger));
        larger.min_by_key(|(larger, _)| *larger).map(|(_, verdict)| verdict)
    }

    fn keep(&mut self, set: Set, verdict: &Verdict) {
        if self.known.len() < MOST_ANSWERS {
            self.known.insert(set, verdict.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::{Overflow, Use};

    fn set(bits: &[bool]) -> Set {
        Set::of(&[bits.len()], &[bits.to_vec()])
    }

    fn unsure() -> Verdict {
        Verdict { overflows: vec![Overflow::Stages(Use { used: 2, available: 1 })], ..Verdict::default() }
    }

    fn fits() -> Verdict {
        Verdict { proven: true, ..Verdict::default() }
    }

    #[test]
    fn what_was_given_up_on_rules_out_what_contains_it() {
        let mut memo = Memo::default();
        assert!(!memo.answer(set(&[true, false]), unsure).fits());
        assert!(!memo.answer(set(&[true, true]), fits).fits(), "contains the first");
        assert!(memo.answer(set(&[false, true]), fits).fits());
    }

    #[test]
    fn what_is_part_of_a_set_that_fits_is_not_given_up_on() {
        let mut memo = Memo::default();
        assert!(memo.answer(set(&[true, true]), fits).fits());
        assert!(memo.answer(set(&[true, false]), unsure).fits());
    }

    #[test]
    fn sets_span_words() {
        let (mut long, nodes) = (vec![vec![false; 60], vec![false; 60]], [60, 60]);
        let empty = Set::of(&nodes, &long);
        long[1][30] = true;
        let one = Set::of(&nodes, &long);
        assert!(empty.within(&one) && !one.within(&empty));
        assert_eq!(Set::of(&nodes, &[]), empty, "what is not mentioned is not in it");
    }
}
