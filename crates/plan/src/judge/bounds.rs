//! What a plan says that keeps a chain from carrying more: each limit must be reached and be one of the chain's, and each that is
//! reached must be said, once, in their order.

use super::Judge;
use crate::plan::{Bound, ChainPlan, CoreLimit};
use catena_plan_model::placement::{Link, Site, Subgroup};
use catena_plan_model::problem::ChainId;
use catena_plan_model::relation::Relation;

/// From this part of it on, a limit is reached.
const REACHED: f64 = 1.0 - 1e-5;
/// From this part on, nobody can take it for one that is not: plans are made with 1 − 10⁻⁶, and sums round.
const SURELY: f64 = 1.0 - 5e-7;

/// Cores that nobody can use: solvers leave a little of what they fill.
const NOTHING: f64 = 5e-7;

/// A limit of a chain: what it is called, and whether it is surely reached.
type Limit = (String, bool);

impl Judge<'_> {
    pub(super) fn bounds(&mut self, id: ChainId, chain: &ChainPlan) {
        let (limits, said) = (self.limits_of(id), chain.bounds.iter().map(called).collect::<Vec<_>>());
        let place = |one: &String| limits.iter().position(|(limit, _)| limit == one);
        let places: Vec<Option<usize>> = said.iter().map(place).collect();
        if places.contains(&None) || !places.is_sorted_by(|a, b| a < b) {
            self.wrong(format!("chains[{id}].bounds"), "they are not the chain's, or not each once in their order");
        }
        if let Some((missing, _)) = limits.iter().find(|(limit, surely)| *surely && !said.contains(limit)) {
            self.wrong(format!("chains[{id}].bounds"), format!("it is kept from carrying more by {missing}, too"));
        }
        for (n, bound) in chain.bounds.iter().enumerate() {
            if let Some(what) = self.untrue(id, chain, bound) {
                self.wrong(format!("chains[{id}].bounds[{n}]"), format!("{bound}: {what}"));
            }
        }
    }

    /// What is not so of a bound.
    fn untrue(&self, id: ChainId, chain: &ChainPlan, bound: &Bound) -> Option<String> {
        let (about, rate) = (&self.problem.chains[id], self.report.chains[id].rate_bps);
        let below = |used: f64, there: f64| (used < there * REACHED).then(|| format!("{used} of {there}"));
        let other = |says: f64, is: f64| (says != is).then(|| format!("it is {is}"));
        let nowhere = || Some("there is none".to_owned());
        match bound {
            Bound::TMax => below(rate, about.t_max_bps),
            Bound::Port { bps } => other(*bps, about.ingress_bps).or_else(|| below(rate, about.ingress_bps)),
            Bound::Relation { text } => {
                let known = self.problem.relations.iter().any(|relation| relation.text() == text);
                if known { None } else { nowhere() }
            }
            Bound::Switch { switch, bps } => {
                let forwarded = self.report.forwarded;
                if self.problem.switch.as_ref().is_none_or(|is| is.name != *switch) {
                    return nowhere();
                }
                other(*bps, forwarded.available).or_else(|| below(forwarded.used, forwarded.available))
            }
            Bound::Link { link, bps } => {
                let Some(place) = self.plan.links.iter().position(|is| is.name == *link) else { return nowhere() };
                let (_, _, carried) = self.report.links.get(place)?;
                other(*bps, carried.available).or_else(|| below(carried.used, carried.available))
            }
            Bound::SmartNic { smart_nic } => {
                let Some(card) = self.problem.smart_nics.iter().position(|is| is.name == *smart_nic) else {
                    return nowhere();
                };
                below(self.report.smart_nics[card].used, self.report.smart_nics[card].available)
            }
            Bound::Cores { server, functions, cores, limit } => {
                self.cores_bound(id, server, functions, *cores, limit, chain)
            }
        }
    }

    fn cores_bound(
        &self,
        id: ChainId,
        server: &str,
        functions: &[String],
        cores: f64,
        limit: &CoreLimit,
        chain: &ChainPlan,
    ) -> Option<String> {
        let groups = self.placement.subgroups.iter().enumerate().filter(|(_, group)| group.chain == id);
        let names = |nodes: &[usize]| -> Vec<&str> {
            nodes.iter().map(|&node| self.problem.chains[id].nodes[node].name.as_str()).collect()
        };
        let mut mine = groups.filter(|(_, group)| self.problem.servers[group.server].name == server);
        let Some((n, group)) = mine.find(|(_, group)| names(&group.nodes).iter().eq(functions)) else {
            return Some(format!("{} has no such group of functions there", chain.name));
        };
        if cores != group.cores {
            return Some(format!("it has {}", group.cores));
        }
        let cycles = self.report.subgroups[n];
        if cycles.used < cycles.available * REACHED {
            return Some(format!("its cores have {} of {} cycles to do", cycles.used, cycles.available));
        }
        let there = self.report.cores[group.server];
        match limit {
            CoreLimit::Single(_) if self.report.replicable[n] => Some("it may have several".to_owned()),
            CoreLimit::Single(function) => {
                let mut nodes = group.nodes.iter().map(|node| &self.problem.chains[id].nodes[*node]);
                let single = nodes.find(|node| !node.replicable).map_or("a branch or merge", |node| &node.name);
                (function != single).then(|| format!("it is because of {single}"))
            }
            _ if !self.report.replicable[n] && group.cores >= 1.0 => Some("it may have one only".to_owned()),
            CoreLimit::AllTaken if there.slack() >= 1.0 => Some(format!("{} cores are free", there.slack())),
            CoreLimit::Spare if there.slack() <= 0.0 => Some("none is free".to_owned()),
            _ => None,
        }
    }

    /// All limits of a chain, in the order in which they are said.
    fn limits_of(&self, id: ChainId) -> Vec<Limit> {
        let (problem, about, rate) = (self.problem, &self.problem.chains[id], self.report.chains[id].rate_bps);
        let full = |used: f64, there: f64| used >= there * SURELY;
        let mut limits = vec![
            (called(&Bound::TMax), full(rate, about.t_max_bps)),
            (called(&Bound::Port { bps: 0.0 }), full(rate, about.ingress_bps)),
        ];
        let below = rate < about.limit_bps() * (1.0 - 1e-4);
        for relation in &problem.relations {
            let (of, surely) = self.is_held_by(relation, id, rate);
            if of {
                limits.push((called(&Bound::Relation { text: relation.text().to_owned() }), surely && below));
            }
        }
        let own = |group: &&Subgroup| group.chain == id;
        for (n, group) in self.placement.subgroups.iter().enumerate().filter(|(_, group)| own(group)) {
            let server = &problem.servers[group.server];
            let functions = group.nodes.iter().map(|node| about.nodes[*node].name.clone()).collect();
            let bound = Bound::Cores { server: server.name.clone(), functions, cores: 0.0, limit: CoreLimit::Spare };
            let cycles = self.report.subgroups[n];
            // A part of a shared core is as large as its rate needs, and could be larger: but where the server has no more, or the functions may
            // have no second core.
            let one = !self.report.replicable[n] && group.cores >= 1.0;
            let ends = !server.shared || one || self.report.cores[group.server].slack() <= NOTHING;
            limits.push((called(&bound), ends && rate > 2.0 && full(cycles.used, cycles.available)));
        }
        let direct: f64 = about.nodes.iter().fold(1.0, |rest, node| rest - node.entry);
        for ((server, link, carried), says) in self.report.links.iter().zip(&self.plan.links) {
            let groups = self.placement.subgroups.iter().filter(own);
            let uses = groups.clone().any(|group| (group.server, group.link) == (*server, *link))
                || self.placement.sites[id]
                    .iter()
                    .any(|site| matches!(site, Site::SmartNic(card) if Link::SmartNic(*card) == *link));
            if uses || direct > 1e-10 {
                let bound = Bound::Link { link: says.name.clone(), bps: 0.0 };
                limits.push((called(&bound), uses && full(carried.used, carried.available)));
            }
        }
        if let Some(switch) = &problem.switch {
            let forwarded = self.report.forwarded;
            let bound = Bound::Switch { switch: switch.name.clone(), bps: 0.0 };
            limits.push((called(&bound), full(forwarded.used, forwarded.available)));
        }
        for (n, (card, load)) in problem.smart_nics.iter().zip(&self.report.smart_nics).enumerate() {
            if self.placement.sites[id].contains(&Site::SmartNic(n)) {
                limits
                    .push((called(&Bound::SmartNic { smart_nic: card.name.clone() }), full(load.used, load.available)));
            }
        }
        limits
    }

    /// Whether a relation can keep a chain from carrying more, and whether it surely does where the chain may have more.
    fn is_held_by(&self, relation: &Relation, id: ChainId, rate: f64) -> (bool, bool) {
        match relation {
            Relation::Priority { order, .. } => {
                let named = self.problem.relations.iter().any(|relation| match relation {
                    Relation::Priority { order, .. } => order.iter().any(|traffic| traffic.chain == id),
                    _ => false,
                });
                let first = order.iter().find(|traffic| traffic.chain == id);
                let later = first.is_some_and(|own| *own != order[0]) || !named;
                (later, later)
            }
            Relation::Last(chains) => (chains.contains(&id), chains.contains(&id)),
            Relation::Ratio { members, .. } => {
                let own = members.iter().find(|member| member.chain == id && member.class.is_none());
                (own.is_some(), own.is_some_and(|own| rate < own.cap_bps * (1.0 - 1e-4)))
            }
        }
    }
}

