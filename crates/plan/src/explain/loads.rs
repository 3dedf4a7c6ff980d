//! What links and SmartNICs will carry, by the definitions of [`catena_plan_model::problem`].

use std::collections::HashMap;

use super::View;
use crate::plan::{LinkPlan, SmartNicPlan};
use catena_plan_model::estimate::{Layout, all_links};
use catena_plan_model::placement::{Link, Placement};
use catena_plan_model::problem::{ChainId, Problem, ServerId};

/// What links carry, worked out once: there may be a thousand links, and as many chains.
#[derive(Default)]
pub(super) struct Loads {
    /// By chain, what it puts on each link that it uses, each way, for each bit per second of its rate.
    visits: Vec<Vec<(ServerId, Link, f64)>>,
    /// All links: what they can carry, and will, in bits per second each way.
    carried: Vec<(ServerId, Link, f64, f64)>,
}

impl Loads {
    pub(super) fn of(problem: &Problem, placement: &Placement, layouts: &[Layout]) -> Loads {
        let mut visits: Vec<Vec<(ServerId, Link, f64)>> = layouts.iter().map(|_| Vec::new()).collect();
        let mut put = |id: ChainId, server: ServerId, link: Link, part: f64| {
            let Some(own) = visits.get_mut(id) else { return };
            match own.iter_mut().find(|(on, by, _)| (*on, *by) == (server, link)) {
                Some((_, _, whole)) => *whole += part,
                None => own.push((server, link, part)),
            }
        };
        for (id, layout) in layouts.iter().enumerate() {
            // A stay loads its SmartNIC's link once, however many subgroups belong to it.
            for stay in &layout.stays {
                if let Some(nic) = stay.smart_nic
                    && let Some(about) = problem.smart_nics.get(nic)
                {
                    put(id, about.server, Link::SmartNic(nic), stay.visits * layout.on_link);
                }
            }
        }
        // Other subgroups come and go by whichever card they were given.
        for subgroup in &placement.subgroups {
            let Some(layout) = layouts.get(subgroup.chain) else { continue };
            let group = layout.groups.iter().find(|group| group.nodes == subgroup.nodes);
            if let Some(group) = group.filter(|group| group.smart_nic.is_none()) {
                put(subgroup.chain, subgroup.server, subgroup.link, group.visits * layout.on_link);
            }
        }
        let rate = |id: ChainId| placement.rates_bps.get(id).copied().unwrap_or(0.0);
        let links = all_links(problem);
        let mut used = vec![0.0; links.len()];
        let places: HashMap<(ServerId, Link), usize> = links.iter().enumerate().map(|(n, l)| ((l.0, l.1), n)).collect();
        for (id, own) in visits.iter().enumerate() {
            for (server, link, part) in own {
                if let Some(place) = places.get(&(*server, *link)) {
                    used[*place] += part * rate(id);
                }
            }
        }
        // Packets that no node sees fill links in their order; the last one takes what has no room.
        let mut direct: f64 = layouts.iter().enumerate().map(|(id, l)| l.direct * rate(id)).sum();
        let mut carried = Vec::new();
        for (n, ((server, link, bps), used)) in links.iter().zip(used).enumerate() {
            let part = if n + 1 == links.len() { direct } else { direct.min((bps - used).max(0.0)) };
            direct -= part;
            carried.push((*server, *link, *bps, used + part));
        }
        Loads { visits, carried }
    }
}

impl View<'_> {
    /// What chain `id` puts on a link each way, for each bit per second of its rate.
    pub(super) fn visits(&self, id: ChainId, server: ServerId, link: Link) -> f64 {
        let own = self.loads.visits.get(id).map_or(&[][..], |own| own);
        own.iter().find(|(on, by, _)| (*on, *by) == (server, link)).map_or(0.0, |(_, _, part)| *part)
    }

    /// All links: server, link, what it can carry and will, in bits per second each way.
    pub(super) fn carried(&self) -> &[(ServerId, Link, f64, f64)] {
        &self.loads.carried
    }

    /// Whether packets of chain `id` go by cards without a node that sees them, and no card has room for more.
    pub(super) fn is_direct_full(&self, id: ChainId, reached: f64) -> bool {
        self.layouts.get(id).is_some_and(|layout| layout.direct > 0.0)
            && self.carried().iter().all(|(_, _, bps, carried)| *carried >= bps * reached)
    }

    /// Cycles that a packet of chain `id` takes of a SmartNIC.
    pub(super) fn smart_nic_cycles(&self, id: ChainId, nic: usize) -> f64 {
        let cycles = self.layouts.get(id).map_or(&[][..], |layout| &layout.smart_nic_cycles);
        cycles.iter().filter(|(n, _)| *n == nic).map(|(_, cycles)| cycles).sum()
    }

    /// Cycles per second that functions will take of a SmartNIC.
    pub(super) fn smart_nic_load(&self, nic: usize) -> f64 {
        let chains = self.problem.chains.iter().enumerate();
        chains.map(|(id, chain)| self.rate(id) / chain.packet_bits() * self.smart_nic_cycles(id, nic)).sum()
    }

    pub(super) fn links(&self) -> Vec<LinkPlan> {
        let plan = |&(server, link, bps, used_bps): &(ServerId, Link, f64, f64)| LinkPlan {
            name: self.link_name(server, link),
            server: self.server_name(server),
            smart: matches!(link, Link::SmartNic(_)),
            bps,
            used_bps,
        };
        self.carried().iter().map(plan).collect()
    }

    pub(super) fn smart_nics(&self) -> Vec<SmartNicPlan> {
        let plan = |(id, nic): (usize, &catena_plan_model::problem::SmartNic)| SmartNicPlan {
            name: nic.name.clone(),
            cycles_hz: nic.cycles_hz,
            used_hz: self.smart_nic_load(id),
        };
        self.problem.smart_nics.iter().enumerate().map(plan).collect()
    }
}
