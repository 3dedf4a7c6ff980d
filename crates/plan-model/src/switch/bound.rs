//! What cannot fit: bounds for pieces in bins.

use super::memory::Demand;
use super::pack::{Pieces, Windows};

/// The largest k of the dual feasible functions that are tried.
const FINEST: u64 = 5;

/// Whether some row of bins is too small for the pieces that can be nowhere else. Sizes are counted as they
/// are, and through dual feasible functions, which see that three pieces of 0.4 need two bins: u(k) takes a
/// piece of x bins for ⌊(k + 1)x⌋ / k, or for x where (k + 1)x is whole (Fekete and Schepers, "New classes of
/// fast lower bounds for bin packing problems", 2001).
pub(super) fn excludes(pieces: &Pieces, bins: &[Demand], windows: &Windows) -> bool {
    (0..3).any(|kind| {
        let there = |bin: usize| u64::from(bins[bin][kind]);
        let need = |piece: usize| u64::from(pieces.demand[piece][kind]);
        let whole = bins.first().map_or(0, |bin| u64::from(bin[kind]));
        let even = (0..bins.len()).all(|bin| there(bin) == whole);
        row_overflows(pieces, bins.len(), windows, need, there)
            || even
                && whole > 0
                && (1..=FINEST).any(|k| {
                    // In parts of 1 / (k (k + 1)), to stay whole.
                    let rounded = |piece: usize| match (k + 1) * need(piece) {
                        scaled if scaled % whole == 0 => scaled / whole * k,
                        scaled => scaled / whole * (k + 1),
                    };
                    row_overflows(pieces, bins.len(), windows, rounded, |_| k * (k + 1))
                })
    })
}

/// Whether the pieces whose windows lie in some row of bins need more than it has.
fn row_overflows(
    pieces: &Pieces,
    bins: usize,
    windows: &Windows,
    need: impl Fn(usize) -> u64,
    there: impl Fn(usize) -> u64,
) -> bool {
    let mut needs = vec![0_u64; bins];
    (0..bins).any(|from| {
        needs.fill(0);
        (0..pieces.len()).filter(|&p| windows.first[p] >= from).for_each(|p| needs[windows.last[p]] += need(p));
        let (mut needed, mut available) = (0, 0);
        (from..bins).any(|bin| {
            needed += needs[bin];
            available += there(bin);
            needed > available
        })
    })
}
