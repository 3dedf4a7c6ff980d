//! `catena plan`: where every function runs, on how many cores, and why.

mod compare;
mod e2;
mod functions;
mod inputs;
mod planner;
mod table;

use std::process::ExitCode;

use catena_plan::explain::draw::draw;

use crate::Failure;
use crate::arguments::{PlanOptions, StrategyName};

/// Plan chains on a rack.
///
/// # Errors
/// When a file is wrong, or a chain cannot be planned at all.
pub fn plan(options: &PlanOptions) -> Result<ExitCode, Failure> {
    let inputs = inputs::Inputs::read(options)?;
    let case = planner::Case::new(inputs, options)?;
    if options.compare {
        let rows = compare::rows(&case);
        if let Some(best) = compare::best(&rows) {
            write(options, best)?;
        }
        let e2 = compare::e2_row(&case);
        match options.json {
            true => {
                let mut all = rows.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
                all.push(serde_json::to_value(&e2)?);
                println!("{}", serde_json::to_string_pretty(&all)?);
            }
            false => print!("{}", compare::Comparison { case: &case, rows: &rows, e2: &e2 }),
        }
        return Ok(if rows.iter().any(|row| row.plan.is_kept()) { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if options.strategy == StrategyName::E2 {
        let decided = e2::decide(&case)?;
        match options.json {
            true => println!("{}", decided.json()?),
            false => print!("{decided}"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let plan = case.explained(options.strategy);
    write(options, &plan)?;
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&plan)?),
        false => print!("{}", table::Text { plan: &plan, edits: &options.what_if }),
    }
    Ok(if plan.is_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Write the files that were asked for: before anything is printed, whose reader may have gone away.
fn write(options: &PlanOptions, plan: &catena_plan::plan::Plan) -> Result<(), Failure> {
    let named = |path: &std::path::Path, error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(path) = &options.draw {
        std::fs::write(path, draw(plan)).map_err(|error| named(path, error))?;
    }
    if let Some(path) = &options.output {
        let text = serde_json::to_string_pretty(plan)? + "\n";
        std::fs::write(path, text).map_err(|error| named(path, error))?;
    }
    Ok(())
}
