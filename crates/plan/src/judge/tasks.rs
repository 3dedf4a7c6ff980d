//! What a plan says of the tasks of a server that runs whole chains: a partition of the functions, with cycles that the workers
//! have and rates that keep promises and ratios. [`super::tree`] judges who runs when.

use std::collections::{HashMap, HashSet};

use super::Judge;
use super::verdict::ROUNDING;
use crate::plan::ServerPlan;
use crate::tasks::{ClassFigures, Start, TaskPlan};
use catena_plan_alpine::graph::CLASSIFY;
use catena_plan_alpine::pipeline::DROPPED;
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{Chain, ChainId, Edge, Problem};
use catena_plan_model::relation::Relation;

/// What a ratio may be missed by, relative: a worker's tree has whole numbers for weights.
const RATIO: f64 = 1e-3;
/// A function that fewer packets reach need be in no task.
const HARDLY: f64 = 1e-3;
/// What figures that solvers found may be off by, relative.
const SOLVED: f64 = 1e-3;

/// A function: its chain, and its index there.
type Place = (ChainId, usize);

/// The tasks by indices instead of names.
pub(super) struct Seen {
    /// By task: where it begins, if that is not at the port. A class begins where it enters its chain.
    pub begins: Vec<Option<Place>>,
    /// By task: its functions; None: there is no such one.
    modules: Vec<Vec<Option<Place>>>,
    /// By chain: the tasks that begin in it.
    pub of: Vec<Vec<usize>>,
}

impl Seen {
    fn of(problem: &Problem, plan: &TaskPlan) -> Seen {
        let mut places: HashMap<String, Place> = HashMap::new();
        for (id, chain) in problem.chains.iter().enumerate() {
            for (node, about) in chain.nodes.iter().enumerate() {
                places.insert(format!("{}/{}", chain.name, about.name), (id, node));
            }
        }
        let place = |name: &String| places.get(name).copied();
        let mut seen = Seen { begins: Vec::new(), modules: Vec::new(), of: vec![Vec::new(); problem.chains.len()] };
        for (n, task) in plan.tasks.iter().enumerate() {
            let modules: Vec<Option<Place>> = task.modules.iter().filter(|m| m.contains('/')).map(place).collect();
            let begins = match &task.start {
                Start::Port => None,
                Start::Function { chain, node } => place(&format!("{chain}/{node}")),
                Start::Class(_) => modules.first().copied().flatten(),
            };
            if let Some((chain, _)) = begins {
                seen.of[chain].push(n);
            }
            seen.begins.push(begins);
            seen.modules.push(modules);
        }
        seen
    }

    fn runs(&self, task: usize, place: Place) -> bool {
        self.modules[task].contains(&Some(place))
    }
}

