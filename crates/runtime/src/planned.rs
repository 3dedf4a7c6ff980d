//! A chain file as a plan divides it, and what came of the plan.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use catena_compile::Host;
use catena_compile::backend::{Hosted, OnHost, lower};
use catena_compile::names::CLASSIFY;
use catena_plan::alpine::Until;
use catena_plan::demand::shares;
use catena_plan::deployment::Deployment;
use catena_plan::plan::{ChainPlan, Plan, ServerPlan};
use catena_plan::policy::Policy;
use catena_plan::schedule::not_whole;
use catena_plan::switch::for_problem;
use catena_plan::tasks::{self as planned, Division};
use catena_policy::PolicyGraph;
use serde::Serialize;

use crate::entered::Entered;
use crate::report::Report;
use crate::table::Table;
use crate::workers::MOST;
use crate::{Failure, cores, file};

/// A plan for a server that runs whole chains.
#[derive(Clone, Debug)]
pub struct Planned {
    plan: Plan,
    /// Index of the server.
    server: usize,
    /// The policy of the run that it was made for, where it was: its cores are nobody's then, its functions are not compared with what
    /// they cost here, and it may hold a part of the policy's promises.
    own: Option<Policy>,
}

impl Planned {
    /// Take a plan that was made for a run of `graph`, on one server that runs whole chains; None: it is of another kind, or there
    /// are no functions to run.
    pub fn here(plan: Plan, graph: &PolicyGraph) -> Option<Planned> {
        not_for_a_run(&plan).is_none().then(|| Planned { plan, server: 0, own: Some(Policy::of(graph)) })
    }

