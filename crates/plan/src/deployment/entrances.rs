//! Which packets enter which chain at a side: the one definition, of which plans list the entrances and hosts make their branch.
//!
//! The first match takes the packet. By the side `in`, classes are tried in the order of the file, and the chain without a class takes
//! the rest. By the side `out`, addresses come before classes: a packet that is sent to a NAT's pool, or comes from a balancer's server,
//! is of the chain whose function turned its flow round, whatever classes say of it, because no other function knows the flow. A
//! chain that is alone in having a way back, and has no class, takes all packets there.
//!
//! Addresses tell the chain, but where several instances of a function share them, not which one has the flow. That is learnt, for each
//! flow, from packets on the way out (Lan's dissertation, §3.4.2, where fields that were left as they were tell flows; those of two
//! customers of one server would be one, so here it is all five as they are behind the function). Of a function that rewrites addresses
//! and does not say which it uses, the chain is told by classes.

use std::collections::BTreeMap;

use catena_plan_model::catalogue::{Catalogue, Fields};
use catena_plan_model::returns::{Prefix, Returns};
use catena_policy::{Chain, Class, Direction, End, Filter, Node, PolicyGraph, Unparsed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Deployment;
use super::paths::{Ways, beginning};

/// Packets that enter a path: all that no entrance of their side before took, where neither addresses nor a filter are said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entrance {
    /// Where they come from: forward ones by the side `in`, others by `out`.
    pub direction: Direction,
    /// They are sent to one of these networks, or come from one of `sources`, which functions of the chain use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Prefix>,
    /// They come from one of these networks, or are sent to one of `destinations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Prefix>,
    /// The class, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Which packets these are, as tcpdump writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The path that they enter.
    pub spi: u32,
    /// Whether what is not IPv4, IPv6 or ARP is dropped there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drops_unparsed: bool,
    /// Which flow they are of does not show: it is learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt: Option<Learnt>,
}

/// How the flow of packets on the way back is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    /// Behind the last of these functions on the way out, packets look as those on the way back will, turned round: a flow is known
    /// by its addresses, ports and protocol there.
    pub behind: Vec<String>,
}

/// Packets that enter a chain at a side.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The chain, as an index into the policy graph.
    pub chain: usize,
    /// Which packets these are.
    pub criterion: Criterion<'a>,
}

/// Which packets enter a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Criterion<'a> {
    /// Those sent to or coming from addresses that functions of the chain use.
    Addresses(Returns),
    /// Those of a class: that match the filter, which is of the class or of its way back.
    Class(&'a Class, &'a Filter),
    /// All that no entry before took.
    Others,
}

/// Return who enters at the side of a direction, first match first; `returns` tells by which addresses packets on the way back show that
/// they are a function's.
pub fn entries<'a>(
    policy: &'a PolicyGraph,
    direction: Direction,
    returns: impl Fn(&Node) -> Returns,
) -> Vec<Entry<'a>> {
    let has_way = |chain: &Chain| chain.edges_from(beginning(direction), direction).next().is_some();
    let chains: Vec<(usize, &Chain)> = policy.chains.iter().enumerate().filter(|(_, chain)| has_way(chain)).collect();
    // What a function does not meet on the way back it does not turn round.
    let used = |chain: &Chain| {
        let mut all = Returns::default();
        let passed = |node: &&Node| chain.edges_from(End::Node(node.id), direction).next().is_some();
        chain.nodes.iter().filter(passed).for_each(|node| all.extend(returns(node)));
        all
    };
    let mut entries = Vec::new();
    let told_apart = chains.len() > 1 || chains.iter().any(|(_, chain)| !chain.classes.is_empty());
    let mut is_known = vec![false; policy.chains.len()];
    if direction == Direction::Return && told_apart {
        for (id, chain) in &chains {
            let returns = used(chain);
            if !returns.is_empty() {
                is_known[*id] = true;
                entries.push(Entry { chain: *id, criterion: Criterion::Addresses(returns) });
            }
        }
    }
    for (class, number) in policy.classes.iter().zip(0_u32..) {
        let Some((id, _)) = chains.iter().find(|(_, chain)| chain.classes.contains(&number)) else { continue };
        let filter = match (direction, &class.back) {
            (Direction::Forward, _) => Some(&class.filter),
            (Direction::Return, Some(back)) => Some(back),
            // Without a filter for the way back, the forward one is all that is known of the class.
            (Direction::Return, None) => (!is_known[*id]).then_some(&class.filter),
        };
        entries.extend(filter.map(|filter| Entry { chain: *id, criterion: Criterion::Class(class, filter) }));
    }
    let others = chains.iter().find(|(_, chain)| chain.classes.is_empty());
    entries.extend(others.map(|(id, _)| Entry { chain: *id, criterion: Criterion::Others }));
    entries
}

