//! A plan for the machine at hand, so that what a file promises holds in a run that was not planned before.
//!
//! Promises are about traffic as it comes: a replay takes packets as fast as it can, has no rates, and loses nothing to a plan.
//! What no plan has measured here before is taken from papers or guessed; the weights follow what functions really cost soon
//! after the start.

use std::path::Path;
use std::time::Duration;

use catena_dataplane::clock;
use catena_plan::alpine;
use catena_plan::demand::Options;
use catena_plan::plan::{Plan, Verdict, gigabits};
use catena_plan::profile::{Cost, Cycles};
use catena_plan::rack::{Nic, PACKET_BYTES, Rack, Server};
use catena_policy::{PolicyGraph, Promise};
use catena_runtime::planned::why_no_tasks;
use catena_runtime::{Chain, Failure, Note, Planned, Planner, Port, Ports, Unplanned};

use crate::case::{Case, How, Runs};
use crate::inputs::Inputs;
use crate::known::own;
use crate::quick::kept;
use crate::strategy::Strategy;

/// What a port brings that does not say, bits per second: more than any.
const PORT_BPS: f64 = 400e9;
/// Cycles of a function that nobody knows anything of.
const GUESS: f64 = 100.0;
/// More chains than these are not planned exactly: a run should begin.
const FEW: usize = 32;
/// Of more chains that are promised a time, none is where one of these cannot be: each takes a plan more to tell.
const FEW_TIMES: usize = 8;
/// How long that may take.
const TIME: Duration = Duration::from_secs(1);
/// Promises that are too much are halved so often before nothing is planned.
const HALVES: i32 = 12;

/// Plans a run for this machine: as many cores as it has workers, and the ports that packets come in by.
///
/// What a file promises is planned where packets come as they come. Where that cannot be, the run has a plan without promises, or
/// none, and whoever listens is told why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here;

impl Planner for Here {
    fn plan(&self, run: &Unplanned<'_>, tell: &dyn Fn(&Note)) -> Option<Planned> {
        let &Unplanned { chain, ports, workers, seed, .. } = run;
        // What cannot be divided among so many workers is refused by its functions, in their own words.
        let without_promises = |notes: &[Note]| match unpromised(chain, ports, workers, seed) {
            Ok(plan) => Planned::here(left_out(plan, notes), &chain.graph),
            Err(why) => {
                tell(&Note::Unplanned { file: chain.name.clone(), why });
                None
            }
        };
        if !ports.is_live() || !promises(&chain.graph) {
            return without_promises(&[]);
        }
        let refused = |why: Failure| {
            let note = Note::NothingHolds { file: chain.name.clone(), why };
            tell(&note);
            without_promises(&[note])
        };
        if let Some(name) = run.rebalances {
            let why = format!("slots that move ({name}) find no queues between tasks on their way");
            return refused(why.into());
        }
        match promised(chain, ports, workers, seed) {
            Ok((plan, notes)) => {
                notes.iter().for_each(tell);
                Planned::here(plan, &chain.graph)
            }
            Err(why) => refused(why),
        }
    }
}

/// The plan by which a file would be run on what comes by `ports`, and what has to be said of it. Where nothing comes from, it is
/// traffic as it comes.
///
/// # Errors
/// Why it would be run without a plan.
pub fn for_traffic(chain: &Chain, ports: &Ports, workers: u32, seed: u64) -> Result<(Plan, Vec<Note>), Failure> {
    let unpromised = || unpromised(chain, ports, workers, seed);
    // As a run does: a replay has no rates, and loses nothing to a plan.
    if !promises(&chain.graph) || (ports.have_source() && !ports.is_live()) {
        return Ok((unpromised()?, Vec::new()));
    }
    promised(chain, ports, workers, seed).or_else(|why| {
        let notes = vec![Note::NothingHolds { file: chain.name.clone(), why }];
        Ok((left_out(unpromised()?, &notes), notes))
    })
}

/// Whether the file promises anything, to chains or of how they stand to each other.
fn promises(graph: &PolicyGraph) -> bool {
    let promised = |chain: &catena_policy::Chain| chain.promise != Promise::default();
    !graph.relations.is_empty() || graph.chains.iter().any(promised)
}

/// A plan for `workers` workers of this machine, which has tasks; and what has to be said of it before packets flow.
///
/// # Errors
/// Why the file's promises are held by nothing.
fn promised(loaded: &Chain, ports: &Ports, workers: u32, seed: u64) -> Result<(Plan, Vec<Note>), Failure> {
    let mut graph = loaded.graph.clone();
    let unheld = without_queues(loaded, &mut graph, speed_of(ports));
    if !unheld.is_empty() && !promises(&graph) {
        return Err(unheld.into_iter().map(|(_, why)| why).collect::<Vec<_>>().join("; ").into());
    }
    let (plan, mut notes) = timed(loaded, graph, ports, workers, seed)?;
    let note = |(_, why): (usize, String)| Note::NotAll { file: loaded.name.clone(), why: why.into() };
    notes.splice(0..0, unheld.into_iter().map(note));
    Ok((left_out(plan, &notes), notes))
}

