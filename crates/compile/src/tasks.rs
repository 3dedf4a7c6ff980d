//! The partition of a host pipeline into tasks: where queues stand, and whose turn it is.
//!
//! A planner names functions of chains that begin a task (Lan's dissertation, §5.4.2: "inserting a queue in
//! front of Module i"); [`partition`] finds their modules, [`build`](crate::build()) puts the queues there, and
//! [`tree`] makes the dataplane's scheduler tree of the planned one.

use catena_dataplane::clock;
use catena_dataplane::pipeline::TaskId;
use catena_dataplane::schedule::{Tree, Unit};
use catena_plan::alpine::{SchedulerTree, tree as planned};
use catena_policy::{Direction, End, PolicyGraph};

use crate::host::{Host, Link, Lowered, Module, ModuleId, When};

/// Where a task begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<'a> {
    /// At a function, for all packets that come to it forward: its chain's name and its own.
    Function(&'a str, &'a str),
    /// Where the packets of a class, by its name, enter their chain.
    Class(&'a str),
}

/// A queue between two tasks of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What the task behind it is called.
    pub name: String,
    /// The links whose packets wait in it, as indices into [`Host::links`].
    pub links: Vec<usize>,
    /// Whether packets that come in by side `in` wait in it too: nothing stands in front of a file's only chain.
    pub enters: bool,
    /// Where they go from there: a module and its input gate.
    pub inlet: (ModuleId, u16),
}

/// A task is planned to begin where the pipeline has no such place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotThere {
    /// The place, in words.
    pub start: String,
}

impl std::fmt::Display for NotThere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a task is planned to begin at {}, and the chain file has nothing of the kind", self.start)
    }
}

impl std::error::Error for NotThere {}

/// Let tasks begin at `starts`: packets that go forward wait in a queue in front of each. Those on the way back
/// run on in the task that they are in.
///
/// # Errors
/// The first start that the pipeline does not have.
pub fn partition(host: &mut Host, graph: &PolicyGraph, starts: &[Start<'_>]) -> Result<(), NotThere> {
    for start in starts {
        let cut = match *start {
            Start::Function(chain, node) => at_function(host, graph, chain, node),
            Start::Class(class) => at_class(host, graph, class),
        };
        host.cuts.push(cut.ok_or_else(|| NotThere { start: start.to_string() })?);
    }
    Ok(())
}

impl std::fmt::Display for Start<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Start::Function(chain, node) => write!(f, "`{node}` of chain `{chain}`"),
            Start::Class(class) => write!(f, "the entrance of class `{class}`"),
        }
    }
}

fn at_function(host: &Host, graph: &PolicyGraph, chain: &str, node: &str) -> Option<Cut> {
    let chain = graph.chains.iter().position(|c| c.name == chain)?;
    let node = graph.chains[chain].nodes.iter().position(|n| n.name == node)?;
    let is_it = |m: &Module| matches!(&m.kind, Lowered::Function { origin, .. } if *origin == (chain, node));
    let module = host.modules.iter().position(is_it)?;
    // Where packets enter a chain those wait that do; what comes there from other functions goes on in its task.
    let is_entry =
        graph.chains[chain].edges_from(End::In, Direction::Forward).any(|edge| edge.to == End::Node(node as u32));
    let front = if is_entry { front(host) } else { vec![true; host.modules.len()] };
    let waits = |(_, link): &(usize, &Link)| link.to == module && link.to_gate == 0 && front[link.from];
    let links: Vec<usize> = host.links.iter().enumerate().filter(waits).map(|(n, _)| n).collect();
    let enters = host.entries[0] == Some((module, 0));
    let cut = Cut { name: host.modules[module].name.clone(), links, enters, inlet: (module, 0) };
    (cut.enters || !cut.links.is_empty()).then_some(cut)
}

/// The modules that packets pass forward before any function, by the modules' indices.
fn front(host: &Host) -> Vec<bool> {
    let mut front = vec![false; host.modules.len()];
    let mut open: Vec<ModuleId> = host.entries[0].into_iter().map(|(module, _)| module).collect();
    while let Some(module) = open.pop() {
        let is_function = matches!(host.modules[module].kind, Lowered::Function { .. });
        if !is_function && !std::mem::replace(&mut front[module], true) {
            open.extend(host.links.iter().filter(|link| link.from == module).map(|link| link.to));
        }
    }
    front
}

/// A class shares its chain's way in with the chain's other classes until it is taken apart.
fn at_class(host: &mut Host, graph: &PolicyGraph, class: &str) -> Option<Cut> {
    let filter = &graph.classes.iter().find(|c| c.name == class)?.filter;
    let (branch, _) = host.entries[0]?;
    let Lowered::Branch(arms) = &mut host.modules[branch].kind else { return None };
    let gate = 1 + arms.iter().map(|arm| arm.gate).max()?;
    let is_it = |when: &When| matches!(when, When::Filter(f) if f == filter);
    let arm = arms.iter_mut().find(|arm| matches!(&arm.when[..], [when] if is_it(when)))?;
    let shared = host.links.iter().find(|link| link.from == branch && link.gate == arm.gate)?;
    let link = Link { gate, ..*shared };
    arm.gate = gate;
    host.links.push(link);
    Some(Cut {
        name: class.to_owned(),
        links: vec![host.links.len() - 1],
        enters: false,
        inlet: (link.to, link.to_gate),
    })
}

/// How long what tasks are owed is kept for them while their queue is empty, in ns: longer than it takes a port
/// that read too little to read more, and short beside what people notice. Whose queue is empty for longer sleeps, and is owed nothing.
const OWED: u64 = 50_000_000;

/// Make the dataplane's tree of a planned one; `ids[n]` is task n of the plan, and the first one the port's. That reads what there is;
/// what it did not find it need not make up for. The others have their parts, also where it brings now too much for their queues and
/// now too little.
#[must_use]
pub fn tree(wanted: &SchedulerTree, ids: &[TaskId]) -> Tree {
    let all = |children: &[SchedulerTree]| children.iter().map(|child| tree(child, ids)).collect::<Vec<_>>();
    match wanted {
        SchedulerTree::Task(task) => match ids.get(*task) {
            Some(id) => Tree::Task(*id),
            // A task that is not here never has work.
            None => Tree::Priority(Vec::new()),
        },
        SchedulerTree::Priority(children) => Tree::Priority(all(children)),
        SchedulerTree::RoundRobin(children) => Tree::round_robin(all(children)),
        SchedulerTree::Fair(children) => Tree::fair(children.iter().map(|(weight, child)| (*weight, tree(child, ids))))
            .saving(
                (OWED, clock::hertz() * OWED / 1_000_000_000),
                |child| !matches!(child, Tree::Task(task) if ids.first() == Some(task)),
            ),
        SchedulerTree::Limit { unit, rate, burst, child } => {
            let unit = match unit {
                planned::Unit::Packets => Unit::Packets,
                planned::Unit::Bits => Unit::Bits,
            };
            Tree::limit(tree(child, ids), unit, *rate, *burst)
        }
    }
}
