//! The partition that serves the most packets, by what everything costs where it would stand.
//!
//! "A robust heuristic for maximizing performance is to minimize the number of tasks" (Lan's dissertation, §5.2.2); but a
//! queue, which costs cycles, also gives some back: behind a branch a batch holds a few packets of each class, behind a
//! queue that overflows it is full. Within a task all modules see the same part of their packets, so how full batches
//! are, and with it every cost, follows from where tasks begin alone ([`InPlace`]); what is left is the linear program of
//! [`super::program`]. What a classifier in front costs depends on the classes that it tells apart, so that sets of
//! them are tried too.
//!
//! Small graphs: all partitions, those first that could serve most ([`bound`]), until none is left that could serve more
//! than the best. Larger ones: the usual partitions, and from the best of them on one cut more or less at a time, as long
//! as that serves more.

use std::time::Instant;

use super::few;
use super::graph::{ClassId, Graph, Kind, Module, ModuleId};
use super::greedy::Whole;
use super::program::{Ask, FLOOR, Nothing, Queues, has_queue};
use super::promise::{Levels, Promise};
use super::strategy::{Alpine, Front, Proof, Refusal, Run};
use super::tasks::Tasks;
use catena_plan_model::profile::FULL_BATCH;

/// More partitions than this are not tried all.
const PARTITIONS: usize = 1 << 15;
/// Of up to so many classes every set may be told apart in front; of more, those that are promised least.
const SETS: usize = 6;
/// Of the most that a partition could serve, what has to be gained for it to be tried.
const GAIN: f64 = 1e-6;

/// A graph with the cost of everything where it stands if tasks begin at `starts`: modules in batches of as many packets
/// as come to them in their task, and the entrance of each queue, which is work of the task in front, as a module.
struct InPlace {
    graph: Graph,
    starts: Vec<bool>,
    /// For each module, which one it is here.
    new: Vec<ModuleId>,
}

impl InPlace {
    fn of(graph: &Graph, starts: &[bool]) -> InPlace {
        let packets = graph.packets();
        let mut here = InPlace { graph: Graph { queue_cycles: 0.0, ..graph.clone() }, starts: vec![], new: vec![] };
        here.graph.modules.clear();
        // The module that each one's task begins at.
        let mut begins: Vec<ModuleId> = Vec::new();
        for (m, module) in graph.modules.iter().enumerate() {
            let start = module.upstream.filter(|_| !starts[m]).map_or(m, |up| begins[up]);
            begins.push(start);
            let mut cycles = module.in_batches(batch(packets[m] / packets[start]));
            let mut upstream = module.upstream.map(|up| here.new[up]);
            if let Some(up) = module.upstream.filter(|_| starts[m] && has_queue(graph, m)) {
                let arriving = batch(packets[m] / packets[begins[up]]);
                // Every packet pays as if it were dropped; who gets in has that back.
                let ends = &graph.queue_ends;
                cycles = (cycles + ends.exit.in_batches(FULL_BATCH) - ends.drop).max(0.0);
                let entrance = ends.entrance.in_batches(arriving) + ends.drop;
                let kind = Kind::Function;
                here.add(Module { cycles: entrance, upstream, kind, cuttable: false, ..module.clone() }, false);
                upstream = Some(here.starts.len() - 1);
            }
            here.add(Module { cycles, upstream, ..module.clone() }, starts[m]);
            here.new.push(here.starts.len() - 1);
        }
        for class in &mut here.graph.classes {
            class.exit = here.new[class.exit];
        }
        here
    }

    fn add(&mut self, module: Module, start: bool) {
        self.graph.modules.push(module);
        self.starts.push(start);
    }

    /// The tasks of this graph as those of the one that it was made of.
    fn back(&self, tasks: Tasks) -> Tasks {
        let mut old = vec![None; self.starts.len()];
        self.new.iter().enumerate().for_each(|(m, n)| old[*n] = Some(m));
        let mut own = tasks.tasks;
        for task in &mut own {
            task.start = old[task.start].unwrap_or(task.start);
            task.modules = task.modules.iter().filter_map(|n| old[*n]).collect();
        }
        let task_of = self.new.iter().map(|n| tasks.task_of[*n]).collect();
        Tasks { tasks: own, task_of, ..tasks }
    }
}