/// The plan, with what notes say of promises that it is not of. Of a part of the rates, or of what is broken, it says so itself.
fn left_out(plan: Plan, notes: &[Note]) -> Plan {
    let left_out = notes.iter().filter_map(|note| match note {
        Note::NotAll { why, .. } | Note::NothingHolds { why, .. } => Some(one_line(&why.to_string())),
        _ => None,
    });
    let texts = if plan.is_kept() { left_out.collect() } else { Vec::new() };
    plan.leaving_out(texts)
}

/// What is said in several lines, as a list of functions is, in one: a plan has no others.
fn one_line(text: &str) -> String {
    text.split(char::is_control).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Take the upper ends of chains without functions out of `graph`, where more than that can come: their packets wait nowhere, so nothing
/// can hold them to it. That costs no other chain what it is promised. Returns which chains these are, and why.
fn without_queues(loaded: &Chain, graph: &mut PolicyGraph, comes_bps: f64) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (c, chain) in graph.chains.iter_mut().enumerate().filter(|(_, chain)| chain.nodes.is_empty()) {
        let Some(bps) = chain.promise.t_max_bps.filter(|most| (*most as f64) < comes_bps) else { continue };
        chain.promise.t_max_bps = None;
        let line = 1 + loaded.source[..chain.span.within(&loaded.source).start].matches('\n').count();
        let why = format!(
            "line {line}: chain {} may have at most {} Gbit/s, and has no function in front of which packets could wait; put one \
             there, such as `in -> Monitor() -> out`, or leave the upper end out",
            chain.name,
            gigabits(bps as f64)
        );
        found.push((c, why));
    }
    found
}

/// A plan of all that `graph` promises, or of all but times that cannot be.
fn timed(
    loaded: &Chain,
    graph: PolicyGraph,
    ports: &Ports,
    workers: u32,
    seed: u64,
) -> Result<(Plan, Vec<Note>), Failure> {
    let held = |graph: PolicyGraph| held(loaded, inputs(loaded, graph, ports, workers)?, workers, seed);
    held(graph.clone()).or_else(|why| {
        // Who is promised less time than the functions take does not cost others what they are promised, nor the time of those whose
        // packets can be so fast.
        let mut graph = graph;
        let times: Vec<Option<u64>> = graph.chains.iter_mut().map(|chain| chain.promise.d_max_ns.take()).collect();
        let timed: Vec<usize> = (0..times.len()).filter(|c| times[*c].is_some()).collect();
        if timed.is_empty() || !promises(&graph) {
            return Err(why);
        }
        let (mut plan, mut notes) = held(graph.clone())?;
        if (2..=FEW_TIMES).contains(&timed.len()) {
            for c in timed {
                graph.chains[c].promise.d_max_ns = times[c];
                match held(graph.clone()) {
                    // What is halved for its sake is more than it is worth.
                    Ok(with) if with.1.len() <= notes.len() => (plan, notes) = with,
                    _ => graph.chains[c].promise.d_max_ns = None,
                }
            }
        }
        notes.insert(0, Note::NotAll { file: loaded.name.clone(), why });
        Ok((plan, notes))
    })
}

/// The same of what is planned already.
fn held(loaded: &Chain, inputs: Inputs, workers: u32, seed: u64) -> Result<(Plan, Vec<Note>), Failure> {
    let strategy = if loaded.graph.chains.len() > FEW { Strategy::Lemur } else { Strategy::Exact };
    let mut less = inputs;
    let (mut first, mut nearest) = (None, None);
    for halves in 0..HALVES {
        let case = quick(less.clone(), seed)?;
        let plan = case.decide(strategy)?.plan;
        let has_tasks = plan.servers.iter().any(|server| server.tasks.is_some());
        if has_tasks && plan.is_kept() {
            let held = (halves > 0).then(|| 1.0 / f64::from(1 << halves));
            return Ok((plan.for_part(held), Vec::from_iter(held.map(|part| Note::Less { workers, part }))));
        }
        match (plan.placement.is_some(), &plan.verdict) {
            // A part of the rates may go with what else is promised.
            (_, Verdict::Broken { why, .. }) if has_tasks => {
                nearest = nearest
                    .or(Some((plan.clone(), Note::NotAll { file: loaded.name.clone(), why: why.clone().into() })));
            }
            // Whatever is promised, no tasks can be made.
            (true, Verdict::Broken { why, .. }) => return Err(why.clone().into()),
            (true, Verdict::Kept { .. }) => {
                return Err(why_no_tasks(&plan).unwrap_or_else(|| "no tasks are found".to_owned()).into());
            }
            // What is in the way of the promises as they are written, and not of a part of them.
            (false, Verdict::Broken { why, .. }) => first = first.or(Some(why.clone())),
            (false, Verdict::Kept { .. }) => {}
        }
        if less.graph.chains.iter().all(|chain| chain.promise.t_min_bps == 0) {
            break;
        }
        for chain in &mut less.graph.chains {
            chain.promise.t_min_bps /= 2;
        }
    }
    if let Some((plan, note)) = nearest {
        return Ok((plan, vec![note]));
    }
    Err(first.unwrap_or_else(|| "this machine does not carry what is promised".to_owned()).into())
}

