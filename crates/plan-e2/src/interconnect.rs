//! Interconnection (Lan's dissertation, §3.4.2): edges become vports, traffic filters and tunnels.
//!
//! "Instantiating NFs' ports": each instance gets a vport for each value of an attribute that it exports by
//! ports, or one for all packets. "Adding traffic filters": behind a vport stand rules, in the order in which
//! they are tried; each has what is left of the edge's filters, and the range of hashes of the instance that
//! it leads to. "Configuring the switch and the E2D": an edge stays inside a server, goes through the tunnel
//! between two servers, or to a port to the outside. The result says what to configure, not how.
//!
//! Where a mangling function stands between, the packet no longer shows what steering needs: which chain it
//! belongs to, or which instance has its state. Such rules name the header fields that remain, from which
//! "disambiguating packet steering rules" are to be learned.

use std::collections::BTreeMap;

use catena_policy::{ChainId, Condition, Direction, Method};
use serde::{Deserialize, Serialize};

use super::describe::Description;
use super::instances::{HASHES, IEdge, IEnd, IGraph, InstanceId, Range};
use super::merge::{PEnd, PGraph, Side};
use super::offload::Site;
use catena_plan_model::catalogue::Fields;
use catena_plan_model::problem::ServerId;

/// All that has to be configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wiring {
    /// What the switch does with packets that enter by the ports of a side, in the order of chains.
    pub ports: Vec<(Side, VPort)>,
    /// The instances, by number.
    pub instances: Vec<Wired>,
    /// One tunnel for all edges from one place to another; nothing inside a server.
    pub tunnels: Vec<Tunnel>,
    /// Flow entries that the switch needs for what enters by ports: ranges of hashes as prefixes.
    pub switch_entries: u64,
}

/// An instance with its vports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wired {
    /// Where it is.
    pub site: Site,
    /// The hashes it serves; those of all vports that lead to it.
    pub range: Range,
    /// Where its packets come out.
    pub vports: Vec<VPort>,
}

/// Where packets come out, and the rules behind it. Packets that no rule takes end there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VPort {
    /// The attribute's name and value whose packets come out here; None: all packets.
    pub value: Option<(String, String)>,
    /// In the order in which they are tried, chain by chain: a packet sees those of its own chain.
    pub rules: Vec<Rule>,
}

/// Which packets go where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Packets of this chain,
    pub chain: ChainId,
    /// in this direction,
    pub direction: Direction,
    /// for which all of these hold,
    pub when: Vec<Condition>,
    /// and whose hash lies in a range, if one is given,
    pub hash: Option<Hashed>,
    /// go there.
    pub to: Hop,
    /// Expected, bits per second.
    pub bps: f64,
    /// What the rule asks for cannot be seen in the packet, because a function rewrote it: chain and hash are
    /// to be learned per flow from these fields, which it left as they were. None: they can be seen.
    pub learn_by: Option<Fields>,
}

/// A range of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashed {
    /// Of these fields, as forward packets have them; of return packets source and destination change places.
    pub fields: Fields,
    /// In this range.
    pub range: Range,
}

/// Where a rule leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hop {
    /// To an instance at the same place.
    Local(InstanceId),
    /// To an instance elsewhere, through this tunnel of [`Wiring::tunnels`].
    Tunnel(usize, InstanceId),
    /// Out by the ports of a side.
    Port(Side),
    /// Nowhere: counted and dropped.
    Drop,
}

/// All edges from one place to another. Those with the switch at one end are the server's own link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tunnel {
    /// Where it begins.
    pub from: Site,
    /// Where it ends.
    pub to: Site,
    /// Edges that it carries.
    pub edges: u32,
    /// Expected, bits per second.
    pub bps: f64,
}

impl Tunnel {
    /// The servers that it joins, if it joins two.
    #[must_use]
    pub fn servers(&self) -> Option<(ServerId, ServerId)> {
        match (self.from, self.to) {
            (Site::Server(a), Site::Server(b)) => Some((a, b)),
            _ => None,
        }
    }
}

