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

use std::collections::BTreeMap;

use highs::{Col, HighsModelStatus, RowProblem, Sense};

use super::few;
use super::graph::{ClassId, Graph, Kind};
use super::promise::{Levels, Promise};

/// Every group of classes that nobody related to another gets at least this part of what running to
/// completion would serve of it, so that "promise kept" never means "all got nothing".
pub(super) const FLOOR: f64 = 0.02;
/// The exit of a class sees at least this part of what running to completion would serve.
const LEAST: f64 = 1e-5;
/// Part of a worker that a level is planned with when higher ones leave less.
const SPARE: f64 = 0.05;

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
    /// Seconds that the solver may take.
    pub seconds: f64,
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
    terms: BTreeMap<usize, f64>,
    constant: f64,
}

/// The program as columns and rows.
struct Model {
    problem: RowProblem,
    columns: Vec<Col>,
    /// Column of each module's `σ`, and of its `Q` if it is to be decided.
    sigma: Vec<Option<usize>>,
    start: Vec<Option<usize>>,
    /// Column of `σ Q`: what crosses the queue in front of the module, if a queue may be put there.
    crossing: Vec<Option<usize>>,
    /// Cost of each column in packets per second per unit.
    throughput: Vec<f64>,
    /// How well off the worst-off group is.
    fair: usize,
    /// Columns are `σ` divided by this, so that they are about 1.
    scale: f64,
}

impl Model {
    fn column(&mut self, low: f64, high: f64, integer: bool) -> usize {
        let bounds = low..=high.max(low);
        let column = match integer {
            true => self.problem.add_integer_column(0.0, bounds),
            false => self.problem.add_column(0.0, bounds),
        };
        self.columns.push(column);
        self.throughput.push(0.0);
        self.columns.len() - 1
    }

