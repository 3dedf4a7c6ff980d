//! Plans for racks of several kinds of devices: what these hold, and what packets say between them.

use std::collections::{BTreeMap, BTreeSet};

use catena_policy::{Library, NoFiles};

use crate::deployment::devices::Tunnel;
use crate::deployment::paths::Next;
use crate::deployment::{Before, Ways};
use crate::explain::Case;
use crate::plan::{Device, Plan};
use catena_plan_alpine::Objective as Tasks;
use catena_plan_lemur::{Strategy, place};
use catena_plan_model::catalogue::Returning;
use catena_plan_model::demand::{self, Options};
use catena_plan_model::paper::{self, Forwarding};
use catena_plan_model::rack::{self, Wrap};
use catena_plan_model::returns::Returns;
use catena_plan_model::switch::for_problem;

const P4: &str = "[switch]\nname = \"tor\"\nkind = \"pisa\"\nports = 32\nport = \"100Gbps\"\n";
const OPENFLOW: &str = "[switch]\nname = \"tor\"\nkind = \"openflow\"\nports = 32\nport = \"100Gbps\"\n\
    [[switch.table]]\nname = \"first\"\nfunctions = [\"ACL\"]\nentries = 4096\n\
    [[switch.table]]\nname = \"second\"\nfunctions = [\"ACL\", \"Monitor\"]\nentries = 4096\n";
const PLAIN: &str = "[switch]\nname = \"tor\"\nkind = \"plain\"\nports = 32\nport = \"100Gbps\"\n";
const VXLAN: &str = "tunnels = \"vxlan\"\naddress = \"10.9.0.254\"\n";
const SERVERS: &str = "[[server]]\nname = \"nf\"\ncount = 2\ncores = 4\nclock = \"2GHz\"\n";
const CARD: &str = "nics = [{ name = \"eth0\", rate = \"40Gbps\", address = \"10.9.0.1\" }]\n";
const SMART: &str =
    "smart_nics = [{ name = \"smart\", rate = \"40Gbps\", cores = 60, clock = \"800MHz\", address = \"10.9.1.1\" }]\n";

/// Of each kind of device, with each kind of tunnel.
pub fn racks() -> Vec<String> {
    let rack = |switch: &str, tunnels: &str, cards: &str| format!("{switch}{tunnels}{SERVERS}{CARD}{cards}");
    vec![
        rack(P4, "", SMART),
        rack(P4, "tunnels = \"vlan\"\n", ""),
        format!("{}{SERVERS}{CARD}", OPENFLOW.replacen("ports", "tunnels = \"vlan\"\nports", 1)),
        rack(PLAIN, "", ""),
        rack(PLAIN, VXLAN, SMART),
    ]
}

/// Chains that part, meet, come back and end where they came from.
pub const FILE: &str = "class web = \"tcp\"\nclass rest = \"udp\"\n\
    chain a for web { promise 1Gbps.. in -> ACL(rules = 1) -> Encrypt() -> Monitor() -> \
    [ \"tcp port 80\": LB(servers = 2), \"tcp port 81\": drop, else: BPF(filter = 3) ] -> out }\n\
    chain b for rest { promise 1Gbps.. in <-> ACL(rules = 2) <-> Monitor() <-> FastEncrypt() <-> out }\n";

/// The plan of a chain file of the paper's functions on a rack, from what runs; None: nothing is placed.
pub fn planned(file: &str, rack: &str, strategy: Strategy, before: Before<'_>) -> Option<Plan> {
    let outcome = catena_policy::load("t.catena", file, &Library::default(), &NoFiles);
    let policy = outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let parsed = rack::parse(rack, &["ACL", "Monitor"]);
    let rack = parsed.rack.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
    let mut catalogue = paper::catalogue(Forwarding::Anywhere);
    // As if it turned flows round.
    let returns = Returns { destinations: vec!["198.51.100.0/28".parse().expect("a network")], sources: Vec::new() };
    catalogue.returning.push(Returning { function: "FastEncrypt".to_owned(), args: Vec::new(), returns });
    let problem = demand::problem(&policy, &rack, &catalogue, &paper::profile(), Options::default());
    let problem = problem.unwrap_or_else(|unknown| panic!("{unknown:?}"));
    let (switch, sources) = (for_problem(&problem), BTreeMap::new());
    let outcome = place(&problem, strategy, &*switch);
    let case =
        Case { problem: &problem, rack: &rack, switch: &*switch, sources: &sources, strategy: "any", runs: None };
    let plan = Plan::of(&case, &outcome).scheduled(&policy, Tasks::FewestTasks);
    let plan = plan.deployed(before, Some(Ways { policy: &policy, catalogue: &catalogue }));
    plan.judge(&*switch).unwrap_or_else(|faults| panic!("{faults:#?}"));
    plan.deployment.is_some().then_some(plan)
}

