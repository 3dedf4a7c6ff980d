//! What a plan says that keeps a chain from carrying more: each limit must be reached.

use super::Judge;
use crate::plan::{Bound, ChainPlan, CoreLimit};
use catena_plan_model::problem::ChainId;

/// From this part of it on, a limit is reached.
const REACHED: f64 = 1.0 - 1e-5;

impl Judge<'_> {
    pub(super) fn bounds(&mut self, id: ChainId, chain: &ChainPlan) {
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
            CoreLimit::AllTaken if there.slack() >= 1.0 => Some(format!("{} cores are free", there.slack())),
            CoreLimit::Spare if there.slack() <= 0.0 => Some("none is free".to_owned()),
            _ => None,
        }
    }
}
