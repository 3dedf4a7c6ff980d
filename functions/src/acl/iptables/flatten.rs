//! Follows the chains as a packet would, with whole regions of packets at once, and writes down
//! each verdict reached as a rule.
//!
//! A chain is written in place of the jump to it, restricted to the packets that jump: those that
//! fall off its end match none of its rules, and meet the rules behind the jump, as they should. A
//! `RETURN` under a condition cannot be written as a rule that skips others. For its packets all
//! that they still meet in the calling chains, down to the policy, is written at the place of the
//! `RETURN`; what follows in the chain then no longer applies to them, as they are decided.

use super::region::Region;
use super::save::{Table, Target};
use super::{Family, Ruleset};
use crate::acl::error::RuleError;
use crate::acl::rule::{Action, Ports, Rule};

/// Most rules that a chain may expand to.
const MOST_RULES: usize = 1 << 20;
/// Most boxes of rules to hold against the packets that reach them; those that select none are soon looked at.
const MOST_LOOKS: usize = 1 << 28;
/// Most steps of following chains; rules that select no packets make steps without rules.
const MOST_STEPS: usize = 1 << 23;
/// Most chains and returns inside each other.
const MOST_DEPTH: usize = 1000;

/// Rules for the packets that enter a chain.
pub fn ruleset(table: &Table, name: &str, family: Family) -> Result<Ruleset, RuleError> {
    let Some((&chain, policy)) = table.names.get(name).and_then(|chain| Some((chain, table.chains[*chain].policy?)))
    else {
        let known: Vec<&str> = table.chains.iter().filter(|c| c.policy.is_some()).map(|c| c.name.as_str()).collect();
        let message = format!("the `filter` table has no built-in chain `{name}`");
        let error = RuleError { line: 1, column: 1, width: 0, message, hint: None };
        return Err(if known.is_empty() { error } else { error.hint(format!("it has {}", known.join(", "))) });
    };
    without_loops(table)?;
    let mut left_out = Vec::new();
    for chain in reached(table, chain) {
        let chain = &table.chains[chain];
        if let Some(error) = &chain.beyond {
            return Err(error.clone());
        }
        left_out.extend_from_slice(&chain.left_out);
    }
    let mut walk = Walk { table, policy, end: table.chains[chain].line, rules: Vec::new(), steps: 0, looks: 0 };
    let all = Region::all(family);
    let decided = walk.chain(chain, 0, all, &[], 0)?;
    if !decided {
        walk.verdict(policy, all, walk.end)?;
    }
    Ok(Ruleset { rules: walk.rules, left_out })
}

/// The chains that a chain leads to, itself included, in the order of the file.
fn reached(table: &Table, from: usize) -> Vec<usize> {
    let mut reached = vec![false; table.chains.len()];
    let mut open = vec![from];
    while let Some(chain) = open.pop() {
        if !std::mem::replace(&mut reached[chain], true) {
            open.extend(table.chains[chain].leads_to());
        }
    }
    (0..reached.len()).filter(|&chain| reached[chain]).collect()
}

/// Where a packet goes on after the end of a chain: a chain and a place in it.
type Frame = (usize, usize);

struct Walk<'a> {
    table: &'a Table,
    policy: Action,
    /// Line that the policy stands in.
    end: u32,
    rules: Vec<Rule>,
    steps: usize,
    looks: usize,
}

