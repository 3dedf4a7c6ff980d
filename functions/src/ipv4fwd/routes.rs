//! Routes as text: one a line, in Catena's own short form or as `ip route` and `ip -6 route` print them.
//!
//! ```text
//! # prefix            next hop
//! 10.0.0.0/8          1                        # leaves by gate 1
//! 192.0.2.0/24        via 10.0.0.1 gate 2
//! 192.0.2.128/25      10.0.0.2 mac 02:00:00:00:00:02   # `via` may be left out
//! 2001:db8::/32       via fe80::1 dev eth0 proto static metric 1024
//! blackhole 198.51.100.0/24                    # or unreachable, prohibit: dropped
//! default             via 10.1.1.1 dev eth0
//! ```
//!
//! An address without a length is a single host. `default` has the family of its `via`, and without
//! one stands for both families. Of several routes to one prefix the one with the lowest metric counts
//! (none given: 0), and of those by several devices the first; else a prefix that stands twice with
//! different next hops is an error. What else `ip route` says of a route (`proto`, `scope`, `src`, …)
//! is read over; routes over several next hops at once are refused.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use catena_packet::wire::ethernet::Mac;

use super::{Address, NextHop, Prefix, neighbour};

/// Where a route leads; equal ones share a [`NextHop`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Hop {
    /// On; at least one of the four is given.
    Forward {
        /// The next router, if the destination is not on the link itself.
        via: Option<IpAddr>,
        /// The interface.
        dev: Option<Box<str>>,
        /// The output gate.
        gate: Option<u16>,
        /// The next router's station address, never one of a group.
        mac: Option<Mac>,
    },
    /// Nowhere: `blackhole`, `unreachable`, `prohibit`.
    Discard,
}

/// What a text of routes says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Routes {
    /// IPv4 routes in the order of prefixes, each prefix once.
    pub ipv4: Vec<(Prefix<u32>, NextHop)>,
    /// IPv6 routes likewise.
    pub ipv6: Vec<(Prefix<u128>, NextHop)>,
    /// The next hops; the index is their number.
    pub hops: Vec<Hop>,
    /// The line on which each next hop first stands, from 1.
    pub hop_lines: Vec<usize>,
}

/// A text of routes that cannot be read, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// How many characters it is about; 0 at the end of a line.
    pub width: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// Something else should stand here.
    Expected {
        /// What should.
        expected: &'static str,
        /// What does; empty at the end of a line.
        found: String,
    },
    /// Bits are set behind the prefix's length.
    HostBits {
        /// The prefix without them.
        prefix: String,
    },
    /// The prefix has another next hop already.
    Duplicate {
        /// The line of the first.
        first_line: usize,
    },
    /// More different next hops than can be numbered.
    TooManyHops,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Expected { expected, found } if found.is_empty() => write!(f, "expected {expected}"),
            Problem::Expected { expected, found } => write!(f, "expected {expected}, found `{found}`"),
            Problem::HostBits { prefix } => write!(f, "bits are set behind the prefix length; perhaps {prefix}?"),
            Problem::Duplicate { first_line } => {
                write!(f, "the prefix has another next hop in line {first_line}; different metrics tell routes apart")
            }
            Problem::TooManyHops => write!(f, "more than {} different next hops", NextHop::COUNT),
        }
    }
}

impl std::error::Error for RouteError {}

/// Reads a text of routes.
///
/// # Errors
/// The first line that is not a route, or the first prefix with two next hops.
pub fn parse(text: &str) -> Result<Routes, RouteError> {
    let mut numbers: HashMap<Hop, NextHop> = HashMap::new();
    let (mut hops, mut hop_lines) = (Vec::new(), Vec::new());
    let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let mut words = Words { line, text, at: 0 };
        let Some(first) = words.next() else { continue };
        let route = route(&mut words, first)?;
        let by_dev = matches!(route.hop, Hop::Forward { dev: Some(_), .. });
        let hop = match numbers.get(&route.hop) {
            Some(&hop) => hop,
            None if hops.len() == NextHop::COUNT => return Err(words.error(first, Problem::TooManyHops)),
            None => {
                let hop = NextHop::new(hops.len() as u16);
                hops.push(route.hop.clone());
                hop_lines.push(line);
                numbers.insert(route.hop, hop);
                hop
            }
        };
        let (column, width) = words.place(route.prefix_at);
        let listed = |metric| Listed { metric, line, column, width, by_dev, hop };
        if let Some(prefix) = route.ipv4 {
            ipv4.push((prefix, listed(route.metric)));
        }
        if let Some(prefix) = route.ipv6 {
            ipv6.push((prefix, listed(route.metric)));
        }
    }
    Ok(Routes { ipv4: settle(ipv4)?, ipv6: settle(ipv6)?, hops, hop_lines })
}

