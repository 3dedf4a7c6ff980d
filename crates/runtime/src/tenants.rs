//! What tenants' packets cost in a run, and what of it was spent before their chain was known.

use std::fmt;

use catena_policy::{PolicyGraph, Relation, Subject};
use serde::Serialize;

use crate::table::{Table, thousands};

/// The tenants of a run: the chains that its file relates by `cpu`.
#[derive(Clone, Debug, Serialize)]
pub struct Tenants {
    /// By relation, in its order.
    pub accounts: Vec<Row>,
    /// Cycles of all tasks that found packets.
    pub cycles: f64,
    /// Those that are on no tenant's account: of other chains, and of packets that are for none.
    pub others_cycles: f64,
}

/// A tenant's account, in cycles.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its chain.
    pub tenant: String,
    /// Its part of what the tenants of its relation spend, 0 to 1.
    pub part: f64,
    /// What it was given: its part, and what others left.
    pub given_cycles: f64,
    /// What its own tasks took.
    pub own_cycles: f64,
    /// What it took to receive its packets and to find their chain.
    pub receive_cycles: f64,
    /// What it took to put them into its queue, or to drop them there.
    pub queue_cycles: f64,
    /// Packets that came for it.
    pub packets: f64,
    /// Those that its queue had no room for.
    pub dropped: f64,
    /// What it has beyond its part at the end, and will be given; below zero, what it owes.
    pub balance_cycles: f64,
}

impl Row {
    pub(crate) fn new(tenant: &str, part: f64) -> Row {
        Row {
            tenant: tenant.to_owned(),
            part,
            given_cycles: 0.0,
            own_cycles: 0.0,
            receive_cycles: 0.0,
            queue_cycles: 0.0,
            packets: 0.0,
            dropped: 0.0,
            balance_cycles: 0.0,
        }
    }

    /// Return all that its packets cost, in cycles.
    pub fn cost(&self) -> f64 {
        self.own_cycles + self.receive_cycles + self.queue_cycles
    }
}

/// Return the chains of each `cpu` relation with their weights. A class stands for its chain if the chain has no other; relations of
/// other classes make no tenants.
pub(crate) fn shares(graph: &PolicyGraph) -> Vec<Vec<(String, f64)>> {
    let chain = |subject: &Subject| match subject {
        Subject::Chain(chain) => graph.chains.get(*chain as usize),
        Subject::Class(class) => graph.chains.iter().find(|chain| chain.classes == [*class]),
    };
    let member = |(subject, weight): &(Subject, f64)| Some((chain(subject)?.name.clone(), *weight));
    let cpu = graph.relations.iter().filter_map(|relation| match relation {
        Relation::Cpu(members) => members.iter().map(member).collect(),
        _ => None,
    });
    cpu.collect()
}

impl fmt::Display for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["tenant", "part", "given", "cost", "own", "receiving", "queue", "dropped", "credit", "debt"];
        let mut table = Table::new(&heading, &[false, true, true, true, true, true, true, true, true, true]);
        let percent = |cycles: f64| format!("{:.1}%", cycles * 100.0 / self.cycles.max(1.0));
        for row in &self.accounts {
            table.row([
                row.tenant.clone(),
                format!("{:.1}%", row.part * 100.0),
                percent(row.given_cycles),
                percent(row.cost()),
                percent(row.own_cycles),
                percent(row.receive_cycles),
                percent(row.queue_cycles),
                thousands(row.dropped as u64),
                percent(row.balance_cycles.max(0.0)),
                percent((-row.balance_cycles).max(0.0)),
            ]);
        }
        write!(f, "\n{table}")?;
        writeln!(
            f,
            "in parts of all {:.0} million cycles, of which {} are no tenant's",
            self.cycles / 1e6,
            percent(self.others_cycles)
        )
    }
}
