//! The back end of servers: a pipeline of whole chains for each worker, its cores and slots, and whose turn it is.

use std::fmt;

use catena_plan::alpine::SchedulerTree;
use catena_plan::deployment::entrances::entries;
use catena_plan::deployment::ranges::SLOTS;
use catena_plan::plan::{Device, ServerPlan};
use catena_plan::schedule::not_whole;
use catena_plan::tasks as planned;
use catena_policy::{Direction, Node};

use super::as_planned::as_planned;
use super::{Artifact, Backend, Part, Unlowered};
use crate::catalogue;
use crate::host::{self, Host};
use crate::reduce::{Counts, Findings, reduce};
use crate::tasks::{Start, partition};

/// The back end of servers. It makes pipelines of whole chains.
#[derive(Clone, Debug, Default)]
pub struct OnHost {
    /// What is counted of reduced chains; `None`: nothing redundant is taken out.
    pub reduce: Option<Counts>,
    /// The pipeline of the policy, where it was lowered before, as it is to run: built on trial, it has its tables already.
    pub lowered: Option<Host>,
}

/// What runs on a server.
#[derive(Clone, Debug)]
pub struct Hosted {
    /// The pipeline of each worker, with queues where tasks begin.
    pub host: Host,
    /// What was redundant.
    pub findings: Option<Findings>,
    /// The cores of the workers.
    pub cores: Vec<u32>,
    /// The worker of each slot of flows, by the slot's number.
    pub slots: Vec<u16>,
    /// Whose turn it is on each worker: the plan's task 0 reads the ports, the others are the pipeline's queues. None: there is
    /// one task.
    pub tree: Option<SchedulerTree>,
}

impl Hosted {
    /// A pipeline alone, on no cores yet.
    #[must_use]
    pub fn of(host: Host) -> Hosted {
        Hosted { host, findings: None, cores: Vec::new(), slots: Vec::new(), tree: None }
    }
}

impl Artifact for Hosted {}

impl fmt::Display for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: Vec<String> = self.cores.iter().map(u32::to_string).collect();
        writeln!(f, "workers on cores {}\n", cores.join(", "))?;
        if let Some(findings) = &self.findings {
            writeln!(f, "{findings}")?;
        }
        self.host.fmt(f)
    }
}

impl Backend for OnHost {
    fn device(&self) -> Device {
        Device::Server
    }

    fn lower(&self, part: &Part<'_>) -> Result<Box<dyn Artifact>, Unlowered> {
        let server = whole(part)?;
        as_entered(part)?;
        let mut findings = None;
        let mut host = match (&self.lowered, self.reduce) {
            (Some(lowered), _) => lowered.clone(),
            (None, None) => host::lower(part.policy).map_err(Unlowered::Library)?,
            (None, Some(counts)) => {
                let host = host::lower(part.policy).map_err(Unlowered::Library)?;
                let (host, found) = reduce(host, counts).map_err(|error| Unlowered::Rules(Box::new(error)))?;
                findings = Some(found);
                host
            }
        };
        // Drops that come earlier than they are written change the order of functions: then the pipeline is held before that.
        match host.drops_early {
            true => as_planned(part, &host::lower(part.policy).map_err(Unlowered::Library)?)?,
            false => as_planned(part, &host)?,
        }
        if let Some(tasks) = &server.tasks {
            partition(&mut host, part.policy, &starts(tasks)).map_err(Unlowered::Tasks)?;
        }
        let cores: Vec<u32> = server.workers.iter().map(|worker| worker.core).collect();
        let tree = server.tasks.as_ref().map(|tasks| tasks.tree.clone());
        Ok(Box::new(Hosted { host, findings, slots: slots(part, &cores)?, cores, tree }))
    }
}

/// The server of a part, which runs all chains.
fn whole<'a>(part: &Part<'a>) -> Result<&'a ServerPlan, Unlowered> {
    let plan = part.plan;
    let partly = |why: String| Unlowered::Partly { on: part.on.to_owned(), why };
    let server = plan.servers.iter().find(|server| server.name == part.on);
    let server = server.ok_or_else(|| partly("the plan has no such server".to_owned()))?;
    let placement = plan.placement.as_ref().ok_or(Unlowered::NothingRuns)?;
    let replicable = |n: usize| server.subgroups.get(n).is_some_and(|group| group.replicable);
    match not_whole(&plan.problem, placement, replicable) {
        Some(why) => Err(partly(why)),
        None => Ok(server),
    }
}

/// Check that packets enter chains by the plan as they do in the pipeline.
fn as_entered(part: &Part<'_>) -> Result<(), Unlowered> {
    let returns = |node: &Node| catalogue::returns(&node.function, &node.args);
    for (direction, side) in [(Direction::Forward, "in"), (Direction::Return, "out")] {
        // A plan that knows chains in numbers alone says nothing of it.
        let said = !part.deployment.paths.is_empty();
        if said && part.deployment.entries(part.policy, direction) != Some(entries(part.policy, direction, returns)) {
            return Err(Unlowered::Other(format!(
                "by the plan, packets that come by side {side} enter other chains than they would here: plan the file again"
            )));
        }
    }
    Ok(())
}

/// Where the plan's tasks begin, but for the one that reads the ports.
fn starts(tasks: &planned::TaskPlan) -> Vec<Start<'_>> {
    fn start(task: &planned::TaskFigures) -> Option<Start<'_>> {
        match &task.start {
            planned::Start::Port => None,
            planned::Start::Function { chain, node } => Some(Start::Function(chain, node)),
            planned::Start::Class(class) => Some(Start::Class(class)),
        }
    }
    tasks.tasks.iter().filter_map(start).collect()
}

/// Plans and packets number flows alike.
const _: () = assert!(SLOTS as usize == catena_packet::SLOTS, "plans have other slots than packets");

/// The worker of each slot: what a worker has of one chain, it has of all.
fn slots(part: &Part<'_>, cores: &[u32]) -> Result<Vec<u16>, Unlowered> {
    let mut table: Vec<Option<u16>> = vec![None; usize::from(SLOTS)];
    for (worker, core) in (0..).zip(cores) {
        let own = part.instances().find(|instance| instance.core == Some(*core));
        own.iter().flat_map(|instance| instance.slots.iter()).for_each(|slot| table[usize::from(slot)] = Some(worker));
    }
    let owned = |(slot, worker): (usize, Option<u16>)| {
        worker.ok_or_else(|| Unlowered::Other(format!("no worker of {} has flow slot {slot} by the plan", part.on)))
    };
    table.into_iter().enumerate().map(owned).collect()
}
