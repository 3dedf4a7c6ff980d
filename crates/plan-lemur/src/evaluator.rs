//! Evaluation of patterns, which remembers: a search asks for the same chain on the same sites, and for the
//! same nodes on the switch, again and again.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use super::bridges::Order;
use super::cores::{Allocation, Policy, allocate, finish};
use super::pattern::{Pattern, on_switch};
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::{Placement, Site, Subgroup};
use catena_plan_model::problem::{ChainId, Problem};
use catena_plan_model::switch::Feasible;

/// What a pattern is worth in a problem.
pub struct Evaluator<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// Who gets cores.
    pub policy: Policy,
    switch: &'a dyn Feasible,
    layouts: Vec<HashMap<Vec<Site>, Rc<Layout>>>,
    fits: HashMap<Vec<Vec<bool>>, bool>,
    orders: Vec<Option<Rc<Order>>>,
    until: Option<Instant>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator that remembers nothing yet.
    #[must_use]
    pub fn new(problem: &'a Problem, switch: &'a dyn Feasible, policy: Policy) -> Evaluator<'a> {
        let layouts = vec![HashMap::new(); problem.chains.len()];
        let orders = vec![None; problem.chains.len()];
        Evaluator { problem, policy, switch, layouts, fits: HashMap::new(), orders, until: None }
    }

    /// The same for searches that end then, with the best that they have; None: they take the time they need.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Evaluator<'a> {
        Evaluator { until, ..self }
    }

    /// Whether the time is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The time, while a part of a search has less of it.
    pub fn set_until(&mut self, until: Option<Instant>) -> Option<Instant> {
        std::mem::replace(&mut self.until, until)
    }

    /// Which nodes of a chain come before and after each other.
    pub fn order(&mut self, chain: ChainId) -> Rc<Order> {
        let order = &mut self.orders[chain];
        Rc::clone(order.get_or_insert_with(|| Rc::new(Order::of(&self.problem.chains[chain]))))
    }

    /// The layout of a chain on `sites`.
    pub fn layout(&mut self, chain: ChainId, sites: &[Site]) -> Rc<Layout> {
        if let Some(known) = self.layouts[chain].get(sites) {
            return Rc::clone(known);
        }
        let layout = Rc::new(Layout::of(self.problem, &self.problem.chains[chain], sites));
        self.layouts[chain].insert(sites.to_vec(), Rc::clone(&layout));
        layout
    }

    /// Whether the switch holds what the pattern puts on it.
    pub fn fits(&mut self, pattern: &Pattern) -> bool {
        let on_switch = on_switch(pattern);
        if let Some(known) = self.fits.get(&on_switch) {
            return *known;
        }
        let answer = self.switch.verdict(self.problem, &on_switch).fits();
        self.fits.insert(on_switch, answer);
        answer
    }

    /// Cores, links and rates for a pattern, whether the switch holds it or not.
    pub fn allocate(&mut self, pattern: &Pattern) -> Allocation {
        let layouts = self.all(pattern);
        let layouts: Vec<&Layout> = layouts.iter().map(Rc::as_ref).collect();
        allocate(self.problem, &layouts, self.policy)
    }

    fn all(&mut self, pattern: &Pattern) -> Vec<Rc<Layout>> {
        pattern.iter().enumerate().map(|(chain, sites)| self.layout(chain, sites)).collect()
    }

    /// The placement that a pattern and its allocation make.
    pub fn placement(&mut self, pattern: &Pattern, allocation: &Allocation) -> Placement {
        let mut subgroups = Vec::new();
        for (chain, layout) in self.all(pattern).iter().enumerate() {
            for (id, group) in layout.groups.iter().enumerate() {
                subgroups.push(Subgroup {
                    chain,
                    nodes: group.nodes.clone(),
                    server: group.server,
                    cores: allocation.cores[chain][id],
                    link: allocation.links[chain][id],
                });
            }
        }
        Placement { sites: pattern.clone(), subgroups, rates_bps: allocation.rates.clone() }
    }

    /// What a placement is worth here, with its sites and cores as they are and the best rates for them: the
    /// way to see what a plan made with wrong figures does.
    pub fn judge(&mut self, placement: &Placement) -> Allocation {
        let layouts = self.all(&placement.sites);
        let layouts: Vec<&Layout> = layouts.iter().map(Rc::as_ref).collect();
        let cores = |(chain, layout): (usize, &&Layout)| {
            let group = |nodes: &Vec<usize>| {
                placement.subgroups.iter().find(|s| s.chain == chain && s.nodes == *nodes).map_or(0, |s| {
                    let server = &self.problem.servers[s.server];
                    if server.shared { 0 } else { s.cores as u32 }
                })
            };
            layout.groups.iter().map(|g| group(&g.nodes)).collect()
        };
        let cores = layouts.iter().enumerate().map(cores).collect();
        let late = |(chain, layout): (usize, &&Layout)| {
            let late = layout.latency_ns / self.problem.chains[chain].d_max_ns - 1.0 - super::rates::ROUNDING;
            late.max(0.0) + if layout.joined { 0.0 } else { 1.0 }
        };
        let missed = layouts.iter().enumerate().map(late).sum();
        finish(self.problem, &layouts, cores, missed)
    }
}
