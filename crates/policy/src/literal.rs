//! Literals: numbers with units, addresses, prefixes, strings. From the text of one token to a value.

use std::net::{IpAddr, SocketAddr};

use crate::diagnostic::{Code, Diagnostic, likely};
use crate::span::Span;
use crate::value::Value;

/// What a unit measures.
#[derive(Clone, Copy)]
enum Measure {
    Bits,
    Packets,
    Time,
    Bytes,
}

/// Units with their size.
const UNITS: [(&str, Measure, f64); 24] = [
    ("bps", Measure::Bits, 1.0),
    ("Kbps", Measure::Bits, 1e3),
    ("Mbps", Measure::Bits, 1e6),
    ("Gbps", Measure::Bits, 1e9),
    ("Tbps", Measure::Bits, 1e12),
    ("pps", Measure::Packets, 1.0),
    ("Kpps", Measure::Packets, 1e3),
    ("Mpps", Measure::Packets, 1e6),
    ("ns", Measure::Time, 1.0),
    ("us", Measure::Time, 1e3),
    ("µs", Measure::Time, 1e3),
    ("ms", Measure::Time, 1e6),
    ("s", Measure::Time, 1e9),
    ("min", Measure::Time, 60e9),
    ("h", Measure::Time, 3600e9),
    ("B", Measure::Bytes, 1.0),
    ("KB", Measure::Bytes, 1e3),
    ("kB", Measure::Bytes, 1e3),
    ("MB", Measure::Bytes, 1e6),
    ("GB", Measure::Bytes, 1e9),
    ("KiB", Measure::Bytes, 1024.0),
    ("MiB", Measure::Bytes, 1_048_576.0),
    ("GiB", Measure::Bytes, 1_073_741_824.0),
    ("TB", Measure::Bytes, 1e12),
];

fn bad(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Code::Literal, span, message))
}

/// The same with `label` under the words.
fn labelled(mut finding: Box<Diagnostic>, label: &str) -> Box<Diagnostic> {
    finding.label = label.to_owned();
    finding
}

/// Rates are matched without regard to case (`64kbps`), the others are not.
fn unit_called(text: &str) -> Option<&'static (&'static str, Measure, f64)> {
    UNITS.iter().find(|(name, measure, _)| match measure {
        Measure::Bits | Measure::Packets => name.eq_ignore_ascii_case(text),
        Measure::Time | Measure::Bytes => *name == text,
    })
}

/// Whether there is a unit of this name.
pub(crate) fn is_unit(text: &str) -> bool {
    unit_called(text).is_some()
}

/// The value of a number token.
pub(crate) fn number(text: &str, span: Span) -> Result<Value, Box<Diagnostic>> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i64::from_str_radix(&hex.replace('_', ""), 16)
            .map(Value::Integer)
            .map_err(|_| bad(span, "this is no hexadecimal number of at most 63 bits"));
    }
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let digits = digits.replace('_', "");
    if unit.is_empty() {
        return if digits.contains('.') {
            digits.parse().map(Value::Float).map_err(|_| bad(span, "this is no number"))
        } else {
            digits
                .parse()
                .map(Value::Integer)
                .map_err(|_| labelled(bad(span, "this number is too large"), "the largest is 9223372036854775807"))
        };
    }
    let amount: f64 = digits.parse().map_err(|_| bad(span, "this is no number"))?;
    if unit == "%" {
        return if amount <= 100.0 {
            Ok(Value::Percent(amount / 100.0))
        } else {
            Err(bad(span, "a percentage goes from 0% to 100%"))
        };
    }
    let found = unit_called(unit);
    let Some((_, measure, size)) = found else {
        let place = Span::new(span.start as usize + split, span.end as usize);
        return Err(Box::new(Diagnostic::error(Code::Unit, place, format!("there is no unit `{unit}`"))
            .label("expected a unit of rate, time or size")
            .note("rates: bps Kbps Mbps Gbps Tbps, pps Kpps Mpps; times: ns us ms s min h; sizes: B KB MB GB TB, KiB MiB GiB")
            .suggest(likely(unit, UNITS.iter().map(|(name, ..)| *name)))));
    };
    let total = (amount * size).round();
    // 2^53: beyond it an f64 skips whole numbers, and no rate, time or size here is as large.
    if total > 9_007_199_254_740_992.0 {
        return Err(bad(span, "this amount is too large"));
    }
    // Lossless: checked above, and digits are never negative.
    let total = total as u64;
    Ok(match measure {
        Measure::Bits => Value::BitRate(total),
        Measure::Packets => Value::PacketRate(total),
        Measure::Time => Value::Duration(total),
        Measure::Bytes => Value::Size(total),
    })
}

/// The value of an address token: an address, a prefix, or an endpoint.
pub(crate) fn address(text: &str, span: Span) -> Result<Value, Box<Diagnostic>> {
    if let Some((address, length)) = text.split_once('/') {
        let address: IpAddr =
            address.parse().map_err(|_| labelled(bad(span, "this is no address"), "before the `/`"))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = length
            .parse()
            .ok()
            .filter(|l| *l <= bits)
            .ok_or_else(|| bad(span, format!("a prefix of this family has at most {bits} bits")))?;
        let network = network(address, length);
        if network != address {
            let mut finding = bad(span, format!("`{text}` has bits set behind its prefix"));
            finding.help = Some(format!("write `{network}/{length}` for the network, or the address alone"));
            return Err(finding);
        }
        return Ok(Value::Prefix(address, length));
    }
    if let Ok(address) = text.parse() {
        return Ok(Value::Address(address));
    }
    text.parse::<SocketAddr>()
        .map(Value::Endpoint)
        .map_err(|_| labelled(bad(span, "this is no address"), "expected four numbers from 0 to 255"))
}

/// `address` with all bits behind the first `length` cleared.
pub(crate) fn network(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(a) & mask).into())
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(a) & mask).into())
        }
    }
}

/// The characters of a string token, quotes off and escapes resolved.
pub(crate) fn text(token: &str) -> String {
    let inner = token.get(1..token.len().saturating_sub(1)).unwrap_or("");
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some(quoted @ ('"' | '\'' | '\\')) => out.push(quoted),
            // tcpdump's own syntax escapes keywords (`ip proto \tcp` is written `\\tcp`): keep the rest as it stands.
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}
