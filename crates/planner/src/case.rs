//! Runs planners on a case, and has their decisions explained.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use catena_functions::registry;
use catena_plan::alpine::{self, Until};
use catena_plan::delta::Delta;
use catena_plan::demand::{self, Options};
use catena_plan::deployment::{Before, Deployment, Ways};
use catena_plan::e2;
use catena_plan::explain;
use catena_plan::lemur::{self, brute, exact};
use catena_plan::placement::Outcome;
use catena_plan::plan::{MadeOf, Plan, Verdict};
use catena_plan::policy::Policy;
use catena_plan::problem::Problem;
use catena_plan::schedule;
use catena_plan::switch::{Feasible, for_problem};

use catena_runtime::{Failure, file};

use crate::inputs::Inputs;
use crate::remarks::Remark;
use crate::strategy::Strategy;

/// What of the time that was asked for is kept for dividing a server's workers into tasks, at most.
const FOR_TASKS: Duration = Duration::from_secs(2);
/// How long that may take where nobody asked for a time: so long that plans of one file do not differ by how busy a machine is.
const TASKS: Duration = Duration::from_secs(20);

/// What has to be decided, ready for any planner.
pub struct Case {
    /// Chains, rack and functions.
    pub inputs: Inputs,
    /// The same in numbers.
    pub problem: Problem,
    switch: Box<dyn Feasible>,
    how: How,
    runs: Runs,
    /// When the time that was asked for is over, once it has begun.
    until: Cell<Option<Instant>>,
}

/// How to decide.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// What is made as large as possible, and what may be replicated.
    pub options: Options,
    /// Which tasks a server's workers are divided into.
    pub tasks: alpine::Objective,
    /// How long the exact planner may look for proof.
    pub time: Duration,
    /// The part by which every cycle is taken to cost more than is known: 0.1 is a tenth.
    pub margin: f64,
}

/// What a plan begins with.
#[derive(Clone)]
pub enum Runs {
    /// Nothing runs yet: flows are numbered in this seed.
    Nothing(u64),
    /// This does; one of its instances may have more to do than it can.
    Plan(Box<Plan>, Option<String>),
}

impl Runs {
    /// Read the plan by which something runs; `overloaded` names an instance of it that has more to do than it can.
    ///
    /// # Errors
    /// When it cannot be read, or nothing runs by it.
    pub fn read(path: &Path, overloaded: Option<String>) -> Result<Runs, Failure> {
        let text = file::read(path, "a plan as `catena plan … --output FILE` writes it")?;
        let plan = Plan::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        match plan.deployment {
            Some(_) => Ok(Runs::Plan(Box::new(plan), overloaded)),
            None => Err(format!("{}: nothing runs by this plan", path.display()).into()),
        }
    }

    fn plan(&self) -> Option<&Plan> {
        match self {
            Runs::Nothing(_) => None,
            Runs::Plan(plan, _) => Some(plan),
        }
    }

    fn deployment(&self) -> Option<&Deployment> {
        self.plan().and_then(|plan| plan.deployment.as_ref())
    }

    fn before(&self) -> Before<'_> {
        match (self, self.deployment()) {
            (Runs::Plan(_, Some(overloaded)), Some(old)) => Before::Overloaded(old, overloaded),
            (_, Some(old)) => Before::Runs(old),
            (Runs::Nothing(seed), None) => Before::Nothing(*seed),
            (Runs::Plan(..), None) => Before::Nothing(0),
        }
    }

    /// What runs, in the numbers of a problem; the segment of an overloaded instance is to have one core more.
    fn kept(&self, problem: &Problem) -> Result<lemur::keep::Runs, Failure> {
        let Runs::Plan(old, overloaded) = self else { return Ok(lemur::keep::Runs::default()) };
        let mut runs = old.runs(problem);
        let Some(name) = overloaded else { return Ok(runs) };
        let instances = old.deployment.iter().flat_map(|deployment| &deployment.instances);
        let Some(instance) = instances.clone().find(|instance| instance.name == *name) else {
            let all: Vec<&str> = instances.map(|instance| instance.name.as_str()).collect();
            return Err(format!("--overloaded {name}: what runs are {}", all.join(", ")).into());
        };
        let whole = old.servers.iter().any(|server| server.name == instance.on && server.tasks.is_some());
        let segment = |(chain, nodes): &(usize, Vec<usize>)| {
            let chain = problem.chains.get(*chain)?;
            let names: Option<Vec<&str>> =
                nodes.iter().map(|node| Some(chain.nodes.get(*node)?.name.as_str())).collect();
            Some(format!("{}/{}", chain.name, names?.join("+")))
        };
        let cores = runs.cores.iter_mut().find(|(group, _)| segment(group).as_ref() == Some(&instance.segment));
        match cores {
            Some((_, cores)) if !whole => *cores += 1,
            _ => {
                let why = "only what has whole cores of a server, and is planned as it runs, gets one more";
                return Err(format!("--overloaded {name}: {why}").into());
            }
        }
        Ok(runs)
    }
}

