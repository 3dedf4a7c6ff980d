//! From a plan to what runs of it.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::Ways;
use super::ranges::{Slots, divide, quotas};
use super::relieve::given;
use super::{Deployment, Instance, Segment, name, segment_name};
use crate::delta::Delta;
use crate::plan::{Device, Plan, ServerPlan, Verdict};
use catena_plan_model::switch::for_problem;

/// What a deployment begins with.
#[derive(Clone, Copy, Debug)]
pub enum Before<'a> {
    /// Nothing runs: flows are numbered in this seed.
    Nothing(u64),
    /// This runs.
    Runs(&'a Deployment),
    /// This runs, and the instance of that name has more to do than it can: what is new of its segment takes of its flows alone.
    Overloaded(&'a Deployment, &'a str),
}

impl<'a> Before<'a> {
    /// What runs.
    #[must_use]
    pub fn runs(self) -> Option<&'a Deployment> {
        match self {
            Before::Nothing(_) => None,
            Before::Runs(old) | Before::Overloaded(old, _) => Some(old),
        }
    }
}

/// The core of an instance, and the part of its segment's flows that it is to have.
type Part = (Option<u32>, f64);

impl Plan {
    /// The plan with what runs of it. Of what ran before, whatever runs on stays on its core and keeps its flows, as far as
    /// the plan lets it.
    #[must_use]
    pub fn deployed(mut self, before: Before<'_>, ways: Option<Ways<'_>>) -> Plan {
        let mut made = self.placement.as_ref().map(|_| deployment(&self, before));
        if let Some(deployment) = &mut made {
            let connected = ways.map_or(Ok(()), |ways| deployment.connect(&self, ways, before.runs()));
            let switch = for_problem(&self.problem);
            if let Err(why) = connected.and_then(|()| deployment.equip(&self, &*switch, before.runs())) {
                self.verdict = Verdict::Broken { proven: false, why, remedies: None };
                made = None;
            }
        }
        self.deployment = made;
        self.delta = match (before.runs(), &self.deployment) {
            (Some(old), Some(new)) => Some(Delta::between(old, new, |device| self.has(device))),
            _ => None,
        };
        self.seal();
        self
    }
}

impl Plan {
    /// Whether the rack has a device of this name.
    fn has(&self, device: &str) -> bool {
        let servers = self.servers.iter().map(|server| &server.name);
        let cards = self.smart_nics.iter().map(|card| &card.name);
        servers.chain(cards).chain(self.switch.iter().map(|switch| &switch.name)).any(|name| name == device)
    }
}

fn deployment(plan: &Plan, before: Before<'_>) -> Deployment {
    let old = before.runs();
    let mut made = Deployment {
        epoch: old.map_or(1, |old| old.epoch.saturating_add(1)),
        follows: old.map(Deployment::digest),
        seed: match before {
            Before::Nothing(seed) => format!("{seed:016x}"),
            Before::Runs(old) | Before::Overloaded(old, _) => old.seed.clone(),
        },
        ..Deployment::default()
    };
    let none = Deployment::default();
    let old = Old::of(old.unwrap_or(&none));
    let told = |chain: &str, functions: &[String]| {
        plan.policy.as_ref().map_or_else(String::new, |policy| policy.told(chain, functions))
    };
    for server in &plan.servers {
        let segments: Vec<(Segment, Vec<Part>)> = server
            .subgroups
            .iter()
            .enumerate()
            .map(|(id, group)| {
                let told = told(&group.chain, &group.functions);
                (segment(&group.chain, &group.functions, Device::Server, told), parts(server, id))
            })
            .collect();
        if server.tasks.is_some() {
            // Every worker runs all chains for its flows: what one segment has of them there, all have.
            let slots = of_workers(server, &segments, &old);
            for (segment, _) in segments {
                let parts: Vec<Part> = server.workers.iter().map(|worker| (Some(worker.core), 1.0)).collect();
                add(&mut made, segment, &server.name, &parts, &old, |_| slots.clone());
            }
            continue;
        }
        for (segment, parts) in segments {
            let shares: Vec<f64> = parts.iter().map(|(_, share)| *share).collect();
            let name = |core: &Option<u32>| old.instance(&segment, &server.name, *core).map(|i| i.name.as_str());
            let overloaded = match before {
                Before::Overloaded(_, instance) => parts.iter().position(|(core, _)| name(core) == Some(instance)),
                _ => None,
            };
            add(&mut made, segment, &server.name, &parts, &old, |has| match overloaded {
                Some(overloaded) => given(has, overloaded),
                // The same instances keep what they have, even if it was divided by what flows brought.
                None if is_whole(has) && shares.iter().all(|share| *share == 1.0) => has.to_vec(),
                None => divide(&quotas(&shares), has),
            });
        }
    }
    for (chain, device, on, functions) in elsewhere(plan) {
        let told = told(&chain, &functions);
        let segment = segment(&chain, &functions, device, told);
        add(&mut made, segment, &on, &[(None, 1.0)], &old, |_| vec![Slots::all()]);
    }
    made
}

/// Whether each has slots, and these are all.
fn is_whole(has: &[Slots]) -> bool {
    has.iter().all(|slots| !slots.is_empty())
        && has.iter().fold(Slots::default(), |all, slots| all.with(slots)) == Slots::all()
}

