//! Whether a plan's delta could lead to its deployment: what of it shows without the one that runs before. Whoever has that one
//! follows the steps ([`crate::delta::Delta::leads`]).

use std::collections::{BTreeMap, BTreeSet};

use super::Judge;
use crate::delta::{Delta, Move, Step};
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
        let (mut installed, mut removed) = (BTreeSet::new(), BTreeSet::new());
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
                    let once = started.insert(instance.as_str());
                    let is = planned.get(instance.as_str()).filter(|i| (&i.on, i.core) == (on, *core));
                    if !once || is.is_none_or(|is| is.since != says.epoch) || functions(instance) != &own[..] {
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
                Step::Install { spi, chain } => {
                    let own = says.paths.iter().any(|path| (path.spi, &path.chain) == (*spi, chain));
                    if !own || !installed.insert(*spi) {
                        wrong(format!("there is no path {spi} of {chain} to install"));
                    }
                }
                Step::Remove { spi, .. } => {
                    if laid(*spi) || *spi == 0 || *spi > says.spi || !removed.insert(*spi) {
                        wrong(format!("path {spi} is not to be removed"));
                    }
                }
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
                Step::Stop { instance } => {
                    if planned.contains_key(instance.as_str()) {
                        wrong(format!("{instance} is planned, and stops"));
                    }
                }
            }
        }
        for (n, what) in faults {
            self.wrong(format!("delta.steps[{n}]"), what);
        }
        let new = says.instances.iter().filter(|instance| instance.since == says.epoch);
        let new: BTreeSet<&str> = new.map(|instance| instance.name.as_str()).collect();
        self.same("delta.steps: what starts", &started, &new);
        self.order(delta);
        Flows { says, delta, planned: &planned }.judge(self);
        self.entered(says, delta, &installed);
    }
    /// New things start, then paths are laid and devices equipped, flows go over, packets enter, and what is left behind goes.
    fn order(&mut self, delta: &Delta) {
        let rank = |step: &Step| match step {
            Step::Start { .. } => 0,
            Step::Install { .. } => 1,
            Step::Equip { .. } => 2,
            Step::Give { .. } | Step::Move(_) => 3,
            Step::Enter { .. } => 4,
            Step::Remove { .. } | Step::End { .. } => 5,
            Step::Stop { .. } => 6,
        };
        for (n, pair) in delta.steps.windows(2).enumerate() {
            let (before, behind) = (rank(&pair[0]), rank(&pair[1]));
            // Packets enter by other entrances at once.
            if before > behind || (before, behind) == (4, 4) {
                self.wrong(format!("delta.steps[{}]", n + 1), format!("it does not come behind: {}", pair[0]));
            }
        }
    }

    /// Paths that somebody enters are entered when they are laid; those of functions that are new or elsewhere are laid anew.
    fn entered(&mut self, says: &Deployment, delta: &Delta, installed: &BTreeSet<u32>) {
        let entered = says.entered();
        let enters = delta.steps.iter().any(|step| matches!(step, Step::Enter { .. }));
        if !enters && installed.iter().any(|spi| entered.contains(spi)) {
            self.wrong("delta.steps", "paths are laid, and nobody enters them");
        }
        let changed: BTreeSet<&String> = delta.steps.iter().flat_map(changed).collect();
        for path in says.paths.iter().filter(|path| entered.contains(&path.spi) && !installed.contains(&path.spi)) {
            if let Some(hop) = path.hops.iter().find(|hop| changed.contains(&hop.function)) {
                let what = format!("{} is new or elsewhere, and path {} is not laid anew", hop.function, path.spi);
                self.wrong("delta.steps", what);
            }
        }
    }
}

/// Functions that are new, or run in another segment or on another device.
fn changed(step: &Step) -> Vec<&String> {
    match step {
        Step::Give { functions, .. } => functions.iter().collect(),
        Step::Enter { moves, .. } => moves.iter().flat_map(|one| &one.functions).collect(),
        _ => Vec::new(),
    }
}

/// Where flows come from and go to.
struct Flows<'a> {
    says: &'a Deployment,
    delta: &'a Delta,
    planned: &'a BTreeMap<&'a str, &'a Instance>,
}

