//! The ways that packets take through a host pipeline, and what is known along them.
//!
//! A place is a module and the direction by which packets come to it. What every packet that comes to a place has
//! met is worked out forward, what happens to all that leave it backward, both to a fixed point over all ways (the
//! data-flow analysis of compilers, where the paper runs symbolic execution path by path: Deng and Wu, NFReducer,
//! §IV-A and Algorithm 5; modules are few and their effects declared, so that meeting where paths join loses
//! nothing but the correlation of conditions).

use std::collections::{BTreeMap, BTreeSet};

use catena_functions::effects::{Checksum, Effects};
use catena_functions::{Fields, Method};

use crate::host::{Host, Lowered, ModuleId, When};

/// A module, and the input gate by which packets come: 0 on the way out, 1 on the way back.
pub type Place = (ModuleId, u16);

/// A host pipeline with what its functions do to packets.
pub struct Ways<'a> {
    pub host: &'a Host,
    /// By module; none of modules between functions.
    pub effects: Vec<Option<Effects>>,
}

impl<'a> Ways<'a> {
    pub fn new(host: &'a Host) -> Self {
        let effects = |kind: &Lowered| match kind {
            Lowered::Function { descriptor, args, .. } => Some((descriptor.effects)(args)),
            _ => None,
        };
        Ways { host, effects: host.modules.iter().map(|module| effects(&module.kind)).collect() }
    }

