//! A chain file that was read, and what is wrong with one that cannot be run.

use std::fmt;
use std::path::{Path, PathBuf};

use catena_compile::library::signatures;
use catena_policy::{Diagnostic, Disk, PolicyGraph, Severity};

use crate::{Failure, file};

/// A chain file that was read and is sound.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its name, as given.
    pub name: String,
    /// The file, if it was read from one.
    pub file: Option<PathBuf>,
    /// Its text.
    pub source: String,
    /// What it says.
    pub graph: PolicyGraph,
    /// What is worth a look in it, and no error.
    pub warnings: Vec<Diagnostic>,
}

impl Chain {
    /// Read a chain file; `-` is standard input. Rule files that it names are read as well.
    ///
    /// # Errors
    /// That it cannot be read, or all that is wrong with it.
    pub fn load(path: impl AsRef<Path>) -> Result<Chain, LoadError> {
        let path = path.as_ref();
        Chain::read(path, file::read(path, "a chain file").map_err(LoadError::Unreadable)?)
    }

    /// Take a file's text that was read already.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(path: &Path, source: String) -> Result<Chain, LoadError> {
        let chain = Chain::parse(&path.display().to_string(), source)?;
        Ok(Chain { file: Some(path.to_owned()), ..chain })
    }

    /// Take the text of a chain file; `name` is what messages call it, and the files that it names are looked for in that one's
    /// folder.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, source: impl Into<String>) -> Result<Chain, LoadError> {
        let (name, source) = (name.to_owned(), source.into());
        let outcome = catena_policy::load(&name, &source, &signatures(), &Disk);
        let is_wrong = outcome.diagnostics.iter().any(|finding| finding.severity == Severity::Error);
        match outcome.graph.filter(|_| !is_wrong) {
            Some(graph) => Ok(Chain { name, file: None, source, graph, warnings: outcome.diagnostics }),
            None => Err(LoadError::Wrong { name, source, diagnostics: outcome.diagnostics }),
        }
    }
}

/// Why a chain file cannot be used.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// It cannot be read.
    Unreadable(Failure),
    /// There are errors in it.
    Wrong {
        /// Its name, as given.
        name: String,
        /// Its text.
        source: String,
        /// The errors, and warnings beside them.
        diagnostics: Vec<Diagnostic>,
    },
}

/// For people: every finding with the line it is about.
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable(failure) => failure.fmt(f),
            LoadError::Wrong { name, source, diagnostics } => {
                let findings: Vec<String> = diagnostics.iter().map(|d| d.render(name, source, false)).collect();
                f.write_str(&findings.join("\n\n"))
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Failure::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let error = Chain::parse("edge", "chain c { in -> Monitr() -> out }\n").expect_err("there is no such function");
        let text = error.to_string();
        assert!(text.contains("edge:1") && text.contains("Monitr"), "{text}");
        let none = Chain::load("none/edge.catena").expect_err("there is no such file").to_string();
        assert!(none.contains("none/edge.catena: there is no such file; expected a chain file"), "{none}");
    }
}
