//! A search tree over rules, as it lies in memory, and the walk of a batch of packets through it.
//!
//! A node is one cache line: the dimension it looks at and up to 14 thresholds, all compared at
//! once. A leaf is a chain of blocks of eight rules, again compared at once. The walk moves all
//! packets of a batch one level at a time, and asks for each packet's next line before it turns to
//! the next packet, so that the misses of a batch overlap; which packets are still on their way is
//! kept in a list that is compacted without branches, as the depth is different for each.

use super::lanes::{self, LANES, Line, block_lines};
use super::point::Point;

/// Packets walked together.
pub const BATCH: usize = 32;

/// Result for "no rule".
pub const NONE: u32 = u32::MAX;

/// Marks a reference to a leaf block, and in the last lane of a block's indices a link to the next
/// block of the same leaf.
pub const LEAF: u32 = 0x8000_0000;

/// Reference to a leaf without rules.
pub const EMPTY: u32 = LEAF;

/// A finished tree.
pub struct Tree<const W: usize> {
    /// Nodes and leaf blocks. Line 0 is never used, so that [`EMPTY`] refers to no block.
    pub(super) lines: Vec<Line>,
    /// Children of all nodes: the line where the child begins, with [`LEAF`] if it is a leaf.
    pub(super) children: Vec<u32>,
    /// The child that a search begins at.
    pub(super) root: u32,
    /// Lowest index of its rules: a packet that already matched a lower one need not look here.
    pub(super) least: u32,
}

impl<const W: usize> Tree<W> {
    /// Bytes the tree takes.
    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>() + self.children.len() * size_of::<u32>()
    }

    /// Lowers `best[i]` to the lowest index of a rule in this tree that matches `points[i]`.
    ///
    /// # Panics
    /// If there are more than [`BATCH`] points.
    #[inline]
    pub fn search(&self, points: &[Point<W>], best: &mut [u32; BATCH]) {
        assert!(points.len() <= BATCH);
        let mut at = [self.root & !LEAF; BATCH];
        let mut walking = [0u8; BATCH];
        let mut arrived = [0u8; BATCH];
        let (mut walkers, mut arrivals) = (0, 0);
        for (i, &best) in best.iter().enumerate().take(points.len()) {
            let open = usize::from(self.least < best);
            walking[walkers] = i as u8;
            walkers += open;
        }
        if self.root & LEAF != 0 {
            (arrived, arrivals) = (walking, if self.root == EMPTY { 0 } else { walkers });
            walkers = 0;
        }
        while walkers > 0 {
            let mut kept = 0;
            for w in 0..walkers {
                let i = usize::from(walking[w]) % BATCH;
                let node = &self.lines[at[i] as usize];
                let value = points[i].0[node.0[1] as usize % W];
                let next = self.children[(node.0[0] + lanes::rank(node, value)) as usize];
                at[i] = next & !LEAF;
                lanes::prefetch(self.lines.as_ptr().wrapping_add(at[i] as usize));
                arrived[arrivals % BATCH] = i as u8;
                if next > EMPTY {
                    arrivals += 1;
                }
                walking[kept % BATCH] = i as u8;
                if next < LEAF {
                    kept += 1;
                }
            }
            walkers = kept;
        }
        while arrivals > 0 {
            for &i in &arrived[..arrivals] {
                let block = self.lines.as_ptr().wrapping_add(at[usize::from(i) % BATCH] as usize);
                for line in 1..block_lines::<W>() {
                    lanes::prefetch(block.wrapping_add(line));
                }
            }
            let mut kept = 0;
            for a in 0..arrivals {
                let i = usize::from(arrived[a]) % BATCH;
                let start = at[i] as usize;
                let block = &self.lines[start..start + block_lines::<W>()];
                let mask = lanes::matching(block, &points[i]);
                let indices = &block[block_lines::<W>() - 1].0[LANES..];
                // The rules of a leaf stand in the order of the list: the first lane wins, and the
                // blocks behind hold none that could win instead.
                let first = indices[(mask | 1 << (LANES - 1)).trailing_zeros() as usize % LANES];
                let found = if mask != 0 { first } else { NONE };
                best[i] = best[i].min(found);
                let link = indices[LANES - 1];
                at[i] = link & !LEAF;
                arrived[kept % BATCH] = i as u8;
                if mask == 0 && link >= LEAF && link != NONE {
                    kept += 1;
                }
            }
            arrivals = kept;
        }
    }

    /// Steps a point takes: nodes and leaf blocks it visits. What the builder weighs designs by.
    pub fn steps(&self, point: &Point<W>) -> (u32, u32) {
        let (mut nodes, mut blocks) = (0, 0);
        let mut next = self.root;
        while next < LEAF {
            let node = &self.lines[next as usize];
            let value = point.0[node.0[1] as usize % W];
            next = self.children[(node.0[0] + lanes::rank(node, value)) as usize];
            nodes += 1;
        }
        while next > EMPTY && next != NONE {
            let start = (next & !LEAF) as usize;
            let block = &self.lines[start..start + block_lines::<W>()];
            blocks += 1;
            let link = block[block_lines::<W>() - 1].0[2 * LANES - 1];
            next = if lanes::matching(block, point) == 0 && link >= LEAF { link } else { EMPTY };
        }
        (nodes, blocks)
    }
}