    pub fn name(&self, module: ModuleId) -> &'a str {
        &self.host.modules[module].name
    }

    pub fn entries(&self) -> impl Iterator<Item = Place> {
        self.host.entries.into_iter().flatten()
    }

    /// Where packets that came to a place go on to, each with the output gate that leads there.
    pub fn next(&self, (module, gate): Place) -> impl Iterator<Item = (u16, Place)> {
        // A function sends packets on in their direction, if it does not turn them round; gates of other modules
        // have none.
        let any = self.effects[module].is_none_or(|effects| effects.turns);
        let links = self.host.links.iter().filter(move |link| link.from == module);
        links.filter(move |link| any || link.gate % 2 == gate % 2).map(|link| (link.gate, (link.to, link.to_gate)))
    }

    /// Return what holds at every place that packets reach: `step` says what still holds of a packet that left a
    /// place by a gate, `meet` what holds on two ways.
    fn forward<F: Clone + PartialEq>(
        &self,
        start: &F,
        step: impl Fn(Place, u16, &F) -> F,
        meet: impl Fn(&F, &F) -> F,
    ) -> BTreeMap<Place, F> {
        let mut facts: BTreeMap<Place, F> = BTreeMap::new();
        let mut due: Vec<(Place, F)> = self.entries().map(|place| (place, start.clone())).collect();
        while let Some((place, coming)) = due.pop() {
            let met = facts.get(&place).map_or_else(|| coming.clone(), |known| meet(known, &coming));
            if facts.get(&place) == Some(&met) {
                continue;
            }
            due.extend(self.next(place).map(|(gate, to)| (to, step(place, gate, &met))));
            facts.insert(place, met);
        }
        facts
    }

    /// Return for every place whether all packets there have had the header checksum of IPv4 verified, and kept.
    pub fn verified(&self) -> BTreeMap<Place, bool> {
        let step = |(module, _): Place, _, before: &bool| match self.effects[module].map(|effects| effects.checksum) {
            None | Some(Checksum::Kept) => *before,
            Some(Checksum::Unknown) => false,
            Some(Checksum::Verified) => true,
        };
        self.forward(&false, step, |one, other| *one && *other)
    }

    /// Return for every place what all packets there have met; `reads` are the fields that the rules of a module ask
    /// for, if rules are all that it has.
    pub fn met(&self, reads: &BTreeMap<ModuleId, Fields>) -> BTreeMap<Place, Met> {
        let step = |place: Place, gate: u16, before: &Met| {
            let mut met = before.clone();
            if let Some(effects) = self.effects[place.0] {
                let changed = |module: &ModuleId| reads.get(module).is_none_or(|reads| effects.writes.meets(*reads));
                met.passed.retain(|module| !changed(module));
                met.seen.values_mut().for_each(|written| *written = *written | effects.writes);
            }
            if reads.contains_key(&place.0) {
                met.seen.insert(place, Fields::NONE);
                if gate < 2 {
                    met.passed.insert(place.0);
                }
            }
            met
        };
        let meet = |one: &Met, other: &Met| Met {
            passed: one.passed.intersection(&other.passed).copied().collect(),
            seen: one.seen.iter().filter_map(|(at, w)| Some((*at, *w | *other.seen.get(at)?))).collect(),
        };
        self.forward(&Met::default(), step, meet)
    }

    /// Return for every place of `places` those that each packet which goes on from there comes to, unless it is
    /// dropped.
    pub fn certain(&self, places: &[Place]) -> BTreeMap<Place, BTreeSet<Place>> {
        // Where packets only end, nothing is missed.
        let every: BTreeSet<Place> = places.iter().copied().collect();
        let mut certain: BTreeMap<Place, BTreeSet<Place>> =
            places.iter().map(|place| (*place, every.clone())).collect();
        // What comes after a place is known before it, on the way out and on the way back.
        let mut order = places.to_vec();
        loop {
            let mut changed = false;
            order.reverse();
            for &place in &order {
                let mut all: Option<BTreeSet<Place>> = None;
                for (_, next) in self.next(place) {
                    let mut then = certain.get(&next).cloned().unwrap_or_default();
                    then.insert(next);
                    all = Some(all.map_or_else(|| then.clone(), |all| all.intersection(&then).copied().collect()));
                }
                let discards = matches!(self.host.modules[place.0].kind, Lowered::Discard);
                let all = all.unwrap_or_else(|| if discards { every.clone() } else { BTreeSet::new() });
                changed |= certain.get(&place) != Some(&all);
                certain.insert(place, all);
            }
            if !changed {
                return certain;
            }
        }
    }

    /// Return for every place of `places` the fields that matter to what comes after it: what somebody reads, or what
    /// leaves.
    pub fn live(&self, places: &[Place]) -> BTreeMap<Place, Fields> {
        let mut live: BTreeMap<Place, Fields> = BTreeMap::new();
        let mut order = places.to_vec();
        loop {
            let mut changed = false;
            order.reverse();
            for &place in &order {
                let then = self.next(place).map(|(_, next)| self.live_at(next, live.get(&next).copied()));
                let then = then.fold(Fields::NONE, Fields::or);
                changed |= live.insert(place, then) != Some(then);
            }
            if !changed {
                return live;
            }
        }
    }

    /// The fields that matter to a place and to what comes after it, where `behind` matter.
    fn live_at(&self, (module, _): Place, behind: Option<Fields>) -> Fields {
        let behind = behind.unwrap_or_default();
        match (&self.host.modules[module].kind, self.effects[module]) {
            (Lowered::Discard, _) => Fields::NONE,
            (Lowered::Branch(arms), _) => {
                let tags_only = arms.iter().flat_map(|arm| &arm.when).all(|w| matches!(w, When::Attribute { .. }));
                if tags_only { behind } else { Fields::ALL }
            }
            (Lowered::Parsed, _) => behind | Fields::NETWORK,
            (Lowered::Function { .. }, Some(effects)) => effects.reads | behind.without(effects.overwrites),
            _ => Fields::ALL,
        }
    }

    /// The names of all attributes that packets carry in their metadata.
    pub fn attributes(&self) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        for module in &self.host.modules {
            match &module.kind {
                Lowered::Function { descriptor, .. } => {
                    let carried = descriptor.attributes.iter().filter(|a| a.method == Method::Metadata);
                    names.extend(carried.map(|attribute| attribute.name));
                }
                Lowered::Branch(arms) => {
                    names.extend(arms.iter().flat_map(|arm| &arm.when).filter_map(|when| match when {
                        When::Attribute { name, .. } => Some(name.as_str()),
                        _ => None,
                    }));
                }
                Lowered::Parsed | Lowered::Exit(_) | Lowered::Discard => {}
            }
        }
        names
    }
}

/// What every packet at a place has met on its way there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Met {
    /// Modules of rules that have permitted it, and would permit it as it is now.
    pub passed: BTreeSet<ModuleId>,
    /// Where modules of rules have seen it, permitted or not, with the fields that may have been changed since.
    pub seen: BTreeMap<Place, Fields>,
}