/// The mean number of packets in those batches that bring any, of full ones of whose packets this part comes here.
fn batch(part: f64) -> f64 {
    let part = part.min(1.0);
    (FULL_BATCH * part / (1.0 - (1.0 - part).powf(FULL_BATCH))).clamp(1.0, FULL_BATCH)
}

/// The most packets that any weights could serve, when one ratio promise names all classes; infinity when it is not so.
///
/// A class that has the cycles `s w_j` leaves with at most `s w_j / C_j` packets, where `C_j` is what its path costs; and
/// with no more than the port reads of it. What the port reads, and the classifier with it, loads the worker beside the
/// classes: `s Σ w_j + P ρ Σ r_j <= hz`, when it sees the part `ρ` of what comes. The sum of the smaller of the two over
/// the classes is concave in `ρ` and bends only where they are equal for a class.
fn bound(graph: &Graph, whole: Option<&Whole>) -> f64 {
    let Some(Whole::Cpu(weights)) = whole else { return f64::INFINITY };
    let path = |j: ClassId, of: &dyn Fn(&Module) -> f64| graph.path(j).map(|m| of(&graph.modules[m])).sum::<f64>();
    let served: Vec<f64> = (0..weights.len()).map(|j| weights[j] / path(j, &Module::charged)).collect();
    let sources: Vec<Option<ModuleId>> = (0..weights.len()).map(|j| graph.path(j).last()).collect();
    let one = sources.windows(2).all(|pair| pair[0] == pair[1]);
    let port = if one { path(0, &|m| m.cycles - m.charged()) } else { 0.0 };
    let rates: f64 = graph.classes.iter().map(|class| class.packets).sum();
    let all: f64 = weights.iter().sum();
    let most = |rho: f64| -> f64 {
        let scale = (graph.hz - port * rho * rates).max(0.0) / all;
        graph.classes.iter().zip(&served).map(|(class, served)| (scale * served).min(rho * class.packets)).sum()
    };
    let bends = graph
        .classes
        .iter()
        .zip(&served)
        .map(|(class, served)| (graph.hz * served / (all * class.packets + port * rates * served)).min(1.0));
    bends.map(most).fold(0.0, f64::max)
}

/// A classifier in front, or none, and where tasks may begin then.
struct Way {
    apart: Vec<ClassId>,
    graph: Graph,
    /// Where tasks begin whatever is decided.
    given: Vec<bool>,
    free: Vec<ModuleId>,
}

/// A partition that keeps the promises.
struct Kept {
    served: f64,
    way: usize,
    starts: Vec<bool>,
    tasks: Tasks,
}

struct Search<'a> {
    run: &'a Run<'a>,
    ways: Vec<Way>,
    /// The ratio promise over all classes, if that is what is promised.
    whole: Option<Whole>,
    surplus: f64,
    end: Instant,
}

