//! Pieces into a row of bins: tables into stages, or functions into a switch's fixed tables. Some pieces must
//! come in a later bin than others.
//!
//! First by list: bin after bin, what is ready and most urgent goes in, and backwards the same. Lists find
//! nearly all that fits; where they fail, bounds tell what cannot fit, and a search decides the rest.

use super::memory::Demand;
use super::{bound, search};

/// What is to be packed. Indices are such that what must come before a piece has a lower one.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    /// What each takes of its bin.
    pub demand: Vec<Demand>,
    /// Bins that must come before it.
    pub head: Vec<usize>,
    /// Bins that must come after it.
    pub tail: Vec<usize>,
    /// The bins that it may be in; empty: all.
    pub allowed: Vec<Vec<bool>>,
    /// The pieces that must be in an earlier bin.
    pub before: Vec<Vec<usize>>,
    /// The pieces that must be in a later bin.
    pub after: Vec<Vec<usize>>,
}

impl Pieces {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.demand.len()
    }

    /// One more, which may be in all bins; its index.
    pub fn push(&mut self, demand: Demand, head: usize, tail: usize) -> usize {
        self.demand.push(demand);
        self.head.push(head);
        self.tail.push(tail);
        self.allowed.push(Vec::new());
        self.before.push(Vec::new());
        self.after.push(Vec::new());
        self.len() - 1
    }

    /// Put `later` in a later bin than `earlier`, which was pushed before it.
    pub fn order(&mut self, earlier: usize, later: usize) {
        self.before[later].push(earlier);
        self.after[earlier].push(later);
    }

    /// Whether a piece may be in a bin.
    pub fn may(&self, piece: usize, bin: usize) -> bool {
        self.allowed[piece].is_empty() || self.allowed[piece].get(bin).copied().unwrap_or(false)
    }

    /// The same the other way round.
    fn mirrored(&self, bins: usize) -> Pieces {
        let last = self.len().saturating_sub(1);
        let turned = |lists: &[Vec<usize>]| -> Vec<Vec<usize>> {
            lists.iter().rev().map(|list| list.iter().map(|&piece| last - piece).collect()).collect()
        };
        let allowed = |list: &Vec<bool>| match list.is_empty() {
            true => Vec::new(),
            false => (0..bins).rev().map(|bin| list.get(bin).copied().unwrap_or(false)).collect(),
        };
        Pieces {
            demand: self.demand.iter().rev().copied().collect(),
            head: self.tail.iter().rev().copied().collect(),
            tail: self.head.iter().rev().copied().collect(),
            allowed: self.allowed.iter().rev().map(allowed).collect(),
            before: turned(&self.after),
            after: turned(&self.before),
        }
    }
}

/// The first and the last bin that each piece can be in, for its order alone.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// First.
    pub first: Vec<usize>,
    /// Last.
    pub last: Vec<usize>,
}

