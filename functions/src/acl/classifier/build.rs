//! Growing a tree: cut the largest set of rules that is not a leaf yet, until all leaves are small
//! or the memory allowed is used up.
//!
//! Rules that overlap in every dimension cannot be told apart without storing them many times.
//! Growing the worst place first, under a fixed allowance, makes that a matter of speed and never
//! of memory: what cannot be cut any more stays a longer leaf.

use std::collections::{BinaryHeap, HashMap};

use super::lanes::{FIRST_THRESHOLD, LANES, Line, block_lines};
use super::point::{RuleBox, SIGN, Span, address_words, whole};
use super::split;
use super::tree::{EMPTY, LEAF, NONE, Tree};

/// When a cut is worth a step.
#[derive(Clone, Copy)]
pub enum Taste {
    /// If it separates rules without storing many of them twice.
    Frugal,
    /// If it leaves a packet fewer rules, however often these are stored: good for few rules, and
    /// for those that overlap much.
    Lavish,
}

/// A cut must bring its measure under this.
const WORTH: f64 = 0.8;

/// A set of rules that is still to be cut, ordered by size.
struct Pending<const W: usize> {
    region: [Span; W],
    /// Numbers of boxes, ascending by rule index.
    rules: Vec<u32>,
    /// Where the reference to the finished subtree goes.
    slot: usize,
}

impl<const W: usize> PartialEq for Pending<W> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<const W: usize> Eq for Pending<W> {}
impl<const W: usize> PartialOrd for Pending<W> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<const W: usize> Ord for Pending<W> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.rules.len(), other.slot).cmp(&(other.rules.len(), self.slot))
    }
}

/// Grows a tree over `boxes`, which stand in the order of the list, within about `allowance` bytes
/// (or what one single leaf takes, if that is more).
pub fn tree<const W: usize>(boxes: &[RuleBox<W>], allowance: usize, taste: Taste) -> Tree<W> {
    let mut growth = Growth {
        boxes,
        taste,
        tree: Tree {
            lines: vec![Line([0; 16])],
            children: vec![EMPTY],
            root: EMPTY,
            least: boxes.first().map_or(NONE, |b| b.index),
        },
        leaves: HashMap::new(),
        pending: BinaryHeap::new(),
        promised: 0,
    };
    growth.place(Pending { region: whole::<W>(), rules: (0..boxes.len() as u32).collect(), slot: 0 });
    let allowance = allowance / size_of::<Line>();
    let mut scratch = Vec::new();
    while let Some(mut set) = growth.pending.pop() {
        let own = leaf_lines::<W>(set.rules.len());
        growth.promised -= own;
        let Some((dimension, mut parts)) = growth.cut(&set, &mut scratch) else {
            growth.leaf(&set);
            continue;
        };
        let grown = 2 + parts.iter().map(|p| leaf_lines::<W>(p.rules.len())).sum::<usize>();
        if parts.len() == 1 {
            // Nothing but rules hidden by others: the rest may be cut elsewhere.
            set.rules = std::mem::take(&mut parts[0].rules);
            growth.place(set);
        } else if growth.lines() + grown <= allowance.max(growth.lines() + own) {
            growth.node(&set, dimension, parts);
        } else {
            growth.leaf(&set);
        }
    }
    growth.tree.root = growth.tree.children[0];
    growth.tree.lines.shrink_to_fit();
    growth.tree.children.shrink_to_fit();
    growth.tree
}

/// One part of a cut.
struct Part {
    /// Last value of the part in the dimension of the cut.
    end: u32,
    rules: Vec<u32>,
}

struct Growth<'a, const W: usize> {
    boxes: &'a [RuleBox<W>],
    taste: Taste,
    tree: Tree<W>,
    /// Leaves by their rules: equal ones are stored once.
    leaves: HashMap<Vec<u32>, u32>,
    pending: BinaryHeap<Pending<W>>,
    /// Lines the pending sets would take as leaves.
    promised: usize,
}

