//! `catena plan`: where every function runs, on how many cores, and why.

mod changes;
mod compare;
mod table;

pub use table::Text;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use catena_plan::alpine;
use catena_plan::demand;
use catena_plan::explain::draw::draw;
use catena_plan::problem::{Objective, Replication};
use catena_planner::{Asked, Case, Costs, How, Inputs, Remark, Runs, Strategy, quick};
use catena_policy::{PolicyGraph, Value};
use catena_runtime::fresh_seed;
use catena_runtime::planned::not_here;

use crate::arguments::{ObjectiveName, PlanOptions, TasksName};
use crate::inode::{Identity, Uses, is_stdout};
use crate::streams::{Printable, print, tell};
use crate::{Failure, chain, file, profile};

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
    if strategy == Strategy::Keep && options.from.is_none() {
        return Err("--strategy keep is for a plan that runs: --from OLD.json names it".into());
    }
    check_files(options, None)?;
    // Before the time that measuring and planning may take.
    files.iter().try_for_each(|path| file::check_writable(path))?;
    let inputs = inputs(options)?;
    check_files(options, Some(&inputs.graph))?;
    let case = Case::new(inputs, how(options), runs(options)?)?;
    if options.compare {
        let rows = compare::rows(&case)?;
        match compare::best(&rows) {
            Some(best) => write(options, best)?,
            None => files.iter().for_each(|path| {
                tell(format_args!("catena: {} is not written: no plan keeps the promises\n", path.display()));
            }),
        }
        match options.json {
            true => print(serde_json::to_string_pretty(&rows)? + "\n")?,
            false => print(compare::Comparison { case: &case, rows: &rows })?,
        }
        return Ok(if rows.iter().any(|row| row.plan.is_kept()) { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let plan = case.explained(strategy, &remark)?;
    let text = Printable(Text { plan: &plan });
    write(options, &plan)?;
    match options.json {
        true => print(serde_json::to_string_pretty(&plan)? + "\n")?,
        // Whoever reads the plan on standard output reads nothing else there.
        false if files.iter().any(|path| is_stdout(path)) => {
            tell(&text);
        }
        false => print(&text)?,
    }
    Ok(if plan.is_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Read all files; what is found in them is printed.
fn inputs(options: &PlanOptions) -> Result<Inputs, Failure> {
    let asked = Asked {
        files: &options.files,
        rack: options.rack.as_deref().ok_or("--rack RACK.toml says on what to plan")?,
        costs: costs(options),
        paper: options.paper,
        edits: &options.what_if,
        papers_replication: options.paper_replication,
    };
    Ok(Inputs::read(&asked, &remark)?)
}

/// Where costs are taken from: `--profile none` is no file.
fn costs(options: &PlanOptions) -> Costs<'_> {
    match options.profile.as_deref() {
        None => Costs::Measured,
        Some(path) if path == Path::new("none") => Costs::Papers,
        Some(path) => Costs::File(path),
    }
}

/// How to decide.
fn how(options: &PlanOptions) -> How {
    let objective = match options.objective {
        ObjectiveName::Marginal => Objective::Marginal,
        ObjectiveName::Weighted => Objective::Weighted,
        ObjectiveName::Fair => Objective::Fair,
    };
    let replication = if options.paper_replication { Replication::Paper } else { Replication::ByState };
    let tasks = match options.tasks {
        TasksName::Fewest => alpine::Objective::FewestTasks,
        TasksName::MostPackets => alpine::Objective::MostPackets,
    };
    let margin = f64::from(options.margin) / 100.0;
    How { options: demand::Options { replication, objective }, tasks, time: options.time_limit, margin }
}

/// What runs, if anything does.
fn runs(options: &PlanOptions) -> Result<Runs, Failure> {
    Ok(match &options.from {
        None => Runs::Nothing(options.seed.unwrap_or_else(fresh_seed)),
        Some(path) => Runs::read(path, options.overloaded.clone())?,
    })
}

/// Refuse to write over what the plan is made of, or one file over the other: of `graph`, over what its functions name.
fn check_files(options: &PlanOptions, graph: Option<&PolicyGraph>) -> Result<(), catena_runtime::Failure> {
    let mut uses = Uses::default();
    let places: Vec<Option<Identity>> = options.files.iter().map(|path| Identity::of(path)).collect();
    for (id, place) in places.iter().enumerate() {
        if let Some(first) = places[..id].iter().position(|other| place.is_some() && other == place) {
            let (path, number) = (options.files[id].display(), id + 1);
            let also = options.files[first].display();
            return Err(format!(
                "{path}: chain file {number} is chain file {} again ({also}); give it once",
                first + 1
            )
            .into());
        }
    }
    options.files.iter().try_for_each(|path| uses.reads("the chain file", path))?;
    for node in graph.iter().flat_map(|graph| &graph.chains).flat_map(|chain| &chain.nodes) {
        for (name, value) in &node.args {
            add(&mut uses, &format!("`{name}` of `{}`", node.name), value)?;
        }
    }
    options.rack.iter().try_for_each(|path| uses.reads("--rack", path))?;
    options.from.iter().try_for_each(|path| uses.reads("--from", path))?;
    match costs(options) {
        Costs::File(path) => uses.reads("--profile", path)?,
        Costs::Measured => {
            quick::path().iter().try_for_each(|path| uses.reads("what is kept of this machine", path))?
        }
        Costs::Papers => {}
    }
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
    // Who plans again may be without a plan that is kept, and must not lose the one that runs.
    if let Some(path) = options.output.as_ref().filter(|path| !plan.is_kept() && path.is_file()) {
        tell(format_args!("catena: {} is left as it was: this plan does not keep all promises\n", path.display()));
    } else if let Some(path) = &options.output {
        file::write(path, serde_json::to_string_pretty(plan)? + "\n")?;
        if let Some(why) = unrunnable(options, plan) {
            tell(format_args!("catena: {} is not for `catena run --plan` here: {why}\n", path.display()));
        }
    }
    Ok(())
}

/// Why this machine's run would not take a plan that is kept; None: it would.
fn unrunnable(options: &PlanOptions, plan: &catena_plan::plan::Plan) -> Option<String> {
    if !plan.is_kept() {
        return None;
    }
    let several = (options.files.len() > 1)
        .then(|| "it is of several chain files, and a run takes one; put the chains into one file".to_owned());
    not_here(plan).or(several)
}

/// Tell what planning has to say before there is a plan. What is done is a line over the one before, where somebody sees it.
fn remark(remark: &Remark<'_>) {
    let lines = std::io::stderr().is_terminal();
    match remark {
        Remark::Findings { diagnostics, name, source } => chain::print(diagnostics, name, source),
        Remark::Step(step) if lines => profile::tell(step, lines),
        Remark::Seeking(_) if lines => tell(format_args!("\r\x1b[K{remark} ...")),
        Remark::Measured | Remark::Sought if lines => tell("\r\x1b[K"),
        Remark::Step(_) | Remark::Measured | Remark::Seeking(_) | Remark::Sought => {}
        _ => tell(format_args!("catena: {remark}\n")),
    }
}
