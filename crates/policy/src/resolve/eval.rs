//! Expressions to values: constants, parameters, ranges, files.

use std::net::IpAddr;

use super::{Frame, Progress, Resolver};
use crate::ast::{Expr, ExprKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::files::beside;
use crate::limits::{MAX_DEPTH, MAX_FILE};
use crate::span::Span;
use crate::value::Value;

impl Resolver<'_> {
    /// Evaluates every constant once, used or not, so that each is judged.
    pub(super) fn constants(&mut self) {
        let mut names: Vec<(Span, String)> =
            self.constants.values().map(|c| (c.name.span, c.name.node.clone())).collect();
        names.sort();
        for (span, name) in names {
            self.constant(&name, span, &mut Vec::new());
        }
    }

    /// The value of the constant `name`, which is asked for at `span`; None after a finding.
    fn constant(&mut self, name: &str, span: Span, path: &mut Vec<String>) -> Option<Value> {
        let constant = self.constants.get_mut(name)?;
        match &constant.value {
            Progress::Done(value) => {
                let value = value.clone();
                return value.filter(|v| self.afford(v, span));
            }
            Progress::Busy => {
                let first = constant.name.span;
                let finding =
                    Diagnostic::error(Code::Recursion, span, format!("the constant `{name}` contains itself"))
                        .label("comes back to itself here")
                        .related(first, "defined here");
                self.find(if path.len() > 1 {
                    finding.note(format!("the way round: {} -> {name}", path.join(" -> ")))
                } else {
                    finding
                });
                return None;
            }
            Progress::Pending => constant.value = Progress::Busy,
        }
        let expr = constant.expr;
        path.push(name.to_owned());
        let value = if path.len() > MAX_DEPTH {
            let text = format!("constants refer to each other more than {MAX_DEPTH} times in a row");
            self.find(Diagnostic::error(Code::TooLarge, span, text));
            None
        } else {
            self.evaluate(expr, &Frame::default(), path)
        };
        path.pop();
        if let Some(constant) = self.constants.get_mut(name) {
            constant.value = Progress::Done(value.clone());
        }
        value
    }

    /// The value of `expr`; None after a finding.
    pub(super) fn eval(&mut self, expr: &Expr, frame: &Frame) -> Option<Value> {
        self.evaluate(expr, frame, &mut Vec::new())
    }

    /// Whether `word` is a constant or parameter rather than a word of its own.
    pub(super) fn is_constant(&self, word: &str, frame: &Frame) -> bool {
        frame.parameters.contains_key(word) || self.constants.contains_key(word)
    }

    fn evaluate(&mut self, expr: &Expr, frame: &Frame, path: &mut Vec<String>) -> Option<Value> {
        match &expr.node {
            ExprKind::Broken => None,
            ExprKind::Literal(value) => Some(value.clone()).filter(|v| self.afford(v, expr.span)),
            ExprKind::Word(word) => {
                if let Some(value) = frame.parameters.get(word) {
                    return value.clone().filter(|v| self.afford(v, expr.span));
                }
                if self.constants.contains_key(word.as_str()) {
                    self.mark_used("constant", word);
                    return self.constant(word, expr.span, path);
                }
                Some(Value::Word(word.clone())).filter(|v| self.afford(v, expr.span))
            }
            ExprKind::List(values) => {
                // All are evaluated, so that each wrong one is reported.
                let values: Vec<_> = values.iter().map(|v| self.evaluate(v, frame, path)).collect();
                values.into_iter().collect::<Option<_>>().map(Value::List)
            }
            ExprKind::Record(fields) => {
                let mut record: Vec<(String, Value)> = Vec::new();
                for (name, value) in fields {
                    if record.iter().any(|(n, _)| *n == name.node) {
                        let message = format!("the field `{}` is given twice", name.node);
                        self.find(Diagnostic::error(Code::DuplicateName, name.span, message));
                    }
                    record.push((name.node.clone(), self.evaluate(value, frame, path)?));
                }
                Some(Value::Record(record))
            }
            ExprKind::Range(first, last) => {
                let first = self.evaluate(first, frame, path)?;
                let last = self.evaluate(last, frame, path)?;
                self.range(first, last, expr.span)
            }
            ExprKind::File(name) => match self.evaluate(name, frame, path)? {
                Value::Text(name) => self.file(&name, expr.span, frame),
                other => {
                    let message = format!("a file's name is a string, and this is {}", other.describe());
                    self.find(Diagnostic::error(Code::WrongKind, name.span, message));
                    None
                }
            },
        }
    }

    /// Charges `value` to the file's budget; a finding and false if it is spent.
    fn afford(&mut self, value: &Value, span: Span) -> bool {
        let weight = value.weight();
        if weight > self.values_left {
            self.values_left = 0;
            let text = "the values of this file are too large together";
            self.find(
                Diagnostic::error(Code::TooLarge, span, text)
                    .label("the bound is exceeded here")
                    .note("constants count each time they are used"),
            );
            return false;
        }
        self.values_left -= weight;
        true
    }

    fn range(&mut self, first: Value, last: Value, span: Span) -> Option<Value> {
        let ordered = match (&first, &last) {
            (Value::Integer(a), Value::Integer(b)) => {
                if let (Ok(low), Ok(high)) = (u64::try_from(*a), u64::try_from(*b))
                    && low <= high
                {
                    return Some(Value::Range(low, high));
                }
                false
            }
            (Value::Address(a), Value::Address(b)) => {
                let same = matches!((a, b), (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)));
                if same && a <= b {
                    return Some(Value::AddressRange(*a, *b));
                }
                false
            }
            _ => true,
        };
        let message = if ordered {
            format!("no range goes from {} to {}", first.describe(), last.describe())
        } else {
            "a range goes from the smaller to the larger one".to_owned()
        };
        let finding = Diagnostic::error(Code::Literal, span, message);
        self.find(finding.label("expected a range such as 1024-65535 or 192.0.2.1-192.0.2.9"));
        None
    }

    fn file(&mut self, name: &str, span: Span, frame: &Frame) -> Option<Value> {
        if let Some(known) = self.texts.get(name) {
            return known.clone().filter(|v| self.afford(v, span));
        }
        let path = beside(self.world.name, name);
        let shown = path.display().to_string();
        let limit = MAX_FILE.min(self.bytes_left);
        let value = match self.world.files.read(&path, limit) {
            Ok(text) => {
                self.bytes_left = self.bytes_left.saturating_sub(text.len());
                Some(Value::File { path: shown, text })
            }
            Err(reason) => {
                let finding = self
                    .error_in(frame, Code::File, span, format!("the file `{shown}` cannot be read"))
                    .label(reason)
                    .note("relative names start at the chain file's folder");
                self.find(finding);
                None
            }
        };
        self.texts.insert(name.to_owned(), value.clone());
        value.filter(|v| self.afford(v, span))
    }
}
