//! From what an operator wrote to what has to be decided: policy graph, rack, catalogue and profile become
//! a [`Problem`].

pub mod guard;
pub mod relations;
pub mod shares;

use catena_policy::{PolicyGraph, Relation, Subject};

use crate::catalogue::{Affinity, Catalogue, Fields, Memory, Platform, Table, Traits};
use crate::problem::{Chain, Edge, Node, Objective, Problem, Replication, Server, SmartNic, Switch};
use crate::profile::{Company, Cost, FULL_BATCH, NETWORK_STEPS, OTHERS, Overheads, Profile};
use crate::rack::{Rack, SwitchKind};
use crate::returns::Returns;

/// What to reckon with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// What may be replicated.
    pub replication: Replication,
    /// What is maximised.
    pub objective: Objective,
}

/// What a chain file asks for and nobody can tell how to plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// The chain, the node and its function.
    pub chain: String,
    /// The node.
    pub node: String,
    /// Its function.
    pub function: String,
    /// What is missing.
    pub what: Missing,
}

/// What is missing of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is not in the catalogue: nobody knows where it can run.
    Traits,
    /// It is not in the profile: nobody knows what it costs.
    Cost,
    /// No device of the rack can run it.
    Device,
    /// `unparsed = drop` is done in front of it, on a server, and it runs on none.
    Guard,
    /// `unparsed = drop` is done on a server, and packets that go this way meet none.
    Bypass,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unknown { chain, node, function, what } = self;
        write!(f, "{chain}: {node}: ")?;
        match what {
            Missing::Traits => {
                write!(f, "{function} is in no profile, and no paper tells where it runs and what it costs")
            }
            Missing::Cost => write!(f, "{function} has no profile: `catena profile {function}` measures it"),
            Missing::Device => write!(f, "no device of the rack can run {function}, as far as profile and papers know"),
            Missing::Guard => write!(
                f,
                "`unparsed = drop` is done on a server in front of {function}, which no server runs: let another function \
                 come first"
            ),
            Missing::Bypass => write!(
                f,
                "`unparsed = drop` is done on a server in front of a function, and some packets meet none: the switch \
                 would pass them on; put a function on their way"
            ),
        }
    }
}

impl std::error::Error for Unknown {}

