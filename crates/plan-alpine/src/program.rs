//! The exact program: which modules begin a task, and what part of its packets each sees, for any promises.
//!
//! Lan's dissertation, §5.3.1–5.3.2, has products of binaries and weights (`Q_i w_i q_ij`, `S_ij` by
//! recursion). Here the unknowns are, beside the binaries `Q_k`, the parts `σ_k` of [`super`]: within a task
//! they are equal (`σ_k >= σ_up − Q_k`), downstream they never rise (`σ_k <= σ_up`), and the cycles and
//! packets of a class are linear in them. So the program is a mixed-integer linear one with one binary a
//! module, and for a fixed partition a linear one.
//!
//! One program solves one level of priority. Modules of higher levels are decided already and enter as
//! numbers; the level has what capacity they leave.

mod later;
pub(crate) mod rates;
mod ratios;

use std::collections::BTreeMap;

use super::few;
use super::graph::{ClassId, Graph, Kind};
use super::promise::{Levels, Promise};
use super::until::Until;
use catena_solver::{self as solver, Column, Limits, Outcome, Sense, Solution};

/// Every group of classes that nobody related to another gets at least this part of what running to
/// completion would serve of it, so that "promise kept" never means "all got nothing".
pub(super) const FLOOR: f64 = 0.02;
/// The exit of a class sees at least this part of what running to completion would serve.
const LEAST: f64 = 1e-5;
/// Part of a worker that a level is planned with when higher ones leave less.
const SPARE: f64 = 0.05;
/// Solutions this near to the best one, relative, are as good: far less than a task.
const GAP: f64 = 1e-4;
/// A rate is to be all that it may be if no more than this part of it is left open.
const NEARLY: f64 = 0.05;
/// What a member's share may be off by, relative. The solver's tolerance is absolute, so where next to nothing is served
/// it takes shares for kept that are not.
const OFF: f64 = 1e-6;

/// A level of priority to decide.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The promises.
    pub promises: &'a [Promise],
    /// The order of classes and modules.
    pub levels: &'a Levels,
    /// The level.
    pub level: usize,
    /// What higher levels decided, for their modules.
    pub sigma: &'a [f64],
    /// Cycles per second that higher levels leave.
    pub left: f64,
    /// Those of them that later levels are promised.
    pub reserved: f64,
    /// Seconds that the solver may take.
    pub seconds: f64,
    /// When it has to end, whatever these are.
    pub until: Until,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ask<'a> {
    /// The fewest tasks; among those with as few the most throughput.
    Fewest,
    /// The fewest tasks, if that is less than so many.
    Fewer(usize),
    /// The most throughput, with tasks that begin at these modules; `queue_cycles` charged or not. At each queue
    /// at least this part of what comes is dropped.
    Weights(&'a [bool], Queues, f64),
}

/// Whether crossing a queue counts as work of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// It does.
    Charged,
    /// It does not.
    Free,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// For each module of the level, whether a task begins there.
    pub starts: Vec<bool>,
    /// For each module of the level, the part of its packets that it sees, 0 to 1.
    pub sigma: Vec<f64>,
    /// A proven lower bound of the number of tasks that begin at this level.
    pub least_tasks: usize,
    /// What the worst-off group gets, as a part of what running to completion would serve of it; for weights
    /// the most that any give.
    pub worst_off: f64,
}

/// Why nothing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// No way to keep the promises exists.
    Impossible,
    /// The time was over, or the solver failed.
    Unsolved,
}

/// A linear expression over the columns.
#[derive(Clone, Debug, Default)]
struct Linear {
    terms: BTreeMap<Column, f64>,
    constant: f64,
}

impl Linear {
    fn add(&mut self, column: Column, factor: f64) {
        *self.terms.entry(column).or_insert(0.0) += factor;
    }
}

/// What may happen in front of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    /// It belongs to the task upstream and sees all that that one sees.
    Joins,
    /// A task begins, and at least this part is dropped.
    Drops(f64),
    /// Whether a task begins is to be decided.
    Open,
}