impl Run<'_> {
    /// The partition that serves the most packets.
    pub(super) fn most_packets(&self) -> Result<Alpine, Refusal> {
        let mut last = Err(Refusal::Starved(Vec::new()));
        // Queues that drop a little keep batches full; only where no partition holds that, they need not.
        let surpluses = if self.options.surplus > 0.0 { vec![self.options.surplus, 0.0] } else { vec![0.0] };
        let fronts = self.fronts();
        let (without, with): (Vec<_>, Vec<_>) = fronts.into_iter().partition(Vec::is_empty);
        let tries = match self.options.front {
            Front::Never => vec![without],
            Front::LastResort => vec![without, with],
            Front::WhenFaster => vec![without.into_iter().chain(with).collect()],
        };
        for sets in tries {
            for surplus in &surpluses {
                last = self.most_of(sets.clone(), *surplus);
                if !matches!(last, Err(Refusal::Starved(_))) {
                    return last;
                }
            }
        }
        last
    }

    fn most_of(&self, sets: Vec<Vec<ClassId>>, surplus: f64) -> Result<Alpine, Refusal> {
        let levels = Levels::of(&self.graph, self.promises).map_err(Refusal::Conflict)?;
        let whole = Whole::named(&self.graph, self.promises, &levels);
        let ways: Vec<Way> = sets.into_iter().map(|apart| self.way(apart)).collect::<Result<_, _>>()?;
        let partitions = |way: &Way| 1_usize.checked_shl(way.free.len() as u32).unwrap_or(usize::MAX);
        let all = ways.iter().map(partitions).fold(0, usize::saturating_add);
        let now = Instant::now();
        let end = now.checked_add(self.options.until.search(self.options.seconds)).unwrap_or(now);
        let search = Search { run: self, ways, whole, surplus, end };
        let (kept, proof) = if all <= PARTITIONS { search.all()? } else { (search.climb()?, Proof::Found) };
        let kept = kept.ok_or_else(|| Refusal::Starved(Vec::new()))?;
        let way = &search.ways[kept.way];
        Ok(Alpine {
            strategy: self.options.strategy,
            graph: way.graph.clone(),
            tasks: kept.tasks,
            proof,
            apart: way.apart.clone(),
            queues_charged: true,
        })
    }

    /// The sets of classes that a classifier in front may tell apart.
    fn fronts(&self) -> Vec<Vec<ClassId>> {
        let classes = &self.graph.classes;
        let mut known: Vec<ClassId> = (0..classes.len()).filter(|j| classes[*j].known_in_front).collect();
        if known.len() <= SETS {
            let chosen = |set: usize| (0..known.len()).filter(|n| set >> n & 1 == 1).map(|n| known[n]).collect();
            return (0..1 << known.len()).map(chosen).collect();
        }
        // Whoever is promised least, of what all its packets would take, has the most to drop before shared modules.
        let mut promised = vec![f64::INFINITY; classes.len()];
        for promise in self.promises {
            let (Promise::Cpu(members) | Promise::Throughput(members)) = promise else { continue };
            for (subject, weight) in members {
                let cycles = |j: &ClassId| self.graph.path(*j).map(|m| self.graph.modules[m].charged()).sum::<f64>();
                let all: f64 = subject.iter().map(|j| classes[*j].packets * cycles(j)).sum();
                subject.iter().for_each(|j| promised[*j] = weight / all);
            }
        }
        known.sort_by(|a, b| promised[*a].total_cmp(&promised[*b]));
        (0..=known.len()).map(|n| known[..n].to_vec()).collect()
    }

    fn way(&self, apart: Vec<ClassId>) -> Result<Way, Refusal> {
        let graph = if apart.is_empty() { self.graph.clone() } else { self.graph.classified(&apart) };
        let levels = Levels::of(&graph, self.promises).map_err(Refusal::Conflict)?;
        let spared = few::spared(&graph, self.promises, &levels);
        let given: Vec<bool> =
            graph.modules.iter().enumerate().map(|(m, module)| module.always_starts() || levels.cut[m]).collect();
        let free = (0..given.len()).filter(|m| !given[*m] && graph.modules[*m].cuttable && !spared[*m]).collect();
        Ok(Way { apart, graph, given, free })
    }
}

