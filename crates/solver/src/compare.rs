//! For tests: HiGHS and the default say the same of every program that any test poses.

use std::time::Duration;

use super::{Limits, Outcome, Program, Sense};

/// Solve again by HiGHS, and compare.
///
/// # Panics
/// They do not say the same.
pub(super) fn assert_same(program: &Program, limits: &Limits, by_default: &Outcome) {
    let by_highs = super::highs::solve(program, limits);
    // A value is a sum of terms that are each known up to the tolerance of bounds and rows.
    let terms: f64 = program.columns.iter().map(|unknown| unknown.cost.abs()).sum();
    let near = |a: f64, b: f64| (a - b).abs() <= limits.gap * a.abs().max(b.abs()) + 1e-6 * terms.max(1.0).max(a.abs());
    let is_better = |a: f64, b: f64| if program.sense == Sense::Minimise { a < b } else { a > b };
    match (&by_highs, by_default) {
        (Outcome::Best(a), Outcome::Best(b)) => assert!(near(a.value, b.value), "{a:?}\n{b:?}\n{program:?}"),
        (Outcome::Infeasible, Outcome::Infeasible) | (Outcome::Unbounded, Outcome::Unbounded) => {}
        // Out of time: what is there must not contradict the other's proof.
        (Outcome::Best(best), Outcome::Some(some)) | (Outcome::Some(some), Outcome::Best(best)) => {
            assert!(!is_better(some.value, best.value) || near(some.value, best.value), "{some:?}\n{best:?}");
            assert!(!is_better(best.value, some.bound) || near(best.value, some.bound), "{some:?}\n{best:?}");
        }
        (Outcome::Some(_), Outcome::Some(_)) => {}
        (Outcome::Nothing(_), _) | (_, Outcome::Nothing(_)) if limits.time < Duration::from_secs(1) => {}
        (a, b) => panic!("HiGHS: {a:?}\nmicrolp: {b:?}\n{limits:?} {program:?}"),
    }
}