/// The program as columns and rows.
#[derive(Clone)]
struct Model {
    problem: solver::Program,
    /// Column of each module's `σ`, which is that of all modules that surely join its task, and of its `Q` if it is to be decided.
    sigma: Vec<Option<Column>>,
    start: Vec<Option<Column>>,
    /// Column of `σ Q`: what crosses the queue in front of the module, if a queue may be put there.
    crossing: Vec<Option<Column>>,
    /// Packets per second that leave, per unit of a column.
    throughput: Linear,
    /// How well off the worst-off group is.
    fair: Column,
    /// For each member of a promise what it has, what all members have together, and what part of that is its own.
    shares: Vec<(Linear, Column, f64)>,
    /// Columns are `σ` divided by this, so that they are about 1.
    scale: f64,
}

impl Model {
    fn column(&mut self, low: f64, high: f64) -> Column {
        self.problem.column(0.0, low, high)
    }

    fn row(&mut self, low: f64, high: f64, linear: &Linear) {
        let terms = linear.terms.iter().map(|(column, factor)| (*column, *factor));
        self.problem.row(low - linear.constant, high - linear.constant, terms);
    }

    /// The columns that say whether a task begins.
    fn starts(&self) -> impl Iterator<Item = Column> {
        self.start.iter().flatten().copied()
    }

    /// Whether every member of a promise has its share.
    fn keeps_shares(&self, solution: &Solution) -> bool {
        self.shares.iter().all(|(own, together, part)| {
            let has =
                own.constant + own.terms.iter().map(|(column, factor)| factor * solution.of(*column)).sum::<f64>();
            let shall = part * solution.of(*together);
            (has - shall).abs() <= OFF * shall
        })
    }

    /// Make the least of the sum of `costs`.
    fn minimise(
        &mut self,
        costs: impl IntoIterator<Item = (Column, f64)>,
        limits: &Limits,
    ) -> Result<Solution, Nothing> {
        let mut problem = self.problem.clone();
        costs.into_iter().for_each(|(column, cost)| problem.set_cost(column, cost));
        match problem.solve(limits) {
            Outcome::Best(solution) | Outcome::Some(solution) => Ok(solution),
            Outcome::Infeasible => Err(Nothing::Impossible),
            Outcome::Nothing(_) | Outcome::Unbounded => Err(Nothing::Unsolved),
        }
    }
}

