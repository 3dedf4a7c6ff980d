//! What lies between two deployments.

use std::collections::{BTreeMap, BTreeSet};

use catena_plan_model::returns::Prefix;
use catena_policy::Direction;

use super::{Delta, Move, Part, Step};
use crate::deployment::devices::Tunnel;
use crate::deployment::entrances::Entrance;
use crate::deployment::paths::Path;
use crate::deployment::{Deployment, Instance, Segment};

impl Delta {
    /// What makes `new` of `old`. Instances of the same name are the same. `there` says of a device whether it still is.
    #[must_use]
    pub fn between(old: &Deployment, new: &Deployment, there: impl Fn(&str) -> bool) -> Delta {
        let [old_ones, new_ones] = touched(old, new);
        let (before, after) = (Index::of(old, &old_ones), Index::of(new, &new_ones));
        let mut steps = Vec::new();
        for instance in new_ones.iter().filter(|new| !before.names.contains(new.name.as_str())) {
            steps.push(Step::Start {
                instance: instance.name.clone(),
                functions: after.functions(instance).to_vec(),
                on: instance.on.clone(),
                core: instance.core,
            });
        }
        let has = |paths: &[Path], spi: u32| paths.iter().any(|path| path.spi == spi);
        for path in new.paths.iter().filter(|path| !has(&old.paths, path.spi)) {
            steps.push(Step::Install { spi: path.spi, chain: path.chain.clone() });
        }
        steps.extend(new.devices.iter().filter_map(|device| equipped(&device.on, old, new)));
        let Flows { given, moved, regrouped } = flows(&before, &after, &new_ones, &there);
        steps.extend(given);
        steps.extend(moved.into_iter().map(Step::Move));
        // Where nobody says which way packets go, there is no moment in which they go another.
        let (with_paths, alone) = if new.paths.is_empty() { (Vec::new(), regrouped) } else { (regrouped, Vec::new()) };
        steps.extend(alone.into_iter().map(Step::Move));
        if old.entrances != new.entrances || !with_paths.is_empty() {
            steps.push(Step::Enter { paths: new.entered(), others: others(old, new), moves: with_paths });
        }
        for path in old.paths.iter().filter(|path| !has(&new.paths, path.spi)) {
            steps.push(Step::Remove { spi: path.spi, chain: path.chain.clone() });
        }
        for instance in &old_ones {
            let gone = before.functions(instance).iter().filter(|own| !after.of.contains_key(own.as_str()));
            let functions: Vec<String> = gone.cloned().collect();
            if !functions.is_empty() {
                steps.push(Step::End { functions, from: instance.name.clone() });
            }
        }
        for instance in old_ones.iter().filter(|old| !after.names.contains(old.name.as_str())) {
            steps.push(Step::Stop { instance: instance.name.clone() });
        }
        // A digest takes longer than all else, and who follows another has it already.
        Delta {
            from: new.follows.clone().unwrap_or_else(|| old.digest()),
            epoch: new.epoch,
            changed: Vec::new(),
            steps,
        }
    }
}

/// What of a device has to be changed; None: nothing.
fn equipped(on: &str, old: &Deployment, new: &Deployment) -> Option<Step> {
    let has = |deployment: &Deployment| {
        let device = deployment.devices.iter().find(|device| device.on == on);
        let is_switch = device.is_some_and(|device| device.device.is_switch());
        // A switch is at one end of each.
        let own = deployment.tunnels.iter().filter(|tunnel| is_switch || tunnel.on == on);
        let tunnels: Vec<Tunnel> = own.cloned().collect();
        let tables = device.map_or_else(Vec::new, |device| device.tables.clone());
        let kind = device.map(|device| device.device).filter(|_| is_switch);
        (tables, tunnels, device.and_then(|device| device.schedule.clone()), kind)
    };
    let (before, after) = (has(old), has(new));
    let parts = [
        (Part::Whole, before.3 != after.3),
        (Part::Tables, before.0 != after.0),
        (Part::Tunnels, before.1 != after.1),
        (Part::Schedule, before.2 != after.2),
    ];
    let with: Vec<Part> = parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect();
    (!with.is_empty()).then(|| Step::Equip { on: on.to_owned(), with })
}

/// An entrance as packets meet it: addresses, class, filter, chain, and whether frames that are not IP are dropped.
type Told = ([Vec<Prefix>; 2], Option<String>, Option<String>, Option<String>, bool);

