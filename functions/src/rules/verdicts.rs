//! A list of rules and its default as a whole: which packets it can let pass, and which of another list's rules
//! can still decide behind it.
//!
//! Packets are taken together as the box of a rule: all that the rule matches. Every answer errs on the safe side:
//! "cannot decide" and "permits all" are certain, their opposites are not.

use crate::effects::Fields;

use super::rule::{Action, Ports, Prefix, Protocols, Rule};

/// A list of rules: IP packets whose first matching rule permits, or that no rule matches where the default permits,
/// leave unchanged by gate 0 or 1, that of their direction. The others are dropped, or leave unchanged by gate 2 or 3
/// if an edge takes them; so do frames that are not IPv4, IPv6 or ARP where `unparsed` denies, and packets with a source
/// route where `source_routes` does. Other such frames, and ARP, leave by gate 0 or 1. All answers but [`last_word`] are about IP packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdicts {
    /// The rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// What becomes of IP packets that no rule matches.
    pub default: Action,
    /// What becomes of frames that are not IPv4, IPv6 or ARP.
    pub unparsed: Action,
    /// What becomes of IP packets with a source route: denied whatever the rules say, or judged by them. All answers are
    /// those of the rules alone: where this denies, fewer packets are permitted. Whoever is told a list's verdict, or that
    /// it permits all, still looks for source routes himself.
    pub source_routes: Action,
}

/// What a list says of a packet of which nothing is known: the first rule that matches every packet decides, or else
/// the default.
pub fn last_word(rules: &[Rule], default: Action) -> Action {
    let any = Rule::any(default);
    rules.iter().find(|rule| rule.covers(&any)).map_or(default, |rule| rule.action)
}

impl Verdicts {
    /// Whether a packet that this list permits can match `rule`.
    pub fn lets_reach(&self, rule: &Rule) -> bool {
        for own in &self.rules {
            match own.action {
                Action::Permit if own.meets(rule) => return true,
                Action::Deny if own.covers(rule) => return false,
                _ => {}
            }
        }
        self.default == Action::Permit
    }

    /// Return boxes that hold every packet which this list permits.
    pub fn permitted(&self) -> Vec<Rule> {
        let rest = (self.default == Action::Permit).then_some(Rule::any(Action::Permit));
        let rules = self.rules.iter().filter(|rule| rule.action == Action::Permit).copied();
        rules.chain(rest).collect()
    }

    /// Whether this list permits every packet of a rule's box.
    pub fn permits_all(&self, packets: &Rule) -> bool {
        for own in &self.rules {
            match own.action {
                Action::Deny if own.meets(packets) => return false,
                Action::Permit if own.covers(packets) => return true,
                _ => {}
            }
        }
        self.default == Action::Permit
    }

    /// Return the fields that verdicts depend on: those that some rule asks for, and whether there is IP at all.
    pub fn reads(&self) -> Fields {
        self.rules.iter().fold(Fields::NETWORK, |fields, rule| fields | rule.reads())
    }
}

impl Rule {
    /// Whether this rule matches every packet that `inner` matches.
    pub fn covers(&self, inner: &Rule) -> bool {
        // A rule with an address of one family says nothing of the other family's packets.
        let family = self.is_v4().is_none_or(|v4| inner.is_v4() == Some(v4));
        let address = |outer: Option<Prefix>, inner: Option<Prefix>| match (outer, inner) {
            (None, _) => true,
            (Some(outer), Some(inner)) => outer.contains(&inner),
            (Some(outer), None) => outer.length() == 0,
        };
        let ports = |outer: Option<Ports>, ports: Option<Ports>| match (outer, ports) {
            (None, _) => true,
            (Some(outer), Some(ports)) => outer.first <= ports.first && ports.last <= outer.last,
            (Some(outer), None) => outer == Ports::ALL && inner.needs_ports(),
        };
        let Protocols { first, last } = self.protocols;
        family
            && address(self.src, inner.src)
            && address(self.dst, inner.dst)
            && first <= inner.protocols.first
            && inner.protocols.last <= last
            && ports(self.sport, inner.sport)
            && ports(self.dport, inner.dport)
    }

    /// Whether a packet may match both this rule and `other`.
    pub fn meets(&self, other: &Rule) -> bool {
        let family = match (self.is_v4(), other.is_v4()) {
            (Some(one), Some(another)) => one == another,
            _ => true,
        };
        let address = |one: Option<Prefix>, other: Option<Prefix>| match (one, other) {
            (Some(one), Some(other)) => one.contains(&other) || other.contains(&one),
            _ => true,
        };
        let ports = |one: Option<Ports>, other: Option<Ports>| match (one, other) {
            (Some(one), Some(other)) => one.first <= other.last && other.first <= one.last,
            _ => true,
        };
        family
            && address(self.src, other.src)
            && address(self.dst, other.dst)
            && self.protocols.first <= other.protocols.last
            && other.protocols.first <= self.protocols.last
            && ports(self.sport, other.sport)
            && ports(self.dport, other.dport)
    }

    /// Whether the rule is for IPv4 packets only (`true`) or for IPv6 packets only (`false`).
    fn is_v4(&self) -> Option<bool> {
        self.src.or(self.dst).map(|prefix| matches!(prefix, Prefix::V4 { .. }))
    }

    /// Return the fields that the rule asks for.
    fn reads(&self) -> Fields {
        let asked = |asked: bool, fields| if asked { fields } else { Fields::NONE };
        // A prefix of length 0 asks only for the family, the network layer.
        let address = |prefix: Option<Prefix>| prefix.is_some_and(|prefix| prefix.length() > 0);
        asked(address(self.src), Fields::SOURCE)
            | asked(address(self.dst), Fields::DESTINATION)
            | asked(self.protocols != Protocols::ALL, Fields::PROTOCOL)
            | asked(self.needs_ports(), Fields::PORTS)
    }
}

#[cfg(test)]
#[path = "verdicts_tests.rs"]
mod tests;
