//! Whether a problem is one: a plan's file has the problem that it was made for, and anybody may have written it.

use super::Violation;
use crate::problem::{Chain, Problem};
use crate::rack::SwitchKind;
use crate::relation::Relation;
#[cfg(test)]
use crate::relation::Traffic;

/// More stages, blocks, tables or entries than any switch has.
const MOST: u32 = 1 << 20;
/// More stages or tables than any switch has.
const MOST_STAGES: usize = 1_000;
/// More cores than any server has.
const MOST_CORES: u32 = 1 << 16;

/// What of a problem refers to what is not there, or cannot be.
pub(super) fn wrong(problem: &Problem) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            wrong.push(Violation::Problem { what });
        }
    };
    for chain in &problem.chains {
        let name = &chain.name;
        must(goes_on(chain), format!("chain `{name}` has an edge to what is not there, or goes round in a circle"));
        must(chain.packet_bytes > 0.0, format!("chain `{name}` has packets of {} bytes", chain.packet_bytes));
        for node in &chain.nodes {
            let costs = [node.server, node.smart_nic].into_iter().flatten();
            let figures = costs.chain([node.share, node.entry, node.per_batch]).all(|figure| figure >= 0.0);
            must(figures, format!("chain `{name}`: `{}` has a share or a cost below 0", node.name));
            let tables = node.pisa.iter().flatten();
            let ordered = tables.clone().enumerate().all(|(id, table)| table.after.iter().all(|before| *before < id));
            must(ordered, format!("chain `{name}`: a table of `{}` needs one that does not come before it", node.name));
            let sizes = tables.map(|table| table.key_bits.max(table.action_bits).max(table.entries >> 10));
            let entries = node.openflow.unwrap_or(0) >> 10;
            must(
                sizes.chain([entries]).all(|size| size < MOST),
                format!("chain `{name}`: `{}` is too large", node.name),
            );
        }
    }
    for server in &problem.servers {
        must(server.clock_hz > 0.0, format!("server `{}` has no clock", server.name));
        must(server.cores <= MOST_CORES, format!("server `{}` has {} cores", server.name, server.cores));
    }
    for card in &problem.smart_nics {
        let there = card.server < problem.servers.len() && card.clock_hz > 0.0;
        must(there, format!("SmartNIC `{}` is in no server, or has no clock", card.name));
    }
    for relation in &problem.relations {
        let chains: Vec<usize> = match relation {
            Relation::Priority { order, .. } => order.iter().map(|traffic| traffic.chain).collect(),
            Relation::Ratio { members, .. } => members.iter().map(|member| member.chain).collect(),
            Relation::Last(chains) => chains.clone(),
        };
        let there = chains.iter().all(|chain| *chain < problem.chains.len());
        must(there, format!("`{}` names a chain that is not there", relation.text()));
    }
    let possible = problem.switch.as_ref().is_none_or(|switch| match &switch.kind {
        SwitchKind::Plain { .. } => true,
        SwitchKind::Pisa(stages) => {
            let each = stages.sram_blocks.max(stages.tcam_blocks).max(stages.tables);
            stages.framework_stages <= stages.stages && stages.stages as usize <= MOST_STAGES && each < MOST
        }
        SwitchKind::OpenFlow { tables } => tables.len() <= MOST_STAGES,
    });
    must(possible, "there is no switch of such stages or tables".to_owned());
    wrong
}

/// Whether the edges join nodes of the chain, and every way has an end.
fn goes_on(chain: &Chain) -> bool {
    let count = chain.nodes.len();
    if chain.edges.iter().any(|edge| edge.from >= count || edge.to >= count) {
        return false;
    }
    // What nothing leads to is taken away, again and again: a circle stays.
    let mut left = vec![true; count];
    loop {
        let led_to = |node: usize| chain.edges.iter().any(|edge| edge.to == node && left[edge.from]);
        match (0..count).find(|&node| left[node] && !led_to(node)) {
            Some(free) => left[free] = false,
            None => return left.iter().all(|left| !left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problem;
    use super::*;

    fn whats(change: fn(&mut Problem)) -> Vec<String> {
        let mut problem = problem();
        change(&mut problem);
        wrong(&problem).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_there_is_told() {
        assert!(wrong(&problem()).is_empty());
        let circle = "problem: chain `line` has an edge to what is not there, or goes round in a circle";
        assert_eq!(whats(|problem| problem.chains[0].edges[0].to = 0), [circle]);
        assert_eq!(whats(|problem| problem.chains[0].edges[0].to = 7), [circle]);
        let card = "problem: SmartNIC `a` is in no server, or has no clock";
        assert_eq!(whats(|problem| problem.smart_nics[0].server = 2), [card]);
        let relation = "problem: `priority x > y` names a chain that is not there";
        let order = |problem: &mut Problem| {
            problem.relations =
                vec![Relation::Priority { text: "priority x > y".into(), order: [0, 1].map(Traffic::of).into() }];
        };
        assert_eq!(whats(order), [relation]);
        assert_eq!(whats(|problem| problem.servers[1].clock_hz = 0.0), ["problem: server `right` has no clock"]);
    }
}
