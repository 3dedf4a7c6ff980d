//! The rates that tasks have to hold: what chains are promised, what they may have, and what the cards bring.
//!
//! Ratios alone do not see them. A chain that has all it may have leaves the rest of what a ratio would give it to the
//! others, so it is taken out of the ratio and held to its rate.

use catena_plan_alpine::graph::ClassId;
use catena_plan_alpine::measured::{Measured, weighed};
use catena_plan_alpine::promise::Subject;
use catena_plan_alpine::tasks::Tasks;
use catena_plan_alpine::{Alpine, Graph, Options, Promise, Proof, Refusal, solve, weigh};
use catena_plan_model::check::NOTHING_BPS;
use catena_plan_model::placement::{Link, Placement};
use catena_plan_model::problem::{Problem, ServerId};

use super::ROUNDING;

/// A chain that is planned all but this part of what it may have has all of it.
const FULL: f64 = 1e-3;
/// What bounds may be missed by, relative, by solvers' tolerances.
const SAME: f64 = 1e-4;

/// What may be missing of promised rates that are out of reach, before they are not asked for at all: tasks then give what they say,
/// and not nothing.
const MISSING: [f64; 7] = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// Bounds of what classes get together, packets per second of one worker.
pub(super) struct Bound {
    subject: Subject,
    /// Bits of a packet: what is promised, allowed and brought is bits.
    bits: f64,
    least: f64,
    most: Option<f64>,
    /// Whether the plan gives it all that it may have.
    full: bool,
}

/// The bounds of a server's chains, whose classes `classes` names, and of its cards.
pub(super) fn bounds(
    problem: &Problem,
    placement: &Placement,
    server: ServerId,
    classes: impl Fn(usize) -> Vec<ClassId>,
) -> Vec<Bound> {
    let Some(about) = problem.servers.get(server) else { return Vec::new() };
    let workers = f64::from(about.cores.max(1));
    let mut bounds = Vec::new();
    for (c, chain) in problem.chains.iter().enumerate() {
        let packets = |bps: f64| bps / chain.packet_bits() / workers;
        let planned = placement.rates_bps.get(c).copied().unwrap_or(0.0);
        let most = Some(chain.limit_bps()).filter(|bps| bps.is_finite());
        // Whom solvers leave nothing of a limit that is nothing has all of it, too, as the check says.
        let full = most.is_some_and(|most| most > 0.0 && planned + NOTHING_BPS >= most * (1.0 - FULL));
        bounds.push(Bound {
            subject: classes(c),
            bits: chain.packet_bits(),
            least: packets(chain.t_min_bps),
            most: most.map(packets),
            full,
        });
    }
    for (nic, bps) in about.nics_bps.iter().enumerate() {
        let by =
            |group: &&catena_plan_model::placement::Subgroup| (group.server, group.link) == (server, Link::Nic(nic));
        let mut chains: Vec<usize> = placement.subgroups.iter().filter(by).map(|group| group.chain).collect();
        chains.sort_unstable();
        chains.dedup();
        let Some(bits) = chains.first().and_then(|c| problem.chains.get(*c)).map(|chain| chain.packet_bits()) else {
            continue;
        };
        let subject = chains.iter().flat_map(|c| classes(*c)).collect();
        bounds.push(Bound { subject, bits, least: 0.0, most: Some(bps / bits / workers), full: false });
    }
    if let Some(chain) = problem.chains.iter().find(|chain| chain.nodes.is_empty()) {
        let subject = (0..problem.chains.len()).flat_map(&classes).collect();
        let all: f64 = about.nics_bps.iter().sum();
        let bits = chain.packet_bits();
        bounds.push(Bound { subject, bits, least: 0.0, most: Some(all / bits / workers), full: false });
    }
    bounds.retain(|bound| !bound.subject.is_empty());
    bounds
}

impl Bound {
    /// Ask for nothing where nothing comes.
    pub(super) fn forget_if(&mut self, is_silent: impl Fn(&[ClassId]) -> bool) {
        if is_silent(&self.subject) {
            (self.least, self.full) = (0.0, false);
        }
    }

