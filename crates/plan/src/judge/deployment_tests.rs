//! Deployments of drawn plans: lies about them are found, and from one to the next there is a way.

use serde_json::{Value, json};

use super::tests::{drawn, explained};
use super::whole_tests;
use crate::delta::Delta;
use crate::deployment::Before;
use crate::plan::Plan;
use catena_plan_lemur::{Strategy, place};
use catena_plan_model::switch::for_problem;

/// A lie: its name, and what makes a plan tell it; false: this plan gives no occasion to.
type Lie = (&'static str, fn(&mut Value) -> bool);

fn put(plan: &mut Value, pointer: &str, value: Value) -> bool {
    plan.pointer_mut(pointer).map(|place| *place = value).is_some()
}

/// The number of an instance that is one of several of its segment.
fn one_of_several(plan: &Value) -> Option<usize> {
    let all = plan["deployment"]["instances"].as_array()?;
    (0..all.len()).find(|n| all.iter().filter(|other| other["segment"] == all[*n]["segment"]).count() > 1)
}

const LIES: [Lie; 30] = [
    ("a seed that is none", |plan| put(plan, "/deployment/seed", json!("7"))),
    ("epoch 0", |plan| put(plan, "/deployment/epoch", json!(0))),
    ("a first one that follows another", |plan| {
        plan["deployment"]["follows"] = json!("0123456789abcdef");
        true
    }),
    ("an instance from the future", |plan| put(plan, "/deployment/instances/0/since", json!(2))),
    ("an instance that is not there", |plan| {
        let Some(n) = one_of_several(plan) else { return false };
        plan["deployment"]["instances"].as_array_mut().map(|all| all.remove(n)).is_some()
    }),
    ("an instance twice", |plan| {
        let first = plan["deployment"]["instances"][0].clone();
        first.is_object() && plan["deployment"]["instances"].as_array_mut().map(|all| all.push(first)).is_some()
    }),
    ("an instance too many", |plan| {
        let mut first = plan["deployment"]["instances"][0].clone();
        (first["name"], first["slots"]) = (json!("another"), json!(""));
        plan["deployment"]["instances"].as_array_mut().map(|all| all.push(first)).is_some()
    }),
    ("an instance of nothing", |plan| put(plan, "/deployment/instances/0/segment", json!("nothing"))),
    ("another core", |plan| {
        plan["deployment"]["instances"][0]["core"].is_u64() && put(plan, "/deployment/instances/0/core", json!(999))
    }),
    ("another device", |plan| put(plan, "/deployment/instances/0/on", json!("elsewhere"))),
    ("an instance without flows", |plan| {
        let Some(n) = one_of_several(plan) else { return false };
        put(plan, &format!("/deployment/instances/{n}/slots"), json!(""))
    }),
    ("flows that nobody has", |plan| put(plan, "/deployment/instances/0/slots", json!("0-9"))),
    ("flows that two have", |plan| {
        let Some(n) = one_of_several(plan) else { return false };
        put(plan, &format!("/deployment/instances/{n}/slots"), json!("0-4095"))
    }),
    ("a function that is nowhere", |plan| {
        let functions = plan.pointer_mut("/deployment/segments/0/functions").and_then(Value::as_array_mut);
        functions.and_then(Vec::pop).is_some()
    }),
    ("a function that is in two places", |plan| {
        let extra = plan["deployment"]["segments"][1]["functions"][0].clone();
        extra.is_string()
            && plan.pointer_mut("/deployment/segments/0/functions").and_then(Value::as_array_mut).is_some_and(|all| {
                all.push(extra);
                true
            })
    }),
    ("another kind of device", |plan| {
        let other = if plan["deployment"]["segments"][0]["device"] == "switch" { "server" } else { "switch" };
        put(plan, "/deployment/segments/0/device", json!(other))
    }),
    ("a path's number that was never given", |plan| put(plan, "/deployment/paths/0/spi", json!(999))),
    ("two paths of one number", |plan| {
        let first = plan["deployment"]["paths"][0]["spi"].clone();
        put(plan, "/deployment/paths/1/spi", first)
    }),
    ("a path of another chain", |plan| put(plan, "/deployment/paths/0/chain", json!("other"))),
    ("a path that is not there", |plan| {
        let paths = plan.pointer_mut("/deployment/paths").and_then(Value::as_array_mut);
        paths.and_then(Vec::pop).is_some()
    }),
    ("a rule that is not there", |plan| {
        let rules = plan.pointer_mut("/deployment/paths/0/rules").and_then(Value::as_array_mut);
        rules.and_then(Vec::pop).is_some()
    }),
    ("rules in another order", |plan| {
        let rules = plan.pointer_mut("/deployment/paths/0/rules").and_then(Value::as_array_mut);
        rules.is_some_and(|rules| {
            rules.reverse();
            rules.len() > 1
        })
    }),
    ("a rule that leads elsewhere", |plan| put(plan, "/deployment/paths/0/rules/0/to", json!("drop"))),
    ("a rule to a hop that is none", |plan| put(plan, "/deployment/paths/0/rules/0/to", json!({ "hop": 3 }))),
    ("a hop of index 0", |plan| put(plan, "/deployment/paths/0/hops/0/si", json!(0))),
    ("a hop in another segment", |plan| put(plan, "/deployment/paths/0/hops/0/segment", json!("other"))),
    ("a class that enters nowhere", |plan| {
        let entrances = plan.pointer_mut("/deployment/entrances").and_then(Value::as_array_mut);
        entrances.and_then(Vec::pop).is_some()
    }),
    ("classes in another order", |plan| {
        let entrances = plan.pointer_mut("/deployment/entrances").and_then(Value::as_array_mut);
        entrances.is_some_and(|entrances| {
            entrances.reverse();
            entrances.len() > 1
        })
    }),
    ("a class that is another", |plan| put(plan, "/deployment/entrances/0/filter", json!("udp port 53"))),
    ("another configuration", |plan| put(plan, "/deployment/segments/0/told", json!("00"))),
];

#[test]
fn every_lie_about_what_runs_is_found() {
    let mut told = [0; LIES.len()];
    let plans = (0..60).map(|seed| {
        let (problem, rack) = drawn(seed);
        explained(&problem, &rack, &place(&problem, Strategy::Lemur, &*for_problem(&problem)))
    });
    let wholes = (0..20).map(|seed| whole_tests::drawn(seed).planned(false));
    for (number, plan) in plans.chain(wholes).filter(|plan| plan.placement.is_some()).enumerate() {
        let honest = serde_json::to_value(&plan).expect("JSON");
        for (told, (name, tell)) in told.iter_mut().zip(LIES) {
            let mut lying = honest.clone();
            if !tell(&mut lying) || lying == honest {
                continue;
            }
            let read = Plan::from_json(&lying.to_string());
            let why = read.err().unwrap_or_else(|| panic!("plan {number}: nobody finds out: {name}"));
            assert!(why.starts_with("the plan says what is not so:\n  deployment."), "{name}: {why}");
            *told += 1;
        }
    }
    let never: Vec<&str> = LIES.iter().zip(told).filter(|(_, told)| *told == 0).map(|(lie, _)| lie.0).collect();
    assert!(never.is_empty(), "never told: {never:?}; {told:?}");
}

/// Another planner for the same policy on the same rack: what has to be done lies between.
#[test]
fn from_each_plan_to_the_next_there_is_a_way() {
    let (mut ways, mut kept) = (0, 0);
    for seed in 0..60 {
        let (problem, rack) = drawn(seed);
        let switch = for_problem(&problem);
        let mut runs: Option<Plan> = None;
        for strategy in [Strategy::Lemur, Strategy::SwPreferred, Strategy::Greedy, Strategy::NoCores] {
            let mut plan = explained(&problem, &rack, &place(&problem, strategy, &*switch));
            if plan.placement.is_none() {
                continue;
            }
            if let Some(old) = runs.and_then(|old: Plan| old.deployment) {
                plan = plan.deployed(Before::Runs(&old), None);
                assert_eq!(plan.judge(&*switch), Ok(()));
                let new = plan.deployment.as_ref().expect("something is placed");
                let delta = Delta::between(&old, new, |_| true);
                assert_eq!(delta.leads(&old, new), Ok(()), "seed {seed}, {}", strategy.name());
                kept += new.instances.iter().filter(|instance| instance.since < new.epoch).count();
                ways += 1;
            }
            runs = Some(plan);
        }
    }
    assert!(ways > 60 && kept > 60, "{ways} ways, {kept} instances stay");
}
