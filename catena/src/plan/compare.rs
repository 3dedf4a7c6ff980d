//! Strategies side by side.

use std::fmt;

use catena_plan::plan::{Device, Plan, Verdict, short};
use serde::Serialize;

use super::planner::Case;
use super::table::{count, gbit};
use crate::arguments::StrategyName;
use crate::table::Table;

/// What each strategy is, for somebody who never met it.
const STRATEGIES: [(StrategyName, &str); 8] = [
    (StrategyName::Exact, "the best plan there is, with proof"),
    (StrategyName::Lemur, "Lemur's heuristic: few bounces, spare cores where they carry most"),
    (StrategyName::Hw, "as much as possible on the switch"),
    (StrategyName::Sw, "as much as possible on the servers"),
    (StrategyName::MinBounce, "the fewest ways between switch and servers"),
    (StrategyName::Greedy, "as much as possible on the switch; spare cores to the first chain first"),
    (StrategyName::NoProfiling, "Lemur's heuristic, ignorant of what functions cost"),
    (StrategyName::NoCores, "Lemur's heuristic, one core for each group of functions"),
];

/// A strategy's plan.
#[derive(Serialize)]
pub struct Row {
    strategy: StrategyName,
    milliseconds: f64,
    /// What it decided.
    pub plan: Plan,
}

/// Let all strategies decide.
pub fn rows(case: &Case) -> Vec<Row> {
    let row = |&(strategy, _): &(StrategyName, &str)| {
        let decision = case.decide(strategy);
        Row { strategy, milliseconds: decision.took.as_secs_f64() * 1e3, plan: decision.plan }
    };
    STRATEGIES.iter().map(row).collect()
}

/// The plan that carries most beyond the promises, the first of equals.
pub fn best(rows: &[Row]) -> Option<&Plan> {
    let marginal = |plan: &Plan| match plan.verdict {
        Verdict::Kept { marginal_bps, .. } => marginal_bps,
        Verdict::Broken { .. } => f64::NEG_INFINITY,
    };
    let kept = rows.iter().map(|row| &row.plan).filter(|plan| plan.is_kept());
    kept.reduce(|best, next| if marginal(next) > marginal(best) { next } else { best })
}

/// The strategies as a table, with what is in the way of those that fail.
pub struct Comparison<'a> {
    /// What was decided.
    pub case: &'a Case,
    /// By whom.
    pub rows: &'a [Row],
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains = &self.case.problem.chains;
        let promised: f64 = chains.iter().map(|chain| chain.t_min_bps).sum();
        writeln!(
            f,
            "{} chains on the rack `{}`; together they are promised {} Gbit/s.\n",
            chains.len(),
            self.case.inputs.rack.name,
            gbit(promised)
        )?;
        let mut table = Table::new(
            &["strategy", "promises", "Gbit/s", "beyond", "cores", "stages", "on switch", "took", "what it does"],
            &[false, false, true, true, true, true, true, true, false],
        );
        for row in self.rows {
            let plan = &row.plan;
            let idea = STRATEGIES.iter().find(|(name, _)| *name == row.strategy).map_or("", |(_, idea)| idea);
            let took = match row.milliseconds {
                ms if ms < 10.0 => format!("{ms:.1} ms"),
                ms if ms < 10_000.0 => format!("{ms:.0} ms"),
                ms => format!("{:.1} s", ms / 1e3),
            };
            let name = row.strategy.title().to_owned();
            let dash = || "-".to_owned();
            match &plan.verdict {
                Verdict::Kept { marginal_bps, .. } => {
                    let stages = plan.switch.as_ref().and_then(|s| s.stages);
                    let kept = match plan.verdict.gap() {
                        Some(gap) if gap < 1e-6 => "kept, best",
                        _ => "kept",
                    };
                    table.row([
                        name,
                        kept.to_owned(),
                        gbit(plan.rate_bps()),
                        gbit(*marginal_bps),
                        short(plan.cores_used()),
                        stages.map_or_else(dash, |(used, _)| used.to_string()),
                        count(plan, Device::Switch).to_string(),
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
        let broken: Vec<(&str, &str)> = self
            .rows
            .iter()
            .filter_map(|row| match &row.plan.verdict {
                Verdict::Broken { why, .. } => Some((row.strategy.title(), why.as_str())),
                Verdict::Kept { .. } => None,
            })
            .collect();
        if !broken.is_empty() {
            writeln!(f, "\nWhy promises are broken:")?;
            for (strategy, why) in broken {
                writeln!(f, "  {strategy}: {why}")?;
            }
        }
        let available =
            |of: fn(&catena_plan::plan::Plan) -> Option<u64>| self.rows.iter().find_map(|row| of(&row.plan));
        let stages = available(|plan| plan.switch.as_ref()?.stages.map(|(_, all)| all));
        let all = self.rows.first().map_or(0, |row| row.plan.cores());
        writeln!(
            f,
            "\nGbit/s: what all chains carry; beyond: more than promised, the more the better; \"best\": no plan has more."
        )?;
        match stages {
            Some(stages) => {
                writeln!(f, "There are {all} cores for functions and {stages} stages or tables in the switch.")?
            }
            None => writeln!(f, "There are {all} cores for functions.")?,
        }
        match best(self.rows) {
            Some(plan) => writeln!(f, "See what runs where: catena plan … --strategy {}", plan.strategy),
            None => writeln!(f, "See what would help: catena plan … --strategy exact"),
        }
    }
}
