//! The default solver: `microlp`, a simplex method with branch and bound in Rust.

use microlp::{ComparisonOp, Error, OptimizationDirection, Problem, SolutionStatus, SolveOptions, SolveOutcome};
use microlp::{TerminationReason, Variable};

use super::{Limits, Outcome, Program, Sense, Solution};

/// An integer that stands for "without limit": more than any count that planning knows.
const MOST: f64 = 1e9;
/// `microlp` takes no tolerance below this.
const LEAST_TOLERANCE: f64 = 1e-10;

/// Solve.
pub(super) fn solve(program: &Program, limits: &Limits) -> Outcome {
    let (problem, variables) = problem(program);
    let mut options = SolveOptions::default();
    options.time_limit = Some(limits.time);
    options.mip_gap = limits.gap;
    options.tolerances.feasibility = limits.feasibility.max(LEAST_TOLERANCE);
    let unknown = match program.sense {
        Sense::Minimise => f64::NEG_INFINITY,
        Sense::Maximise => f64::INFINITY,
    };
    match problem.solve_with(options) {
        Ok(SolveOutcome::Solution(solved)) => {
            let values = variables.iter().map(|v| solved.var_value(*v)).collect();
            let value = solved.objective();
            let enough =
                solved.status() == SolutionStatus::Optimal || solved.termination_reason() == TerminationReason::MipGap;
            let bound = if solved.status() == SolutionStatus::Optimal {
                value
            } else {
                solved.stats().best_bound.unwrap_or(unknown)
            };
            let solution = Solution { values, value, bound };
            if enough { Outcome::Best(solution) } else { Outcome::Some(solution) }
        }
        Ok(interrupted) => Outcome::Nothing(interrupted.stats().best_bound.unwrap_or(unknown)),
        Err(Error::Infeasible) => Outcome::Infeasible,
        Err(Error::Unbounded) => Outcome::Unbounded,
        // Numerical failures: it returns no answer that it could not verify.
        Err(_) => Outcome::Nothing(unknown),
    }
}

fn problem(program: &Program) -> (Problem, Vec<Variable>) {
    let mut problem = Problem::new(match program.sense {
        Sense::Minimise => OptimizationDirection::Minimize,
        Sense::Maximise => OptimizationDirection::Maximize,
    });
    let bounds = program.bounds();
    let column = |(unknown, &(low, high)): (&super::Unknown, &(f64, f64))| {
        if unknown.integer {
            let whole = |bound: f64| bound.clamp(-MOST, MOST) as i32;
            problem.add_integer_var(unknown.cost, (whole(low.ceil()), whole(high.floor())))
        } else {
            problem.add_var(unknown.cost, (low, high))
        }
    };
    let variables: Vec<Variable> = program.columns.iter().zip(&bounds).map(column).collect();
    for row in program.rows.iter().filter(|row| row.terms.len() > 1) {
        let terms: Vec<(Variable, f64)> = row.terms.iter().map(|(c, factor)| (variables[c.0], *factor)).collect();
        let mut add = |op, bound| problem.add_constraint(terms.as_slice(), op, bound);
        if row.low == row.high {
            add(ComparisonOp::Eq, row.low);
            continue;
        }
        if row.low > f64::NEG_INFINITY {
            add(ComparisonOp::Ge, row.low);
        }
        if row.high < f64::INFINITY {
            add(ComparisonOp::Le, row.high);
        }
    }
    (problem, variables)
}