impl Flows<'_> {
    fn judge(&self, judge: &mut Judge<'_>) {
        self.arrive(judge);
        self.leave(judge);
    }

    /// What starts gets all its flows, each once; of functions that are new nobody had any.
    fn arrive(&self, judge: &mut Judge<'_>) {
        let mut got: BTreeMap<(&str, &str), Slots> = BTreeMap::new();
        let (mut given, mut moved) = (BTreeSet::new(), BTreeSet::new());
        let gives = self.delta.steps.iter().filter_map(|step| match step {
            Step::Give { functions, slots, to } => Some((functions, slots, to)),
            _ => None,
        });
        gives.clone().for_each(|(functions, ..)| given.extend(functions));
        self.delta.moves().for_each(|one| moved.extend(&one.functions));
        for (functions, slots, to) in gives.chain(self.delta.moves().map(|one| (&one.functions, &one.slots, &one.to))) {
            for function in functions {
                let own = got.entry((to, function)).or_default();
                if slots.is_empty() || !own.common(slots).is_empty() {
                    judge.wrong("delta.steps", format!("{to} gets slots {slots} of {function} twice, or none"));
                }
                *own = own.with(slots);
            }
        }
        if let Some(function) = given.intersection(&moved).next() {
            judge.wrong("delta.steps", format!("nobody has flows of {function}, and they go elsewhere"));
        }
        for instance in &self.says.instances {
            let segment = self.says.segments.iter().find(|segment| segment.name == instance.segment);
            for function in segment.iter().flat_map(|segment| &segment.functions) {
                let own = got.remove(&(instance.name.as_str(), function.as_str())).unwrap_or_default();
                if instance.since == self.says.epoch && own != instance.slots {
                    let what = format!("{} starts, and gets slots {own} of {function}", instance.name);
                    judge.wrong("delta.steps", what);
                }
                if instance.since < self.says.epoch && given.contains(function) {
                    judge.wrong("delta.steps", format!("{} ran before, and {function} is new", instance.name));
                }
            }
        }
    }

    /// Flows leave what ran before: an instance that stays gives all its functions' flows of the same slots, and one that stops
    /// leaves none behind.
    fn leave(&self, judge: &mut Judge<'_>) {
        let mut left: BTreeMap<&str, BTreeMap<&String, Slots>> = BTreeMap::new();
        let mut ended: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
        let mut stopped = BTreeSet::new();
        for step in &self.delta.steps {
            match step {
                Step::End { functions, from } => ended.entry(from).or_default().extend(functions),
                Step::Stop { instance } if !stopped.insert(instance.as_str()) => {
                    judge.wrong("delta.steps", format!("{instance} stops twice"));
                }
                _ => {}
            }
        }
        let at_once: BTreeSet<*const Move> = self.delta.steps.iter().flat_map(at_once).collect();
        for one in self.delta.moves() {
            for function in &one.functions {
                let own = left.entry(&one.from).or_default().entry(function).or_default();
                *own = own.with(&one.slots);
            }
            let place = |name: &str| Name::of(name).map(|name| (name.segment.to_owned(), name.on.to_owned()));
            let elsewhere = place(&one.from) != place(&one.to) && !self.says.paths.is_empty();
            if elsewhere != at_once.contains(&std::ptr::from_ref(one)) {
                judge.wrong("delta.steps", format!("it is not to be done then: {one}"));
            }
            let gone = !self.planned.contains_key(one.from.as_str()) && !judge.has_device_of(&one.from);
            if one.gone != gone {
                judge.wrong("delta.steps", format!("whether the device of {} is gone is said wrongly", one.from));
            }
        }
        for (name, flows) in &left {
            match self.planned.get(name) {
                Some(stays) => {
                    let all = flows.values().fold(Slots::default(), |all, slots| all.with(slots));
                    if stays.since == self.says.epoch || !all.common(&stays.slots).is_empty() {
                        judge.wrong("delta.steps", format!("{name} does not have slots {all} that go elsewhere"));
                    }
                }
                None if !stopped.contains(name) => {
                    judge.wrong("delta.steps", format!("flows leave {name}, which is not planned and does not stop"));
                }
                None => {}
            }
        }
        for name in ended.keys().filter(|name| !stopped.contains(*name)) {
            judge.wrong("delta.steps", format!("flows of {name} end, and it does not stop"));
        }
        for name in stopped.iter().chain(left.keys()).copied().collect::<BTreeSet<_>>() {
            let Some(functions) = Name::of(name).map(|name| name.functions()) else {
                judge.wrong("delta.steps", format!("{name} is no name of an instance"));
                continue;
            };
            let (gone, none) = (ended.get(name), BTreeMap::new());
            let flows = left.get(name).unwrap_or(&none);
            let stays = functions.iter().filter(|own| !gone.is_some_and(|gone| gone.contains(own)));
            let slots: BTreeSet<String> =
                stays.map(|own| flows.get(own).map_or_else(String::new, Slots::to_string)).collect();
            let other = flows.keys().chain(gone.into_iter().flatten()).find(|own| !functions.contains(own.as_str()));
            if slots.len() > 1 || slots.contains("") || other.is_some() {
                judge.wrong("delta.steps", format!("flows of {name} stay behind, or it had none of them"));
            }
        }
        let new = self.says.instances.iter().filter(|instance| instance.since == self.says.epoch);
        for (instance, before) in new.filter_map(|new| Some((new, new.name.strip_suffix(&format!("~{}", new.since))?)))
        {
            if !stopped.contains(before) {
                judge.wrong(
                    "delta.steps",
                    format!("{} is in the place of {before}, which does not stop", instance.name),
                );
            }
        }
    }
}

/// Moves that are done when packets enter.
fn at_once(step: &Step) -> Vec<*const Move> {
    match step {
        Step::Enter { moves, .. } => moves.iter().map(std::ptr::from_ref).collect(),
        _ => Vec::new(),
    }
}

/// What the name of an instance says: `web/acl+nat@nf1:4~7`.
struct Name<'a> {
    segment: &'a str,
    on: &'a str,
}

impl<'a> Name<'a> {
    fn of(name: &'a str) -> Option<Name<'a>> {
        let (segment, place) = name.split_once('@')?;
        let without = |text: &'a str, mark: char| match text.rsplit_once(mark) {
            Some((rest, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => rest,
            _ => text,
        };
        Some(Name { segment, on: without(without(place, '~'), ':') })
    }

    fn functions(&self) -> BTreeSet<String> {
        let (chain, functions) = self.segment.split_once('/').unwrap_or_default();
        functions.split('+').map(|function| format!("{chain}/{function}")).collect()
    }
}

impl Judge<'_> {
    /// Whether the rack has the device of an instance.
    fn has_device_of(&self, instance: &str) -> bool {
        let problem = self.problem;
        let servers = problem.servers.iter().map(|server| &server.name);
        let cards = problem.smart_nics.iter().map(|card| &card.name);
        let mut all = servers.chain(cards).chain(problem.switch.iter().map(|switch| &switch.name));
        Name::of(instance).is_some_and(|name| all.any(|device| device == name.on))
    }
}
