//! The scheduler tree of a worker: which task runs next.
//!
//! Leaves are tasks; inner nodes say how their children share the worker (Lan, "An Architecture for Network
//! Function Virtualization", §5.1.2, Figure 5.2). A child that finds no packets costs one look and the
//! next in turn is tried, so the worker never rests while any task has work.

use crate::pipeline::TaskId;

/// What one run of a task did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Packets taken in; 0 means that there was nothing to do.
    pub packets: u64,
    /// Bits of those packets.
    pub bits: u64,
    /// Cycles spent.
    pub cycles: u64,
}

/// What runs the leaves.
pub trait Leaves {
    /// Run a task once.
    fn run(&mut self, task: TaskId) -> Ran;
}

/// The unit that a rate is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets per second.
    Packets,
    /// Bits per second, of whole packets as they came in.
    Bits,
}

/// A run that takes so many times what is usual was interrupted: the core was another's for a while. A task does not pay
/// for that; one of small weight would have no turn for seconds after.
const INTERRUPTED: u64 = 16;
/// The most cycles that a first run is paid for: it finds nothing where it needs it, and nobody knows yet what is usual.
const FIRST: u64 = 1 << 20;
/// The usual cost follows a run's by one part of so many.
const FOLLOWS: u64 = 16;

/// From here on what children used is counted from half of it: with a weight of 1 that is after half an hour.
const MOST_USED: u64 = 1 << 62;

/// A node of the scheduler tree.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A task.
    Task(TaskId),
    /// The first child that has work runs.
    Priority(Vec<Tree>),
    /// Children share cycles by weight.
    Fair(Vec<Weighted>),
    /// Children take turns.
    RoundRobin(Vec<Tree>, usize),
    /// The child runs no faster than a rate.
    Limit(Box<Tree>, Allowance),
}

/// A child of a weighted fair node.
#[derive(Clone, Debug)]
pub struct Weighted {
    weight: u64,
    /// Cycles used, divided by the weight: the child with the least runs next.
    used: u64,
    /// How far it may stay behind the others while it has nothing to do, in the same unit.
    saves: u64,
    /// Whoever had nothing to do for longer, in ns, slept.
    sleeps: u64,
    /// When it last ran, in ns.
    ran: u64,
    /// Had nothing to do in this look.
    idle: bool,
    /// Cycles that its runs usually take per packet, times 256; 0: not known yet.
    usual: u64,
    tree: Tree,
}

/// A token bucket that may go into debt: a task runs a whole batch, and pays after.
#[derive(Clone, Debug)]
pub struct Allowance {
    unit: Unit,
    /// Tokens per second.
    rate: u64,
    /// Most tokens saved up.
    burst: i64,
    tokens: i64,
    /// Time that `tokens` was right at, in ns.
    at: u64,
    /// Tokens times 10⁹ that did not make a whole one.
    rest: u64,
}

impl Allowance {
    fn refill(&mut self, now: u64) {
        let ns = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let gained = u128::from(ns) * u128::from(self.rate) + u128::from(self.rest);
        self.rest = (gained % 1_000_000_000) as u64;
        let whole = i64::try_from(gained / 1_000_000_000).unwrap_or(i64::MAX);
        self.tokens = self.tokens.saturating_add(whole).min(self.burst);
    }
}

impl Tree {
    /// Make a node whose children share cycles by weight.
    pub fn fair(children: impl IntoIterator<Item = (u32, Tree)>) -> Tree {
        let share = |(weight, tree): (u32, Tree)| Weighted {
            weight: u64::from(weight.max(1)),
            used: 0,
            saves: 0,
            sleeps: 0,
            ran: 0,
            idle: false,
            usual: 0,
            tree,
        };
        Tree::Fair(children.into_iter().map(share).collect())
    }

    /// Let those of a fair node's children for which `who` is true save up their part of so many of the node's `cycles` while they
    /// have nothing to do: who is brought packets by fits and starts has its part in the end. Others have it later by as much. Who
    /// had nothing to do for longer than `time`, in ns, slept, and wakes up with nothing.
    #[must_use]
    pub fn saving(mut self, (time, cycles): (u64, u64), who: impl Fn(&Tree) -> bool) -> Tree {
        if let Tree::Fair(shares) = &mut self {
            let all = shares.iter().map(|share| share.weight).sum::<u64>().max(1);
            for share in shares.iter_mut().filter(|share| who(&share.tree)) {
                (share.saves, share.sleeps) = (turns(cycles, all), time);
            }
        }
        self
    }

    /// Make a node whose children take turns.
    pub fn round_robin(children: impl IntoIterator<Item = Tree>) -> Tree {
        Tree::RoundRobin(children.into_iter().collect(), 0)
    }

    /// Make a node that lets its child run at `rate` units per second, with up to `burst` saved up.
    pub fn limit(child: Tree, unit: Unit, rate: u64, burst: u64) -> Tree {
        let burst = i64::try_from(burst).unwrap_or(i64::MAX);
        Tree::Limit(Box::new(child), Allowance { unit, rate, burst, tokens: burst, at: 0, rest: 0 })
    }

    /// Return all tasks of the tree.
    pub fn tasks(&self) -> Vec<TaskId> {
        match self {
            Tree::Task(task) => vec![*task],
            Tree::Priority(children) | Tree::RoundRobin(children, _) => children.iter().flat_map(Tree::tasks).collect(),
            Tree::Fair(shares) => shares.iter().flat_map(|s| s.tree.tasks()).collect(),
            Tree::Limit(child, _) => child.tasks(),
        }
    }

