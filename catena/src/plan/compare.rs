//! Strategies side by side.

use std::fmt;

use catena_plan::plan::{Device, Plan, Verdict, short};
use catena_plan::problem::Objective;
use catena_plan::relation::by_level;
use catena_planner::{Case, Strategy};
use serde::Serialize;

use super::table::{count, percent};
use crate::Failure;
use crate::table::Table;
use catena_plan::figures::gbit;

/// What each strategy is that makes plans, for somebody who never met it.
const STRATEGIES: [(Strategy, &str); 9] = [
    (Strategy::Exact, "the best plan there is, proven if there is time"),
    (Strategy::Lemur, "Lemur's heuristic: few bounces, spare cores where they carry most"),
    (Strategy::Hw, "as much as possible on the switch"),
    (Strategy::Sw, "as much as possible on the servers"),
    (Strategy::MinBounce, "the fewest ways from the switch to servers and back"),
    (Strategy::Greedy, "as much as possible on the switch; spare cores to the first chain first"),
    (Strategy::NoProfiling, "Lemur's heuristic, not knowing what functions cost"),
    (Strategy::NoCores, "Lemur's heuristic, one core for each group of functions"),
    (Strategy::E2, "the least traffic between servers, then to the switch what stands next to a port"),
];

/// How much better the best may be, relative, for a plan to count as the best.
const EQUAL: f64 = 1e-6;

/// A strategy's plan.
#[derive(Serialize)]
pub struct Row {
    strategy: Strategy,
    milliseconds: f64,
    /// What it decided.
    pub plan: Plan,
}

/// Let all strategies decide.
///
/// # Errors
/// When the independent check refuses what one decided.
pub fn rows(case: &Case) -> Result<Vec<Row>, Failure> {
    let row = |&(strategy, _): &(Strategy, &str)| {
        let decision = case.decide_in_time(strategy)?;
        Ok(Row { strategy, milliseconds: decision.took.as_secs_f64() * 1e3, plan: decision.plan })
    };
    let rows = STRATEGIES.iter().map(row).collect::<Result<Vec<Row>, Failure>>()?;
    agree(&rows)?;
    Ok(rows)
}

/// What one strategy proves impossible no other one does, and what one proves to be the best no other one exceeds.
fn agree(rows: &[Row]) -> Result<(), Failure> {
    let name = |row: &Row| row.strategy.title();
    let kept = |row: &&Row| row.plan.is_kept();
    for row in rows {
        let against = match &row.plan.verdict {
            Verdict::Broken { proven: true, .. } => rows.iter().find(kept),
            Verdict::Kept { .. } if row.plan.verdict.gap().is_some_and(|gap| gap < EQUAL) => {
                rows.iter().filter(kept).find(|other| is_better(&other.plan, &row.plan))
            }
            _ => None,
        };
        if let Some(other) = against {
            let (row, other) = (name(row), name(other));
            return Err(format!("internal error: what {row} calls proven, the plan of {other} refutes").into());
        }
    }
    Ok(())
}

/// The plan that carries most beyond the promises, the first of equals.
pub fn best(rows: &[Row]) -> Option<&Plan> {
    let kept = rows.iter().map(|row| &row.plan).filter(|plan| plan.is_kept());
    kept.reduce(|best, next| if is_better(next, best) { next } else { best })
}

/// What a plan that keeps the promises is judged by: the objective's value, or that of each level where some chains come
/// first.
fn value(plan: &Plan) -> Vec<f64> {
    let rates: Vec<f64> = plan.chains.iter().map(|chain| chain.rate_bps).collect();
    let levels = by_level(&plan.problem, &rates);
    match plan.verdict {
        Verdict::Kept { marginal_bps, .. } if levels.len() < 2 => vec![marginal_bps],
        _ => levels,
    }
}

/// Whether a plan is better than another one; both keep the promises.
fn is_better(plan: &Plan, other: &Plan) -> bool {
    let nothing = EQUAL * other.rate_bps() + 1.0;
    let (mine, its) = (value(plan), value(other));
    mine.iter().zip(&its).map(|(mine, its)| mine - its).find(|more| more.abs() > nothing).is_some_and(|more| more > 0.0)
}

/// The strategies as a table, with what is in the way of those that fail.
pub struct Comparison<'a> {
    /// What was decided.
    pub case: &'a Case,
    /// By whom.
    pub rows: &'a [Row],
}

