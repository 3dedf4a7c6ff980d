//! What packets wait in the queues of a server's tasks, at most.
//!
//! A promise of delay is about a packet that waits for no other ([`crate::problem`]). A chain that is offered more than its
//! task takes, as behind a rate limit at its `t_max`, fills the queue in front of it: the last packet there waits for all.

use catena_plan_alpine::SchedulerTree;
use catena_plan_alpine::tree::Unit;
use catena_plan_model::profile::QUEUE_PACKETS;

use crate::plan::Plan;
use crate::policy::Policy;
use crate::tasks::{Start, TaskPlan};

impl Plan {
    /// Give server number `server` its tasks, and say what packets may wait in their queues. The plan must say which policy
    /// it is for.
    pub fn set_tasks(&mut self, server: usize, tasks: TaskPlan) {
        let bits = self.packet_bytes * 8.0;
        for chain in &mut self.chains {
            chain.queue_ns = self.policy.as_ref().and_then(|policy| queue_ns(policy, &tasks, &chain.name, bits));
        }
        if let Some(server) = self.servers.get_mut(server) {
            server.tasks = Some(tasks);
        }
        self.seal();
    }
}

/// Nanoseconds that a packet of a chain waits in full queues of packets of so many bits; None: it meets none.
fn queue_ns(policy: &Policy, tasks: &TaskPlan, chain: &str, bits: f64) -> Option<f64> {
    let classes = policy.chains.iter().filter(|c| c.name == chain).flat_map(|c| &c.classes).collect::<Vec<_>>();
    let mut waits = None;
    for (id, task) in tasks.tasks.iter().enumerate() {
        let own = match &task.start {
            Start::Port => false,
            Start::Function { chain: of, .. } => of == chain,
            Start::Class(class) => classes.contains(&class),
        };
        if own {
            let rate = task.packets.min(most(&tasks.tree, id, bits));
            // A task that has no turn lets nothing through: no number of nanoseconds is enough, and files have no infinity.
            let wait = if rate > 0.0 { QUEUE_PACKETS as f64 / rate * 1e9 } else { f64::MAX };
            waits = Some((waits.unwrap_or(0.0) + wait).min(f64::MAX));
        }
    }
    waits
}

/// The packets per second, of so many bits each, that limits let a task take at all its places in the tree; infinite where none
/// stands above it.
fn most(tree: &SchedulerTree, task: usize, bits: f64) -> f64 {
    match tree {
        SchedulerTree::Task(own) if *own == task => f64::INFINITY,
        SchedulerTree::Task(_) => 0.0,
        SchedulerTree::Priority(children) | SchedulerTree::RoundRobin(children) => {
            children.iter().map(|child| most(child, task, bits)).sum()
        }
        SchedulerTree::Fair(children) => children.iter().map(|(_, child)| most(child, task, bits)).sum(),
        SchedulerTree::Limit { unit, rate, child, .. } => {
            let each = if *unit == Unit::Bits { bits } else { 1.0 };
            most(child, task, bits).min(*rate as f64 / each)
        }
    }
}
