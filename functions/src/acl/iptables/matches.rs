//! The matches and the target of one rule.

use super::region::{MOST_REGIONS, Region, networks, other_ports, product};
use super::save::{Entry, Table, Target, unknown_chain};
use super::{Family, LeftOut, values};
use crate::acl::error::{RuleError, Word};
use crate::acl::rule::{Action, Ports, Prefix, Protocols};

/// Targets after which a packet goes on to the next rule.
const GOING_ON: [&str; 20] = [
    "LOG",
    "NFLOG",
    "ULOG",
    "MARK",
    "CONNMARK",
    "SECMARK",
    "CONNSECMARK",
    "AUDIT",
    "TRACE",
    "CLASSIFY",
    "DSCP",
    "TOS",
    "ECN",
    "TTL",
    "HL",
    "TCPMSS",
    "CHECKSUM",
    "TEE",
    "SET",
    "RATEEST",
];

/// Matches that change nothing, or only say which options follow.
const PLAIN: [&str; 8] = ["comment", "multiport", "iprange", "icmp", "icmp6", "icmpv6", "ah", "esp"];

/// Matches of a protocol with ports: false for a packet whose ports cannot be read.
const WITH_PORTS: [&str; 5] = ["tcp", "udp", "udplite", "sctp", "dccp"];

/// What became of a rule.
pub enum Read {
    Rule(Entry),
    /// It cannot change a verdict.
    WithoutEffect,
    LeftOut(LeftOut),
    /// It cannot be expressed: an error if packets can reach it.
    Beyond(RuleError),
}

struct Reader<'a> {
    words: std::slice::Iter<'a, Word>,
    family: Family,
    table: &'a Table,
    regions: Vec<Region>,
    /// What the rule does; the inner `None` is something without effect upon the verdict.
    target: Option<Option<Target>>,
    /// What cannot be expressed, with its name.
    beyond: Vec<(String, RuleError)>,
    /// The last `-m`.
    module: Option<&'a Word>,
}

/// Reads what follows `-A CHAIN`.
pub fn read(
    append: &Word,
    words: &[Word],
    family: Family,
    table: &Table,
    leave_out: &[String],
) -> Result<Read, RuleError> {
    let mut reader = Reader {
        words: words.iter(),
        family,
        table,
        regions: vec![Region::all(family)],
        target: None,
        beyond: Vec::new(),
        module: None,
    };
    reader.options()?;
    let Reader { regions, target, beyond, .. } = reader;
    let Some(Some(target)) = target else {
        return Ok(Read::WithoutEffect);
    };
    if let Some((name, _)) = beyond.iter().find(|(name, _)| leave_out.contains(name)) {
        return Ok(Read::LeftOut(LeftOut { line: append.line, name: name.clone() }));
    }
    if let Some((_, error)) = beyond.into_iter().next() {
        return Ok(Read::Beyond(error));
    }
    Ok(Read::Rule(Entry { line: append.line, regions, target }))
}

impl<'a> Reader<'a> {
    fn options(&mut self) -> Result<(), RuleError> {
        while let Some(word) = self.words.next() {
            let (option, not) = match word.text.as_str() {
                "!" => match self.words.next() {
                    Some(option) => (option, true),
                    None => return Err(word.error("expected an option behind `!`")),
                },
                _ => (word, false),
            };
            self.option(option, not)?;
        }
        Ok(())
    }

