//! What runs is the plan: a plan whose segments or ways are other ones than those of the file is not run, and it is said where.

use catena_compile::backend::{self, OnHost};
use catena_compile::{Counts, Host, lower, reduce};
use catena_plan::deployment::paths::{Next, Path, Rule};
use catena_plan::deployment::{Deployment, Segment};
use catena_plan::plan::Plan;
use catena_policy::{Direction, PolicyGraph};

use crate::entered::both;

/// A chain that branches, with a way back, and one that does neither.
const FILE: &str = "class web = \"tcp\"\nclass rest = \"udp\"\n\
    chain a for web { acl = ACL(rules = [\"permit any\"])  mon = Monitor()  lim = Limiter(rate = 1Gbps)\n\
        in -> acl -> [ \"tcp port 80\": lim, else: ] -> mon -> out  out -> mon -> acl -> in }\n\
    chain b for rest { in -> Monitor() -> ACL(rules = [\"permit any\"]) -> out }\n";

fn planned() -> (PolicyGraph, Host, Plan) {
    both("wired.catena", FILE).expect("it is of the library's functions")
}

fn refused(policy: &PolicyGraph, plan: &Plan, lowered: Option<Host>) -> Option<String> {
    let backend = OnHost { lowered, reduce: None };
    backend::lower(policy, plan, &[&backend]).err().map(|why| why.to_string())
}

fn segment<'a>(deployment: &'a mut Deployment, of: &str) -> &'a mut Segment {
    let has = |segment: &&mut Segment| segment.functions.iter().any(|function| function == of);
    deployment.segments.iter_mut().find(has).expect("a segment has it")
}

fn path<'a>(deployment: &'a mut Deployment, chain: &str, direction: Direction) -> &'a mut Path {
    let own = |path: &&mut Path| path.chain == chain && path.direction == direction;
    deployment.paths.iter_mut().find(own).expect("a path is of it")
}

fn rule<'a>(path: &'a mut Path, from: &str) -> &'a mut Rule {
    path.rules.iter_mut().find(|rule| rule.from == from).expect("packets leave it")
}

/// What is changed in a plan's deployment, and what has to be said of it.
type Change = (fn(&mut Deployment), &'static str);

const CHANGES: [Change; 11] = [
    (|d| segment(d, "a/mon").functions.retain(|f| f != "a/mon"), "no segment on nf1 runs a/mon"),
    (|d| segment(d, "a/mon").functions.reverse(), "segment a/acl+mon+lim has a/"),
    (|d| segment(d, "b/monitor").functions.push("b/other".into()), "nf1 runs b/other, which the file does not have"),
    (|d| segment(d, "b/monitor").functions.push("a/mon".into()), "a/mon runs twice on nf1"),
    (|d| segment(d, "b/monitor").told = "0".repeat(16), "segment b/monitor+acl is told something else than chain b"),
    (
        |d| rule(path(d, "a", Direction::Return), "a/mon").to = Next::In,
        "packets of chain a go back from a/mon to in, and by the file from a/mon to a/acl",
    ),
    (
        |d| rule(path(d, "b", Direction::Forward), "b/monitor").to = Next::Drop,
        "packets of chain b go forward from b/monitor to drop, and by the file from b/monitor to b/acl",
    ),
    (
        |d| rule(path(d, "a", Direction::Forward), "a/acl").when.clear(),
        "from a/acl to a/lim, and by the file from a/acl to a/lim where \"tcp port 80\"",
    ),
    (|d| drop(path(d, "a", Direction::Forward).rules.pop()), "rules of the way forward of chain a"),
    (|d| path(d, "b", Direction::Forward).hops.clear(), "packets of chain b go forward from in to nowhere"),
    (
        |d| path(d, "b", Direction::Forward).hops[0].on = "nf2".into(),
        "packets of chain b go forward from in to nowhere",
    ),
];

#[test]
fn a_plan_of_other_segments_or_ways_is_not_run() {
    let (policy, host, plan) = planned();
    assert_eq!(refused(&policy, &plan, None), None);
    assert_eq!(refused(&policy, &plan, Some(host.clone())), None);
    for (change, says) in CHANGES {
        let mut other = plan.clone();
        change(other.deployment.as_mut().expect("it is placed"));
        for lowered in [None, Some(host.clone())] {
            let why = refused(&policy, &other, lowered).unwrap_or_else(|| panic!("it is run: {says}"));
            assert!(why.contains(says) && why.ends_with("plan the file again"), "{says}: {why}");
        }
    }
}

#[test]
fn a_pipeline_with_other_ways_than_the_plan_is_not_run() {
    let (policy, host, plan) = planned();
    let module = |name: &str| host.modules.iter().position(|module| module.name == name).expect("it is there");
    // Packets pass by a function, on either way.
    for (from, gate, to, says) in [
        ("b/monitor", 0, "out", "leads packets from b/monitor to out"),
        ("a/mon", 1, "in", "leads packets from a/mon to in"),
    ] {
        let mut other = host.clone();
        let (from, to) = (module(from), module(to));
        let link = other.links.iter_mut().find(|link| (link.from, link.gate) == (from, gate)).expect("a link");
        (link.to, link.to_gate) = (to, 0);
        let why = refused(&policy, &plan, Some(other)).expect("packets go elsewhere");
        assert!(why.contains(says), "{why}");
    }
    let mut fewer = host.clone();
    fewer.modules[module("a/mon")].kind = catena_compile::Lowered::Discard;
    let why = refused(&policy, &plan, Some(fewer)).expect("a function is not there");
    assert!(why.contains("the pipeline runs 4 functions, and the plan 5"), "{why}");
}

/// Drops that are moved up are what the plan says, done earlier.
#[test]
fn early_drops_are_run_by_the_same_plan() {
    let moved = "chain a { in -> IPv4Fwd(routes = [\"0.0.0.0/0 192.0.2.1\"], neighbours = {\"192.0.2.1\": \"02:00:00:00:00:01\"}, \
        mac = \"02:00:00:00:00:fe\") -> ACL(rules = [\"deny from 10.0.0.0/8\", \"permit any\"]) -> out }\n";
    for (file, moves) in [(moved, true), (FILE, false)] {
        let (policy, plain, plan) = both("early.catena", file).expect("it is of the library's functions");
        let (host, _) = reduce(lower(&policy).expect("it is lowered"), Counts::Totals).expect("rules can be read");
        assert_eq!(host.links != plain.links, moves);
        assert_eq!(refused(&policy, &plan, Some(host)), None);
    }
}
