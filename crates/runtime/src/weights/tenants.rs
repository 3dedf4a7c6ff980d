//! Tenants: chains that a `cpu` relation names, with accounts of all that their packets cost.
//!
//! What a chain's own tasks take is not all that its packets cost. Before one waits in its chain's queue it is received and its chain
//! is found, and where that queue is full, this was in vain. The port's task does it for everybody, as a softirq does on a kernel: who
//! floods it takes its cycles from all others. So they are charged, by the rules of Khalid's dissertation, to whose packets they were
//! spent on (section 2.2.1), and a tenant's own tasks have what that leaves of its part (2.2.2). Section 5.1 names this, accounts for
//! packets that pass the kernel by, as future work.
//!
//! The arithmetic is `catena_isolation`'s [`Pool`], Figures 2.7 and 2.8. Its `Ledger` does not fit: that is for the kernel's quotas, which
//! stop a cgroup beside idle cores. Here a tenant may take what others leave, so its part is of the cycles that were spent, and known only
//! when they are; and no tenant works in another's time, so nobody is credited.

use catena_isolation::refill::{Core, Pool};
use catena_packet::BATCH;
use catena_plan::alpine::SchedulerTree;
use catena_plan::tasks::Division;

use super::{Counts, Work};
use crate::tenants::{Row, Tenants as Told};

/// What a tenant in debt has all the same, of its part: its flows are to notice, and to slow down.
const LEAST: f64 = 0.1;
/// Where the port's batches are so full, more packets wait than it reads, of whomever.
const FULL: f64 = 0.9 * BATCH as f64;
/// A queue that drops more than this part of what comes is one whose chain could do more.
const DROPS: f64 = 0.01;

/// The tenants of a run.
pub struct Tenants {
    all: Vec<Tenant>,
    /// By relation.
    relations: Vec<Relation>,
    /// Modules behind a queue that the port fills.
    entrances: Vec<usize>,
    /// Cycles of all tasks, and those that are no tenant's.
    cycles: f64,
    others: f64,
}

struct Tenant {
    /// Its tasks, and those of its modules that stand behind a queue that the port fills.
    tasks: Vec<usize>,
    entrances: Vec<usize>,
    row: Row,
}

/// Tenants whose parts are of one whole.
struct Relation {
    members: Vec<usize>,
    books: Books,
}

impl Tenants {
    /// Find the tenants of a division; `shares` are the chains of each `cpu` relation with their weights. None: there is none.
    pub fn of(division: &Division, shares: &[Vec<(String, f64)>]) -> Option<Tenants> {
        let modules = division.modules();
        let is_of = |module: usize, chain: &str| modules[module].split_once('/').is_some_and(|(own, _)| own == chain);
        let starts: Vec<usize> = division.tasks().map(|(start, _)| start).collect();
        let entrances: Vec<usize> = division.entrances_in(0).collect();
        let (mut all, mut relations) = (Vec::new(), Vec::new());
        for share in shares {
            let whole: f64 = share.iter().map(|(_, weight)| weight).sum();
            let mut members = Vec::new();
            for (chain, weight) in share {
                let tasks: Vec<usize> = (1..starts.len()).filter(|task| is_of(starts[*task], chain)).collect();
                let entrances: Vec<usize> = entrances.iter().copied().filter(|m| is_of(*m, chain)).collect();
                // Nobody counts the packets of a chain that they do not wait for.
                if !entrances.is_empty() {
                    members.push(all.len());
                    all.push(Tenant { tasks, entrances, row: Row::new(chain, weight / whole) });
                }
            }
            let parts = members.iter().map(|member| all[*member].row.part).collect();
            relations.push(Relation { members, books: Books::new(parts) });
        }
        (!all.is_empty()).then_some(Tenants { all, relations, entrances, cycles: 0.0, others: 0.0 })
    }

