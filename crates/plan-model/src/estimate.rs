//! What a placement of one chain's nodes means: its subgroups, what they cost, and how long a packet takes
//! (the definitions are those of [`crate::problem`]).

use crate::placement::{Link, Site};
use crate::problem::{Chain, NodeId, Problem, Replication, ServerId, Switch};

/// A smaller part of a chain's packets is none.
const PART: f64 = 1e-9;

/// A subgroup before it has cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its nodes, ascending.
    pub nodes: Vec<NodeId>,
    /// Where.
    pub server: ServerId,
    /// The SmartNIC whose stay it belongs to; None: it uses one of the server's ordinary cards.
    pub smart_nic: Option<usize>,
    /// Visits per packet of the chain.
    pub visits: f64,
    /// Cycles per packet of the chain with one core.
    pub cost: f64,
    /// Cycles per packet of the chain more with several cores.
    pub spread: f64,
    /// Whether it may have several cores.
    pub replicable: bool,
}

impl Group {
    /// Packets of the chain that `cores` cores of `clock_hz` carry in a second.
    #[must_use]
    pub fn packets(&self, cores: f64, clock_hz: f64) -> f64 {
        let cost = if cores > 1.0 { self.cost + self.spread } else { self.cost };
        cores * clock_hz / cost
    }
}

/// A stay: a packet comes from the switch to a server, by one link, and goes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// The server.
    pub server: ServerId,
    /// The SmartNIC; None: one of the server's ordinary cards.
    pub smart_nic: Option<usize>,
    /// Its nodes, ascending.
    pub nodes: Vec<NodeId>,
    /// Visits per packet of the chain.
    pub visits: f64,
}

/// A chain's nodes on their sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The subgroups, by their first node.
    pub groups: Vec<Group>,
    /// The stays, by their first node.
    pub stays: Vec<Stay>,
    /// Cycles per packet of the chain on each SmartNIC, by its index.
    pub smart_nic_cycles: Vec<(usize, f64)>,
    /// The longest path's nanoseconds.
    pub latency_ns: f64,
    /// Bits on a card's link for each bit of a packet.
    pub on_link: f64,
    /// How often the switch forwards a packet of the chain; 0 without a switch.
    pub passes: f64,
    /// The part of the chain's packets that no node sees, and that cards carry all the same; 0 with a switch.
    pub direct: f64,
    /// Whether packets can go from each site to the next: without a switch, whether all are in one server.
    pub joined: bool,
}

impl Layout {
    /// Lay out `chain` of `problem` on `sites`, one a node. Every node must be able to run on its site.
    #[must_use]
    pub fn of(problem: &Problem, chain: &Chain, sites: &[Site]) -> Layout {
        let groups = components(chain, |node| match sites[node] {
            Site::Server(server) => Some(server),
            _ => None,
        });
        let stays = components(chain, |node| stay_key(problem, chain, sites, node));
        let groups: Vec<Group> = groups.into_iter().map(|nodes| group(problem, chain, sites, nodes)).collect();
        let stays: Vec<Stay> = stays
            .into_iter()
            .map(|nodes| {
                let (server, smart_nic) = stay_key(problem, chain, sites, nodes[0]).unwrap_or_default();
                Stay { server, smart_nic, visits: visits(chain, &nodes), nodes }
            })
            .collect();
        let mut smart_nic_cycles: Vec<(usize, f64)> = Vec::new();
        for (node, site) in chain.nodes.iter().zip(sites) {
            if let Site::SmartNic(nic) = *site {
                let cycles = node.share * node.smart_nic.unwrap_or(f64::INFINITY);
                match smart_nic_cycles.iter_mut().find(|(n, _)| *n == nic) {
                    Some((_, sum)) => *sum += cycles,
                    None => smart_nic_cycles.push((nic, cycles)),
                }
            }
        }
        let latency_ns = latency(problem, chain, sites, &stays);
        let passes = problem.switch.as_ref().map_or(0.0, |_| 1.0 + stays.iter().map(|stay| stay.visits).sum::<f64>());
        let header = problem.switch.as_ref().map_or(0.0, Switch::header_bytes);
        let on_link = 1.0 + header / chain.packet_bytes;
        let joined = problem.switch.is_some() || stays.iter().all(|stay| stay.server == stays[0].server);
        let direct = direct(problem, chain);
        Layout { groups, stays, smart_nic_cycles, latency_ns, on_link, passes, direct, joined }
    }
}