impl Search<'_> {
    /// All partitions, those that could serve most first; whether they could all be tried.
    fn all(&self) -> Result<(Option<Kept>, Proof), Refusal> {
        let mut candidates: Vec<(f64, usize, Vec<bool>)> = Vec::new();
        for (w, way) in self.ways.iter().enumerate() {
            for set in 0..1_usize << way.free.len() {
                let mut starts = way.given.clone();
                way.free.iter().enumerate().for_each(|(bit, m)| starts[*m] = set >> bit & 1 == 1);
                let here = InPlace::of(&way.graph, &starts);
                if few::may_keep(&here.graph, self.run.promises, &here.starts) {
                    candidates.push((bound(&here.graph, self.whole.as_ref()), w, starts));
                }
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut best: Option<Kept> = None;
        for (most, way, starts) in candidates {
            if best.as_ref().is_some_and(|best| most <= best.served * (1.0 + GAIN)) {
                break;
            }
            if Instant::now() > self.end {
                return best.map(|best| (Some(best), Proof::Found)).ok_or(Refusal::Unsolved);
            }
            best = better(best, self.weighed(way, &starts)?);
        }
        Ok((best, Proof::Most))
    }

    /// From the best of the usual partitions on, one cut more or less at a time.
    fn climb(&self) -> Result<Option<Kept>, Refusal> {
        let mut best: Option<Kept> = None;
        for (w, way) in self.ways.iter().enumerate() {
            for starts in usual(way, self.run.promises) {
                if Instant::now() > self.end && best.is_some() {
                    return Ok(best);
                }
                best = better(best, self.weighed(w, &starts)?);
            }
        }
        let Some(mut best) = best else { return Ok(None) };
        loop {
            let before = best.served;
            for m in &self.ways[best.way].free {
                if Instant::now() > self.end {
                    return Ok(Some(best));
                }
                let mut starts = best.starts.clone();
                starts[*m] = !starts[*m];
                let here = InPlace::of(&self.ways[best.way].graph, &starts);
                if bound(&here.graph, self.whole.as_ref()) > best.served * (1.0 + GAIN) {
                    let next = self.weighed(best.way, &starts)?;
                    best = match next {
                        Some(next) if next.served > best.served => next,
                        _ => best,
                    };
                }
            }
            if best.served <= before * (1.0 + GAIN) {
                return Ok(Some(best));
            }
        }
    }

    /// The weights that serve most with this partition; None: none keep the promises.
    fn weighed(&self, way: usize, starts: &[bool]) -> Result<Option<Kept>, Refusal> {
        let here = InPlace::of(&self.ways[way].graph, starts);
        let levels = Levels::of(&here.graph, self.run.promises).map_err(Refusal::Conflict)?;
        let ask = Ask::Weights(&here.starts, Queues::Charged, self.surplus);
        let sigma = self.run.by_level(&here.graph, &levels, |program| {
            let found = program.solve(ask)?;
            if found.worst_off < FLOOR { Err(Nothing::Impossible) } else { Ok(found.sigma) }
        });
        let sigma = match sigma {
            Ok(sigma) => sigma,
            Err(Nothing::Impossible) => return Ok(None),
            Err(nothing) => return Err(nothing.into()),
        };
        let mut tasks = Tasks::of(&here.graph, &levels, &here.starts, &sigma);
        tasks.fit(&here.graph, &levels);
        let tasks = here.back(tasks);
        Ok(Some(Kept { served: tasks.throughput(), way, starts: starts.to_vec(), tasks }))
    }
}

fn better(best: Option<Kept>, next: Option<Kept>) -> Option<Kept> {
    match (&best, &next) {
        (Some(old), Some(new)) if new.served <= old.served => best,
        (_, Some(_)) => next,
        _ => best,
    }
}

/// A queue behind each branch; behind the last ones only; and what the closed form says.
fn usual(way: &Way, promises: &[Promise]) -> Vec<Vec<bool>> {
    let downstream = way.graph.downstream();
    let branches = |m: ModuleId| way.graph.modules[m].upstream.is_some_and(|up| downstream[up].len() > 1);
    let starts = |begins: &dyn Fn(ModuleId) -> bool| {
        let mut starts = way.given.clone();
        way.free.iter().for_each(|m| starts[*m] = begins(*m));
        starts
    };
    let last = |m: ModuleId| branches(m) && !leads_to_branch(&downstream, m);
    let mut all = vec![starts(&branches), starts(&last)];
    let cut = Levels::of(&way.graph, promises).ok().and_then(|levels| {
        let whole = Whole::of(&way.graph, promises, &levels)?;
        whole.cut(&way.graph).ok()
    });
    all.extend(cut.map(|cuts| starts(&|m| cuts.starts[m])));
    all
}

fn leads_to_branch(downstream: &[Vec<ModuleId>], module: ModuleId) -> bool {
    downstream[module].len() > 1 || downstream[module].iter().any(|next| leads_to_branch(downstream, *next))
}

#[cfg(test)]
mod tests;
