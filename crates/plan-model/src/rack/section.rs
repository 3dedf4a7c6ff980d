//! A table of a TOML file being read: every key is looked for by kind, what is wrong is noted with its place,
//! and keys that nobody asked for are found in the end.

use std::ops::Range;

use catena_policy::{Code, Diagnostic, Span, likely};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::units::{Measure, amount};

/// A value and where it was written; None: it was not, and this is what holds without.
#[derive(Clone, Debug, PartialEq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Where.
    pub span: Option<Span>,
}

/// A table of the file.
pub struct Section<'a> {
    /// What it describes, for messages: `a server`.
    what: &'static str,
    table: &'a DeTable<'a>,
    /// Its place: what is missing is said here.
    pub span: Span,
    /// Keys that were asked for.
    asked: Vec<&'static str>,
}

/// A range of the TOML reader as a span.
pub fn span(range: Range<usize>) -> Span {
    Span::new(range.start, range.end)
}

/// What a value is, in words.
fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

impl<'a> Section<'a> {
    /// Begin to read `table`, which describes `what` and stands at `span`.
    pub fn new(what: &'static str, table: &'a DeTable<'a>, span: Span) -> Self {
        Section { what, table, span, asked: Vec::new() }
    }

    /// The value of `key`, if it is there.
    pub fn find(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// Note that the value of `key` is of the wrong kind.
    fn wrong(value: &Spanned<DeValue<'_>>, key: &str, expected: &str, findings: &mut Vec<Diagnostic>) {
        let message = format!("`{key}` is {}", described(value.get_ref()));
        findings.push(
            Diagnostic::error(Code::WrongKind, span(value.span()), message).label(format!("expected {expected}")),
        );
    }

    /// Note that `key` is not there.
    pub fn missing(&self, key: &str, expected: &str, findings: &mut Vec<Diagnostic>) {
        let message = format!("{} needs `{key}`: {expected}", self.what);
        findings.push(Diagnostic::error(Code::MissingKey, self.span, message).label(format!("`{key}` is not here")));
    }

    /// A whole number from `range`.
    pub fn count(
        &mut self,
        key: &'static str,
        range: Range<u32>,
        default: Option<u32>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Given<u32>> {
        let expected = format!("a whole number from {} to {}", range.start, range.end.saturating_sub(1));
        let Some(value) = self.find(key) else {
            return self.absent(key, default, &expected, findings);
        };
        let DeValue::Integer(number) = value.get_ref() else {
            Self::wrong(value, key, &expected, findings);
            return None;
        };
        let number = u32::from_str_radix(number.as_str(), number.radix()).ok().filter(|n| range.contains(n));
        let place = span(value.span());
        if number.is_none() {
            let message = format!("`{key}` is out of range");
            findings.push(Diagnostic::error(Code::Literal, place, message).label(format!("expected {expected}")));
        }
        number.map(|value| Given { value, span: Some(place) })
    }

    /// What holds for a key that is not there.
    fn absent<T>(
        &self,
        key: &str,
        default: Option<T>,
        expected: &str,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Given<T>> {
        if default.is_none() {
            self.missing(key, expected, findings);
        }
        default.map(|value| Given { value, span: None })
    }

    /// An amount with a unit; unless `zero`, more than nothing.
    pub fn amount(
        &mut self,
        key: &'static str,
        measure: Measure,
        zero: bool,
        default: Option<f64>,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Given<f64>> {
        let Some(value) = self.find(key) else {
            return self.absent(key, default, measure.expected(), findings);
        };
        read_amount(value, key, measure, zero, findings)
    }

    /// A string.
    pub fn text(
        &mut self,
        key: &'static str,
        default: Option<String>,
        expected: &str,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<Given<String>> {
        let Some(value) = self.find(key) else {
            return self.absent(key, default, expected, findings);
        };
        let text = read_text(value, key, expected, findings)?;
        if !is_name(&text.value) {
            let message = format!("`{key}` is no word that fits a line of a table");
            let finding = Diagnostic::error(Code::Literal, span(value.span()), message);
            findings.push(finding.label(format!("expected {expected}, of {NAME} printable characters at most")));
            return None;
        }
        Some(text)
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str, default: bool, findings: &mut Vec<Diagnostic>) -> bool {
        match self.find(key).map(|value| (value, value.get_ref())) {
            None => default,
            Some((_, DeValue::Boolean(on))) => *on,
            Some((value, _)) => {
                Self::wrong(value, key, "true or false", findings);
                default
            }
        }
    }

    /// The elements of a list; none if it is not there.
    pub fn list(
        &mut self,
        key: &'static str,
        expected: &str,
        findings: &mut Vec<Diagnostic>,
    ) -> Vec<&'a Spanned<DeValue<'a>>> {
        match self.find(key).map(|value| (value, value.get_ref())) {
            None => Vec::new(),
            Some((_, DeValue::Array(values))) => values.iter().collect(),
            Some((value, _)) => {
                Self::wrong(value, key, expected, findings);
                Vec::new()
            }
        }
    }

    /// Note the keys that nobody asked for. `elsewhere` knows keys that belong to another kind of table,
    /// with what to say of them.
    pub fn finish(self, elsewhere: &[(&str, &str)], findings: &mut Vec<Diagnostic>) {
        for (key, _) in self.table.iter() {
            let (name, place) = (key.get_ref().as_ref(), span(key.span()));
            if self.asked.contains(&name) {
                continue;
            }
            let message = format!("{} has no `{name}`", self.what);
            let finding = Diagnostic::error(Code::UnknownKey, place, message);
            findings.push(match elsewhere.iter().find(|(other, _)| *other == name) {
                Some((_, why)) => finding.label(*why),
                None => finding
                    .note(format!("it may have: {}", self.asked.join(", ")))
                    .suggest(likely(name, self.asked.iter().copied())),
            });
        }
    }
}

/// The amount that `value` tells.
pub fn read_amount(
    value: &Spanned<DeValue<'_>>,
    key: &str,
    measure: Measure,
    zero: bool,
    findings: &mut Vec<Diagnostic>,
) -> Option<Given<f64>> {
    let DeValue::String(text) = value.get_ref() else {
        let expected = format!("{}, in quotes", measure.expected());
        Section::wrong(value, key, &expected, findings);
        return None;
    };
    let place = span(value.span());
    match amount(text, measure) {
        Ok(number) if number > 0.0 || zero => Some(Given { value: number, span: Some(place) }),
        Ok(_) => {
            let message = format!("`{key}` is zero");
            findings.push(
                Diagnostic::error(Code::Literal, place, message).label(format!("expected {}", measure.expected())),
            );
            None
        }
        Err(wrong) => {
            findings.push(Diagnostic::error(Code::Unit, place, wrong.message).suggest(wrong.likely.as_deref()));
            None
        }
    }
}

/// The most characters of a name.
pub const NAME: usize = 64;

/// Whether a text may be a name in a plan: tables and messages are of lines, and whoever writes a rack must not write lines of them.
pub fn is_name(text: &str) -> bool {
    let is_seen = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
    !text.is_empty() && text.chars().count() <= NAME && text.chars().all(is_seen)
}

/// The string that `value` is; an empty one is none.
pub fn read_text(
    value: &Spanned<DeValue<'_>>,
    key: &str,
    expected: &str,
    findings: &mut Vec<Diagnostic>,
) -> Option<Given<String>> {
    match value.get_ref() {
        DeValue::String(text) if !text.is_empty() => {
            Some(Given { value: text.to_string(), span: Some(span(value.span())) })
        }
        DeValue::String(_) => {
            let message = format!("`{key}` is empty");
            findings.push(
                Diagnostic::error(Code::Literal, span(value.span()), message).label(format!("expected {expected}")),
            );
            None
        }
        _ => {
            Section::wrong(value, key, expected, findings);
            None
        }
    }
}
