//! A function or macro is used: is there such a thing, and does it take what it is given?

use std::collections::HashMap;

use super::{Frame, Resolver};
use crate::ast::{Call, Expr, ExprKind};
use crate::diagnostic::{Code, likely};
use crate::library::{ParamKind, Signature};
use crate::span::{Name, Span};
use crate::value::Value;

impl<'a> Resolver<'a> {
    /// The names that may be used like functions.
    pub(super) fn callable(&self) -> Vec<String> {
        let functions = self.world.library.functions.iter().map(|f| f.name.clone());
        functions.chain(self.macros.keys().map(|m| (*m).to_owned())).collect()
    }

    pub(super) fn unknown_function(&mut self, name: &Name, frame: &Frame) {
        let callable = self.callable();
        let close = likely(&name.node, callable.iter().map(String::as_str)).map(str::to_owned);
        let message = format!("there is no function `{}`", name.node);
        let finding = self
            .error_in(frame, Code::UnknownFunction, name.span, message)
            .label("not in the function library")
            .suggest(close.as_deref());
        self.find(match name.node.as_str() {
            "drop" | "pass" => finding.help(format!("did you mean `unparsed = {}`?", name.node)),
            _ => finding,
        });
    }

    /// The arguments of a function as checked values; unknown functions take anything.
    pub(super) fn arguments(&mut self, call: &Call, frame: &Frame) -> Vec<(String, Value)> {
        // The library outlives the resolver; the borrow is not of `self`.
        let library: &'a crate::library::Library = self.world.library;
        let signature = library.find(&call.function.node);
        if signature.is_none() {
            self.unknown_function(&call.function, frame);
        }
        let mut args: Vec<(String, Value)> = Vec::new();
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for (name, expr) in &call.arguments {
            if let Some(first) = seen.insert(&name.node, name.span) {
                self.duplicate(name, first, "arguments");
                continue;
            }
            let kind = signature.map(|s| self.parameter(s, name, frame));
            let Some(value) = self.eval(expr, frame) else {
                continue;
            };
            match kind {
                Some(Some(kind)) if !kind.accepts(&value) => {
                    self.wrong_kind(&call.function, name, kind, expr, &value, frame);
                }
                Some(None) => {}
                _ => args.push((name.node.clone(), value)),
            }
        }
        if let Some(signature) = signature {
            self.missing(signature, call, &seen, frame);
        }
        args
    }

    fn parameter(&mut self, signature: &'a Signature, name: &Name, frame: &Frame) -> Option<&'a ParamKind> {
        if let Some(param) = signature.params.iter().find(|p| p.name == name.node) {
            return Some(&param.kind);
        }
        let names = signature.params.iter().map(|p| p.name.as_str());
        let close = likely(&name.node, names.clone());
        let message = format!("`{}` has no parameter `{}`", signature.name, name.node);
        let finding = self.error_in(frame, Code::UnknownParameter, name.span, message).label("no such parameter");
        let list: Vec<_> = names.collect();
        let finding = if list.is_empty() {
            finding.note(format!("`{}` takes no parameters", signature.name))
        } else {
            finding.note(format!("`{}` takes: {}", signature.name, list.join(", ")))
        };
        self.find(finding.suggest(close));
        None
    }

    fn wrong_kind(
        &mut self,
        function: &Name,
        name: &Name,
        kind: &ParamKind,
        expr: &Expr,
        value: &Value,
        frame: &Frame,
    ) {
        let message = format!("`{}` of `{}` must be {kind}", name.node, function.node);
        // In a list, the element that is wrong, not that a list is none.
        let (expr, value) = match (&expr.node, value) {
            (ExprKind::List(exprs), Value::List(values)) => match kind.stranger(values) {
                Some(at) if at < exprs.len() => (&exprs[at], &values[at]),
                _ => (expr, value),
            },
            _ => (expr, value),
        };
        let found = match value {
            Value::Word(word) => format!("the word `{word}`"),
            Value::Integer(n) if *n < 0 => "a negative number".to_owned(),
            other => other.describe().to_owned(),
        };
        let unit = if matches!(
            value,
            Value::BitRate(_) | Value::PacketRate(_) | Value::Duration(_) | Value::Size(_) | Value::Percent(_)
        ) {
            Code::Unit
        } else {
            Code::WrongKind
        };
        let close = match value {
            Value::Word(word) => {
                let constants = self.constants.keys().copied();
                let parameters = frame.parameters.keys().map(String::as_str);
                likely(word, kind.words().into_iter().chain(constants).chain(parameters)).map(str::to_owned)
            }
            _ => None,
        };
        let finding =
            self.error_in(frame, unit, expr.span, message).label(format!("this is {found}")).suggest(close.as_deref());
        self.find(finding);
    }

    fn missing(&mut self, signature: &Signature, call: &Call, given: &HashMap<&str, Span>, frame: &Frame) {
        for param in &signature.params {
            if param.required && !given.contains_key(param.name.as_str()) {
                let message = format!("`{}` needs `{}`", signature.name, param.name);
                let finding = self
                    .error_in(frame, Code::MissingParameter, call.function.span, message)
                    .label(format!("expected `{} = …`, {}", param.name, param.kind));
                self.find(if param.doc.is_empty() {
                    finding
                } else {
                    finding.note(format!("{}: {}", param.name, param.doc))
                });
            }
        }
    }

    /// The frame in which a macro's body is read: its parameters with their values.
    pub(super) fn macro_frame(&mut self, definition: super::Macro<'a>, call: &Call, frame: &Frame) -> Frame {
        let mut parameters: HashMap<String, Option<Value>> = HashMap::new();
        for (name, expr) in &call.arguments {
            if !definition.parameters.iter().any(|p| p.name.node == name.node) {
                let names = definition.parameters.iter().map(|p| p.name.node.as_str());
                let message = format!("the macro `{}` has no parameter `{}`", call.function.node, name.node);
                let finding = self
                    .error_in(frame, Code::UnknownParameter, name.span, message)
                    .label("no such parameter")
                    .suggest(likely(&name.node, names));
                self.find(finding);
                continue;
            }
            let value = self.eval(expr, frame);
            if parameters.insert(name.node.clone(), value).is_some() {
                self.duplicate(name, call.function.span, "arguments");
            }
        }
        for parameter in definition.parameters {
            if parameters.contains_key(&parameter.name.node) {
                continue;
            }
            let value = match &parameter.default {
                Some(default) => self.eval(default, &Frame::default()),
                None => {
                    let message = format!("the macro `{}` needs `{}`", call.function.node, parameter.name.node);
                    let finding = self
                        .error_in(frame, Code::MissingParameter, call.function.span, message)
                        .label(format!("expected `{} = …`", parameter.name.node))
                        .related(parameter.name.span, "declared here");
                    self.find(finding);
                    None
                }
            };
            parameters.insert(parameter.name.node.clone(), value);
        }
        Frame { parameters, site: frame.site.or(Some(call.span)) }
    }
}
