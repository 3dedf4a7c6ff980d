//! `catena show`: any stage of a chain file's way to packets.

use std::io::Write;
use std::process::{ExitCode, Stdio};

use catena_plan::explain::draw::draw;
use catena_plan::plan::Plan;

use crate::Failure;
use crate::arguments::{Format, ShowOptions, Stage};
use crate::plan::Text;
use crate::streams::{Printable, print, print_bytes};
use crate::trial::counts;
use crate::{chain, file, run, trial};

/// Show a stage.
///
/// # Errors
/// When the file is wrong, or a picture cannot be drawn.
pub fn show(options: &ShowOptions) -> Result<ExitCode, Failure> {
    // Read once: it may be a pipe.
    let source = file::read(&options.file, "a chain file")?;
    if source.trim_start().starts_with('{') {
        return saved(&source, options);
    }
    let loaded = chain::parsed(&options.file, source)?;
    let (text, dot, json) = match options.stage {
        Stage::Plan => {
            let (plan, holds_all) = run::planned(&loaded, options)?;
            return shown(&plan, holds_all, options.format);
        }
        Stage::Policy => (loaded.graph.to_string(), loaded.graph.to_dot(), serde_json::to_value(&loaded.graph)?),
        Stage::Host => {
            let host = catena_compile::lower(&loaded.graph)?;
            (host.to_string(), host.dot(), host.json())
        }
        Stage::Reduced => {
            let (host, findings) = trial::lower_and_reduce(&loaded, counts(options.early_drops))?;
            let mut json = findings.json();
            json["host"] = host.json();
            (format!("{findings}\n{host}"), host.dot(), json)
        }
    };
    match options.format {
        Format::Text => print(text)?,
        Format::Dot => print(dot)?,
        Format::Json => print(serde_json::to_string_pretty(&json)? + "\n")?,
        Format::Svg => print_bytes(&svg(&dot)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Show a plan that was written: as `catena plan` printed it.
fn saved(source: &str, options: &ShowOptions) -> Result<ExitCode, Failure> {
    let name = options.file.display();
    if options.stage != Stage::Plan {
        return Err(format!("{name}: this is no chain file; a plan is shown by --stage plan").into());
    }
    let of_a_file = [
        ("--workers", options.workers.is_some()),
        ("--in", options.input.is_some()),
        ("--seed", options.seed.is_some()),
    ];
    if let Some((option, _)) = of_a_file.into_iter().find(|(_, given)| *given) {
        return Err(format!("{option}: {name} is a plan, which has its own; the option is for a chain file").into());
    }
    let plan = Plan::from_json(source).map_err(|error| format!("{name}: {error}"))?;
    let holds_all = plan.keeps_all();
    shown(&plan, holds_all, options.format)
}

/// Show a plan.
fn shown(plan: &Plan, holds_all: bool, format: Format) -> Result<ExitCode, Failure> {
    match format {
        Format::Text => print(Printable(Text { plan }))?,
        Format::Json => print(serde_json::to_string_pretty(plan)? + "\n")?,
        Format::Svg => print(draw(plan))?,
        Format::Dot => return Err("--format dot: a plan is no graph; --format svg draws it".into()),
    }
    Ok(if holds_all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Let Graphviz draw.
fn svg(dot: &str) -> Result<Vec<u8>, Failure> {
    let missing = |error: std::io::Error| {
        format!("Graphviz's `dot` cannot be run ({error}); install graphviz, or use --format dot")
    };
    let command = std::process::Command::new("dot").arg("-Tsvg").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = command.map_err(missing)?;
    let mut stdin = child.stdin.take().ok_or("no pipe to `dot`")?;
    let text = dot.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "writing to `dot` failed")??;
    if !output.status.success() {
        return Err(format!("`dot` failed: {}", output.status).into());
    }
    Ok(output.stdout)
}
