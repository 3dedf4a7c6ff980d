//! Where to cut a set of rules: the dimension and the thresholds of one node.
//!
//! Thresholds are taken from the ends of the rules' own intervals, not from equal parts of the
//! space: "the endpoint-based partition" of Qi, Xu, Yang, Xue, Li, *Packet Classification
//! Algorithms: From Theory to Practice* (HyperSplit, INFOCOM 2009, §IV), here into up to 15 parts
//! at once instead of two. Among the ends near each quantile the one that the fewest rules cross
//! is taken, as a rule that crosses a threshold is stored on both sides of it.

use super::lanes::THRESHOLDS;
use super::point::{RuleBox, Span, dimensions};

/// Larger sets are judged by this many of their rules, evenly chosen.
const SAMPLE: usize = 4096;

/// A cut of a region: parts end at each threshold, the last part at the region's end.
pub struct Split {
    pub dimension: usize,
    /// Last values of all parts but the last, ascending.
    pub thresholds: Vec<u32>,
    /// Sum of the squares of the parts' sizes over the square of the whole: small for many parts of
    /// few rules each. Rules stored in several parts count in each.
    pub cost: f64,
}

/// The best cut of `rules` inside `region`, if any separates at all.
pub fn best<const W: usize>(
    boxes: &[RuleBox<W>],
    rules: &[u32],
    region: &[Span; W],
    scratch: &mut Vec<u64>,
) -> Option<Split> {
    let mut found: Option<Split> = None;
    let stride = rules.len().div_ceil(SAMPLE);
    let parts = (rules.len() / 2).clamp(2, THRESHOLDS + 1);
    for (dimension, &whole) in region.iter().enumerate().take(dimensions::<W>()) {
        let spans = rules.iter().step_by(stride).map(|&r| boxes[r as usize].spans[dimension]);
        let count = rules.len().div_ceil(stride);
        if let Some(split) = cut(dimension, spans, count, whole, parts, scratch)
            && found.as_ref().is_none_or(|best| split.cost < best.cost)
        {
            found = Some(split);
        }
    }
    found
}

/// The cut in one dimension.
fn cut(
    dimension: usize,
    spans: impl Iterator<Item = Span>,
    count: usize,
    region: Span,
    parts: usize,
    ends: &mut Vec<u64>,
) -> Option<Split> {
    // One entry per end inside the region: the last value before it, and whether a rule begins
    // (1) or ends (0) there.
    ends.clear();
    let mut crossing = 0i64;
    for span in spans {
        if span.lo > region.lo {
            ends.push(u64::from(span.lo - 1) << 1 | 1);
        } else {
            crossing += 1;
        }
        if span.hi < region.hi {
            ends.push(u64::from(span.hi) << 1);
        }
    }
    if ends.is_empty() {
        return None;
    }
    ends.sort_unstable();

    // Walk over the ends; near each quantile keep the place with the fewest rules on both sides.
    let total = ends.len();
    let mut chosen: Vec<(u32, i64, i64)> = Vec::with_capacity(THRESHOLDS);
    let (mut begun, mut ended) = (crossing, 0i64);
    let mut quantile = 1;
    let mut candidate: Option<(i64, usize, u32, i64, i64)> = None;
    let mut i = 0;
    while i < total && quantile < parts {
        let place = (ends[i] >> 1) as u32;
        // `begun` and `ended` as of the left side: rules that end here end on the left, rules that
        // begin behind here do not count yet.
        let mut beginning = 0;
        while i < total && (ends[i] >> 1) as u32 == place {
            if ends[i] & 1 == 1 {
                beginning += 1
            } else {
                ended += 1
            }
            i += 1;
        }
        let both = begun - ended;
        while quantile < parts {
            let target = quantile * total / parts;
            let reach = (total / (3 * parts)).max(1);
            let distance = i.abs_diff(target);
            if i + reach >= target && i <= target + reach {
                if candidate.is_none_or(|c| (both, distance) < (c.0, c.1)) {
                    candidate = Some((both, distance, place, begun, ended));
                }
                break;
            }
            if i < target {
                break;
            }
            // Past this quantile: take what was found for it, or, if one mass of equal ends swallowed
            // its whole neighbourhood, this place.
            let (_, _, place, begun, ended) = candidate.take().unwrap_or((both, distance, place, begun, ended));
            if chosen.last().is_none_or(|&(last, ..)| last < place) {
                chosen.push((place, begun, ended));
            }
            quantile += 1;
        }
        begun += beginning;
    }
    if let Some((_, _, place, begun, ended)) = candidate
        && chosen.last().is_none_or(|&(last, ..)| last < place)
        && chosen.len() < THRESHOLDS
    {
        chosen.push((place, begun, ended));
    }
    if chosen.is_empty() {
        return None;
    }

    // A part holds the rules that began up to its end and did not end up to its beginning.
    let mut squares = 0.0;
    let mut ended_before = 0i64;
    for (begun, ended) in chosen.iter().map(|c| (c.1, c.2)).chain([(count as i64, 0)]) {
        let part = (begun - ended_before) as f64;
        squares += part * part;
        ended_before = ended;
    }
    let whole = count as f64;
    Some(Split { dimension, thresholds: chosen.into_iter().map(|c| c.0).collect(), cost: squares / (whole * whole) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_of(spans: &[(u32, u32)], parts: usize) -> Option<(Vec<u32>, f64)> {
        let spans: Vec<Span> = spans.iter().map(|&(lo, hi)| Span { lo, hi }).collect();
        let region = Span { lo: 0, hi: 99 };
        let split = cut(0, spans.iter().copied(), spans.len(), region, parts, &mut Vec::new())?;
        Some((split.thresholds, split.cost))
    }

    #[test]
    fn equal_parts_of_disjoint_rules() {
        let spans: Vec<_> = (0..10).map(|i| (i * 10, i * 10 + 9)).collect();
        let (thresholds, cost) = cut_of(&spans, 5).unwrap();
        assert!((3..=4).contains(&thresholds.len()), "{thresholds:?}");
        assert!(thresholds.iter().all(|t| t % 10 == 9), "{thresholds:?}");
        assert!(cost < 0.35, "{cost}");
    }

    #[test]
    fn thresholds_avoid_what_many_rules_cross() {
        let spans = [(0, 49), (0, 49), (0, 49), (10, 20), (50, 99), (50, 99), (50, 99), (60, 70)];
        let (thresholds, cost) = cut_of(&spans, 2).unwrap();
        assert_eq!(thresholds, [49]);
        assert!((cost - 0.5).abs() < 1e-9);
    }

    #[test]
    fn rules_that_all_cover_the_region_are_not_cut() {
        assert!(cut_of(&[(0, 99), (0, 99)], 8).is_none());
    }

    #[test]
    fn a_mass_of_equal_values_is_set_apart() {
        let mut spans = vec![(80, 80); 50];
        spans.push((10, 10));
        spans.push((90, 90));
        let (thresholds, _) = cut_of(&spans, 15).unwrap();
        assert!(thresholds.contains(&79) && thresholds.contains(&80), "{thresholds:?}");
    }
}
