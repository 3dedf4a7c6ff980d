//! What a plan is made of: chain files as one policy graph, the rack, the profile, and the changes of `--what-if`.

use std::path::{Path, PathBuf};

use catena_compile::catalogue::returning;
use catena_plan::catalogue::{Catalogue, Particular};
use catena_plan::profile::Profile;
use catena_plan::rack::{Rack, parse};
use catena_plan::unite::unite;
use catena_plan::what_if::Edit;
use catena_policy::{Code, Diagnostic, Disk, Node, PolicyGraph, Severity};

use catena_runtime::{Chain, Failure, LoadError, file, trial};

use crate::known::{self, Known};
use crate::quick;
use crate::remarks::Remark;
use crate::strategy::Paper;

/// What a plan is asked for of.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The chain files, whose chains are planned together.
    pub files: &'a [PathBuf],
    /// The rack's file.
    pub rack: &'a Path,
    /// What functions cost.
    pub costs: Costs<'a>,
    /// A paper's functions instead of Catena's own.
    pub paper: Option<Paper>,
    /// Changes of rack and chains, as `catena plan --what-if` has them.
    pub edits: &'a [String],
    /// Whether functions are split as a paper's are, though there is no switch.
    pub papers_replication: bool,
}

/// Where what functions cost is taken from. What it lacks is taken from papers, and marked.
#[derive(Clone, Copy, Debug)]
pub enum Costs<'a> {
    /// A profile's file.
    File(&'a Path),
    /// What this machine's cache has, and what is measured now where that lacks something.
    Measured,
    /// Papers alone.
    Papers,
}

/// What a plan is made of.
#[derive(Clone)]
pub struct Inputs {
    /// All chains.
    pub graph: PolicyGraph,
    /// The rack, changed as was asked for.
    pub rack: Rack,
    /// What is known of the functions.
    pub known: Known,
    /// The changes that were asked for, as text.
    pub edits: Vec<String>,
}

impl Inputs {
    /// Read all files; `tell` hears what was found in them.
    ///
    /// # Errors
    /// When one cannot be read or used.
    pub fn read(asked: &Asked<'_>, tell: &dyn Fn(&Remark<'_>)) -> Result<Inputs, Failure> {
        let edits: Vec<Edit> =
            asked.edits.iter().map(|text| Edit::parse(text).map_err(said)).collect::<Result<_, _>>()?;
        let measured = match asked.costs {
            Costs::File(path) => Some(profile(path)?),
            Costs::Measured | Costs::Papers => None,
        };
        let mut known = match asked.paper {
            Some(Paper::Lemur) => known::known(measured),
            None => known::own(measured),
        };
        let mut rack = rack(asked.rack, &known.catalogue, tell)?;
        if rack.switch.is_none() && !asked.papers_replication {
            known.split_as_run();
        }
        let mut graphs = Vec::new();
        for path in asked.files {
            let stem = path.file_stem().map_or_else(|| "chain".to_owned(), |stem| stem.to_string_lossy().into_owned());
            let graph = match asked.paper {
                Some(_) => papers_policy(path, &known.catalogue, tell)?,
                None => own_policy(path, tell)?,
            };
            graphs.push((stem, graph));
        }
        if asked.paper.is_none() && matches!(asked.costs, Costs::Measured) {
            let nodes = graphs.iter().flat_map(|(_, graph)| &graph.chains).flat_map(|chain| &chain.nodes);
            if let Some(measured) = quick::measured(nodes, &known.catalogue, tell) {
                known.measured_by(measured);
            }
        }
        for (name, graph) in &graphs {
            known.catalogue.particular.extend(particular(name, graph)?);
            // The papers' functions are others of the same names.
            if asked.paper.is_none() {
                known.catalogue.returning.extend(returning(graph));
            }
        }
        if graphs.iter().all(|(_, graph)| graph.chains.is_empty()) {
            return Err(
                "there is no chain to plan: `chain NAME { in -> FUNCTION(…) -> out }` in a chain file is one".into()
            );
        }
        let mut graph = if graphs.len() == 1 { graphs.remove(0).1 } else { unite(graphs) };
        for edit in &edits {
            edit.apply(&mut rack, &mut graph).map_err(said)?;
        }
        Ok(Inputs { graph, rack, known, edits: asked.edits.to_vec() })
    }
}

