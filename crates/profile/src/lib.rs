//! Measuring what functions cost on this machine (Yen et al., "Lemur", CoNEXT 2020, §3.2 and §5.2).
//!
//! A function is set up as its folder says (`workload.rs`), in a chain file, and runs as `catena run` would run it,
//! on one core, on packets made a moment before. What counts is what the pipeline counts of it: the cycles from a
//! batch's coming in to its leaving, which are also what `catena run` prints. A *run* is the median of a dozen
//! stretches of 1.5 ms in which the machine was [calm]; every tenth run everything is built anew, so that the luck of
//! where things lie in memory is among what the runs show.
//!
//! Functions are measured round by round, each with one build in each round: a machine that is slow for minutes, as one with other
//! guests is, makes a part of every function's runs dear then, and not all runs of one.
//!
//! Traffic is of two kinds (Lemur, §5.2, footnote 6): few flows that live long, and 10,000 new flows a second; and a
//! function whose cost grows with the flows has so many of them. A function is measured beside a [companion].

pub mod across;
pub mod bed;
pub mod calm;
pub mod chain;
pub mod companion;
pub mod figures;
pub mod machine;
pub mod overheads;
pub mod port;
mod queues;
mod turns;

use std::collections::BTreeMap;

use catena_dataplane::worker::pin_this_thread;
use catena_functions::Descriptor;
use catena_functions::workload::{LONG_LIVED, SHORT_LIVED, Told, Workload};
use catena_plan_model::profile::{Cost, Cycles, Profile, Runs, Setting, VERSION};

use across::{Across, Far};
use bed::{Bed, Traffic};
use calm::{Calm, PATIENT, STRETCH};
use chain::{Chain, Line, PARTS};
use companion::Companion;
use port::Port;

/// Runs after which everything is built anew, elsewhere in memory: sooner where that would be fewer than [`BUILDS`] times.
const REBUILT: u32 = 10;
const BUILDS: u32 = 5;
/// Runs of an overhead, at most: there is no setting in which it could be worse.
const OVERHEAD_RUNS: u32 = 30;
/// Patience with a busy machine where only a rough idea is wanted.
const HASTY: usize = 3;
/// A run that costs so much more than the median of those on the same build is measured again, so many times at most:
/// what memory's luck does stays with the build, what other guests of the machine do does not.
const UNLIKELY: f64 = 1.15;
const AGAIN: usize = 3;
/// New flows a second, where flows are short-lived.
const NEW: u64 = 10_000;

/// How to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs in each setting at each size.
    pub runs: u32,
    /// Sizes to measure instead of a function's own.
    pub sizes: Vec<u64>,
    /// Measure only each function's usual size, if it says one.
    pub usual_only: bool,
    /// Sizes of single functions, instead of all others; such functions are measured as hastily as can be, and only for what
    /// plans reckon with.
    pub own_sizes: BTreeMap<&'static str, Vec<u64>>,
    /// The core.
    pub core: usize,
    /// Another core, from which packets come; none: that is not measured.
    pub other: Option<usize>,
    /// Whether other functions' state is beside a function's in the caches.
    pub beside: bool,
    /// The port that packets will come from; none: from memory, and few flows.
    pub port: Option<Port>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The profile.
    pub profile: Profile,
    /// The part of all stretches that had to be taken although the machine was not calm, 0 to 1.
    pub disturbed: f64,
}

/// A function in one setting at one size, with one build: what is measured next.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its number, from 1, over all rounds; 1 are the overheads.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// The function, `None` for the overheads.
    pub function: Option<&'static str>,
    /// The size.
    pub size: u64,
    /// The setting.
    pub setting: Setting,
    /// Whether it is measured without a companion, where others are beside one.
    pub alone: bool,
}

struct Plan {
    function: &'static str,
    workload: &'static Workload,
    size: u64,
    setting: Setting,
    /// Whether no companion is beside it.
    alone: bool,
}