    fn row(&mut self, low: f64, high: f64, linear: &Linear) {
        let factors: Vec<(Col, f64)> = linear.terms.iter().map(|(c, f)| (self.columns[*c], *f)).collect();
        self.problem.add_row(low - linear.constant..=high - linear.constant, factors);
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

    fn capacity(&self) -> f64 {
        self.left.max(SPARE * self.graph.hz)
    }

    /// The part of the level's packets that running to completion would serve.
    fn served(&self, packets: &[f64]) -> f64 {
        let load = |m: usize| packets[m] * self.graph.modules[m].cycles;
        let load: f64 = (0..packets.len()).filter(|m| self.active(*m)).map(load).sum();
        if load > 0.0 { (self.capacity() / load).min(1.0) } else { 1.0 }
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
                *into.terms.entry(crossing).or_insert(0.0) += factor;
            }
        }
    }

    /// Solve.
    ///
    /// # Errors
    /// No solution, or none in time.
    pub fn solve(&self, ask: Ask) -> Result<Found, Nothing> {
        let packets = self.graph.packets();
        let scale = self.served(&packets);
        let model = self.model(ask, &packets, scale);
        match ask {
            Ask::Fewer(_) => {
                let cost = |model: &Model, c| if model.start.contains(&Some(c)) { 1.0 } else { 0.0 };
                let solved = self.run(&model, cost)?;
                self.found(&model, solved, scale, ask)
            }
            Ask::Fewest => {
                // Less than one task in sum, so that throughput only decides among equals.
                let most: f64 = self.graph.classes.iter().map(|c| c.packets).sum::<f64>() / scale;
                let solved = self.run(&model, |model, c| {
                    let is_start = model.start.contains(&Some(c));
                    if is_start { 1.0 } else { -0.5 * model.throughput[c] / most }
                })?;
                self.found(&model, solved, scale, ask)
            }
            Ask::Weights(..) => {
                // First what nobody related shares as evenly as can be, then throughput.
                let (values, _) = self.run(&model, |model, c| if c == model.fair { -1.0 } else { 0.0 })?;
                let most_fair = values[model.fair];
                let floor = 0.999 * most_fair;
                let mut model = model;
                let fair = model.columns[model.fair];
                model.problem.change_column_bounds(fair, floor..=f64::INFINITY);
                let most: f64 = self.graph.classes.iter().map(|c| c.packets).sum::<f64>();
                let solved = self.run(&model, |model, c| -model.throughput[c] / most)?;
                Ok(Found { worst_off: most_fair, ..self.found(&model, solved, scale, ask)? })
            }
        }
    }

    fn model(&self, ask: Ask, packets: &[f64], scale: f64) -> Model {
        let (graph, count) = (self.graph, self.graph.modules.len());
        let mut model = Model {
            problem: RowProblem::new(),
            columns: Vec::new(),
            sigma: vec![None; count],
            start: vec![None; count],
            crossing: vec![None; count],
            throughput: Vec::new(),
            fair: 0,
            scale,
        };
        let mut load = Linear::default();
        let mut high = vec![0.0; count];
        let capacity = self.capacity();
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
            let sigma = model.column(0.0, high[m], false);
            model.sigma[m] = Some(sigma);
            load.terms.insert(sigma, cost * scale / capacity);
            let Some((above, most)) = upstream else { continue };
            let mut step = Linear::default();
            step.terms.insert(sigma, 1.0);
            match above {
                Some(column) => _ = step.terms.insert(column, -1.0),
                None => step.constant = -most,
            }
            let free = self.given(m);
            match ask {
                Ask::Weights(starts, _, surplus) if starts[m] && has_queue(graph, m) => {
                    match above {
                        Some(column) => _ = step.terms.insert(column, surplus - 1.0),
                        None => step.constant *= 1.0 - surplus,
                    }
                    model.row(f64::NEG_INFINITY, 0.0, &step);
                }
                _ if free => model.row(f64::NEG_INFINITY, 0.0, &step),
                Ask::Fewest | Ask::Fewer(_) if module.cuttable && !spared[m] => {
                    let start = model.column(0.0, 1.0, true);
                    model.start[m] = Some(start);
                    model.row(f64::NEG_INFINITY, 0.0, &step);
                    step.terms.insert(start, most);
                    model.row(0.0, f64::INFINITY, &step);
                    if graph.queue_cycles > 0.0 {
                        let crossing = self.crossing(&mut model, sigma, start, high[m]);
                        model.crossing[m] = Some(crossing);
                        load.terms.insert(crossing, packets[m] * graph.queue_cycles * scale / capacity);
                    }
                }
                Ask::Weights(starts, ..) if starts[m] => model.row(f64::NEG_INFINITY, 0.0, &step),
                _ => model.row(0.0, 0.0, &step),
            }
        }
        model.row(f64::NEG_INFINITY, 1.0, &load);
        if let Ask::Fewer(limit) = ask {
            let given = (0..count).filter(|m| self.active(*m) && self.given(*m)).count();
            let terms = model.start.iter().flatten().map(|c| (*c, 1.0)).collect();
            let most = limit as f64 - given as f64 - 1.0;
            model.row(f64::NEG_INFINITY, most, &Linear { terms, constant: 0.0 });
        }
        let least = if matches!(ask, Ask::Weights(..)) { 0.0 } else { FLOOR };
        model.fair = model.column(least, 1.0 / scale, false);
        self.promised(&mut model, ask);
        model
    }

    /// A column for the product of `sigma`, at most `most`, and the binary `start`.
    fn crossing(&self, model: &mut Model, sigma: usize, start: usize, most: f64) -> usize {
        let crossing = model.column(0.0, most, false);
        let mut row = |terms: &[(usize, f64)], low: f64| {
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
        for promise in self.promises {
            let (Promise::Cpu(members) | Promise::Throughput(members)) = promise else { continue };
            let here = |class: &ClassId| self.levels.class[*class] == self.level;
            if !members.iter().flat_map(|(subject, _)| subject).any(here) {
                continue;
            }
            let weights: f64 = members.iter().map(|(_, weight)| weight).sum();
            let rate = |j: &ClassId| graph.classes[*j].packets;
            let cycles = |j: &ClassId| rate(j) * graph.path(*j).map(|m| graph.modules[m].charged()).sum::<f64>();
            let all: Vec<ClassId> = members.iter().flat_map(|(subject, _)| subject).copied().collect();
            let unit: f64 = match promise {
                Promise::Cpu(_) => all.iter().map(cycles).sum(),
                _ => all.iter().map(rate).sum(),
            };
            // What the members have together, of what they would have if all their packets were served.
            let together = model.column(0.0, f64::INFINITY, false);
            for (subject, weight) in members {
                let mut own = Linear::default();
                for class in subject {
                    let class = *class;
                    related[class] = true;
                    match promise {
                        Promise::Cpu(_) => self.cycles(model, class, unit, ask, &mut own),
                        _ => match model.sigma[graph.classes[class].exit] {
                            Some(exit) => *own.terms.entry(exit).or_insert(0.0) += rate(&class) / unit,
                            None => {
                                own.constant +=
                                    rate(&class) / unit * self.sigma[graph.classes[class].exit] / model.scale
                            }
                        },
                    }
                }
                own.terms.insert(together, -weight / weights);
                model.row(0.0, 0.0, &own);
            }
            let mut fair = Linear::default();
            fair.terms.extend([(together, 1.0), (model.fair, -1.0)]);
            model.row(0.0, f64::INFINITY, &fair);
        }
        for (j, class) in graph.classes.iter().enumerate().filter(|(j, _)| self.levels.class[*j] == self.level) {
            let Some(exit) = model.sigma[class.exit] else { continue };
            model.throughput[exit] += class.packets;
            let mut served = Linear::default();
            served.terms.insert(exit, 1.0);
            model.row(LEAST, f64::INFINITY, &served);
            if !related[j] {
                served.terms.insert(model.fair, -1.0);
                model.row(0.0, f64::INFINITY, &served);
            }
        }
    }

    /// Minimise; returns the columns' values and a lower bound of the objective.
    fn run(&self, model: &Model, cost: impl Fn(&Model, usize) -> f64) -> Result<(Vec<f64>, f64), Nothing> {
        let mut problem = model.problem.clone();
        for (c, column) in model.columns.iter().enumerate() {
            problem.change_column_cost(*column, cost(model, c));
        }
        let mut highs = problem.try_optimise(Sense::Minimise).map_err(|_| Nothing::Unsolved)?;
        highs.make_quiet();
        let set = [
            highs.try_set_option("time_limit", self.seconds).is_ok(),
            highs.try_set_option("threads", 1).is_ok(),
            highs.try_set_option("mip_feasibility_tolerance", 1e-9).is_ok(),
            highs.try_set_option("primal_feasibility_tolerance", 1e-9).is_ok(),
        ];
        let solved = highs.try_solve().map_err(|_| Nothing::Unsolved)?;
        let integer = model.start.iter().any(Option::is_some);
        match solved.status() {
            HighsModelStatus::Optimal => {}
            HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible => return Err(Nothing::Impossible),
            HighsModelStatus::ReachedTimeLimit if integer && solved.mip_gap().is_finite() => {}
            _ => return Err(Nothing::Unsolved),
        }
        debug_assert!(set.iter().all(|s| *s), "HiGHS knows these options");
        let value = solved.objective_value();
        let bound = if integer { value - solved.mip_gap() * value.abs() } else { value };
        Ok((solved.get_solution().columns().to_vec(), bound))
    }

    fn found(&self, model: &Model, solved: (Vec<f64>, f64), scale: f64, ask: Ask) -> Result<Found, Nothing> {
        let (values, bound) = solved;
        let count = self.graph.modules.len();
        let (mut starts, mut sigma) = (vec![false; count], vec![0.0; count]);
        let mut given = 0;
        for m in (0..count).filter(|m| self.active(*m)) {
            let value = |column: Option<usize>| column.and_then(|c| values.get(c)).copied();
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
            Ask::Fewest | Ask::Fewer(_) => given + (bound - 1e-6).ceil().max(0.0) as usize,
            Ask::Weights(..) => given,
        };
        Ok(Found { starts, sigma, least_tasks, worst_off: values[model.fair] })
    }
}

/// Whether a task that begins at `module` reads a queue that was put there for it.
pub(super) fn has_queue(graph: &Graph, module: usize) -> bool {
    graph.modules[module].upstream.is_some() && graph.modules[module].kind != Kind::Scheduled
}
