//! What a plan is made of: chain files as one policy graph, the rack, the profile, and the changes of `--what-if`.

use std::path::Path;

use catena_plan::catalogue::{Catalogue, Particular};
use catena_plan::profile::Profile;
use catena_plan::rack::{Rack, parse};
use catena_plan::unite::unite;
use catena_plan::what_if::Edit;
use catena_policy::{Code, Diagnostic, Disk, Node, PolicyGraph, Severity};

use super::functions::{self, Known};
use super::quick;
use crate::Failure;
use crate::arguments::{PaperName, PlanOptions};
use crate::{chain, file, trial};

/// What a plan is made of.
#[derive(Clone)]
pub struct Inputs {
    /// All chains.
    pub graph: PolicyGraph,
    /// The rack, changed as `--what-if` says.
    pub rack: Rack,
    /// What is known of the functions.
    pub known: Known,
}

impl Inputs {
    /// Read all files; what is wrong with one is printed.
    ///
    /// # Errors
    /// When one cannot be read or used.
    pub fn read(options: &PlanOptions) -> Result<Inputs, Failure> {
        let edits = options.what_if.iter().map(|text| Edit::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let measured = quick::named(options).map(profile).transpose()?;
        let mut known = match options.paper {
            Some(PaperName::Lemur) => functions::known(measured),
            None => functions::own(measured),
        };
        let path = options.rack.as_ref().ok_or("--rack RACK.toml says on what to plan")?;
        let mut rack = rack(path, &known.catalogue)?;
        if rack.switch.is_none() && !options.paper_replication {
            known.split_as_run();
        }
        let mut graphs = Vec::new();
        for path in &options.files {
            let stem = path.file_stem().map_or_else(|| "chain".to_owned(), |stem| stem.to_string_lossy().into_owned());
            let graph = match options.paper {
                Some(_) => papers_policy(path, &known.catalogue)?,
                None => own_policy(path)?,
            };
            graphs.push((stem, graph));
        }
        if options.paper.is_none() && options.profile.is_none() {
            let nodes = graphs.iter().flat_map(|(_, graph)| &graph.chains).flat_map(|chain| &chain.nodes);
            if let Some(measured) = quick::measured(nodes, &known.catalogue) {
                known.measured_by(measured);
            }
        }
        for (name, graph) in &graphs {
            known.catalogue.particular.extend(particular(name, graph)?);
        }
        if graphs.iter().all(|(_, graph)| graph.chains.is_empty()) {
            return Err(
                "there is no chain to plan: `chain NAME { in -> FUNCTION(…) -> out }` in a chain file is one".into()
            );
        }
        let mut graph = if graphs.len() == 1 { graphs.remove(0).1 } else { unite(graphs) };
        for edit in &edits {
            edit.apply(&mut rack, &mut graph)?;
        }
        Ok(Inputs { graph, rack, known })
    }
}

impl Inputs {
    /// One file's chains on a rack.
    ///
    /// # Errors
    /// When arguments say nothing of what a function costs.
    pub fn here(file: &str, graph: PolicyGraph, rack: Rack, mut known: Known) -> Result<Inputs, Failure> {
        known.catalogue.particular.extend(particular(file, &graph)?);
        Ok(Inputs { graph, rack, known })
    }
}

/// Read a chain file of the library's functions. They are built once, as a run builds them: what a run refuses is not
/// planned, and said in the same words.
fn own_policy(path: &Path) -> Result<PolicyGraph, Failure> {
    let loaded = chain::load(path)?;
    trial::try_arguments(&loaded)?;
    Ok(loaded.graph)
}

/// Read a chain file of a paper's functions, which nothing here runs: they need to be known only, and no arguments.
fn papers_policy(path: &Path, catalogue: &Catalogue) -> Result<PolicyGraph, Failure> {
    let (name, source) = chain::read(path)?;
    let mut library = catena_compile::library::signatures();
    library.functions.iter_mut().flat_map(|f| &mut f.params).for_each(|param| param.required = false);
    let outcome = catena_policy::load(&name, &source, &library, &Disk);
    let planned = |finding: &Diagnostic| {
        let word = source.get(finding.span.within(&source)).unwrap_or_default();
        finding.code == Code::UnknownFunction && catalogue.find(word).is_some()
    };
    let findings: Vec<Diagnostic> = outcome.diagnostics.into_iter().filter(|finding| !planned(finding)).collect();
    chain::print(&findings, &name, &source);
    match outcome.graph {
        Some(graph) if chain::errors(&findings) == 0 => Ok(graph),
        _ => Err(Failure(format!("{name}: {}", chain::summary(&findings)))),
    }
}

/// What is known of functions by their arguments.
fn particular(file: &str, graph: &PolicyGraph) -> Result<Vec<Particular>, Failure> {
    let nodes = graph.chains.iter().flat_map(|chain| &chain.nodes);
    let of = |node: &Node| catena_compile::catalogue::particular(&node.function, &node.args);
    nodes
        .filter_map(|node| of(node).transpose())
        .collect::<Result<_, _>>()
        .map_err(|error| Failure(format!("{file}: {error}")))
}

/// Read a rack's file.
fn rack(path: &Path, catalogue: &Catalogue) -> Result<Rack, Failure> {
    let (name, source) = (path.display().to_string(), file::read(path, "a rack, as those in examples/racks are")?);
    let functions: Vec<&str> = catalogue.functions.iter().map(|f| f.name.as_str()).collect();
    let parsed = parse(&source, &functions);
    chain::print(&parsed.diagnostics, &name, &source);
    debug_assert!(parsed.rack.is_some() || parsed.diagnostics.iter().any(|d| d.severity == Severity::Error));
    parsed.rack.ok_or_else(|| Failure(format!("{name}: {}", chain::summary(&parsed.diagnostics))))
}

/// Read a profile.
fn profile(path: &Path) -> Result<Profile, Failure> {
    let text = file::read(path, "a profile as `catena profile` writes it")?;
    Profile::from_text(&text).map_err(|error| Failure(format!("{}:{error}", path.display())))
}
