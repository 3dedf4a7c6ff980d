//! Pieces in bins by search, where lists fail and bounds do not exclude it.

use super::memory::Demand;
use super::pack::{Packed, Pieces, Windows, size, take};

/// More pieces than this are not searched.
const MOST_PIECES: usize = 512;

/// Depth first: the piece with the fewest bins left next, into each of them; then the windows of what must
/// come before and after shrink. Pieces that are alike keep their order, since exchanging them changes
/// nothing.
pub(super) fn search(pieces: &Pieces, bins: &[Demand], windows: Windows, budget: u32) -> Packed {
    if pieces.len() > MOST_PIECES {
        return Packed::Unknown;
    }
    let classes = classes(pieces);
    let mut search = Search {
        pieces,
        size: pieces.demand.iter().map(|demand| size(demand, bins)).collect(),
        windows,
        at: vec![None; pieces.len()],
        free: bins.to_vec(),
        from: vec![0; classes.iter().max().map_or(0, |most| most + 1)],
        classes,
        budget,
        trail: Vec::new(),
    };
    match search.step() {
        Some(true) => Packed::Bins(search.at.into_iter().flatten().collect()),
        Some(false) => Packed::Never,
        None => Packed::Unknown,
    }
}

/// Pieces with the same number are alike.
fn classes(pieces: &Pieces) -> Vec<usize> {
    let key = |p: usize| {
        (&pieces.demand[p], pieces.head[p], pieces.tail[p], &pieces.allowed[p], &pieces.before[p], &pieces.after[p])
    };
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|&a, &b| key(a).cmp(&key(b)));
    let mut classes = vec![0; pieces.len()];
    for pair in order.windows(2) {
        classes[pair[1]] = classes[pair[0]] + usize::from(key(pair[0]) != key(pair[1]));
    }
    classes
}

struct Search<'a> {
    pieces: &'a Pieces,
    size: Vec<u64>,
    windows: Windows,
    at: Vec<Option<usize>>,
    free: Vec<Demand>,
    classes: Vec<usize>,
    /// The bin of the last piece placed of each class.
    from: Vec<usize>,
    budget: u32,
    /// Windows before they shrank.
    trail: Vec<(usize, usize, usize)>,
}

impl Search<'_> {
    /// Whether the rest can be placed; None: the budget is spent.
    fn step(&mut self) -> Option<bool> {
        let open = (0..self.pieces.len()).filter(|&p| self.at[p].is_none());
        let width = |p: usize| self.windows.last[p] - self.windows.first[p];
        let Some(piece) = open.min_by_key(|&p| (width(p), std::cmp::Reverse(self.size[p]), p)) else {
            return Some(true);
        };
        self.budget = self.budget.checked_sub(1)?;
        if self.crowded() {
            return Some(false);
        }
        let class = self.classes[piece];
        let before = self.from[class];
        for bin in self.windows.first[piece].max(before)..=self.windows.last[piece] {
            let free = self.free[bin];
            if !self.pieces.may(piece, bin) || !take(&mut self.free[bin], &self.pieces.demand[piece]) {
                continue;
            }
            let mark = self.trail.len();
            self.at[piece] = Some(bin);
            self.from[class] = bin;
            if self.narrow(piece, bin) {
                match self.step() {
                    Some(false) => {}
                    done => return done,
                }
            }
            for (piece, first, last) in self.trail.drain(mark..).rev() {
                self.windows.first[piece] = first;
                self.windows.last[piece] = last;
            }
            self.at[piece] = None;
            self.from[class] = before;
            self.free[bin] = free;
        }
        Some(false)
    }

    /// Shrink the windows around `piece` in `bin`; whether all are left with one.
    fn narrow(&mut self, piece: usize, bin: usize) -> bool {
        let mut changed = vec![(piece, bin, bin)];
        while let Some((piece, first, last)) = changed.pop() {
            let (old_first, old_last) = (self.windows.first[piece], self.windows.last[piece]);
            let (first, last) = (first.max(old_first), last.min(old_last));
            if first > last {
                return false;
            }
            if (first, last) == (old_first, old_last) && self.at[piece].is_none() {
                continue;
            }
            self.trail.push((piece, old_first, old_last));
            (self.windows.first[piece], self.windows.last[piece]) = (first, last);
            let pieces = self.pieces;
            for &next in pieces.after[piece].iter().filter(|&&next| self.windows.first[next] <= first) {
                changed.push((next, first + 1, usize::MAX));
            }
            for &next in pieces.before[piece].iter().filter(|&&next| self.windows.last[next] >= last) {
                let Some(end) = last.checked_sub(1) else { return false };
                changed.push((next, 0, end));
            }
        }
        true
    }

    /// Whether the bins up to some one, or from some one on, are too full for what must go there.
    fn crowded(&self) -> bool {
        let bins = self.free.len();
        let (mut until, mut from) = (vec![[0_u64; 3]; bins], vec![[0_u64; 3]; bins]);
        for piece in (0..self.pieces.len()).filter(|&p| self.at[p].is_none()) {
            for kind in 0..3 {
                let need = u64::from(self.pieces.demand[piece][kind]);
                until[self.windows.last[piece]][kind] += need;
                from[self.windows.first[piece]][kind] += need;
            }
        }
        let short = |need: [u64; 3], sum: &mut [u64; 3], free: &Demand, there: &mut [u64; 3]| {
            (0..3).any(|kind| {
                sum[kind] += need[kind];
                there[kind] += u64::from(free[kind]);
                sum[kind] > there[kind]
            })
        };
        let (mut sum, mut there) = ([0; 3], [0; 3]);
        let early = (0..bins).any(|bin| short(until[bin], &mut sum, &self.free[bin], &mut there));
        let (mut sum, mut there) = ([0; 3], [0; 3]);
        early || (0..bins).rev().any(|bin| short(from[bin], &mut sum, &self.free[bin], &mut there))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pack::tests::{exists, instances, valid};
    use super::*;

    proptest! {
        #[test]
        fn the_search_alone_decides((pieces, bins) in instances()) {
            let Ok(windows) = Windows::of(&pieces, bins.len()) else { return Ok(()) };
            match search(&pieces, &bins, windows, u32::MAX) {
                Packed::Bins(at) => prop_assert!(valid(&pieces, &bins, &at), "{at:?}"),
                other => prop_assert!(other == Packed::Never && !exists(&pieces, &bins), "{other:?}"),
            }
        }
    }

    #[test]
    fn a_spent_budget_decides_nothing() {
        let mut pieces = Pieces::default();
        for _ in 0..3 {
            pieces.push([6, 0, 1], 0, 0);
        }
        let bins = [[10, 0, 4]; 4];
        let windows = Windows::of(&pieces, bins.len()).unwrap();
        assert_eq!(search(&pieces, &bins, windows.clone(), 2), Packed::Unknown);
        assert_eq!(search(&pieces, &bins, windows, 9), Packed::Bins(vec![0, 1, 2]));
    }
}
