//! What is next to a function that may have one core only.
//!
//! Functions of a chain that lie on one server run to completion, so that one that may have a single core holds all of them to it.
//! In E2 each has cores of its own, wherever it lies. So where a promise needs more than that core, a function goes to another
//! server or to the switch: that which leaves least missing, and of equals that with the least traffic over links. Beyond the
//! paper.

use std::time::Instant;

use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, ChainId, NodeId, Problem};
use catena_plan_model::switch::Feasible;

/// A rate may miss a promise by its rounding.
const ROUNDING: f64 = 1e-9;

/// Functions on their sites.
pub struct Sites<'a> {
    /// Whose.
    pub problem: &'a Problem,
    /// What the switch holds.
    pub switch: &'a dyn Feasible,
    /// Where, by chain and node.
    pub of: Vec<Vec<Site>>,
    /// What each function takes of its server, by chain and node.
    pub needs: Vec<Vec<u32>>,
    /// What each server has left.
    pub free: Vec<u32>,
    /// When to end with what there is; None: when nothing more is missing, or nothing helps.
    pub until: Option<Instant>,
}

/// A function might go there.
#[derive(Clone, Copy)]
struct Move {
    /// What is missing then, and how often a packet goes over links.
    worth: (f64, f64),
    node: NodeId,
    site: Site,
}

impl Sites<'_> {
    /// Take functions apart that miss their chain's promise together.
    pub fn take_apart(&mut self) {
        if self.problem.switch.is_none() {
            // Nothing joins the servers.
            return;
        }
        for (id, chain) in self.problem.chains.iter().enumerate() {
            // Each step leaves less missing; more steps than functions would only move them about.
            for _ in 0..chain.nodes.len() {
                let Some(step) = self.best(id, chain) else { break };
                self.take(id, step);
            }
        }
    }

    /// The move that leaves least missing, if one leaves less than is missing now.
    fn best(&mut self, id: ChainId, chain: &Chain) -> Option<Move> {
        let now = Layout::of(self.problem, chain, &self.of[id]);
        let missing_now = missing(self.problem, chain, &now);
        if missing_now <= ROUNDING {
            return None;
        }
        let mut best: Option<Move> = None;
        for &node in now.groups.iter().filter(|group| !group.replicable).flat_map(|group| &group.nodes) {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let (from, need) = (self.of[id][node], self.needs[id][node]);
            let on_switch = self.problem.switch_runs(&chain.nodes[node]).then_some(Site::Switch);
            let servers = (0..self.free.len()).filter(|server| self.free[*server] >= need).map(Site::Server);
            for site in servers.chain(on_switch).collect::<Vec<_>>() {
                self.of[id][node] = site;
                let then = Layout::of(self.problem, chain, &self.of[id]);
                let visits = then.stays.iter().map(|stay| stay.visits).sum();
                let worth = (missing(self.problem, chain, &then), visits);
                let least = best.map_or((missing_now - ROUNDING, f64::INFINITY), |best| best.worth);
                if worth < least && (site != Site::Switch || self.fit()) {
                    best = Some(Move { worth, node, site });
                }
            }
            self.of[id][node] = from;
        }
        best
    }

    /// Whether the switch holds what is on it.
    fn fit(&self) -> bool {
        let on: Vec<Vec<bool>> =
            self.of.iter().map(|sites| sites.iter().map(|site| *site == Site::Switch).collect()).collect();
        self.switch.verdict(self.problem, &on).fits()
    }

    fn take(&mut self, chain: ChainId, step: Move) {
        let need = self.needs[chain][step.node];
        let from = std::mem::replace(&mut self.of[chain][step.node], step.site);
        if let Site::Server(server) = from {
            self.free[server] += need;
        }
        if let Site::Server(server) = step.site {
            self.free[server] -= need;
        }
    }
}

/// What groups of one core carry less than is promised, relative to it, summed.
fn missing(problem: &Problem, chain: &Chain, layout: &Layout) -> f64 {
    let groups = layout.groups.iter().filter(|group| !group.replicable);
    let missing = groups.map(|group| {
        let carries = group.packets(1.0, problem.servers[group.server].clock_hz) * chain.packet_bits();
        (1.0 - carries / chain.t_min_bps).max(0.0)
    });
    // Of nothing, nothing is missing.
    missing.filter(|missing| missing.is_finite()).sum()
}
