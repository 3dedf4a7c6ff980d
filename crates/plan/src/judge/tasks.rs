//! What a plan says of the tasks of a server that runs whole chains: a partition of the functions, with a tree that has every
//! task, and rates that keep promises and ratios.

use super::Judge;
use crate::plan::ServerPlan;
use crate::tasks::{Start, TaskPlan};
use catena_plan_model::problem::Chain;
use catena_plan_model::relation::Relation;

/// What a promise may be missed by, relative: a queue costs cycles that no plan of rates knows of.
const ROUNDING: f64 = 1e-2;
/// What a ratio may be missed by, relative: a worker's tree has whole numbers for weights.
const RATIO: f64 = 1e-3;
/// A function that fewer packets reach need be in no task.
const HARDLY: f64 = 1e-3;

impl Judge<'_> {
    pub(super) fn tasks(&mut self) {
        for (id, server) in self.plan.servers.iter().enumerate() {
            let Some(tasks) = &server.tasks else { continue };
            let at = format!("servers[{id}].tasks");
            if self.plan.servers.len() != 1 || self.problem.switch.is_some() {
                self.wrong(at, "tasks are for one server without a switch");
                continue;
            }
            self.partition(&at, server, tasks);
            self.classes(&at, tasks);
            if self.plan.is_kept() {
                self.kept(&at, tasks);
            }
        }
    }

    /// Every task is scheduled once and begins where no other does; every function is in one.
    fn partition(&mut self, at: &str, server: &ServerPlan, plan: &TaskPlan) {
        self.same(format!("{at}.workers"), &plan.workers, &server.cores.max(1));
        let mut scheduled = plan.tree.tasks();
        scheduled.sort_unstable();
        self.same(format!("{at}.tree: tasks"), &scheduled, &(0..plan.tasks.len()).collect());
        for (n, task) in plan.tasks.iter().enumerate() {
            let at = format!("{at}.tasks[{n}]");
            if (task.start == Start::Port) != (n == 0) {
                self.wrong(format!("{at}.start"), "the first task, and no other one, begins at the port");
            }
            if plan.tasks[..n].iter().any(|other| other.start == task.start) {
                self.wrong(format!("{at}.start"), "another task begins there");
            }
            if let Start::Function { chain, node } = &task.start {
                let known = |about: &Chain| about.name == *chain && about.nodes.iter().any(|n| n.name == *node);
                if !self.problem.chains.iter().any(known) {
                    self.wrong(format!("{at}.start"), format!("there is no {chain}/{node}"));
                } else if !task.modules.contains(node) {
                    self.wrong(format!("{at}.modules"), format!("the task begins at {node} and does not run it"));
                }
            }
            if !(0.0..=1.0 + super::TOLERANCE).contains(&task.weight) || task.packets < 0.0 {
                self.wrong(at, format!("weight {}, {} packets a second", task.weight, task.packets));
            }
        }
        let mut names: Vec<&str> = Vec::new();
        for node in self.problem.chains.iter().flat_map(|c| &c.nodes).filter(|node| node.share > HARDLY) {
            names.push(&node.name);
        }
        names.sort_unstable();
        for same in names.chunk_by(|a, b| a == b) {
            let modules = plan.tasks.iter().flat_map(|task| &task.modules);
            let there = modules.filter(|module| *module == same[0]).count();
            if there < same.len() {
                self.wrong(format!("{at}.tasks"), format!("{} is left out", same[0]));
            }
        }
    }

    /// Every chain has packets of its own, and parts of the cycles add up.
    fn classes(&mut self, at: &str, plan: &TaskPlan) {
        for chain in &self.problem.chains {
            if !plan.classes.iter().any(|class| is_of(&class.name, &chain.name)) {
                self.wrong(format!("{at}.classes"), format!("{} is left out", chain.name));
            }
        }
        let cpu: f64 = plan.classes.iter().map(|class| class.cpu).sum();
        if cpu != 0.0 {
            self.close(format!("{at}.classes: cpu"), cpu, 1.0, 1.0);
        }
        if let Some(class) = plan.classes.iter().find(|class| class.packets < 0.0 || class.cpu < 0.0) {
            self.wrong(format!("{at}.classes"), format!("{} has less than nothing", class.name));
        }
    }

    /// What is called kept is kept by the tasks, where the file relates chains.
    fn kept(&mut self, at: &str, plan: &TaskPlan) {
        let problem = self.problem;
        let written = problem.relations.iter().any(|relation| !relation.text().is_empty());
        if !written && problem.within.is_empty() {
            return;
        }
        let sum = |chain: &Chain, figure: fn(&crate::tasks::ClassFigures) -> f64| -> f64 {
            plan.classes.iter().filter(|class| is_of(&class.name, &chain.name)).map(figure).sum()
        };
        for chain in &problem.chains {
            let gets = sum(chain, |class| class.packets) * chain.packet_bytes * 8.0;
            if gets < chain.t_min_bps * (1.0 - ROUNDING) {
                let what = format!("{} gets {gets} bit/s of the {} that are promised", chain.name, chain.t_min_bps);
                self.wrong(format!("{at}.classes"), what);
            }
        }
        for relation in &problem.relations {
            let Relation::Ratio { text, members } = relation else { continue };
            let figure: fn(&crate::tasks::ClassFigures) -> f64 = match text.split(' ').next() {
                Some("throughput") => |class| class.packets,
                Some("cpu") => |class| class.cpu,
                _ => continue,
            };
            let Some((_, weights)) = text.rsplit_once('=') else { continue };
            let weights = weights.split(':').filter_map(|weight| weight.trim().parse::<f64>().ok());
            let parts = members.iter().zip(weights).map(|(m, weight)| sum(&problem.chains[m.chain], figure) / weight);
            let parts: Vec<f64> = parts.collect();
            let most = parts.iter().copied().fold(0.0, f64::max);
            if parts.iter().any(|part| *part < most * (1.0 - RATIO)) {
                self.wrong(format!("{at}.classes"), format!("`{text}` is not kept"));
            }
        }
    }
}

/// Whether a class is a chain's: it has the chain's name, and if the chain has several the class's behind it.
fn is_of(class: &str, chain: &str) -> bool {
    class.split_once('/').map_or(class, |(chain, _)| chain) == chain
}
