//! What is promised to classes, and the levels that priorities order them into.
//!
//! Lan's dissertation, §5.2.1: priority, ratios of CPU time, ratios of throughput. A subject is a set of
//! classes that are promised something together: their cycles and packets are added up, which keeps every
//! promise linear.

use serde::{Deserialize, Serialize};

use super::graph::{ClassId, Graph, Kind, Module, ModuleId};
use super::program::has_queue;
use super::program::rates::ROOM;

/// Classes that a promise is about together.
pub type Subject = Vec<ClassId>;

/// A promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// Earlier subjects are always scheduled before later ones.
    Priority(Vec<Subject>),
    /// Cycles in the ratio of the weights.
    Cpu(Vec<(Subject, f64)>),
    /// Packets per second, at the exit, in the ratio of the weights.
    Throughput(Vec<(Subject, f64)>),
    /// Packets per second, at the exit, in the ratio of the weights: of each, those beyond so many. The dissertation has ratios of
    /// all packets; where rates are promised besides, what is left is what a ratio is of.
    Beyond(Vec<(Subject, f64, f64)>),
    /// Packets per second within bounds: what an operator promised a chain, and what it may have (Lemur, §3.1: `t_min` and
    /// `t_max`). The dissertation has no such promise; it leaves rates to what comes of the ratios.
    Rate {
        /// Who.
        subject: Subject,
        /// At the exits at least.
        least: f64,
        /// Behind the ports at most; None: any number.
        most: Option<f64>,
    },
}

/// Promises that contradict each other or make no sense, whatever the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Each is to come before the other, directly or by others.
    PriorityCycle(ClassId),
    /// Classes share something in a ratio, but one has priority over the other.
    RatioAcrossPriorities(ClassId, ClassId),
    /// A class stands on both sides of a promise.
    Twice(ClassId),
    /// There is no such class.
    NoClass(ClassId),
    /// A weight is not a positive number.
    Weight,
    /// A rate that is no number, or is to be at least more than it may be.
    Rate,
    /// A subject without classes.
    Empty,
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Conflict::PriorityCycle(class) => write!(f, "class {class} is to come before itself"),
            Conflict::RatioAcrossPriorities(a, b) => {
                write!(f, "classes {a} and {b} share in a ratio, but one has priority over the other")
            }
            Conflict::Twice(class) => write!(f, "class {class} stands on both sides of a promise"),
            Conflict::NoClass(class) => write!(f, "there is no class {class}"),
            Conflict::Weight => write!(f, "a weight is a positive number"),
            Conflict::Rate => write!(f, "a rate is to be at least more than it may be"),
            Conflict::Empty => write!(f, "a promise to nobody"),
        }
    }
}

impl std::error::Error for Conflict {}

impl Promise {
    /// The subjects.
    #[must_use]
    pub fn subjects(&self) -> Vec<&Subject> {
        match self {
            Promise::Priority(subjects) => subjects.iter().collect(),
            Promise::Cpu(members) | Promise::Throughput(members) => members.iter().map(|(s, _)| s).collect(),
            Promise::Beyond(members) => members.iter().map(|(s, ..)| s).collect(),
            Promise::Rate { subject, .. } => vec![subject],
        }
    }

    fn check(&self, classes: usize) -> Result<(), Conflict> {
        let mut seen = vec![false; classes];
        for subject in self.subjects() {
            if subject.is_empty() {
                return Err(Conflict::Empty);
            }
            for class in subject {
                match seen.get_mut(*class) {
                    None => return Err(Conflict::NoClass(*class)),
                    Some(true) => return Err(Conflict::Twice(*class)),
                    Some(seen) => *seen = true,
                }
            }
        }
        if let Promise::Cpu(members) | Promise::Throughput(members) = self
            && members.iter().any(|(_, weight)| !(weight.is_finite() && *weight > 0.0))
        {
            return Err(Conflict::Weight);
        }
        if let Promise::Beyond(members) = self {
            let number = |of: &f64| of.is_finite() && *of >= 0.0;
            if members.iter().any(|(_, weight, _)| !(number(weight) && *weight > 0.0)) {
                return Err(Conflict::Weight);
            }
            if members.iter().any(|(.., promised)| !number(promised)) {
                return Err(Conflict::Rate);
            }
        }
        if let Promise::Rate { least, most, .. } = self
            && !(least.is_finite() && *least >= 0.0 && most.is_none_or(|most| most.is_finite() && most >= *least))
        {
            return Err(Conflict::Rate);
        }
        Ok(())
    }
}