/// The server and SmartNIC where `node` makes its packets stay. A node on a server stays with the SmartNIC
/// of a neighbour on it, if that card sits in the same server; with several, the first.
fn stay_key(problem: &Problem, chain: &Chain, sites: &[Site], node: NodeId) -> Option<(ServerId, Option<usize>)> {
    match sites[node] {
        Site::Switch => None,
        Site::SmartNic(nic) => Some((problem.smart_nics[nic].server, Some(nic))),
        Site::Server(server) if problem.smart_nics.is_empty() => Some((server, None)),
        Site::Server(server) => {
            let own = group_of(chain, sites, node);
            let beside =
                chain.edges.iter().filter_map(|edge| match (own.contains(&edge.from), own.contains(&edge.to)) {
                    (true, false) => Some(edge.to),
                    (false, true) => Some(edge.from),
                    _ => None,
                });
            let nic = beside
                .filter_map(|other| match sites[other] {
                    Site::SmartNic(nic) if problem.smart_nics[nic].server == server => Some(nic),
                    _ => None,
                })
                .min();
            Some((server, nic))
        }
    }
}

/// The nodes of `node`'s subgroup.
fn group_of(chain: &Chain, sites: &[Site], node: NodeId) -> Vec<NodeId> {
    let mut nodes = vec![node];
    let mut next = 0;
    while next < nodes.len() {
        let here = nodes[next];
        next += 1;
        for edge in &chain.edges {
            for (a, b) in [(edge.from, edge.to), (edge.to, edge.from)] {
                if a == here && sites[b] == sites[node] && !nodes.contains(&b) {
                    nodes.push(b);
                }
            }
        }
    }
    nodes
}

/// The maximal sets of nodes of the same key that edges connect, each ascending, by their first node.
fn components<K: PartialEq>(chain: &Chain, key: impl Fn(NodeId) -> Option<K>) -> Vec<Vec<NodeId>> {
    let keys: Vec<Option<K>> = (0..chain.nodes.len()).map(key).collect();
    let mut owner: Vec<usize> = (0..keys.len()).collect();
    let root = |owner: &mut [usize], mut node: usize| {
        while owner[node] != node {
            owner[node] = owner[owner[node]];
            node = owner[node];
        }
        node
    };
    for edge in &chain.edges {
        if keys[edge.from].is_some() && keys[edge.from] == keys[edge.to] {
            let (a, b) = (root(&mut owner, edge.from), root(&mut owner, edge.to));
            owner[a.max(b)] = a.min(b);
        }
    }
    let mut sets: Vec<Vec<NodeId>> = vec![Vec::new(); keys.len()];
    for (node, key) in keys.iter().enumerate() {
        if key.is_some() {
            sets[root(&mut owner, node)].push(node);
        }
    }
    sets.retain(|set| !set.is_empty());
    sets
}

/// The shares of the edges that enter `nodes` from outside.
fn visits(chain: &Chain, nodes: &[NodeId]) -> f64 {
    let entries: f64 = nodes.iter().map(|&n| chain.nodes[n].entry).sum();
    let mut inside = vec![false; chain.nodes.len()];
    nodes.iter().for_each(|node| inside[*node] = true);
    let edges = chain.edges.iter().filter(|e| inside[e.to] && !inside[e.from]);
    entries + edges.map(|e| e.share).sum::<f64>()
}

fn group(problem: &Problem, chain: &Chain, sites: &[Site], nodes: Vec<NodeId>) -> Group {
    let (server, smart_nic) = stay_key(problem, chain, sites, nodes[0]).unwrap_or_default();
    let visits = visits(chain, &nodes);
    let work: f64 = nodes.iter().map(|&n| chain.nodes[n].share * chain.nodes[n].server.unwrap_or(f64::INFINITY)).sum();
    let replicable = nodes.iter().all(|&n| {
        let joint = || {
            chain.edges.iter().filter(|e| e.from == n).count() > 1
                || chain.edges.iter().filter(|e| e.to == n).count() > 1
        };
        chain.nodes[n].replicable && (problem.replication == Replication::ByState || !joint())
    });
    Group {
        server,
        smart_nic,
        visits,
        cost: work + visits * problem.overheads.visit,
        spread: visits * problem.overheads.spread,
        replicable,
        nodes,
    }
}

