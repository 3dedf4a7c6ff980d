//! The chain language, its diagnostics and the policy graph.
//!
//! A chain file says which traffic passes through which functions and what it was promised.
//! [`load`] reads one and returns a [`PolicyGraph`], plain data for the planner, and
//! [`Diagnostic`]s that point at what is wrong. Nothing here touches a packet, and the only I/O
//! goes through [`Files`] (rule files) and libpcap's compiler (filters).
//!
//! The language is described in `docs/language.md`.

#![deny(unsafe_code)]

mod ast;
mod diagnostic;
mod files;
pub mod filter;
mod format;
mod fuzz;
mod graph;
mod lexer;
mod library;
mod limits;
mod literal;
mod parser;
mod print;
mod resolve;
mod span;
mod value;

pub use diagnostic::{Code, Diagnostic, Severity, likely};
pub use files::{Disk, Files, NoFiles};
pub use filter::{Compiler, Filter, Insn, Libpcap, mirror};
pub use fuzz::fuzz_one;
pub use graph::{
    Chain, ChainId, Class, ClassId, Condition, Direction, Edge, End, Node, NodeId, PolicyGraph, Promise, Relation,
    Subject, Unparsed,
};
pub use library::{Attribute, Library, Method, Param, ParamKind, Signature};
pub use limits::{
    MAX_DEPTH, MAX_EDGES, MAX_FILE, MAX_FILES_TOTAL, MAX_FILTER, MAX_FINDINGS, MAX_NODES, MAX_SOURCE, MAX_VALUES,
};
pub use print::exact_part;
pub use span::Span;
pub use value::Value;

use diagnostic::Findings;

/// What became of a chain file.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The graph. It is there unless an error leaves no sensible one; the lack of a function in
    /// the library alone does not take it away, so look at [`Outcome::has_errors`] before running it.
    pub graph: Option<PolicyGraph>,
    /// What was found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Outcome {
    /// Whether something is wrong, not merely odd.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Reads the chain file `name` with text `source`.
///
/// Rule files are read through `files`, relative to the folder of `name`; filters are compiled by
/// libpcap for Ethernet frames. What is wrong is in the outcome's diagnostics.
#[must_use]
pub fn load(name: &str, source: &str, library: &Library, files: &dyn Files) -> Outcome {
    load_with(name, source, library, files, &Libpcap)
}

/// As [`load`], with another filter compiler.
#[must_use]
pub fn load_with(name: &str, source: &str, library: &Library, files: &dyn Files, compiler: &dyn Compiler) -> Outcome {
    let mut findings = Findings::new(MAX_FINDINGS);
    if let Some(finding) = too_large(source) {
        return Outcome { graph: None, diagnostics: vec![finding] };
    }
    let parsed = parser::parse(source, &mut findings);
    // With a statement missing, names would seem undefined that are not.
    let graph = if findings.any(&[Code::Syntax, Code::TooLarge, Code::Path]) {
        None
    } else {
        let world = resolve::World { name, library, files, compiler };
        let graph = resolve::resolve(&parsed.items, world, &mut findings);
        (!findings.broken()).then_some(graph)
    };
    Outcome { graph, diagnostics: findings.finish() }
}

/// The chain file `source` in its canonical layout, comments kept.
///
/// # Errors
/// What is wrong, if the file does not follow the grammar. Names and kinds are not judged.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    let mut findings = Findings::new(MAX_FINDINGS);
    if let Some(finding) = too_large(source) {
        return Err(vec![finding]);
    }
    let parsed = parser::parse(source, &mut findings);
    if findings.errors() {
        return Err(findings.finish());
    }
    Ok(format::layout(source, &parsed))
}

fn too_large(source: &str) -> Option<Diagnostic> {
    (source.len() > MAX_SOURCE).then(|| {
        let text = format!("a chain file has at most {MAX_SOURCE} bytes, and this one {}", source.len());
        Diagnostic::error(Code::TooLarge, Span::default(), text)
    })
}
