//! The tasks of a server on which whole chains run: what Alpine makes of the planned rates or, where the file
//! says how chains share, of that.
//!
//! Every worker runs all chains for its part of the flows, with the same tasks and the same tree, so that shares
//! hold on each worker and in sum. What comes in is not known when a plan is made: each chain is taken to be
//! offered as much as any, unless all edges at `in` have rate estimates, and more in all than the server carries.

use catena_policy::{Direction, PolicyGraph};
use serde::{Deserialize, Serialize};

use catena_plan_alpine::pipeline::{Figures, Origin, pipeline};
use catena_plan_alpine::{
    Conflict, Cost, Ends, Front, Graph, Kind, Levels, Objective, Options, Promise, Proof, Refusal, SchedulerTree, Task,
};
use catena_plan_model::demand::shares;
use catena_plan_model::placement::Placement;
use catena_plan_model::problem::{Problem, ServerId};
use catena_plan_model::profile::FULL_BATCH;
use catena_plan_model::relation::{self, Relation};

mod rates;
mod tree;

/// Who may have less than what is taken to come of everybody is offered this many times that, at most: solvers count to few
/// digits.
const FAR_MORE: f64 = 1e3;
/// What a promise may be missed by, relative: a queue costs cycles that no plan of rates knows of.
const ROUNDING: f64 = 1e-2;

/// The tasks of each worker of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskPlan {
    /// How many workers have these tasks.
    pub workers: u32,
    /// The tasks; the first reads the port.
    pub tasks: Vec<TaskFigures>,
    /// Whose turn it is.
    pub tree: SchedulerTree,
    /// What each class of traffic gets of a saturated server.
    pub classes: Vec<ClassFigures>,
    /// Whether it is proven that no fewer tasks do; of those that serve the most packets nothing of the kind is known.
    pub minimal: bool,
    /// Cycles per packet of bringing it in and out again.
    #[serde(default)]
    pub port_cycles: f64,
    /// Cycles per packet of finding its chain.
    #[serde(default)]
    pub classify_cycles: f64,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFigures {
    /// Where it begins.
    pub start: Start,
    /// The modules that run to completion in it: `port`, `classify`, and functions as `chain/function`.
    pub modules: Vec<String>,
    /// Its part of the cycles of its level, 0 to 1.
    pub weight: f64,
    /// Packets per second that one worker's takes in, where more comes than the worker can do.
    pub packets: f64,
    /// Cycles per second that it takes of its worker then.
    pub cycles: f64,
}

/// Where a task begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// At the port.
    Port,
    /// At a function.
    Function {
        /// Its chain.
        chain: String,
        /// Its name there.
        node: String,
    },
    /// Where a class enters its chain.
    Class(String),
}

/// What a class of traffic gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// Its chain, and the class if it has a way of its own.
    pub name: String,
    /// Packets per second of all workers.
    pub packets: f64,
    /// Its part of the cycles that are spent for classes, 0 to 1.
    pub cpu: f64,
}