/// Measure functions; those without a workload are left out. `tell` hears of every step before it begins.
///
/// # Errors
/// When a core cannot be had, or a function's set-up loses packets.
pub fn measure(
    functions: &[&'static Descriptor],
    options: &Options,
    tell: &mut dyn FnMut(&Step),
) -> Result<Measured, String> {
    let machine = machine::this();
    if !pin_this_thread(options.core) {
        return Err(format!("cannot run on core {}; this process may use {}", options.core, machine.cores));
    }
    let plans: Vec<Plan> = functions
        .iter()
        .filter_map(|f| Some((f, f.workload?)))
        .flat_map(|(f, workload)| {
            settings(f.name, workload, options).into_iter().map(|(size, setting, alone)| Plan {
                function: f.name,
                workload,
                size,
                setting,
                alone,
            })
        })
        .collect();
    let builds = Builds::of(options.runs);
    let of = plans.len() * builds.rounds() + 1;
    let mut calm = Calm::new(if options.usual_only { HASTY } else { PATIENT })?;
    tell(&Step { number: 1, of, function: None, size: 0, setting: Setting::LongLived, alone: false });
    let overheads = overheads::measure(&mut calm, options.runs.min(OVERHEAD_RUNS), options)?;
    let port = options.port.as_ref().map(|port| port.name.clone());
    let mut profile = Profile { version: VERSION, machine, port, overheads, functions: Default::default() };
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); plans.len()];
    let rounds = (1..).zip(builds).flat_map(|build| plans.iter().enumerate().map(move |plan| (build, plan)));
    for (number, ((seed, runs), (n, plan))) in (2..).zip(rounds) {
        let Plan { function, size, setting, alone, .. } = *plan;
        tell(&Step { number, of, function: Some(function), size, setting, alone });
        let taken = built(plan, options, (seed, runs), &mut calm).map_err(|error| format!("{function}: {error}"))?;
        samples[n].extend(taken);
    }
    let described = |(plan, samples): (&Plan, &Vec<f64>)| Runs {
        alone: plan.alone,
        ..figures::runs(plan.size as f64, plan.setting, samples)
    };
    let runs: Vec<(&Plan, Runs)> = plans.iter().zip(&samples).map(|of| (of.0, described(of))).collect();
    for plan in &plans {
        if !profile.functions.contains_key(plan.function) {
            let own = runs.iter().filter(|(of, _)| of.function == plan.function).map(|(_, runs)| runs.clone());
            let unit = plan.workload.size.map_or("", |size| size.unit);
            // The last setting of a function is one at its usual size.
            let last = plans.iter().rfind(|of| of.function == plan.function).map_or(plan.size, |of| of.size);
            let flows = traffic(plan.workload, last, Setting::ShortLived).flows;
            let server: Cycles = figures::cost(unit, flows as f64, own.collect());
            profile.functions.insert(plan.function.to_owned(), Cost { server, smart_nic: None, source: None });
        }
    }
    Ok(Measured { profile, disturbed: calm.missed() })
}

/// The sizes and settings that a function is measured in, and whether alone where others are beside it: across cores,
/// with fewer flows, in small batches, in turn with others and alone only at its usual size.
fn settings(function: &str, workload: &Workload, options: &Options) -> Vec<(u64, Setting, bool)> {
    let own = options.own_sizes.get(function);
    let (mut sizes, usual) = match workload.size {
        None => (vec![0], 0),
        Some(size) if own.is_some() => {
            let sizes = own.into_iter().flatten().copied().collect::<Vec<u64>>();
            let last = sizes.iter().copied().max().unwrap_or(size.usual);
            (sizes, last)
        }
        Some(size) if options.usual_only => (vec![size.usual], size.usual),
        Some(size) if options.sizes.is_empty() => (size.measured.to_vec(), size.usual),
        Some(_) => (options.sizes.clone(), options.sizes.last().copied().unwrap_or(0)),
    };
    sizes.sort_unstable();
    sizes.dedup();
    let mut settings: Vec<(u64, Setting, bool)> = sizes
        .iter()
        .flat_map(|&size| [(size, Setting::LongLived, false), (size, Setting::ShortLived, false)])
        .collect();
    let parts = [Setting::FewerFlows, Setting::SmallBatches];
    settings.extend(parts.into_iter().chain([Setting::InTurn]).map(|setting| (usual, setting, false)));
    if options.beside {
        settings.extend([Setting::ShortLived].into_iter().chain(parts).map(|setting| (usual, setting, true)));
    }
    settings.extend(options.other.filter(|_| own.is_none()).map(|_| (usual, Setting::AcrossCores, false)));
    settings
}

