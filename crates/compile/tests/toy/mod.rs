//! A back end of its own for switches, in this folder alone: nothing else has to know of it for a plan to be lowered to its device.
//! What it makes is a text that says what such a device would be told.

use std::collections::BTreeMap;
use std::fmt;

use catena_compile::backend::{Artifact, Backend, OnHost, Part, Unlowered, lower};
use catena_plan::alpine::Objective;
use catena_plan::demand::{self, Options};
use catena_plan::deployment::paths::Next;
use catena_plan::deployment::{Before, Ways};
use catena_plan::explain::Case;
use catena_plan::lemur::{Strategy, place};
use catena_plan::paper::{self, Forwarding};
use catena_plan::plan::{Device, Plan};
use catena_plan::rack;
use catena_plan::switch::for_problem;
use catena_policy::{Library, NoFiles, PolicyGraph};

struct ToySwitch;

/// What the switch is told.
struct Told(Vec<String>);

impl Artifact for Told {}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl Backend for ToySwitch {
    fn device(&self) -> Device {
        Device::P4Switch
    }

    fn lower(&self, part: &Part<'_>) -> Result<Box<dyn Artifact>, Unlowered> {
        let own: Vec<&str> = part.segments().flat_map(|segment| &segment.functions).map(String::as_str).collect();
        let mut told = vec![format!("{} runs {}", part.on, own.join(", "))];
        for entrance in &part.deployment.entrances {
            let filter = entrance.filter.as_deref().unwrap_or("all others");
            told.push(format!("{filter}: path {}", entrance.spi));
        }
        for path in &part.deployment.paths {
            for rule in path.rules.iter().filter(|rule| own.contains(&&*rule.from) || !rule.from.contains('/')) {
                let to = match &rule.to {
                    Next::Hop(si) => format!("hop {si}"),
                    Next::Function(name) => name.clone(),
                    Next::In => "in".to_owned(),
                    Next::Out => "out".to_owned(),
                    Next::Drop => "drop".to_owned(),
                };
                let when = rule.when.iter().map(|when| format!(" if {when}")).collect::<String>();
                told.push(format!("path {}: from {} to {to}{when}", path.spi, rule.from));
            }
        }
        Ok(Box::new(Told(told)))
    }
}

const RACK: &str = "name = \"r\"\npacket_bytes = 512\n[[server]]\nname = \"nf1\"\ncores = 4\nsteering_cores = 1\nclock = \"2GHz\"\n\
    nics = [\"40Gbps\"]\n[switch]\nname = \"tor\"\nkind = \"pisa\"\nports = 32\nport = \"100Gbps\"\nstages = 12\n\
    sram_blocks = 80\ntcam_blocks = 24\n";

/// The plan for a file of the paper's functions, some of which run on switches.
fn planned(file: &str, strategy: Strategy) -> (PolicyGraph, Plan) {
    planned_on(RACK, file, strategy)
}

fn planned_on(rack: &str, file: &str, strategy: Strategy) -> (PolicyGraph, Plan) {
    let outcome = catena_policy::load("t.catena", file, &Library::default(), &NoFiles);
    let policy = outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let parsed = rack::parse(rack, &[]);
    let rack = parsed.rack.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
    let catalogue = paper::catalogue(Forwarding::Anywhere);
    let problem = demand::problem(&policy, &rack, &catalogue, &paper::profile(), Options::default());
    let problem = problem.unwrap_or_else(|unknown| panic!("{unknown:?}"));
    let switch = for_problem(&problem);
    let outcome = place(&problem, strategy, &*switch);
    let sources = BTreeMap::new();
    let case =
        Case { problem: &problem, rack: &rack, switch: &*switch, sources: &sources, strategy: "any", runs: None };
    let plan = Plan::of(&case, &outcome).scheduled(&policy, Objective::FewestTasks);
    let plan = plan.deployed(Before::Nothing(1), Some(Ways { policy: &policy, catalogue: &catalogue }));
    plan.judge(&*switch).unwrap_or_else(|faults| panic!("{faults:#?}"));
    (policy, plan)
}