    /// Take a task out of the tree; nodes left without children stay and never have work.
    pub fn remove(&mut self, task: TaskId) {
        let is_it = |tree: &Tree| matches!(tree, Tree::Task(t) if *t == task);
        match self {
            Tree::Task(t) if *t == task => *self = Tree::Priority(Vec::new()),
            Tree::Task(_) => {}
            Tree::Priority(children) | Tree::RoundRobin(children, _) => {
                children.retain(|child| !is_it(child));
                children.iter_mut().for_each(|child| child.remove(task));
            }
            Tree::Fair(shares) => {
                shares.retain(|s| !is_it(&s.tree));
                shares.iter_mut().for_each(|s| s.tree.remove(task));
            }
            Tree::Limit(child, _) => child.remove(task),
        }
    }

    /// Go on where a tree of the same shape, with other weights or rates, stopped: who has saved up something has it, limits have debts.
    pub fn resume(&mut self, before: &Tree) {
        match (self, before) {
            (Tree::Priority(own), Tree::Priority(old)) | (Tree::RoundRobin(own, _), Tree::RoundRobin(old, _)) => {
                own.iter_mut().zip(old).for_each(|(own, old)| own.resume(old));
            }
            (Tree::Fair(own), Tree::Fair(old)) => {
                for (own, old) in own.iter_mut().zip(old) {
                    (own.used, own.usual, own.ran) = (old.used, old.usual, old.ran);
                    own.tree.resume(&old.tree);
                }
            }
            (Tree::Limit(child, own), Tree::Limit(before, old)) if own.unit == old.unit => {
                (own.tokens, own.at, own.rest) = (old.tokens.min(own.burst), old.at, old.rest);
                child.resume(before);
            }
            _ => {}
        }
    }

    /// Run one task that has work, if any. `now` in ns.
    pub fn run(&mut self, now: u64, leaves: &mut impl Leaves) -> Ran {
        match self {
            Tree::Task(task) => leaves.run(*task),
            Tree::Priority(children) => first(children.iter_mut(), now, leaves),
            Tree::RoundRobin(children, next) => {
                let start = (*next).min(children.len());
                for offset in 0..children.len() {
                    let i = (start + offset) % children.len();
                    let ran = children[i].run(now, leaves);
                    if ran.packets > 0 {
                        *next = (i + 1) % children.len();
                        return ran;
                    }
                }
                Ran::default()
            }
            Tree::Fair(shares) => run_fair(shares, now, leaves),
            Tree::Limit(child, bucket) => {
                bucket.refill(now);
                if bucket.tokens <= 0 {
                    return Ran::default();
                }
                let ran = child.run(now, leaves);
                let cost = if bucket.unit == Unit::Packets { ran.packets } else { ran.bits };
                bucket.tokens = bucket.tokens.saturating_sub_unsigned(cost);
                ran
            }
        }
    }
}

impl Weighted {
    /// Pay for a run. What is usual follows what was paid, so a task that from now on takes much more pays for it soon.
    fn pay(&mut self, ran: Ran) {
        let most = if self.usual > 0 { self.usual.saturating_mul(INTERRUPTED * ran.packets) >> 8 } else { FIRST };
        let cycles = ran.cycles.min(most);
        let each = ((cycles << 8) / ran.packets.max(1)).max(1);
        let usual = if self.usual > 0 { self.usual } else { each };
        self.usual = (usual - usual / FOLLOWS + each / FOLLOWS).max(1);
        self.used += turns(cycles, self.weight) + 1;
    }
}

/// Cycles divided by a weight, which is up to 2^32: times 2^20, so that a short run of a large weight is not rounded away.
fn turns(cycles: u64, weight: u64) -> u64 {
    (cycles.min(1 << 42) << 20) / weight
}

fn first<'a>(children: impl Iterator<Item = &'a mut Tree>, now: u64, leaves: &mut impl Leaves) -> Ran {
    children.map(|child| child.run(now, leaves)).find(|ran| ran.packets > 0).unwrap_or_default()
}

/// Stride scheduling by cycles (Waldspurger and Weihl, "Stride Scheduling: Deterministic Proportional-Share
/// Resource Management", §2): the child that used least runs; one that had nothing to do saves up no more for later than
/// [`Tree::saving`] lets it.
fn run_fair(shares: &mut [Weighted], now: u64, leaves: &mut impl Leaves) -> Ran {
    let mut served = Ran::default();
    let mut level = 0;
    while let Some(share) = shares.iter_mut().filter(|s| !s.idle).min_by_key(|s| s.used) {
        level = share.used;
        served = share.tree.run(now, leaves);
        if served.packets > 0 {
            share.ran = now;
            share.pay(served);
            break;
        }
        share.idle = true;
    }
    for share in shares.iter_mut().filter(|s| s.idle) {
        share.idle = false;
        let slept = now.saturating_sub(share.ran) > share.sleeps;
        share.used = share.used.max(if slept { level } else { level.saturating_sub(share.saves) });
    }
    // A worker runs for years.
    if level > MOST_USED {
        shares.iter_mut().for_each(|share| share.used = share.used.saturating_sub(MOST_USED / 2));
    }
    served
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