    /// Take what was counted between two looks into the accounts.
    pub fn account(&mut self, now: &Counts, before: &Counts) {
        let since = |now: &[Work], before: &[Work], at: usize| now[at].since(before[at]);
        let entered = |module: usize| since(&now.entrances, &before.entrances, module);
        let dropped = |module: usize| (now.dropped[module] - before.dropped[module]) as f64;
        let port = since(&now.tasks, &before.tasks, 0);
        let queues: f64 = self.entrances.iter().map(|module| entered(*module).cycles).sum();
        let came: f64 = self.entrances.iter().map(|module| entered(*module).packets).sum();
        // What is of no chain was received, too.
        let received = ((port.cycles - queues) / came.max(now.read - before.read).max(1.0)).max(0.0);
        let is_full = port.packets >= FULL * (now.runs - before.runs).max(1.0);
        let mut spent = Vec::new();
        for Tenant { tasks, entrances, row } in &mut self.all {
            let own: f64 = tasks.iter().map(|task| since(&now.tasks, &before.tasks, *task).cycles).sum();
            let entered = entrances.iter().map(|module| entered(*module));
            let (packets, queue) = entered.fold((0.0, 0.0), |(p, c), work| (p + work.packets, c + work.cycles));
            let dropped: f64 = entrances.iter().map(|module| dropped(*module)).sum();
            let receiving = packets * received;
            row.own_cycles += own;
            row.receive_cycles += receiving;
            row.queue_cycles += queue;
            row.packets += packets;
            row.dropped += dropped;
            let waits = dropped > DROPS * packets;
            spent.push(Spent { own, charged: receiving + queue, waits, wants: waits || is_full });
        }
        let all: f64 = (0..now.tasks.len()).map(|task| since(&now.tasks, &before.tasks, task).cycles).sum();
        self.cycles += all;
        self.others += all - spent.iter().map(|spent| spent.own + spent.charged).sum::<f64>();
        for Relation { members, books } in &mut self.relations {
            let spent: Vec<Spent> = members.iter().map(|member| spent[*member]).collect();
            books.step(&spent);
            for (at, member) in members.iter().enumerate() {
                let row = &mut self.all[*member].row;
                row.given_cycles += books.given(at);
                row.balance_cycles = books.balance(at);
            }
        }
    }

    /// Whether a task is a tenant's.
    pub fn has(&self, task: usize) -> bool {
        self.all.iter().any(|tenant| tenant.tasks.contains(&task))
    }

    /// Return what came of the tenants so far.
    pub fn told(&self) -> Told {
        let rows = self.all.iter().map(|tenant| tenant.row.clone()).collect();
        Told { accounts: rows, cycles: self.cycles, others_cycles: self.others }
    }

    /// The tree in which tenants that stand side by side have there what their books leave them. What they have together, and what the
    /// port has, stays.
    pub fn divide(&self, tree: &SchedulerTree) -> SchedulerTree {
        match tree {
            SchedulerTree::Fair(children) => {
                let mut weights: Vec<f64> = children.iter().map(|(weight, _)| f64::from(*weight)).collect();
                let owners: Vec<Option<usize>> = children.iter().map(|(_, child)| self.owner(child)).collect();
                self.relations.iter().for_each(|relation| relation.divide(&owners, &mut weights));
                let again = children.iter().zip(weights);
                let again = again.map(|((_, child), weight)| ((weight.round() as u32).max(1), self.divide(child)));
                SchedulerTree::Fair(again.collect())
            }
            SchedulerTree::Priority(levels) => {
                SchedulerTree::Priority(levels.iter().map(|level| self.divide(level)).collect())
            }
            other => other.clone(),
        }
    }

    /// The tenant that all tasks of a tree are of.
    fn owner(&self, tree: &SchedulerTree) -> Option<usize> {
        let tasks = tree.tasks();
        self.all.iter().position(|tenant| !tasks.is_empty() && tasks.iter().all(|task| tenant.tasks.contains(task)))
    }
}

