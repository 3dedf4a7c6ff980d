//! Lies planted in the deltas of a walk of changes: each is found when the plan is read, by what shows without the one before.

use serde_json::{Value, json};

use super::walk_tests::World;
use crate::delta::Step;
use crate::plan::Plan;
use catena_plan_model::random::Random;

/// A lie: its name, and what makes a plan tell it; false: this plan gives no occasion to.
type Lie = (&'static str, fn(&mut Value) -> bool);

fn steps(plan: &mut Value) -> &mut Vec<Value> {
    plan["delta"]["steps"].as_array_mut().expect("steps")
}

/// Change the first step that does this; false: there is none.
fn change(plan: &mut Value, what: &str, change: impl FnOnce(&mut Value) -> bool) -> bool {
    steps(plan).iter_mut().find(|step| step["do"] == what).is_some_and(change)
}

/// Take the first step that does this away; false: there is none.
fn without(plan: &mut Value, what: &str) -> bool {
    let at = steps(plan).iter().position(|step| step["do"] == what);
    at.map(|at| steps(plan).remove(at)).is_some()
}

/// The first flows that go from one instance to another.
fn moved(plan: &mut Value) -> Option<&mut Value> {
    steps(plan).iter_mut().find_map(|step| match step["do"].as_str() {
        Some("move") => Some(step),
        Some("enter") => step.pointer_mut("/moves/0"),
        _ => None,
    })
}

/// Put the first step that does this in front of all, or behind.
fn elsewhere(plan: &mut Value, what: &str, front: bool) -> bool {
    let all = steps(plan);
    let Some(at) = all.iter().position(|step| step["do"] == what) else { return false };
    let others = if front { &all[..at] } else { &all[at + 1..] };
    let other = others.iter().any(|step| step["do"] != what);
    let step = all.remove(at);
    all.insert(if front { 0 } else { all.len() }, step);
    other
}

const LIES: [Lie; 23] = [
    ("steps turned round", |plan| {
        let kinds = |steps: &[Value]| steps.iter().map(|step| step["do"].to_string()).collect::<Vec<_>>();
        let several = kinds(steps(plan)).windows(2).any(|pair| pair[0] != pair[1]);
        steps(plan).reverse();
        several
    }),
    ("a start that comes late", |plan| elsewhere(plan, "start", false)),
    ("a start twice", |plan| {
        let start = steps(plan).iter().find(|step| step["do"] == "start").cloned();
        start.map(|start| steps(plan).insert(0, start)).is_some()
    }),
    ("a path that is laid late", |plan| elsewhere(plan, "install", false)),
    ("a device that is equipped late", |plan| elsewhere(plan, "equip", false)),
    ("a stop that comes early", |plan| elsewhere(plan, "stop", true)),
    ("an end that comes early", |plan| elsewhere(plan, "end", true)),
    ("a path that is removed early", |plan| elsewhere(plan, "remove", true)),
    ("nobody starts", |plan| without(plan, "start")),
    ("nobody is given flows", |plan| without(plan, "give")),
    ("flows that stay", |plan| without(plan, "move")),
    ("nobody enters", |plan| steps(plan).iter().any(|step| step["do"] == "install") && without(plan, "enter")),
    ("flows that do not end", |plan| without(plan, "end")),
    ("an instance that goes on", |plan| without(plan, "stop")),
    ("a path that is laid twice", |plan| {
        let path = steps(plan).iter().find(|step| step["do"] == "install").cloned();
        path.map(|path| steps(plan).insert(0, path)).is_some()
    }),
    ("a path of another chain", |plan| {
        change(plan, "install", |step| {
            step["chain"] = json!("other");
            true
        })
    }),
    ("a path that was never there", |plan| {
        change(plan, "remove", |step| {
            step["spi"] = json!(999_999);
            true
        })
    }),
    ("flows of nobody", |plan| moved(plan).map(|one| one["from"] = json!("nobody")).is_some()),
    ("flows of another instance", |plan| moved(plan).map(|one| one["from"] = json!("c9/acl@nf0:1")).is_some()),
    ("flows of a server that is there, and is said to be gone", |plan| {
        moved(plan).filter(|one| one["gone"].is_null()).map(|one| one["gone"] = json!(true)).is_some()
    }),
    ("flows of a server that is gone, and is said to be there", |plan| {
        let all = steps(plan).iter_mut().flat_map(|step| match step["do"].as_str() {
            Some("move") => vec![step],
            Some("enter") if step["moves"].is_array() => {
                step["moves"].as_array_mut().expect("moves").iter_mut().collect()
            }
            _ => Vec::new(),
        });
        all.into_iter().find(|one| one["gone"] == true).map(|one| one["gone"] = json!(false)).is_some()
    }),
    ("fewer flows", |plan| moved(plan).map(|one| one["slots"] = json!("")).is_some()),
    ("fewer functions", |plan| {
        let functions = moved(plan).and_then(|one| one["functions"].as_array_mut());
        functions.filter(|functions| functions.len() > 1).and_then(Vec::pop).is_some()
    }),
];

#[test]
fn every_lie_about_the_way_is_found() {
    let mut random = Random::new(9);
    let mut world = World::first(&mut random);
    let mut runs = world.plan(None).expect("one chain fits");
    let mut told = [0; LIES.len()];
    for number in 1..=150 {
        let mut next = world.clone();
        next.change(&mut random, number);
        let Some(plan) = next.plan(Some(&runs)) else { continue };
        let honest = serde_json::to_value(&plan).expect("JSON");
        for (told, (name, tell)) in told.iter_mut().zip(LIES) {
            let mut lying = honest.clone();
            if !tell(&mut lying) {
                continue;
            }
            let read = Plan::from_json(&lying.to_string());
            let why = read.err().unwrap_or_else(|| {
                let steps = plan.delta.iter().flat_map(|delta| &delta.steps).map(Step::to_string);
                panic!("change {number}: nobody finds out: {name}\n{}", steps.collect::<Vec<_>>().join("\n"))
            });
            assert!(why.contains("\n  delta.steps"), "{name}: {why}");
            *told += 1;
        }
        (world, runs) = (next, plan);
    }
    let never: Vec<&str> = LIES.iter().zip(told).filter(|(_, told)| *told == 0).map(|(lie, _)| lie.0).collect();
    assert!(never.is_empty(), "never told: {never:?}; {told:?}");
}
