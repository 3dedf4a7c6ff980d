//! Names get their meaning: from the file as written to the policy graph.

mod attribute;
mod call;
mod chain;
mod check;
mod condition;
mod cover;
mod eval;
mod path;
mod recursion;
mod relation;
mod splice;
mod wire;

use std::collections::{HashMap, HashSet};

use crate::ast::{Item, Parameter, Statement};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::files::Files;
use crate::filter::{self, Cache};
use crate::graph::{Class, ClassId, PolicyGraph};
use crate::library::Library;
use crate::limits::{MAX_FILES_TOTAL, MAX_NODES, MAX_VALUES};
use crate::span::{Name, Span};
use crate::value::Value;

/// What a resolver needs from outside.
pub(crate) struct World<'a> {
    /// The chain file's name; rule files are sought beside it.
    pub(crate) name: &'a str,
    pub(crate) library: &'a Library,
    pub(crate) files: &'a dyn Files,
    pub(crate) compiler: &'a dyn filter::Compiler,
}

/// A constant and how far its value is known.
struct Constant<'a> {
    name: &'a Name,
    expr: &'a crate::ast::Expr,
    value: Progress,
}

enum Progress {
    Pending,
    Busy,
    Done(Option<Value>),
}

/// A macro's definition.
#[derive(Clone, Copy)]
struct Macro<'a> {
    name: &'a Name,
    parameters: &'a [Parameter],
    body: &'a [Statement],
    /// It contains itself; reported already, never expanded.
    recursive: bool,
}

/// What the names in an expression may mean beyond the file's constants.
#[derive(Default)]
struct Frame {
    /// The macro's parameters; None: given, but wrong.
    parameters: HashMap<String, Option<Value>>,
    /// Where the outermost macro was used.
    site: Option<Span>,
}

struct Resolver<'a> {
    world: World<'a>,
    findings: &'a mut Findings,
    filters: Cache<'a>,
    constants: HashMap<&'a str, Constant<'a>>,
    macros: HashMap<&'a str, Macro<'a>>,
    /// Chains by name, with where they are defined.
    chain_names: HashMap<&'a str, Span>,
    class_names: HashMap<&'a str, ClassId>,
    classes: Vec<Class>,
    /// Classes that were named but are broken: no further findings about them.
    broken_classes: HashSet<&'a str>,
    /// Why a class has no mirror image.
    unmirrored: HashMap<ClassId, String>,
    /// Names of constants, macros and classes that were used.
    used: HashSet<String>,
    texts: HashMap<String, Option<Value>>,
    nodes_left: usize,
    values_left: usize,
    bytes_left: usize,
}

/// Resolves `items`. After an error the graph has holes; the caller judges by the findings.
pub(crate) fn resolve(items: &[Item], world: World<'_>, findings: &mut Findings) -> PolicyGraph {
    let filters = Cache::new(world.compiler);
    let mut resolver = Resolver {
        world,
        findings,
        filters,
        constants: HashMap::new(),
        macros: HashMap::new(),
        chain_names: HashMap::new(),
        class_names: HashMap::new(),
        classes: Vec::new(),
        broken_classes: HashSet::new(),
        unmirrored: HashMap::new(),
        used: HashSet::new(),
        texts: HashMap::new(),
        nodes_left: MAX_NODES,
        values_left: MAX_VALUES,
        bytes_left: MAX_FILES_TOTAL,
    };
    resolver.names(items);
    resolver.break_recursion();
    resolver.constants();
    resolver.define_classes(items);
    let chains = resolver.chains(items);
    let relations = resolver.relations(items, &chains);
    resolver.unused(items);
    PolicyGraph { classes: resolver.classes, chains, relations }
}