/// What the user can do so that a function can be planned, where Catena has it.
fn remedy(unknown: &demand::Unknown) -> String {
    let name = &unknown.function;
    match registry::find(name).map(|function| function.workload.is_some()) {
        None => String::new(),
        Some(_) if unknown.what == demand::Missing::Cost => String::new(),
        Some(true) => {
            format!("; servers can: `catena profile {name}` measures it, and --profile gives a plan its result")
        }
        Some(false) => {
            format!("; what it costs depends on what it runs: write that into a profile (docs/profiles.md, {name})")
        }
    }
}

/// A planner's decision, and how long it took.
pub struct Decision {
    /// The plan.
    pub plan: Plan,
    /// On the wall.
    pub took: Duration,
}

impl Case {
    /// Make the problem.
    ///
    /// # Errors
    /// When there are functions that cannot be planned: all are named.
    pub fn new(mut inputs: Inputs, how: How, runs: Runs) -> Result<Case, Failure> {
        // In the profile, so that whoever plans by it has the margin, and no cycle is without it.
        inputs.known.profile = inputs.known.profile.times(1.0 + how.margin);
        Case::made(inputs, how, runs)
    }

    /// The same with other inputs, which have their margin already, where nothing runs yet: what promises need does not depend on
    /// that, and ways from one plan to another can take seconds.
    ///
    /// # Errors
    /// As [`Case::new`].
    pub fn of(&self, inputs: Inputs) -> Result<Case, Failure> {
        let case = Case::made(inputs, self.how, Runs::Nothing(0))?;
        case.until.set(self.until.get());
        Ok(case)
    }

    fn made(inputs: Inputs, how: How, runs: Runs) -> Result<Case, Failure> {
        let known = &inputs.known;
        let problem = demand::problem(&inputs.graph, &inputs.rack, &known.catalogue, &known.profile, how.options);
        let problem = problem.map_err(|unknown| {
            let lines: Vec<String> = unknown.iter().map(|one| format!("{one}{}", remedy(one))).collect();
            Failure::new(format!("these functions cannot be planned:\n  {}", lines.join("\n  ")))
        })?;
        let switch = for_problem(&problem);
        Ok(Case { inputs, problem, switch, how, runs, until: Cell::new(None) })
    }

    /// Let a planner decide in the time that was asked for.
    ///
    /// # Errors
    /// When the independent check refuses what it decided.
    pub fn decide_in_time(&self, strategy: Strategy) -> Result<Decision, Failure> {
        self.until.set(Instant::now().checked_add(self.how.time));
        let decision = self.decide(strategy);
        self.until.set(None);
        decision
    }

    /// Let a planner decide.
    ///
    /// # Errors
    /// When the independent check refuses what it decided.
    pub fn decide(&self, strategy: Strategy) -> Result<Decision, Failure> {
        let started = Instant::now();
        let outcome = self.outcome(strategy)?;
        let took = started.elapsed();
        let plan = self.plan(strategy, &outcome);
        self.judge(strategy.title(), &plan)?;
        if let (Some(old), Some(new), Some(delta)) = (self.runs.deployment(), &plan.deployment, &plan.delta) {
            self.is_relieved(delta)?;
            delta.leads(old, new).map_err(|astray| {
                format!("internal error: the way from the old plan to the new one is not shown: {astray}")
            })?;
        }
        Ok(Decision { plan, took })
    }