fn said(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

impl Inputs {
    /// One file's chains on a rack.
    ///
    /// # Errors
    /// When arguments say nothing of what a function costs.
    pub fn here(file: &str, graph: PolicyGraph, rack: Rack, mut known: Known) -> Result<Inputs, Failure> {
        known.catalogue.particular.extend(particular(file, &graph)?);
        known.catalogue.returning.extend(returning(&graph));
        Ok(Inputs { graph, rack, known, edits: Vec::new() })
    }
}

/// Read a chain file of the library's functions. They are built once, as a run builds them: what a run refuses is not
/// planned, and said in the same words.
fn own_policy(path: &Path, tell: &dyn Fn(&Remark<'_>)) -> Result<PolicyGraph, Failure> {
    let loaded = match Chain::load(path) {
        Ok(chain) => chain,
        Err(LoadError::Unreadable(failure)) => return Err(failure),
        Err(LoadError::Wrong { name, source, diagnostics }) => {
            tell(&Remark::Findings { diagnostics: &diagnostics, name: &name, source: &source });
            return Err(Failure::new(refused(path, &diagnostics)));
        }
    };
    tell(&Remark::Findings { diagnostics: &loaded.warnings, name: &loaded.name, source: &loaded.source });
    trial::try_arguments(&loaded)?;
    Ok(loaded.graph)
}

/// Read a chain file of a paper's functions, which nothing here runs: they need to be known only, and no arguments.
fn papers_policy(path: &Path, catalogue: &Catalogue, tell: &dyn Fn(&Remark<'_>)) -> Result<PolicyGraph, Failure> {
    let (name, source) = (path.display().to_string(), file::read(path, "a chain file")?);
    let mut library = catena_compile::library::signatures();
    library.functions.iter_mut().flat_map(|f| &mut f.params).for_each(|param| param.required = false);
    let outcome = catena_policy::load(&name, &source, &library, &Disk);
    let planned = |finding: &Diagnostic| {
        let word = source.get(finding.span.within(&source)).unwrap_or_default();
        finding.code == Code::UnknownFunction && catalogue.find(word).is_some()
    };
    let found: Vec<Diagnostic> = outcome.diagnostics.into_iter().filter(|finding| !planned(finding)).collect();
    tell(&Remark::Findings { diagnostics: &found, name: &name, source: &source });
    match outcome.graph {
        Some(graph) if found.iter().all(|finding| finding.severity != Severity::Error) => Ok(graph),
        _ => Err(Failure::new(format!("{name}: {}", findings(&found)))),
    }
}

/// Check a chain file of a paper's functions, as far as planning needs it; how many chains and functions it has.
///
/// # Errors
/// When it cannot be read or planned; `tell` hears what is wrong.
pub fn check_paper(path: &Path, paper: Paper, tell: &dyn Fn(&Remark<'_>)) -> Result<(usize, usize), Failure> {
    let Paper::Lemur = paper;
    let graph = papers_policy(path, &known::known(None).catalogue, tell)?;
    Ok((graph.chains.len(), graph.chains.iter().map(|chain| chain.nodes.len()).sum()))
}

/// Check a rack's file, whose tables may have the library's functions and a paper's; how many servers it has.
///
/// # Errors
/// When it cannot be read or used; `tell` hears what is wrong.
pub fn check_rack(path: &Path, tell: &dyn Fn(&Remark<'_>)) -> Result<usize, Failure> {
    let (mut all, papers) = (known::own(None).catalogue, known::known(None).catalogue);
    all.functions.extend(papers.functions);
    Ok(rack(path, &all, tell)?.servers.len())
}

/// Why a chain file of the library's functions is refused, in one line: how much is wrong with it, and what to do if it is for a
/// paper's functions.
pub fn refused(path: &Path, diagnostics: &[Diagnostic]) -> String {
    let lacks = diagnostics.iter().any(|finding| finding.code == Code::UnknownFunction);
    // What is a pipe cannot be read again.
    let is_papers = lacks && path.is_file() && check_paper(path, Paper::Lemur, &|_| {}).is_ok();
    let hint = "; these are Lemur's functions, which `catena plan --as lemur` can plan, and nothing here can run";
    format!("{}: {}{}", path.display(), findings(diagnostics), if is_papers { hint } else { "" })
}

/// How many errors and warnings there are, in words.
pub fn findings(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|finding| finding.severity == Severity::Error).count();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match diagnostics.len() - errors {
        0 => count(errors, "error"),
        warnings => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    }
}

/// What is known of functions by their arguments.
fn particular(file: &str, graph: &PolicyGraph) -> Result<Vec<Particular>, Failure> {
    let nodes = graph.chains.iter().flat_map(|chain| &chain.nodes);
    let of = |node: &Node| catena_compile::catalogue::particular(&node.function, &node.args);
    nodes
        .filter_map(|node| of(node).transpose())
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::new(format!("{file}: {error}")))
}

/// Read a rack's file.
fn rack(path: &Path, catalogue: &Catalogue, tell: &dyn Fn(&Remark<'_>)) -> Result<Rack, Failure> {
    let (name, source) = (path.display().to_string(), file::read(path, "a rack, as those in examples/racks are")?);
    let functions: Vec<&str> = catalogue.functions.iter().map(|f| f.name.as_str()).collect();
    let parsed = parse(&source, &functions);
    tell(&Remark::Findings { diagnostics: &parsed.diagnostics, name: &name, source: &source });
    debug_assert!(parsed.rack.is_some() || parsed.diagnostics.iter().any(|d| d.severity == Severity::Error));
    parsed.rack.ok_or_else(|| Failure::new(format!("{name}: {}", findings(&parsed.diagnostics))))
}

/// Read a profile.
fn profile(path: &Path) -> Result<Profile, Failure> {
    let text = file::read(path, "a profile as `catena profile` writes it")?;
    Profile::from_text(&text).map_err(|error| Failure::new(format!("{}:{error}", path.display())))
}
