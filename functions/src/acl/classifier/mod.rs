//! Finds the first rule of a list that matches a packet, in far fewer steps than there are rules.
//!
//! The rules become a few search trees: `partition` says how many and why, `split` where they are
//! cut, `build` how they grow within a fixed allowance of memory, and `tree` how a batch of packets
//! walks through them. Any list of rules is accepted: rules that no tree can tell apart, such as
//! hundreds of overlapping ranges in all dimensions, are searched eight a step in the end.
//!
//! A change of rules builds a new classifier; an existing one never changes.

mod build;
mod lanes;
mod partition;
mod point;
mod split;
mod tree;

#[cfg(test)]
mod tests;

use std::fmt;

use point::{Family, RuleBox};

pub(super) use lanes::prefetch;
pub(super) use point::{Point, V4, V6};
pub(super) use tree::{BATCH, NONE, Tree};

use super::key::{KeyV4, KeyV6};
use super::rule::Rule;

/// Most rules a list may have.
pub const MOST_RULES: usize = 4 << 20;

/// Bytes of memory per IPv4 rule that trees may take, besides [`BASE_BYTES`].
const BYTES_PER_RULE_V4: usize = 192;
/// Bytes of memory per IPv6 rule that trees may take, besides [`BASE_BYTES`].
const BYTES_PER_RULE_V6: usize = 384;
/// Bytes that the trees of a family may take however few rules there are.
const BASE_BYTES: usize = 256 << 10;

/// Most bytes that a rule takes while a list of many is compiled, of rules for both families.
const PEAK: usize = 1500;

/// A list with more rules than there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyRules {
    /// More than [`MOST_RULES`]: so many.
    ForAList(usize),
    /// So many that the system has no memory to compile them.
    ForMemory(usize),
}

impl fmt::Display for TooManyRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForAList(count) => write!(f, "{count} rules; a list holds at most {MOST_RULES}"),
            Self::ForMemory(count) => write!(f, "the system has no memory to compile {count} rules"),
        }
    }
}

impl std::error::Error for TooManyRules {}

/// A list of rules, compiled for search.
pub struct Classifier {
    v4: Vec<Tree<V4>>,
    v6: Vec<Tree<V6>>,
}

impl Classifier {
    /// Compiles a list of rules. Takes one to four seconds per 100,000 rules, and memory in
    /// proportion to their number, whatever they are.
    ///
    /// # Errors
    /// If there are more than [`MOST_RULES`], or more than there is memory for.
    pub fn build(rules: &[Rule]) -> Result<Self, TooManyRules> {
        if rules.len() > MOST_RULES {
            return Err(TooManyRules::ForAList(rules.len()));
        }
        // An allocation that fails on the way would end the process; address space that is asked for here costs nothing.
        // Unused, it would be left out where code is optimised, and the question with it.
        let mut room = Vec::<u8>::new();
        let is_there = room.try_reserve_exact(rules.len() * PEAK).is_ok();
        drop(std::hint::black_box(room));
        if !is_there {
            return Err(TooManyRules::ForMemory(rules.len()));
        }
        Ok(Self { v4: compile(rules, BYTES_PER_RULE_V4), v6: compile(rules, BYTES_PER_RULE_V6) })
    }

    /// Index of the first rule that matches an IPv4 packet.
    pub fn classify_v4(&self, key: &KeyV4) -> Option<u32> {
        one(&self.v4, Point::from(key))
    }

    /// Index of the first rule that matches an IPv6 packet.
    pub fn classify_v6(&self, key: &KeyV6) -> Option<u32> {
        one(&self.v6, Point::from(key))
    }

    /// For each IPv4 packet, the index of the first rule that matches it, or [`Classifier::NO_RULE`].
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    pub fn classify_batch_v4(&self, keys: &[KeyV4], found: &mut [u32]) {
        batch(&self.v4, keys, found);
    }

    /// For each IPv6 packet, the index of the first rule that matches it, or [`Classifier::NO_RULE`].
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    pub fn classify_batch_v6(&self, keys: &[KeyV6], found: &mut [u32]) {
        batch(&self.v6, keys, found);
    }

    pub(super) fn trees_v4(&self) -> &[Tree<V4>] {
        &self.v4
    }

    pub(super) fn trees_v6(&self) -> &[Tree<V6>] {
        &self.v6
    }

    /// What the batch forms say of a packet that no rule matches.
    pub const NO_RULE: u32 = NONE;

    /// Bytes of memory in use for IPv4 and for IPv6.
    pub fn bytes(&self) -> (usize, usize) {
        (self.v4.iter().map(Tree::bytes).sum(), self.v6.iter().map(Tree::bytes).sum())
    }

    /// Search trees for IPv4 and for IPv6: each costs every packet a walk.
    pub fn trees(&self) -> (usize, usize) {
        (self.v4.len(), self.v6.len())
    }
}

fn compile<const W: usize>(rules: &[Rule], bytes_per_rule: usize) -> Vec<Tree<W>>
where
    Point<W>: Family<W>,
{
    let boxes: Vec<RuleBox<W>> =
        rules.iter().zip(0..).filter_map(|(rule, index)| Point::enclose(rule, index)).collect();
    partition::trees(&boxes, BASE_BYTES + boxes.len() * bytes_per_rule)
}

fn one<const W: usize>(trees: &[Tree<W>], point: Point<W>) -> Option<u32> {
    let mut best = [NONE; BATCH];
    search(trees, &[point], &mut best);
    (best[0] != NONE).then_some(best[0])
}

#[inline]
fn batch<K, const W: usize>(trees: &[Tree<W>], keys: &[K], found: &mut [u32])
where
    for<'a> Point<W>: From<&'a K>,
{
    assert!(found.len() >= keys.len());
    for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
        let mut points = [Point::ORIGIN; BATCH];
        for (point, key) in points.iter_mut().zip(keys) {
            *point = Point::from(key);
        }
        let mut best = [NONE; BATCH];
        search(trees, &points[..keys.len()], &mut best);
        found[..keys.len()].copy_from_slice(&best[..keys.len()]);
    }
}

/// Lowers `best[i]` to the index of the first rule in `trees` that matches `points[i]`.
#[inline]
pub(super) fn search<const W: usize>(trees: &[Tree<W>], points: &[Point<W>], best: &mut [u32; BATCH]) {
    for tree in trees {
        tree.search(points, best);
    }
}