impl Judge<'_> {
    pub(super) fn tasks(&mut self) {
        for (id, server) in self.plan.servers.iter().enumerate() {
            let Some(tasks) = &server.tasks else { continue };
            let at = format!("servers[{id}].tasks");
            if let Some(why) = self.no_tasks(server) {
                self.wrong(at, format!("there are no such tasks: {why}"));
                continue;
            }
            let before = self.faults.len();
            let seen = Seen::of(self.problem, tasks);
            self.partition(&at, server, tasks, &seen);
            self.classes(&at, tasks);
            if self.faults.len() > before {
                continue;
            }
            self.cycles(&at, tasks, &seen);
            self.tree(&at, tasks, &seen);
            self.bounds_of_rates(&at, tasks);
            if self.plan.is_kept() {
                self.kept(&at, tasks);
            }
        }
    }

    /// Why this server's workers cannot run all chains alike; None: they can.
    pub(super) fn no_tasks(&self, server: &ServerPlan) -> Option<&'static str> {
        let problem = self.problem;
        if self.plan.servers.len() != 1 || problem.switch.is_some() {
            return Some("they are for one server without a switch");
        }
        if !self.plan.smart_nics.is_empty() && self.report.smart_nics.iter().any(|card| card.used > 0.0) {
            return Some("functions run on a SmartNIC");
        }
        if server.cores > 1 && self.report.replicable.contains(&false) {
            return Some("not every chain may run on several cores");
        }
        (!problem.servers[0].shared && self.placement.subgroups.len() > 1).then_some("its cores are not shared")
    }

    /// Every task begins where no other does; every function is in one.
    fn partition(&mut self, at: &str, server: &ServerPlan, plan: &TaskPlan, seen: &Seen) {
        self.same(format!("{at}.workers"), &plan.workers, &server.cores.max(1));
        let mut starts: Vec<&Start> = Vec::new();
        for (n, task) in plan.tasks.iter().enumerate() {
            let at = format!("{at}.tasks[{n}]");
            if (task.start == Start::Port) != (n == 0) {
                self.wrong(format!("{at}.start"), "the first task, and no other one, begins at the port");
            }
            starts.push(&task.start);
            match (&task.start, seen.begins[n]) {
                (Start::Function { chain, node }, None) => {
                    self.wrong(format!("{at}.start"), format!("there is no {chain}/{node}"));
                }
                (Start::Function { node, .. }, Some(place)) if !seen.runs(n, place) => {
                    self.wrong(format!("{at}.modules"), format!("the task begins at {node} and does not run it"));
                }
                (Start::Class(class), None) => {
                    self.wrong(format!("{at}.modules"), format!("the task of {class} runs no function"));
                }
                _ => {}
            }
            let figures = [task.weight, task.packets, task.cycles];
            if figures.iter().any(|figure| !(*figure >= 0.0 && figure.is_finite())) || task.weight > 1.0 + RATIO {
                self.wrong(&at, format!("weight {}, {} packets, {} cycles", task.weight, task.packets, task.cycles));
            }
            let own: Vec<&str> = task.modules.iter().filter(|m| !m.contains('/')).map(String::as_str).collect();
            let front: &[&str] = if n == 0 { &["port", CLASSIFY] } else { &[] };
            self.same(format!("{at}.modules: in front of chains"), &own, &front.to_vec());
            if seen.modules[n].contains(&None) {
                self.wrong(format!("{at}.modules"), "not all of them are functions of chains");
            }
            let chain = |place: &Option<Place>| place.map(|(chain, _)| chain);
            if n > 0 && seen.modules[n].windows(2).any(|pair| chain(&pair[0]) != chain(&pair[1])) {
                self.wrong(format!("{at}.modules"), "they are of several chains, and a queue holds packets of one");
            }
        }
        starts.sort_unstable();
        if let Some(twice) = starts.windows(2).find(|pair| pair[0] == pair[1]) {
            self.wrong(format!("{at}.tasks"), format!("several begin at {:?}", twice[0]));
        }
        if starts.is_empty() {
            self.wrong(format!("{at}.tasks"), "there are none");
        }
        self.is_whole(at, plan, seen);
        let run: HashSet<Place> = seen.modules.iter().flatten().flatten().copied().collect();
        for (id, chain) in self.problem.chains.iter().enumerate() {
            for (n, node) in chain.nodes.iter().enumerate().filter(|(_, node)| node.share > HARDLY) {
                if !run.contains(&(id, n)) {
                    self.wrong(format!("{at}.tasks"), format!("{}/{} is left out", chain.name, node.name));
                }
            }
        }
    }

    /// What stands behind a function of a task is in it too, but for where another task begins. What only the return direction
    /// passes is at the end of ways.
    fn is_whole(&mut self, at: &str, plan: &TaskPlan, seen: &Seen) {
        for (n, task) in plan.tasks.iter().enumerate() {
            for (id, node) in seen.modules[n].iter().flatten().copied() {
                let chain = &self.problem.chains[id];
                let begins = |to: usize| {
                    chain.nodes[to].entry <= 0.0
                        && seen.of[id].iter().any(|other| seen.begins[*other] == Some((id, to)))
                };
                let behind = forward(chain).filter(|edge| edge.from == node && edge.share > HARDLY);
                for edge in behind.filter(|edge| !seen.runs(n, (id, edge.to)) && !begins(edge.to)) {
                    let what = format!("{:?} runs on into {}/{}", task.start, chain.name, chain.nodes[edge.to].name);
                    self.wrong(format!("{at}.tasks[{n}].modules"), what);
                }
            }
        }
    }

    /// Every chain has packets of its own, and parts of the cycles add up.
    fn classes(&mut self, at: &str, plan: &TaskPlan) {
        let known = |class: &ClassFigures| self.problem.chains.iter().any(|chain| is_of(&class.name, &chain.name));
        if let Some(class) = plan.classes.iter().find(|class| !known(class)) {
            self.wrong(format!("{at}.classes"), format!("{} is of no chain", class.name));
        }
        let mut names = HashSet::new();
        if let Some(class) = plan.classes.iter().find(|class| !names.insert(&class.name)) {
            self.wrong(format!("{at}.classes"), format!("{} comes twice", class.name));
        }
        for chain in &self.problem.chains {
            if !plan.classes.iter().any(|class| is_of(&class.name, &chain.name)) {
                self.wrong(format!("{at}.classes"), format!("{} is left out", chain.name));
            }
        }
        let cpu: f64 = plan.classes.iter().map(|class| class.cpu).sum();
        if cpu != 0.0 {
            self.close(format!("{at}.classes: cpu"), cpu, 1.0, 1.0);
        }
        let some = |figure: f64| figure >= 0.0 && figure.is_finite();
        if let Some(class) = plan.classes.iter().find(|class| !some(class.packets) || !some(class.cpu)) {
            self.wrong(format!("{at}.classes"), format!("{} has {} packets, {}", class.name, class.packets, class.cpu));
        }
    }

    /// What tasks take is what their functions cost, and a worker has it.
    fn cycles(&mut self, at: &str, plan: &TaskPlan, seen: &Seen) {
        let overheads = self.problem.overheads;
        let read = overheads.visit - overheads.classify;
        self.close(format!("{at}.port_cycles"), plan.port_cycles, read, overheads.visit);
        self.close(format!("{at}.classify_cycles"), plan.classify_cycles, overheads.classify, overheads.visit);
        self.close(format!("{at}.queue_cycles"), plan.queue_cycles, overheads.queue, overheads.visit);
        for (n, task) in plan.tasks.iter().enumerate() {
            let (least, most) = match seen.begins[n] {
                Some(begins) => {
                    let (low, high) = self.behind(seen, n, begins);
                    let answers = answers(&self.problem.chains[begins.0]);
                    // Where packets wait again, those that end here are answered here, and others further down.
                    let least =
                        if inner(&self.problem.chains[begins.0], plan, seen, begins.0) { 0.0 } else { answers.0 };
                    (task.packets * (low + least), task.packets * (high + answers.1))
                }
                None => self.joined(plan, seen),
            };
            // What a queue takes is divided between the task in front of it and the one behind; a task may have one of each.
            let (least, most) =
                (least * (1.0 - SOLVED) - 1.0, (most + 2.0 * task.packets * overheads.queue) * (1.0 + SOLVED) + 1.0);
            if !(least..=most).contains(&task.cycles) {
                let what = format!("{} cycles a second, and its functions take {least} to {most}", task.cycles);
                self.wrong(format!("{at}.tasks[{n}].cycles"), what);
            }
        }
        self.taken_in(at, plan, seen);
        let all: f64 = plan.tasks.iter().map(|task| task.cycles).sum();
        let has = self.problem.servers[0].clock_hz;
        if all > has * (1.0 + ROUNDING) {
            self.wrong(format!("{at}.tasks"), format!("they take {all} cycles a second, and a worker has {has}"));
        }
    }

    /// What classes of a chain get is what the tasks take in by which it is entered, where no queue stands further down.
    fn taken_in(&mut self, at: &str, plan: &TaskPlan, seen: &Seen) {
        for (id, chain) in self.problem.chains.iter().enumerate() {
            let enters = |task: &usize| match (&plan.tasks[*task].start, seen.begins[*task]) {
                (Start::Function { .. }, Some((_, node))) => chain.nodes[node].entry > 0.0,
                _ => true,
            };
            let waits = |class: &ClassFigures| waits(self, plan, seen, id, &class.name);
            // What is dropped where it enters its chain comes to no task.
            let comes = |class: &&ClassFigures| !class.name.ends_with(DROPPED);
            let own = || plan.classes.iter().filter(|class| is_of(&class.name, &chain.name)).filter(comes);
            if seen.of[id].is_empty()
                || !seen.of[id].iter().all(enters)
                || !own().all(waits)
                || self.waits_in_part(plan, seen, id)
            {
                continue;
            }
            let packets: f64 = seen.of[id].iter().map(|task| plan.tasks[*task].packets).sum();
            let says: f64 = own().map(|class| class.packets).sum();
            let is = packets * f64::from(plan.workers);
            if (says - is).abs() > SOLVED * is + 1.0 {
                self.wrong(format!("{at}.classes"), format!("{} gets {says}, its tasks take in {is}", chain.name));
            }
        }
    }

    /// Whether packets wait at some of the functions by which they enter a chain, and not at others: then nobody says how many of a
    /// class come by which.
    fn waits_in_part(&self, plan: &TaskPlan, seen: &Seen, id: ChainId) -> bool {
        if seen.of[id].iter().any(|task| matches!(plan.tasks[*task].start, Start::Class(_))) {
            return false;
        }
        let begins = |node: usize| seen.of[id].iter().any(|task| seen.begins[*task] == Some((id, node)));
        let nodes = self.problem.chains[id].nodes.iter().enumerate();
        let entries: Vec<bool> = nodes
            .filter(|(_, about)| about.entry > HARDLY && !about.return_only)
            .map(|(node, _)| begins(node))
            .collect();
        entries.contains(&true) && entries.contains(&false)
    }

    /// Cycles per second of reading packets and of the chains that run to completion behind that, at least and at most.
    fn joined(&self, plan: &TaskPlan, seen: &Seen) -> (f64, f64) {
        let read = plan.tasks[0].packets * self.problem.overheads.visit;
        let (mut least, mut most) = (read, read);
        for (id, chain) in self.problem.chains.iter().enumerate() {
            let joins = |class: &&ClassFigures| !waits(self, plan, seen, id, &class.name);
            let own = || plan.classes.iter().filter(|class| is_of(&class.name, &chain.name));
            let served = own().filter(joins).map(|class| class.packets).sum::<f64>() / f64::from(plan.workers);
            // Behind a queue further down less leaves the chain than enters it.
            let inner = inner(chain, plan, seen, id);
            if self.waits_in_part(plan, seen, id) {
                most = f64::INFINITY;
                continue;
            }
            let (low, high) = answers(chain);
            // What is dropped where it enters its chain is answered at once.
            let here = |class: &&ClassFigures| class.name.ends_with(DROPPED) || joins(class);
            let answered = own().filter(here).map(|class| class.packets).sum::<f64>() / f64::from(plan.workers);
            least += if inner { 0.0 } else { answered * low };
            most += if inner && high > 0.0 { f64::INFINITY } else { answered * high };
            let entries = chain.nodes.iter().enumerate().filter(|(_, node)| node.entry > 0.0 && !node.return_only);
            for (node, about) in entries {
                let (low, high) = self.behind(seen, 0, (id, node));
                least += served * about.entry * low;
                most += if inner { f64::INFINITY } else { served * about.entry * high };
            }
        }
        (least, most)
    }

    /// Cycles per packet that enters a task at a function, at least (in full batches) and at most (each packet alone).
    fn behind(&self, seen: &Seen, task: usize, (id, enters): Place) -> (f64, f64) {
        let chain = &self.problem.chains[id];
        let runs: Vec<bool> = (0..chain.nodes.len()).map(|node| seen.runs(task, (id, node))).collect();
        if !runs[enters] {
            return (0.0, 0.0);
        }
        // Where packets enter the chain only those that do wait; what comes there from other functions runs on.
        let begins = seen.of[id].iter().filter_map(|other| seen.begins[*other]).map(|place| place.1);
        let begins: Vec<usize> = begins.filter(|node| chain.nodes[*node].entry <= 0.0).collect();
        let mut part = vec![0.0; chain.nodes.len()];
        part[enters] = 1.0;
        // Edges make no circle: so many rounds are enough.
        for _ in 0..chain.nodes.len() {
            let mut again = vec![0.0; chain.nodes.len()];
            again[enters] = 1.0;
            for edge in forward(chain).filter(|edge| runs[edge.to] && !begins.contains(&edge.to)) {
                again[edge.to] += part[edge.from] * edge.share / chain.nodes[edge.from].share;
            }
            if again == part {
                break;
            }
            part = again;
        }
        let (mut low, mut high) = (0.0, 0.0);
        for (node, part) in chain.nodes.iter().zip(part) {
            let cycles = node.server.unwrap_or(0.0);
            low += part * (cycles - node.per_batch / node.batch.max(1.0)).max(0.0);
            high += part * (cycles + node.per_batch);
        }
        (low, high)
    }

    /// No chain has more than it may, and no card brings more than it can.
    fn bounds_of_rates(&mut self, at: &str, plan: &TaskPlan) {
        let problem = self.problem;
        let rate = |chain: &Chain| sum(plan, chain, |class| class.packets) * chain.packet_bytes * 8.0;
        for chain in &problem.chains {
            let most = chain.t_max_bps.min(chain.ingress_bps);
            if rate(chain) > most * (1.0 + SOLVED) {
                let what = format!("{} has {} bit/s, and may have {most}", chain.name, rate(chain));
                self.wrong(format!("{at}.classes"), what);
            }
        }
        let cards: f64 = problem.servers[0].nics_bps.iter().sum();
        let brought: f64 = problem.chains.iter().map(rate).sum();
        if brought > cards * (1.0 + SOLVED) && problem.chains.iter().any(|chain| chain.nodes.is_empty()) {
            self.wrong(format!("{at}.classes"), format!("{brought} bit/s come by cards that bring {cards}"));
        }
        for (nic, bps) in problem.servers[0].nics_bps.iter().enumerate() {
            let by: Vec<ChainId> =
                self.placement.subgroups.iter().filter(|g| g.link == Link::Nic(nic)).map(|g| g.chain).collect();
            let brought: f64 =
                problem.chains.iter().enumerate().filter(|(id, _)| by.contains(id)).map(|(_, c)| rate(c)).sum();
            if brought > bps * (1.0 + SOLVED) {
                self.wrong(format!("{at}.classes"), format!("{brought} bit/s come by a card that brings {bps}"));
            }
        }
    }

    /// What is called kept is kept by the tasks, where the file relates chains.
    fn kept(&mut self, at: &str, plan: &TaskPlan) {
        let problem = self.problem;
        let written = problem.relations.iter().any(|relation| !relation.text().is_empty());
        if !written && problem.unseen.is_empty() {
            return;
        }
        if let Some((chain, gets)) = self.late(plan) {
            let what = format!("{} gets {gets} bit/s of the {} that are promised", chain.name, chain.t_min_bps);
            self.wrong(format!("{at}.classes"), what);
        }
        for relation in &problem.relations {
            let Relation::Ratio { text, members } = relation else { continue };
            let figure: fn(&ClassFigures) -> f64 = match text.split(' ').next() {
                Some("throughput") => |class| class.packets,
                Some("cpu") => |class| class.cpu,
                _ => continue,
            };
            let Some((names, weights)) = text.split_once(' ').and_then(|(_, rest)| rest.rsplit_once('=')) else {
                continue;
            };
            let weights = weights.split(':').filter_map(|weight| weight.trim().parse::<f64>().ok());
            let parts: Vec<(f64, &Chain)> = members
                .iter()
                .zip(names.split(':').zip(weights))
                .map(|(member, (name, weight))| {
                    let chain = &problem.chains[member.chain];
                    let class = member.class.map(|_| format!("{}/{}", chain.name, name.trim()));
                    let has = match class {
                        Some(class) => plan.classes.iter().filter(|own| is_way_of(&own.name, &class)).map(figure).sum(),
                        None => sum(plan, chain, figure),
                    };
                    (has / weight, chain)
                })
                .collect();
            let most = parts.iter().map(|(part, _)| *part).fold(0.0, f64::max);
            // Who has all that it may have may have less than its part.
            let full = |chain: &Chain| {
                let gets = sum(plan, chain, |class| class.packets) * chain.packet_bytes * 8.0;
                gets >= chain.t_max_bps.min(chain.ingress_bps) * (1.0 - ROUNDING)
            };
            if parts.iter().any(|(part, chain)| *part < most * (1.0 - RATIO) && !full(chain)) {
                self.wrong(format!("{at}.classes"), format!("`{text}` is not kept"));
            }
        }
    }
}

