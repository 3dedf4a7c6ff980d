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

/// Return the chains that `cpu` relations relate, directly or by others, with their weights. A class stands for its chain if the
/// chain has no other; relations of other classes make no tenants.
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
    cpu.fold(Vec::new(), united)
}

/// Add a relation to others: with those that name one of its chains it is one, in which that chain has one weight.
fn united(mut all: Vec<Vec<(String, f64)>>, relation: Vec<(String, f64)>) -> Vec<Vec<(String, f64)>> {
    let weight = |group: &[(String, f64)], name: &str| group.iter().find(|(own, _)| own == name).map(|(_, w)| *w);
    let mut joined: Vec<(String, f64)> = Vec::new();
    for (name, weight_here) in relation {
        if weight(&joined, &name).is_none() {
            joined.push((name, weight_here));
        }
    }
    let common = |group: &[(String, f64)], joined: &[(String, f64)]| {
        joined.iter().find_map(|(name, here)| weight(group, name).map(|there| there / here))
    };
    while let Some(at) = all.iter().position(|group| common(group, &joined).is_some()) {
        let mut group = all.remove(at);
        let factor = common(&group, &joined).unwrap_or(1.0);
        // Where both name a chain in other ratios no plan holds them, and the run has no tenants.
        for (name, here) in joined {
            if weight(&group, &name).is_none() {
                group.push((name, here * factor));
            }
        }
        joined = group;
    }
    all.push(joined);
    all
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chain;

    fn shares_of(chains: &str) -> Vec<Vec<(String, f64)>> {
        shares(&Chain::parse("file", chains).expect("a chain file").graph)
    }

    #[test]
    fn tenants_are_the_chains_of_cpu_relations() {
        let file = "class web = \"tcp port 80\"\nclass mail = \"tcp port 25\"\nclass calls = \"udp\"\n\
                    chain x for web, mail { in -> out }\nchain y for calls { in -> out }\nchain z { in -> out }\n";
        let named = |list: &[(&str, f64)]| list.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
        let expected: Vec<Vec<_>> = vec![named(&[("x", 2.0), ("z", 1.0)])];
        assert_eq!(shares_of(&format!("{file}cpu x : z = 2 : 1\n")), expected);
        // All that `y` is for.
        let expected: Vec<Vec<_>> = vec![named(&[("z", 1.0), ("y", 3.0)])];
        assert_eq!(shares_of(&format!("{file}cpu z : calls = 1 : 3\n")), expected);
        // Whoever is related to the same chain is related.
        let expected: Vec<Vec<_>> = vec![named(&[("x", 1.0), ("y", 2.0), ("z", 8.0)])];
        assert_eq!(shares_of(&format!("{file}cpu x : y = 1 : 2\ncpu y : z = 1 : 4\n")), expected);
        let sum = |order: &str| shares_of(&format!("{file}{order}"))[0].iter().map(|(_, weight)| weight).sum::<f64>();
        assert!((sum("cpu y : z = 1 : 4\ncpu x : y = 1 : 2\n") - 11.0 / 2.0).abs() < 1e-9);
        // A part of what `x` is for, and no CPU.
        assert_eq!(shares_of(&format!("{file}cpu web : y = 1 : 1\n")), Vec::<Vec<_>>::new());
        assert_eq!(shares_of(&format!("{file}throughput x : y = 1 : 1\n")), Vec::<Vec<_>>::new());
    }

    #[test]
    fn the_table_is_in_parts_of_all_cycles() {
        let row = Row {
            given_cycles: 5e6,
            own_cycles: 4e6,
            receive_cycles: 1e6,
            queue_cycles: 5e5,
            dropped: 1_234.0,
            balance_cycles: -5e5,
            ..Row::new("x", 0.5)
        };
        let told = Tenants { accounts: vec![row], cycles: 1e7, others_cycles: 4.5e6 }.to_string();
        let lines: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines[3],
            ["x", "50.0%", "50.0%", "55.0%", "40.0%", "10.0%", "5.0%", "1,234", "0.0%", "5.0%"],
            "{told}"
        );
        assert!(told.ends_with("in parts of all 10 million cycles, of which 45.0% are no tenant's\n"), "{told}");
    }
}