/// The longest path's nanoseconds.
fn latency(problem: &Problem, chain: &Chain, sites: &[Site], stays: &[Stay]) -> f64 {
    let mut stay_of = vec![None; chain.nodes.len()];
    for (id, stay) in stays.iter().enumerate() {
        stay.nodes.iter().for_each(|&node| stay_of[node] = Some(id));
    }
    let stay = |node: NodeId| stay_of[node];
    let enter = |node: NodeId| match stay(node) {
        Some(id) => problem.bounce_ns + problem.overheads.visit / problem.servers[stays[id].server].clock_hz * 1e9,
        None => problem.switch_ns,
    };
    let run = |node: NodeId| match sites[node] {
        Site::Switch => 0.0,
        Site::Server(s) => chain.nodes[node].server.unwrap_or(f64::INFINITY) / problem.servers[s].clock_hz * 1e9,
        Site::SmartNic(n) => {
            chain.nodes[node].smart_nic.unwrap_or(f64::INFINITY) / problem.smart_nics[n].clock_hz * 1e9
        }
    };
    let mut longest = vec![0.0_f64; chain.nodes.len()];
    let mut before: Vec<Vec<NodeId>> = vec![Vec::new(); chain.nodes.len()];
    chain.edges.iter().for_each(|edge| before[edge.to].push(edge.from));
    for node in topological(chain) {
        let mut arrive = if chain.nodes[node].entry > 0.0 { enter(node) } else { 0.0 };
        for &from in &before[node] {
            let crossing = if stay(from) == stay(node) { 0.0 } else { enter(node) };
            arrive = arrive.max(longest[from] + crossing);
        }
        longest[node] = arrive + run(node);
    }
    longest.into_iter().fold(0.0, f64::max)
}

/// The nodes so that every edge goes forward.
#[must_use]
pub fn topological(chain: &Chain) -> Vec<NodeId> {
    let mut waiting: Vec<usize> = vec![0; chain.nodes.len()];
    let mut after: Vec<Vec<NodeId>> = vec![Vec::new(); chain.nodes.len()];
    for edge in &chain.edges {
        waiting[edge.to] += 1;
        after[edge.from].push(edge.to);
    }
    let mut order: Vec<NodeId> = (0..chain.nodes.len()).filter(|&n| waiting[n] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        let node = order[next];
        next += 1;
        for &to in &after[node] {
            waiting[to] -= 1;
            if waiting[to] == 0 {
                order.push(to);
            }
        }
    }
    order
}

/// The link of a subgroup, where `nic` is the ordinary card chosen for it.
#[must_use]
pub fn link(group: &Group, nic: usize) -> Link {
    group.smart_nic.map_or(Link::Nic(nic), Link::SmartNic)
}

/// All links of the rack, with what they carry each way: by server, ordinary cards before SmartNICs.
#[must_use]
pub fn all_links(problem: &Problem) -> Vec<(ServerId, Link, f64)> {
    let mut links = Vec::new();
    for (id, server) in problem.servers.iter().enumerate() {
        links.extend(server.nics_bps.iter().enumerate().map(|(nic, bps)| (id, Link::Nic(nic), *bps)));
        let smart = problem.smart_nics.iter().enumerate().filter(|(_, nic)| nic.server == id);
        links.extend(smart.map(|(nic, about)| (id, Link::SmartNic(nic), about.bps)));
    }
    links
}

/// The part of a chain's packets that no node sees, and that cards carry all the same; 0 with a switch.
#[must_use]
pub fn direct(problem: &Problem, chain: &Chain) -> f64 {
    let entering: f64 = chain.nodes.iter().map(|node| node.entry).sum();
    // Parts of a whole add up to it but for rounding.
    Some(1.0 - entering).filter(|rest| problem.switch.is_none() && *rest > PART).unwrap_or(0.0)
}
