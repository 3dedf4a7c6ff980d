//! Attributes that functions export: gates of their own, and values that travel with packets
//! (E2 §3.2.2).

use super::condition::Guard;
use super::{Frame, Resolver};
use crate::ast::{self, Expr, Selector};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::graph::Condition;
use crate::library::{Attribute, Method, Signature};
use crate::span::Span;
use crate::value::Value;

impl Resolver<'_> {
    /// What the selector on an instance of `function` asks for.
    pub(super) fn selector(&mut self, selector: &Selector, function: Option<&str>, frame: &Frame) -> Option<Guard> {
        let Some(function) = function else {
            let text = "a macro has no gates of its own";
            let finding = Diagnostic::error(Code::Attribute, selector.span, text);
            self.find(finding.help("select inside the macro"));
            return None;
        };
        let library: &crate::library::Library = self.world.library;
        let signature = library.find(function);
        let known: Vec<&str> = signature.map_or_else(Vec::new, |s| s.attributes.iter().flat_map(values_of).collect());
        let values = self.attribute_values(&selector.value, frame, &known)?;
        let guard = |name: Option<String>| {
            let condition = Condition::Attribute { name, values: values.clone(), negated: selector.negated };
            Some(Guard { condition, span: selector.span, upstream: false })
        };
        let Some(signature) = signature else {
            return guard(selector.attribute.as_ref().map(|n| n.node.clone()));
        };
        let attribute = match &selector.attribute {
            Some(name) => signature.attributes.iter().find(|a| a.name == name.node),
            None => values.first().and_then(|value| exports(signature, value)),
        };
        let Some(attribute) = attribute else {
            self.no_attribute(signature, selector, &values);
            return None;
        };
        if let Some(list) = &attribute.values
            && let Some(wrong) = values.iter().find(|v| !list.contains(v))
        {
            self.no_value(attribute, wrong, selector.value.span);
            return None;
        }
        guard(Some(attribute.name.clone()))
    }

    fn no_attribute(&mut self, signature: &Signature, selector: &Selector, values: &[String]) {
        let names = signature.attributes.iter().map(|a| a.name.as_str());
        let (span, word, choice): (Span, &str, Vec<&str>) = match &selector.attribute {
            Some(name) => (name.span, &name.node, names.collect()),
            None => {
                let all = signature.attributes.iter().flat_map(values_of).collect();
                (selector.value.span, values.first().map_or("", String::as_str), all)
            }
        };
        let message = format!("`{}` exports no `{word}`", signature.name);
        let note = if choice.is_empty() {
            format!("`{}` exports no attributes with known values", signature.name)
        } else {
            format!("`{}` exports: {}", signature.name, choice.join(", "))
        };
        let finding = Diagnostic::error(Code::Attribute, span, message)
            .label("no such attribute value")
            .note(note)
            .suggest(likely(word, choice));
        self.find(finding);
    }

    pub(super) fn no_value(&mut self, attribute: &Attribute, wrong: &str, span: Span) {
        let choice: Vec<&str> = values_of(attribute).collect();
        let message = format!("the attribute `{}` is never `{wrong}`", attribute.name);
        let finding = Diagnostic::error(Code::Attribute, span, message)
            .label("no such value")
            .note(format!("`{}` is one of: {}", attribute.name, choice.join(", ")))
            .suggest(likely(wrong, choice));
        self.find(finding);
    }

    /// Values of an attribute as text. Words that it exports (`known`) are meant as such, even if
    /// a constant has the same name.
    pub(super) fn attribute_values(&mut self, expr: &Expr, frame: &Frame, known: &[&str]) -> Option<Vec<String>> {
        if let ast::ExprKind::Word(word) = &expr.node
            && known.contains(&word.as_str())
        {
            return Some(vec![word.clone()]);
        }
        let value = self.eval(expr, frame)?;
        let list = match value {
            Value::List(list) if !list.is_empty() => list,
            other => vec![other],
        };
        let mut out = Vec::new();
        for value in list {
            out.push(match value {
                Value::Text(text) | Value::Word(text) => text,
                Value::Integer(n) => n.to_string(),
                Value::Bool(b) => b.to_string(),
                Value::Address(a) => a.to_string(),
                other => {
                    let message = format!("{} is no value of an attribute", other.describe());
                    let finding = Diagnostic::error(Code::WrongKind, expr.span, message);
                    self.find(finding.label("expected a word, a number or a string"));
                    return None;
                }
            });
        }
        Some(out)
    }
}

/// The attribute of `signature` that has `value`; those with a gate for each value come first.
pub(super) fn exports<'s>(signature: &'s Signature, value: &str) -> Option<&'s Attribute> {
    let by =
        |method: Method| signature.attributes.iter().find(move |a| a.by == method && values_of(a).any(|v| v == value));
    by(Method::Port).or_else(|| by(Method::Metadata))
}

pub(super) fn values_of(attribute: &Attribute) -> impl Iterator<Item = &str> {
    attribute.values.iter().flatten().map(String::as_str)
}
