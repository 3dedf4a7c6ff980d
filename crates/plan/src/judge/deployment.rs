//! Whether what is said to run is what was placed: every function in one segment, an instance on each of its cores, and each
//! flow with one of them.

use std::collections::{BTreeMap, BTreeSet};

use catena_plan_model::switch::Feasible;

use super::Judge;
use crate::deployment::paths::PATHS;
use crate::deployment::ranges::Slots;
use crate::deployment::{Deployment, Segment, name};
use crate::plan::{Device, FunctionPlan, Plan};

/// There are no more epochs than these: numbers in files of JSON are exact up to them.
const EPOCHS: u64 = 1 << 53;

/// A device and a core of it.
type Place = (String, Option<u32>);

impl Judge<'_> {
    pub(super) fn deployment(&mut self, switch: &dyn Feasible) {
        // Whoever asks for places alone has no deployment.
        let Some(says) = &self.plan.deployment else {
            if self.plan.delta.is_some() {
                self.wrong("deployment", "a delta leads to it, and there is none");
            }
            return;
        };
        if says.seed().is_none() {
            self.wrong("deployment.seed", "it is not 16 digits to the base of 16");
        }
        if says.epoch > EPOCHS || says.epoch == 0 || (says.epoch == 1) != says.follows.is_none() {
            self.wrong("deployment.epoch", format!("{} does not fit what it follows", says.epoch));
        }
        if says.spi >= PATHS {
            self.wrong("deployment.spi", format!("paths are numbered below {PATHS}"));
        }
        self.segments(says);
        self.instances(says);
        self.paths(says);
        self.devices(says, switch);
        self.delta(says);
        let delta = self.plan.delta.as_ref();
        self.same("deployment.follows: what the delta is from", &delta.map(|d| &d.from), &says.follows.as_ref());
        self.same("deployment.epoch: where the delta leads", &delta.map_or(says.epoch, |d| d.epoch), &says.epoch);
    }

    /// Every function is in one segment, with those that are placed together with it.
    fn segments(&mut self, says: &Deployment) {
        let plan = self.plan;
        let mut seen: BTreeMap<&str, &Segment> = BTreeMap::new();
        let mut names = BTreeSet::new();
        for segment in &says.segments {
            if !names.insert(segment.name.as_str()) {
                self.wrong("deployment.segments", format!("{} comes twice", segment.name));
            }
            for function in &segment.functions {
                if seen.insert(function, segment).is_some() {
                    self.wrong("deployment.segments", format!("{function} is in two segments"));
                }
            }
            let told = told(plan, segment);
            self.same(format!("deployment.segments: what {} is told", segment.name), &segment.told, &told);
        }
        let mut planned = 0;
        for (chain, about) in plan.chains.iter().enumerate() {
            let together = self.together(chain);
            for (function, together) in about.functions.iter().zip(&together) {
                planned += 1;
                let name = format!("{}/{}", about.name, function.name);
                let Some(segment) = seen.get(name.as_str()) else {
                    self.wrong("deployment.segments", format!("{name} is in none"));
                    continue;
                };
                self.same(format!("deployment.segments: device of {name}"), &segment.device, &function.device);
                self.same(format!("deployment.segments: who runs with {name}"), &segment.functions, together);
            }
        }
        self.same("deployment.segments: functions", &seen.len(), &planned);
    }

    /// The functions of a chain that run to completion with each, itself included, in the chain's order: by the chain's nodes.
    fn together(&self, chain: usize) -> Vec<Vec<String>> {
        let (sites, about) = (&self.placement.sites[chain], &self.problem.chains[chain]);
        let mut near = vec![Vec::new(); about.nodes.len()];
        for edge in about.edges.iter().filter(|edge| sites[edge.from] == sites[edge.to]) {
            near[edge.from].push(edge.to);
            near[edge.to].push(edge.from);
        }
        let mut sets: Vec<Vec<String>> = vec![Vec::new(); about.nodes.len()];
        for first in 0..about.nodes.len() {
            if !sets[first].is_empty() {
                continue;
            }
            let (mut found, mut open) = (BTreeSet::from([first]), vec![first]);
            while let Some(node) = open.pop() {
                open.extend(near[node].iter().filter(|next| found.insert(**next)));
            }
            let names: Vec<String> =
                found.iter().map(|node| format!("{}/{}", about.name, about.nodes[*node].name)).collect();
            found.into_iter().for_each(|node| sets[node].clone_from(&names));
        }
        sets
    }

    /// A segment's instances are on its cores, and have each slot once.
    fn instances(&mut self, says: &Deployment) {
        let mut names = BTreeSet::new();
        let mut of: BTreeMap<&str, Vec<(Place, &Slots)>> = BTreeMap::new();
        for instance in &says.instances {
            if !names.insert(instance.name.as_str()) {
                self.wrong("deployment.instances", format!("{} comes twice", instance.name));
            }
            let plain = name(&instance.segment, &instance.on, instance.core);
            if instance.name != plain && instance.name != format!("{plain}~{}", instance.since) {
                self.wrong("deployment.instances", format!("{} is called {}", plain, instance.name));
            }
            if instance.since == 0 || instance.since > says.epoch {
                self.wrong("deployment.instances", format!("{} runs since epoch {}", instance.name, instance.since));
            }
            if instance.slots.is_empty() {
                self.wrong("deployment.instances", format!("{} has no flows", instance.name));
            }
            let place = (instance.on.clone(), instance.core);
            of.entry(&instance.segment).or_default().push((place, &instance.slots));
        }
        let places = places(self.plan);
        for segment in &says.segments {
            let instances = of.remove(segment.name.as_str()).unwrap_or_default();
            let at = format!("deployment.instances of {}", segment.name);
            let is: BTreeSet<&Place> = segment.functions.iter().filter_map(|own| places.get(own)).flatten().collect();
            let said: BTreeSet<&Place> = instances.iter().map(|(place, _)| place).collect();
            self.same(format!("{at}: where they are"), &said, &is);
            self.same(format!("{at}: on a core of their own"), &said.len(), &instances.len());
            let all = instances.iter().fold(Slots::default(), |all, (_, slots)| all.with(slots));
            if all != Slots::all() || instances.iter().map(|(_, slots)| slots.len()).sum::<usize>() != all.len() {
                self.wrong(at, "they do not have each slot once");
            }
        }
        self.of_workers(says);
        for segment in of.keys() {
            self.wrong("deployment.instances", format!("there is no segment {segment}"));
        }
    }
}