impl<const W: usize> Growth<'_, W> {
    /// Lines in use or promised.
    fn lines(&self) -> usize {
        self.tree.lines.len() + self.tree.children.len() / 16 + self.promised
    }

    /// Cuts a set into parts that differ, if that brings enough. One part alone is the set without
    /// rules that can never win.
    fn cut(&self, set: &Pending<W>, scratch: &mut Vec<u64>) -> Option<(usize, Vec<Part>)> {
        let split = split::best(self.boxes, &set.rules, &set.region, scratch)?;
        let d = split.dimension;
        let mut ends = split.thresholds;
        ends.push(set.region[d].hi);
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); ends.len()];
        for &r in &set.rules {
            let span = self.boxes[r as usize].spans[d];
            let first = ends.partition_point(|&end| end < span.lo);
            for part in first..ends.len() {
                lists[part].push(r);
                if span.hi <= ends[part] {
                    break;
                }
            }
        }
        let mut region = set.region;
        let mut parts: Vec<Part> = Vec::with_capacity(lists.len());
        for (end, mut rules) in ends.into_iter().zip(lists) {
            region[d].hi = end;
            self.drop_hidden(&mut rules, &region);
            match parts.last_mut() {
                Some(before) if before.rules == rules => before.end = end,
                _ => parts.push(Part { end, rules }),
            }
            region[d].lo = end.wrapping_add(1);
        }
        // Judged by what is really left, as hidden rules are gone.
        let sizes = || parts.iter().map(|part| part.rules.len() as f64);
        let (whole, sum) = (set.rules.len() as f64, sizes().sum::<f64>());
        let squares: f64 = sizes().map(|size| size * size).sum();
        let measure = match self.taste {
            Taste::Frugal => squares / (whole * whole),
            Taste::Lavish => squares / (whole * sum),
        };
        (measure <= WORTH).then_some((d, parts))
    }

    /// Drops rules that can never win in a region: those behind a rule that fills it. A rule that
    /// asks for ports hides only others that do.
    fn drop_hidden(&self, rules: &mut Vec<u32>, region: &[Span; W]) {
        let (mut with_ports, mut all) = (false, false);
        rules.retain(|&r| {
            let rule = &self.boxes[r as usize];
            let open = !(all || with_ports && rule.needs_ports);
            if open && rule.fills(region) {
                with_ports = true;
                all = !rule.needs_ports;
            }
            open
        });
    }

    /// Finishes a small set as a leaf, and puts a larger one among those to be cut.
    fn place(&mut self, set: Pending<W>) {
        if set.rules.len() <= LANES {
            self.leaf(&set);
        } else {
            self.promised += leaf_lines::<W>(set.rules.len());
            self.pending.push(set);
        }
    }

    fn node(&mut self, set: &Pending<W>, dimension: usize, parts: Vec<Part>) {
        let first = self.tree.children.len();
        let bias = if dimension < address_words::<W>() { SIGN } else { 0 };
        // A threshold that no value exceeds takes the place of those not needed.
        let mut line = Line([i32::MAX as u32; 16]);
        line.0[0] = first as u32;
        line.0[1] = dimension as u32;
        let inner = parts.len() - 1;
        for (word, part) in line.0[FIRST_THRESHOLD..].iter_mut().zip(&parts[..inner]) {
            *word = part.end ^ bias;
        }
        self.tree.children[set.slot] = self.tree.lines.len() as u32;
        self.tree.lines.push(line);
        self.tree.children.resize(first + parts.len(), EMPTY);
        let mut lo = set.region[dimension].lo;
        for (i, part) in parts.into_iter().enumerate() {
            let mut region = set.region;
            region[dimension] = Span { lo, hi: part.end };
            lo = part.end.wrapping_add(1);
            self.place(Pending { region, rules: part.rules, slot: first + i });
        }
    }

    fn leaf(&mut self, set: &Pending<W>) {
        if set.rules.is_empty() {
            self.tree.children[set.slot] = EMPTY;
            return;
        }
        let start = match self.leaves.get(&set.rules) {
            Some(&start) => start,
            None => {
                let start = self.tree.lines.len() as u32;
                self.blocks(&set.rules);
                self.leaves.insert(set.rules.clone(), start);
                start
            }
        };
        self.tree.children[set.slot] = LEAF | start;
    }

    /// Writes the rules of a leaf as a chain of blocks, one behind the other.
    fn blocks(&mut self, rules: &[u32]) {
        let mut rest = rules;
        while !rest.is_empty() {
            let taken = if rest.len() > LANES { LANES - 1 } else { rest.len() };
            let (now, later) = rest.split_at(taken);
            let start = self.tree.lines.len();
            self.tree.lines.resize(start + block_lines::<W>(), Line([0; 16]));
            let link = LEAF | self.tree.lines.len() as u32;
            let block = &mut self.tree.lines[start..];
            for lane in 0..LANES {
                match now.get(lane) {
                    Some(&r) => write_rule(block, lane, &self.boxes[r as usize]),
                    None => write_nothing::<W>(block, lane, if later.is_empty() { NONE } else { link }),
                }
            }
            rest = later;
        }
    }
}

/// Lines that `rules` rules take as a leaf.
fn leaf_lines<const W: usize>(rules: usize) -> usize {
    let blocks = if rules <= LANES { rules.div_ceil(LANES) } else { 1 + (rules - LANES).div_ceil(LANES - 1) };
    blocks * block_lines::<W>()
}

fn put(block: &mut [Line], vector: usize, lane: usize, word: u32) {
    block[vector / 2].0[vector % 2 * LANES + lane] = word;
}

/// Writes a rule into a lane of a block, in the layout [`super::lanes::matching`] reads.
fn write_rule<const W: usize>(block: &mut [Line], lane: usize, rule: &RuleBox<W>) {
    let a = address_words::<W>();
    for w in 0..a {
        let Span { lo, hi } = rule.spans[w];
        let mask = !(lo ^ hi);
        put(block, 2 * w, lane, mask);
        put(block, 2 * w + 1, lane, (lo ^ SIGN) & mask);
    }
    let (sport, dport, protocol) = (rule.spans[a], rule.spans[a + 1], rule.spans[a + 2]);
    put(block, 2 * a, lane, sport.lo | dport.lo << 16);
    put(block, 2 * a + 1, lane, sport.hi | dport.hi << 16);
    let upper = [protocol.lo as u8, !(protocol.hi as u8), u8::from(rule.needs_ports), 0];
    put(block, 2 * a + 2, lane, u32::from_le_bytes(upper));
    put(block, 2 * a + 3, lane, rule.index);
}

/// Writes a lane that matches no point, with `word` in the place of its index.
fn write_nothing<const W: usize>(block: &mut [Line], lane: usize, word: u32) {
    let a = address_words::<W>();
    for vector in 0..2 * a + 2 {
        put(block, vector, lane, 0);
    }
    put(block, 2 * a + 2, lane, u32::MAX);
    put(block, 2 * a + 3, lane, word);
}
