//! Chains: which classes they serve, what they promise, and the graph of their functions.

use std::collections::{HashMap, HashSet};

use super::wire::Draft;
use super::{Frame, Resolver};
use crate::ast::{self, Expr, Item, PromisedRate, Statement};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::graph::{Chain, ClassId, Direction, Promise, Unparsed};
use crate::span::{Name, Span};
use crate::value::Value;

/// The chain that statements outside any block make up.
const BARE: &str = "main";

impl<'a> Resolver<'a> {
    pub(super) fn chains(&mut self, items: &'a [Item]) -> Vec<Chain> {
        let mut chains = Vec::new();
        let mut names: HashSet<&str> = HashSet::new();
        let mut served: HashMap<ClassId, Span> = HashMap::new();
        let mut rest: Option<Span> = None;
        for item in items {
            let Item::Chain { name, classes, body } = item else {
                continue;
            };
            let ids = self.served(classes, &mut served);
            if classes.is_empty() {
                self.takes_the_rest(name.span, &mut rest);
            }
            if names.insert(&name.node) {
                let body: Vec<&Statement> = body.iter().collect();
                let chain = self.chain(&name.node, name.span, ids, &body);
                chains.push(chain);
            }
        }
        let bare: Vec<&Statement> =
            items.iter().filter_map(|i| if let Item::Bare(statement) = i { Some(statement) } else { None }).collect();
        let lost = bare.iter().all(|s| matches!(s, Statement::Unparsed(_) | Statement::Promise(_)));
        if lost && !chains.is_empty() {
            // Alone they make up no chain, and those of the file do not heed them.
            for statement in &bare {
                let message = "this belongs inside a chain: outside, it holds for none of the chains of this file";
                let finding = Diagnostic::error(Code::Dangling, statement_span(statement), message);
                self.find(finding.help("write it behind `chain NAME {`, in each chain that it is for"));
            }
        } else if let Some(first) = bare.first() {
            let span = statement_span(first);
            if let Some(other) = self.chain_names.get(BARE).copied() {
                let message = "statements outside a chain make up the chain `main`, and there is one already";
                let finding = Diagnostic::error(Code::DuplicateName, span, message);
                self.find(finding.related(other, "this chain is called `main` too"));
            }
            self.takes_the_rest(span, &mut rest);
            let chain = self.chain(BARE, span, Vec::new(), &bare);
            chains.push(chain);
        }
        if chains.is_empty() && !self.findings.errors() {
            let finding = Diagnostic::warning(Code::Unused, Span::default(), "the file has no chain");
            self.find(finding.help("for example `chain all { in -> Monitor() -> out }`"));
        }
        chains
    }

    fn takes_the_rest(&mut self, span: Span, rest: &mut Option<Span>) {
        match *rest {
            None => *rest = Some(span),
            Some(first) => self.find(
                Diagnostic::error(Code::DuplicateName, span, "a second chain for all other traffic")
                    .label("never sees a packet")
                    .related(first, "this chain takes all that no class names")
                    .help("name its classes: `chain … for class { … }`"),
            ),
        }
    }

    fn served(&mut self, names: &[Name], served: &mut HashMap<ClassId, Span>) -> Vec<ClassId> {
        let mut ids = Vec::new();
        for name in names {
            let Some(id) = self.class(name) else { continue };
            if let Some(first) = served.insert(id, name.span) {
                let message = format!("the class `{}` goes through a chain already", name.node);
                let finding = Diagnostic::error(Code::DuplicateName, name.span, message);
                self.find(finding.label("named again here").related(first, "first named here"));
                continue;
            }
            ids.push(id);
        }
        ids
    }

    fn class(&mut self, name: &Name) -> Option<ClassId> {
        self.mark_used("class", &name.node);
        let known = self.class_names.get(name.node.as_str()).copied();
        if known.is_none() && !self.broken_classes.contains(name.node.as_str()) {
            let close = likely(&name.node, self.class_names.keys().copied()).map(str::to_owned);
            let message = format!("there is no class `{}`", name.node);
            let mut finding = Diagnostic::error(Code::UndefinedName, name.span, message)
                .label("not defined in this file")
                .help(format!("define it: `class {} = \"tcpdump filter\"`", name.node));
            finding = if close.is_some() { finding.suggest(close.as_deref()) } else { finding };
            self.find(finding);
        }
        known
    }

