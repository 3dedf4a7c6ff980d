//! Why a function runs where it does, and not on another device: each reason is tried by moving it there.

use super::View;
use crate::plan::Why;
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, ChainId, Node, NodeId};
use catena_plan_model::rack::SwitchKind;
use catena_plan_model::switch::Overflow;

/// Parts of a bounce smaller than this are none.
const NOTHING: f64 = 1e-9;

impl View<'_> {
    /// Why node `node` of chain `id` is where it is.
    pub(super) fn why(&self, id: ChainId, node: NodeId) -> Option<Why> {
        let (chain, sites) = (self.problem.chains.get(id)?, self.placement.sites.get(id)?);
        let (about, site) = (chain.nodes.get(node)?, sites.get(node)?);
        Some(match site {
            Site::Switch if about.server.is_none() && about.smart_nic.is_none() => Why::OnlyThere,
            Site::Switch => Why::NoCore { server_cycles: about.server },
            Site::SmartNic(_) => match (about.server, about.smart_nic) {
                (Some(server_cycles), Some(card_cycles)) => Why::CardForCore { card_cycles, server_cycles },
                _ => Why::OnlyThere,
            },
            Site::Server(_) if about.guarded => Why::Guarded,
            Site::Server(_) => self.not_on_the_switch(id, chain, sites, node, about),
        })
    }

    /// Why a function on a server is not on the switch.
    fn not_on_the_switch(&self, id: ChainId, chain: &Chain, sites: &[Site], node: NodeId, about: &Node) -> Why {
        let there = match self.problem.switch.as_ref().map(|switch| &switch.kind) {
            None => return Why::NoSwitch,
            Some(SwitchKind::Plain { .. }) => return Why::Forwards,
            Some(SwitchKind::Pisa(_)) => about.pisa.is_some(),
            Some(SwitchKind::OpenFlow { .. }) => about.openflow.is_some(),
        };
        if !there {
            return Why::NotOnSwitch;
        }
        let mut set = self.on_switch();
        if let Some(on) = set.get_mut(id).and_then(|nodes| nodes.get_mut(node)) {
            *on = true;
        }
        let verdict = self.case.switch.verdict(self.problem, &set);
        if !verdict.fits() {
            return match verdict.overflows.first() {
                Some(Overflow::TableOrder { .. }) => Why::TableOrder,
                overflow => Why::SwitchFull { with_it: overflow.map(ToString::to_string) },
            };
        }
        let mut moved = sites.to_vec();
        if let Some(site) = moved.get_mut(node) {
            *site = Site::Switch;
        }
        let then = Layout::of(self.problem, chain, &moved);
        let Some(now) = self.layouts.get(id) else { return Why::NoGain };
        if then.latency_ns > chain.d_max_ns {
            return Why::Late { then_ns: then.latency_ns, most_ns: chain.d_max_ns };
        }
        let bounces = |layout: &Layout| layout.stays.iter().map(|stay| stay.visits).sum::<f64>();
        let (before, after) = (bounces(now), bounces(&then));
        if after > before + NOTHING {
            return Why::Bounces { beside: self.beside(id, node), now: before, then: after };
        }
        if then.groups.len() > now.groups.len() {
            return Why::Core { beside: self.beside(id, node) };
        }
        Why::NoGain
    }

    /// The other functions of a node's subgroup.
    fn beside(&self, id: ChainId, node: NodeId) -> Vec<String> {
        let groups = self.layouts.get(id).map_or(&[][..], |layout| &layout.groups);
        let own = groups.iter().find(|group| group.nodes.contains(&node));
        let others = own.map_or(&[][..], |group| &group.nodes).iter().filter(|other| **other != node);
        others.map(|&other| self.node_name(id, other)).collect()
    }
}
