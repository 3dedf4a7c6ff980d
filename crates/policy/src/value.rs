//! Values of arguments and constants, as plain data with their units resolved.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A value, checked and in base units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A quoted string.
    Text(String),
    /// A bare word, such as `least_connections`.
    Word(String),
    /// A part of a whole, `1.0` for `100%`.
    Percent(f64),
    /// Bits per second.
    BitRate(u64),
    /// Packets per second.
    PacketRate(u64),
    /// Nanoseconds.
    Duration(u64),
    /// Bytes.
    Size(u64),
    /// An IPv4 or IPv6 address.
    Address(IpAddr),
    /// An address and the number of its leading bits that count; the others are zero.
    Prefix(IpAddr, u8),
    /// An address and a port.
    Endpoint(SocketAddr),
    /// First and last address, both included.
    AddressRange(IpAddr, IpAddr),
    /// First and last number (for example ports), both included.
    Range(u64, u64),
    /// `[a, b, …]`
    List(Vec<Value>),
    /// `{key: value, …}` in the order written.
    Record(Vec<(String, Value)>),
    /// `file("path")`: the path relative to the working directory, and what was read from it.
    File {
        /// Where it was read.
        path: String,
        /// What stood there.
        text: String,
    },
}

impl Value {
    /// The kind of value in the words of the messages, with its article.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Bool(_) => "true or false",
            Self::Integer(_) => "a number",
            Self::Float(_) => "a number with a fraction",
            Self::Text(_) => "a string",
            Self::Word(_) => "a word",
            Self::Percent(_) => "a percentage",
            Self::BitRate(_) => "a bit rate",
            Self::PacketRate(_) => "a packet rate",
            Self::Duration(_) => "a time",
            Self::Size(_) => "a size",
            Self::Address(_) => "an address",
            Self::Prefix(..) => "a prefix",
            Self::Endpoint(_) => "an address with a port",
            Self::AddressRange(..) => "an address range",
            Self::Range(..) => "a range",
            Self::List(_) => "a list",
            Self::Record(_) => "a record",
            Self::File { .. } => "a file",
        }
    }

    /// How much memory the value stands for, in cells of about 64 bytes: bounds the expansion of constants.
    pub(crate) fn weight(&self) -> usize {
        1 + match self {
            Self::Text(text) | Self::Word(text) => text.len() / 64,
            Self::File { text, .. } => text.len() / 64,
            Self::List(values) => values.iter().map(Self::weight).sum(),
            Self::Record(fields) => fields.iter().map(|(k, v)| k.len() / 64 + v.weight()).sum(),
            _ => 0,
        }
    }
}

/// `n` in the largest unit that divides it.
fn scaled(f: &mut fmt::Formatter<'_>, n: u64, units: &[(u64, &str)]) -> fmt::Result {
    let (size, unit) = units
        .iter()
        .filter(|(size, _)| n != 0 && n.is_multiple_of(*size))
        .max_by_key(|(size, _)| *size)
        .unwrap_or(&units[0]);
    write!(f, "{}{unit}", n / size)
}

/// A rate in bits per second, printed in its unit.
pub(crate) struct Bits(pub(crate) u64);

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [(1, "bps"), (1_000, "Kbps"), (1_000_000, "Mbps"), (1_000_000_000, "Gbps"), (1_000_000_000_000, "Tbps")];
        scaled(f, self.0, &units)
    }
}

/// A time in nanoseconds, printed in its unit.
pub(crate) struct Nanos(pub(crate) u64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = 1_000_000_000;
        let units = [(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (s, "s"), (60 * s, "min"), (3_600 * s, "h")];
        scaled(f, self.0, &units)
    }
}

/// As it is written in a chain file.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(b) => write!(f, "{b}"),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x}"),
            Self::Text(text) => quote(f, text),
            Self::Word(word) => f.write_str(word),
            Self::Percent(part) => write!(f, "{}%", part * 100.0),
            Self::BitRate(n) => write!(f, "{}", Bits(*n)),
            Self::PacketRate(n) => scaled(f, *n, &[(1, "pps"), (1_000, "Kpps"), (1_000_000, "Mpps")]),
            Self::Duration(n) => write!(f, "{}", Nanos(*n)),
            Self::Size(n) => {
                let units = [(1, "B"), (1_000, "KB"), (1_000_000, "MB"), (1_000_000_000, "GB")];
                let binary = [(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB")];
                let table = if n.is_multiple_of(1_000) || !n.is_multiple_of(1 << 10) { units } else { binary };
                scaled(f, *n, &table)
            }
            Self::Address(a) => write!(f, "{a}"),
            Self::Prefix(a, length) => write!(f, "{a}/{length}"),
            Self::Endpoint(e) => write!(f, "{e}"),
            Self::AddressRange(a, b) => write!(f, "{a}-{b}"),
            Self::Range(a, b) => write!(f, "{a}-{b}"),
            Self::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Record(fields) => {
                f.write_str("{")?;
                for (i, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Self::File { path, .. } => {
                f.write_str("file(")?;
                quote(f, path)?;
                f.write_str(")")
            }
        }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
