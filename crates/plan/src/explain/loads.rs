//! What links and SmartNICs will carry, by the definitions of [`catena_plan_model::problem`].

use super::View;
use crate::plan::{LinkPlan, SmartNicPlan};
use catena_plan_model::estimate::all_links;
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{ChainId, ServerId};

impl View<'_> {
    /// What chain `id` puts on a link each way, for each bit per second of its rate.
    pub(super) fn visits(&self, id: ChainId, server: ServerId, link: Link) -> f64 {
        let Some(layout) = self.layouts.get(id) else { return 0.0 };
        // A stay loads its SmartNIC's link once, however many subgroups belong to it.
        let beside = |nic: usize| layout.stays.iter().filter(move |stay| stay.smart_nic == Some(nic));
        let stays: f64 = match link {
            Link::SmartNic(nic) => beside(nic).map(|stay| stay.visits).sum(),
            Link::Nic(_) => 0.0,
        };
        // Other subgroups come and go by whichever card they were given.
        let here = self
            .placement
            .subgroups
            .iter()
            .filter(|subgroup| subgroup.chain == id && subgroup.server == server && subgroup.link == link);
        let groups = here.filter_map(|subgroup| layout.groups.iter().find(|group| group.nodes == subgroup.nodes));
        stays + groups.filter(|group| group.smart_nic.is_none()).map(|group| group.visits).sum::<f64>()
    }

    /// Bits per second that a link will carry each way.
    pub(super) fn carried(&self, server: ServerId, link: Link) -> f64 {
        let stays = |(server, link, _): &(ServerId, Link, f64)| -> f64 {
            (0..self.layouts.len()).map(|id| self.visits(id, *server, *link) * self.rate(id)).sum()
        };
        // Packets that no node sees fill links in their order; the last one takes what has no room.
        let mut direct: f64 = self.layouts.iter().enumerate().map(|(id, l)| l.direct * self.rate(id)).sum();
        let links = self.all_links();
        for (id, one) in links.iter().enumerate() {
            let used = stays(one);
            let part = if id + 1 == links.len() { direct } else { direct.min((one.2 - used).max(0.0)) };
            if (one.0, one.1) == (server, link) {
                return used + part;
            }
            direct -= part;
        }
        0.0
    }

    /// Whether packets of chain `id` go by cards without a node that sees them, and no card has room for more.
    pub(super) fn is_direct_full(&self, id: ChainId, reached: f64) -> bool {
        self.layouts.get(id).is_some_and(|layout| layout.direct > 0.0)
            && self.all_links().iter().all(|(server, link, bps)| self.carried(*server, *link) >= bps * reached)
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

    /// All links, with what they can carry: server, link, bits per second.
    pub(super) fn all_links(&self) -> Vec<(ServerId, Link, f64)> {
        all_links(self.problem)
    }

    pub(super) fn links(&self) -> Vec<LinkPlan> {
        let plan = |(server, link, bps)| LinkPlan {
            name: self.link_name(server, link),
            server: self.server_name(server),
            smart: matches!(link, Link::SmartNic(_)),
            bps,
            used_bps: self.carried(server, link),
        };
        self.all_links().into_iter().map(plan).collect()
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