impl<'a> Resolver<'a> {
    fn find(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// An error about `span`, with the place where the macro around it was used.
    fn error_in(&self, frame: &Frame, code: Code, span: Span, message: String) -> Diagnostic {
        let finding = Diagnostic::error(code, span, message);
        match frame.site {
            Some(site) if site != span => finding.related(site, "in the macro used here"),
            _ => finding,
        }
    }

    fn duplicate(&mut self, name: &Name, first: Span, what: &str) {
        let message = format!("there are two {what} called `{}`", name.node);
        self.find(
            Diagnostic::error(Code::DuplicateName, name.span, message)
                .label("defined again here")
                .related(first, "first defined here"),
        );
    }

    /// Collects what is defined at the top of the file.
    fn names(&mut self, items: &'a [Item]) {
        for item in items {
            match item {
                Item::Let { name, value } => {
                    let first = self.constants.get(name.node.as_str()).map(|c| c.name.span);
                    match first.or_else(|| self.macros.get(name.node.as_str()).map(|m| m.name.span)) {
                        Some(first) => self.duplicate(name, first, "constants or macros"),
                        None => {
                            let constant = Constant { name, expr: value, value: Progress::Pending };
                            self.constants.insert(&name.node, constant);
                        }
                    }
                }
                Item::Macro { name, parameters, body } => self.define_macro(name, parameters, body),
                Item::Chain { name, .. } => match self.chain_names.get(name.node.as_str()) {
                    Some(first) => self.duplicate(name, *first, "chains"),
                    None => {
                        self.chain_names.insert(&name.node, name.span);
                    }
                },
                Item::Class { .. } | Item::Relation(_) | Item::Bare(_) => {}
            }
        }
    }

    fn define_macro(&mut self, name: &'a Name, parameters: &'a [Parameter], body: &'a [Statement]) {
        let key = name.node.as_str();
        let first = self.macros.get(key).map(|m| m.name.span);
        if let Some(first) = first.or_else(|| self.constants.get(key).map(|c| c.name.span)) {
            return self.duplicate(name, first, "constants or macros");
        }
        if self.world.library.find(key).is_some() {
            let message = format!("`{key}` is a function of the library already");
            self.find(Diagnostic::error(Code::DuplicateName, name.span, message));
        }
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for parameter in parameters {
            if let Some(first) = seen.insert(&parameter.name.node, parameter.name.span) {
                self.duplicate(&parameter.name, first, "parameters");
            }
        }
        self.macros.insert(key, Macro { name, parameters, body, recursive: false });
    }

    fn define_classes(&mut self, items: &'a [Item]) {
        let mut spans: HashMap<&str, Span> = HashMap::new();
        for item in items {
            let Item::Class { name, filter, back } = item else {
                continue;
            };
            if let Some(first) = spans.insert(&name.node, name.span) {
                self.duplicate(name, first, "classes");
                continue;
            }
            let compiled = self.filter_of(filter);
            let back_compiled = back.as_ref().map(|b| self.filter_of(b));
            let Some(filter) = compiled else {
                self.broken_classes.insert(&name.node);
                continue;
            };
            let id = ClassId::try_from(self.classes.len()).unwrap_or(ClassId::MAX);
            let back = match back_compiled {
                Some(back) => back,
                None => match filter::mirror(&filter.text) {
                    // The mirror image of a valid filter is valid, but for oddities that libpcap finds.
                    Ok(text) => self.filters.compile(&text).ok(),
                    Err(part) => {
                        self.unmirrored.insert(id, part);
                        None
                    }
                },
            };
            self.class_names.insert(&name.node, id);
            self.classes.push(Class { name: name.node.clone(), filter, back, span: name.span });
        }
    }

    /// The filter that `expr` stands for, compiled.
    fn filter_of(&mut self, expr: &crate::ast::Expr) -> Option<filter::Filter> {
        match self.eval(expr, &Frame::default())? {
            Value::Text(text) => self.compile(&text, expr.span, &Frame::default()),
            other => {
                let message = format!("a filter is a string, and this is {}", other.describe());
                self.find(Diagnostic::error(Code::WrongKind, expr.span, message).label("expected a filter in quotes"));
                None
            }
        }
    }

    fn compile(&mut self, text: &str, span: Span, frame: &Frame) -> Option<filter::Filter> {
        match self.filters.compile(text) {
            Ok(filter) => Some(filter),
            Err(reason) => {
                let finding = self
                    .error_in(frame, Code::Filter, span, "this is no valid tcpdump filter".to_owned())
                    .label(reason)
                    .note("filters are written as for tcpdump; see `man pcap-filter`");
                self.find(finding);
                None
            }
        }
    }

    fn unused(&mut self, items: &[Item]) {
        // After an error the use may simply not have been reached.
        if self.findings.errors() {
            return;
        }
        for item in items {
            let (what, name) = match item {
                Item::Class { name, .. } => ("class", name),
                Item::Let { name, .. } => ("constant", name),
                Item::Macro { name, .. } => ("macro", name),
                _ => continue,
            };
            if !self.used.contains(&format!("{what} {}", name.node)) {
                let message = format!("the {what} `{}` is never used", name.node);
                self.find(Diagnostic::warning(Code::Unused, name.span, message));
            }
        }
    }

    fn mark_used(&mut self, what: &str, name: &str) {
        self.used.insert(format!("{what} {name}"));
    }
}