/// The traffic of a setting.
fn traffic(workload: &Workload, size: u64, setting: Setting) -> Traffic {
    let short = matches!(setting, Setting::ShortLived | Setting::FewerFlows | Setting::SmallBatches | Setting::InTurn);
    let new = short.then_some(NEW);
    let flows = match (workload.size, setting) {
        (Some(of), _) if of.told == Told::Traffic => size,
        _ if short => SHORT_LIVED,
        _ => LONG_LIVED,
    };
    // In small batches and in turn a branch leaves the function its part of all of that; here the generator does.
    let parts = if setting == Setting::FewerFlows { u64::from(PARTS) } else { 1 };
    Traffic { flows, new, parts }
}

/// How many runs are made with each build of a function, build after build.
#[derive(Clone, Copy, Debug)]
struct Builds {
    left: u32,
    each: u32,
}

impl Builds {
    fn of(runs: u32) -> Builds {
        Builds { left: runs, each: REBUILT.min(runs / BUILDS).max(1) }
    }

    fn rounds(&self) -> usize {
        self.left.div_ceil(self.each) as usize
    }
}

impl Iterator for Builds {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let runs = self.each.min(self.left);
        self.left -= runs;
        (runs > 0).then_some(runs)
    }
}

/// Build a function's set-up, and measure it so many times.
fn built(plan: &Plan, options: &Options, (seed, runs): (u64, u32), calm: &mut Calm) -> Result<Vec<f64>, String> {
    let traffic = traffic(plan.workload, plan.size, plan.setting);
    let setup = (plan.workload.setup)(plan.size);
    let chain = match plan.setting {
        Setting::SmallBatches => Chain::of_a_part(&setup),
        _ => Chain::of(std::slice::from_ref(&setup)),
    };
    let beside = options.beside && !plan.alone;
    if let (Setting::AcrossCores, Some(other)) = (plan.setting, options.other) {
        let companion = beside.then(|| Companion::of(traffic.flows));
        let line = Line::new(&chain, seed, companion)?;
        let mut across = Across::new(Far::Chain(line), traffic, other, seed)?;
        let mut samples = Vec::new();
        for _ in 0..runs {
            samples.extend(calm.run(|| Ok(across.stretch(STRETCH)?.functions))?);
        }
        across.end()?;
        return Ok(samples);
    }
    // Beside a function there is as much state of others' as otherwise, whatever part of the flows it has.
    let mut bed = match plan.setting {
        Setting::InTurn => turns::bed(&setup, plan.function, traffic, beside, seed)?,
        _ => Bed::new(&chain, traffic, beside, seed)?,
    };
    bed.warm_up()?;
    let samples = likely(runs, || calm.run(|| Ok(vec![bed.stretch(STRETCH).functions.swap_remove(0)])))?;
    bed.nothing_lost()?;
    Ok(samples)
}

