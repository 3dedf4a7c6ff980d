//! Why a function runs where it does, and not on another device: each reason is tried by moving it there.

use super::View;
use crate::plan::short;
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, ChainId, Node, NodeId};
use catena_plan_model::rack::SwitchKind;

/// Parts of a bounce smaller than this are none.
const NOTHING: f64 = 1e-9;

impl View<'_> {
    /// Why node `node` of chain `id` is where it is, in a few words.
    pub(super) fn why(&self, id: ChainId, node: NodeId) -> String {
        let (Some(chain), Some(sites)) = (self.problem.chains.get(id), self.placement.sites.get(id)) else {
            return String::new();
        };
        let (Some(about), Some(site)) = (chain.nodes.get(node), sites.get(node)) else { return String::new() };
        match site {
            Site::Switch if about.server.is_none() && about.smart_nic.is_none() => "runs only there".to_owned(),
            Site::Switch => match about.server {
                Some(cycles) => format!("takes no core there; on a server {cycles:.0} cycles a packet"),
                None => "takes no core there".to_owned(),
            },
            Site::SmartNic(_) => match (about.server, about.smart_nic) {
                (Some(server), Some(card)) => {
                    format!("takes no core there; {card:.0} cycles of the card for {server:.0} of a core")
                }
                _ => "runs only there".to_owned(),
            },
            Site::Server(_) if about.guarded => "`unparsed = drop` is done on a server".to_owned(),
            Site::Server(_) => self.not_on_the_switch(id, chain, sites, node, about),
        }
    }

    /// Why a function on a server is not on the switch.
    fn not_on_the_switch(&self, id: ChainId, chain: &Chain, sites: &[Site], node: NodeId, about: &Node) -> String {
        let there = match self.problem.switch.as_ref().map(|switch| &switch.kind) {
            None => return "there is no switch".to_owned(),
            Some(SwitchKind::Plain { .. }) => return "the switch only forwards".to_owned(),
            Some(SwitchKind::Pisa(_)) => about.pisa.is_some(),
            Some(SwitchKind::OpenFlow { .. }) => about.openflow.is_some(),
        };
        if !there {
            return "cannot run on the switch".to_owned();
        }
        let mut set = self.on_switch();
        if let Some(on) = set.get_mut(id).and_then(|nodes| nodes.get_mut(node)) {
            *on = true;
        }
        let verdict = self.case.switch.verdict(self.problem, &set);
        if !verdict.fits() {
            return match verdict.overflows.first() {
                Some(catena_plan_model::switch::Overflow::TableOrder { .. }) => {
                    "the switch's tables come in another order than the chain".to_owned()
                }
                Some(overflow) => format!("the switch is full: with it, it {overflow}"),
                None => "the switch is full".to_owned(),
            };
        }
        let mut moved = sites.to_vec();
        if let Some(site) = moved.get_mut(node) {
            *site = Site::Switch;
        }
        let then = Layout::of(self.problem, chain, &moved);
        let Some(now) = self.layouts.get(id) else { return String::new() };
        if then.latency_ns > chain.d_max_ns {
            let (then, most) = (then.latency_ns / 1e3, chain.d_max_ns / 1e3);
            return format!("latency: with it on the switch {then:.1} us, promised are {most:.1}");
        }
        let bounces = |layout: &Layout| layout.stays.iter().map(|stay| stay.visits).sum::<f64>();
        let (before, after) = (bounces(now), bounces(&then));
        if after > before + NOTHING {
            let (before, after) = (short(before), short(after));
            return format!(
                "stays beside {}: {after} bounces instead of {before} with it on the switch",
                self.beside(id, node)
            );
        }
        if then.groups.len() > now.groups.len() {
            return format!("stays beside {}: apart they need another core", self.beside(id, node));
        }
        "no gain elsewhere: other limits bind first".to_owned()
    }

    /// The other functions of a node's subgroup.
    fn beside(&self, id: ChainId, node: NodeId) -> String {
        let groups = self.layouts.get(id).map_or(&[][..], |layout| &layout.groups);
        let own = groups.iter().find(|group| group.nodes.contains(&node));
        let others = own.map_or(&[][..], |group| &group.nodes).iter().filter(|other| **other != node);
        let names: Vec<String> = others.map(|&other| self.node_name(id, other)).collect();
        match names.len() {
            0 => "nothing".to_owned(),
            1..=3 => names.join(", "),
            n => format!("{}, {} and {} more", names.first().map_or("", |s| s), names.get(1).map_or("", |s| s), n - 2),
        }
    }
}
