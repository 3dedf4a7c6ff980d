//! What is wrong with a text of rules, and where.

use std::fmt;

/// A mistake in a text of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Line, from 1.
    pub line: u32,
    /// Column of the first wrong character, from 1, in characters.
    pub column: u32,
    /// Characters that are wrong; 0 where something is missing.
    pub width: u32,
    /// What is wrong, or what was expected and what stands there.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RuleError {}

/// A word of a line, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word itself, without quotes.
    pub text: String,
    /// Line, from 1.
    pub line: u32,
    /// Column of its first character, from 1.
    pub column: u32,
    /// Characters it takes.
    pub width: u32,
}

impl Word {
    /// An error about this word.
    pub fn error(&self, message: impl Into<String>) -> RuleError {
        let message = message.into();
        RuleError { line: self.line, column: self.column, width: self.width, message, hint: None }
    }

    /// An error that says what should stand here instead.
    pub fn unexpected(&self, expected: &str) -> RuleError {
        self.error(format!("expected {expected}, found `{}`", self.text))
    }
}

impl RuleError {
    /// Adds what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the likely word, if one of `known` is close to what was written.
    pub fn nearest<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let written = written.to_lowercase();
        let best = known
            .into_iter()
            .map(|word| (strsim::osa_distance(&written, &word.to_lowercase()), word))
            .min_by_key(|&(distance, _)| distance)
            // A word that stands there already, only in the wrong place, is no proposal.
            .filter(|&(distance, word)| distance > 0 && distance <= 1 + word.len() / 4);
        match best {
            Some((_, word)) => self.hint(format!("did you mean `{word}`?")),
            None => self,
        }
    }
}