    fn has(&self, tasks: &Tasks) -> f64 {
        self.subject.iter().filter_map(|j| tasks.classes.get(*j)).map(|class| class.packets).sum()
    }

    fn holds(&self, tasks: &Tasks) -> bool {
        let has = self.has(tasks);
        has >= self.least * (1.0 - SAME) && self.most.is_none_or(|most| has <= most * (1.0 + SAME))
    }

    /// Whether it is held, and has all that it may have if the plan says so: a ratio of planned rates leaves it less where tasks give
    /// others less than was planned.
    fn is_kept(&self, tasks: &Tasks) -> bool {
        let all = self.most.filter(|_| self.full).unwrap_or(0.0);
        self.holds(tasks) && self.has(tasks) >= all * (1.0 - ROUNDING)
    }

    /// How many times as much would have to come as `graph` says for what is promised to be there.
    pub(super) fn missing(&self, graph: &Graph) -> f64 {
        let comes: f64 = self.subject.iter().filter_map(|j| graph.classes.get(*j)).map(|class| class.packets).sum();
        if comes > 0.0 { self.least.max(if self.full { self.most.unwrap_or(0.0) } else { 0.0 }) / comes } else { 1.0 }
    }

    /// What tasks are asked to hold, all but a part that may be `missing` of it; without any the promise is not asked for.
    fn promise(&self, full: bool, missing: Option<f64>) -> Promise {
        let subject = self.subject.clone();
        let promised = missing.map_or(0.0, |missing| self.least * (1.0 - missing));
        let least = match self.most {
            // What it has beyond its promise leaves some room for those who have less than their part.
            Some(most) if full && self.full => promised.max(most * (1.0 - ROUNDING / 2.0)),
            _ => promised,
        };
        Promise::Rate { subject, least, most: self.most }
    }
}

/// The bounds where packets have as many bits as `bits` says of those of some classes; None: as many as planned.
pub(super) fn sized(bounds: &[Bound], bits: impl Fn(&Subject) -> Option<f64>) -> Vec<Bound> {
    let sized = |bound: &Bound| {
        let (subject, now) = (bound.subject.clone(), bits(&bound.subject).unwrap_or(bound.bits));
        let times = bound.bits / now;
        let (least, most) = (bound.least * times, bound.most.map(|most| most * times));
        Bound { subject, bits: now, least, most, full: bound.full }
    };
    bounds.iter().map(sized).collect()
}

/// The ratios of those who are not silent, where bounds are now of packets of other sizes than planned: what is shared beyond promises
/// is bits.
pub(super) fn heard(
    promises: &[Promise],
    (planned, now): (&[Bound], &[Bound]),
    is_silent: impl Fn(&[ClassId]) -> bool,
) -> Vec<Promise> {
    let times = |subject: &Subject| {
        let both = planned.iter().zip(now).find(|(bound, _)| bound.subject == *subject);
        both.map_or(1.0, |(planned, now)| planned.bits / now.bits)
    };
    let of = |members: &[(Subject, f64)]| -> Vec<(Subject, f64)> {
        members.iter().filter(|(subject, _)| !is_silent(subject)).cloned().collect()
    };
    let heard = |promise: &Promise| match promise {
        Promise::Cpu(members) => Promise::Cpu(of(members)),
        Promise::Throughput(members) => Promise::Throughput(of(members)),
        Promise::Beyond(members) => {
            let own = members.iter().filter(|(subject, ..)| !is_silent(subject));
            Promise::Beyond(
                own.map(|(subject, weight, less)| (subject.clone(), weight * times(subject), *less)).collect(),
            )
        }
        Promise::Priority(_) | Promise::Rate { .. } => promise.clone(),
    };
    let is_one = |promise: &Promise| match promise {
        Promise::Cpu(members) | Promise::Throughput(members) => members.len() > 1,
        Promise::Beyond(members) => members.len() > 1,
        Promise::Priority(_) | Promise::Rate { .. } => true,
    };
    promises.iter().map(heard).filter(is_one).collect()
}