    /// Take a plan, such as `catena-plan` makes one.
    ///
    /// # Errors
    /// That it breaks promises, or is not for one server that runs whole chains.
    pub fn of(plan: Plan) -> Result<Planned, Failure> {
        if !plan.is_kept() {
            return Err("this plan does not keep the promises, so it is not run".into());
        }
        plan.judge(&*for_problem(&plan.problem)).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(|fault| format!("\n  {fault}")).collect();
            format!("the plan says what is not so:{}", lines.concat())
        })?;
        if let Some(why) = not_for_a_run(&plan) {
            return Err(format!("this plan is not for workers that each run all chains, which a run has: {why}").into());
        }
        let planned = Planned { plan, server: 0, own: None };
        planned.tasks().map_or(Ok(()), check)?;
        Ok(planned)
    }

    /// Read a plan.
    ///
    /// # Errors
    /// When it cannot be read, breaks promises, or is not for one server that runs whole chains.
    pub fn read(path: &Path) -> Result<Planned, Failure> {
        let name = path.display();
        let text = file::read(path, "a plan as `catena plan … --output FILE` writes it")?;
        let plan = Plan::from_json(&text).map_err(|error| format!("{name}: {error}"))?;
        Planned::of(plan).map_err(|why| format!("{name}: {why}").into())
    }

    fn server(&self) -> &ServerPlan {
        &self.plan.servers[self.server]
    }

    /// The plan itself.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The tasks of each worker, where chains are held apart.
    pub fn tasks(&self) -> Option<&planned::TaskPlan> {
        self.server().tasks.as_ref()
    }

    /// The workers' cores, in their order. None: workers run where they like.
    pub fn cores(&self) -> Option<Vec<usize>> {
        let cores = self.server().workers.iter().map(|worker| worker.core as usize);
        (!self.is_own()).then(|| cores.collect())
    }

    /// Seed of the hash by which the plan numbers flows.
    pub fn seed(&self) -> Option<u64> {
        self.plan.deployment.as_ref()?.seed()
    }

    /// What stands for what runs by the plan.
    pub fn deployment(&self) -> Option<String> {
        self.plan.deployment.as_ref().map(Deployment::digest)
    }

    /// What this machine runs of the plan, where `host` is the file's pipeline, lowered already.
    ///
    /// # Errors
    /// When the chain file is not the one that was planned, or the plan is not for workers that run all of it.
    pub fn lowered(&self, host: Host, graph: &PolicyGraph) -> Result<Hosted, Failure> {
        match &self.own {
            None => self.is_for(graph)?,
            Some(made_for) => {
                if let Some(difference) = made_for.difference(&Policy::of(graph)) {
                    return Err(
                        format!("the plan was made for a run of another file: {difference}; plan this one").into()
                    );
                }
            }
        }
        let backend = OnHost { lowered: Some(host), reduce: None };
        let mut made = lower(graph, &self.plan, &[&backend])?;
        let name = &self.server().name;
        made.take(name).ok_or_else(|| format!("nothing runs on {name} by the plan").into())
    }

    /// Check that the plan is for the chain file.
    fn is_for(&self, graph: &PolicyGraph) -> Result<(), Failure> {
        let planned: Vec<&str> = self.plan.chains.iter().map(|chain| chain.name.as_str()).collect();
        let written: Vec<&str> = graph.chains.iter().map(|chain| chain.name.as_str()).collect();
        if planned != written {
            return Err(format!(
                "the plan is for other chains than the file has: for {}, and the file has {}; run the file that was planned, \
                 or plan this one with `catena plan FILE … --output PLAN.json`",
                planned.join(", "),
                written.join(", ")
            )
            .into());
        }
        for (planned, written) in self.plan.chains.iter().zip(&graph.chains) {
            same_chain(planned, written)?;
        }
        let Some(policy) = &self.plan.policy else {
            return Err("the plan does not say which policy it is for: plan the file again".into());
        };
        if let Some(difference) = policy.difference(&Policy::of(graph)) {
            return Err(format!("the plan is for another policy than the file: {difference}; plan it again").into());
        }
        Ok(())
    }

    /// The tasks with all that they were made of, to be weighed again; None: the plan's are other ones than this Catena makes.
    pub fn division(&self, graph: &PolicyGraph) -> Option<Division> {
        let (placement, tasks) = (self.plan.placement.as_ref()?, self.tasks()?);
        // Where planning had no time to look for others, neither has this.
        let until = if tasks.cut_short { Until::of(Instant::now()) } else { Until::default() };
        let made = Division::of(graph, &self.plan.problem, self.server, placement, tasks.objective, until).ok()?;
        let starts = |tasks: &planned::TaskPlan| tasks.tasks.iter().map(|task| task.start.clone()).collect::<Vec<_>>();
        (starts(&made.figures()) == starts(tasks)).then_some(made)
    }

    /// Whether it was made for this run.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Hold what a run measured against the plan; weights were set anew so many times.
    pub fn compare(&self, graph: &PolicyGraph, report: &Report, weighed: u32) -> Comparison {
        let several = graph.chains.len() > 1;
        let module = |chain: &str, node: &str| if several { format!("{chain}/{node}") } else { node.to_owned() };
        let mut functions = Vec::new();
        let mut chains = Vec::new();
        for (chain, written) in self.plan.chains.iter().zip(&graph.chains) {
            for function in &chain.functions {
                let Some(row) = report.module(&module(&chain.name, &function.name)).filter(|row| row.packets > 0)
                else {
                    continue;
                };
                if let Some(cycles) = function.cycles {
                    let name = module(&chain.name, &function.name);
                    functions.push(Residual::new(name, cycles, row.cycles_per_packet).of(row.packets));
                }
            }
            // What is planned is what enters a chain: what its first functions take in, behind a queue.
            let entered = Entered::of(graph, written, report).unwrap_or_default();
            let own = |class: &&planned::ClassFigures| class.name.split('/').next() == Some(&chain.name);
            let classes = self.tasks().into_iter().flat_map(|tasks| &tasks.classes).filter(own);
            let packets: f64 = classes.map(|class| class.packets).sum();
            let planned = packets * self.plan.packet_bytes * 8.0;
            let measured = entered.taken as f64 * 8.0 / report.seconds.max(1e-9);
            // The plan is of what there would be if more came.
            let all = (measured < planned && entered.taken >= entered.came).then_some("all that came");
            chains.push(Residual { note: all, ..Residual::new(chain.name.clone(), planned, measured) });
        }
        let mut framework = Vec::new();
        if let Some(tasks) = self.tasks() {
            let (spent, queues) = report.in_and_out();
            let name = if queues > 0.0 { "in and out, and queues" } else { "in and out" };
            let planned = tasks.port_cycles + tasks.queue_cycles * queues;
            framework.push(Residual::new(name.to_owned(), planned, spent).of(report.input.packets));
            if let Some(row) = report.module(CLASSIFY).filter(|_| tasks.classify_cycles > 0.0) {
                let name = "finding the chain".to_owned();
                framework.push(Residual::new(name, tasks.classify_cycles, row.cycles_per_packet).of(row.packets));
            }
        }
        Comparison { functions, framework, chains, weighed }
    }
}