/// Who enters by the side of a direction, as plans say it; `numbers` are those of the chains' paths.
pub(super) fn entrances(
    ways: Ways<'_>,
    direction: Direction,
    numbers: &BTreeMap<(usize, Direction), u32>,
) -> Vec<Entrance> {
    let entrance = |entry: Entry<'_>| {
        let chain = &ways.policy.chains[entry.chain];
        let mut entrance = Entrance {
            direction,
            destinations: Vec::new(),
            sources: Vec::new(),
            class: None,
            filter: None,
            spi: numbers.get(&(entry.chain, direction)).copied().unwrap_or_default(),
            drops_unparsed: chain.unparsed == Unparsed::Drop,
            learnt: if direction == Direction::Return { learnt(ways.catalogue, chain) } else { None },
        };
        match entry.criterion {
            Criterion::Addresses(returns) => {
                (entrance.destinations, entrance.sources) = (returns.destinations, returns.sources);
            }
            Criterion::Class(class, filter) => {
                (entrance.class, entrance.filter) = (Some(class.name.clone()), Some(filter.text.clone()));
            }
            Criterion::Others => {}
        }
        entrance
    };
    let returns = |node: &Node| ways.catalogue.returns(&node.function, &node.args);
    entries(ways.policy, direction, returns).into_iter().map(entrance).collect()
}

/// How the flow of packets on a chain's way back is known; None: they show it themselves.
fn learnt(catalogue: &Catalogue, chain: &Chain) -> Option<Learnt> {
    let mut behind = Vec::new();
    for node in &chain.nodes {
        let passed = chain.edges_from(End::Node(node.id), Direction::Return).next().is_some();
        let rewrites = catalogue.find_with(&node.function, &node.args).map_or(Fields::NONE, |traits| traits.rewrites);
        if passed && rewrites != Fields::NONE {
            behind.push(format!("{}/{}", chain.name, node.name));
        }
    }
    (!behind.is_empty()).then_some(Learnt { behind })
}

impl Deployment {
    /// The entries that the entrances of a direction are for this policy; None: they are not of it.
    #[must_use]
    pub fn entries<'a>(&self, policy: &'a PolicyGraph, direction: Direction) -> Option<Vec<Entry<'a>>> {
        let entry = |entrance: &Entrance| {
            let path = self.paths.iter().find(|path| (path.spi, path.direction) == (entrance.spi, direction))?;
            let chain = policy.chains.iter().position(|chain| chain.name == path.chain)?;
            let returns = Returns { destinations: entrance.destinations.clone(), sources: entrance.sources.clone() };
            let criterion = match (&entrance.class, &entrance.filter) {
                (Some(name), Some(text)) if returns.is_empty() => {
                    let class = policy.classes.iter().find(|class| class.name == *name)?;
                    let back = class.back.as_ref().filter(|_| direction == Direction::Return);
                    let filter = Some(back.unwrap_or(&class.filter)).filter(|filter| filter.text == *text)?;
                    Criterion::Class(class, filter)
                }
                (None, None) if returns.is_empty() => Criterion::Others,
                (None, None) => Criterion::Addresses(returns),
                _ => return None,
            };
            Some(Entry { chain, criterion })
        };
        self.entrances.iter().filter(|entrance| entrance.direction == direction).map(entry).collect()
    }
}

#[cfg(test)]
mod tests;