const FILE: &str = "class web = \"tcp\"\nclass rest = \"udp\"\n\
    chain a for web { promise 1Gbps.. in -> ACL(rules = 1) -> [ \"tcp port 80\": LB(servers = 2), else: drop ] -> out }\n\
    chain b for rest { promise 1Gbps.. in -> BPF(filter = 3) -> out }\n";

#[test]
fn a_back_end_is_added_in_one_folder() {
    let (policy, plan) = planned(FILE, Strategy::HwPreferred);
    let why = lower(&policy, &plan, &[&OnHost::default()]).err().expect("nobody makes switches");
    assert_eq!(why.to_string(), "tor takes part, which is a P4 switch, and nothing is made for those yet");
    let made = lower(&policy, &plan, &[&OnHost::default(), &ToySwitch]);
    let mut made = made.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(made.devices().collect::<Vec<_>>(), ["tor"]);
    let told = made.text("tor").expect("it is there");
    let wanted = [
        "tor runs a/acl, a/lb, b/bpf",
        "tcp: path 1",
        "udp: path 2",
        "path 1: from in to hop 255",
        "path 1: from a/acl to a/lb if \"tcp port 80\"",
        "path 1: from a/acl to drop",
        "path 1: from a/lb to out",
        "path 2: from in to hop 255",
        "path 2: from b/bpf to out",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), wanted);
    assert!(made.take::<catena_compile::backend::Hosted>("tor").is_none(), "it is of another type");
    assert!(made.take::<Told>("tor").is_some() && made.text("tor").is_none());
}

#[test]
fn two_back_ends_of_a_kind_are_refused_by_name() {
    let (policy, plan) = planned(FILE, Strategy::HwPreferred);
    let why = |backends: &[&dyn Backend]| lower(&policy, &plan, backends).err().map(|why| why.to_string());
    assert_eq!(why(&[&OnHost::default(), &ToySwitch]), None);
    let two = "two back ends make what a P4 switch needs: leave one of them out, for each kind of device has one";
    assert_eq!(why(&[&ToySwitch, &OnHost::default(), &ToySwitch]).as_deref(), Some(two));
    // Also where no such device takes part.
    let two = "two back ends make what a server needs: leave one of them out, for each kind of device has one";
    assert_eq!(why(&[&OnHost::default(), &ToySwitch, &OnHost::default()]).as_deref(), Some(two));
}

#[test]
fn parts_of_chains_on_servers_are_refused_by_name() {
    let (policy, plan) = planned(FILE, Strategy::SwPreferred);
    let why = lower(&policy, &plan, &[&OnHost::default(), &ToySwitch]).err().expect("devices are not joined");
    assert!(why.to_string().starts_with("nf1 is planned to run parts of chains (the rack has a switch)"), "{why}");
}

#[test]
fn a_slot_that_nobody_has_is_an_error() {
    let rack = "name = \"r\"\npacket_bytes = 512\n[[server]]\nname = \"nf1\"\ncores = 2\nsteering_cores = 0\nshared = true\n\
        clock = \"2GHz\"\nnics = [\"40Gbps\"]\n";
    let (policy, mut plan) = planned_on(rack, "chain a { promise 1Gbps.. in -> Monitor() -> out }\n", Strategy::Lemur);
    let slots = |plan: &Plan| {
        let mut made = lower(&policy, plan, &[&OnHost::default()])?;
        Ok::<_, Unlowered>(made.take::<catena_compile::backend::Hosted>("nf1").expect("a server").slots)
    };
    let whole = slots(&plan).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!([whole.len(), whole.iter().filter(|worker| **worker == 1).count()], [4096, 2048]);
    plan.deployment.as_mut().expect("it runs").instances.pop();
    let why = slots(&plan).expect_err("half of the flows have no worker");
    assert_eq!(why.to_string(), "no worker of nf1 has flow slot 2048 by the plan");
}