    /// The plan of a run that promises nothing: every worker has all chains, and they carry what comes.
    ///
    /// # Errors
    /// When the independent check refuses it.
    pub fn unpromised(&self) -> Result<Plan, Failure> {
        let outcome = schedule::unpromised(&self.problem);
        let plan = self.explain("", &outcome).without_rates().for_policy(&self.inputs.graph);
        let plan = plan.deployed(self.runs.before(), Some(self.ways()));
        self.judge("a run", &plan)?;
        Ok(plan)
    }

    /// Let a planner decide; if it keeps not all promises, say what would help. All of that together has the time that was asked
    /// for; `tell` hears what is done.
    ///
    /// # Errors
    /// When the independent check refuses what it decided.
    pub fn explained(&self, strategy: Strategy, tell: &dyn Fn(&Remark<'_>)) -> Result<Plan, Failure> {
        self.until.set(Some(Instant::now() + self.how.time));
        tell(&Remark::Seeking("a plan"));
        let plan = self.and_remedies(strategy, tell);
        tell(&Remark::Sought);
        self.until.set(None);
        plan
    }

    fn and_remedies(&self, strategy: Strategy, tell: &dyn Fn(&Remark<'_>)) -> Result<Plan, Failure> {
        let mut plan = self.decide(strategy)?.plan;
        let placed = plan.placement.is_some();
        let Verdict::Broken { proven, why, remedies } = &mut plan.verdict else { return Ok(plan) };
        if placed {
            // Where to run what is not the question, but how chains share the workers.
            return Ok(plan);
        }
        if strategy != Strategy::Exact {
            match self.decide(Strategy::Exact)?.plan.verdict {
                Verdict::Kept { .. } => {
                    *why += "; another placement keeps them: --strategy exact";
                    return Ok(plan);
                }
                Verdict::Broken { proven: sure, .. } => *proven |= sure,
            }
        }
        tell(&Remark::Seeking("what is in the way of the promises"));
        // Half of the time that is left is for trying what is found on the rack itself.
        let settings = self.settings();
        let settings = exact::Settings { time: settings.time / 2, ..settings };
        let mut obstacles = exact::relax::obstacles(&self.problem, &*self.switch, &settings);
        self.keep_what_helps(&mut obstacles, tell);
        *remedies = Some(Box::new(explain::remedies(&self.problem, &obstacles)));
        Ok(plan)
    }

    /// Whether a new instance takes flows of the overloaded one, where there is one.
    fn is_relieved(&self, delta: &Delta) -> Result<(), Failure> {
        let Runs::Plan(_, Some(name)) = &self.runs else { return Ok(()) };
        match delta.moves().any(|one| one.from == *name) {
            true => Ok(()),
            false => {
                let why = "its server has no core for it, or its functions may run on one only";
                Err(format!("--overloaded {name}: no other instance can take of its flows: {why}").into())
            }
        }
    }

    /// What runs, where nothing has to be decided anew.
    fn same(&self) -> Option<Outcome> {
        let Runs::Plan(old, None) = &self.runs else { return None };
        let Verdict::Kept { marginal_bps, .. } = old.verdict else { return None };
        let placement = old.placement.clone().filter(|_| old.problem == self.problem)?;
        Some(Outcome::Placed { placement, marginal_bps, bound_bps: None })
    }

    /// The time that is left of what was asked for.
    pub(crate) fn left(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.get().map_or(self.how.time, left)
    }

    /// The part of that which is for the placement: where its server's workers get tasks, these have to be found, too.
    fn for_placement(&self) -> Duration {
        let (left, problem) = (self.left(), &self.problem);
        let is_whole = problem.switch.is_none() && problem.servers.len() == 1;
        if is_whole && self.until.get().is_some() { left - (left / 4).min(FOR_TASKS) } else { left }
    }

    fn settings(&self) -> exact::Settings {
        exact::Settings { time: self.left(), ..exact::Settings::default() }
    }

    fn outcome(&self, strategy: Strategy) -> Result<Outcome, Failure> {
        let now = Instant::now();
        let time = self.for_placement();
        let until = now.checked_add(time);
        let place = |strategy| lemur::place_until(&self.problem, strategy, &*self.switch, until);
        Ok(match strategy {
            Strategy::Lemur => place(lemur::Strategy::Lemur),
            Strategy::Hw => place(lemur::Strategy::HwPreferred),
            Strategy::Sw => place(lemur::Strategy::SwPreferred),
            Strategy::MinBounce => place(lemur::Strategy::MinBounce),
            Strategy::Greedy => place(lemur::Strategy::Greedy),
            Strategy::NoProfiling => place(lemur::Strategy::NoProfiling),
            Strategy::NoCores => place(lemur::Strategy::NoCores),
            Strategy::Brute => {
                let go_on = &mut |_: &brute::Progress| until.is_none_or(|until| Instant::now() < until);
                brute::plan(&self.problem, &*self.switch, go_on).0
            }
            Strategy::E2 => match e2::sites::sites_until(&self.problem, &*self.switch, until) {
                Ok(sites) => lemur::baselines::given(&self.problem, &*self.switch, sites),
                Err(failed) => Outcome::Infeasible { proven: false, why: failed.to_string() },
            },
            Strategy::Keep => match self.same() {
                Some(outcome) => outcome,
                None => lemur::keep::keep_until(&self.problem, &*self.switch, &self.runs.kept(&self.problem)?, until),
            },
            Strategy::Exact => {
                // Proof needs time beside the heuristic.
                let half = now.checked_add(time / 2);
                let start = lemur::place_until(&self.problem, lemur::Strategy::Lemur, &*self.switch, half);
                let left = until.map_or(time, |until| until.saturating_duration_since(Instant::now()));
                let settings = exact::Settings { time: left, ..exact::Settings::default() };
                exact::plan(&self.problem, &*self.switch, start.placement(), &settings).outcome
            }
        })
    }

    fn judge(&self, whose: &str, plan: &Plan) -> Result<(), Failure> {
        plan.judge(&*self.switch).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(|fault| format!("\n  {fault}")).collect();
            let why = lines.concat();
            format!("internal error: the plan of {whose} is not shown, for the check refuses it:{why}").into()
        })
    }