/// Classes and modules ordered by priority.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// Number of levels, at least 1.
    pub count: usize,
    /// Level of each class; 0 comes first. Classes that share in a ratio have the same level; those that no
    /// priority names have the last.
    pub class: Vec<usize>,
    /// Level of each module: the first of those of its classes.
    pub module: Vec<usize>,
    /// Whether a task must begin at the module so that no class is served along with one that comes first.
    pub cut: Vec<bool>,
}

impl Levels {
    /// Order the classes of `graph` by `promises`.
    ///
    /// Lan's dissertation, Algorithm 1, asks that later tasks of the lower class have lower priority than
    /// the tasks of the higher one. It leaves open that a task that both need also runs modules of the lower
    /// class alone, which then are served with the higher one's priority. Here a task that serves the lower
    /// class and not the higher one begins where the two part.
    ///
    /// # Errors
    /// Promises that contradict each other.
    pub fn of(graph: &Graph, promises: &[Promise]) -> Result<Levels, Conflict> {
        let count = graph.classes.len();
        promises.iter().try_for_each(|promise| promise.check(count))?;
        let mut group: Vec<usize> = (0..count).collect();
        for promise in promises {
            let joined: Vec<ClassId> = match promise {
                Promise::Priority(_) | Promise::Rate { .. } => continue,
                Promise::Cpu(_) | Promise::Throughput(_) | Promise::Beyond(_) => {
                    promise.subjects().into_iter().flatten().copied().collect()
                }
            };
            let target = joined.iter().map(|j| group[*j]).min().unwrap_or(0);
            let old: Vec<usize> = joined.iter().map(|j| group[*j]).collect();
            group.iter_mut().filter(|g| old.contains(g)).for_each(|g| *g = target);
        }
        let mut before: Vec<(ClassId, ClassId)> = Vec::new();
        for promise in promises {
            let Promise::Priority(subjects) = promise else { continue };
            for pair in subjects.windows(2) {
                let [high, low] = pair else { continue };
                before.extend(high.iter().flat_map(|a| low.iter().map(|b| (*a, *b))));
            }
        }
        if let Some((a, b)) = before.iter().find(|(a, b)| group[*a] == group[*b]) {
            return Err(Conflict::RatioAcrossPriorities(*a, *b));
        }
        // The longest way from the first: rises at most once for each group, or there is a cycle.
        let mut level = vec![0; count];
        for round in 0.. {
            let mut moved = None;
            for (a, b) in &before {
                let (high, low) = (level[group[*a]], level[group[*b]]);
                if low <= high {
                    level[group[*b]] = high + 1;
                    moved = Some(*b);
                }
            }
            match moved {
                None => break,
                Some(class) if round > count => return Err(Conflict::PriorityCycle(class)),
                Some(_) => {}
            }
        }
        let last = level.iter().copied().max().unwrap_or(0);
        let named: Vec<usize> = before.iter().flat_map(|(a, b)| [group[*a], group[*b]]).collect();
        let class: Vec<usize> = group.iter().map(|g| if named.contains(g) { level[*g] } else { last }).collect();
        let module = module_levels(graph, &class);
        let cut = cuts(graph, &before, &class);
        Ok(Levels { count: last + 1, class, module, cut })
    }
}

impl Levels {
    /// Whether all classes of `subject` come later than `level`.
    #[must_use]
    pub fn is_later(&self, subject: &[ClassId], level: usize) -> bool {
        subject.iter().all(|class| self.class[*class] > level)
    }

