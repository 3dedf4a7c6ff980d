//! What is wrong with a specification, and how to say it.

use std::fmt;
use std::ops::Range;

/// What is wrong with a word of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no such key; perhaps this one was meant.
    UnknownKey {
        /// The nearest key.
        likely: Option<&'static str>,
    },
    /// The key stands there without a value.
    NoValue {
        /// What the value would be.
        what: &'static str,
    },
    /// The key stood there before.
    Twice,
    /// The value is something else.
    Expected {
        /// What was expected.
        what: &'static str,
        /// The nearest word, or what else to try.
        likely: Option<&'static str>,
    },
    /// There are fewer addresses and ports than flows.
    TooFewAddresses {
        /// The flows asked for.
        flows: u64,
        /// The different flows that there can be.
        tuples: u64,
    },
}

/// A specification that cannot be read: the text, the place in it, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The whole text.
    pub text: String,
    /// The bytes of the text that are wrong.
    pub at: Range<usize>,
    /// What is wrong with them.
    pub problem: Problem,
}

impl SpecError {
    fn word(&self) -> &str {
        self.text.get(self.at.clone()).unwrap_or_default()
    }
}

/// One line that says what is wrong, then the text with the place marked, then what was expected.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match &self.problem {
            Problem::UnknownKey { .. } => write!(f, "the generator knows no `{word}`")?,
            Problem::NoValue { .. } => write!(f, "`{word}` needs a value")?,
            Problem::Twice => write!(f, "`{word}` is given twice")?,
            Problem::Expected { .. } if word.is_empty() => write!(f, "something is missing")?,
            Problem::Expected { .. } => write!(f, "`{word}` does not fit here")?,
            Problem::TooFewAddresses { flows, tuples } => {
                write!(f, "{flows} flows need as many different addresses and ports; here are {tuples}")?;
            }
        }
        let before = self.text.get(..self.at.start).unwrap_or_default().chars().count();
        let width = word.chars().count().max(1);
        // Control characters would move the marks.
        let shown: String = self.text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        write!(f, "\n  {shown}\n  {:before$}{}", "", "^".repeat(width))?;
        match &self.problem {
            Problem::UnknownKey { likely: Some(likely) } => write!(f, " did you mean `{likely}`?"),
            Problem::UnknownKey { likely: None } => write!(f, " expected one of {}", super::text::keys()),
            Problem::NoValue { what } => write!(f, " expected {what}"),
            Problem::Twice => write!(f, " remove one of them"),
            Problem::Expected { what, likely: None } => write!(f, " expected {what}"),
            Problem::Expected { what, likely: Some(likely) } => {
                write!(f, " expected {what}; did you mean `{likely}`?")
            }
            Problem::TooFewAddresses { .. } => write!(f, " give a shorter prefix, or a wider range of ports"),
        }
    }
}

impl std::error::Error for SpecError {}
