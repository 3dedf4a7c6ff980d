//! `catena plan`: where every function runs, on how many cores, and why.

mod changes;
mod compare;
mod e2;
mod functions;
mod inputs;
mod planner;
mod quick;
mod remedied;
mod table;

pub use functions::own;
pub use inputs::Inputs;
pub use planner::Case;
pub use quick::kept;
pub use table::Text;

use std::path::Path;
use std::process::ExitCode;

use catena_plan::explain::draw::draw;
use catena_policy::{PolicyGraph, Value};

use crate::arguments::{PlanOptions, StrategyName};
use crate::inode::Uses;
use crate::streams::{print, tell};
use crate::{Failure, file};

/// Plan chains on a rack.
///
/// # Errors
/// When a file is wrong, or a chain cannot be planned at all.
pub fn plan(options: &PlanOptions) -> Result<ExitCode, Failure> {
    let files: Vec<&std::path::PathBuf> = [&options.draw, &options.output].into_iter().flatten().collect();
    if options.schema {
        print(serde_json::to_string_pretty(&catena_plan::plan::schema())? + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let strategy = options.strategy();
    if strategy == StrategyName::E2 && !files.is_empty() {
        return Err(
            "--strategy e2 prints plans of its own kind: --draw and --output are for the other strategies".into()
        );
    }
    if strategy == StrategyName::Keep && options.from.is_none() {
        return Err("--strategy keep is for a plan that runs: --from OLD.json names it".into());
    }
    check_files(options, None)?;
    let inputs = Inputs::read(options)?;
    check_files(options, Some(&inputs.graph))?;
    // Before the time that planning may take.
    files.iter().try_for_each(|path| file::check_writable(path))?;
    let case = Case::new(inputs, options)?;
    if options.compare {
        let rows = compare::rows(&case)?;
        match compare::best(&rows) {
            Some(best) => write(options, best)?,
            None => files.iter().for_each(|path| {
                tell(format_args!("catena: {} is not written: no plan keeps the promises\n", path.display()));
            }),
        }
        let e2 = compare::e2_row(&case);
        match options.json {
            true => {
                let mut all = rows.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
                all.push(serde_json::to_value(&e2)?);
                print(serde_json::to_string_pretty(&all)? + "\n")?;
            }
            false => print(compare::Comparison { case: &case, rows: &rows, e2: &e2 })?,
        }
        return Ok(if rows.iter().any(|row| row.plan.is_kept()) { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if strategy == StrategyName::E2 {
        let decided = e2::decide(&case)?;
        match options.json {
            true => print(decided.json()? + "\n")?,
            false => print(&decided)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let plan = case.explained(strategy)?;
    let changed = case.changed(&plan);
    let text = Text { plan: &plan, edits: &options.what_if, changed: &changed };
    write(options, &plan)?;
    match options.json {
        true => print(serde_json::to_string_pretty(&plan)? + "\n")?,
        // Whoever reads the plan on standard output reads nothing else there.
        false if files.iter().any(|path| path.as_os_str() == "-") => {
            tell(&text);
        }
        false => print(&text)?,
    }
    Ok(if plan.is_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Refuse to write over what the plan is made of, or one file over the other: of `graph`, over what its functions name.
fn check_files(options: &PlanOptions, graph: Option<&PolicyGraph>) -> Result<(), catena_runtime::Failure> {
    let mut uses = Uses::default();
    options.files.iter().try_for_each(|path| uses.reads("the chain file", path))?;
    for node in graph.iter().flat_map(|graph| &graph.chains).flat_map(|chain| &chain.nodes) {
        for (name, value) in &node.args {
            add(&mut uses, &format!("`{name}` of `{}`", node.name), value)?;
        }
    }
    options.rack.iter().try_for_each(|path| uses.reads("--rack", path))?;
    options.from.iter().try_for_each(|path| uses.reads("--from", path))?;
    quick::named(options).iter().try_for_each(|path| uses.reads("--profile", path))?;
    options.output.iter().try_for_each(|path| uses.writes("--output", path.as_path()))?;
    options.draw.iter().try_for_each(|path| uses.writes("--draw", path.as_path()))
}

/// Add the files that an argument was read from, or that its text names: a library, an export.
fn add(uses: &mut Uses, what: &str, value: &Value) -> Result<(), catena_runtime::Failure> {
    match value {
        Value::File { path, .. } => uses.reads(what, Path::new(path)),
        Value::Text(text) if Path::new(text).is_file() => uses.reads(what, Path::new(text)),
        Value::List(values) => values.iter().try_for_each(|value| add(uses, what, value)),
        Value::Record(fields) => fields.iter().try_for_each(|(_, value)| add(uses, what, value)),
        _ => Ok(()),
    }
}

/// Write the files that were asked for: before anything is printed, whose reader may have gone away.
fn write(options: &PlanOptions, plan: &catena_plan::plan::Plan) -> Result<(), Failure> {
    if let Some(path) = &options.draw {
        file::write(path, draw(plan))?;
    }
    if let Some(path) = &options.output {
        file::write(path, serde_json::to_string_pretty(plan)? + "\n")?;
    }
    Ok(())
}