/// A route with what decides between several to one prefix.
#[derive(Clone, Copy)]
struct Listed {
    metric: u32,
    line: usize,
    column: usize,
    width: usize,
    by_dev: bool,
    hop: NextHop,
}

/// Sorts, and keeps one route a prefix.
fn settle<A: Address>(mut routes: Vec<(Prefix<A>, Listed)>) -> Result<Vec<(Prefix<A>, NextHop)>, RouteError> {
    routes.sort_unstable_by_key(|&(prefix, listed)| (prefix, listed.metric, listed.line));
    for pair in routes.windows(2) {
        let [(prefix, one), (next_prefix, other)] = pair else { continue };
        let same = prefix == next_prefix && one.metric == other.metric;
        if same && one.hop != other.hop && !(one.by_dev && other.by_dev) {
            let problem = Problem::Duplicate { first_line: one.line };
            return Err(RouteError { line: other.line, column: other.column, width: other.width, problem });
        }
    }
    routes.dedup_by_key(|&mut (prefix, _)| prefix);
    Ok(routes.into_iter().map(|(prefix, listed)| (prefix, listed.hop)).collect())
}

/// One line, read.
struct Route<'t> {
    ipv4: Option<Prefix<u32>>,
    ipv6: Option<Prefix<u128>>,
    prefix_at: Word<'t>,
    hop: Hop,
    metric: u32,
}

const PREFIX: &str = "a prefix such as 10.0.0.0/8 or 2001:db8::/32, or `default`";
const TO: &str = "the number of a gate, `via ADDRESS`, `gate NUMBER`, `dev NAME` or `mac ADDRESS`";

/// What `ip route` adds with a value, and without; it does not matter here.
const WITH_VALUE: [&str; 20] = [
    "proto", "scope", "src", "table", "pref", "mtu", "advmss", "realm", "realms", "expires", "error", "hoplimit",
    "nhid", "rtt", "rttvar", "cwnd", "initcwnd", "initrwnd", "window", "tos",
];
const WITHOUT_VALUE: [&str; 9] =
    ["onlink", "linkdown", "dead", "pervasive", "offload", "trap", "rt_offload", "rt_trap", "notify"];

fn route<'t>(words: &mut Words<'t>, first: Word<'t>) -> Result<Route<'t>, RouteError> {
    let discard = matches!(first.text, "blackhole" | "unreachable" | "prohibit");
    let prefix_at = if discard || first.text == "unicast" { words.expect(PREFIX)? } else { first };
    let mut to = Covered { ipv4: None, ipv6: None };
    if prefix_at.text == "default" {
        to = Covered { ipv4: Prefix::new(0, 0).ok(), ipv6: Prefix::new(0, 0).ok() };
    } else {
        let (addr, len) =
            prefix_at.text.split_once('/').map_or((prefix_at.text, None), |(addr, len)| (addr, Some(len)));
        match addr.parse() {
            Ok(IpAddr::V4(addr)) => to.ipv4 = Some(prefix(words, prefix_at, addr.to_bits(), len)?),
            Ok(IpAddr::V6(addr)) => to.ipv6 = Some(prefix(words, prefix_at, addr.to_bits(), len)?),
            Err(_) => return Err(words.expected(PREFIX, prefix_at)),
        }
    }
    let (mut via, mut dev, mut gate, mut mac, mut metric) = (None, None, None, None, 0);
    let mut bare = true;
    while let Some(word) = words.next() {
        match word.text {
            "via" => {
                let family_or_address = words.expect("an address")?;
                let family_said = matches!(family_or_address.text, "inet" | "inet6");
                let at = if family_said { words.expect("an address")? } else { family_or_address };
                via = Some(to.over(words, at, words.address(at)?, family_said)?);
            }
            "dev" => dev = Some(words.expect("the name of an interface")?.text.into()),
            "gate" => gate = Some(words.number("the number of a gate, 0 to 65535")?),
            "mac" => mac = Some(words.mac()?),
            "metric" => metric = words.number("a metric, 0 to 4294967295")?,
            "nexthop" => {
                return Err(words.expected("a single next hop (several for one route are not supported)", word));
            }
            text if WITH_VALUE.contains(&text) => {
                words.expect("a value")?;
            }
            text if WITHOUT_VALUE.contains(&text) => {}
            text if bare => match text.parse() {
                Ok(address) => via = Some(to.over(words, word, address, false)?),
                Err(_) => gate = Some(unsigned(text).ok_or_else(|| words.expected(TO, word))?),
            },
            _ => return Err(words.expected("the end of the line, or a word of `ip route`", word)),
        }
        bare = false;
    }
    if !discard && via.is_none() && dev.is_none() && gate.is_none() && mac.is_none() {
        return Err(words.expected(TO, words.end()));
    }
    let hop = if discard { Hop::Discard } else { Hop::Forward { via, dev, gate, mac } };
    Ok(Route { ipv4: to.ipv4, ipv6: to.ipv6, prefix_at, hop, metric })
}

