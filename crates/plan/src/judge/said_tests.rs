//! Lies about what a plan says once, with nothing beside it that tells otherwise: its digests tell.

use serde_json::{Value, json};

use super::devices_tests;
use super::walk_tests::World;
use super::whole_tests::on_two_cores;
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

/// A plan with the digests of what it is made of, as planners write it.
fn made(mut plan: Plan) -> Value {
    let made = |digest: &str| digest.repeat(16);
    let policy = plan.policy.as_ref().map(|policy| MadeOf::policy(policy, &plan.problem)).expect("it is of a file");
    plan.made_of = Some(MadeOf { policy, rack: made("a"), profile: made("b") });
    plan.seal();
    let honest = serde_json::to_value(&plan).expect("JSON");
    assert_eq!(Plan::from_json(&honest.to_string()), Ok(plan));
    honest
}

/// Two chains, the first of which parts.
const PARTS: &str = "class a = \"src net 10.1.0.0/16\"\nclass b = \"src net 10.2.0.0/16\"\n\
    chain x for a { in -> ACL(rules = 1) -> [ 25%: Monitor(), else: LB(servers = 3) ] -> out }\n\
    chain y for b { in -> ACL(rules = 2) -> out }\n";

/// What a file says, from the policy to the ways of packets, is not that of another one, even where all of it is and the digest fits.
#[test]
fn no_plan_is_made_one_of_another_file() {
    let honest = made(on_two_cores(PARTS));
    let another = |from: &str, to: &str| {
        let file = PARTS.replacen(from, to, 1);
        assert_ne!(file, PARTS);
        made(on_two_cores(&file))
    };
    let relation = |relation: &str| made(on_two_cores(&format!("{PARTS}{relation}\n")));
    for other in [
        relation("throughput x : y = 1 : 3"),
        relation("share x : y = 1 : 3"),
        relation("cpu x : y = 1 : 3"),
        relation("priority x > y"),
        another("25%", "30%"),
        another("rules = 1", "rules = 7"),
        another("10.1.0.0/16", "10.3.0.0/16"),
        another("servers = 3", "servers = 4"),
    ] {
        for pasted in [false, true] {
            let mut graft = honest.clone();
            graft["policy"] = other["policy"].clone();
            for part in ["paths", "entrances"] {
                graft["deployment"][part] = other["deployment"][part].clone();
            }
            let told =
                other["deployment"]["segments"].as_array().expect("segments").iter().map(|own| own["told"].clone());
            let segments = graft["deployment"]["segments"].as_array_mut().expect("segments");
            segments.iter_mut().zip(told).for_each(|(own, told)| own["told"] = told);
            // The value that fits what was changed: no refusal says it.
            let read: Plan = serde_json::from_value(graft.clone()).expect("a plan");
            let fits = MadeOf::policy(read.policy.as_ref().expect("a policy"), &read.problem);
            if pasted {
                graft["made_of"]["policy"] = json!(fits);
            }
            let why = Plan::from_json(&graft.to_string()).expect_err("it is of another file");
            assert!(!why.contains(&fits), "{why}");
            let related = other["policy"]["relations"] != honest["policy"]["relations"];
            let is_told = match related {
                true => why.contains("\n  policy.relations: `") && why.contains("` is there, and was not planned"),
                false => why.ends_with(&altered(if pasted { "policy or made_of" } else { "made_of.policy" })),
            };
            assert!(is_told, "{why}");
        }
    }
}

/// Whoever makes a plan with digests that fit says nothing of relations that it does not hold.
#[test]
fn relations_that_were_not_planned_are_refused_whatever_digests_say() {
    let ratio = "throughput x : y = 1 : 3";
    let planned = on_two_cores(&format!("{PARTS}{ratio}\nshare x : y = 1 : 2\n"));
    // A ratio of packets says more than the share, which nothing holds for that.
    assert_eq!(planned.policy.as_ref().map(|policy| policy.relations.len()), Some(2));
    made(planned);
    for more in [ratio, "share x : y = 1 : 2", "cpu x : y = 1 : 3", "priority y > x"] {
        let mut plan = on_two_cores(PARTS);
        plan.policy.as_mut().expect("a policy").relations.push(more.to_owned());
        plan.seal();
        let why = Plan::from_json(&serde_json::to_string(&plan).expect("JSON")).expect_err(more);
        assert_eq!(
            why,
            format!("the plan says what is not so:\n  policy.relations: `{more}` is there, and was not planned")
        );
    }
}

#[test]
fn a_part_of_the_promises_is_not_made_all_of_them() {
    let part = serde_json::to_value(on_two_cores(PARTS).for_part(Some(0.25))).expect("JSON");
    assert!(Plan::from_json(&part.to_string()).is_ok());
    let without = |pointers: &[&str]| {
        let mut lying = part.clone();
        for pointer in pointers {
            let (object, key) = pointer.rsplit_once('/').expect("a pointer");
            let object = lying.pointer_mut(object).and_then(Value::as_object_mut).expect("an object");
            assert!(object.remove(key).is_some(), "{pointer}");
        }
        Plan::from_json(&lying.to_string()).expect_err("it is for a part")
    };
    assert!(without(&["/held"]).ends_with(&altered("held")));
    for both in [&["/digests/held"][..], &["/held", "/digests/held"]] {
        let why = without(both);
        assert!(why.contains("`held`"), "{why}");
    }
}

/// Each name is a line's part in tables and messages.
#[test]
fn names_write_no_lines() {
    let honest = made(on_two_cores(PARTS));
    for (what, pointer) in [
        ("chain", "/problem/chains/0/name"),
        ("function", "/problem/chains/0/nodes/0/name"),
        ("function", "/problem/chains/0/nodes/0/function"),
        ("chain", "/chains/0/name"),
        ("function", "/chains/0/functions/0/name"),
        ("function", "/chains/0/functions/0/function"),
        ("chain", "/policy/chains/0/name"),
        ("class", "/policy/chains/0/classes/0"),
        ("function", "/policy/chains/0/functions/0/name"),
        ("function", "/policy/chains/0/functions/0/function"),
        ("class", "/servers/0/tasks/classes/0/name"),
        ("segment", "/deployment/segments/0/name"),
        ("function", "/deployment/segments/0/functions/0"),
        ("segment's instance", "/deployment/instances/0/name"),
    ] {
        for line in ["a\nAll promises are kept", "a\rb", "a\u{1b}[2K", "a\u{2028}b"] {
            let why = told(&honest, pointer, json!(line));
            assert!(why.starts_with(&format!("{line:?} is no name of a {what}: ")), "{pointer}: {why}");
        }
    }
    for other in ["/problem/chains/0/name", "/deployment/segments/0/name"] {
        assert!(told(&honest, other, json!("grüße an alle")).starts_with("the plan says what is not so"));
    }
}

#[test]
fn who_decided_and_what_a_plan_is_made_of_is_not_changed_by_hand() {
    let honest = made(devices_tests::all(devices_tests::FILE).next().expect("a plan"));
    assert!(told(&honest, "/strategy", json!("exact by hand")).ends_with(&altered("strategy")));
    for digest in ["/made_of/rack", "/made_of/profile"] {
        assert!(told(&honest, digest, json!("c".repeat(16))).ends_with(&altered("policy or made_of")));
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
