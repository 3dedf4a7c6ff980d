//! What lies between two deployments.

use std::collections::{BTreeMap, BTreeSet};

use super::{Delta, Step};
use crate::deployment::paths::Path;
use crate::deployment::ranges::Slots;
use crate::deployment::{Deployment, Instance, Segment};

impl Delta {
    /// What makes `new` of `old`. Instances of the same name are the same. `there` says of a device whether it still is.
    #[must_use]
    pub fn between(old: &Deployment, new: &Deployment, there: impl Fn(&str) -> bool) -> Delta {
        let (before, after) = (Index::of(old), Index::of(new));
        let mut steps = Vec::new();
        for instance in new.instances.iter().filter(|new| !before.names.contains(new.name.as_str())) {
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
        steps.extend(flows(&before, &after, new, &there));
        if old.entrances != new.entrances {
            steps.push(Step::Enter { paths: new.entered() });
        }
        for path in old.paths.iter().filter(|path| !has(&new.paths, path.spi)) {
            steps.push(Step::Remove { spi: path.spi, chain: path.chain.clone() });
        }
        for instance in &old.instances {
            let gone = before.functions(instance).iter().filter(|own| !after.of.contains_key(own.as_str()));
            let functions: Vec<String> = gone.cloned().collect();
            if !functions.is_empty() {
                steps.push(Step::End { functions, from: instance.name.clone() });
            }
        }
        for instance in old.instances.iter().filter(|old| !after.names.contains(old.name.as_str())) {
            steps.push(Step::Stop { instance: instance.name.clone() });
        }
        // A digest takes longer than all else, and who follows another has it already.
        Delta { from: new.follows.clone().unwrap_or_else(|| old.digest()), epoch: new.epoch, steps }
    }
}

/// Flows that go to another instance, and those of functions that are new: functions that go the same way are one step.
fn flows(before: &Index<'_>, after: &Index<'_>, new: &Deployment, there: &dyn Fn(&str) -> bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for to in &new.instances {
        // By whom they come from, and which slots they are of.
        let mut ways: BTreeMap<(&str, String), (Slots, Vec<String>, bool)> = BTreeMap::new();
        let mut fresh = Vec::new();
        for function in after.functions(to) {
            match before.of.get(function.as_str()) {
                None => fresh.push(function.clone()),
                Some(holders) => {
                    for from in holders.iter().filter(|from| from.name != to.name) {
                        let slots = from.slots.common(&to.slots);
                        if !slots.is_empty() {
                            let way = ways.entry((from.name.as_str(), slots.to_string())).or_default();
                            way.0 = slots;
                            way.1.push(function.clone());
                            way.2 = !there(&from.on);
                        }
                    }
                }
            }
        }
        if !fresh.is_empty() && !to.slots.is_empty() {
            steps.push(Step::Give { functions: fresh, slots: to.slots.clone(), to: to.name.clone() });
        }
        for ((from, _), (slots, functions, gone)) in ways {
            steps.push(Step::Move { functions, slots, from: from.to_owned(), to: to.name.clone(), gone });
        }
    }
    steps
}

/// A deployment by names.
struct Index<'a> {
    names: BTreeSet<&'a str>,
    segments: BTreeMap<&'a str, &'a Segment>,
    /// The instances that run a function.
    of: BTreeMap<&'a str, Vec<&'a Instance>>,
}

impl<'a> Index<'a> {
    fn of(deployment: &'a Deployment) -> Index<'a> {
        let segments: BTreeMap<&str, &Segment> = deployment.segments.iter().map(|s| (s.name.as_str(), s)).collect();
        let mut of: BTreeMap<&str, Vec<&Instance>> = BTreeMap::new();
        for instance in &deployment.instances {
            for function in segments.get(instance.segment.as_str()).iter().flat_map(|segment| &segment.functions) {
                of.entry(function.as_str()).or_default().push(instance);
            }
        }
        Index { names: deployment.instances.iter().map(|i| i.name.as_str()).collect(), segments, of }
    }

    fn functions(&self, instance: &Instance) -> &'a [String] {
        self.segments.get(instance.segment.as_str()).map_or(&[], |segment| &segment.functions)
    }
}
