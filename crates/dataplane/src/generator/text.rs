//! Reads the text form of a specification; the grammar stands at the head of [`super`].

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use catena_packet::wire::ethernet::Mac;

use super::error::{Problem, SpecError};
use super::spec::{Length, Mix, Order, Prefix, Rate, Size, Spec, Tcp, Time};

/// The keys, and what their values look like.
const KEYS: [(&str, &str); 21] = [
    ("flows", "a number of flows, like 10000 or 1M"),
    ("size", "bytes (64), a range of them (64..1500), or imix"),
    ("order", "roundrobin or random"),
    ("dist", "endless, fixed(packets), geometric(mean) or pareto(shape,least)"),
    ("new", "flows a second, like 1000/s"),
    ("proto", "udp, tcp or icmp, or several with weights, like udp:3+tcp:6+icmp:1"),
    ("ipv6", "a percentage, like 20%"),
    ("tcp", "plain, sessions or client"),
    ("src", "an IPv4 prefix, like 100.64.0.0/10"),
    ("dst", "an IPv4 prefix, like 203.0.113.0/24"),
    ("src6", "an IPv6 prefix, like 2001:db8:1::/64"),
    ("dst6", "an IPv6 prefix, like 2001:db8:2::/64"),
    ("sport", "a port or a range, like 1024-65535"),
    ("dport", "a port or a range, like 80-443"),
    ("ttl", "1 to 255"),
    ("smac", "a MAC address, like 02:00:00:00:00:01"),
    ("dmac", "a MAC address, like 02:00:00:00:00:02"),
    ("rate", "packets or bits a second, like 1Mpps or 10Gbps, or unlimited"),
    ("time", "virtual or wall"),
    ("count", "a number of packets, like 1000000 or 1M"),
    ("duration", "a time, like 10s or 500ms"),
];
const SEED: (&str, &str) = ("seed", "a number below 2^64");

type Wrong = (Range<usize>, Problem);

/// Return all keys, for a message.
pub(super) fn keys() -> String {
    let keys: Vec<&str> = names().collect();
    keys.join(", ")
}

fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().chain([&SEED]).map(|(key, _)| *key)
}

/// A piece of the text, and where it begins.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Word<'a> {
    fn range(self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    fn part(self, range: Range<usize>) -> Word<'a> {
        Word { text: &self.text[range.clone()], at: self.at + range.start }
    }

    /// Split at the first `mark`, which belongs to neither part.
    fn split(self, mark: &str) -> Option<(Word<'a>, Word<'a>)> {
        let at = self.text.find(mark)?;
        Some((self.part(0..at), self.part(at + mark.len()..self.text.len())))
    }

    /// Split at every `mark` outside parentheses.
    fn pieces(self, mark: char) -> Vec<Word<'a>> {
        let (mut pieces, mut start, mut depth) = (Vec::new(), 0, 0u32);
        for (i, c) in self.text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                c if c == mark && depth == 0 => {
                    pieces.push(self.part(start..i));
                    start = i + mark.len_utf8();
                }
                _ => {}
            }
        }
        pieces.push(self.part(start..self.text.len()));
        pieces
    }

    /// Split behind the number at the beginning.
    fn unit(self) -> (Word<'a>, Word<'a>) {
        let end = self.text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.text.len());
        (self.part(0..end), self.part(end..self.text.len()))
    }

    fn wrong(self, what: &'static str) -> Wrong {
        (self.range(), Problem::Expected { what, likely: None })
    }

    fn parse<T: FromStr>(self, what: &'static str) -> Result<T, Wrong> {
        self.text.parse().map_err(|_| self.wrong(what))
    }

    /// Read one of several words.
    fn choose<T: Copy>(self, what: &'static str, choices: &[(&'static str, T)]) -> Result<T, Wrong> {
        let found = choices.iter().find(|(word, _)| *word == self.text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let likely = nearest(self.text, choices.iter().map(|(word, _)| *word));
            (self.range(), Problem::Expected { what, likely })
        })
    }

    /// Read a number that a unit follows.
    fn scaled(self, what: &'static str, units: &[(&'static str, f64)]) -> Result<f64, Wrong> {
        let (number, unit) = self.unit();
        // A lone `.` or nothing before the unit is no number.
        let number: f64 = if number.text.is_empty() { Err(self.wrong(what)) } else { number.parse(what) }?;
        Ok(number * unit.choose(what, units)?)
    }

    /// Read a count, perhaps with k, M or G.
    fn count(self, what: &'static str) -> Result<u64, Wrong> {
        if let Ok(plain) = self.text.parse() {
            return Ok(plain);
        }
        let count = self.scaled(what, &[("k", 1e3), ("M", 1e6), ("G", 1e9)])?;
        let whole = count.fract() == 0.0 && count < 2f64.powi(53);
        if whole { Ok(count as u64) } else { Err(self.wrong(what)) }
    }
}