/// Make the problem: what enters it by a chain's forward traffic. The return direction passes the same functions on the same
/// devices, and its load is not reckoned with apart, but for functions that nothing else passes: those are sized as if as
/// much returns as goes forward.
///
/// # Errors
/// All functions that cannot be planned.
pub fn problem(
    graph: &PolicyGraph,
    rack: &Rack,
    catalogue: &Catalogue,
    profile: &Profile,
    options: Options,
) -> Result<Problem, Vec<Unknown>> {
    let mut unknown = Vec::new();
    let port = ingress(rack);
    let of_all = shares::offered(graph, rack.switch.is_some());
    let mut chains = Vec::new();
    let flows: Vec<shares::Flow> = graph.chains.iter().map(shares::of).collect();
    // Functions that a packet meets on a server that has all chains; what a switch leaves to a core is not known yet.
    let met = flows.iter().zip(&of_all).map(|(flow, part)| part * flow.nodes.iter().sum::<f64>()).sum::<f64>();
    // Where chains are told apart in front of them, that parses the headers.
    let parses_itself = rack.switch.is_none() && graph.chains.len() == 1;
    // Who is promised something, or stands in a relation to others, waits in a queue behind what finds its chain.
    let promised = graph.chains.iter().any(|chain| chain.promise.t_min_bps > 0) || !graph.relations.is_empty();
    let queued = rack.switch.is_none() && graph.chains.len() > 1 && promised;
    for (id, (chain, flow)) in graph.chains.iter().zip(&flows).enumerate() {
        let mut nodes = Vec::new();
        if rack.switch.is_some() && guard::is_bypassed(chain) {
            let (chain, function) = (chain.name.clone(), String::new());
            unknown.push(Unknown { chain, node: "in".to_owned(), function, what: Missing::Bypass });
        }
        let guarded = guard::guarded(chain);
        let waits = queued || (rack.switch.is_none() && chain.promise.t_max_bps.is_some());
        let parts = flow.nodes.iter().zip(&flow.entries).zip(&flow.return_only).zip(guarded);
        for (node, (((&share, &entry), &return_only), guarded)) in chain.nodes.iter().zip(parts) {
            let mut missing = |what| {
                let (chain, function) = (chain.name.clone(), node.function.clone());
                unknown.push(Unknown { chain, node: node.name.clone(), function, what });
            };
            let Some(traits) = catalogue.find_with(&node.function, &node.args) else {
                missing(Missing::Traits);
                continue;
            };
            let size = traits.size.as_ref().map_or(0.0, |size| size.of(&node.args));
            let part = of_all[id] * share;
            let company = Company {
                part,
                // In a queue of its own a chain's packets gather to full batches, which only its own branches divide.
                of_a_batch: if waits { share } else { part },
                functions: if rack.switch.is_none() { met - part } else { OTHERS },
                chains: if waits { graph.chains.len() as f64 - 1.0 } else { 0.0 },
            };
            let batch = FULL_BATCH * company.of_a_batch;
            let cost = profile.functions.get(&node.function);
            if cost.is_none() && traits.runs_on(Platform::Server) {
                missing(Missing::Cost);
                continue;
            }
            let made = self::node(traits, cost, (size, company), rack, options.replication);
            // A node that packets enter the chain by finds their headers not parsed yet.
            let entering = if share > 0.0 { (entry / share).min(1.0) } else { 0.0 };
            let first = if parses_itself { entering } else { 0.0 };
            let parse = first * profile.overheads.parse_in_batches(batch);
            // The guard is a division of packets by what the headers say, once they are parsed.
            let divide = if guarded { entering * profile.overheads.branch } else { 0.0 };
            let server = made.server.map(|cycles| cycles + parse + divide);
            let per_batch = made.per_batch + first * profile.overheads.parse_batch;
            let returns = catalogue.returns(&node.function, &node.args);
            let name = node.name.clone();
            let mut made = Node { name, returns, share, entry, server, per_batch, guarded, return_only, ..made };
            if guarded {
                (made.smart_nic, made.pisa, made.openflow) = (None, None, None);
                if made.server.is_none() {
                    missing(Missing::Guard);
                }
            } else if made.server.is_none()
                && made.smart_nic.is_none()
                && made.pisa.is_none()
                && made.openflow.is_none()
            {
                missing(Missing::Device);
            }
            nodes.push(made);
        }
        chains.push(Chain {
            name: chain.name.clone(),
            t_min_bps: chain.promise.t_min_bps as f64,
            t_max_bps: chain.promise.t_max_bps.map_or(f64::INFINITY, |bps| bps as f64),
            ingress_bps: port,
            d_max_ns: chain.promise.d_max_ns.map_or(f64::INFINITY, |ns| ns as f64),
            weight: weight(graph, id),
            packet_bytes: rack.packet_bytes,
            nodes,
            edges: flow.edges.iter().map(|&(from, to, share)| Edge { from, to, share }).collect(),
        });
    }
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let mut servers = Vec::new();
    let mut smart_nics = Vec::new();
    for (id, server) in rack.servers.iter().enumerate() {
        servers.push(Server {
            name: server.name.clone(),
            cores: (server.sockets * server.cores_per_socket).saturating_sub(server.steering_cores),
            shared: server.shared,
            clock_hz: server.clock_hz,
            nics_bps: server.nics.iter().map(|nic| nic.bps).collect(),
        });
        smart_nics.extend(server.smart_nics.iter().map(|nic| SmartNic {
            name: format!("{}.{}", server.name, nic.name),
            server: id,
            bps: nic.bps,
            cycles_hz: f64::from(nic.cores) * nic.clock_hz,
            clock_hz: nic.clock_hz,
        }));
    }
    let related = relations::of(graph, &chains, &servers);
    let (bounce_ns, switch_ns) = rack.switch.as_ref().map_or((0.0, 0.0), |s| (s.bounce_ns, s.pass_ns));
    Ok(Problem {
        chains,
        servers,
        smart_nics,
        switch: rack.switch.as_ref().map(|s| Switch {
            name: s.name.clone(),
            kind: s.kind.clone(),
            capacity_bps: s.capacity_bps,
            tunnels: s.tunnels,
            addresses: rack.addresses(),
        }),
        overheads: in_front(graph, rack, profile.overheads, &of_all),
        bounce_ns,
        switch_ns,
        replication: options.replication,
        relations: related.relations,
        unseen: related.unseen,
        objective: options.objective,
    })
}

/// Bits per second by which one chain's traffic can come in: a port of the switch, or all cards of the servers.
fn ingress(rack: &Rack) -> f64 {
    match &rack.switch {
        Some(switch) => switch.port_bps,
        None => rack.servers.iter().flat_map(|s| &s.nics).map(|nic| nic.bps).sum(),
    }
}