/// A plan is a file that anybody may have written: what a run relies on is checked here, once.
fn check(plan: &planned::TaskPlan) -> Result<(), String> {
    let planned::TaskPlan { workers, tasks, tree, .. } = plan;
    if !(1..=MOST).contains(&(*workers as usize)) {
        return Err(format!("{workers} workers are planned, and a run has 1 to {MOST}"));
    }
    let at_port = tasks.iter().map(|task| task.start == planned::Start::Port);
    if !at_port.eq((0..tasks.len()).map(|task| task == 0)) || tasks.is_empty() {
        return Err("the first task, and no other one, begins at the port".to_owned());
    }
    let again = tasks.iter().enumerate().find(|(n, task)| tasks[..*n].iter().any(|other| other.start == task.start));
    if let Some((n, _)) = again {
        return Err(format!("task {n} begins where another one does"));
    }
    let mut scheduled = tree.tasks();
    scheduled.sort_unstable();
    scheduled.dedup();
    if !scheduled.into_iter().eq(0..tasks.len()) {
        return Err("the scheduler tree does not have every task once".to_owned());
    }
    Ok(())
}

/// Why a run cannot be by a plan, and what can be done about it; None: it can.
fn not_for_a_run(plan: &Plan) -> Option<String> {
    let runs = plan.deployment.as_ref().is_some_and(|deployment| !deployment.instances.is_empty());
    let hint = "plan with a rack such as examples/racks/this-machine.toml";
    why_no_tasks(plan)
        .map(|why| format!("{why}; {hint}"))
        .or_else(|| (!runs).then(|| "it has no function to run; `catena run` runs the file without a plan".to_owned()))
}

/// Why `catena run --plan` would not take a plan on this machine; None: it would.
pub fn not_here(plan: &Plan) -> Option<String> {
    if let Some(why) = not_for_a_run(plan) {
        return Some(why);
    }
    let planned = Planned { plan: plan.clone(), server: 0, own: None };
    let workers = planned.tasks().map_or(planned.server().cores as usize, |tasks| tasks.workers as usize);
    if workers > MOST {
        return Some(format!("it has {workers} workers, and a run has at most {MOST}"));
    }
    let cores = planned.cores()?;
    cores::check(&format!("it is for {}", cores::named(&cores)), &cores).err().map(|why| why.to_string())
}

/// Why a plan is not for workers that each run all chains; None: it is.
pub fn why_no_tasks(plan: &Plan) -> Option<String> {
    let groups = plan.servers.first().map_or(&[][..], |server| &server.subgroups);
    let replicable = |n: usize| groups.get(n).is_some_and(|group| group.replicable);
    match &plan.placement {
        Some(placement) => not_whole(&plan.problem, placement, replicable),
        None => Some("nothing is placed".to_owned()),
    }
}

