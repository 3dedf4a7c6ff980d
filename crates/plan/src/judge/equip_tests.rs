//! What devices hold differs between two plans, and all instances and paths stay: it is said all the same.

use super::devices_tests::planned;
use crate::delta::{Delta, Part, Step};
use crate::deployment::Before;
use crate::plan::Plan;
use catena_plan_lemur::Strategy;

const CHAIN: &str = "chain a { promise 1Gbps..2Gbps in -> ACL(rules = 1) -> Monitor() -> out }\n";
const SERVER: &str = "[[server]]\nname = \"nf\"\ncores = 4\nsteering_cores = 1\nclock = \"2GHz\"\n\
    nics = [{ name = \"eth0\", rate = \"40Gbps\", address = \"10.9.0.1\" }]\n";
const SHARED: &str = "[[server]]\nname = \"nf\"\ncores = 4\nshared = true\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";

fn switch(kind: &str, more: &str) -> String {
    format!("[switch]\nname = \"tor\"\nkind = \"{kind}\"\nports = 32\nport = \"100Gbps\"\n{more}{SERVER}")
}

/// Plans of both, the second from what runs of the first; and what is equipped, in order.
fn followed(files: [&str; 2], racks: [&str; 2], strategy: Strategy) -> (Plan, Plan, Vec<(String, Vec<Part>)>) {
    let old = planned(files[0], racks[0], strategy, Before::Nothing(7)).expect("it fits");
    let runs = old.deployment.clone().expect("it runs");
    let new = planned(files[1], racks[1], strategy, Before::Runs(&runs)).expect("it fits");
    let (delta, after) = (new.delta.clone().expect("it follows"), new.deployment.clone().expect("it runs"));
    assert_eq!(delta.leads(&runs, &after), Ok(()), "{delta:#?}");
    let read = Plan::from_json(&serde_json::to_string(&new).expect("JSON"));
    assert_eq!(read.as_ref().map(|read| &read.delta), Ok(&new.delta));
    let equipped = delta.steps.iter().filter_map(|step| match step {
        Step::Equip { on, with } => Some((on.clone(), with.clone())),
        _ => None,
    });
    let equipped = equipped.collect();
    // Nobody but the follower is there to find out what is forgotten, late, or done where it need not be.
    for (n, step) in delta.steps.iter().enumerate().filter(|(_, step)| matches!(step, Step::Equip { .. })) {
        let changed = |change: &dyn Fn(&mut Vec<Step>)| {
            let mut other = delta.clone();
            change(&mut other.steps);
            other.leads(&runs, &after)
        };
        assert!(changed(&|steps| drop(steps.remove(n))).is_err(), "nobody misses {step}");
        assert!(changed(&|steps| steps.insert(n, step.clone())).is_err(), "{step} twice");
        let late = changed(&|steps| {
            let step = steps.remove(n);
            steps.push(step);
        });
        let enters = delta.steps.iter().any(|step| matches!(step, Step::Enter { .. }));
        assert_eq!(late.is_err(), enters, "{step} last: {late:?}");
    }
    (old, new, equipped)
}

fn only(equipped: &[(&str, &[Part])]) -> Vec<(String, Vec<Part>)> {
    equipped.iter().map(|(on, with)| ((*on).to_owned(), with.to_vec())).collect()
}

fn delta(plan: &Plan) -> &Delta {
    plan.delta.as_ref().expect("it follows")
}