/// The tasks of `graph` that keep `promises` and hold `bounds`; `entries` are the modules by which chains are entered. Where
/// that cannot be, what may be had is held before what is promised, for that the tree enforces: whoever promised is told.
///
/// # Errors
/// Why no weights are found at all.
pub(super) fn hold(
    graph: &Graph,
    (promises, implied): (&[Promise], &[Promise]),
    bounds: &[Bound],
    entries: &[usize],
    options: Options,
) -> Result<Alpine, Refusal> {
    let plain = match solve(graph, &beyond(&[promises, implied].concat(), bounds, Some(0.0)), options) {
        Ok(plain) if bounds.iter().all(|bound| bound.is_kept(&plain.tasks)) => return Ok(plain),
        Ok(plain) => Some(plain),
        // Ratios may be out of reach where less comes of a chain than its part, which the bounds know.
        Err(Refusal::Starved(_) | Refusal::Unsolved) => None,
        Err(other) => return Err(other),
    };
    let mut starts: Vec<bool> = graph.modules.iter().map(|module| module.always_starts()).collect();
    plain.iter().flat_map(|plain| &plain.tasks.tasks).for_each(|task| starts[task.start] = true);
    // Where the fewest tasks do not hold them, every chain waits in a queue of its own.
    let mut each = starts.clone();
    entries.iter().for_each(|module| each[*module] = true);
    // Where no partition was found in time, classes of one chain may need queues of their own behind its branches.
    let branches = options.until.is_over().then(|| behind_branches(graph, &each));
    let mut last = Refusal::Unsolved;
    for (full, all) in tries(promises, implied, bounds) {
        let tries = [plain.as_ref().map(|_| &starts), Some(&each), branches.as_ref()];
        for starts in tries.into_iter().flatten() {
            match weigh(graph, &all, starts, options) {
                Ok(tasks) if full && !has_parts(&tasks, promises, bounds) => {}
                Ok(tasks) => {
                    let as_few = plain.as_ref().filter(|plain| plain.tasks.tasks.len() == tasks.tasks.len());
                    return Ok(Alpine {
                        strategy: options.strategy,
                        graph: graph.clone(),
                        tasks,
                        proof: as_few.map_or(Proof::Found, |plain| plain.proof),
                        apart: Vec::new(),
                        queues_charged: true,
                    });
                }
                Err(refusal) => last = refusal,
            }
        }
    }
    Err(last)
}

/// A task begins also behind every branch, wherever one may.
fn behind_branches(graph: &Graph, starts: &[bool]) -> Vec<bool> {
    let mut below = vec![0; graph.modules.len()];
    graph.modules.iter().filter_map(|module| module.upstream).for_each(|up| below[up] += 1);
    let begins = |m: usize| graph.modules[m].cuttable && graph.modules[m].upstream.is_some_and(|up| below[up] > 1);
    starts.iter().enumerate().map(|(m, given)| *given || begins(m)).collect()
}

/// What the tasks shall keep, the most wanted first; with each, whether who has all that it may have is out of its ratios. Before
/// promised rates are given up the planned ones are: with all that comes and is dropped, these may be out of reach.
fn tries(promises: &[Promise], implied: &[Promise], bounds: &[Bound]) -> impl Iterator<Item = (bool, Vec<Promise>)> {
    let both = [promises, implied].concat();
    let [all, written] = [true, false];
    // What is shown is what is promised, unless solvers cannot come so near.
    let [near, far] = [Some(SAME / 2.0), Some(ROUNDING / 2.0)];
    let tries = [
        (true, near, all),
        (true, far, all),
        (false, near, all),
        (false, far, all),
        (true, near, written),
        (true, far, written),
        (false, near, written),
        (false, far, written),
    ];
    let parts = MISSING
        .into_iter()
        .map(Some)
        .chain([None])
        .flat_map(move |missing| [(true, missing, all), (false, missing, all)]);
    let without = implied.is_empty();
    tries.into_iter().chain(parts).filter(move |(_, _, all)| *all || !without).map(move |(full, missing, all)| {
        let ratios = beyond(if all { &both[..] } else { promises }, bounds, missing);
        let mut kept = if full { without_full(&ratios, bounds) } else { ratios };
        kept.extend(bounds.iter().map(|bound| bound.promise(full, missing)));
        (full, kept)
    })
}

