//! What the parser reads: the file as written, before names mean anything.

use crate::span::{Name, Span, Spanned};
use crate::value::Value;

/// An expression that stands for a value.
pub(crate) type Expr = Spanned<ExprKind>;

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// A literal of one token.
    Literal(Value),
    /// A constant, a macro's parameter, or an enumeration word.
    Word(String),
    List(Vec<Expr>),
    Record(Vec<(Name, Expr)>),
    /// `first-last`
    Range(Box<Expr>, Box<Expr>),
    /// `file(path)`
    File(Box<Expr>),
    /// A literal that is none; found already.
    Broken,
}

/// A statement at the top of a file.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Class {
        name: Name,
        filter: Expr,
        back: Option<Expr>,
    },
    Let {
        name: Name,
        value: Expr,
    },
    Macro {
        name: Name,
        parameters: Vec<Parameter>,
        body: Vec<Statement>,
    },
    Chain {
        name: Name,
        classes: Vec<Name>,
        body: Vec<Statement>,
    },
    Relation(Relation),
    /// Lemur's spelling: a chain without a block around it.
    Bare(Statement),
}

/// A macro's parameter and its default.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Name,
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RelationWord {
    Priority,
    Cpu,
    Throughput,
    Share,
}

impl RelationWord {
    /// As a file spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RelationWord::Priority => "priority",
            RelationWord::Cpu => "cpu",
            RelationWord::Throughput => "throughput",
            RelationWord::Share => "share",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) word: RelationWord,
    pub(crate) span: Span,
    pub(crate) members: Vec<Name>,
    /// Empty for `priority`.
    pub(crate) weights: Vec<Expr>,
}

/// A statement of a chain or macro.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Promise(Promise),
    Unparsed(Unparsed),
    Instance { name: Name, call: Call },
    Path(Path),
}

#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) span: Span,
    pub(crate) rate: PromisedRate,
    pub(crate) within: Option<Expr>,
}

/// `unparsed = drop`
#[derive(Clone, Debug)]
pub(crate) struct Unparsed {
    pub(crate) span: Span,
    /// `pass` or `drop`, if it is right.
    pub(crate) action: Name,
}

#[derive(Clone, Debug)]
pub(crate) enum PromisedRate {
    /// `bulk`, `..`, or nothing.
    Bulk,
    Exactly(Expr),
    Between(Option<Expr>, Option<Expr>),
}

/// `Function(name = value, …)`
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: Name,
    pub(crate) arguments: Vec<(Name, Expr)>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// The word `back`, if the path is of the return direction by saying so.
    pub(crate) back: Option<Span>,
    pub(crate) steps: Vec<Step>,
}

/// An element of a path, with the arrow that leads to it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// None for the first one.
    pub(crate) arrow: Option<Arrow>,
    pub(crate) element: Element,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Arrow {
    pub(crate) two_way: bool,
    pub(crate) rate: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) enum Element {
    In,
    Out,
    Drop,
    /// `name` or `name[selector]`
    Instance {
        name: Name,
        selector: Option<Selector>,
    },
    /// `Function(…)` or `name::Function(…)`
    Call {
        name: Option<Name>,
        call: Call,
        selector: Option<Selector>,
    },
    Branch(Vec<Arm>),
}

/// `[safe]` or `[verdict == safe]`: which packets leave by this edge.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    pub(crate) attribute: Option<Name>,
    pub(crate) negated: bool,
    pub(crate) value: Expr,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) condition: Option<Condition>,
    /// The estimate behind `~`.
    pub(crate) share: Option<Expr>,
    /// Empty: straight to the merge.
    pub(crate) steps: Vec<Step>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Else,
    /// A filter in quotes.
    Filter(Name),
    /// A class, a constant, or a value that the function before exports.
    Named(Name),
    Attribute {
        name: Name,
        negated: bool,
        value: Expr,
    },
    /// A part of the flows.
    Split(Expr),
    /// Lemur's `{'vlan_tag': 0x1, NF}`.
    Fields(Vec<(Name, Expr)>),
}