/// The overheads, of which `classify` becomes what finding the chain of a packet costs, and `visit` has it in it.
/// Where a switch finds it, it costs a server nothing; without one, the headers are parsed and the chains' filters tried in
/// order. Of a single chain the first function parses them.
fn in_front(graph: &PolicyGraph, rack: &Rack, overheads: Overheads, of_all: &[f64]) -> Overheads {
    let several = rack.switch.is_none() && graph.chains.len() > 1;
    let filter = |class: &u32| graph.classes.get(*class as usize).map_or(NETWORK_STEPS, |class| class.filter.steps());
    let own = |chain: &catena_policy::Chain| match &chain.classes[..] {
        [] => overheads.classify,
        classes => classes.iter().map(|class| overheads.tried(filter(class))).sum::<f64>(),
    };
    let mut so_far = 0.0;
    let tried = graph.chains.iter().zip(of_all).map(|(chain, part)| {
        so_far += own(chain);
        part * so_far
    });
    let tries: f64 = if several { tried.sum() } else { 0.0 };
    let parse = if rack.switch.is_none() { overheads.parse.min(overheads.visit) } else { 0.0 };
    let classify = if several { parse + overheads.branch + tries + overheads.choice * bits(of_all) } else { 0.0 };
    Overheads { visit: overheads.visit - parse + classify, classify, ..overheads }
}

/// How many bits it takes to say which part something belongs to (Shannon, "A Mathematical Theory of Communication", §6).
fn bits(parts: &[f64]) -> f64 {
    let all: f64 = parts.iter().sum();
    parts.iter().map(|part| part / all).filter(|part| *part > 0.0).map(|part| -part * part.log2()).sum()
}

/// What a chain weighs by the `share` relations that name it; 1 otherwise.
fn weight(graph: &PolicyGraph, chain: usize) -> f64 {
    let shares = graph.relations.iter().filter_map(|relation| match relation {
        Relation::Share(subjects) => subjects.iter().find(|(s, _)| *s == Subject::Chain(chain as u32)),
        _ => None,
    });
    shares.map(|(_, weight)| *weight).next().unwrap_or(1.0)
}

fn node(
    traits: &Traits,
    cost: Option<&Cost>,
    (size, company): (f64, Company),
    rack: &Rack,
    replication: Replication,
) -> Node {
    let kind = rack.switch.as_ref().map(|s| &s.kind);
    let stateless = traits.memory == Memory::None && traits.affinity == Affinity::Any;
    let grown = |table: &Table| {
        let more = (table.entries_per_unit * size).ceil().clamp(0.0, f64::from(u32::MAX)) as u32;
        Table { entries: table.entries.saturating_add(more), ..table.clone() }
    };
    let held = |function: &str| match kind {
        Some(SwitchKind::OpenFlow { tables }) => tables.iter().any(|t| t.functions.iter().any(|f| f == function)),
        _ => false,
    };
    Node {
        name: String::new(),
        function: traits.name.clone(),
        share: 0.0,
        entry: 0.0,
        server: cost.filter(|_| traits.runs_on(Platform::Server)).map(|c| c.server.worst_in(size, company)),
        per_batch: cost.map_or(0.0, |c| c.server.per_batch),
        batch: (FULL_BATCH * company.of_a_batch).clamp(1.0, FULL_BATCH),
        smart_nic: cost
            .filter(|_| traits.runs_on(Platform::SmartNic) && rack.servers.iter().any(|s| !s.smart_nics.is_empty()))
            .and_then(|c| c.smart_nic.as_ref())
            .map(|cycles| cycles.worst(size)),
        pisa: (traits.runs_on(Platform::Pisa) && matches!(kind, Some(SwitchKind::Pisa(_))))
            .then(|| traits.tables.iter().map(grown).collect()),
        openflow: traits
            .openflow
            .as_ref()
            .filter(|_| traits.runs_on(Platform::OpenFlow) && held(&traits.name))
            .map(|used| used.entries.saturating_add((used.entries_per_unit * size).ceil().max(0.0) as u32)),
        guarded: false,
        return_only: false,
        rewrites: traits.rewrites != Fields::NONE,
        returns: Returns::default(),
        replicable: match replication {
            Replication::Paper => stateless,
            Replication::ByState => traits.affinity != Affinity::Single && traits.memory != Memory::Shared,
        },
    }
}

#[cfg(test)]
mod tests;