/// The ratios of what is left with what is promised, which is not part of them, but for a part that may be `missing` of it.
fn beyond(ratios: &[Promise], bounds: &[Bound], missing: Option<f64>) -> Vec<Promise> {
    let promised = |subject: &Subject| {
        let own = bounds.iter().filter(|bound| bound.subject == *subject).map(|bound| bound.least).fold(0.0, f64::max);
        own * (1.0 - missing.unwrap_or(1.0))
    };
    let one = |ratio: &Promise| match ratio {
        Promise::Beyond(members) => Promise::Beyond(
            members.iter().map(|(subject, weight, _)| (subject.clone(), *weight, promised(subject))).collect(),
        ),
        other => other.clone(),
    };
    ratios.iter().map(one).collect()
}

/// The tasks of a plan with weights for the costs that were measured.
pub(super) fn weigh_again(
    plan: &Alpine,
    (promises, implied): (&[Promise], &[Promise]),
    bounds: &[Bound],
    costs: &Measured,
    options: Options,
) -> Option<Tasks> {
    let plain = std::iter::once((false, beyond(&[promises, implied].concat(), bounds, Some(0.0))));
    plain.chain(tries(promises, implied, bounds)).enumerate().find_map(|(n, (full, all))| {
        let tasks = weighed(&plan.graph, &plan.tasks, &all, costs, options).ok()?;
        let holds = n > 0 || bounds.iter().all(|bound| bound.is_kept(&tasks));
        (holds && (!full || has_parts(&tasks, promises, bounds))).then_some(tasks)
    })
}

/// Whether who has not all that it may have has its part of every ratio.
fn has_parts(tasks: &Tasks, promises: &[Promise], bounds: &[Bound]) -> bool {
    promises.iter().all(|promise| {
        let (members, cpu) = match promise {
            Promise::Cpu(members) => (members, true),
            Promise::Throughput(members) => (members, false),
            // What is implied is not asked for, nor is what it was made of.
            Promise::Beyond(_) | Promise::Priority(_) | Promise::Rate { .. } => return true,
        };
        let has = |class: &ClassId| {
            let served = &tasks.classes[*class];
            if cpu { served.cycles } else { served.packets }
        };
        let part = |(subject, weight): &(Subject, f64)| subject.iter().map(has).sum::<f64>() / weight;
        let most = members.iter().map(part).fold(0.0, f64::max);
        members.iter().all(|member| part(member) >= most * (1.0 - FULL) || is_full(&member.0, bounds))
    })
}

/// Whether all classes of a subject are of chains that have all that they may have.
fn is_full(subject: &Subject, bounds: &[Bound]) -> bool {
    subject.iter().all(|class| bounds.iter().any(|bound| bound.full && bound.subject.contains(class)))
}

/// The ratios without those who have all that they may have. How classes of one chain share what that has is left as it is.
fn without_full(promises: &[Promise], bounds: &[Bound]) -> Vec<Promise> {
    let within = |promise: &Promise| {
        let classes: Vec<ClassId> = promise.subjects().into_iter().flatten().copied().collect();
        let one = |bound: &&Bound| bound.full && classes.iter().all(|class| bound.subject.contains(class));
        bounds.iter().any(|bound| one(&bound))
    };
    let open = |members: &[(Subject, f64)]| -> Vec<(Subject, f64)> {
        members.iter().filter(|(subject, _)| !is_full(subject, bounds)).cloned().collect()
    };
    let mut left = Vec::new();
    for promise in promises {
        match promise {
            Promise::Cpu(members) if !within(promise) => left.push(Promise::Cpu(open(members))),
            Promise::Throughput(members) if !within(promise) => left.push(Promise::Throughput(open(members))),
            Promise::Beyond(members) if !within(promise) => {
                let open = members.iter().filter(|(subject, ..)| !is_full(subject, bounds));
                left.push(Promise::Beyond(open.cloned().collect()));
            }
            other => left.push(other.clone()),
        }
    }
    left.retain(|promise| matches!(promise, Promise::Rate { .. }) || promise.subjects().len() > 1);
    left
}
