//! `catena bench report`: tables and plots from benchmark results, and the comparison of two revisions.

use std::path::Path;
use std::process::{Command, ExitCode};

use catena_records::{Record, record, report};

use crate::arguments::{BenchCommand, ReportOptions};
use crate::inode::Uses;
use crate::streams::print;
use crate::{Failure, file};

/// Do what a bench subcommand asks for.
///
/// # Errors
/// When results cannot be read.
pub fn bench(command: &BenchCommand) -> Result<ExitCode, Failure> {
    let BenchCommand::Report(options) = command;
    let mut uses = Uses::default();
    options.files.iter().try_for_each(|path| uses.reads("the results", path))?;
    options.into.iter().try_for_each(|path| uses.writes("--into", path.as_path()))?;
    options.plot.iter().try_for_each(|path| uses.writes("--plot", path.as_path()))?;
    let records = read(options)?;
    if let Some(revision) = &options.compare {
        let mut before = Vec::new();
        for path in &options.files {
            before.extend(parse(&at_revision(revision, path)?, &format!("{revision}:{}", path.display()))?);
        }
        print(report::compare(&before, &records))?;
    } else {
        print(report::table(&records))?;
    }
    if let Some(page) = &options.into {
        let name = records.first().map_or("", |record| &record.bench);
        insert(page, name, &report::table(&records))?;
    }
    if let Some(picture) = &options.plot {
        let unit = records.first().map_or("", |record| &record.unit);
        file::write(picture, report::plot(&records, unit))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Replace what stands between a page's two marks.
fn insert(page: &Path, name: &str, table: &str) -> Result<(), Failure> {
    let path = page.display();
    let text = std::fs::read_to_string(page).map_err(|error| format!("{path}: {error}"))?;
    let (opening, closing) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let parts = text.split_once(&opening).and_then(|(before, rest)| Some((before, rest.split_once(&closing)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{path}: has no lines {} and {closing}", opening.trim()))?;
    file::write(page, format!("{before}{opening}\n{table}\n{closing}{after}"))
}

fn read(options: &ReportOptions) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    for path in &options.files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{name}: {error}; `make bench` measures and writes it"))?;
        records.extend(parse(&text, &name)?);
    }
    if let Some(unit) = &options.unit {
        records.retain(|record| record.unit == *unit);
    }
    Ok(records)
}

fn parse(text: &str, name: &str) -> Result<Vec<Record>, Failure> {
    record::parse(text).map_err(|error| Failure(format!("{name}: {error}")))
}

/// Return a file's text as it was at a revision.
fn at_revision(revision: &str, path: &Path) -> Result<String, Failure> {
    // A revision that looks like an option must not become one.
    let object = format!("{revision}:./{}", path.display());
    let output = Command::new("git").args(["show", "--end-of-options", &object]).output()?;
    if !output.status.success() {
        return Err(format!("git show {object}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