impl Judge<'_> {
    /// A worker that runs whole chains has the same flows of all.
    fn of_workers(&mut self, says: &Deployment) {
        for server in self.plan.servers.iter().filter(|server| server.tasks.is_some()) {
            let mut sizes = Vec::new();
            for worker in &server.workers {
                let own = says.instances.iter().filter(|i| i.on == server.name && i.core == Some(worker.core));
                let own: Vec<&Slots> = own.map(|instance| &instance.slots).collect();
                let sets: BTreeSet<String> = own.iter().map(|slots| slots.to_string()).collect();
                let at = format!("deployment.instances on core {} of {}: sets of slots", worker.core, server.name);
                self.same(at, &sets.len(), &1);
                sizes.extend(own.first().map(|slots| slots.len()));
            }
            // What a chain gets is forecast for workers of which each has as much of it, and so are the limits in their trees.
            if let (Some(least), Some(most)) = (sizes.iter().min(), sizes.iter().max())
                && most - least > 1
            {
                let what = format!("a worker has {most} slots, and another one {least}: all have as many, but for one");
                self.wrong(format!("deployment.instances on {}", server.name), what);
            }
        }
    }
}

/// Where the plan has functions, as their own rows say it, by their names.
fn places(plan: &Plan) -> BTreeMap<String, Vec<Place>> {
    let place = |function: &FunctionPlan| match function.device {
        Device::Server => function.cores.iter().map(|core| (function.on.clone(), Some(*core))).collect(),
        _ => vec![(function.on.clone(), None)],
    };
    let all = plan.chains.iter().flat_map(|chain| chain.functions.iter().map(move |function| (chain, function)));
    all.map(|(chain, function)| (format!("{}/{}", chain.name, function.name), place(function))).collect()
}

/// What a segment's functions are told by the policy of the plan.
fn told(plan: &Plan, segment: &Segment) -> String {
    let Some(policy) = &plan.policy else { return String::new() };
    let chain = segment.functions.first().and_then(|function| function.split('/').next()).unwrap_or_default();
    let own =
        |function: &String| function.split_once('/').filter(|(of, _)| *of == chain).map(|(_, name)| name.to_owned());
    policy.told(chain, &segment.functions.iter().filter_map(own).collect::<Vec<_>>())
}