impl Windows {
    /// In `bins` bins; the piece for which there is none, if there is one.
    pub fn of(pieces: &Pieces, bins: usize) -> Result<Windows, usize> {
        let (mut first, mut last) = (pieces.head.clone(), vec![0; pieces.len()]);
        for piece in 0..pieces.len() {
            let ready = pieces.before[piece].iter().map(|&p| first[p] + 1).max().unwrap_or(0);
            let from = ready.max(first[piece]);
            first[piece] = (from..bins).find(|&bin| pieces.may(piece, bin)).ok_or(piece)?;
        }
        for piece in (0..pieces.len()).rev() {
            let end = pieces.after[piece].iter().map(|&p| last[p]).min().unwrap_or(bins);
            let end = end.min(bins.saturating_sub(pieces.tail[piece]));
            last[piece] = (first[piece]..end).rev().find(|&bin| pieces.may(piece, bin)).ok_or(piece)?;
        }
        Ok(Windows { first, last })
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packed {
    /// The bin of each piece.
    Bins(Vec<usize>),
    /// There is no way.
    Never,
    /// None was found with the search's budget.
    Unknown,
}

/// Put `pieces` in `bins`, which have what is given. The search looks at no more than `budget` nodes.
pub(super) fn pack(pieces: &Pieces, bins: &[Demand], budget: u32) -> Packed {
    let Ok(windows) = Windows::of(pieces, bins.len()) else { return Packed::Never };
    if let Some(found) = list(pieces, bins, &windows) {
        return Packed::Bins(found);
    }
    if bound::excludes(pieces, bins, &windows) {
        return Packed::Never;
    }
    let mirrored = pieces.mirrored(bins.len());
    let turned: Vec<Demand> = bins.iter().rev().copied().collect();
    if let Some(found) = Windows::of(&mirrored, bins.len()).ok().and_then(|w| list(&mirrored, &turned, &w)) {
        return Packed::Bins(found.into_iter().rev().map(|bin| bins.len() - 1 - bin).collect());
    }
    search::search(pieces, bins, windows, budget)
}

/// Bin after bin, what is ready and must be soonest; of those the largest.
pub(super) fn list(pieces: &Pieces, bins: &[Demand], windows: &Windows) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = (0..pieces.len()).collect();
    waiting.sort_unstable_by_key(|&p| (windows.last[p], std::cmp::Reverse(size(&pieces.demand[p], bins)), p));
    let mut first = windows.first.clone();
    let mut missing: Vec<usize> = pieces.before.iter().map(Vec::len).collect();
    let mut placed = vec![0; pieces.len()];
    for (bin, there) in bins.iter().enumerate() {
        let mut free = *there;
        let mut late = false;
        waiting.retain(|&piece| {
            let ready = missing[piece] == 0 && first[piece] <= bin && pieces.may(piece, bin);
            if !ready || !take(&mut free, &pieces.demand[piece]) {
                late |= windows.last[piece] <= bin;
                return true;
            }
            placed[piece] = bin;
            for &next in &pieces.after[piece] {
                missing[next] -= 1;
                first[next] = first[next].max(bin + 1);
            }
            false
        });
        if late {
            return None;
        }
    }
    waiting.is_empty().then_some(placed)
}

/// Whether `free` has what is needed; if so, take it.
pub(super) fn take(free: &mut Demand, need: &Demand) -> bool {
    let fits = need.iter().zip(free.iter()).all(|(need, free)| need <= free);
    if fits {
        free.iter_mut().zip(need).for_each(|(free, need)| *free -= need);
    }
    fits
}

/// The largest part of a bin that a piece takes, in thousandths.
pub(super) fn size(demand: &Demand, bins: &[Demand]) -> u64 {
    let there = bins.first().copied().unwrap_or_default();
    demand.iter().zip(there).map(|(&need, there)| u64::from(need) * 1000 / u64::from(there.max(1))).max().unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Small instances, so that all packings can be tried.
    pub fn instances() -> impl Strategy<Value = (Pieces, Vec<Demand>)> {
        let piece = (1_u32..10, 0_u32..4, 0_usize..2, 0_usize..2, any::<u8>(), any::<u8>());
        (prop::collection::vec(piece, 1..8), 1_usize..5, 6_u32..14, 2_u32..5).prop_map(|(list, bins, sram, tables)| {
            let mut pieces = Pieces::default();
            for (i, (sram, tcam, head, tail, before, allowed)) in list.into_iter().enumerate() {
                pieces.push([sram, tcam, 1], head, tail);
                if allowed % 4 == 0 {
                    pieces.allowed[i] = (0..bins).map(|bin| allowed >> 2 >> bin & 1 == 1).collect();
                }
                (0..i).filter(|&p| before >> p & 1 == 1 && before % 3 == 0).for_each(|p| pieces.order(p, i));
            }
            (pieces, vec![[sram, 6, tables]; bins])
        })
    }

    /// Whether a packing is one.
    pub fn valid(pieces: &Pieces, bins: &[Demand], at: &[usize]) -> bool {
        let mut free = bins.to_vec();
        at.len() == pieces.len()
            && at.iter().enumerate().all(|(piece, &bin)| {
                pieces.may(piece, bin)
                    && bin >= pieces.head[piece]
                    && bin + pieces.tail[piece] < bins.len()
                    && pieces.before[piece].iter().all(|&p| at[p] < bin)
                    && take(&mut free[bin], &pieces.demand[piece])
            })
    }

    /// Try all packings.
    pub fn exists(pieces: &Pieces, bins: &[Demand]) -> bool {
        let mut at = vec![0; pieces.len()];
        loop {
            if valid(pieces, bins, &at) {
                return true;
            }
            let Some(turn) = at.iter().position(|&bin| bin + 1 < bins.len()) else { return false };
            at[..turn].fill(0);
            at[turn] += 1;
        }
    }

    proptest! {
        #[test]
        fn packing_finds_a_way_exactly_when_one_exists((pieces, bins) in instances()) {
            match pack(&pieces, &bins, u32::MAX) {
                Packed::Bins(at) => prop_assert!(valid(&pieces, &bins, &at), "{at:?}"),
                Packed::Never => prop_assert!(!exists(&pieces, &bins)),
                Packed::Unknown => prop_assert!(false, "without a budget it always knows"),
            }
        }

        #[test]
        fn bounds_exclude_only_what_does_not_fit((pieces, bins) in instances()) {
            if let Ok(windows) = Windows::of(&pieces, bins.len()) {
                prop_assert!(!bound::excludes(&pieces, &bins, &windows) || !exists(&pieces, &bins));
            } else {
                prop_assert!(!exists(&pieces, &bins));
            }
        }
    }
}
