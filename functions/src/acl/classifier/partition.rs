//! Which rules share a tree.
//!
//! A rule that is wide in the dimension a tree cuts lands in many of its leaves; wide sources and
//! wide destinations in one tree multiply. So rules are first sorted by which of their two addresses
//! are wide, as in Li, Li, Li, Xie, *CutSplit: A Decision-Tree Combining Cutting and Splitting for
//! Scalable Packet Classification* (INFOCOM 2018, §III-A), where "wide" is a fixed prefix length;
//! here it is the share of all rules whose address lies inside, so that a list that plays within one
//! /8 is understood too. Each tree costs every packet a walk, therefore groups are put together
//! again when the builder's own estimate says that one tree for both is cheaper
//! (after the "tree merging" of Vamanan, Voskuilen, Vijaykumar, *EffiCuts*, SIGCOMM 2010, §3.3).

use super::build::{self, Taste};
use super::point::{Point, RuleBox, Span, address_words, dimensions};
use super::tree::Tree;

/// An address is wide if it spans the beginnings of more than one in this many rules' addresses.
const WIDE: usize = 16;
/// Points by which a tree's cost is judged.
const PROBES: usize = 512;
/// Cycles of a walk through a tree: to begin, per node, per leaf block.
const COST: (f64, f64, f64) = (6.0, 9.0, 16.0);
/// A tree, its rules (in the order of the list), and what a packet pays for it, in cycles.
struct Group<const W: usize> {
    boxes: Vec<RuleBox<W>>,
    tree: Tree<W>,
    cycles: f64,
}

/// Trees that together hold all `boxes` (in the order of the list), in about `allowance` bytes.
pub fn trees<const W: usize>(boxes: &[RuleBox<W>], allowance: usize) -> Vec<Tree<W>> {
    let probes = probes(boxes);
    let share = |n: usize| (allowance as f64 * n as f64 / boxes.len().max(1) as f64) as usize;
    let grow = |boxes: Vec<RuleBox<W>>| {
        let [frugal, lavish] = [Taste::Frugal, Taste::Lavish].map(|taste| {
            let tree = build::tree(&boxes, share(boxes.len()), taste);
            (cycles(&tree, &probes), tree)
        });
        let (cycles, tree) = if lavish.0 < frugal.0 { lavish } else { frugal };
        Group { boxes, tree, cycles }
    };
    let mut groups: Vec<_> = by_width(boxes).into_iter().map(&grow).collect();
    // Put the two together that gain most, as long as any two gain.
    while groups.len() > 1 {
        let mut best: Option<(f64, usize, usize, Group<W>)> = None;
        for a in 0..groups.len() {
            for b in a + 1..groups.len() {
                let mut both = groups[a].boxes.clone();
                both.extend_from_slice(&groups[b].boxes);
                both.sort_unstable_by_key(|rule| rule.index);
                let both = grow(both);
                let gain = groups[a].cycles + groups[b].cycles - both.cycles;
                if gain > 0.0 && best.as_ref().is_none_or(|best| gain > best.0) {
                    best = Some((gain, a, b, both));
                }
            }
        }
        let Some((_, a, b, both)) = best else { break };
        groups.swap_remove(b);
        groups[a] = both;
    }
    groups.sort_by_key(|group| group.tree.least);
    groups.into_iter().map(|group| group.tree).collect()
}

/// Mean cycles of a walk, as far as steps tell.
fn cycles<const W: usize>(tree: &Tree<W>, probes: &[Point<W>]) -> f64 {
    let sum: f64 = probes
        .iter()
        .map(|p| tree.steps(p))
        .map(|(nodes, blocks)| COST.0 + COST.1 * f64::from(nodes) + COST.2 * f64::from(blocks))
        .sum();
    sum / probes.len().max(1) as f64
}

/// Points inside rules, evenly chosen from the list; where inside, a fixed sequence says.
fn probes<const W: usize>(boxes: &[RuleBox<W>]) -> Vec<Point<W>> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut inside = |span: Span| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let width = u64::from(span.hi - span.lo) + 1;
        span.lo + (((state >> 32) * width) >> 32) as u32
    };
    let count = if boxes.is_empty() { 0 } else { PROBES };
    (0..count)
        .map(|i| {
            let rule = &boxes[i * boxes.len() / PROBES];
            let mut fields = [0; W];
            for (field, &span) in fields.iter_mut().zip(&rule.spans).take(dimensions::<W>()) {
                *field = inside(span);
            }
            Point::of(fields)
        })
        .collect()
}

/// The rules by which of their addresses are wide; empty groups are left out.
fn by_width<const W: usize>(boxes: &[RuleBox<W>]) -> Vec<Vec<RuleBox<W>>> {
    let half = address_words::<W>() / 2;
    let wide = [0, half].map(|first| {
        let ends = move |b: &RuleBox<W>| {
            let words = &b.spans[first..first + half];
            let join =
                |end: fn(&Span) -> u32| words.iter().fold(0u128, |joined, span| joined << 32 | u128::from(end(span)));
            (join(|s| s.lo), join(|s| s.hi))
        };
        let mut begins: Vec<u128> = boxes.iter().map(|b| ends(b).0).collect();
        begins.sort_unstable();
        move |b: &RuleBox<W>| {
            let (lo, hi) = ends(b);
            // The first that begins with this rule does not count: equal addresses separate well.
            let inside = begins.partition_point(|&x| x <= hi) - begins.partition_point(|&x| x <= lo);
            inside * WIDE > begins.len()
        }
    });
    let mut groups = vec![Vec::new(); 4];
    for b in boxes {
        groups[usize::from(wide[0](b)) * 2 + usize::from(wide[1](b))].push(*b);
    }
    groups.retain(|group| !group.is_empty());
    groups
}
