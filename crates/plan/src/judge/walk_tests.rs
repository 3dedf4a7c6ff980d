//! A long walk of changes: chains come, go and are told other things, promises rise and fall, servers fail and come back, instances
//! are overloaded. After each the plan is planned from the one that runs, and must be as true as a first one; no step of the way loses a
//! flow; and what has nothing to do with the change keeps its instances.

use std::collections::{BTreeMap, BTreeSet};

use catena_policy::{Library, NoFiles, PolicyGraph};

use crate::delta::{Delta, Move, Step};
use crate::deployment::{Before, Instance, Ways};
use crate::explain::Case;
use crate::plan::Plan;
use catena_plan_alpine::Objective as Tasks;
use catena_plan_lemur::keep::{Runs, keep};
use catena_plan_model::demand::{self, Options};
use catena_plan_model::paper::{self, Forwarding};
use catena_plan_model::problem::Problem;
use catena_plan_model::profile::{Overheads, Profile};
use catena_plan_model::rack::{self, Rack};
use catena_plan_model::random::Random;
use catena_plan_model::switch::for_problem;

const FUNCTIONS: [&str; 4] = ["ACL", "Monitor", "BPF", "LB"];
const SERVERS: [&str; 5] = ["nf0", "nf1", "nf2", "nf3", "nf4"];

const RELATIONS: [&str; 4] =
    ["priority A > B\n", "share A : B = 1 : 2\n", "cpu A : B = 3 : 1\n", "throughput A : B = 1 : 2\n"];

/// What an operator has written, and which servers there are.
#[derive(Clone)]
pub(super) struct World {
    chains: Vec<Chain>,
    servers: BTreeMap<&'static str, u32>,
    switch: bool,
    /// How two chains, by their names, stand to each other.
    relation: Option<(&'static str, usize, usize)>,
}

#[derive(Clone)]
struct Chain {
    name: usize,
    functions: Vec<&'static str>,
    /// Given to each function, so that another one is another configuration.
    rules: usize,
    t_min_mbps: usize,
    /// Whether its last packets part and meet again.
    parts: bool,
    /// Whether packets come back through it.
    returns: bool,
}

/// What changed: the chains that it is about; None: all may be concerned.
pub(super) type Concerned = Option<usize>;

impl World {
    pub(super) fn first(random: &mut Random) -> World {
        let servers = SERVERS[..3].iter().map(|name| (*name, 6)).collect();
        let mut world = World { chains: Vec::new(), servers, switch: true, relation: None };
        world.add(random, 0);
        world
    }

    fn add(&mut self, random: &mut Random, name: usize) {
        let functions = (0..1 + random.below(4)).map(|_| FUNCTIONS[random.below(FUNCTIONS.len())]).collect();
        let (parts, returns) = (random.below(4) == 0, random.below(4) == 0);
        self.chains.push(Chain { name, functions, rules: 0, parts, returns, t_min_mbps: 100 + random.below(6_000) });
    }

    /// Change something.
    pub(super) fn change(&mut self, random: &mut Random, number: usize) -> Concerned {
        let chain = random.below(self.chains.len());
        match random.below(10) {
            0 | 1 if self.chains.len() < 10 => {
                self.add(random, number);
                Some(number)
            }
            2 if self.chains.len() > 1 => Some(self.chains.remove(chain).name),
            3 => {
                self.chains[chain].t_min_mbps = 100 + random.below(12_000);
                Some(self.chains[chain].name)
            }
            4 => {
                let server = SERVERS[random.below(SERVERS.len())];
                if self.servers.remove(server).is_none() {
                    self.servers.insert(server, 3 + random.below(6) as u32);
                }
                None
            }
            5 => {
                let function = FUNCTIONS[random.below(FUNCTIONS.len())];
                let at = random.below(self.chains[chain].functions.len() + 1);
                self.chains[chain].functions.insert(at, function);
                self.chains[chain].functions.truncate(5);
                Some(self.chains[chain].name)
            }
            6 if random.below(2) == 0 => {
                let chain = &mut self.chains[chain];
                if random.below(2) == 0 {
                    chain.parts = !chain.parts
                } else {
                    chain.returns = !chain.returns
                }
                Some(chain.name)
            }
            6 => {
                let server = SERVERS[random.below(SERVERS.len())];
                self.servers.entry(server).and_modify(|cores| *cores = 3 + random.below(6) as u32);
                None
            }
            7 if random.below(3) == 0 => {
                self.switch = !self.switch;
                None
            }
            7 if random.below(2) == 0 => {
                let mut name = || self.chains[random.below(self.chains.len())].name;
                let (first, second) = (name(), name());
                self.relation = (first != second).then(|| (RELATIONS[random.below(RELATIONS.len())], first, second));
                None
            }
            _ => {
                self.chains[chain].rules += 1;
                Some(self.chains[chain].name)
            }
        }
    }