/// Divide what runs on `server` into tasks, where `placement` says what chains carry: the fewest, or those that serve most
/// packets.
///
/// # Errors
/// Why the file's relations between chains and classes cannot hold.
pub fn of(
    policy: &PolicyGraph,
    problem: &Problem,
    server: ServerId,
    placement: &Placement,
    objective: Objective,
) -> Result<TaskPlan, String> {
    let about = problem.servers.get(server).ok_or("there is no such server")?;
    let workers = about.cores.max(1);
    let planned = |c: usize| match (placement.rates_bps.get(c), problem.chains.get(c)) {
        (Some(bps), Some(chain)) => bps / chain.packet_bits(),
        _ => 0.0,
    };
    let offered = offered(policy, problem, about.clock_hz, f64::from(workers));
    let several = policy.chains.len() > 1;
    // Of what bringing packets in costs, finding their chain is a module of its own.
    let port_cycles = problem.overheads.visit - problem.overheads.classify;
    // A profile does not tell the two ends apart.
    let half_a_queue = Cost { packet: problem.overheads.queue / 2.0, batch: 0.0 };
    let figures = Figures {
        cycles: &|(c, n)| problem.chains.get(c).and_then(|chain| chain.nodes.get(n)?.server).unwrap_or(0.0),
        batches: &|(c, n)| {
            let node = problem.chains.get(c).and_then(|chain| chain.nodes.get(n));
            node.map_or((0.0, FULL_BATCH), |node| (node.per_batch, node.batch))
        },
        replicable: &|(c, n)| problem.chains.get(c).and_then(|chain| chain.nodes.get(n)).is_none_or(|n| n.replicable),
        packets: &|c, group, direction| match direction {
            Direction::Return => 0.0,
            Direction::Forward => {
                let classes = policy.chains.get(c).map_or(1, |chain| chain.classes.len().max(1));
                let part = if group.is_some() { 1.0 / classes as f64 } else { 1.0 };
                part * offered.get(c).copied().unwrap_or(0.0)
            }
        },
        port_cycles,
        classify_cycles: problem.overheads.classify,
        queue_cycles: problem.overheads.queue,
        queue_ends: Ends { entrance: half_a_queue, drop: 0.0, exit: half_a_queue },
        hz: about.clock_hz,
    };
    // What is left is shared as the plan shares it: what a chain has of that depends on its promise and its limits.
    let shared: Vec<usize> =
        problem.relations.iter().filter(|r| is_share(r)).flat_map(|r| r.members()).map(|m| m.chain).collect();
    let relations =
        policy.relations.iter().filter(|r| !matches!(r, catena_policy::Relation::Share(_)) || shared.is_empty());
    let about = PolicyGraph { relations: relations.cloned().collect(), ..policy.clone() };
    let mut seen = pipeline(&about, &figures).map_err(|error| error.to_string())?;
    let owners: Vec<Option<usize>> =
        seen.graph.modules.iter().enumerate().map(|(m, _)| chain_of(&seen.origins, m)).collect();
    let exits: Vec<Option<usize>> = seen.graph.classes.iter().map(|class| owners[class.exit]).collect();
    let classes = |c: usize| -> Vec<usize> { (0..exits.len()).filter(|j| exits[*j] == Some(c)).collect() };
    if (seen.promises.is_empty() || !shared.is_empty()) && several {
        let unrelated = seen.promises.is_empty();
        let open = |c: &usize| unrelated || shared.contains(c);
        // Nobody shares with who comes first.
        let levels = relation::levels(problem.chains.len(), &problem.relations);
        for level in 0..levels.iter().max().map_or(0, |last| last + 1) {
            let own = (0..policy.chains.len()).filter(open).filter(|c| levels.get(*c) == Some(&level));
            let members: Vec<(Vec<usize>, f64)> = own
                .map(|c| (classes(c), planned(c)))
                .filter(|(classes, rate)| !classes.is_empty() && *rate > 1.0)
                .collect();
            if members.len() > 1 {
                seen.promises.push(Promise::Throughput(members));
            }
        }
    }
    // What nothing leaves of has what others leave.
    for relation in &problem.relations {
        let Relation::Last(last) = relation else { continue };
        let (later, first) = (0..exits.len()).partition(|j| exits[*j].is_some_and(|c| last.contains(&c)));
        let order: [Vec<usize>; 2] = [first, later];
        if order.iter().all(|classes| !classes.is_empty()) {
            seen.promises.push(Promise::Priority(order.to_vec()));
        }
    }
    // Where chains begin, behind the branch that finds them.
    let begins =
        |graph: &Graph, m: usize| graph.modules[m].upstream.is_some_and(|up| graph.modules[up].kind == Kind::Port);
    let entries: Vec<usize> = (0..owners.len()).filter(|m| owners[*m].is_some() && begins(&seen.graph, *m)).collect();
    let bounds = rates::bounds(problem, placement, server, classes);
    let levels =
        Levels::of(&seen.graph, &seen.promises).map_err(|conflict| told(&seen.graph, Refusal::Conflict(conflict)))?;
    let capped = |c: usize| problem.chains.get(c).filter(|chain| chain.t_max_bps < chain.ingress_bps);
    // Priority is for what is left beyond promises: who comes first is held to what later ones are not promised.
    let may_be_first = |m: usize| rates::is_before_promised(levels.module[m], &bounds, |class| levels.class[class]);
    for module in &entries {
        if may_be_first(*module) || owners[*module].and_then(capped).is_some() {
            // What may not have all that comes waits in a queue of its own.
            seen.graph.modules[*module].kind = Kind::Scheduled;
        }
    }
    // The branch that finds the chain is the classifier in front (see `alpine::pipeline`).
    let options = Options { front: Front::Never, objective, ..Options::default() };
    let plan = rates::hold(&seen.graph, &seen.promises, &bounds, &entries, options);
    let plan = plan.map_err(|refusal| told(&seen.graph, refusal))?;
    let level = |class: usize| plan.tasks.tasks[plan.tasks.task_of[plan.graph.classes[class].exit]].level;
    let mut caps = Vec::new();
    for c in 0..policy.chains.len() {
        let enters = |module: usize| entries.contains(&module) && owners[module] == Some(c);
        let tasks = plan.tasks.tasks.iter().enumerate().filter(|(_, task)| enters(task.start));
        let (before, others): (Vec<_>, Vec<_>) =
            tasks.partition(|(_, task)| rates::is_before_promised(task.level, &bounds, level));
        let entry = |(n, task): &(usize, &Task)| tree::Entry { task: *n, packets: task.packets, weight: task.weight };
        let own = |tasks: &[(usize, &Task)]| tasks.iter().map(entry).collect();
        let Some(chain) = problem.chains.get(c) else { continue };
        let held = before.iter().map(|(_, task)| task.packets).sum::<f64>() * chain.packet_bits();
        if !before.is_empty() {
            caps.push(tree::Cap { tasks: own(&before), bps: held });
        }
        if capped(c).is_some() && !others.is_empty() {
            let bps = (chain.t_max_bps / f64::from(workers) - held).max(0.0);
            caps.push(tree::Cap { tasks: own(&others), bps });
        }
    }
    let all: Vec<usize> = (0..plan.tasks.tasks.len()).collect();
    let tree = tree::limited(SchedulerTree::of(&plan.tasks, &all), &caps);
    let tasks = plan.tasks.tasks.iter().map(|task| {
        let start = start(policy, seen.origins.get(task.start));
        let modules = task.modules.iter().map(|m| name(policy, &plan.graph, &seen.origins, *m)).collect();
        TaskFigures { start, modules, weight: task.weight, packets: task.packets, cycles: task.cycles }
    });
    let spent: f64 = plan.tasks.classes.iter().map(|served| served.cycles).sum();
    let classes = plan.graph.classes.iter().zip(&plan.tasks.classes).map(|(class, served)| ClassFigures {
        name: class.name.clone(),
        packets: served.packets * f64::from(workers),
        cpu: if spent > 0.0 { served.cycles / spent } else { 0.0 },
    });
    Ok(TaskPlan {
        workers,
        tasks: tasks.collect(),
        tree,
        classes: classes.collect(),
        minimal: matches!(plan.proof, Proof::Exact | Proof::GeneralPosition),
        port_cycles,
        classify_cycles: problem.overheads.classify,
    })
}