/// What a limit is called: what it is of, without figures.
fn called(bound: &Bound) -> String {
    match bound {
        Bound::TMax => "its upper end".to_owned(),
        Bound::Port { .. } => "its port".to_owned(),
        Bound::Cores { server, functions, .. } => format!("the cores of {} on {server}", functions.join(" -> ")),
        Bound::Link { link, .. } => format!("link {link}"),
        Bound::Relation { text } => format!("relation `{text}`"),
        Bound::Switch { switch, .. } => format!("switch {switch}"),
        Bound::SmartNic { smart_nic } => format!("SmartNIC {smart_nic}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::whole_tests::{drawn, two};
    use crate::plan::{Bound, Plan};

    #[test]
    fn what_keeps_a_chain_on_full_cores_from_more_is_not_left_out() {
        let (mut cores, mut others) = (0, 0);
        let wholes = (0..40).map(|seed| drawn(seed).planned(false));
        let twos = [["", ""], ["promise 1Gbps..", "promise 2Gbps.."], ["promise 3Gbps..", ""]]
            .map(|promises| two(promises, ""));
        for plan in wholes.chain(twos).filter(|plan| plan.placement.is_some()) {
            let honest = serde_json::to_value(&plan).expect("JSON");
            for (id, chain) in plan.chains.iter().enumerate().filter(|(_, chain)| !chain.bounds.is_empty()) {
                let mut lying = honest.clone();
                lying["chains"][id]["bounds"] = json!([]);
                let why = Plan::from_json(&lying.to_string()).err().unwrap_or_default();
                let told = why.contains(&format!("chains[{id}].bounds: it is kept from carrying more by "));
                assert!(told, "{:?} of {}, which carries {}: {why}", chain.bounds, chain.name, chain.rate_bps);
                match chain.bounds[..] {
                    [Bound::Cores { .. }] => cores += 1,
                    _ => others += 1,
                }
            }
        }
        assert!(cores > 2 && others > 5, "{cores} by cores alone, {others} by others");
    }
}