    /// Cycles per second that levels after `level` need for what `promises` say that they have at least.
    #[must_use]
    pub fn reserved(&self, graph: &Graph, promises: &[Promise], level: usize) -> f64 {
        let packets = needed(graph, promises);
        let later = (0..graph.classes.len()).filter(|class| self.class[*class] > level);
        let cycles = |class: ClassId| -> f64 {
            let own = || graph.path(class).filter(|m| self.module[*m] > level);
            // The path begins at the exit. What has a queue of its own says what that costs.
            let queue = own().last().is_some_and(|first| has_queue(graph, first));
            own().map(|m| graph.modules[m].cycles).sum::<f64>() + if queue { graph.queue_cycles } else { 0.0 }
        };
        later.map(|class| packets[class] * cycles(class)).sum::<f64>() * ROOM
    }
}

/// Packets per second that each class has at least: what it is promised, and its part beside those that are promised something.
fn needed(graph: &Graph, promises: &[Promise]) -> Vec<f64> {
    let mut needed = vec![0.0_f64; graph.classes.len()];
    for promise in promises {
        let Promise::Rate { subject, least, .. } = promise else { continue };
        let all: f64 = subject.iter().map(|class| graph.classes[*class].packets).sum();
        subject.iter().for_each(|j| needed[*j] = needed[*j].max(least * graph.classes[*j].packets / all));
    }
    for promise in promises {
        let (Promise::Cpu(members) | Promise::Throughput(members)) = promise else { continue };
        let unit = |class: &ClassId| match promise {
            Promise::Cpu(_) => graph.path(*class).map(|m| graph.modules[m].charged()).sum::<f64>(),
            _ => 1.0,
        };
        let has = |subject: &Subject| subject.iter().map(|j| needed[*j] * unit(j)).sum::<f64>();
        let part = members.iter().map(|(subject, weight)| has(subject) / weight).fold(0.0, f64::max);
        let more: Vec<(ClassId, f64)> = members
            .iter()
            .flat_map(|(subject, weight)| {
                let all: f64 = subject.iter().map(|j| graph.classes[*j].packets * unit(j)).sum();
                let part = (part * weight / all).min(1.0);
                subject.iter().map(move |j| (*j, part * graph.classes[*j].packets))
            })
            .collect();
        more.into_iter().for_each(|(j, packets)| needed[j] = needed[j].max(packets));
    }
    needed
}

fn module_levels(graph: &Graph, class: &[usize]) -> Vec<usize> {
    let mut module = vec![usize::MAX; graph.modules.len()];
    for (j, level) in class.iter().enumerate() {
        graph.path(j).for_each(|m| module[m] = module[m].min(*level));
    }
    module
}

/// The modules where a lower class parts from a higher one that it is related to, by any number of steps.
fn cuts(graph: &Graph, before: &[(ClassId, ClassId)], level: &[usize]) -> Vec<bool> {
    let count = graph.classes.len();
    let mut higher: Vec<Vec<bool>> = vec![vec![false; count]; count];
    let mut order: Vec<ClassId> = (0..count).collect();
    order.sort_by_key(|j| level[*j]);
    for b in order {
        for (a, _) in before.iter().filter(|(_, low)| *low == b) {
            let above: Vec<ClassId> = (0..count).filter(|c| higher[*a][*c] || c == a).collect();
            above.into_iter().for_each(|c| higher[b][c] = true);
        }
    }
    let mut on_path = vec![vec![false; graph.modules.len()]; count];
    for (j, on) in on_path.iter_mut().enumerate() {
        graph.path(j).for_each(|m| on[m] = true);
    }
    let parts = |m: ModuleId, up: ModuleId| {
        (0..count).filter(|b| on_path[*b][m]).any(|b| {
            let above: Vec<ClassId> = (0..count).filter(|a| higher[b][*a]).collect();
            above.iter().any(|a| on_path[*a][up]) && !above.iter().any(|a| on_path[*a][m])
        })
    };
    // What is done before anyone knows for whom waits for nobody.
    let may = |module: &Module| module.kind != Kind::Port;
    let cut = |(m, module): (usize, &Module)| module.upstream.is_some_and(|up| may(module) && parts(m, up));
    graph.modules.iter().enumerate().map(cut).collect()
}