impl Program<'_> {
    fn active(&self, module: usize) -> bool {
        self.levels.module[module] == self.level
    }

    /// Whether a task begins there whatever is decided.
    fn given(&self, module: usize) -> bool {
        self.graph.modules[module].always_starts() || self.levels.cut[module]
    }

    fn capacity(&self, packets: &[f64], ask: Ask) -> f64 {
        (self.left - self.reserved).max(self.joined(packets, ask) + SPARE * self.graph.hz)
    }

    /// Cycles per second of the level's modules that surely join tasks of higher levels: those have decided how much they see.
    fn joined(&self, packets: &[f64], ask: Ask) -> f64 {
        let spared = few::spared(self.graph, self.promises, self.levels);
        let decided = |m: usize| (self.levels.module[m] < self.level).then(|| self.sigma[m]);
        let mut above: Vec<Option<f64>> = (0..packets.len()).map(decided).collect();
        let mut all = 0.0;
        for m in (0..above.len()).filter(|m| self.active(*m)) {
            let up = self.graph.modules[m].upstream.and_then(|up| above[up]);
            let Some(sigma) = up.filter(|_| self.entry(m, ask, spared[m]) == Entry::Joins) else { continue };
            all += sigma * packets[m] * (self.graph.modules[m].cycles + self.queue(m, ask));
            above[m] = Some(sigma);
        }
        all
    }

    /// The part of the level's packets that running to completion would serve.
    fn served(&self, packets: &[f64], ask: Ask) -> f64 {
        let load = |m: usize| packets[m] * self.graph.modules[m].cycles;
        let load: f64 = (0..packets.len()).filter(|m| self.active(*m)).map(load).sum();
        if load > 0.0 { (self.capacity(packets, ask) / load).min(1.0) } else { 1.0 }
    }

    fn queue(&self, module: usize, ask: Ask) -> f64 {
        match ask {
            Ask::Weights(starts, Queues::Charged, _) if starts[module] && has_queue(self.graph, module) => {
                self.graph.queue_cycles
            }
            Ask::Fewest | Ask::Fewer(_) if self.levels.cut[module] && has_queue(self.graph, module) => {
                self.graph.queue_cycles
            }
            _ => 0.0,
        }
    }

    /// The cycles that count for a class: `Σ r_j σ_k c_k` over the modules of its path, and its queues'.
    fn cycles(&self, model: &Model, class: ClassId, unit: f64, ask: Ask, into: &mut Linear) {
        for m in self.graph.path(class) {
            let cost = self.graph.modules[m].charged() + self.queue(m, ask);
            let factor = self.graph.classes[class].packets * cost / unit;
            match model.sigma[m] {
                Some(column) => *into.terms.entry(column).or_insert(0.0) += factor,
                None => into.constant += factor * self.sigma[m] / model.scale,
            }
            if let Some(crossing) = model.crossing[m] {
                let factor = self.graph.classes[class].packets * self.graph.queue_cycles / unit;
                into.add(crossing, factor);
            }
        }
    }

    /// Solve.
    ///
    /// # Errors
    /// No solution, or none in time.
    pub fn solve(&self, ask: Ask) -> Result<Found, Nothing> {
        let packets = self.graph.packets();
        let scale = self.served(&packets, ask);
        let mut model = self.model(ask, &packets, scale);
        let rates: f64 = self.graph.classes.iter().map(|c| c.packets).sum();
        let limits = || {
            let time = match ask {
                Ask::Weights(..) => self.until.weights(self.seconds),
                Ask::Fewest | Ask::Fewer(_) => self.until.search(self.seconds),
            };
            Limits { time, gap: GAP, ..Limits::default() }
        };
        if limits().time.is_zero() {
            return Err(Nothing::Unsolved);
        }
        let starts: Vec<(Column, f64)> = model.starts().map(|start| (start, 1.0)).collect();
        let throughput = model.throughput.terms.clone();
        match ask {
            Ask::Fewer(_) => {
                let solution = model.minimise(starts, &limits())?;
                self.found(&model, &solution, scale, ask)
            }
            Ask::Fewest => {
                // Less than one task in sum, so that throughput only decides among equals.
                let most = rates / scale;
                let served = throughput.iter().map(|(column, packets)| (*column, -0.5 * packets / most));
                let solution = model.minimise(starts.into_iter().chain(served), &limits())?;
                self.found(&model, &solution, scale, ask)
            }
            Ask::Weights(..) => {
                // First what nobody related shares as evenly as can be, then throughput.
                let fairest = model.minimise([(model.fair, -1.0)], &limits())?;
                if !model.keeps_shares(&fairest) {
                    return Err(Nothing::Impossible);
                }
                let most_fair = fairest.of(model.fair);
                model.problem.set_bounds(model.fair, 0.999 * most_fair, f64::INFINITY);
                let served = throughput.iter().map(|(column, packets)| (*column, -packets / rates));
                let solution = model.minimise(served, &limits())?;
                let solution = if model.keeps_shares(&solution) { solution } else { fairest };
                let later = self.best_for_later(model.clone(), &solution, (ask, &packets, scale), limits);
                let solution = later.unwrap_or(solution);
                Ok(Found { worst_off: most_fair, ..self.found(&model, &solution, scale, ask)? })
            }
        }
    }

    fn model(&self, ask: Ask, packets: &[f64], scale: f64) -> Model {
        let (graph, count) = (self.graph, self.graph.modules.len());
        let mut problem = solver::Program::new(Sense::Minimise);
        let least = if matches!(ask, Ask::Weights(..)) { 0.0 } else { FLOOR };
        let fair = problem.column(0.0, least, 1.0 / scale);
        let mut model = Model {
            problem,
            sigma: vec![None; count],
            start: vec![None; count],
            crossing: vec![None; count],
            throughput: Linear::default(),
            fair,
            shares: Vec::new(),
            scale,
        };
        let mut load = Linear::default();
        let mut high = vec![0.0; count];
        let capacity = self.capacity(packets, ask);
        let spared = few::spared(graph, self.promises, self.levels);
        for m in (0..count).filter(|m| self.active(*m)) {
            let module = &graph.modules[m];
            let cost = packets[m] * (module.cycles + self.queue(m, ask));
            let upstream = module.upstream.map(|up| match model.sigma[up] {
                Some(column) => (Some(column), high[up]),
                None => (None, self.sigma[up] / scale),
            });
            let own = if cost > 0.0 { (capacity / cost).min(1.0) / scale } else { 1.0 / scale };
            high[m] = upstream.map_or(own, |(_, most)| own.min(most));
            let entry = self.entry(m, ask, spared[m]);
            let sigma = match (entry, upstream) {
                (Entry::Joins, Some((Some(above), _))) => {
                    model.problem.set_bounds(above, 0.0, high[m]);
                    above
                }
                _ => model.column(0.0, high[m]),
            };
            model.sigma[m] = Some(sigma);
            load.add(sigma, cost * scale / capacity);
            let Some((above, most)) = upstream else { continue };
            // What the module sees, less what of it upstream saw at least or at most.
            let step = |dropped: f64| {
                let mut step = Linear::default();
                step.add(sigma, 1.0);
                match above {
                    Some(column) => step.add(column, dropped - 1.0),
                    None => step.constant = -most * (1.0 - dropped),
                }
                step
            };
            match entry {
                Entry::Joins if above.is_none() => model.row(0.0, 0.0, &step(0.0)),
                Entry::Joins => {}
                Entry::Drops(part) => model.row(f64::NEG_INFINITY, 0.0, &step(part)),
                Entry::Open => {
                    let start = model.problem.integer_column(0.0, 0.0, 1.0);
                    model.start[m] = Some(start);
                    let mut step = step(0.0);
                    model.row(f64::NEG_INFINITY, 0.0, &step);
                    step.add(start, most);
                    model.row(0.0, f64::INFINITY, &step);
                    if graph.queue_cycles > 0.0 {
                        let crossing = self.crossing(&mut model, sigma, start, high[m]);
                        model.crossing[m] = Some(crossing);
                        load.add(crossing, packets[m] * graph.queue_cycles * scale / capacity);
                    }
                }
            }
        }
        self.add_joined(&model.sigma, ask, &spared, |column, m, queue| {
            load.add(column, packets[m] * (graph.modules[m].cycles + queue) * scale / capacity);
        });
        model.row(f64::NEG_INFINITY, 1.0, &load);
        if let Ask::Fewer(limit) = ask {
            let given = (0..count).filter(|m| self.active(*m) && self.given(*m)).count();
            let terms = model.starts().map(|start| (start, 1.0)).collect();
            let most = limit as f64 - given as f64 - 1.0;
            model.row(f64::NEG_INFINITY, most, &Linear { terms, constant: 0.0 });
        }
        self.promised(&mut model, ask);
        model
    }

    /// Tell `add` of each module of a later level that surely joins a task of this one, such as the entrance of a queue that the port's
    /// task fills: it sees what that task sees, and the later level cannot have it otherwise.
    fn add_joined(&self, sigma: &[Option<Column>], ask: Ask, spared: &[bool], mut add: impl FnMut(Column, usize, f64)) {
        let mut above = sigma.to_vec();
        for m in (0..above.len()).filter(|m| self.levels.module[*m] > self.level) {
            let up = self.graph.modules[m].upstream.and_then(|up| above[up]);
            let Some(column) = up.filter(|_| self.entry(m, ask, spared[m]) == Entry::Joins) else { continue };
            add(column, m, self.queue(m, ask));
            above[m] = Some(column);
        }
    }

    /// What may happen in front of a module that has another upstream.
    fn entry(&self, module: usize, ask: Ask, spared: bool) -> Entry {
        match ask {
            Ask::Weights(starts, _, surplus) if starts[module] => Entry::Drops(surplus),
            _ if self.given(module) => Entry::Drops(0.0),
            Ask::Fewest | Ask::Fewer(_) if self.graph.modules[module].cuttable && !spared => Entry::Open,
            _ => Entry::Joins,
        }
    }

    /// A column for the product of `sigma`, at most `most`, and the binary `start`.
    fn crossing(&self, model: &mut Model, sigma: Column, start: Column, most: f64) -> Column {
        let crossing = model.column(0.0, most);
        let mut row = |terms: &[(Column, f64)], low: f64| {
            let terms = terms.iter().copied().collect();
            model.row(low, f64::INFINITY, &Linear { terms, constant: 0.0 });
        };
        row(&[(sigma, 1.0), (crossing, -1.0)], 0.0);
        row(&[(start, most), (crossing, -1.0)], 0.0);
        row(&[(crossing, 1.0), (sigma, -1.0), (start, -most)], -most);
        crossing
    }

    fn promised(&self, model: &mut Model, ask: Ask) {
        let graph = self.graph;
        let mut related = vec![false; graph.classes.len()];
        self.ratios(model, ask, &mut related);
        for promise in self.promises {
            let Promise::Rate { subject, least, most } = promise else { continue };
            if self.levels.is_later(subject, self.level) {
                self.reached(model, subject, *least);
            }
            if !subject.iter().any(|class| self.levels.class[*class] == self.level) {
                continue;
            }
            self.bounded(model, subject, *least, *most);
            if most.is_some_and(|most| *least >= most * (1.0 - NEARLY)) {
                // Who has all that it may have takes no part in what is shared.
                subject.iter().for_each(|class| related[*class] = true);
            }
        }
        for (j, class) in graph.classes.iter().enumerate().filter(|(j, _)| self.levels.class[*j] == self.level) {
            let Some(exit) = model.sigma[class.exit] else { continue };
            model.throughput.add(exit, class.packets);
            let mut served = Linear::default();
            served.terms.insert(exit, 1.0);
            model.row(LEAST, f64::INFINITY, &served);
            if !related[j] {
                served.terms.insert(model.fair, -1.0);
                model.row(0.0, f64::INFINITY, &served);
            }
        }
    }

    fn found(&self, model: &Model, solution: &Solution, scale: f64, ask: Ask) -> Result<Found, Nothing> {
        let count = self.graph.modules.len();
        let (mut starts, mut sigma) = (vec![false; count], vec![0.0; count]);
        let mut given = 0;
        for m in (0..count).filter(|m| self.active(*m)) {
            let value = |column: Option<Column>| column.map(|c| solution.of(c));
            sigma[m] = (value(model.sigma[m]).ok_or(Nothing::Unsolved)? * scale).clamp(0.0, 1.0);
            let always = self.given(m);
            if always {
                given += 1;
            }
            starts[m] = match ask {
                _ if always => true,
                Ask::Fewest | Ask::Fewer(_) => value(model.start[m]).is_some_and(|q| q > 0.5),
                Ask::Weights(starts, ..) => starts[m],
            };
        }
        // Throughput takes at most half a task off the objective.
        let least_tasks = match ask {
            Ask::Fewest | Ask::Fewer(_) => given + (solution.bound - 1e-6).ceil().max(0.0) as usize,
            Ask::Weights(..) => given,
        };
        Ok(Found { starts, sigma, least_tasks, worst_off: solution.of(model.fair) })
    }
}

/// Whether a task that begins at `module` reads a queue that was put there for it.
pub(super) fn has_queue(graph: &Graph, module: usize) -> bool {
    graph.modules[module].upstream.is_some() && graph.modules[module].kind != Kind::Scheduled
}