    fn chain(&mut self, name: &str, span: Span, classes: Vec<ClassId>, body: &[&'a Statement]) -> Chain {
        let promise = self.promise(body);
        let unparsed = self.unparsed(body);
        let mut draft = Draft::new(span);
        self.body(&mut draft, body, &Frame::default(), super::wire::Inner::outermost());
        let edges = self.splice(&mut draft);
        let chain = self.checked(name, classes, (promise, unparsed), draft, edges);
        if chain.edges.iter().any(|e| e.direction == Direction::Return) {
            self.needs_return(&chain);
        }
        chain
    }

    /// A chain with a return path needs to know its classes' return traffic.
    fn needs_return(&mut self, chain: &Chain) {
        for id in &chain.classes {
            let class = &self.classes[*id as usize];
            if class.back.is_some() {
                continue;
            }
            let message = format!("the return traffic of the class `{}` cannot be derived", class.name);
            let mut finding = Diagnostic::error(Code::Mirror, class.span, message)
                .related(chain.span, "this chain has a return path")
                .help(format!("say which packets return: `class {} = \"…\" back \"…\"`", class.name));
            if let Some(part) = self.unmirrored.get(id) {
                finding = finding.label(format!("`{part}` reads bytes by offset and has no mirror image"));
            }
            self.find(finding);
        }
    }

    fn promise(&mut self, body: &[&Statement]) -> Promise {
        let mut first: Option<Span> = None;
        let mut promise = Promise::default();
        for statement in body {
            let Statement::Promise(written) = statement else {
                continue;
            };
            if let Some(first) = first {
                let finding = Diagnostic::error(Code::DuplicateName, written.span, "a second promise");
                self.find(finding.related(first, "the chain promises this already"));
                continue;
            }
            first = Some(written.span);
            promise = self.promised(written);
        }
        promise
    }

    fn unparsed(&mut self, body: &[&Statement]) -> Unparsed {
        let mut said: Option<(Span, Unparsed)> = None;
        for statement in body {
            let Statement::Unparsed(ast::Unparsed { span, action }) = statement else {
                continue;
            };
            if let Some((first, _)) = said {
                let finding = Diagnostic::error(Code::DuplicateName, *span, "`unparsed` is said twice");
                self.find(finding.related(first, "said first"));
                continue;
            }
            let value = match action.node.as_str() {
                "pass" => Unparsed::Pass,
                "drop" => Unparsed::Drop,
                other => {
                    let message = format!("expected `pass` or `drop`, found `{other}`");
                    let finding = Diagnostic::error(Code::WrongKind, action.span, message)
                        .label("what becomes of frames that are not IPv4, IPv6 or ARP");
                    self.find(finding.suggest(likely(other, ["pass", "drop"])));
                    Unparsed::default()
                }
            };
            said = Some((*span, value));
        }
        said.map_or_else(Unparsed::default, |(_, value)| value)
    }

    fn promised(&mut self, written: &ast::Promise) -> Promise {
        let (low, high) = match &written.rate {
            PromisedRate::Bulk => (None, None),
            PromisedRate::Exactly(rate) => {
                let rate = self.bit_rate(rate);
                (rate, rate)
            }
            PromisedRate::Between(low, high) => {
                (low.as_ref().and_then(|e| self.bit_rate(e)), high.as_ref().and_then(|e| self.bit_rate(e)))
            }
        };
        if let (Some(low), Some(high)) = (low, high)
            && low > high
        {
            let finding = Diagnostic::error(Code::Promise, written.span, "this promise guarantees more than it allows");
            self.find(
                finding
                    .label("t_min is larger than t_max")
                    .help("write the guaranteed rate first: `promise 2Gbps..10Gbps`"),
            );
        }
        if high == Some(0) {
            let finding = Diagnostic::error(Code::Promise, written.span, "this promise allows no traffic");
            self.find(finding.label("t_max is 0"));
        }
        let d_max_ns = written.within.as_ref().and_then(|e| self.delay(e));
        Promise { t_min_bps: low.unwrap_or(0), t_max_bps: high, d_max_ns }
    }

    /// Bits per second; a plain 0 is a rate too.
    pub(super) fn bit_rate(&mut self, expr: &Expr) -> Option<u64> {
        match self.eval(expr, &Frame::default())? {
            Value::BitRate(rate) => Some(rate),
            Value::Integer(0) => Some(0),
            other => {
                self.unit_error(expr, &other, "a bit rate such as 2Gbps");
                None
            }
        }
    }

    fn delay(&mut self, expr: &Expr) -> Option<u64> {
        match self.eval(expr, &Frame::default())? {
            Value::Duration(0) => {
                self.find(Diagnostic::error(Code::Promise, expr.span, "no packet takes no time at all"));
                None
            }
            Value::Duration(ns) => Some(ns),
            other => {
                self.unit_error(expr, &other, "a time such as 45us");
                None
            }
        }
    }

    pub(super) fn unit_error(&mut self, expr: &Expr, found: &Value, expected: &str) {
        let found = match found {
            Value::Integer(_) | Value::Float(_) => "a number without a unit".to_owned(),
            Value::Word(word) => format!("the word `{word}`"),
            other => other.describe().to_owned(),
        };
        let finding = Diagnostic::error(Code::Unit, expr.span, format!("expected {expected}"));
        self.find(finding.label(format!("this is {found}")));
    }
}

fn statement_span(statement: &Statement) -> Span {
    match statement {
        Statement::Promise(promise) => promise.span,
        Statement::Unparsed(unparsed) => unparsed.span,
        Statement::Instance { name, call } => name.span.to(call.span),
        Statement::Path(path) => path.steps.first().map_or_else(Span::default, |s| s.span),
    }
}
