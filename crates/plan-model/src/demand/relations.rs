//! The file's relations between chains, as far as rates of chains can hold them.

use catena_policy::{End, PolicyGraph, Relation, Subject};

use crate::problem::{Chain, Node, Server};
use crate::relation::{self, Member, Traffic};

/// The relations of a file.
pub(super) struct Related {
    /// Those that rates of chains can hold.
    pub relations: Vec<relation::Relation>,
    /// Those that no rate can hold: of cycles that a chain does not take, of classes that no chain serves.
    pub unseen: Vec<String>,
}

/// Read the relations of `graph`, whose chains are `chains`.
pub(super) fn of(graph: &PolicyGraph, chains: &[Chain], servers: &[Server]) -> Related {
    let mut found = Related { relations: Vec::new(), unseen: Vec::new() };
    let ratios = graph.relations.iter().filter(|r| matches!(r, Relation::Cpu(_) | Relation::Throughput(_)));
    let told: Vec<Subject> = ratios.flat_map(subjects).collect();
    for relation in &graph.relations {
        let text = text(graph, relation);
        let Some(about) = subjects(relation).iter().map(|s| traffic(graph, *s)).collect::<Option<Vec<Traffic>>>()
        else {
            found.unseen.push(text);
            continue;
        };
        let member =
            |(of, (_, weight)): (&Traffic, &(Subject, f64))| member(relation, &chains[of.chain], servers, *of, *weight);
        match relation {
            Relation::Priority(_) => found.relations.push(relation::Relation::Priority { text, order: about }),
            // A ratio of cycles or packets says more than a share of what is left.
            Relation::Share(given) if given.iter().any(|(s, _)| told.contains(s)) => {}
            Relation::Cpu(given) | Relation::Throughput(given) | Relation::Share(given) => {
                let mut members: Vec<Member> = about.iter().zip(given).map(member).collect();
                let most = members.iter().map(|m| m.factor).fold(0.0, f64::max);
                members.iter_mut().for_each(|m| m.factor /= most);
                if members.iter().all(|m| m.factor > 0.0) {
                    found.relations.push(relation::Relation::Ratio { text, members });
                } else {
                    found.unseen.push(text);
                }
            }
        }
    }
    let leaves = |chain: &catena_policy::Chain| chain.edges.iter().any(|e| matches!(e.to, End::In | End::Out));
    let named: Vec<usize> =
        graph.relations.iter().flat_map(subjects).filter_map(|subject| Some(traffic(graph, subject)?.chain)).collect();
    let drops = (0..graph.chains.len()).filter(|id| !leaves(&graph.chains[*id]) && !named.contains(id));
    let drops: Vec<usize> = drops.collect();
    if !drops.is_empty() {
        found.relations.push(relation::Relation::Last(drops));
    }
    found
}

fn subjects(relation: &Relation) -> Vec<Subject> {
    match relation {
        Relation::Priority(order) => order.clone(),
        Relation::Cpu(given) | Relation::Throughput(given) | Relation::Share(given) => {
            given.iter().map(|(subject, _)| *subject).collect()
        }
    }
}

/// The traffic that a subject is; a class that is all that its chain is for is the chain. None: no chain serves it.
#[must_use]
pub fn traffic(graph: &PolicyGraph, subject: Subject) -> Option<Traffic> {
    let class = match subject {
        Subject::Chain(chain) => return Some(Traffic::of(chain as usize)),
        Subject::Class(class) => class,
    };
    let chain = graph.chains.iter().position(|chain| chain.classes.contains(&class))?;
    Some(Traffic { chain, class: Some(class).filter(|_| graph.chains[chain].classes.len() > 1) })
}

fn member(relation: &Relation, chain: &Chain, servers: &[Server], of: Traffic, weight: f64) -> Member {
    let per_packet = match relation {
        Relation::Cpu(_) => chain.nodes.iter().map(|node| node.share * node.server.unwrap_or(0.0)).sum::<f64>(),
        _ => 1.0,
    };
    let (factor, from_bps, cap_bps) = match relation {
        // What is left is divided among those that can use it. Nothing is promised to a class.
        Relation::Share(_) => {
            let from_bps = if of.class.is_none() { chain.t_min_bps } else { 0.0 };
            (1.0 / weight, from_bps, usable_bps(chain, servers))
        }
        _ => (per_packet / chain.packet_bits() / weight, 0.0, chain.limit_bps()),
    };
    Member { chain: of.chain, class: of.class, factor, from_bps, cap_bps }
}

/// The most that a chain can use of what is left: what it may carry, and what one core can.
#[must_use]
pub fn usable_bps(chain: &Chain, servers: &[Server]) -> f64 {
    chain.limit_bps().min(alone(chain, servers)).max(chain.t_min_bps)
}

/// What one core carries of a function that may have one only, and only on a server; bits per second.
fn alone(chain: &Chain, servers: &[Server]) -> f64 {
    let clock = servers.iter().map(|server| server.clock_hz).fold(0.0, f64::max);
    let bound =
        |node: &&Node| !node.replicable && node.smart_nic.is_none() && node.pisa.is_none() && node.openflow.is_none();
    let cycles =
        chain.nodes.iter().filter(bound).map(|node| node.share * node.server.unwrap_or(0.0)).fold(0.0, f64::max);
    if cycles > 0.0 { clock / cycles * chain.packet_bits() } else { f64::INFINITY }
}

/// A relation as a file has it.
#[must_use]
pub fn text(graph: &PolicyGraph, relation: &Relation) -> String {
    let name = |subject: &Subject| match *subject {
        Subject::Chain(chain) => graph.chains[chain as usize].name.as_str(),
        Subject::Class(class) => graph.classes[class as usize].name.as_str(),
    };
    let ratio = |word: &str, given: &[(Subject, f64)]| {
        let names: Vec<&str> = given.iter().map(|(subject, _)| name(subject)).collect();
        let weights: Vec<String> = given.iter().map(|(_, weight)| weight.to_string()).collect();
        format!("{word} {} = {}", names.join(" : "), weights.join(" : "))
    };
    match relation {
        Relation::Priority(order) => format!("priority {}", order.iter().map(name).collect::<Vec<_>>().join(" > ")),
        Relation::Cpu(given) => ratio("cpu", given),
        Relation::Throughput(given) => ratio("throughput", given),
        Relation::Share(given) => ratio("share", given),
    }
}