/// All plans for a file, on all racks, by strategies that choose differently.
pub fn all(file: &str) -> impl Iterator<Item = Plan> {
    let strategies = [Strategy::Lemur, Strategy::HwPreferred, Strategy::SwPreferred];
    racks().into_iter().flat_map(move |rack| {
        let file = file.to_owned();
        strategies.into_iter().filter_map(move |strategy| planned(&file, &rack, strategy, Before::Nothing(1)))
    })
}

fn said(tunnel: &Tunnel) -> Vec<String> {
    let line = |one: &crate::deployment::devices::Says| {
        let (way, next) = (if one.from_switch { "to it" } else { "back" }, format!("{:?}", one.next));
        let id = one.id.map(|id| format!(" as {id}")).unwrap_or_default();
        format!("{way}: path {} index {} {next}{id}", one.spi, one.si)
    };
    tunnel.says.iter().map(line).collect()
}

#[test]
fn every_rack_has_a_plan_whose_devices_are_joined() {
    let (mut kinds, mut wraps, mut tables, mut programs, mut plans) = (BTreeSet::new(), BTreeSet::new(), 0, 0, 0);
    for plan in all(FILE) {
        let deployment = plan.deployment.expect("it is planned");
        kinds.extend(deployment.devices.iter().map(|holds| format!("{:?}", holds.device)));
        wraps.extend(deployment.tunnels.iter().map(|tunnel| format!("{:?}", tunnel.by)));
        tables += deployment.devices.iter().map(|holds| holds.tables.len()).sum::<usize>();
        programs += deployment.devices.iter().map(|holds| holds.programs.len()).sum::<usize>();
        plans += 1;
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    assert_eq!(wraps.len(), 3, "{wraps:?}");
    assert!(plans >= 10 && tables >= 10 && programs >= 2, "{plans} plans, {tables} tables, {programs} programs");
}

/// What packets of a chain say where an OpenFlow switch runs its first function and a server the second, worked out by hand.
#[test]
fn packets_say_where_they_are() {
    let file = "chain c { promise 1Gbps.. in -> ACL(rules = 1) -> Encrypt() -> out }\n";
    let plan = planned(file, &racks()[2], Strategy::HwPreferred, Before::Nothing(1)).expect("a plan");
    let deployment = plan.deployment.expect("it is planned");
    let [switch, server] = &deployment.devices[..] else { panic!("{:?}", deployment.devices) };
    assert_eq!((switch.device, server.device), (Device::OpenFlowSwitch, Device::Server));
    let [table] = &switch.tables[..] else { panic!("{:?}", switch.tables) };
    assert_eq!((table.name.as_str(), table.functions.join(" ").as_str()), ("first", "c/acl"));
    let [tunnel] = &deployment.tunnels[..] else { panic!("{:?}", deployment.tunnels) };
    assert_eq!((tunnel.by, tunnel.link.as_str(), tunnel.on.as_str()), (Wrap::Vlan, "nf-1.eth0", "nf-1"));
    assert_eq!(said(tunnel), ["to it: path 1 index 254 Hop(254) as 1", "back: path 1 index 253 Out as 1"]);
    assert_eq!(tunnel.says[1].next, Next::Out);
}

/// A number means one thing from one plan to the next: packets may be on their way.
#[test]
fn numbers_keep_their_meaning() {
    let chain = |name: &str, promise: &str, port: u16| {
        format!(
            "class {name} = \"tcp port {port}\"\nchain {name} for {name} {{ promise {promise}.. in -> Encrypt() -> out }}\n"
        )
    };
    let two = chain("a", "1Gbps", 1) + &chain("b", "1Gbps", 2);
    // The second one goes, and a third one comes.
    let other = chain("a", "1Gbps", 1) + &chain("c", "1Gbps", 3);
    let rack = &racks()[1];
    let first = planned(&two, rack, Strategy::SwPreferred, Before::Nothing(1)).and_then(|plan| plan.deployment);
    let first = first.expect("a plan");
    let then = planned(&other, rack, Strategy::SwPreferred, Before::Runs(&first)).and_then(|plan| plan.deployment);
    let then = then.expect("a plan");
    let meanings = |deployment: &crate::deployment::Deployment| -> BTreeMap<(String, bool, u32), (u32, u8)> {
        let of = |tunnel: &Tunnel| {
            let says = tunnel.says.clone().into_iter();
            let link = tunnel.link.clone();
            says.map(move |one| {
                ((link.clone(), one.from_switch, one.id.expect("VLANs have numbers")), (one.spi, one.si))
            })
        };
        deployment.tunnels.iter().flat_map(of).collect()
    };
    let (before, after) = (meanings(&first), meanings(&then));
    let changed: Vec<_> =
        after.iter().filter(|(id, meaning)| before.get(*id).is_some_and(|old| old != *meaning)).collect();
    assert!(changed.is_empty(), "{changed:?}");
    let kept = after.iter().filter(|(id, meaning)| before.get(*id) == Some(*meaning)).count();
    assert!(kept >= 2 && after.len() > kept, "{before:?} {after:?}");
}
