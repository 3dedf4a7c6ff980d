//! A plan as a picture: the rack with its cores and links on top, below it each chain's way through it.

mod rack;
mod svg;
mod ways;

use crate::plan::{Plan, Verdict, gigabits};
use svg::Svg;

/// Colours of chains: told apart by people who see few colours too (Okabe and Ito's, and four more).
const COLOURS: [&str; 10] =
    ["#0072b2", "#d55e00", "#009e73", "#b5488f", "#b8860b", "#3b4cc0", "#7a5230", "#2f8f9d", "#8b1a1a", "#5f6b6d"];
/// Text.
const INK: &str = "#1f2933";
/// Text that matters less.
const FAINT: &str = "#66727f";
/// Space around everything.
const MARGIN: f64 = 28.0;

/// The colour of a chain, by its index.
fn colour(chain: usize) -> &'static str {
    COLOURS[chain % COLOURS.len()]
}

/// The plan as an SVG picture.
#[must_use]
pub fn draw(plan: &Plan) -> String {
    let width = ways::width(plan).max(rack::width(plan)).max(760.0);
    let mut svg = Svg::new(width + 2.0 * MARGIN);
    svg.text(MARGIN, 42.0, 21.0, INK, "600", &plan.rack);
    svg.text(MARGIN, 64.0, 13.0, FAINT, "400", &summary(plan));
    let below = rack::draw(&mut svg, plan, MARGIN, 84.0, width);
    let below = ways::draw(&mut svg, plan, MARGIN, below + 26.0, width);
    svg.finish(below + MARGIN)
}

/// One line: who planned, whether the promises are kept, how good that is.
fn summary(plan: &Plan) -> String {
    let by = format!("strategy {}", plan.strategy);
    match &plan.verdict {
        Verdict::Broken { why, .. } => format!("{by}: the promises cannot be kept: {why}"),
        Verdict::Kept { .. } if plan.has_no_rates() => "nothing promised: every worker runs all chains".to_owned(),
        Verdict::Kept { marginal_bps, .. } => {
            let proof = match plan.verdict.gap() {
                Some(gap) if gap < 1e-6 => "; no plan carries more".to_owned(),
                Some(gap) => format!("; at most {:.1}% more is possible", gap / (1.0 - gap).max(1e-9) * 100.0),
                None => String::new(),
            };
            let (all, more) = (gigabits(plan.rate_bps()), gigabits(*marginal_bps));
            format!("{by}: all promises kept, {all} Gbit/s in all, {more} beyond the promises{proof}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_told_apart() {
        let mut sorted = COLOURS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), COLOURS.len());
        assert_eq!(colour(10), colour(0));
    }
}