/// Whether a chain is the one that was planned: its functions in their order, the parts of its packets that go each way, and its promises.
fn same_chain(planned: &ChainPlan, written: &catena_policy::Chain) -> Result<(), Failure> {
    let name = &written.name;
    let functions = planned.functions.iter().map(|function| (&function.name, &function.function));
    if !functions.eq(written.nodes.iter().map(|node| (&node.name, &node.function))) {
        return Err(format!("the plan is for other functions than chain {name} has: plan the file again").into());
    }
    let edges = shares::of(written).edges;
    let ends = planned.edges.iter().map(|edge| (edge.from, edge.to));
    if !ends.eq(edges.iter().map(|&(from, to, _)| (from, to))) {
        let what = format!("the plan is for another order of functions than chain {name} has: plan the file again");
        return Err(what.into());
    }
    let other = planned.edges.iter().zip(&edges).find(|(edge, (.., share))| edge.share != *share);
    if let Some((edge, &(from, to, share))) = other {
        let [from, to] = [from, to].map(|node| &written.nodes[node].name);
        return Err(format!(
            "the plan is for other parts of the packets of chain {name}: {} go from {from} to {to}, by the file {share} do; \
             plan it again",
            edge.share
        )
        .into());
    }
    let promise = &written.promise;
    let most = |planned: Option<f64>, written: Option<f64>| match written {
        Some(written) => planned.is_some_and(|planned| planned <= written),
        None => true,
    };
    let bps = promise.t_max_bps.map(|bps| bps as f64);
    let ns = promise.d_max_ns.map(|ns| ns as f64);
    let t_min = promise.t_min_bps as f64;
    if planned.t_min_bps < t_min || !most(planned.d_max_ns, ns) {
        return Err(format!("the file promises more of chain {name} than the plan keeps: plan it again").into());
    }
    // What is promised is served before all else: a promise that the file has not would take from other chains.
    if planned.t_min_bps > t_min || planned.d_max_ns != ns {
        return Err(
            format!("the plan keeps a promise of chain {name} that the file does not make: plan it again").into()
        );
    }
    if !most(planned.t_max_bps, bps) {
        return Err(format!("the file lets chain {name} have less than the plan does: plan it again").into());
    }
    if planned.t_max_bps.is_some_and(|planned| bps.is_none_or(|written| planned < written)) {
        return Err(format!("the file lets chain {name} have more than the plan does: plan it again").into());
    }
    Ok(())
}

/// Planned against measured.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Cycles per packet of each function.
    pub functions: Vec<Residual>,
    /// Cycles per packet that comes in of what the framework does.
    pub framework: Vec<Residual>,
    /// Bits per second of each chain.
    pub chains: Vec<Residual>,
    /// How often the tasks' weights were set by what functions cost here.
    pub weighed: u32,
}

/// A figure as it was planned and as it came.
#[derive(Debug, Serialize)]
pub struct Residual {
    /// What it is of.
    pub name: String,
    /// In the unit of its list.
    pub planned: f64,
    /// In the same unit.
    pub measured: f64,
    /// (measured − planned) / planned.
    pub residual: f64,
    /// Why the two are not to be compared, where they are not: all that came was taken, and it was less than planned; or of so few
    /// packets no mean is to be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// Of fewer packets the first ones are a good part, which cost many times as much.
const FEW: u64 = 10_000;

impl Residual {
    fn new(name: String, planned: f64, measured: f64) -> Residual {
        let residual = if planned > 0.0 { (measured - planned) / planned } else { 0.0 };
        Residual { name, planned, measured, residual, note: None }
    }

    /// The same, measured of so many packets.
    fn of(self, packets: u64) -> Residual {
        Residual { note: (packets < FEW).then_some("few packets"), ..self }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = ["", "planned", "measured", "off by"];
        let off = |row: &Residual| row.note.map_or_else(|| format!("{:+.1}%", row.residual * 100.0), str::to_owned);
        let mut table = Table::new(&columns, &[false, true, true, true]);
        for row in self.functions.iter().chain(&self.framework) {
            let cycles = |n: f64| format!("{n:.0} cycles");
            table.row([row.name.clone(), cycles(row.planned), cycles(row.measured), off(row)]);
        }
        for row in &self.chains {
            let rate = |bps: f64| format!("{:.1} Mbit/s", bps / 1e6);
            table.row([format!("chain {}", row.name), rate(row.planned), rate(row.measured), off(row)]);
        }
        write!(f, "\n{table}")?;
        match self.weighed {
            0 => Ok(()),
            times => {
                let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
                writeln!(f, "tasks weighed {times} by what functions cost here")
            }
        }
    }
}