    fn option(&mut self, option: &'a Word, not: bool) -> Result<(), RuleError> {
        match option.text.as_str() {
            "-p" | "--protocol" | "--proto" => {
                self.protocol(option, not)?;
            }
            "-s" | "--source" | "--src" => self.addresses(option, not, |region, p| region.src = p)?,
            "-d" | "--destination" | "--dst" => self.addresses(option, not, |region, p| region.dst = p)?,
            "--src-range" => self.range(option, not, |region, p| region.src = p)?,
            "--dst-range" => self.range(option, not, |region, p| region.dst = p)?,
            "--sport" | "--source-port" | "--sports" | "--source-ports" => self.ports(option, not, true, false)?,
            "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
                self.ports(option, not, false, true)?;
            }
            "--port" | "--ports" => self.ports(option, not, true, true)?,
            "--comment" => _ = self.value(option)?,
            "-m" | "--match" => {
                let word = self.value(option)?;
                self.module = Some(word);
                if WITH_PORTS.contains(&word.text.as_str()) {
                    let any = Region { sport: Some(Ports::ALL), ..Region::all(self.family) };
                    self.select(option, &[any])?;
                } else if !PLAIN.contains(&word.text.as_str()) {
                    self.beyond(option, &word.text);
                }
            }
            "-j" | "--jump" => {
                let word = self.value(option)?;
                self.target = Some(self.target(word)?);
            }
            "-g" | "--goto" => {
                let word = self.value(option)?;
                let Some(&chain) = self.table.names.get(&word.text) else {
                    return Err(unknown_chain(word, self.table));
                };
                self.target = Some(Some(Target::Goto(chain)));
            }
            "-i" | "--in-interface" => self.beyond(option, "in-interface"),
            "-o" | "--out-interface" => self.beyond(option, "out-interface"),
            "-f" | "--fragment" => self.beyond(option, "fragment"),
            "-c" | "--set-counters" => {
                self.value(option)?;
                self.value(option)?;
            }
            // Options of the target: how to log, with what to reject.
            text if self.target.is_some() && text.starts_with('-') => self.skip_values(),
            text if text.starts_with("--") => {
                // An option of the last match; one of a match that was read names itself.
                let own = self.module.filter(|m| !known(m)).map_or(&text[2..], |m| m.text.as_str()).to_string();
                self.beyond(option, &own);
            }
            _ => return Err(option.unexpected("an option such as `-p`, `-s`, `-m` or `-j`")),
        }
        Ok(())
    }

    fn beyond(&mut self, option: &'a Word, name: &str) {
        self.skip_values();
        let error = option
            .error(format!("`{name}` looks at more than addresses, protocol and ports, which a list of rules cannot"))
            .hint(format!("`leave_out = [\"{name}\"]` leaves out the rules with it"));
        self.beyond.push((name.into(), error));
    }

    /// Passes over the values of an option.
    fn skip_values(&mut self) {
        while self.words.as_slice().first().is_some_and(|word| !word.text.starts_with('-') && word.text != "!") {
            self.words.next();
        }
    }

    fn value(&mut self, option: &Word) -> Result<&'a Word, RuleError> {
        self.words.next().ok_or_else(|| option.error(format!("expected a value behind `{}`", option.text)))
    }

    fn target(&mut self, word: &Word) -> Result<Option<Target>, RuleError> {
        Ok(Some(match word.text.as_str() {
            "ACCEPT" => Target::Verdict(Action::Permit),
            "DROP" | "REJECT" => Target::Verdict(Action::Deny),
            "RETURN" => Target::Return,
            name => match self.table.names.get(name) {
                Some(&chain) => Target::Jump(chain),
                None if GOING_ON.contains(&name) => return Ok(None),
                None if name.chars().all(|c| c.is_ascii_uppercase()) => {
                    let error = word.error(format!("the target `{name}` is neither permit nor deny"));
                    return Err(error.nearest(name, ["accept", "drop", "reject", "return"]));
                }
                None => return Err(unknown_chain(word, self.table)),
            },
        }))
    }

    /// Keep of the packets selected so far those in one of `regions`.
    fn select(&mut self, option: &Word, regions: &[Region]) -> Result<(), RuleError> {
        self.regions = product(&self.regions, regions).ok_or_else(|| too_many(option))?;
        Ok(())
    }

    fn protocol(&mut self, option: &Word, not: bool) -> Result<(), RuleError> {
        let word = self.value(option)?;
        let number = values::protocol(word)?;
        // iptables(8): "The number zero is equivalent to all."
        if number == 0 {
            return if not { Err(word.error("no packet has a protocol other than all")) } else { Ok(()) };
        }
        let protocols = if not {
            [(0, number - 1), (number.saturating_add(1), u8::MAX)]
                .into_iter()
                .filter(|&(first, last)| first <= last && !(number == u8::MAX && first == number))
                .map(|(first, last)| Protocols { first, last })
                .collect()
        } else {
            vec![Protocols::one(number)]
        };
        let all = Region::all(self.family);
        let regions: Vec<_> = protocols.into_iter().map(|protocols| Region { protocols, ..all }).collect();
        self.select(option, &regions)
    }

    fn addresses(&mut self, option: &Word, not: bool, set: fn(&mut Region, Prefix)) -> Result<(), RuleError> {
        let word = self.value(option)?;
        let mut prefixes = Vec::new();
        for item in word.text.split(',') {
            prefixes.push(values::prefix(word, item, self.family)?);
        }
        if not {
            let [one] = prefixes[..] else {
                return Err(word.error("`!` does not go with a list of addresses"));
            };
            prefixes = one.complement();
        }
        self.narrow(option, &prefixes, set)
    }

    fn range(&mut self, option: &Word, not: bool, set: fn(&mut Region, Prefix)) -> Result<(), RuleError> {
        let word = self.value(option)?;
        let (first, last) = word.text.split_once('-').unwrap_or((&word.text, &word.text));
        let (first, last) = (values::address(word, first, self.family)?, values::address(word, last, self.family)?);
        if first > last {
            return Err(word.error("the range is empty"));
        }
        let top = match self.family {
            Family::V4 => u32::MAX.into(),
            Family::V6 => u128::MAX,
        };
        let mut prefixes = Vec::new();
        if !not {
            prefixes = networks(first, last, self.family);
        } else {
            if first > 0 {
                prefixes.extend(networks(0, first - 1, self.family));
            }
            if last < top {
                prefixes.extend(networks(last + 1, top, self.family));
            }
        }
        self.narrow(option, &prefixes, set)
    }

    fn narrow(&mut self, option: &Word, prefixes: &[Prefix], set: fn(&mut Region, Prefix)) -> Result<(), RuleError> {
        let region = |&prefix: &Prefix| {
            let mut region = Region::all(self.family);
            set(&mut region, prefix);
            region
        };
        self.select(option, &prefixes.iter().map(region).collect::<Vec<_>>())
    }

    /// Ports of the source, of the destination, or of either.
    fn ports(&mut self, option: &Word, not: bool, source: bool, destination: bool) -> Result<(), RuleError> {
        let word = self.value(option)?;
        let mut ranges = values::ports(word)?;
        if not {
            ranges = other_ports(&ranges);
        }
        let all = Region::all(self.family);
        let sources: Vec<_> = ranges.iter().map(|&p| Region { sport: Some(p), ..all }).collect();
        let destinations: Vec<_> = ranges.iter().map(|&p| Region { dport: Some(p), ..all }).collect();
        let regions = match (source, destination) {
            // Neither of the two, or either.
            (true, true) if not => product(&sources, &destinations).ok_or_else(|| too_many(option))?,
            (true, true) => [sources, destinations].concat(),
            (true, false) => sources,
            _ => destinations,
        };
        self.select(option, &regions)
    }
}

fn too_many(option: &Word) -> RuleError {
    let error = option.error(format!("the matches up to here are more than {MOST_REGIONS} rules"));
    error.hint("use ranges and networks instead of lists, or several rules")
}

/// Whether a match module's options are read here, so that others among them have to be named.
fn known(module: &Word) -> bool {
    PLAIN.contains(&module.text.as_str()) || WITH_PORTS.contains(&module.text.as_str())
}