/// Return the word that was likely meant.
fn nearest(word: &str, words: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    if word.len() > 24 {
        return None;
    }
    let lower = word.to_lowercase();
    let distance = |other: &str| strsim::damerau_levenshtein(&lower, &other.to_lowercase());
    let (distance, likely) = words.map(|other| (distance(other), other)).min_by_key(|(distance, _)| *distance)?;
    (distance <= 2 && distance < word.len()).then_some(likely)
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        read(text).map_err(|(at, problem)| SpecError { text: text.to_owned(), at, problem })
    }
}

fn read(text: &str) -> Result<Spec, Wrong> {
    let start = if text.starts_with("gen:") { "gen:".len() } else { 0 };
    let items = Word { text, at: 0 }.part(start..text.len());
    let mut spec = Spec::default();
    let mut seen: Vec<(&'static str, Word)> = Vec::new();
    let all = if items.text.is_empty() { Vec::new() } else { items.pieces(',') };
    for item in all {
        let (key, value) = item.split("=").map_or((item, None), |(key, value)| (key, Some(value)));
        if item.text.is_empty() {
            return Err(item.wrong("a key and its value, like flows=10000"));
        }
        let Some((name, what)) = KEYS.iter().chain([&SEED]).find(|(name, _)| *name == key.text) else {
            return Err((key.range(), Problem::UnknownKey { likely: nearest(key.text, names()) }));
        };
        if seen.iter().any(|(before, _)| before == name) {
            return Err((key.range(), Problem::Twice));
        }
        let Some(value) = value else { return Err((key.range(), Problem::NoValue { what })) };
        set(&mut spec, name, value, what)?;
        seen.push((name, value));
    }
    spec.check().map_err(|(name, problem)| {
        // What was not given has a fitting value, but for too few addresses.
        let culprit = [name, "flows"].into_iter().find_map(|key| seen.iter().find(|(name, _)| *name == key));
        (culprit.map_or(items.range(), |(_, value)| value.range()), problem)
    })?;
    Ok(spec)
}

fn set(spec: &mut Spec, key: &str, value: Word, what: &'static str) -> Result<(), Wrong> {
    match key {
        "flows" => spec.flows = value.count(what)?,
        "size" => spec.size = size(value, what)?,
        "order" => spec.order = value.choose(what, &[("roundrobin", Order::RoundRobin), ("random", Order::Random)])?,
        "dist" => spec.length = length(value, what)?,
        "new" => spec.new = Some(value.scaled(what, &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6)])?),
        "proto" => spec.mix = mix(value, what)?,
        "ipv6" => spec.ipv6 = value.scaled(what, &[("%", 0.01)])?,
        "tcp" => {
            let kinds = [("plain", Tcp::Plain), ("sessions", Tcp::Sessions), ("client", Tcp::Client)];
            spec.tcp = value.choose(what, &kinds)?;
        }
        "src" => spec.src = prefix_v4(value, what, "src6")?,
        "dst" => spec.dst = prefix_v4(value, what, "dst6")?,
        "src6" => spec.src6 = prefix_v6(value, what, "src")?,
        "dst6" => spec.dst6 = prefix_v6(value, what, "dst")?,
        "sport" => spec.sport = ports(value, what)?,
        "dport" => spec.dport = ports(value, what)?,
        "ttl" => spec.ttl = value.parse::<std::num::NonZeroU8>(what)?.get(),
        "smac" => spec.smac = mac(value, what)?,
        "dmac" => spec.dmac = mac(value, what)?,
        "rate" => spec.rate = rate(value, what)?,
        "time" => spec.time = value.choose(what, &[("virtual", Time::Virtual), ("wall", Time::Wall)])?,
        "count" => spec.count = Some(value.count(what)?),
        "duration" => {
            let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9)];
            spec.duration = Some(value.scaled(what, &units)?.round() as u64);
        }
        _ => spec.seed = value.parse(what)?,
    }
    Ok(())
}

fn size(value: Word, what: &'static str) -> Result<Size, Wrong> {
    if let Some((least, most)) = value.split("..") {
        return Ok(Size::Uniform(least.parse(what)?, most.parse(what)?));
    }
    match value.text.parse() {
        Ok(size) => Ok(Size::Fixed(size)),
        Err(_) => value.choose(what, &[("imix", Size::Imix)]),
    }
}

