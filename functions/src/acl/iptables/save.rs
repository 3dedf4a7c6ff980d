//! The format of `iptables-save`: tables, chains, rules.

use std::collections::HashMap;

use super::matches::{self, Read};
use super::region::Region;
use super::{Family, LeftOut};
use crate::acl::error::{RuleError, Word};
use crate::acl::rule::Action;

/// The `filter` table.
#[derive(Debug, Default)]
pub struct Table {
    pub chains: Vec<Chain>,
    pub names: HashMap<String, usize>,
}

#[derive(Debug)]
pub struct Chain {
    pub name: String,
    /// What becomes of a packet that reaches the end; chains of the user have none.
    pub policy: Option<Action>,
    /// Line of its declaration.
    pub line: u32,
    pub rules: Vec<Entry>,
    /// Rules that were left out on demand.
    pub left_out: Vec<LeftOut>,
    /// The first rule that cannot be expressed.
    pub beyond: Option<RuleError>,
}

impl Chain {
    /// The chains that its rules lead to.
    pub fn leads_to(&self) -> impl Iterator<Item = usize> {
        self.rules.iter().filter_map(|entry| match entry.target {
            Target::Jump(next) | Target::Goto(next) => Some(next),
            Target::Verdict(_) | Target::Return => None,
        })
    }
}

/// A rule that counts: one with an effect upon the verdict.
#[derive(Debug)]
pub struct Entry {
    pub line: u32,
    /// Packets it matches.
    pub regions: Vec<Region>,
    pub target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Verdict(Action),
    Return,
    /// To a chain, and back at its end.
    Jump(usize),
    /// To a chain; its end is the end of this one too.
    Goto(usize),
}

/// The family that the text says it is about.
pub fn family(text: &str) -> Family {
    let generator = text.lines().find(|line| line.starts_with('#') && line.contains("tables"));
    match generator {
        Some(line) if line.contains("ip6tables") => Family::V6,
        _ => Family::V4,
    }
}

/// Most boxes that the rules of all chains may be together.
const MOST_REGIONS: usize = 1 << 21;

/// Reads the `filter` table.
pub fn table(text: &str, family: Family, leave_out: &[String]) -> Result<Table, RuleError> {
    let mut table = Table::default();
    let mut lines = Vec::new();
    let mut inside = None;
    for (line, number) in text.lines().zip(1..) {
        let words = words(line, number)?;
        let Some(first) = words.first() else { continue };
        if let Some(name) = first.text.strip_prefix('*') {
            inside = Some(name == "filter");
        } else if first.text == "COMMIT" {
            inside = None;
        } else {
            match inside {
                Some(true) => lines.push(words),
                Some(false) => {}
                None => {
                    return Err(first.unexpected("a table such as `*filter`").hint("save with `iptables-save`"));
                }
            }
        }
    }
    // Chains first: rules may jump to chains declared behind them.
    for words in &lines {
        if let Some(name) = words[0].text.strip_prefix(':') {
            declare(&mut table, name, words)?;
        }
    }
    let mut regions = 0;
    for words in lines.iter().filter(|words| !words[0].text.starts_with(':')) {
        // `iptables-save -c` puts counters before the rule.
        let words = if words[0].text.starts_with('[') { &words[1..] } else { &words[..] };
        let [append, chain, rest @ ..] = words else {
            return Err(line_error(words, lines.first()));
        };
        if append.text != "-A" && append.text != "--append" {
            return Err(append.unexpected("`-A`, `:CHAIN` or `COMMIT`"));
        }
        let Some(&chain) = table.names.get(&chain.text) else {
            return Err(unknown_chain(chain, &table));
        };
        match matches::read(append, rest, family, &table, leave_out)? {
            Read::Rule(entry) => {
                regions += entry.regions.len();
                if regions > MOST_REGIONS {
                    let message =
                        format!("with their lists written out, the chains are more than {MOST_REGIONS} rules");
                    let error = append.error(message);
                    return Err(error.hint("use ranges and networks instead of lists, or save fewer chains"));
                }
                table.chains[chain].rules.push(entry);
            }
            Read::WithoutEffect => {}
            Read::LeftOut(left) => table.chains[chain].left_out.push(left),
            Read::Beyond(error) => _ = table.chains[chain].beyond.get_or_insert(error),
        }
    }
    Ok(table)
}

fn line_error(words: &[Word], first: Option<&Vec<Word>>) -> RuleError {
    match words.first().or(first.and_then(|words| words.first())) {
        Some(word) => word.error("expected a rule such as `-A FORWARD -j ACCEPT`"),
        None => RuleError { line: 1, column: 1, width: 0, message: "expected a rule".into(), hint: None },
    }
}

pub fn unknown_chain(word: &Word, table: &Table) -> RuleError {
    let error = word.error(format!("there is no chain `{}`", word.text));
    error.nearest(&word.text, table.chains.iter().map(|chain| chain.name.as_str()))
}

fn declare(table: &mut Table, name: &str, words: &[Word]) -> Result<(), RuleError> {
    let word = &words[0];
    let policy = match words.get(1).map(|word| word.text.as_str()) {
        Some("ACCEPT") => Some(Action::Permit),
        Some("DROP") => Some(Action::Deny),
        Some("-") => None,
        _ => {
            return Err(words.get(1).unwrap_or(word).unexpected("the chain's policy: `ACCEPT`, `DROP` or `-`"));
        }
    };
    if table.names.insert(name.to_string(), table.chains.len()).is_some() {
        return Err(word.error(format!("the chain `{name}` is declared twice")));
    }
    table.chains.push(Chain {
        name: name.into(),
        policy,
        line: word.line,
        rules: Vec::new(),
        left_out: Vec::new(),
        beyond: None,
    });
    Ok(())
}

/// The words of a line; quotes hold words with spaces together, `\` takes what follows as it is.
fn words(line: &str, number: u32) -> Result<Vec<Word>, RuleError> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    let mut quoted = false;
    let mut escaped = false;
    for (c, column) in line.chars().zip(1..) {
        if !quoted && !open && (c == '#' || c.is_whitespace()) {
            if c == '#' {
                break;
            }
            continue;
        }
        if !open {
            words.push(Word { text: String::new(), line: number, column, width: 0 });
            open = true;
        }
        let Some(word) = words.last_mut() else {
            continue;
        };
        match c {
            _ if escaped => {
                escaped = false;
                word.text.push(c);
            }
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                open = false;
                continue;
            }
            c => word.text.push(c),
        }
        word.width += 1;
    }
    match words.last() {
        Some(word) if quoted => Err(word.error("the quote is not closed")),
        _ => Ok(words),
    }
}
