//! Reads rules in Catena's own notation; its description stands in the manual of the function.

use std::net::IpAddr;

use super::classifier::MOST_RULES;
use super::error::{RuleError, Word};
use super::protocol;
use super::rule::{Action, Ports, Prefix, Protocols, Rule};

/// Mistakes of one text that are reported together.
const MOST_ERRORS: usize = 20;
/// Most rules that one line makes, as many as one of iptables: each is kept and compiled by itself.
const MOST_OF_A_LINE: usize = 1 << 15;

/// Reads a text, one rule a line.
///
/// A line that lists several ports gives a rule for each; all carry the line's number.
///
/// # Errors
/// The first mistake of each line that has one, at most 20; also more rules than a list holds.
pub fn parse(text: &str) -> Result<Vec<Rule>, Vec<RuleError>> {
    let mut rules = Vec::new();
    parse_onto(&mut rules, text)?;
    Ok(rules)
}

/// Reads a text as [`parse`] does, behind `rules` that were read before it.
///
/// # Errors
/// Those of [`parse`]; the list must not become longer than [`MOST_RULES`]. `rules` then ends anywhere.
pub fn parse_onto(rules: &mut Vec<Rule>, text: &str) -> Result<(), Vec<RuleError>> {
    let mut errors = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if let Err(error) = parse_line_onto(rules, line, number) {
            errors.push(error);
        }
        if errors.len() == MOST_ERRORS {
            break;
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Reads one line; `number` is its number in messages. An empty line or a comment gives no rule.
///
/// # Errors
/// The first mistake of the line; also more rules than a list holds.
pub fn parse_line(line: &str, number: u32) -> Result<Vec<Rule>, RuleError> {
    let mut rules = Vec::new();
    parse_line_onto(&mut rules, line, number)?;
    Ok(rules)
}

/// Reads one line as [`parse_line`] does, behind `rules` that were read before it.
///
/// # Errors
/// Those of [`parse_line`]; the list must not become longer than [`MOST_RULES`]. `rules` is unchanged then.
pub fn parse_line_onto(rules: &mut Vec<Rule>, line: &str, number: u32) -> Result<(), RuleError> {
    let mut words = Words::of(line, number);
    if words.peek().is_none() {
        return Ok(());
    }
    let mut rule = Rule { line: number, ..Rule::any(words.action()?) };
    let Some(word) = words.peek() else {
        return Err(words.end("`any`, a protocol, `from` or `to`").hint("`permit any` permits everything"));
    };
    if !matches!(word.text.as_str(), "from" | "to") {
        rule.protocols = protocols(word)?;
        words.next();
    }
    let mut sports = vec![None];
    let mut dports = vec![None];
    let mut expected = "`from`, `to` or the end of the line";
    if words.take("from") {
        rule.src = words.address(None)?;
        sports = words.ports(rule.protocols)?;
        expected = "`to` or the end of the line";
    }
    if words.take("to") {
        rule.dst = words.address(rule.src)?;
        dports = words.ports(rule.protocols)?;
        expected = "the end of the line";
    }
    if let Some(word) = words.next() {
        return Err(word.unexpected(expected).nearest(&word.text, ["from", "to", "port"]));
    }
    // A short line can stand for very many rules: they are counted before they are made.
    let made = sports.len().saturating_mul(dports.len());
    if made > MOST_OF_A_LINE || made > MOST_RULES - rules.len().min(MOST_RULES) {
        return Err(too_many(&words.first, rules.len(), sports.len(), dports.len()));
    }
    if rules.try_reserve(made).is_err() {
        return Err(words.first.error(format!("the system has no memory for {} rules", rules.len() + made)));
    }
    let pairs = sports.iter().flat_map(|&sport| dports.iter().map(move |&dport| (sport, dport)));
    rules.extend(pairs.map(|(sport, dport)| Rule { sport, dport, ..rule }));
    Ok(())
}

/// An error for a line, which begins with `first`, whose lists of ports make too many rules behind `before` others.
fn too_many(first: &Word, before: usize, sports: usize, dports: usize) -> RuleError {
    let made = sports as u64 * dports as u64;
    let made_of = format!("{sports} x {dports} ports are {made} rules");
    let error = if made > MOST_OF_A_LINE as u64 {
        first.error(format!("{made_of}: a line makes at most {MOST_OF_A_LINE}"))
    } else {
        let all = before as u64 + made;
        first.error(format!("{made_of}, {all} with those before: a list holds at most {MOST_RULES}"))
    };
    error.hint("a range such as `1024-65535` is one rule, however many ports it has")
}

/// The words of a line, up to its comment.
struct Words {
    words: std::iter::Peekable<std::vec::IntoIter<Word>>,
    /// The first, or the end of a line that has none.
    first: Word,
    /// Where the line ends.
    end: Word,
}

impl Words {
    fn of(line: &str, number: u32) -> Self {
        let line = line.split('#').next().unwrap_or_default();
        let mut words: Vec<Word> = Vec::new();
        let mut open = false;
        let mut column = 0;
        for c in line.trim_end().chars() {
            column += 1;
            if c.is_whitespace() {
                open = false;
                continue;
            }
            if !open {
                words.push(Word { text: String::new(), line: number, column, width: 0 });
                open = true;
            }
            if let Some(word) = words.last_mut() {
                word.text.push(c);
                word.width += 1;
            }
        }
        let end = Word { text: String::new(), line: number, column: column + 1, width: 0 };
        let first = words.first().unwrap_or(&end).clone();
        Self { words: words.into_iter().peekable(), first, end }
    }

    fn peek(&mut self) -> Option<&Word> {
        self.words.peek()
    }

    fn next(&mut self) -> Option<Word> {
        self.words.next()
    }

    /// An error for a line that ends too early.
    fn end(&self, expected: &str) -> RuleError {
        self.end.error(format!("expected {expected}, found the end of the line"))
    }

    fn take(&mut self, key: &str) -> bool {
        self.words.next_if(|word| word.text == key).is_some()
    }

    fn action(&mut self) -> Result<Action, RuleError> {
        let Some(word) = self.next() else {
            return Err(self.end("`permit` or `deny`"));
        };
        let error = || word.unexpected("`permit` or `deny`");
        match word.text.as_str() {
            "permit" => Ok(Action::Permit),
            "deny" => Ok(Action::Deny),
            "allow" | "accept" | "ACCEPT" | "pass" => Err(error().hint("did you mean `permit`?")),
            "drop" | "DROP" | "reject" | "REJECT" | "block" => Err(error().hint("did you mean `deny`?")),
            "-A" | "-P" | "*filter" => Err(error().hint("this looks like `iptables-save`; it is read by its own name")),
            other => Err(error().nearest(other, ["permit", "deny"])),
        }
    }

    /// An address behind `from` or `to`, of the family of `other` if that has one.
    fn address(&mut self, other: Option<Prefix>) -> Result<Option<Prefix>, RuleError> {
        const EXPECTED: &str = "an address, a network such as `10.0.0.0/8`, or `any`";
        let Some(word) = self.next() else {
            return Err(self.end(EXPECTED));
        };
        if word.text == "any" {
            return Ok(None);
        }
        let (host, length) = match word.text.split_once('/') {
            Some((host, length)) => (host, Some(length)),
            None => (word.text.as_str(), None),
        };
        let address: IpAddr = host.parse().map_err(|_| word.unexpected(EXPECTED).nearest(&word.text, ["any"]))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length: u8 = match length {
            None => most,
            Some(length) => length.parse().ok().filter(|&l| l <= most).ok_or_else(|| {
                word.error(format!("expected a prefix length of 0 to {most} behind `/`, found `{length}`"))
            })?,
        };
        let (prefix, written) = match address {
            IpAddr::V4(a) => (Prefix::v4(a.into(), length), Prefix::V4 { bits: a.into(), length }),
            IpAddr::V6(a) => (Prefix::v6(a.into(), length), Prefix::V6 { bits: a.into(), length }),
        };
        if prefix != written {
            let error = word.error(format!("`{}` has bits set behind its prefix", word.text));
            return Err(error.hint(format!("the network is `{prefix}`")));
        }
        if let Some(other) = other
            && matches!(other, Prefix::V4 { .. }) != address.is_ipv4()
        {
            let families = if address.is_ipv4() { "from IPv6 to IPv4" } else { "from IPv4 to IPv6" };
            return Err(word.error(format!("no packet goes {families}: this rule could never match")));
        }
        Ok(Some(prefix))
    }

    /// `port` and its list, if it stands here.
    fn ports(&mut self, protocols: Protocols) -> Result<Vec<Option<Ports>>, RuleError> {
        let Some(word) = self.words.next_if(|word| word.text == "port") else {
            return Ok(vec![None]);
        };
        if !(protocols.first..=protocols.last).any(protocol::has_ports) {
            let name = protocol::name(protocols.first).unwrap_or("this protocol");
            return Err(word.error(format!("{name} has no ports")).hint("tcp, udp, sctp, dccp and udplite have"));
        }
        let Some(word) = self.next() else {
            return Err(self.end("ports such as `80`, `80-443` or `80,443`"));
        };
        word.text.split(',').map(|item| port_range(&word, item).map(Some)).collect()
    }
}

fn port_range(word: &Word, item: &str) -> Result<Ports, RuleError> {
    let number = |text: &str| {
        text.parse::<u16>().map_err(|_| {
            let expected = "a port of 0 to 65535, a range such as `80-443`, or a list such as `80,443`";
            let error = word.error(format!("expected {expected}, found `{}`", word.text));
            if text.contains(':') { error.hint("a range is written with `-`") } else { error }
        })
    };
    let (first, last) = match item.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(item)?, number(item)?),
    };
    if first > last {
        return Err(word.error(format!("the range `{item}` is empty")).hint(format!("did you mean `{last}-{first}`?")));
    }
    Ok(Ports { first, last })
}

fn protocols(word: &Word) -> Result<Protocols, RuleError> {
    if word.text == "any" {
        return Ok(Protocols::ALL);
    }
    if let Some(number) = protocol::number(&word.text) {
        return Ok(Protocols::one(number));
    }
    let (first, last) = word.text.split_once('-').unwrap_or((&word.text, &word.text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(Protocols { first, last }),
        _ => {
            let known = protocol::NAMES.iter().map(|&(name, _)| name).chain(["any", "from", "to"]);
            let error = word.unexpected("`any`, a protocol (a name or 0 to 255), `from` or `to`");
            Err(error.nearest(&word.text, known))
        }
    }
}

#[cfg(test)]
mod tests;