/// What a route covers: a prefix of one family, or `default` of both until a next router tells.
struct Covered {
    ipv4: Option<Prefix<u32>>,
    ipv6: Option<Prefix<u128>>,
}

impl Covered {
    /// The next router, once it goes with what is covered. A family is only said where it differs from
    /// the destination's.
    fn over(
        &mut self,
        words: &Words<'_>,
        at: Word<'_>,
        router: IpAddr,
        family_said: bool,
    ) -> Result<IpAddr, RouteError> {
        if self.ipv4.is_some() && self.ipv6.is_some() {
            let over_ipv4 = router.is_ipv4() || family_said;
            (self.ipv4, self.ipv6) = (self.ipv4.filter(|_| over_ipv4), self.ipv6.filter(|_| !over_ipv4));
        } else if self.ipv6.is_some() && router.is_ipv4() {
            return Err(words.expected("an IPv6 address", at));
        }
        Ok(router)
    }
}

fn prefix<'t, A: Address>(
    words: &Words<'t>,
    word: Word<'t>,
    addr: A,
    len: Option<&str>,
) -> Result<Prefix<A>, RouteError> {
    let len = len.map_or(Some(A::BITS), unsigned);
    let prefix = len.and_then(|len| Prefix::new(addr, len).ok()).ok_or_else(|| words.expected(PREFIX, word))?;
    if prefix.addr() != addr {
        return Err(words.error(word, Problem::HostBits { prefix: prefix.to_string() }));
    }
    Ok(prefix)
}

/// A word and where it begins, bytes from the begin of its line; empty at the end of a line.
#[derive(Clone, Copy)]
struct Word<'t> {
    at: usize,
    text: &'t str,
}

/// The words of a line, up to a comment.
struct Words<'t> {
    line: usize,
    text: &'t str,
    /// Where the next word is looked for, bytes.
    at: usize,
}

impl<'t> Words<'t> {
    fn next(&mut self) -> Option<Word<'t>> {
        let rest = self.text[self.at..].trim_start();
        let at = self.text.len() - rest.len();
        let len = rest.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(rest.len());
        if len == 0 {
            return None;
        }
        self.at = at + len;
        Some(Word { at, text: &rest[..len] })
    }

    fn end(&self) -> Word<'t> {
        Word { at: self.at, text: "" }
    }

    fn expect(&mut self, expected: &'static str) -> Result<Word<'t>, RouteError> {
        self.next().ok_or_else(|| self.expected(expected, self.end()))
    }

    fn number<N: FromStr>(&mut self, expected: &'static str) -> Result<N, RouteError> {
        let word = self.expect(expected)?;
        unsigned(word.text).ok_or_else(|| self.expected(expected, word))
    }

    fn address(&self, word: Word<'t>) -> Result<IpAddr, RouteError> {
        word.text.parse().map_err(|_| self.expected("an address", word))
    }

    fn mac(&mut self) -> Result<Mac, RouteError> {
        let word = self.expect(neighbour::MAC)?;
        neighbour::mac(word.text).ok_or_else(|| self.expected(neighbour::MAC, word))
    }

    fn expected(&self, expected: &'static str, word: Word<'t>) -> RouteError {
        self.error(word, Problem::Expected { expected, found: word.text.into() })
    }

    fn error(&self, word: Word<'t>, problem: Problem) -> RouteError {
        let (column, width) = self.place(word);
        RouteError { line: self.line, column, width, problem }
    }

    /// Column from 1 and width, characters.
    fn place(&self, word: Word<'t>) -> (usize, usize) {
        (self.text[..word.at].chars().count() + 1, word.text.chars().count())
    }
}

/// A number of digits only: `parse` would take a sign.
fn unsigned<N: FromStr>(digits: &str) -> Option<N> {
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