fn length(value: Word, what: &'static str) -> Result<Length, Wrong> {
    let Some((name, rest)) = value.split("(") else {
        return value.choose(what, &[("endless", Length::Endless)]);
    };
    let Some(arguments) = rest.text.strip_suffix(')').map(|text| rest.part(0..text.len()).pieces(',')) else {
        return Err(value.wrong(what));
    };
    let one = |make: fn(f64) -> Length| match arguments[..] {
        [only] => Ok(make(only.parse(what)?)),
        _ => Err(value.wrong(what)),
    };
    match name.choose(what, &[("fixed", 0), ("geometric", 1), ("pareto", 2)])? {
        0 => match arguments[..] {
            [only] => Ok(Length::Fixed(only.count(what)?)),
            _ => Err(value.wrong(what)),
        },
        1 => one(Length::Geometric),
        _ => match arguments[..] {
            [shape, least] => Ok(Length::Pareto(shape.parse(what)?, least.parse(what)?)),
            _ => Err(value.wrong(what)),
        },
    }
}

fn mix(value: Word, what: &'static str) -> Result<Mix, Wrong> {
    let mut mix = Mix { udp: 0.0, tcp: 0.0, icmp: 0.0 };
    for piece in value.pieces('+') {
        let (name, weight) = match piece.split(":") {
            Some((name, weight)) => (name, weight.parse(what)?),
            None => (piece, 1.0),
        };
        match name.choose(what, &[("udp", 0), ("tcp", 1), ("icmp", 2)])? {
            0 => mix.udp += weight,
            1 => mix.tcp += weight,
            _ => mix.icmp += weight,
        }
    }
    Ok(mix)
}

fn prefix_v4(value: Word, what: &'static str, other: &'static str) -> Result<Prefix<Ipv4Addr>, Wrong> {
    let (address, length) = value.split("/").map_or((value, None), |(address, length)| (address, Some(length)));
    if address.text.parse::<Ipv6Addr>().is_ok() {
        return Err((value.range(), Problem::Expected { what, likely: Some(other) }));
    }
    let address = address.parse(what)?;
    Ok(Prefix { address, length: length.map_or(Ok(32), |length| length.parse(what))? })
}

fn prefix_v6(value: Word, what: &'static str, other: &'static str) -> Result<Prefix<Ipv6Addr>, Wrong> {
    let (address, length) = value.split("/").map_or((value, None), |(address, length)| (address, Some(length)));
    if address.text.parse::<Ipv4Addr>().is_ok() {
        return Err((value.range(), Problem::Expected { what, likely: Some(other) }));
    }
    let address = address.parse(what)?;
    Ok(Prefix { address, length: length.map_or(Ok(128), |length| length.parse(what))? })
}

fn ports(value: Word, what: &'static str) -> Result<RangeInclusive<u16>, Wrong> {
    match value.split("-") {
        Some((first, last)) => Ok(first.parse(what)?..=last.parse(what)?),
        None => value.parse(what).map(|port| port..=port),
    }
}

fn mac(value: Word, what: &'static str) -> Result<Mac, Wrong> {
    let bytes: Vec<u8> = value
        .pieces(':')
        .into_iter()
        .map(|byte| match byte.text.len() {
            1 | 2 if byte.text.bytes().all(|c| c.is_ascii_hexdigit()) => u8::from_str_radix(byte.text, 16).ok(),
            _ => None,
        })
        .collect::<Option<_>>()
        .ok_or_else(|| value.wrong(what))?;
    bytes.try_into().map(Mac).map_err(|_| value.wrong(what))
}

fn rate(value: Word, what: &'static str) -> Result<Option<Rate>, Wrong> {
    const UNITS: [(&str, (f64, bool)); 9] = [
        ("pps", (1.0, false)),
        ("kpps", (1e3, false)),
        ("Mpps", (1e6, false)),
        ("Gpps", (1e9, false)),
        ("bps", (1.0, true)),
        ("kbps", (1e3, true)),
        ("Mbps", (1e6, true)),
        ("Gbps", (1e9, true)),
        ("Tbps", (1e12, true)),
    ];
    let (number, unit) = value.unit();
    if number.text.is_empty() {
        return value.choose(what, &[("unlimited", None)]);
    }
    let number: f64 = number.parse(what)?;
    let (scale, bits) = unit.choose(what, &UNITS)?;
    Ok(Some(if bits { Rate::Bits(number * scale) } else { Rate::Packets(number * scale) }))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
