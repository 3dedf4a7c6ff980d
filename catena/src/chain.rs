//! Reading chain files: `check` and `fmt`, and the loading that all commands share.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use catena_compile::library::signatures;
use catena_policy::{Diagnostic, Disk, PolicyGraph, Severity};

use crate::Failure;
use crate::arguments::{CheckOptions, FmtOptions};

/// A chain file that was read.
pub struct Loaded {
    /// Its name, as given.
    pub name: String,
    /// Its text.
    pub source: String,
    /// What it says.
    pub graph: PolicyGraph,
}

/// Read a chain file; what is wrong with it is printed, warnings too.
///
/// # Errors
/// When it cannot be read or run.
pub fn load(path: &Path) -> Result<Loaded, Failure> {
    let (name, source) = read(path)?;
    let outcome = catena_policy::load(&name, &source, &signatures(), &Disk);
    print(&outcome.diagnostics, &name, &source);
    match outcome.graph {
        Some(graph) if errors(&outcome.diagnostics) == 0 => Ok(Loaded { name, source, graph }),
        _ => Err(Failure(format!("{name}: {}", summary(&outcome.diagnostics)))),
    }
}

/// Check chain files.
///
/// # Errors
/// When one cannot be read.
pub fn check(options: &CheckOptions) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    for path in &options.files {
        let (name, source) = read(path)?;
        let outcome = catena_policy::load(&name, &source, &signatures(), &Disk);
        print(&outcome.diagnostics, &name, &source);
        // Arguments that only a function can judge are judged by building it once.
        let refused = match &outcome.graph {
            Some(graph) if errors(&outcome.diagnostics) == 0 => crate::run::try_build(graph).err(),
            _ => None,
        };
        if let Some(Failure(message)) = &refused {
            eprintln!("error: {message}");
        }
        if errors(&outcome.diagnostics) > 0 || refused.is_some() {
            code = ExitCode::FAILURE;
            println!("{name}: {}", refused.map_or_else(|| summary(&outcome.diagnostics), |_| "1 error".to_owned()));
        } else if let Some(graph) = &outcome.graph {
            let functions: usize = graph.chains.iter().map(|chain| chain.nodes.len()).sum();
            let (chains, classes) = (count(graph.chains.len(), "chain"), count(graph.classes.len(), "class"));
            println!("{name}: {chains}, {}, {classes}: good", count(functions, "function"));
        }
    }
    Ok(code)
}

/// Format chain files.
///
/// # Errors
/// When one cannot be read, written or parsed.
pub fn fmt(options: &FmtOptions) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    for path in &options.files {
        let (name, source) = read(path)?;
        let formatted = catena_policy::format(&source).map_err(|diagnostics| {
            print(&diagnostics, &name, &source);
            Failure(format!("{name}: {}", summary(&diagnostics)))
        })?;
        if options.check {
            if formatted != source {
                println!("{name}: not in canonical layout; `catena fmt {name}` makes it so");
                code = ExitCode::FAILURE;
            }
        } else if path == Path::new("-") {
            print!("{formatted}");
        } else if formatted != source {
            std::fs::write(path, formatted).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(code)
}

fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let mut source = String::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut source).map_err(|error| format!("standard input: {error}"))?;
    } else {
        source = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok((name, source))
}

fn print(diagnostics: &[Diagnostic], name: &str, source: &str) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for diagnostic in diagnostics {
        eprintln!("{}\n", diagnostic.render(name, source, color));
    }
}

fn errors(diagnostics: &[Diagnostic]) -> usize {
    diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let errors = errors(diagnostics);
    let warnings = diagnostics.len() - errors;
    let mut text = count(errors, "error");
    if warnings > 0 {
        text += &format!(", {}", count(warnings, "warning"));
    }
    text
}

fn count(n: usize, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    format!("{n} {what}{}", if n == 1 { "" } else { plural })
}