/// The edges of a chain that packets take forward.
fn forward(chain: &Chain) -> impl Iterator<Item = &Edge> {
    let forward = |node: usize| !chain.nodes[node].return_only;
    chain.edges.iter().filter(move |edge| forward(edge.from) && forward(edge.to))
}

/// Cycles per packet of a chain that functions take which only the return direction passes, at least and at most, as in
/// [`Judge::behind`].
fn answers(chain: &Chain) -> (f64, f64) {
    chain.nodes.iter().filter(|node| node.return_only).fold((0.0, 0.0), |(low, high), node| {
        let cycles = node.server.unwrap_or(0.0);
        let least = (cycles - node.per_batch / node.batch.max(1.0)).max(0.0);
        (low + node.share * least, high + node.share * (cycles + node.per_batch))
    })
}

/// Whether packets of a chain wait at functions that they come to from others.
fn inner(chain: &Chain, plan: &TaskPlan, seen: &Seen, id: ChainId) -> bool {
    seen.of[id].iter().any(|task| match (&plan.tasks[*task].start, seen.begins[*task]) {
        (Start::Function { .. }, Some((_, node))) => chain.nodes[node].entry <= 0.0,
        _ => false,
    })
}

/// The sum of a figure over a chain's classes.
pub(super) fn sum(plan: &TaskPlan, chain: &Chain, figure: fn(&ClassFigures) -> f64) -> f64 {
    plan.classes.iter().filter(|class| is_of(&class.name, &chain.name)).map(figure).sum()
}

/// Whether a class is a chain's: it has the chain's name, and if the chain has several the class's behind it.
fn is_of(class: &str, chain: &str) -> bool {
    class.split_once('/').map_or(class, |(chain, _)| chain) == chain
}

/// Whether a class is this one, by chain and name, also where its packets are dropped as they enter the chain.
fn is_way_of(own: &str, class: &str) -> bool {
    own.strip_prefix(class).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '/']))
}

/// Whether a class of a chain waits in a queue where it enters the chain.
fn waits(judge: &Judge<'_>, plan: &TaskPlan, seen: &Seen, chain: ChainId, class: &str) -> bool {
    let nodes = &judge.problem.chains[chain].nodes;
    seen.of[chain].iter().any(|task| match (&plan.tasks[*task].start, seen.begins[*task]) {
        (Start::Class(own), _) => class.split_once('/').is_some_and(|(_, name)| name == own),
        (Start::Function { .. }, Some((_, node))) => nodes[node].entry > 0.0,
        _ => false,
    })
}
