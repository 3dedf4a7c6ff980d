//! What the language knows of the functions it may use: signatures that come in from outside.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::Value;

/// The functions there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// One signature a function; names are unique.
    pub functions: Vec<Signature>,
}

impl Library {
    /// The function called `name`, letter by letter.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Signature> {
        self.functions.iter().find(|f| f.name == name)
    }
}

/// What a function is called, takes and exports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// As chain files spell it.
    pub name: String,
    /// One line.
    pub summary: String,
    /// What it takes, by name.
    pub params: Vec<Param>,
    /// What it derives and tags packets with (E2 §3.2.2, attribute-method bindings).
    pub attributes: Vec<Attribute>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// As chain files spell it.
    pub name: String,
    /// Which values it accepts.
    pub kind: ParamKind,
    /// Whether a chain file must give it.
    pub required: bool,
    /// What holds without it, as text for the manual.
    pub default: Option<String>,
    /// One line for the manual.
    pub doc: String,
}

/// Which values a parameter accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ParamKind {
    /// `true` or `false`.
    Bool,
    /// A whole number, 0 or more.
    Integer,
    /// A number, with or without fraction.
    Number,
    /// A quoted string.
    Text,
    /// One of these words.
    Word(Vec<String>),
    /// `30%`
    Percent,
    /// Bits per second.
    BitRate,
    /// Packets per second.
    PacketRate,
    /// Bits or packets per second.
    Rate,
    /// A time.
    Duration,
    /// A size.
    Size,
    /// An address.
    Address,
    /// A prefix; an address counts as its own.
    Prefix,
    /// First and last address.
    AddressRange,
    /// An address with a port, written `192.0.2.1:80` or as a string `"[2001:db8::1]:80"`.
    Endpoint,
    /// First and last number, such as `1024-65535`; one number counts as both.
    Range,
    /// `file("path")`
    File,
    /// `[a, b]`, each of this kind; a single value counts as a list of one.
    List(Box<ParamKind>),
    /// `{key: value}`
    Record,
    /// Any of these.
    OneOf(Vec<ParamKind>),
    /// Anything.
    Any,
}

impl ParamKind {
    /// Whether `value` is of this kind.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Bool, Value::Bool(_))
            | (Self::Number, Value::Integer(_) | Value::Float(_))
            | (Self::Text, Value::Text(_))
            | (Self::Percent, Value::Percent(_))
            | (Self::BitRate | Self::Rate, Value::BitRate(_))
            | (Self::PacketRate | Self::Rate, Value::PacketRate(_))
            | (Self::Duration, Value::Duration(_))
            | (Self::Size, Value::Size(_))
            | (Self::Address, Value::Address(_))
            | (Self::Prefix, Value::Prefix(..) | Value::Address(_))
            | (Self::AddressRange, Value::AddressRange(..))
            | (Self::Endpoint, Value::Endpoint(_))
            | (Self::Range, Value::Range(..))
            | (Self::File, Value::File { .. })
            | (Self::Record, Value::Record(_)) => true,
            (Self::Integer | Self::Range, Value::Integer(n)) => *n >= 0,
            (Self::Endpoint, Value::Text(text)) => text.parse::<std::net::SocketAddr>().is_ok(),
            (Self::Word(words), Value::Word(word)) => words.contains(word),
            (Self::List(kind), Value::List(values)) => values.iter().all(|v| kind.accepts(v)),
            (Self::List(kind), single) => kind.accepts(single),
            (Self::OneOf(kinds), value) => kinds.iter().any(|k| k.accepts(value)),
            _ => false,
        }
    }

    /// The first of `values` that no list of this kind may hold.
    pub(crate) fn stranger(&self, values: &[Value]) -> Option<usize> {
        match self {
            Self::List(kind) => values.iter().position(|v| !kind.accepts(v)),
            // The list that gets furthest is the one that was meant.
            Self::OneOf(kinds) => kinds.iter().filter_map(|k| k.stranger(values)).max(),
            _ => None,
        }
    }

    /// The words of all enumerations in it.
    pub(crate) fn words(&self) -> Vec<&str> {
        match self {
            Self::Word(words) => words.iter().map(String::as_str).collect(),
            Self::List(kind) => kind.words(),
            Self::OneOf(kinds) => kinds.iter().flat_map(Self::words).collect(),
            _ => Vec::new(),
        }
    }
}

/// In the words of the messages and manuals, with its article.
impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "true or false",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Percent => "a percentage such as 30%",
            Self::BitRate => "a bit rate such as 2Gbps",
            Self::PacketRate => "a packet rate such as 3Mpps",
            Self::Rate => "a rate such as 2Gbps or 3Mpps",
            Self::Duration => "a time such as 45us",
            Self::Size => "a size such as 64KB",
            Self::Address => "an address",
            Self::Prefix => "a prefix such as 10.0.0.0/8",
            Self::AddressRange => "an address range such as 192.0.2.1-192.0.2.9",
            Self::Endpoint => "an address with a port such as 192.0.2.1:80",
            Self::Range => "a range such as 1024-65535",
            Self::File => "a file such as file(\"edge.acl\")",
            Self::Record => "a record such as {key: value}",
            Self::Any => "a value",
            Self::List(kind) => return write!(f, "{kind}, or a list of such"),
            Self::Word(words) => return join(f, words.iter().map(|w| format!("`{w}`")).collect()),
            Self::OneOf(kinds) => return join(f, kinds.iter().map(ToString::to_string).collect()),
        })
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: Vec<String>) -> fmt::Result {
    match parts.split_last() {
        None => f.write_str("nothing"),
        Some((last, [])) => f.write_str(last),
        Some((last, rest)) => write!(f, "{} or {last}", rest.join(", ")),
    }
}

/// A value a function derives for packets, and how packets carry it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// As chain files spell it.
    pub name: String,
    /// The values it takes, or `None` if they are not known beforehand.
    pub values: Option<Vec<String>>,
    /// How packets are associated with values.
    pub by: Method,
}

/// E2's two methods (§3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// Each value has an output gate of its own, in the order of `values`.
    Port,
    /// The value travels with the packet as metadata.
    Metadata,
}
