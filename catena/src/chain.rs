//! Reading chain files: `check` and `fmt`, and the loading that all commands share.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use catena::{Chain, LoadError};
use catena_planner::{Paper, Remark, check_paper, check_rack, findings, refused};
use catena_policy::{Diagnostic, PolicyGraph};
use catena_runtime::{files, trial};

use crate::arguments::{CheckOptions, FmtOptions};
use crate::{Failure, file, streams};

/// Read a chain file; what is wrong with it is printed, warnings too.
///
/// # Errors
/// When it cannot be read or run.
pub fn load(path: &Path) -> Result<Chain, Failure> {
    taken(path, Chain::load(path))
}

/// The same of a file that was read already.
///
/// # Errors
/// When it cannot be run.
pub fn parsed(path: &Path, source: String) -> Result<Chain, Failure> {
    taken(path, Chain::read(path, source))
}

fn taken(path: &Path, chain: Result<Chain, LoadError>) -> Result<Chain, Failure> {
    match chain {
        Ok(chain) => {
            print(&chain.warnings, &chain.name, &chain.source);
            Ok(chain)
        }
        Err(LoadError::Unreadable(failure)) => Err(failure.into()),
        Err(LoadError::Wrong { name, source, diagnostics }) => {
            print(&diagnostics, &name, &source);
            Err(Failure(refused(path, &diagnostics)))
        }
    }
}

/// Check chain files.
///
/// # Errors
/// When one cannot be read.
pub fn check(options: &CheckOptions) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::SUCCESS;
    for path in &options.files {
        let is_rack = path.extension().is_some_and(|end| end == "toml");
        if is_rack || options.paper.is_some() {
            let checked = planned(path, options.paper.filter(|_| !is_rack));
            let (name, is_good) = (path.display(), checked.is_ok());
            match checked {
                Ok(size) => streams::print(format_args!("{name}: {size}: good\n"))?,
                Err(message) => streams::print(format_args!("{message}\n"))?,
            }
            code = if is_good { code } else { ExitCode::FAILURE };
            continue;
        }
        let chain = match Chain::load(path) {
            Ok(chain) => chain,
            Err(LoadError::Unreadable(failure)) => return Err(failure.into()),
            Err(LoadError::Wrong { name, source, diagnostics }) => {
                print(&diagnostics, &name, &source);
                streams::print(format_args!("{name}: {}\n", findings(&diagnostics)))?;
                code = ExitCode::FAILURE;
                continue;
            }
        };
        print(&chain.warnings, &chain.name, &chain.source);
        let checked = trial::lower_and_build(&chain)
            .and_then(|(host, files)| files::of_chain(Some(path), &host, &files).map(|_| ()));
        match checked {
            Ok(()) => streams::print(format_args!("{}: {}: good\n", chain.name, size(&chain.graph)))?,
            Err(message) => {
                streams::tell(format_args!("error: {message}\n"));
                streams::print(format_args!("{}: 1 error\n", chain.name))?;
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Check what only plans are made of: a chain file of a paper's functions, or a rack; how much there is in it.
fn planned(path: &Path, paper: Option<Paper>) -> Result<String, catena_runtime::Failure> {
    let tell = |remark: &Remark<'_>| {
        if let Remark::Findings { diagnostics, name, source } = remark {
            print(diagnostics, name, source);
        }
    };
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match paper {
        Some(paper) => check_paper(path, paper, &tell)
            .map(|(chains, functions)| format!("{}, {}", count(chains, "chain"), count(functions, "function"))),
        None => check_rack(path, &tell).map(|servers| format!("a rack of {}", count(servers, "server"))),
    }
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
            Failure(format!("{name}: {}", findings(&diagnostics)))
        })?;
        if options.check {
            if formatted != source {
                streams::print(format_args!("{name}: not in canonical layout; `catena fmt {name}` makes it so\n"))?;
                code = ExitCode::FAILURE;
            }
        } else if path == Path::new("-") {
            streams::print(&formatted)?;
        } else if formatted != source {
            file::write(path, &formatted)?;
        }
    }
    Ok(code)
}

fn size(graph: &PolicyGraph) -> String {
    let functions = graph.chains.iter().map(|chain| chain.nodes.len()).sum();
    let (chains, classes) = (count(graph.chains.len(), "chain"), count(graph.classes.len(), "class"));
    format!("{chains}, {}, {classes}", count(functions, "function"))
}

/// Read a chain file, and return its name and text; `-` is standard input.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<(String, String), Failure> {
    Ok((path.display().to_string(), file::read(path, "a chain file")?))
}

/// Print findings to standard error.
pub fn print(diagnostics: &[Diagnostic], name: &str, source: &str) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for diagnostic in diagnostics {
        streams::tell(format_args!("{}\n\n", diagnostic.render(name, source, color)));
    }
}

fn count(n: usize, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    format!("{n} {what}{}", if n == 1 { "" } else { plural })
}