impl Relation {
    /// Divide among its members what they have together, by what their books leave them.
    fn divide(&self, owners: &[Option<usize>], weights: &mut [f64]) {
        let place = |owner: &Option<usize>| self.members.iter().position(|member| Some(*member) == *owner);
        let here: Vec<(usize, usize)> =
            owners.iter().enumerate().filter_map(|(child, owner)| Some((child, place(owner)?))).collect();
        let mut had = vec![0.0; self.members.len()];
        here.iter().for_each(|(child, member)| had[*member] += weights[*child]);
        let leave = |member: usize| if had[member] > 0.0 { self.books.next(member) } else { 0.0 };
        let (all, left): (f64, f64) = (had.iter().sum(), (0..had.len()).map(leave).sum());
        if left <= 0.0 {
            return;
        }
        for (child, member) in here {
            weights[child] *= all / had[member] * leave(member) / left;
        }
    }
}

/// What a tenant spent in a period, in cycles.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    /// In its own tasks.
    own: f64,
    /// In the port's task, on its packets.
    charged: f64,
    /// Whether its packets found a full queue: it would have used more.
    waits: bool,
    /// Whether it might have: the same, or packets that nobody has read waited at the port.
    wants: bool,
}

/// The books of tenants whose parts are of one whole, in cycles. Pure.
struct Books {
    parts: Vec<f64>,
    pools: Vec<Pool>,
    /// What each was charged in the last period: as much is expected in the next.
    charged: Vec<f64>,
}

impl Books {
    fn new(parts: Vec<f64>) -> Books {
        Books { pools: vec![Pool::new(0); parts.len()], charged: vec![0.0; parts.len()], parts }
    }

    /// End a period in which so much was spent.
    fn step(&mut self, spent: &[Spent]) {
        let grants = self.grants(spent);
        for (at, (spent, grant)) in spent.iter().zip(grants).enumerate() {
            let pool = &mut self.pools[at];
            let grant = grant as i64;
            // As the period began it was given as much as in the one before.
            pool.runtime += grant - pool.quota - spent.own as i64;
            pool.refill(&mut Core { remain: 0, usage: spent.charged as i64 }, 0);
            // Neither who ends a flood nor who stood beside one is to feel it much longer. The last period may be a short one.
            let most = grant.max(pool.quota);
            pool.runtime = pool.runtime.clamp(-most, most);
            pool.quota = grant;
            pool.end_period(!spent.waits);
            self.charged[at] = spent.charged;
        }
    }

    /// Divide all that was spent: who wants no more has what it spent, at most its part; the others share what that leaves.
    fn grants(&self, spent: &[Spent]) -> Vec<f64> {
        let cost = |at: usize| spent[at].own + spent[at].charged;
        let all: f64 = (0..spent.len()).map(cost).sum();
        let whole: f64 = self.parts.iter().sum();
        let is_content = |at: &usize| !spent[*at].wants && cost(*at) <= all * self.parts[*at] / whole;
        let (content, others): (Vec<usize>, Vec<usize>) = (0..spent.len()).partition(is_content);
        let left = all - content.iter().map(|at| cost(*at)).sum::<f64>();
        let parts: f64 = others.iter().map(|at| self.parts[*at]).sum();
        (0..spent.len())
            .map(|at| if content.contains(&at) { cost(at) } else { left * self.parts[at] / parts })
            .collect()
    }

    /// Return what a member was given for the last period.
    fn given(&self, member: usize) -> f64 {
        self.pools[member].quota as f64
    }

    /// Return what a member's own tasks may take in the next period.
    fn next(&self, member: usize) -> f64 {
        let pool = &self.pools[member];
        ((pool.runtime + pool.gained) as f64 - self.charged[member]).max(LEAST * self.given(member))
    }

    /// Return what a member has beyond what it is given each period; below zero, what it owes.
    fn balance(&self, member: usize) -> f64 {
        let pool = &self.pools[member];
        (pool.runtime + pool.gained - pool.quota) as f64
    }
}

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