    fn problem(&self) -> Option<(PolicyGraph, Rack, Problem)> {
        if self.servers.is_empty() {
            return None;
        }
        let mut file = String::new();
        for Chain { name, functions, rules, t_min_mbps, parts, returns } in &self.chains {
            let mut functions: Vec<String> =
                functions.iter().map(|function| format!("{function}(rules = {rules})")).collect();
            if *parts {
                functions.push(format!("[ \"tcp port 80\" ~ 30%: NAT(rules = {rules}), else: BPF(rules = {rules}) ]"));
            }
            let arrow = if *returns { " <-> " } else { " -> " };
            file += &format!("class k{name} = \"src net 10.{}.{}.0/24\"\n", name / 256 % 256, name % 256);
            let ways = functions.join(arrow);
            file += &format!("chain c{name} for k{name} {{ promise {t_min_mbps}Mbps.. in{arrow}{ways}{arrow}out }}\n");
        }
        let named = |name: usize| self.chains.iter().any(|chain| chain.name == name);
        if let Some((relation, first, second)) =
            self.relation.filter(|(_, first, second)| named(*first) && named(*second))
        {
            file += &relation.replace("A", &format!("c{first}")).replace("B", &format!("c{second}"));
        }
        let mut text = "name = \"walk\"\npacket_bytes = 512\n".to_owned();
        for (name, cores) in &self.servers {
            text += &format!(
                "[[server]]\nname = \"{name}\"\ncores = {cores}\nsteering_cores = 1\nclock = \"2GHz\"\nnics = [\"20Gbps\"]\n\
                 shared = {}\n",
                *name == "nf4"
            );
        }
        if self.switch {
            text += "[switch]\nname = \"tor\"\nkind = \"plain\"\nports = 32\nport = \"100Gbps\"\n";
        }
        let outcome = catena_policy::load("t.catena", &file, &Library::default(), &NoFiles);
        let policy = outcome.graph.unwrap_or_else(|| panic!("{:?}\n{file}", outcome.diagnostics));
        let rack = rack::parse(&text, &[]).rack.expect("a rack");
        let overheads = Overheads { visit: 60.0, spread: 40.0, ..Overheads::default() };
        let profile = Profile { overheads, ..paper::profile() };
        let catalogue = paper::catalogue(Forwarding::Anywhere);
        let problem = demand::problem(&policy, &rack, &catalogue, &profile, Options::default());
        Some((policy, rack, problem.unwrap_or_else(|unknown| panic!("{unknown:?}"))))
    }

    /// The plan from what runs; None: nothing keeps the promises.
    pub(super) fn plan(&self, runs: Option<&Plan>) -> Option<Plan> {
        self.relieving(runs, None)
    }

