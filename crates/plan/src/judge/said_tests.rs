//! Lies about what a plan says once, with nothing beside it that tells otherwise: its digests tell.

use serde_json::{Value, json};

use super::devices_tests;
use super::walk_tests::World;
use crate::plan::{MadeOf, Plan};
use catena_plan_model::random::Random;

/// Why a plan is refused that says something else at `pointer`.
fn told(honest: &Value, pointer: &str, to: Value) -> String {
    let mut lying = honest.clone();
    let place = lying.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is nowhere"));
    assert_ne!(*place, to, "{pointer}");
    *place = to;
    Plan::from_json(&lying.to_string()).err().unwrap_or_else(|| panic!("{pointer} was changed, and nobody sees it"))
}

fn altered(place: &str) -> String {
    format!("\n  {place}: this is not what the plan was made with: it was changed afterwards, as its digest tells")
}

#[test]
fn who_decided_and_what_a_plan_is_made_of_is_not_changed_by_hand() {
    let mut plan = devices_tests::all(devices_tests::FILE).next().expect("a plan");
    let made = |digest: &str| digest.repeat(16);
    let policy = plan.policy.as_ref().map(|policy| MadeOf::policy(policy, &plan.problem)).expect("it is of a file");
    plan.made_of = Some(MadeOf { policy, rack: made("a"), profile: made("b") });
    plan.seal();
    let honest = serde_json::to_value(&plan).expect("JSON");
    assert_eq!(Plan::from_json(&honest.to_string()), Ok(plan));
    assert!(told(&honest, "/strategy", json!("exact by hand")).ends_with(&altered("strategy")));
    for digest in ["/made_of/rack", "/made_of/profile"] {
        assert!(told(&honest, digest, json!(made("c"))).ends_with(&altered("made_of.rack or made_of.profile")));
    }
}

#[test]
fn no_step_of_a_delta_is_left_out() {
    let mut random = Random::new(9);
    let mut world = World::first(&mut random);
    let mut runs = world.plan(None).expect("one chain fits");
    let (mut taken, mut moves, mut equips) = (0, 0, 0);
    for number in 1..=40 {
        let mut next = world.clone();
        next.change(&mut random, number);
        let Some(mut plan) = next.plan(Some(&runs)) else { continue };
        if let Some(delta) = &mut plan.delta {
            delta.changed = vec!["the rack".to_owned()];
        }
        plan.seal();
        let honest = serde_json::to_value(&plan).expect("JSON");
        let steps = honest["delta"]["steps"].as_array().expect("steps");
        for n in 0..steps.len() {
            let mut fewer = steps.clone();
            let step = fewer.remove(n);
            assert!(told(&honest, "/delta/steps", json!(fewer)).contains("\n  delta.steps"), "{step}");
            taken += 1;
            match step["do"].as_str() {
                Some("move") => moves += 1,
                Some("equip") => equips += 1,
                _ => {}
            }
        }
        assert!(told(&honest, "/delta/changed", json!(["the chain files"])).ends_with(&altered("delta.changed")));
        (world, runs) = (next, plan);
    }
    assert!(taken > 100 && moves > 5 && equips > 5, "{taken} steps, {moves} moves, {equips} equips");
}

/// Packets at the end of a path say so by an index of that end's own, on all links alike.
#[test]
fn the_ends_of_paths_have_their_own_indices() {
    let mut ends = 0;
    for plan in devices_tests::all(devices_tests::FILE) {
        let honest = serde_json::to_value(&plan).expect("JSON");
        for (t, tunnel) in plan.deployment.iter().flat_map(|deployment| &deployment.tunnels).enumerate() {
            for (s, says) in tunnel.says.iter().enumerate().filter(|(_, says)| says.si < 250) {
                ends += 1;
                let why = told(&honest, &format!("/deployment/tunnels/{t}/says/{s}/si"), json!(says.si - 1));
                assert!(why.contains("deployment.tunnels: "), "{why}");
            }
            // Said alike everywhere, it is still not the end's.
            let mut lying = honest.clone();
            let mut changed = 0;
            for other in lying["deployment"]["tunnels"].as_array_mut().into_iter().flatten() {
                let says = other["says"].as_array_mut().into_iter().flatten();
                for one in says.filter(|one| one["next"] == "out") {
                    (one["si"], changed) = (json!(one["si"].as_u64().expect("an index") - 2), changed + 1);
                }
            }
            let why = Plan::from_json(&lying.to_string()).err().unwrap_or_default();
            assert!(changed == 0 || why.contains("is not that of Out"), "{why}");
            ends += changed;
        }
    }
    assert!(ends > 3, "{ends}");
}