/// A plan for `workers` workers of this machine, of which nothing is promised.
///
/// # Errors
/// What is wrong with functions' arguments.
fn unpromised(loaded: &Chain, ports: &Ports, workers: u32, seed: u64) -> Result<Plan, Failure> {
    let mut graph = loaded.graph.clone();
    graph.relations.clear();
    graph.chains.iter_mut().for_each(|chain| chain.promise = Promise::default());
    quick(inputs(loaded, graph, ports, workers)?, seed)?.unpromised()
}

/// The case of a run that begins at once.
fn quick(inputs: Inputs, seed: u64) -> Result<Case, Failure> {
    let how = How { options: Options::default(), tasks: alpine::Objective::FewestTasks, time: TIME, margin: 0.0 };
    Case::new(inputs, how, Runs::Nothing(seed))
}

/// What a plan for this machine is made of.
fn inputs(loaded: &Chain, graph: PolicyGraph, ports: &Ports, workers: u32) -> Result<Inputs, Failure> {
    // Measuring takes seconds: what an earlier plan measured is used, and a run begins at once.
    let mut known = own(kept());
    known.split_as_run();
    for traits in &known.catalogue.functions {
        let guess = || Cost { server: Cycles::constant(GUESS), smart_nic: None, source: Some("a guess".to_owned()) };
        let cost = known.profile.functions.entry(traits.name.clone()).or_insert_with(guess);
        if let Some(source) = &cost.source {
            known.sources.insert(traits.name.clone(), source.clone());
        }
    }
    Inputs::here(&loaded.name, graph, rack(ports, workers), known)
}

/// This machine: as many cores as there are workers, and the ports that packets come in by.
fn rack(ports: &Ports, workers: u32) -> Rack {
    // Where nothing comes from, as for a plan that is only shown, it might come by any port.
    let sides = [("in", &ports.inside[0]), ("out", &ports.outside[0])];
    let (name, _) = sides.into_iter().find(|(_, port)| !matches!(port, Port::Null)).unwrap_or(sides[0]);
    let nic = Nic { name: name.to_owned(), socket: 0, bps: speed_of(ports), address: None };
    let server = Server {
        name: "here".to_owned(),
        sockets: 1,
        cores_per_socket: workers,
        steering_cores: 0,
        shared: true,
        clock_hz: whole_megahertz(clock::hertz()),
        nics: vec![nic],
        smart_nics: Vec::new(),
    };
    Rack { name: "this machine".to_owned(), servers: vec![server], switch: None, packet_bytes: PACKET_BYTES }
}

/// A clock is measured anew by each process, to some kHz. What is planned by it must be the same for all of them, whatever is rounded on
/// the way: so it is taken to a MHz.
fn whole_megahertz(hertz: u64) -> f64 {
    const MHZ: f64 = 1e6;
    (hertz as f64 / MHZ).round().max(1.0) * MHZ
}

/// Bits per second that come by the port that packets come in by.
fn speed_of(ports: &Ports) -> f64 {
    let sides = [&ports.inside[0], &ports.outside[0]];
    speed(sides.into_iter().find(|port| !matches!(port, Port::Null)).unwrap_or(sides[0]))
}

/// Bits per second that come by a port, as its interface says.
fn speed(port: &Port) -> f64 {
    let Port::Interface(name) = port else { return PORT_BPS };
    let megabits = std::fs::read_to_string(Path::new("/sys/class/net").join(name).join("speed"));
    // Some say nothing, some that they do not know: -1.
    let megabits = megabits.ok().and_then(|text| text.trim().parse::<f64>().ok()).filter(|megabits| *megabits > 0.0);
    megabits.map_or(PORT_BPS, |megabits| megabits * 1e6)
}

#[cfg(test)]
mod tests {
    use super::{one_line, whole_megahertz};

    #[test]
    fn what_a_plan_says_is_one_line() {
        assert_eq!(
            one_line("these functions cannot be planned:\n  a: why\r\n\n  b: because"),
            "these functions cannot be planned: a: why b: because"
        );
        assert_eq!(one_line("in one line"), "in one line");
    }

    #[test]
    fn a_clock_that_two_processes_measure_is_one() {
        assert!([2_100_000_234, 2_099_987_530].iter().all(|hertz| whole_megahertz(*hertz) == 2.1e9));
        assert!(whole_megahertz(2_445_600_000) > whole_megahertz(2_445_400_000) && whole_megahertz(0) > 0.0);
    }
}