fn time(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 10_000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

fn dash() -> String {
    "-".to_owned()
}

impl Comparison<'_> {
    /// What the third column of figures is.
    fn objective(&self) -> (&'static str, &'static str) {
        match self.case.problem.objective {
            Objective::Marginal => ("beyond", "the part of it above the promises, the more the better"),
            Objective::Weighted => ("weighted", "what is above the promises, times each chain's weight"),
            Objective::Fair => {
                ("least", "what the chain that gets least has above its promise, relative to its weight")
            }
        }
    }

    /// Why strategies break promises.
    fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for row in self.rows {
            if let Verdict::Broken { why, .. } = &row.plan.verdict {
                reasons.push(format!("{}: {why}", row.strategy.title()));
            }
        }
        reasons
    }
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains = &self.case.problem.chains;
        let promised: f64 = chains.iter().map(|chain| chain.t_min_bps).sum();
        writeln!(
            f,
            "{} chain{} on the rack `{}`, promised {} Gbit/s together. Each row is another way to plan them.\n",
            chains.len(),
            if chains.len() == 1 { "" } else { "s" },
            self.case.inputs.rack.name,
            gbit(promised)
        )?;
        let mut table = Table::new(
            &[
                "strategy",
                "promises",
                "Gbit/s",
                self.objective().0,
                "cores",
                "stages",
                "on switch",
                "took",
                "what it does",
            ],
            &[false, false, true, true, true, true, true, true, false],
        );
        for row in self.rows {
            let plan = &row.plan;
            let idea = STRATEGIES.iter().find(|(name, _)| *name == row.strategy).map_or("", |(_, idea)| idea);
            let took = time(row.milliseconds);
            let name = row.strategy.title().to_owned();
            match &plan.verdict {
                Verdict::Kept { marginal_bps, .. } => {
                    let stages = plan.switch.as_ref().and_then(|s| s.stages);
                    let kept = match plan.verdict.gap() {
                        Some(gap) if gap < EQUAL => "kept, best".to_owned(),
                        Some(gap) => format!("kept, gap {}", percent(gap)),
                        None => "kept".to_owned(),
                    };
                    table.row([
                        name,
                        kept,
                        gbit(plan.rate_bps()),
                        gbit(*marginal_bps),
                        short(plan.cores_used()),
                        stages.map_or_else(dash, |(used, _)| used.to_string()),
                        count(plan, Device::is_switch).to_string(),
                        took,
                        idea.to_owned(),
                    ]);
                }
                Verdict::Broken { proven, .. } => {
                    let broken = if *proven { "impossible" } else { "broken" };
                    table.row([name, broken.to_owned(), dash(), dash(), dash(), dash(), dash(), took, idea.to_owned()]);
                }
            }
        }
        write!(f, "{table}")?;
        let reasons = self.reasons();
        if !reasons.is_empty() {
            writeln!(f, "\nWhy not:")?;
            reasons.iter().try_for_each(|reason| writeln!(f, "  {reason}"))?;
        }
        let (column, meaning) = self.objective();
        writeln!(f, "\nGbit/s: what all chains carry together; {column}: {meaning}.")?;
        let mut broken = self.rows.iter().filter_map(|row| match row.plan.verdict {
            Verdict::Broken { proven, .. } => Some(proven),
            Verdict::Kept { .. } => None,
        });
        if broken.clone().any(|proven| !proven) {
            writeln!(f, "broken: this way leads to no plan that keeps all promises; another one may.")?;
        }
        if broken.any(|proven| proven) {
            writeln!(f, "impossible: it is proven that no plan keeps all promises.")?;
        }
        let gaps: Vec<f64> = self.rows.iter().filter_map(|row| row.plan.verdict.gap()).collect();
        if gaps.iter().any(|gap| *gap < EQUAL) {
            writeln!(f, "best: it is proven that no plan is better.")?;
        }
        if gaps.iter().any(|gap| *gap >= EQUAL) {
            writeln!(
                f,
                "gap: the most that a better plan could have more; the search ended before it was settled (--time-limit)."
            )?;
        }
        let all = self.rows.first().map_or(0, |row| row.plan.cores());
        let stages = self.rows.iter().find_map(|row| row.plan.switch.as_ref()?.stages.map(|(_, all)| all));
        let stages =
            stages.map_or(String::new(), |stages| format!("; stages: of {stages} stages or tables of the switch"));
        writeln!(f, "cores: of {all} that servers have for functions{stages}; on switch: so many functions.")?;
        match best(self.rows) {
            Some(plan) => {
                let equal = self.rows.iter().filter(|row| row.plan.is_kept() && !is_better(plan, &row.plan));
                let names: Vec<&str> = equal.map(|row| row.strategy.title()).collect();
                writeln!(
                    f,
                    "\nBest here: {}. See what runs where: catena plan … --strategy {}",
                    names.join(", "),
                    plan.strategy
                )
            }
            None => {
                writeln!(f, "\nNone keeps the promises. See what would help: catena plan … --strategy exact")
            }
        }
    }
}
