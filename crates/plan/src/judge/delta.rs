//! Whether a plan's delta could lead to its deployment: what of it shows without the one that runs before.

use std::collections::{BTreeMap, BTreeSet};

use super::Judge;
use crate::delta::{Move, Step};
use crate::deployment::ranges::Slots;
use crate::deployment::{Deployment, Instance};

impl Judge<'_> {
    pub(super) fn delta(&mut self, says: &Deployment) {
        let Some(delta) = &self.plan.delta else {
            if says.epoch > 1 {
                self.wrong("delta", "there is none, and the deployment follows another");
            }
            return;
        };
        let planned: BTreeMap<&str, &Instance> = says.instances.iter().map(|i| (i.name.as_str(), i)).collect();
        let functions = |instance: &str| {
            let segment = planned.get(instance).map(|instance| &instance.segment);
            let segment = says.segments.iter().find(|own| Some(&own.name) == segment);
            segment.map_or(&[][..], |segment| &segment.functions)
        };
        let laid = |spi: u32| says.paths.iter().any(|path| path.spi == spi);
        let (mut started, mut equipped) = (BTreeSet::new(), BTreeSet::new());
        let mut faults: Vec<(usize, String)> = Vec::new();
        let gets = |to: &str, slots: &Slots, own: &[String]| {
            let has = planned.get(to).is_some_and(|instance| instance.slots.common(slots) == *slots);
            let runs = own.iter().all(|function| functions(to).contains(function));
            (!has || !runs || own.is_empty())
                .then(|| format!("{to} is not to have flows {slots} of {}", own.join(", ")))
        };
        for (n, step) in delta.steps.iter().enumerate() {
            let mut wrong = |what: String| faults.push((n, what));
            match step {
                Step::Start { instance, functions: own, on, core } => {
                    started.insert(instance.as_str());
                    let is = planned.get(instance.as_str()).filter(|i| (&i.on, i.core) == (on, *core));
                    if is.is_none_or(|is| is.since != says.epoch) || functions(instance) != &own[..] {
                        wrong(format!("{instance} is not planned to start"));
                    }
                }
                Step::Equip { on, with } => {
                    let planned = says.devices.iter().any(|device| device.on == *on);
                    if !planned || with.is_empty() || with.iter().any(|part| !equipped.insert((on, *part))) {
                        wrong(format!("{on} is not to be equipped so"));
                    }
                }
                Step::Give { functions: own, slots, to } => gets(to, slots, own).into_iter().for_each(wrong),
                Step::Move(Move { functions: own, slots, to, .. }) => gets(to, slots, own).into_iter().for_each(wrong),
                Step::Install { spi, .. } if !laid(*spi) => wrong(format!("there is no path {spi}")),
                Step::Remove { spi, .. } if laid(*spi) => wrong(format!("path {spi} is planned")),
                Step::Enter { paths, moves, .. } => {
                    if *paths != says.entered() {
                        wrong(format!("packets enter paths {:?}, not {paths:?}", says.entered()));
                    }
                    moves.iter().filter_map(|one| gets(&one.to, &one.slots, &one.functions)).for_each(wrong);
                }
                Step::End { functions: own, .. } => {
                    if let Some(function) = own.iter().find(|function| says.running(function).is_some()) {
                        wrong(format!("{function} is planned, and its flows end"));
                    }
                }
                Step::Stop { instance } if planned.contains_key(instance.as_str()) => {
                    wrong(format!("{instance} is planned, and stops"));
                }
                Step::Install { .. } | Step::Remove { .. } | Step::Stop { .. } => {}
            }
        }
        for (n, what) in faults {
            self.wrong(format!("delta.steps[{n}]"), what);
        }
        let new = says.instances.iter().filter(|instance| instance.since == says.epoch);
        let new: BTreeSet<&str> = new.map(|instance| instance.name.as_str()).collect();
        self.same("delta.steps: what starts", &started, &new);
    }
}
