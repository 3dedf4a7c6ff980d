//! A function's configuration: parameters it declares, arguments it is given.
//!
//! Whoever builds a function has checked the arguments against the declared [`Param`]s; what can still be
//! wrong is what only the function knows (a rule file's line, a pool too small), and ends in an
//! [`ArgError`] that names the argument.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use catena_state::{NoMemory, Share};

/// Which values a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number, 0 or more.
    Integer,
    /// A number, with or without a fraction.
    Number,
    /// A quoted string.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A part of a whole.
    Percent,
    /// Bits per second.
    BitRate,
    /// Packets per second.
    PacketRate,
    /// Bits or packets per second.
    Rate,
    /// A time.
    Duration,
    /// A size in bytes.
    Size,
    /// An address.
    Address,
    /// A prefix; an address counts as its own.
    Prefix,
    /// First and last address.
    AddressRange,
    /// An address with a port.
    Endpoint,
    /// First and last number, such as ports; one number counts as both.
    Range,
    /// A file's content.
    File,
    /// `[a, b]`, each of this kind; a single value counts as a list of one.
    List(&'static Kind),
    /// `{key: value}`
    Record,
    /// Any of these.
    OneOf(&'static [Kind]),
    /// Anything.
    Any,
}

/// A parameter that a function declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// As chain files spell it.
    pub name: &'static str,
    /// Which values it accepts.
    pub kind: Kind,
    /// What holds without it, in words; `None` when it must be given.
    pub default: Option<&'static str>,
    /// One line for the manual.
    pub doc: &'static str,
}

/// An argument, in base units: bits or packets per second, ns, bytes.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants say what they are")]
pub enum Value {
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    Word(String),
    Percent(f64),
    BitRate(u64),
    PacketRate(u64),
    Duration(u64),
    Size(u64),
    Address(IpAddr),
    Prefix(IpAddr, u8),
    Endpoint(SocketAddr),
    AddressRange(IpAddr, IpAddr),
    Range(u64, u64),
    List(Vec<Value>),
    Record(Vec<(String, Value)>),
    File { path: String, text: String },
}

impl Value {
    /// Return the values of a list; a single value is a list of one.
    pub fn as_list(&self) -> &[Value] {
        match self {
            Value::List(values) => values,
            single => std::slice::from_ref(single),
        }
    }

    /// Return a string's or a word's text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Word(text) => Some(text),
            _ => None,
        }
    }

    /// Return a prefix; an address is its own.
    pub fn as_prefix(&self) -> Option<(IpAddr, u8)> {
        match *self {
            Value::Prefix(address, length) => Some((address, length)),
            Value::Address(address) => Some((address, if address.is_ipv4() { 32 } else { 128 })),
            _ => None,
        }
    }

    /// Return a range; a number is its own.
    pub fn as_range(&self) -> Option<(u64, u64)> {
        match *self {
            Value::Range(first, last) => Some((first, last)),
            Value::Integer(number) => u64::try_from(number).ok().map(|n| (n, n)),
            _ => None,
        }
    }

    /// Return a whole number that is not negative.
    pub fn as_integer(&self) -> Option<u64> {
        match *self {
            Value::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }
}

/// What is wrong with an argument, as only the function can know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    /// The parameter.
    pub param: String,
    /// The place inside a file argument: its path and line, from 1.
    pub place: Option<(String, usize)>,
    /// What is wrong and what was expected.
    pub message: String,
    /// What to try.
    pub help: Option<String>,
}

impl ArgError {
    /// Make an error about a parameter.
    pub fn new(param: &str, message: impl Into<String>) -> Self {
        ArgError { param: param.to_owned(), place: None, message: message.into(), help: None }
    }

    /// Make the error of a parameter that asks for more entries than the system has memory for.
    pub fn no_memory(param: &str, error: NoMemory) -> Self {
        Self::new(param, error.to_string()).help("a smaller number takes less; `ulimit -v` is the limit of a process")
    }

    /// Add what to try.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((path, line)) = &self.place {
            write!(f, "{path}:{line}: ")?;
        }
        write!(f, "`{}`: {}", self.param, self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, " ({help})"))
    }
}

impl std::error::Error for ArgError {}

/// The arguments a function is built with. A clone shares them, files and all.
#[derive(Clone, Debug, Default)]
pub struct Args(Arc<Vec<(String, Value)>>);

impl PartialEq for Args {
    fn eq(&self, other: &Args) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Args {
    /// Make arguments from names and values.
    pub fn new(args: impl IntoIterator<Item = (String, Value)>) -> Self {
        Args(Arc::new(args.into_iter().collect()))
    }

    /// Add or change one; for tests and tools that build functions by hand.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        let args = Arc::make_mut(&mut self.0);
        args.retain(|(n, _)| n != name);
        args.push((name.to_owned(), value));
        self
    }

    /// Return an argument.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// Return an argument that must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn require(&self, name: &str) -> Result<&Value, ArgError> {
        self.get(name).ok_or_else(|| ArgError::new(name, "is required"))
    }

    /// Return all names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Return a text or word, or `default`.
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.get(name).and_then(Value::as_text).unwrap_or(default)
    }

    /// Return a whole number, or `default`.
    ///
    /// # Errors
    /// When it lies outside `bounds`.
    pub fn integer(&self, name: &str, default: u64, bounds: std::ops::RangeInclusive<u64>) -> Result<u64, ArgError> {
        let number = match self.get(name) {
            None => return Ok(default),
            Some(value) => value.as_integer(),
        };
        number.filter(|n| bounds.contains(n)).ok_or_else(|| {
            ArgError::new(name, format!("expected a whole number from {} to {}", bounds.start(), bounds.end()))
        })
    }

    /// Return a whole number, or `default`: a bound on what all instances have together. Of a total `n` an instance may have
    /// [`Share::part_of`] `n`.
    ///
    /// # Errors
    /// When it lies outside `bounds`, or is less than one for each instance: an instance without room would refuse all packets
    /// of the hosts that it happens to get.
    pub fn total(
        &self,
        name: &str,
        default: u64,
        bounds: std::ops::RangeInclusive<u64>,
        share: Share,
    ) -> Result<u64, ArgError> {
        let total = self.integer(name, default, bounds)?;
        if total < u64::from(share.count) {
            let message = format!("{total} is less than one for each of {} workers", share.count);
            return Err(ArgError::new(name, message).help("it is the total of all workers: raise it, or take fewer"));
        }
        Ok(total)
    }

    /// Return a time in ns, or `default`.
    pub fn duration(&self, name: &str, default: u64) -> u64 {
        match self.get(name) {
            Some(Value::Duration(ns)) => *ns,
            _ => default,
        }
    }

    /// Return whether a switch is on, or `default`.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            Some(Value::Bool(on)) => *on,
            _ => default,
        }
    }
}