/// Wire the instances of `graph`, one site each.
#[must_use]
pub fn interconnect(policy: &PGraph, graph: &IGraph, sites: &[Site], descriptions: &[Description]) -> Wiring {
    let mut work = Work { policy, graph, sites, descriptions, tunnels: BTreeMap::new(), wiring: Wiring::default() };
    for (id, instance) in graph.instances.iter().enumerate() {
        let vports = work.vports(id);
        work.wiring.instances.push(Wired { site: work.site(IEnd::Instance(id)), range: instance.range, vports });
    }
    for side in [Side::In, Side::Out] {
        let leaving: Vec<&IEdge> = graph.edges.iter().filter(|e| e.from == IEnd::Port(side)).collect();
        let port = VPort { value: None, rules: work.rules(leaving, None) };
        let entries = port.rules.iter().map(|r| r.hash.map_or(1, |hashed| prefixes(hashed.range)));
        work.wiring.switch_entries += entries.sum::<u64>();
        work.wiring.ports.push((side, port));
    }
    work.wiring
}

struct Work<'a> {
    policy: &'a PGraph,
    graph: &'a IGraph,
    sites: &'a [Site],
    descriptions: &'a [Description],
    tunnels: BTreeMap<(Site, Site), usize>,
    wiring: Wiring,
}

impl Work<'_> {
    /// Ports are at the switch.
    fn site(&self, end: IEnd) -> Site {
        match end {
            IEnd::Instance(id) => self.sites.get(id).copied().unwrap_or(Site::Switch),
            IEnd::Port(_) | IEnd::Drop => Site::Switch,
        }
    }

    fn vports(&mut self, id: InstanceId) -> Vec<VPort> {
        let (graph, node) = (self.graph, self.graph.instances[id].node);
        let at = graph.at[id].iter().map(|&e| &graph.edges[e]);
        let leaving: Vec<&IEdge> = at.filter(|e| e.from == IEnd::Instance(id)).collect();
        let attributes = self.descriptions.get(node).map_or(&[][..], |d| &d.attributes);
        let by_port = attributes.iter().find(|a| a.by == Method::Port && a.values.is_some()).cloned();
        let Some((name, values)) = by_port.and_then(|a| Some((a.name, a.values?))) else {
            return vec![VPort { value: None, rules: self.rules(leaving, None) }];
        };
        let port = |value: String| {
            let value = (name.clone(), value);
            let rules = self.rules(leaving.clone(), Some(&value));
            VPort { value: Some(value), rules }
        };
        values.into_iter().map(port).collect()
    }

    /// The rules of edges that begin at one place, for packets with an attribute's value if one is given.
    fn rules(&mut self, mut leaving: Vec<&IEdge>, value: Option<&(String, String)>) -> Vec<Rule> {
        let (policy, graph) = (self.policy, self.graph);
        leaving.sort_by_key(|e| {
            let edge = &policy.edges[e.edge];
            (edge.chain, edge.direction == Direction::Return, edge.order, e.edge, graph.range(e.to).from)
        });
        let mut rules = Vec::new();
        for part in leaving {
            let edge = &policy.edges[part.edge];
            let Some(when) = left_to_ask(&edge.when, value) else { continue };
            let hash = part.hash.map(|fields| Hashed { fields, range: graph.range(part.to) });
            let learn_by = self.learn_by(part, hash);
            let to = self.hop(part);
            rules.push(Rule { chain: edge.chain, direction: edge.direction, when, hash, to, bps: part.bps, learn_by });
        }
        rules
    }

    /// What a rule for `part` has to be learned by, because a rewriting function hides what it asks for.
    fn learn_by(&self, part: &IEdge, hash: Option<Hashed>) -> Option<Fields> {
        let edge = &self.policy.edges[part.edge];
        let described = |end: PEnd| match end {
            PEnd::Node(node) => self.policy.nodes.get(node).zip(self.descriptions.get(node)),
            PEnd::Port(_) | PEnd::Drop => None,
        };
        let remaining = |d: &Description| Fields(Fields::FIVE_TUPLE.0 & !d.rewrites.0);
        // A return packet comes to the function with the outer header, and its hash says nothing of the inner.
        let returning = described(edge.to).filter(|_| edge.direction == Direction::Return);
        if let (Some((_, to)), Some(hash)) = (returning, hash)
            && to.rewrites.0 & hash.fields.0 != 0
        {
            return Some(remaining(to));
        }
        // Several chains leave one function: the header that told them apart is gone.
        let chains = |node: &super::merge::PNode| node.members.iter().any(|m| m.0 != edge.chain);
        match described(edge.from) {
            Some((node, from)) if from.rewrites != Fields(0) && chains(node) => Some(remaining(from)),
            _ => None,
        }
    }

    fn hop(&mut self, part: &IEdge) -> Hop {
        let (from, to) = (self.site(part.from), self.site(part.to));
        if from != to && part.to != IEnd::Drop {
            let next = self.tunnels.len();
            let tunnel = *self.tunnels.entry((from, to)).or_insert(next);
            if tunnel == self.wiring.tunnels.len() {
                self.wiring.tunnels.push(Tunnel { from, to, edges: 0, bps: 0.0 });
            }
            let carried = &mut self.wiring.tunnels[tunnel];
            carried.edges += 1;
            carried.bps += part.bps;
        }
        match part.to {
            IEnd::Drop => Hop::Drop,
            IEnd::Port(side) => Hop::Port(side),
            IEnd::Instance(id) if from == to => Hop::Local(id),
            IEnd::Instance(id) => Hop::Tunnel(self.tunnels.get(&(from, to)).copied().unwrap_or_default(), id),
        }
    }
}