/// The slots of each worker of a server that runs whole chains: those that it has, as far as it may have so many.
fn of_workers(server: &ServerPlan, segments: &[(Segment, Vec<Part>)], old: &Old<'_>) -> Vec<Slots> {
    let has = |worker: &crate::plan::WorkerPlan| {
        let ran = segments.iter().find_map(|(segment, _)| old.place(&segment.name, &server.name, Some(worker.core)));
        ran.map_or_else(Slots::default, |ran| ran.slots.clone())
    };
    divide(&quotas(&vec![1.0; server.workers.len()]), &server.workers.iter().map(has).collect::<Vec<_>>())
}

fn segment(chain: &str, functions: &[String], device: Device, told: String) -> Segment {
    Segment {
        name: segment_name(chain, functions),
        functions: functions.iter().map(|function| format!("{chain}/{function}")).collect(),
        device,
        told,
    }
}

/// The cores of subgroup number `id` of a server.
fn parts(server: &ServerPlan, id: usize) -> Vec<Part> {
    let of = |worker: &crate::plan::WorkerPlan| worker.parts.iter().filter(|p| p.subgroup == id).map(|p| p.share).sum();
    let all = server.workers.iter().map(|worker| (Some(worker.core), of(worker)));
    all.filter(|(_, share)| *share > 0.0).collect()
}

/// What runs on other devices than servers: functions of a chain on one device that edges between them join.
fn elsewhere(plan: &Plan) -> Vec<(String, Device, String, Vec<String>)> {
    let mut found = Vec::new();
    for chain in &plan.chains {
        let place = |n: usize| chain.functions.get(n).map(|function| (function.device, &function.on));
        let mut set: Vec<usize> = (0..chain.functions.len()).collect();
        // Both ends of an edge within a device are of one set: that of the smaller number.
        for _ in 0..chain.functions.len() {
            let mut changed = false;
            for edge in chain.edges.iter().filter(|edge| place(edge.from) == place(edge.to)) {
                let (Some(&a), Some(&b)) = (set.get(edge.from), set.get(edge.to)) else { continue };
                changed |= a != b;
                (set[edge.from], set[edge.to]) = (a.min(b), a.min(b));
            }
            if !changed {
                break;
            }
        }
        for (first, function) in chain.functions.iter().enumerate() {
            if function.device == Device::Server || set[first] != first {
                continue;
            }
            let own = chain.functions.iter().zip(&set).filter(|(_, of)| **of == first);
            let functions = own.map(|(function, _)| function.name.clone()).collect();
            found.push((chain.name.clone(), function.device, function.on.clone(), functions));
        }
    }
    found
}

/// What ran before, by what tells it.
struct Old<'a> {
    segments: BTreeMap<&'a str, &'a Segment>,
    /// By segment, device and core.
    instances: BTreeMap<(&'a str, &'a str, Option<u32>), &'a Instance>,
    names: BTreeSet<&'a str>,
}

impl<'a> Old<'a> {
    fn of(old: &'a Deployment) -> Old<'a> {
        let all = old.instances.iter();
        Old {
            segments: old.segments.iter().map(|segment| (segment.name.as_str(), segment)).collect(),
            instances: all.clone().map(|i| ((i.segment.as_str(), i.on.as_str(), i.core), i)).collect(),
            names: all.map(|instance| instance.name.as_str()).collect(),
        }
    }

    /// The instance of a segment of this name at this place, whatever it was told.
    fn place(&self, segment: &str, on: &str, core: Option<u32>) -> Option<&'a Instance> {
        self.instances.get(&(segment, on, core)).copied()
    }

    /// The instance of `segment`, as it is, at this place.
    fn instance(&self, segment: &Segment, on: &str, core: Option<u32>) -> Option<&'a Instance> {
        let same = self.segments.get(segment.name.as_str()).is_some_and(|old| *old == segment);
        self.instances.get(&(segment.name.as_str(), on, core)).copied().filter(|_| same)
    }
}

/// Add a segment with an instance for each part. `slots` says what they get, given what those have that run already.
fn add(
    made: &mut Deployment,
    segment: Segment,
    on: &str,
    parts: &[Part],
    old: &Old<'_>,
    slots: impl Fn(&[Slots]) -> Vec<Slots>,
) {
    let before: Vec<Option<&Instance>> = parts.iter().map(|(core, _)| old.instance(&segment, on, *core)).collect();
    // Flows of what is configured anew stay on their core: they go to what replaces it there.
    let has =
        |(core, _): &Part| old.place(&segment.name, on, *core).map_or_else(Slots::default, |old| old.slots.clone());
    let has: Vec<Slots> = parts.iter().map(has).collect();
    for (((core, _), before), slots) in parts.iter().zip(before).zip(slots(&has)) {
        let mut called = name(&segment.name, on, *core);
        if before.is_none() && old.names.contains(called.as_str()) {
            called = format!("{called}~{}", made.epoch);
        }
        made.instances.push(Instance {
            name: before.map_or(called, |old| old.name.clone()),
            segment: segment.name.clone(),
            on: on.to_owned(),
            core: *core,
            slots,
            since: before.map_or(made.epoch, |old| old.since),
        });
    }
    made.segments.push(segment);
}
