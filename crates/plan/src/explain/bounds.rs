//! What keeps a chain from carrying more: every limit that its planned rate reaches.

use super::View;
use crate::plan::{Bound, CoreLimit};
use catena_plan_model::placement::Subgroup;
use catena_plan_model::problem::ChainId;
use catena_plan_model::relation::{Relation, Traffic};

/// A limit is reached from this part of it on: solvers stop a little short.
const REACHED: f64 = 1.0 - 1e-6;

impl View<'_> {
    pub(super) fn bounds(&self, id: ChainId) -> Vec<Bound> {
        let Some(chain) = self.problem.chains.get(id) else { return Vec::new() };
        let rate = self.rate(id);
        let mut bounds = Vec::new();
        if rate >= chain.t_max_bps * REACHED {
            bounds.push(Bound::TMax);
        }
        if rate >= chain.ingress_bps * REACHED {
            bounds.push(Bound::Port { bps: chain.ingress_bps });
        }
        bounds.extend(self.problem.relations.iter().filter(|r| self.holds_back(r, id, rate)).map(|relation| {
            let text = relation.text().to_owned();
            Bound::Relation { text }
        }));
        for subgroup in self.placement.subgroups.iter().filter(|subgroup| subgroup.chain == id) {
            let Some(plan) = self.subgroup(subgroup, Vec::new()) else { continue };
            if plan.load >= REACHED && rate > 1.0 {
                let limit = self.core_limit(subgroup, plan.replicable);
                // A part of a shared core is made as large as the rate needs: it is always full, and bounds nothing.
                if limit == CoreLimit::Spare && self.problem.servers.get(subgroup.server).is_some_and(|s| s.shared) {
                    continue;
                }
                let server = self.server_name(subgroup.server);
                bounds.push(Bound::Cores { server, functions: plan.functions, cores: subgroup.cores, limit });
            }
        }
        let direct = self.is_direct_full(id, REACHED);
        for &(server, link, bps, carried) in self.carried() {
            if carried >= bps * REACHED && (direct || self.visits(id, server, link) > 0.0) {
                bounds.push(Bound::Link { link: self.link_name(server, link), bps });
            }
        }
        if let Some(switch) = &self.problem.switch {
            let forwarded: f64 = self.layouts.iter().enumerate().map(|(id, l)| l.passes * self.rate(id)).sum();
            if forwarded >= switch.capacity_bps * REACHED {
                bounds.push(Bound::Switch { switch: switch.name.clone(), bps: switch.capacity_bps });
            }
        }
        for (nic, about) in self.problem.smart_nics.iter().enumerate() {
            if self.smart_nic_cycles(id, nic) > 0.0 && self.smart_nic_load(nic) >= about.cycles_hz * REACHED {
                bounds.push(Bound::SmartNic { smart_nic: about.name.clone() });
            }
        }
        bounds
    }

    /// Whether a relation keeps chain `id` from carrying more than `rate`.
    fn holds_back(&self, relation: &Relation, id: ChainId, rate: f64) -> bool {
        let below = |id: ChainId, rate: f64| {
            self.problem.chains.get(id).is_some_and(|chain| rate < chain.limit_bps() * REACHED)
        };
        match relation {
            Relation::Priority { order, .. } => {
                let later = order.iter().position(|other| other.chain == id).is_some_and(|place| place > 0);
                (later || !self.is_named(id)) && below(id, rate)
            }
            Relation::Last(chains) => chains.contains(&id) && below(id, rate),
            Relation::Ratio { members, .. } => {
                // A class that is one of several leaves its chain free to carry more of the others.
                members.iter().any(|m| m.traffic() == Traffic::of(id) && rate < m.cap_bps * REACHED) && below(id, rate)
            }
        }
    }

    /// Whether a `priority` names chain `id`: those that none names come with the last of them.
    fn is_named(&self, id: ChainId) -> bool {
        let orders = self.problem.relations.iter().filter_map(|relation| match relation {
            Relation::Priority { order, .. } => Some(order),
            _ => None,
        });
        orders.into_iter().flatten().any(|traffic| traffic.chain == id)
    }

    /// Why a subgroup has no more cores.
    fn core_limit(&self, subgroup: &Subgroup, replicable: bool) -> CoreLimit {
        if !replicable && subgroup.cores >= REACHED {
            let nodes = self.problem.chains.get(subgroup.chain).map_or(&[][..], |chain| &chain.nodes);
            let single = subgroup.nodes.iter().filter_map(|&n| nodes.get(n)).find(|node| !node.replicable);
            // Without one it is a branch or merge, which the paper's rules keep to one core.
            return CoreLimit::Single(single.map_or("a branch or merge", |node| &node.name).to_owned());
        }
        let here = self.placement.subgroups.iter().filter(|other| other.server == subgroup.server);
        let taken: f64 = here.map(|other| other.cores).sum();
        let (there, shared) =
            self.problem.servers.get(subgroup.server).map_or((0.0, false), |s| (f64::from(s.cores), s.shared));
        let step = if shared { 1e-6 } else { 1.0 };
        if taken + step > there { CoreLimit::AllTaken } else { CoreLimit::Spare }
    }
}
