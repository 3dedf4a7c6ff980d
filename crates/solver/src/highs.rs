//! HiGHS, for whoever asks for it: faster on large integer programs.

use highs::{Col, HighsModelStatus, HighsSolutionStatus, RowProblem, Sense as Direction};

use super::{Limits, Outcome, Program, Sense, Solution};

/// Solve.
pub(super) fn solve(program: &Program, limits: &Limits) -> Outcome {
    let (direction, unknown) = match program.sense {
        Sense::Minimise => (Direction::Minimise, f64::NEG_INFINITY),
        Sense::Maximise => (Direction::Maximise, f64::INFINITY),
    };
    let Ok(mut model) = problem(program).try_optimise(direction) else { return Outcome::Nothing(unknown) };
    model.make_quiet();
    // Options that a version lacks would only make it slower or less exact: their errors are not errors.
    // One thread: the same answer every time.
    let _ = model.try_set_option("threads", 1);
    let _ = model.try_set_option("time_limit", limits.time.as_secs_f64().max(0.001));
    let _ = model.try_set_option("mip_rel_gap", limits.gap);
    let _ = model.try_set_option("mip_abs_gap", 1e-9);
    let _ = model.try_set_option("mip_feasibility_tolerance", limits.feasibility);
    let _ = model.try_set_option("primal_feasibility_tolerance", limits.feasibility);
    let _ = model.try_set_option("dual_feasibility_tolerance", limits.feasibility);
    let Ok(solved) = model.try_solve() else { return Outcome::Nothing(unknown) };
    let best = match solved.status() {
        HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible => return Outcome::Infeasible,
        HighsModelStatus::Unbounded => return Outcome::Unbounded,
        HighsModelStatus::Optimal => true,
        _ => false,
    };
    let value = solved.objective_value();
    let bound = match solved.double_info_value(c"mip_dual_bound") {
        Ok(bound) if program.has_integers() && bound.is_finite() => bound,
        _ if best => value,
        _ => unknown,
    };
    let feasible = Ok(HighsSolutionStatus::Feasible as i64);
    if !best && solved.int_info_value(c"primal_solution_status") != feasible {
        return Outcome::Nothing(bound);
    }
    let solution = Solution { values: solved.get_solution().columns().to_vec(), value, bound };
    if best { Outcome::Best(solution) } else { Outcome::Some(solution) }
}

fn problem(program: &Program) -> RowProblem {
    let mut problem = RowProblem::new();
    let columns: Vec<Col> = program
        .columns
        .iter()
        .map(|unknown| {
            let bounds = unknown.low..=unknown.high;
            match unknown.integer {
                true => problem.add_integer_column(unknown.cost, bounds),
                false => problem.add_column(unknown.cost, bounds),
            }
        })
        .collect();
    for row in &program.rows {
        let terms: Vec<(Col, f64)> = row.terms.iter().map(|(c, factor)| (columns[c.0], *factor)).collect();
        problem.add_row(row.low..=row.high, terms);
    }
    problem
}