    /// The same where an instance has more to do than it can: its segment is to have a core more.
    fn relieving(&self, runs: Option<&Plan>, overloaded: Option<&Instance>) -> Option<Plan> {
        let (policy, rack, problem) = self.problem()?;
        let switch = for_problem(&problem);
        let mut kept = runs.map_or_else(Runs::default, |old| old.runs(&problem));
        let segment = |(chain, nodes): &(usize, Vec<usize>)| {
            let chain = &problem.chains[*chain];
            let names: Vec<&str> = nodes.iter().map(|node| chain.nodes[*node].name.as_str()).collect();
            format!("{}/{}", chain.name, names.join("+"))
        };
        if let Some(instance) = overloaded {
            let (_, cores) = kept.cores.iter_mut().find(|(group, _)| segment(group) == instance.segment)?;
            *cores += 1;
        }
        let old = runs.and_then(|plan| plan.deployment.as_ref());
        let outcome = keep(&problem, &*switch, &kept);
        let sources = BTreeMap::new();
        let case = Case { problem: &problem, rack: &rack, switch: &*switch, sources: &sources, strategy: "keep", runs };
        let catalogue = paper::catalogue(Forwarding::Anywhere);
        let ways = Ways { policy: &policy, catalogue: &catalogue };
        let plan = Plan::of(&case, &outcome).scheduled(&policy, Tasks::FewestTasks);
        let before = match (old, overloaded) {
            (Some(old), Some(instance)) => Before::Overloaded(old, &instance.name),
            (old, _) => old.map_or(Before::Nothing(7), Before::Runs),
        };
        let plan = plan.deployed(before, Some(ways));
        plan.judge(&*switch).unwrap_or_else(|faults| panic!("{faults:#?}"));
        plan.is_kept().then_some(plan)
    }
}

/// The chains whose instances or slots differ, by their numbers.
fn touched(delta: &Delta) -> BTreeSet<usize> {
    let of = |function: &String| function.split('/').next()?.strip_prefix('c')?.parse::<usize>().ok();
    let functions = |step: &Step| match step {
        Step::Start { functions, .. }
        | Step::Give { functions, .. }
        | Step::Move(Move { functions, .. })
        | Step::End { functions, .. } => functions.clone(),
        Step::Stop { instance } => vec![instance.clone()],
        Step::Install { chain, .. } | Step::Remove { chain, .. } => vec![format!("{chain}/")],
        Step::Equip { .. } => Vec::new(),
        Step::Enter { moves, .. } => moves.iter().flat_map(|one| one.functions.clone()).collect(),
    };
    delta.steps.iter().flat_map(functions).filter_map(|function| of(&function)).collect()
}

#[test]
fn a_long_walk_of_changes_stays_true() {
    let changes = std::env::var("CATENA_PLAN_CHANGES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let mut random = Random::new(36);
    let mut world = World::first(&mut random);
    let mut runs = world.plan(None).expect("one chain fits");
    let (mut planned, mut relieved, mut refused, mut alone, mut others) = (0, 0, 0, 0, 0);
    let (mut unswitched, mut related) = (0, 0);
    for number in 1..=changes {
        if random.below(8) == 0 {
            // A core more where flows are many, in what runs and in the plan from which the next change is planned.
            let old = runs.deployment.as_ref().expect("something runs");
            let instance = &old.instances[random.below(old.instances.len())];
            let taken = |core| old.instances.iter().any(|i| i.on == instance.on && i.core == Some(core));
            let free = (1..20).find(|core| !taken(*core)).expect("nobody has so many");
            if let Ok(new) = old.relieved(&instance.name, free, |slot| f64::from(slot % 7)) {
                let delta = Delta::between(old, &new, |_| true);
                assert_eq!(delta.leads(old, &new), Ok(()), "change {number}");
                assert!(matches!(&delta.steps[..], [Step::Start { .. }, Step::Move(_)]), "change {number}");
            }
            let plan = world.relieving(Some(&runs), Some(instance));
            let takes = |plan: &Plan| plan.delta.iter().flat_map(Delta::moves).any(|one| one.from == instance.name);
            if let Some(plan) = plan.filter(takes) {
                let (delta, new) =
                    (plan.delta.as_ref().expect("it follows"), plan.deployment.as_ref().expect("it runs"));
                assert_eq!(delta.leads(old, new), Ok(()), "change {number}");
                (runs, relieved) = (plan, relieved + 1);
            }
        }
        let old = runs.deployment.as_ref().expect("something runs");
        let mut next = world.clone();
        let concerned = next.change(&mut random, number);
        let Some(plan) = next.plan(Some(&runs)) else {
            refused += 1;
            continue;
        };
        let (delta, new) = (plan.delta.as_ref().expect("it follows"), plan.deployment.as_ref().expect("it runs"));
        assert_eq!(delta.leads(old, new), Ok(()), "change {number}");
        assert_eq!((new.epoch, new.follows.as_ref()), (old.epoch + 1, Some(&old.digest())), "change {number}");
        if let Some(concerned) = concerned {
            match touched(delta).iter().all(|chain| *chain == concerned) {
                true => alone += 1,
                false => others += 1,
            }
        }
        if number % 10 == 0 {
            let text = serde_json::to_string(&plan).expect("JSON");
            assert!(Plan::from_json(&text).is_ok_and(|read| read.deployment == plan.deployment), "change {number}");
        }
        if !next.switch {
            unswitched += 1;
        }
        if !plan.problem.relations.is_empty() {
            related += 1;
        }
        (world, runs, planned) = (next, plan, planned + 1);
    }
    println!(
        "{planned} planned ({alone} touch one chain, {others} others too; {unswitched} without a switch, {related} with a \
         relation), {relieved} relieved, {refused} refused"
    );
    assert!(unswitched > changes / 50 && related > changes / 50, "{unswitched} without a switch, {related} related");
    assert!(planned > changes / 2 && relieved > 0, "{planned} planned, {relieved} relieved, {refused} refused");
    // What is none of a change's business keeps its instances, unless there is no room.
    assert!(others * 5 < alone, "{others} of {} changes touch chains that they are not about", alone + others);
}