/// Measure so many runs of a build, and again those that are far above the others.
fn likely(runs: u32, mut run: impl FnMut() -> Result<Vec<f64>, String>) -> Result<Vec<f64>, String> {
    let mut samples = Vec::new();
    for _ in 0..runs {
        samples.extend(run()?);
    }
    let middle = figures::median(&mut samples.clone());
    for sample in &mut samples {
        for _ in 0..AGAIN {
            if *sample <= UNLIKELY * middle {
                break;
            }
            *sample = run()?.into_iter().fold(*sample, f64::min);
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_functions::registry;

    const OPTIONS: Options = Options {
        runs: 2,
        sizes: Vec::new(),
        usual_only: false,
        own_sizes: BTreeMap::new(),
        core: 0,
        other: None,
        beside: true,
        port: None,
    };

    #[test]
    fn runs_are_divided_into_builds() {
        let of = |runs| Builds::of(runs).collect::<Vec<u32>>();
        assert_eq!((of(0), of(1), of(3)), (vec![], vec![1], vec![1; 3]));
        assert_eq!((of(10), of(12)), (vec![2; 5], vec![2; 6]));
        assert_eq!((of(500), of(57)), (vec![10; 50], vec![10, 10, 10, 10, 10, 7]));
        assert!((0..100).all(|runs| Builds::of(runs).rounds() == of(runs).len()));
    }

    #[test]
    fn a_run_that_does_not_come_again_does_not_count_and_one_that_does_counts() {
        let mut once = [50.0, 90.0, 50.0, 51.0, 52.0].into_iter();
        let samples = likely(4, || Ok(vec![once.next().unwrap()])).unwrap();
        assert_eq!(samples, [50.0, 52.0, 50.0, 51.0]);
        let mut number = 0;
        let always = likely(4, || {
            number += 1;
            Ok(vec![if number == 1 || number > 4 { 90.0 } else { 50.0 }])
        });
        assert_eq!(always.unwrap(), [90.0, 50.0, 50.0, 50.0]);
    }

    /// Every workload of the library sets up a chain that takes its traffic without a loss, at every size it names
    /// but the largest, which take long.
    #[test]
    fn workloads_run_and_lose_nothing() {
        for function in registry::FUNCTIONS {
            let Some(workload) = function.workload else { continue };
            let least = workload.size.and_then(|size| size.measured.first().copied()).unwrap_or(0);
            let chain = Chain::of(&[(workload.setup)(least)]);
            for setting in [Setting::LongLived, Setting::ShortLived] {
                let traffic = traffic(workload, least, setting);
                let mut bed = Bed::new(&chain, traffic, true, 1).unwrap_or_else(|e| panic!("{}: {e}", function.name));
                bed.warm_up().unwrap_or_else(|e| panic!("{}: {e}", function.name));
                // Where the core was taken away, what measuring costs may be more than what was measured.
                let mut stretches = std::iter::repeat_with(|| bed.stretch(STRETCH)).take(5);
                let stretch = stretches.find(|one| one.functions.iter().all(|&cycles| cycles > 0.0));
                let stretch = stretch.unwrap_or_else(|| panic!("{}: it never costs anything", function.name));
                assert!(stretch.functions.len() == 1 && stretch.functions[0] > 0.0, "{}: {stretch:?}", function.name);
                assert!(stretch.whole > 0.0);
                bed.nothing_lost().unwrap_or_else(|e| panic!("{}: {e}", function.name));
            }
        }
    }

    #[test]
    fn sizes_are_in_order_and_usual_ones_among_them() {
        for workload in registry::FUNCTIONS.iter().filter_map(|f| f.workload) {
            let Some(size) = workload.size else { continue };
            assert!(size.measured.is_sorted() && size.measured.contains(&size.usual), "{size:?}");
        }
    }

    #[test]
    fn settings_are_those_of_the_paper() {
        let acl = registry::find("ACL").and_then(|f| f.workload).unwrap();
        let nat = registry::find("NAT").and_then(|f| f.workload).unwrap();
        assert_eq!(traffic(acl, 1024, Setting::LongLived), Traffic { flows: 40, new: None, parts: 1 });
        assert_eq!(traffic(acl, 1024, Setting::ShortLived), Traffic { flows: 10_000, new: Some(10_000), parts: 1 });
        assert_eq!(traffic(nat, 12_000, Setting::LongLived), Traffic { flows: 12_000, new: None, parts: 1 });
        let options = Options { sizes: vec![9, 3, 9], other: Some(1), ..OPTIONS };
        let settings = settings("ACL", acl, &options);
        assert_eq!(settings.len(), 11);
        let parts = [Setting::FewerFlows, Setting::SmallBatches, Setting::InTurn].map(|setting| (9, setting, false));
        let alone = [Setting::ShortLived, Setting::FewerFlows, Setting::SmallBatches].map(|setting| (9, setting, true));
        assert_eq!(settings[4..7], parts);
        assert_eq!(settings[7..10], alone);
        assert_eq!(settings[10], (9, Setting::AcrossCores, false));
        let own_sizes = BTreeMap::from([("ACL", vec![7])]);
        let own = super::settings("ACL", acl, &Options { own_sizes, ..options });
        assert!(own.len() == 8 && own.iter().all(|(size, ..)| *size == 7), "{own:?}");
    }

    #[test]
    fn a_chain_of_functions_is_lowered_with_their_files() {
        let setup = |name: &str| (registry::find(name).unwrap().workload.unwrap().setup)(10);
        let chain = Chain::of(&[setup("ACL"), setup("ACL"), setup("NAT")]);
        assert_eq!(chain.files.len(), 2);
        let line = Line::new(&chain, 1, None).unwrap();
        assert_eq!(line.functions.len(), 3);
        assert!(
            Line::new(&Chain { text: "chain c { in -> Acl() -> out }".into(), ..Chain::default() }, 1, None).is_err()
        );
    }
}
