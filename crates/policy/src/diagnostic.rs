//! What is wrong in a chain file (or one beside it, such as a rack's): typed, placed, and rendered with the line it stands on.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::span::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth a look; the file can be used as it is.
    Warning,
    /// The file cannot be used like this.
    Error,
}

/// What kind of thing is wrong. The spelling (`as_str`) is stable, so that scripts may match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The text does not follow the grammar.
    Syntax,
    /// A bound on size, depth or number was exceeded.
    TooLarge,
    /// A number's unit is unknown, missing or of the wrong dimension.
    Unit,
    /// A literal (number, address, prefix, range) has no such value.
    Literal,
    /// The function library has no function of this name.
    UnknownFunction,
    /// A name that stands for nothing.
    UndefinedName,
    /// One name for two things.
    DuplicateName,
    /// A constant or macro that contains itself.
    Recursion,
    /// A path that comes back to where it was.
    Cycle,
    /// Packets would arrive where nothing leads on, or nothing leads here.
    Dangling,
    /// An edge no packet can take, since earlier ones take all.
    Unreachable,
    /// A path that is put together wrongly (directions, ends, arrows).
    Path,
    /// libpcap's compiler refuses a filter.
    Filter,
    /// A filter's return direction cannot be derived.
    Mirror,
    /// A rule file cannot be read.
    File,
    /// The function has no such parameter.
    UnknownParameter,
    /// A parameter the function needs is not given.
    MissingParameter,
    /// A value of the wrong kind.
    WrongKind,
    /// No function exports this attribute or this value of it.
    Attribute,
    /// A promise that contradicts itself.
    Promise,
    /// A relation between chains or classes that cannot hold.
    Relation,
    /// Shares of a branch that do not add up.
    Share,
    /// Defined and never used.
    Unused,
    /// A key that a description of hardware does not have.
    UnknownKey,
    /// A key that it needs.
    MissingKey,
    /// Numbers that cannot both be true.
    Contradiction,
}

impl Code {
    /// The stable spelling, as printed behind `error` and `warning`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::TooLarge => "too-large",
            Self::Unit => "unit",
            Self::Literal => "literal",
            Self::UnknownFunction => "unknown-function",
            Self::UndefinedName => "undefined-name",
            Self::DuplicateName => "duplicate-name",
            Self::Recursion => "recursion",
            Self::Cycle => "cycle",
            Self::Dangling => "dangling",
            Self::Unreachable => "unreachable",
            Self::Path => "path",
            Self::Filter => "filter",
            Self::Mirror => "mirror",
            Self::File => "file",
            Self::UnknownParameter => "unknown-parameter",
            Self::MissingParameter => "missing-parameter",
            Self::WrongKind => "wrong-kind",
            Self::Attribute => "attribute",
            Self::Promise => "promise",
            Self::Relation => "relation",
            Self::Share => "share",
            Self::Unused => "unused",
            Self::UnknownKey => "unknown-key",
            Self::MissingKey => "missing-key",
            Self::Contradiction => "contradiction",
        }
    }
}

/// One finding about a chain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The kind of finding.
    pub code: Code,
    /// One sentence: what is wrong.
    pub message: String,
    /// The words it is about.
    pub span: Span,
    /// What stands under those words; may be empty.
    pub label: String,
    /// Other places that belong to it, each with a label.
    pub related: Vec<(Span, String)>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    #[must_use]
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: String::new(),
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning at `span`.
    #[must_use]
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// The same with `label` under the words.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same with one more place.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    /// The same with one more note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with "did you mean" advice, if there is a likely name.
    #[must_use]
    pub fn suggest(mut self, likely: Option<&str>) -> Self {
        if let Some(name) = likely {
            self.help = Some(format!("did you mean `{name}`?"));
        }
        self
    }

    /// The finding as text for a terminal: the line, the words marked, what to try.
    ///
    /// `name` is the file's name as the user gave it, `source` the text the spans refer to.
    #[must_use]
    pub fn render(&self, name: &str, source: &str, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let primary = AnnotationKind::Primary.span(self.span.within(source));
        let mut snippet = Snippet::source(source).path(name).annotation(if self.label.is_empty() {
            primary
        } else {
            primary.label(self.label.as_str())
        });
        for (span, label) in &self.related {
            snippet = snippet.annotation(AnnotationKind::Context.span(span.within(source)).label(label.as_str()));
        }
        let mut group =
            Group::with_title(level.primary_title(self.message.as_str()).id(self.code.as_str())).element(snippet);
        for note in &self.notes {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

/// The findings of one file, bounded in number.
pub(crate) struct Findings {
    all: Vec<Diagnostic>,
    limit: usize,
}

impl Findings {
    pub(crate) fn new(limit: usize) -> Self {
        Self { all: Vec::new(), limit }
    }

    /// Keeps `finding`, unless there are too many or the same place has one of its kind already.
    pub(crate) fn push(&mut self, finding: Diagnostic) {
        let seen = |d: &Diagnostic| d.span == finding.span && d.code == finding.code && d.message == finding.message;
        if self.all.len() < self.limit && !self.all.iter().any(seen) {
            self.all.push(finding);
        }
    }

    /// Whether no more findings are kept; work may stop.
    pub(crate) fn full(&self) -> bool {
        self.all.len() >= self.limit
    }

    pub(crate) fn errors(&self) -> bool {
        self.all.iter().any(|d| d.severity == Severity::Error)
    }

    pub(crate) fn any(&self, codes: &[Code]) -> bool {
        self.all.iter().any(|d| codes.contains(&d.code))
    }

    /// Whether there is an error beyond functions that the library lacks.
    pub(crate) fn broken(&self) -> bool {
        self.all.iter().any(|d| d.severity == Severity::Error && d.code != Code::UnknownFunction)
    }

    /// The findings in the order of the file.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        let full = self.full();
        self.all.sort_by_key(|d| (d.span.start, d.span.end));
        if full {
            let last = self.all.last().map_or_else(Span::default, |d| d.span);
            let text = format!("more than {} findings; the rest is not shown", self.limit);
            self.all.push(Diagnostic::warning(Code::TooLarge, last, text));
        }
        self.all
    }
}

/// The candidate most like `word`, if one is like enough to be a slip of the pen.
#[must_use]
pub fn likely<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A very long word is no slip, and the distance is quadratic.
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|c| c.len() <= 64 && *c != word)
        .map(|c| (strsim::damerau_levenshtein(&lower, &c.to_lowercase()), c))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}