/// Whether packets of live flows may be of another chain by the new entrances: unless the old ones are all there, in their order, and
/// others come behind them and took nothing from anybody.
fn others(old: &Deployment, new: &Deployment) -> bool {
    let chain = |deployment: &Deployment, spi: u32| {
        deployment.paths.iter().find(|path| path.spi == spi).map(|path| path.chain.clone())
    };
    [Direction::Forward, Direction::Return].into_iter().any(|direction| {
        let of = |deployment: &Deployment| -> Vec<Told> {
            let own = deployment.entrances.iter().filter(|entrance| entrance.direction == direction);
            let seen = |e: &Entrance| {
                let addresses = [e.destinations.clone(), e.sources.clone()];
                (addresses, e.class.clone(), e.filter.clone(), chain(deployment, e.spi), e.drops_unparsed)
            };
            own.map(seen).collect()
        };
        let (before, after) = (of(old), of(new));
        // Chains that end take their classes with them; that is said of the chains.
        let there = |spi: &Option<String>| new.paths.iter().any(|path| Some(&path.chain) == spi.as_ref());
        let kept: Vec<_> = before.into_iter().filter(|(_, _, _, chain, _)| there(chain)).collect();
        !after.starts_with(&kept)
    })
}

/// What becomes of flows.
#[derive(Default)]
struct Flows {
    /// Those of functions that are new.
    given: Vec<Step>,
    /// Those that go to another instance of their segment.
    moved: Vec<Move>,
    /// Those whose functions run in another segment, or on another device.
    regrouped: Vec<Move>,
}

/// Flows that go to another instance, and those of functions that are new: functions that go the same way are one step.
fn flows(before: &Index<'_>, after: &Index<'_>, new: &[&Instance], there: &dyn Fn(&str) -> bool) -> Flows {
    let mut flows = Flows::default();
    for to in new {
        // By whom they come from, and which slots they are of.
        let mut ways: BTreeMap<(&str, String), (Move, bool)> = BTreeMap::new();
        let mut fresh = Vec::new();
        for function in after.functions(to) {
            let Some(holders) = before.of.get(function.as_str()) else {
                fresh.push(function.clone());
                continue;
            };
            for from in holders.iter().filter(|from| from.name != to.name) {
                let slots = from.slots.common(&to.slots);
                if slots.is_empty() {
                    continue;
                }
                let way = ways.entry((from.name.as_str(), slots.to_string())).or_insert_with(|| {
                    let (from_name, to_name, gone) = (from.name.clone(), to.name.clone(), !there(&from.on));
                    let one = Move { functions: Vec::new(), slots, from: from_name, to: to_name, gone };
                    (one, (&from.segment, &from.on) != (&to.segment, &to.on))
                });
                way.0.functions.push(function.clone());
            }
        }
        if !fresh.is_empty() && !to.slots.is_empty() {
            flows.given.push(Step::Give { functions: fresh, slots: to.slots.clone(), to: to.name.clone() });
        }
        for (one, regrouped) in ways.into_values() {
            if regrouped { flows.regrouped.push(one) } else { flows.moved.push(one) }
        }
    }
    flows
}

/// The instances, before and after, of the segments of which something changes: where the segments are the same, and all other
/// instances are, too, there is nothing to be done for these. A thousand run where one has too much to do.
fn touched<'a>(old: &'a Deployment, new: &'a Deployment) -> [Vec<&'a Instance>; 2] {
    let all = [old, new].map(|deployment| &deployment.instances[..]);
    if old.segments != new.segments {
        return all.map(|instances| instances.iter().collect());
    }
    let [mut before, mut after] = all;
    while let ([a, b @ ..], [c, d @ ..]) = (before, after)
        && a == c
    {
        (before, after) = (b, d);
    }
    while let ([b @ .., a], [d @ .., c]) = (before, after)
        && a == c
    {
        (before, after) = (b, d);
    }
    let segments: BTreeSet<&str> = before.iter().chain(after).map(|instance| instance.segment.as_str()).collect();
    all.map(|instances| instances.iter().filter(|instance| segments.contains(instance.segment.as_str())).collect())
}

/// A deployment by names.
struct Index<'a> {
    names: BTreeSet<&'a str>,
    segments: BTreeMap<&'a str, &'a Segment>,
    /// The instances that run a function.
    of: BTreeMap<&'a str, Vec<&'a Instance>>,
}

impl<'a> Index<'a> {
    /// Index some of a deployment's instances.
    fn of(deployment: &'a Deployment, instances: &[&'a Instance]) -> Index<'a> {
        let own: BTreeSet<&str> = instances.iter().map(|instance| instance.segment.as_str()).collect();
        let segments = deployment.segments.iter().filter(|segment| own.contains(segment.name.as_str()));
        let segments: BTreeMap<&str, &Segment> = segments.map(|segment| (segment.name.as_str(), segment)).collect();
        let mut of: BTreeMap<&str, Vec<&Instance>> = BTreeMap::new();
        for &instance in instances {
            for function in segments.get(instance.segment.as_str()).iter().flat_map(|segment| &segment.functions) {
                of.entry(function.as_str()).or_default().push(instance);
            }
        }
        Index { names: instances.iter().map(|i| i.name.as_str()).collect(), segments, of }
    }

    fn functions(&self, instance: &Instance) -> &'a [String] {
        self.segments.get(instance.segment.as_str()).map_or(&[], |segment| &segment.functions)
    }
}