/// Whether a relation shares what is left beyond promises.
fn is_share(relation: &Relation) -> bool {
    relation.text().starts_with("share ")
}

/// Packets per second that all classes of a chain get together.
fn carried(plan: &TaskPlan, chain: &str) -> f64 {
    let own = |class: &&ClassFigures| {
        class.name.strip_prefix(chain).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    plan.classes.iter().filter(own).map(|class| class.packets).sum()
}

/// What of a chain's promise the file's relations do not leave it where more comes in than the server can do; None: the
/// tasks keep all promises, or there are no relations.
#[must_use]
pub fn broken(problem: &Problem, plan: &TaskPlan) -> Option<String> {
    let written = problem.relations.iter().map(Relation::text).filter(|text| !text.is_empty());
    let texts: Vec<String> =
        written.chain(problem.within.iter().map(String::as_str)).map(|text| format!("`{text}`")).collect();
    if texts.is_empty() {
        return None;
    }
    let late = |chain: &&catena_plan_model::problem::Chain| {
        carried(plan, &chain.name) * chain.packet_bits() < chain.t_min_bps * (1.0 - ROUNDING)
    };
    let chain = problem.chains.iter().find(late)?;
    let gets = carried(plan, &chain.name) * chain.packet_bits();
    let (gets, promised) = (gets / 1e9, chain.t_min_bps / 1e9);
    let (by, name) = (texts.join(", "), &chain.name);
    Some(format!(
        "by {by}, {name} gets {gets:.2} Gbit/s of the {promised:.2} promised where more comes in of every chain than the workers can do"
    ))
}

/// Packets per second that one of `workers` is offered of each chain: no more than a port brings.
fn offered(policy: &PolicyGraph, problem: &Problem, hz: f64, workers: f64) -> Vec<f64> {
    let relative = shares::offered(policy, false);
    // Enough of every chain to fill a worker with it alone.
    let cost = |c: usize| -> f64 {
        let nodes = problem.chains.get(c).map_or(&[][..], |chain| &chain.nodes);
        problem.overheads.visit + nodes.iter().map(|n| n.share * n.server.unwrap_or(0.0)).sum::<f64>()
    };
    let least = (0..relative.len()).map(|c| relative[c] * cost(c).max(1.0)).fold(f64::INFINITY, f64::min);
    let most = |c: usize| {
        let chain = problem.chains.get(c);
        let packets = |bps: f64| chain.map_or(f64::INFINITY, |chain| bps / chain.packet_bits() / workers);
        chain.map_or(f64::INFINITY, |chain| packets(chain.ingress_bps).min(FAR_MORE * packets(chain.t_max_bps)))
    };
    relative.iter().enumerate().map(|(c, r)| (r * hz / least).min(most(c))).collect()
}

/// What a module is called: a function with its chain in front, for chains may have functions of one name.
fn name(policy: &PolicyGraph, graph: &Graph, origins: &[Origin], module: usize) -> String {
    let own = &graph.modules[module].name;
    match chain_of(origins, module).and_then(|c| policy.chains.get(c)) {
        Some(chain) => format!("{}/{own}", chain.name),
        None => own.clone(),
    }
}

/// Where the task that begins at `module` begins: a class waits where it enters its chain.
fn start(policy: &PolicyGraph, origin: Option<&Origin>) -> Start {
    let Some(Origin::Node((c, n), group)) = origin else { return Start::Port };
    let chain = policy.chains.get(*c);
    let class = group.and_then(|k| policy.classes.get(k as usize));
    match (class, chain.and_then(|chain| Some((chain, chain.nodes.get(*n)?)))) {
        (Some(class), _) => Start::Class(class.name.clone()),
        (None, Some((chain, node))) => Start::Function { chain: chain.name.clone(), node: node.name.clone() },
        (None, None) => Start::Port,
    }
}

/// Why there are no tasks, with the names of classes.
fn told(graph: &Graph, refusal: Refusal) -> String {
    let name = |class: &usize| graph.classes.get(*class).map_or("?", |class| &class.name).to_owned();
    match refusal {
        Refusal::Conflict(Conflict::RatioAcrossPriorities(a, b)) => {
            format!("{} and {} share in a ratio, but one of them comes before the other", name(&a), name(&b))
        }
        Refusal::Conflict(Conflict::PriorityCycle(class)) => format!("{} is to come before itself", name(&class)),
        Refusal::Conflict(Conflict::Twice(class)) => format!("{} stands on both sides of a relation", name(&class)),
        Refusal::Starved(classes) if !classes.is_empty() => {
            let names: Vec<String> = classes.iter().map(name).collect();
            format!("{}: what they share with others takes more than they were promised", names.join(", "))
        }
        other => other.to_string(),
    }
}

/// The chain that a module belongs to.
fn chain_of(origins: &[Origin], module: usize) -> Option<usize> {
    match origins.get(module) {
        Some(Origin::Node((chain, _), _)) => Some(*chain),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