impl Walk<'_> {
    /// Writes the rules of a chain from a place on, for the packets of a region. `stack` says where
    /// packets that return go on. Returns whether every packet of the region is decided; those
    /// that are not fall off the end.
    fn chain(
        &mut self,
        chain: usize,
        from: usize,
        region: Region,
        stack: &[Frame],
        depth: usize,
    ) -> Result<bool, RuleError> {
        let table = self.table;
        for (place, entry) in table.chains[chain].rules.iter().enumerate().skip(from) {
            self.looks += 1 + entry.regions.len();
            self.bound(depth, entry.line)?;
            for part in entry.regions.iter().filter_map(|r| r.intersect(&region)) {
                self.steps += 1;
                let whole = part == region;
                let decided = match entry.target {
                    Target::Verdict(action) => {
                        self.verdict(action, part, entry.line)?;
                        true
                    }
                    // All packets return: the same as the chain's end.
                    Target::Return if whole => return Ok(false),
                    Target::Return => {
                        self.finish(part, stack, depth + 1)?;
                        true
                    }
                    Target::Jump(target) => {
                        let mut inner = stack.to_vec();
                        inner.push((chain, place + 1));
                        self.chain(target, 0, part, &inner, depth + 1)?
                    }
                    Target::Goto(target) => {
                        let decided = self.chain(target, 0, part, stack, depth + 1)?;
                        if whole {
                            return Ok(decided);
                        }
                        if !decided {
                            self.finish(part, stack, depth + 1)?;
                        }
                        true
                    }
                };
                if decided && whole {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Writes all that packets meet which leave a chain for the places in `stack`, the last first.
    fn finish(&mut self, region: Region, stack: &[Frame], depth: usize) -> Result<(), RuleError> {
        for outer in (0..stack.len()).rev() {
            let (chain, place) = stack[outer];
            if self.chain(chain, place, region, &stack[..outer], depth)? {
                return Ok(());
            }
        }
        self.verdict(self.policy, region, self.end)
    }

    fn verdict(&mut self, action: Action, region: Region, line: u32) -> Result<(), RuleError> {
        let Region { src, dst, mut sport, dport, protocols } = region;
        if sport == Some(Ports::ALL) && dport.is_some() {
            // The other port already asks that the packet has ports.
            sport = None;
        }
        self.rules.push(Rule { action, src: Some(src), dst: Some(dst), sport, dport, protocols, line });
        self.bound(0, line)
    }

    fn bound(&self, depth: usize, line: u32) -> Result<(), RuleError> {
        let too_long = self.steps > MOST_STEPS || self.looks > MOST_LOOKS;
        if self.rules.len() > MOST_RULES || too_long || depth > MOST_DEPTH {
            let message = "the chains expand to too many rules".to_string();
            let error = RuleError { line, column: 1, width: 0, message, hint: None };
            return Err(error.hint("`RETURN` under many different conditions multiplies what follows"));
        }
        Ok(())
    }
}

/// Chains that lead to themselves are refused by iptables too.
fn without_loops(table: &Table) -> Result<(), RuleError> {
    // Take away chains that lead only to chains taken away; what stays is in, or before, a loop.
    let mut leading = vec![0; table.chains.len()];
    let mut led_from = vec![Vec::new(); table.chains.len()];
    for (chain, next) in (0..).zip(&table.chains).flat_map(|(i, chain)| chain.leads_to().map(move |next| (i, next))) {
        leading[chain] += 1;
        led_from[next].push(chain);
    }
    let mut taken: Vec<usize> = (0..leading.len()).filter(|&chain| leading[chain] == 0).collect();
    while let Some(chain) = taken.pop() {
        for &before in &led_from[chain] {
            leading[before] -= 1;
            if leading[before] == 0 {
                taken.push(before);
            }
        }
    }
    let open: Vec<usize> = (0..leading.len()).filter(|&chain| leading[chain] > 0).collect();
    match open.first().and_then(|&chain| Some((chain, leads_to(table, chain, &open)?))) {
        Some((chain, line)) => {
            let message = format!("the chain `{}` leads into a loop", table.chains[chain].name);
            Err(RuleError { line, column: 1, width: 0, message, hint: None })
        }
        None => Ok(()),
    }
}

/// Line of a rule of `chain` that leads to one of the chains in `others` (ascending).
fn leads_to(table: &Table, chain: usize, others: &[usize]) -> Option<u32> {
    table.chains[chain].rules.iter().find_map(|entry| match entry.target {
        Target::Jump(next) | Target::Goto(next) if others.binary_search(&next).is_ok() => Some(entry.line),
        _ => None,
    })
}