    fn ways(&self) -> Ways<'_> {
        Ways { policy: &self.inputs.graph, catalogue: &self.inputs.known.catalogue }
    }

    fn explain(&self, strategy: &str, outcome: &Outcome) -> Plan {
        let case = explain::Case {
            problem: &self.problem,
            rack: &self.inputs.rack,
            switch: &*self.switch,
            sources: &self.inputs.known.sources,
            strategy,
            runs: self.runs.plan(),
        };
        let mut plan = Plan::of(&case, outcome);
        let policy = Policy::of(&self.inputs.graph);
        plan.made_of = Some(MadeOf::of(&policy, &self.problem, &self.inputs.rack, &self.inputs.known.profile));
        plan.what_if.clone_from(&self.inputs.edits);
        plan.seal();
        plan
    }

    fn plan(&self, strategy: Strategy, outcome: &Outcome) -> Plan {
        let until = self.until.get().or_else(|| Instant::now().checked_add(TASKS)).map(Until::of).unwrap_or_default();
        let plan = self.explain(strategy.title(), outcome);
        let plan = plan.scheduled_until(&self.inputs.graph, self.how.tasks, until);
        let mut plan = plan.deployed(self.runs.before(), Some(self.ways()));
        let made_of = [&plan.made_of, &self.runs.plan().and_then(|old| old.made_of.clone())];
        if let (Some(delta), [Some(new), Some(old)]) = (&mut plan.delta, made_of) {
            delta.changed = new.changed(old).into_iter().map(str::to_owned).collect();
        }
        plan.seal();
        plan
    }
}