#[test]
fn a_promise_changes_what_a_server_holds_its_chains_to() {
    let other = CHAIN.replace("2Gbps", "1500Mbps");
    let (_, same, none) = followed([CHAIN, CHAIN], [SHARED, SHARED], Strategy::Lemur);
    assert!(delta(&same).is_empty() && none.is_empty(), "{:?}", same.delta);
    let (old, new, equipped) = followed([CHAIN, &other], [SHARED, SHARED], Strategy::Lemur);
    assert_ne!(old.servers[0].tasks, new.servers[0].tasks);
    assert_eq!(equipped, only(&[("nf", &[Part::Schedule])]));
    assert_eq!(delta(&new).steps.len(), 1, "{:?}", new.delta);
    // With a core for each chain.
    let rack = switch("plain", "");
    let (old, new, equipped) = followed([CHAIN, &other], [&rack, &rack], Strategy::Lemur);
    assert_ne!(old.servers[0].workers, new.servers[0].workers);
    assert_eq!(equipped, only(&[("nf", &[Part::Schedule])]));
    assert_eq!(delta(&new).steps.len(), 1, "{:?}", new.delta);
}

#[test]
fn tunnels_of_another_kind_or_address_are_changed() {
    let tunnels = [("tor", &[Part::Tunnels][..]), ("nf", &[Part::Tunnels])];
    let [nsh, vlan] = ["", "tunnels = \"vlan\"\n"].map(|more| switch("plain", more));
    let (_, new, equipped) = followed([CHAIN, CHAIN], [&nsh, &vlan], Strategy::Lemur);
    assert_eq!((equipped, delta(&new).steps.len()), (only(&tunnels), 2), "{:?}", new.delta);
    let vxlan = |address: &str| switch("plain", &format!("tunnels = \"vxlan\"\naddress = \"{address}\"\n"));
    let (one, other) = (vxlan("10.9.0.254"), vxlan("10.9.0.253"));
    let (_, new, equipped) = followed([CHAIN, CHAIN], [&one, &other], Strategy::Lemur);
    assert_eq!((equipped, delta(&new).steps.len()), (only(&tunnels), 2), "{:?}", new.delta);
    let (_, same, none) = followed([CHAIN, CHAIN], [&one, &one], Strategy::Lemur);
    assert!(delta(&same).is_empty() && none.is_empty(), "{:?}", same.delta);
}

#[test]
fn a_switch_gets_the_tables_of_a_chain_more() {
    let rack = switch("pisa", "");
    let more = "class x = \"tcp\"\nclass y = \"udp\"\n\
        chain a for x { promise 1Gbps.. in -> ACL(rules = 1) -> out }\n";
    let both = format!("{more}chain b for y {{ promise 1Gbps.. in -> ACL(rules = 2) -> out }}\n");
    let (_, new, equipped) = followed([more, &both], [&rack, &rack], Strategy::HwPreferred);
    assert_eq!(equipped, only(&[("tor", &[Part::Tables])]), "{:?}", new.delta);
    let at = |wanted: fn(&Step) -> bool| delta(&new).steps.iter().position(wanted).expect("such a step");
    let equip = at(|step| matches!(step, Step::Equip { .. }));
    assert!(
        at(|step| matches!(step, Step::Start { .. })) < equip && equip < at(|step| matches!(step, Step::Enter { .. }))
    );
}

/// A switch of another kind, or another switch, has nothing of what the one before had.
#[test]
fn another_switch_gets_all_that_it_does() {
    let [plain, pisa] = ["plain", "pisa"].map(|kind| switch(kind, "tunnels = \"vlan\"\n"));
    let (_, new, equipped) = followed([CHAIN, CHAIN], [&plain, &pisa], Strategy::Lemur);
    let tor = equipped.iter().find(|(on, _)| on == "tor").unwrap_or_else(|| panic!("{:?}", new.delta));
    assert!(tor.1.contains(&Part::Whole), "{:?}", new.delta);
    let other = plain.replace("\"tor\"", "\"tor2\"");
    let (_, new, equipped) = followed([CHAIN, CHAIN], [&plain, &other], Strategy::Lemur);
    let tor = equipped.iter().find(|(on, _)| on == "tor2").unwrap_or_else(|| panic!("{:?}", new.delta));
    assert!(tor.1.contains(&Part::Whole) && tor.1.contains(&Part::Tunnels), "{:?}", new.delta);
}