/// The conditions that are left to ask of packets which come out with `value`; None: none of them is meant.
fn left_to_ask(when: &[Condition], value: Option<&(String, String)>) -> Option<Vec<Condition>> {
    let Some((attribute, value)) = value else { return Some(when.to_vec()) };
    let mut left = Vec::new();
    for condition in when {
        match condition {
            Condition::Attribute { name, values, negated } if name.as_ref().is_none_or(|n| n == attribute) => {
                if values.contains(value) == *negated {
                    return None;
                }
            }
            other => left.push(other.clone()),
        }
    }
    Some(left)
}

/// How many prefixes make up a range: "even TCAM-based switches, without a native range filter, require fewer
/// than 2N rules for this" (Lan's dissertation, §3.4.4).
#[must_use]
pub fn prefixes(range: Range) -> u64 {
    let (mut from, to, mut count) = (range.from, range.to.min(HASHES), 0);
    while from < to {
        // The largest block that begins here and ends within.
        let aligned = if from == 0 { HASHES } else { 1 << from.trailing_zeros() };
        let fits = 1_u64 << (to - from).ilog2();
        from += fits.min(aligned);
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::keys::Splitting;
    use super::super::sample;
    use super::*;
    use catena_plan_model::catalogue::Affinity;
    use catena_policy::filter::Expression;
    use catena_policy::{Attribute, Filter};

    fn describe(affinity: Affinity, rewrites: Fields) -> Description {
        Description { affinity, rewrites, cycles: 1.0, attributes: vec![], platforms: vec![] }
    }

    fn build(policy: &PGraph, descriptions: &[Description], counts: &[u32]) -> IGraph {
        let splitting: Vec<Splitting> =
            descriptions.iter().map(|d| Splitting { affinity: d.affinity, rewrites: d.rewrites }).collect();
        IGraph::build(policy, &splitting, counts).unwrap()
    }

    fn verdict(value: &str) -> Condition {
        Condition::Attribute { name: Some("verdict".into()), values: vec![value.into()], negated: false }
    }

    /// Lan's dissertation, Figure 3.4: an IDS with the vports "safe" and "unsafe"; safe traffic is classified
    /// further by its destination port.
    #[test]
    fn figure_3_4_ports_and_filters_of_an_ids() {
        let http = Condition::Filter(Filter {
            text: "dst port 80".into(),
            program: vec![],
            expression: Expression::All(vec![]),
        });
        let mut policy =
            PGraph { nodes: ["Ids", "Cache", "Monitor", "Normalizer"].map(sample::node).into(), edges: vec![] };
        let edge = |to: usize, order, when: Vec<Condition>| {
            let from = PEnd::Node(0);
            super::super::merge::PEdge { order, when, ..sample::edge(from, PEnd::Node(to), 1.0) }
        };
        policy.edges.push(sample::edge(PEnd::Port(Side::In), PEnd::Node(0), 3.0));
        policy.edges.push(edge(1, 0, vec![verdict("safe"), http.clone()]));
        policy.edges.push(edge(2, 1, vec![verdict("safe")]));
        policy.edges.push(edge(3, 2, vec![verdict("unsafe")]));
        let mut descriptions = vec![describe(Affinity::Any, Fields(0)); 4];
        let values = Some(vec!["safe".into(), "unsafe".into()]);
        descriptions[0].attributes = vec![Attribute { name: "verdict".into(), values, by: Method::Port }];
        let graph = build(&policy, &descriptions, &[1; 4]);
        let sites = [Site::Server(0), Site::Server(0), Site::Server(1), Site::Server(1)];
        let wiring = interconnect(&policy, &graph, &sites, &descriptions);

        let vports = &wiring.instances[0].vports;
        let value = |v: &str| Some(("verdict".into(), v.into()));
        assert_eq!([vports[0].value.clone(), vports[1].value.clone()], [value("safe"), value("unsafe")]);
        let rules = |port: usize| vports[port].rules.iter().map(|r| (r.when.clone(), r.to)).collect::<Vec<_>>();
        assert_eq!(rules(0), [(vec![http], Hop::Local(1)), (vec![], Hop::Tunnel(0, 2))]);
        assert_eq!(rules(1), [(vec![], Hop::Tunnel(0, 3))]);
        // Both edges to the other server share a tunnel; the other is the link from the switch.
        let tunnels: Vec<_> = wiring.tunnels.iter().map(|t| (t.servers(), t.edges, t.bps)).collect();
        assert_eq!(tunnels, [(Some((0, 1)), 2, 2.0), (None, 1, 3.0)]);
        assert_eq!(wiring.switch_entries, 1);
    }

    #[test]
    fn ranges_stand_in_the_rules_and_cost_the_switch_entries() {
        let descriptions = vec![describe(Affinity::Fields(Fields::SOURCE), Fields(0)); 2];
        let policy = sample::line(2, 6.0);
        let graph = build(&policy, &descriptions, &[2, 2]);
        let wiring = interconnect(&policy, &graph, &[0, 1, 0, 1].map(Site::Server), &descriptions);
        let half = |i| Some(Hashed { fields: Fields::SOURCE, range: Range::FULL.part(i, 2) });
        let entering: Vec<_> = wiring.ports[0].1.rules.iter().map(|r| r.hash).collect();
        assert_eq!(entering, [half(0), half(1)]);
        assert_eq!((wiring.instances[0].vports[0].rules[0].hash, wiring.switch_entries), (None, 2));
        assert_eq!(wiring.instances[1].vports[0].rules[0].to, Hop::Local(3));
        assert!(wiring.tunnels.iter().all(|t| t.servers().is_none()));
    }

    #[test]
    fn behind_a_nat_what_it_rewrote_is_learned() {
        let outside = Fields::SOURCE.and(Fields::SOURCE_PORT);
        let descriptions = [describe(Affinity::Fields(Fields::FIVE_TUPLE), outside)];
        let mut policy = sample::line(1, 6.0);
        policy.nodes[0].members.push((1, 0));
        policy.edges.push(super::super::merge::PEdge {
            direction: Direction::Return,
            ..sample::edge(PEnd::Port(Side::Out), PEnd::Node(0), 6.0)
        });
        let graph = build(&policy, &descriptions, &[2]);
        let wiring = interconnect(&policy, &graph, &[0, 1].map(Site::Server), &descriptions);
        let rest = Some(Fields::DESTINATION.and(Fields::DESTINATION_PORT).and(Fields::PROTOCOL));
        assert_eq!(wiring.ports[0].1.rules[0].learn_by, None);
        // Coming back: which instance translated the flow? Going out: of which chain was it?
        assert_eq!(wiring.ports[1].1.rules[0].learn_by, rest);
        assert_eq!(wiring.instances[0].vports[0].rules[0].learn_by, rest);
    }

    #[test]
    fn prefixes_cover_ranges() {
        assert_eq!(prefixes(Range::FULL), 1);
        assert_eq!(prefixes(Range { from: 0, to: 3 }), 2);
        assert_eq!(prefixes(Range { from: 1, to: 8 }), 3);
        assert_eq!(prefixes(Range { from: 1, to: HASHES - 1 }), 62);
        assert_eq!(prefixes(Range { from: 5, to: 5 }), 0);
    }
}
