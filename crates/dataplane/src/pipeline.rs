//! What one worker runs: a graph, the tasks that feed it, and the tree that says whose turn it is.

use catena_packet::Clock;

use crate::graph::Graph;
use crate::module::{Context, Pulled};
use crate::schedule::{Leaves, Ran, Tree};
use crate::task::Task;

/// A task's place in a [`Pipeline`]; stays the same while others come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(crate) u32);

/// Where a worker's time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// From the clock on the wall.
    #[default]
    Wall,
    /// From the packets, as they were recorded: a replay gives the same result every time.
    Packets,
}

/// A graph, its tasks and their schedule.
#[derive(Default)]
pub struct Pipeline {
    /// The modules.
    pub graph: Graph,
    /// Whose turn it is; without one, tasks take turns in the order they were added.
    pub tree: Option<Tree>,
    /// Where time comes from.
    pub time: Time,
    tasks: Vec<Option<Task>>,
}

impl Pipeline {
    /// Make an empty pipeline.
    pub fn new(time: Time) -> Self {
        Pipeline { time, ..Self::default() }
    }

    /// Make a pipeline of modules that are already linked.
    pub fn with(graph: Graph, time: Time) -> Self {
        Pipeline { graph, time, ..Self::default() }
    }

    /// Add a task; it runs in turn with the others, unless [`Self::tree`] is set to say otherwise.
    pub fn add_task(&mut self, task: Task) -> TaskId {
        let id = TaskId(self.tasks.len() as u32);
        self.tasks.push(Some(task));
        match &mut self.tree {
            None => self.tree = Some(Tree::round_robin([Tree::Task(id)])),
            Some(Tree::RoundRobin(children, _)) => children.push(Tree::Task(id)),
            Some(other) => {
                let rest = std::mem::replace(other, Tree::Task(id));
                *other = Tree::round_robin([rest, Tree::Task(id)]);
            }
        }
        id
    }

    /// Go on with other weights or rates: what limits have saved up in a tree of the same shape, they keep.
    pub fn set_tree(&mut self, mut tree: Tree) {
        if let Some(before) = &self.tree {
            tree.resume(before);
        }
        self.tree = Some(tree);
    }

    /// Take a task out, once it has brought through what its source holds now (a queue's packets, not a
    /// generator's endless ones: at most `most` batches).
    pub fn remove_task(&mut self, cx: &mut Context, id: TaskId, most: usize) -> Option<Task> {
        let mut task = self.tasks.get_mut(id.0 as usize)?.take()?;
        for _ in 0..most {
            if task.run(cx, &mut self.graph).packets == 0 {
                break;
            }
        }
        if let Some(tree) = &mut self.tree {
            tree.remove(id);
        }
        Some(task)
    }

    /// Return the tasks.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        (0u32..).map(TaskId).zip(&self.tasks).filter_map(|(id, task)| Some((id, task.as_ref()?)))
    }

    /// Return whether every task that packets come to from outside, and that does not merely follow others, has come to
    /// its end.
    pub fn is_done(&self) -> bool {
        self.tasks.iter().flatten().filter(|task| task.keeps_running()).all(|task| task.state() == Pulled::Done)
    }

    /// Return the clock of the earliest packet that waits, in a module or in a task's hand.
    pub fn first_waiting(&self) -> Option<Clock> {
        let in_hand = self.tasks.iter().flatten().filter_map(Task::first_in_hand);
        self.graph.first_waiting().into_iter().chain(in_hand).min()
    }

    /// Bring through what waits in queues between the tasks, whatever the tree says; returns whether there was anything.
    pub fn drain(&mut self, cx: &mut Context) -> bool {
        let Pipeline { graph, tasks, .. } = self;
        let mut found = false;
        loop {
            let (mut ran, mut held_up) = (false, false);
            for task in tasks.iter_mut().flatten().filter(|task| task.is_inner()) {
                ran |= task.run(cx, graph).packets > 0;
                held_up |= task.is_held_up();
            }
            found |= ran;
            match (ran, held_up) {
                (true, _) => {}
                (false, true) => std::thread::yield_now(),
                (false, false) => return found,
            }
        }
    }

    /// Drop what is left in queues between the tasks: those that fill them end later than this pipeline.
    pub fn give_up(&mut self, cx: &mut Context) {
        let Pipeline { graph, tasks, .. } = self;
        tasks.iter_mut().flatten().filter(|task| task.is_inner()).for_each(|task| task.give_up(cx, graph));
    }

    /// Run one task that has work; returns what it did.
    #[inline]
    pub fn step(&mut self, cx: &mut Context) -> Ran {
        let now = cx.now();
        let Pipeline { graph, tree, tasks, .. } = self;
        match tree {
            Some(tree) => tree.run(now, &mut Runner { cx, graph, tasks }),
            None => Ran::default(),
        }
    }
}

struct Runner<'a> {
    cx: &'a mut Context,
    graph: &'a mut Graph,
    tasks: &'a mut [Option<Task>],
}

impl Leaves for Runner<'_> {
    #[inline]
    fn run(&mut self, task: TaskId) -> Ran {
        match self.tasks.get_mut(task.0 as usize) {
            Some(Some(task)) => task.run(self.cx, self.graph),
            _ => Ran::default(),
        }
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
