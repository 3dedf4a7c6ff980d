//! The tasks of a server on which whole chains run: what Alpine makes of the planned rates or, where the file
//! says how chains share, of that.
//!
//! Every worker runs all chains for its part of the flows, with the same tasks and the same tree, so that shares
//! hold on each worker and in sum. What comes in is not known when a plan is made: each chain is taken to be
//! offered as much as any, unless all edges at `in` have rate estimates, and more in all than the server carries.

use catena_policy::{Direction, PolicyGraph};
use serde::{Deserialize, Serialize};

use catena_plan_alpine::pipeline::{Figures, Origin, pipeline};
use catena_plan_alpine::{Cost, Ends, Front, Kind, Objective, Options, Promise, Proof, SchedulerTree, solve};
use catena_plan_model::demand::shares;
use catena_plan_model::problem::{Problem, ServerId};
use catena_plan_model::profile::FULL_BATCH;
use catena_plan_model::relation::Relation;

/// A rate limit saves up packets of this many seconds.
const BURST_SECONDS: f64 = 1e-3;
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
    /// The modules that run to completion in it.
    pub modules: Vec<String>,
    /// Its part of the cycles of its level, 0 to 1.
    pub weight: f64,
    /// Packets per second that one worker's takes in.
    pub packets: f64,
}

/// Where a task begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Divide what runs on `server` into tasks, where chains carry `rates_bps`: the fewest, or those that serve most packets.
///
/// # Errors
/// Why the file's relations between chains and classes cannot hold.
pub fn of(
    policy: &PolicyGraph,
    problem: &Problem,
    server: ServerId,
    rates_bps: &[f64],
    objective: Objective,
) -> Result<TaskPlan, String> {
    let about = problem.servers.get(server).ok_or("there is no such server")?;
    let workers = about.cores.max(1);
    let planned = |c: usize| match (rates_bps.get(c), problem.chains.get(c)) {
        (Some(bps), Some(chain)) => bps / chain.packet_bits(),
        _ => 0.0,
    };
    let offered = offered(policy, problem, about.clock_hz);
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
    let told = PolicyGraph { relations: relations.cloned().collect(), ..policy.clone() };
    let mut seen = pipeline(&told, &figures).map_err(|error| error.to_string())?;
    let chain_of = |module: usize| match seen.origins.get(module) {
        Some(Origin::Node((chain, _), _)) => Some(*chain),
        _ => None,
    };
    if (seen.promises.is_empty() || !shared.is_empty()) && several {
        let owner: Vec<Option<usize>> = seen.graph.classes.iter().map(|class| chain_of(class.exit)).collect();
        let of_chain = |c: usize| (0..owner.len()).filter(|j| owner[*j] == Some(c)).collect::<Vec<_>>();
        let open = |c: &usize| seen.promises.is_empty() || shared.contains(c);
        let members = (0..policy.chains.len()).filter(open).map(|c| (of_chain(c), planned(c)));
        let members: Vec<_> = members.filter(|(classes, rate)| !classes.is_empty() && *rate > 1.0).collect();
        if members.len() > 1 {
            seen.promises.push(Promise::Throughput(members));
        }
    }
    // What nothing leaves of has what others leave.
    for relation in &problem.relations {
        let Relation::Last(last) = relation else { continue };
        let owner = |j: usize| chain_of(seen.graph.classes[j].exit);
        let (later, first) = (0..seen.graph.classes.len()).partition(|j| owner(*j).is_some_and(|c| last.contains(&c)));
        let order: [Vec<usize>; 2] = [first, later];
        if order.iter().all(|classes| !classes.is_empty()) {
            seen.promises.push(Promise::Priority(order.to_vec()));
        }
    }
    let capped = |c: usize| problem.chains.get(c).filter(|chain| chain.t_max_bps < chain.ingress_bps);
    for module in 0..seen.graph.modules.len() {
        let first = seen.graph.modules[module].upstream.is_some_and(|up| seen.graph.modules[up].kind == Kind::Port);
        let begins = first && seen.graph.modules[module].kind == Kind::Function;
        if begins && chain_of(module).and_then(capped).is_some() {
            // What may not have all that comes waits in a queue of its own (Lemur, §4.2: the scheduler enforces
            // t_max).
            seen.graph.modules[module].kind = Kind::Scheduled;
        }
    }
    // The branch that finds the chain is the classifier in front (see `alpine::pipeline`).
    let options = Options { front: Front::Never, objective, ..Options::default() };
    let plan = solve(&seen.graph, &seen.promises, options).map_err(|refusal| refusal.to_string())?;
    let limit = |task: usize| {
        let module = plan.tasks.tasks.get(task)?.start;
        let first = plan.graph.modules[module].upstream.is_some_and(|up| plan.graph.modules[up].kind == Kind::Port);
        let chain = chain_of(module).filter(|_| first).and_then(capped)?;
        Some(chain.t_max_bps / chain.packet_bits() / f64::from(workers))
    };
    let all: Vec<usize> = (0..plan.tasks.tasks.len()).collect();
    let tree = limited(SchedulerTree::of(&plan.tasks, &all), &limit);
    let tasks = plan.tasks.tasks.iter().map(|task| {
        let start = start(policy, seen.origins.get(task.start));
        let modules = task.modules.iter().map(|m| plan.graph.modules[*m].name.clone()).collect();
        TaskFigures { start, modules, weight: task.weight, packets: task.packets }
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

/// Packets per second that one worker is offered of each chain.
fn offered(policy: &PolicyGraph, problem: &Problem, hz: f64) -> Vec<f64> {
    let relative = shares::offered(policy, false);
    // Enough of every chain to fill a worker with it alone.
    let cost = |c: usize| -> f64 {
        let nodes = problem.chains.get(c).map_or(&[][..], |chain| &chain.nodes);
        problem.overheads.visit + nodes.iter().map(|n| n.share * n.server.unwrap_or(0.0)).sum::<f64>()
    };
    let least = (0..relative.len()).map(|c| relative[c] * cost(c).max(1.0)).fold(f64::INFINITY, f64::min);
    relative.iter().map(|r| r * hz / least).collect()
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

/// The tree with the tasks that `limit` names held to packets per second.
fn limited(tree: SchedulerTree, limit: &impl Fn(usize) -> Option<f64>) -> SchedulerTree {
    let all = |children: Vec<SchedulerTree>| children.into_iter().map(|child| limited(child, limit)).collect();
    match tree {
        SchedulerTree::Task(task) => match limit(task) {
            Some(packets) => SchedulerTree::Limit {
                packets: (packets.round() as u64).max(1),
                burst: ((packets * BURST_SECONDS).ceil() as u64).max(1),
                child: Box::new(tree),
            },
            None => tree,
        },
        SchedulerTree::Priority(children) => SchedulerTree::Priority(all(children)),
        SchedulerTree::RoundRobin(children) => SchedulerTree::RoundRobin(all(children)),
        SchedulerTree::Fair(children) => {
            SchedulerTree::Fair(children.into_iter().map(|(w, child)| (w, limited(child, limit))).collect())
        }
        SchedulerTree::Limit { packets, burst, child } => {
            SchedulerTree::Limit { packets, burst, child: Box::new(limited(*child, limit)) }
        }
    }
}

#[cfg(test)]
mod tests;
