//! Deployments of drawn plans: lies about them are found, and from one to the next there is a way.

use serde_json::{Value, json};

use super::tests::{drawn, explained};
use super::whole_tests;
use crate::delta::{Delta, Step};
use crate::deployment::Before;
use crate::deployment::ranges::Slots;
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

/// Where workers run whole chains, give the first worker one slot of the last one's, in all segments; false: there are no two such workers.
fn more_for_the_first(plan: &mut Value) -> bool {
    let cores: Vec<Value> =
        match plan["servers"].as_array().and_then(|all| all.iter().find(|one| one["tasks"].is_object())) {
            Some(server) => {
                server["workers"].as_array().into_iter().flatten().map(|worker| worker["core"].clone()).collect()
            }
            None => return false,
        };
    let [first, .., last] = &cores[..] else { return false };
    let instances = plan.pointer_mut("/deployment/instances").and_then(Value::as_array_mut).into_iter().flatten();
    let (mut changed, mut given) = (false, None);
    let mut all: Vec<(&mut Value, Vec<u16>)> = instances
        .map(|instance| {
            let slots: Slots = instance["slots"].as_str().and_then(|text| text.parse().ok()).expect("slots");
            let numbers = slots.iter().collect();
            (instance, numbers)
        })
        .collect();
    for (_, slots) in all.iter_mut().filter(|(instance, _)| instance["core"] == *last) {
        given = slots.pop();
    }
    for (instance, mut slots) in all {
        if instance["core"] == *first {
            slots.extend(given);
            changed = true;
        }
        instance["slots"] = json!(Slots::of(slots));
    }
    changed
}

/// A table that is held by a device: where.
fn a_table(plan: &Value) -> Option<String> {
    let devices = plan["deployment"]["devices"].as_array()?;
    let with = devices.iter().position(|device| device["tables"].is_array())?;
    Some(format!("/deployment/devices/{with}/tables"))
}

/// Change the last of a list by taking it away.
fn shorten(plan: &mut Value, pointer: &str) -> bool {
    plan.pointer_mut(pointer).and_then(Value::as_array_mut).and_then(Vec::pop).is_some()
}

const LIES: [Lie; 67] = [
    ("a device that holds nothing", |plan| shorten(plan, "/deployment/devices")),
    ("a device of another kind", |plan| put(plan, "/deployment/devices/0/device", json!("plain_switch"))),
    ("a server with another schedule", |plan| {
        let devices = plan.pointer_mut("/deployment/devices").and_then(Value::as_array_mut);
        let server = devices.and_then(|all| all.iter_mut().find(|device| device["schedule"].is_string()));
        server.is_some_and(|server| {
            server["schedule"] = json!("0123456789abcdef");
            true
        })
    }),
    ("a table that holds less", |plan| a_table(plan).is_some_and(|at| shorten(plan, &format!("{at}/0/functions")))),
    ("a table that is fuller", |plan| a_table(plan).is_some_and(|at| put(plan, &format!("{at}/0/sram"), json!(77)))),
    ("a stage without tables", |plan| {
        let at = a_table(plan).filter(|at| plan.pointer(&format!("{at}/0/tables")).is_some());
        at.is_some_and(|at| put(plan, &format!("{at}/0/tables"), json!(0)))
    }),
    ("a table with other entries", |plan| {
        let table = a_table(plan).and_then(|at| plan.pointer_mut(&format!("{at}/0")));
        table.is_some_and(|table| {
            table["entries"] = json!(7);
            true
        })
    }),
    ("tables upside down", |plan| {
        let tables = a_table(plan).and_then(|at| plan.pointer_mut(&at)).and_then(Value::as_array_mut);
        tables.is_some_and(|tables| {
            tables.reverse();
            tables.len() > 1
        })
    }),
    ("a table that the switch has not", |plan| {
        a_table(plan).is_some_and(|at| put(plan, &format!("{at}/0/name"), json!("table 7")))
    }),
    ("a program of nothing", |plan| {
        let devices = plan.pointer_mut("/deployment/devices").and_then(Value::as_array_mut);
        let card = devices.and_then(|all| all.iter_mut().find(|device| device["programs"].is_array()));
        card.is_some_and(|card| {
            card["programs"] = json!(["nothing"]);
            true
        })
    }),
    ("a tunnel that is not there", |plan| shorten(plan, "/deployment/tunnels")),
    ("packets that say nothing", |plan| shorten(plan, "/deployment/tunnels/0/says")),
    ("another kind of tunnel", |plan| put(plan, "/deployment/tunnels/0/by", json!("vxlan"))),
    ("another index", |plan| put(plan, "/deployment/tunnels/0/says/0/si", json!(255 - 77))),
    ("a number for two things", |plan| {
        let says = plan.pointer_mut("/deployment/tunnels/0/says");
        says.is_some_and(|says| {
            let (first, second) = (says[0].clone(), says[1].clone());
            says[1]["id"] = first["id"].clone();
            first["id"].is_u64() && first["from_switch"] == second["from_switch"]
        })
    }),
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
    ("workers of which one has a flow more than its part", |plan| more_for_the_first(plan)),
    ("functions in another order", |plan| {
        let segments = plan.pointer_mut("/deployment/segments").and_then(Value::as_array_mut).into_iter().flatten();
        let mut functions = segments.filter_map(|segment| segment["functions"].as_array_mut());
        functions.find(|all| all.len() > 1).is_some_and(|all| {
            all.reverse();
            true
        })
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
        let other = if plan["deployment"]["segments"][0]["device"] == "server" { "smart_nic" } else { "server" };
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
    ("a hop on another device", |plan| put(plan, "/deployment/paths/0/hops/0/on", json!("other"))),
    ("a hop by another link", |plan| put(plan, "/deployment/paths/0/hops/0/link", json!("other"))),
    ("a hop in another segment", |plan| put(plan, "/deployment/paths/0/hops/0/segment", json!("other"))),
    ("a class that enters nowhere", |plan| {
        let entrances = plan.pointer_mut("/deployment/entrances").and_then(Value::as_array_mut);
        entrances.and_then(Vec::pop).is_some()
    }),
    ("classes in another order", |plan| {
        let entrances = plan.pointer_mut("/deployment/entrances").and_then(Value::as_array_mut);
        entrances.is_some_and(|entrances| {
            entrances.reverse();
            // Sides have orders of their own.
            let forward = entrances.iter().filter(|entrance| entrance["direction"] == "forward").count();
            forward.max(entrances.len() - forward) > 1
        })
    }),
    ("a class that is another", |plan| put(plan, "/deployment/entrances/0/filter", json!("udp port 53"))),
    ("an address that no function uses", |plan| {
        let first = plan.pointer_mut("/deployment/entrances/0");
        first.is_some_and(|first| {
            first["sources"] = json!(["10.0.0.0/8"]);
            true
        })
    }),
    ("an address that a function uses, left out", |plan| {
        let entrances = plan.pointer_mut("/deployment/entrances").and_then(Value::as_array_mut);
        entrances.is_some_and(|entrances| {
            let there = entrances.len();
            entrances.retain(|entrance| entrance.get("destinations").is_none());
            entrances.len() < there
        })
    }),
    ("another address than the one that a function uses", |plan| {
        let entrances = plan.pointer_mut("/deployment/entrances").and_then(Value::as_array_mut);
        let entrance = entrances.and_then(|all| all.iter_mut().find(|one| one.get("destinations").is_some()));
        entrance.is_some_and(|entrance| {
            entrance["destinations"] = json!(["198.51.100.0/29"]);
            true
        })
    }),
    ("no paths at all", |plan| {
        put(plan, "/deployment/paths", json!([])) && put(plan, "/deployment/entrances", json!([]))
    }),
    ("a number more that a path had", |plan| {
        let last = plan["deployment"]["spi"].as_u64().unwrap_or_default();
        put(plan, "/deployment/spi", json!(last + 1))
    }),
    ("the last number of a path", |plan| put(plan, "/deployment/spi", json!(4_294_967_295_u32))),
    ("the last epoch", |plan| put(plan, "/deployment/epoch", json!(u64::MAX))),
    ("a rule with another filter", |plan| {
        condition(plan, "filter", |filter| {
            *filter = json!("udp port 53");
            true
        })
    }),
    ("a rule with another part of the flows", |plan| {
        condition(plan, "split", |split| {
            split["to"] = json!(split["to"].as_f64().map(f64::next_down));
            true
        })
    }),
    ("a rule with another branch's hash", |plan| {
        condition(plan, "split", |split| {
            split["branch"] = json!(77);
            true
        })
    }),
    ("a rule for all values but these", |plan| {
        condition(plan, "attribute", |tag| {
            tag["negated"] = json!(tag["negated"] == false);
            true
        })
    }),
    ("a rule for other values that read the same", |plan| {
        condition(plan, "attribute", |tag| {
            let values: Vec<&str> = tag["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let several = values.len() > 1;
            tag["values"] = json!([values.join("|")]);
            several
        })
    }),
    ("a rule without its conditions", |plan| {
        rules(plan).any(|rule| rule.as_object_mut().is_some_and(|rule| rule.remove("when").is_some()))
    }),
    ("a rule of no function", |plan| put(plan, "/deployment/paths/0/rules/1/from", json!("c0/nobody"))),
    ("something learnt that shows", |plan| {
        let first = plan.pointer_mut("/deployment/entrances/0");
        first.is_some_and(|first| {
            first["learnt"] = json!({ "behind": ["c0/acl"] });
            true
        })
    }),
    ("an instance of another's name", |plan| {
        let name = plan["deployment"]["instances"][1]["name"].clone();
        name.is_string() && {
            let first = plan["deployment"]["instances"][0]["name"].take();
            plan["deployment"]["instances"][1]["name"] = first;
            put(plan, "/deployment/instances/0/name", name)
        }
    }),
    ("a delta that nobody asked for", |plan| {
        let from = json!({ "from": "0123456789abcdef", "epoch": 1, "steps": [{ "do": "stop", "instance": "x" }] });
        plan["delta"] = from;
        plan["deployment"].is_object()
    }),
    ("something that plans do not have", |plan| {
        plan["deployment"]["colour"] = json!("blue");
        true
    }),
    ("another configuration", |plan| put(plan, "/deployment/segments/0/told", json!("00"))),
];

/// Conditions that drawn chains have not.
const CONDITIONS: &str = "class web = \"tcp\"\n\
    chain a for web { in -> [ 25%: Monitor(), 25%: ACL(rules = 1), else: ] -> Encrypt() -> out }\n\
    chain b { in -> LB(servers = 3) -> [ backend == [1, 2]: Monitor(), else: ] -> Encrypt() -> out }\n";

/// The rules of all paths.
fn rules(plan: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = plan.pointer_mut("/deployment/paths").and_then(Value::as_array_mut);
    paths.into_iter().flatten().flat_map(|path| path["rules"].as_array_mut().into_iter().flatten())
}

/// Change the first condition of this kind that can be changed so.
fn condition(plan: &mut Value, kind: &str, change: fn(&mut Value) -> bool) -> bool {
    rules(plan).any(|rule| {
        let all = rule.get_mut("when").and_then(Value::as_array_mut).into_iter().flatten();
        all.filter_map(|condition| condition.get_mut(kind)).any(change)
    })
}

#[test]
fn every_lie_about_what_runs_is_found() {
    let mut told = [0; LIES.len()];
    let plans = (0..60).map(|seed| {
        let (problem, rack) = drawn(seed);
        explained(&problem, &rack, &place(&problem, Strategy::Lemur, &*for_problem(&problem)))
    });
    let wholes = (0..20).map(|seed| whole_tests::drawn(seed).planned(false));
    let joined = super::devices_tests::all(super::devices_tests::FILE).chain(super::devices_tests::all(CONDITIONS));
    for (number, plan) in plans.chain(wholes).chain(joined).filter(|plan| plan.placement.is_some()).enumerate() {
        let honest = serde_json::to_value(&plan).expect("JSON");
        for (told, (name, tell)) in told.iter_mut().zip(LIES) {
            let mut lying = honest.clone();
            if !tell(&mut lying) || lying == honest {
                continue;
            }
            let read = Plan::from_json(&lying.to_string());
            let why = read.err().unwrap_or_else(|| panic!("plan {number}: nobody finds out: {name}"));
            let is_told =
                why.starts_with("the plan says what is not so:\n  de") || why.contains("is not known; expected");
            assert!(is_told, "{name}: {why}");
            *told += 1;
        }
    }
    let never: Vec<&str> = LIES.iter().zip(told).filter(|(_, told)| *told == 0).map(|(lie, _)| lie.0).collect();
    assert!(never.is_empty(), "never told: {never:?}; {told:?}");
}

/// What a delta says shows in the deployment that it leads to.
#[test]
fn a_delta_that_does_not_lead_to_the_plan_is_refused() {
    let mut refused = 0;
    for seed in 0..40 {
        let (problem, rack) = drawn(seed);
        let switch = for_problem(&problem);
        let [first, second] = [Strategy::Lemur, Strategy::SwPreferred].map(|s| place(&problem, s, &*switch));
        let Some(old) = explained(&problem, &rack, &first).deployment else { continue };
        let plan = explained(&problem, &rack, &second).deployed(Before::Runs(&old), None);
        let Some(delta) = plan.delta.clone().filter(|delta| !delta.is_empty()) else { continue };
        let read = |delta: Option<Delta>| {
            Plan::from_json(&serde_json::to_string(&Plan { delta, ..plan.clone() }).expect("JSON"))
        };
        assert!(read(Some(delta.clone())).is_ok());
        assert!(read(None).is_err(), "it follows another, and says nothing of the way");
        for n in 0..delta.steps.len() {
            let mut other = delta.clone();
            match &mut other.steps[n] {
                Step::Start { core, .. } => *core = Some(77),
                Step::Stop { instance } => {
                    let stays = plan.deployment.as_ref().and_then(|new| new.instances.first()).expect("some run");
                    instance.clone_from(&stays.name);
                }
                Step::Equip { on, .. } => *on = "nobody".to_owned(),
                Step::Move(one) => one.to = "nobody".to_owned(),
                Step::Give { functions, .. } => functions.clear(),
                Step::End { functions, .. } => {
                    let planned = plan.deployment.as_ref().and_then(|new| new.segments.first()).expect("some run");
                    functions.clone_from(&planned.functions);
                }
                Step::Install { .. } | Step::Enter { .. } | Step::Remove { .. } => continue,
            }
            let step = delta.steps[n].to_string();
            let why = read(Some(other)).err().unwrap_or_else(|| panic!("seed {seed}: {step} was changed"));
            assert!(why.contains(&format!("delta.steps[{n}]")), "{step}: {why}");
            refused += 1;
        }
    }
    assert!(refused > 40, "{refused}");
}

/// Another planner for the same policy on the same rack: what has to be done lies between.
#[test]
fn from_each_plan_to_the_next_there_is_a_way() {
    let (mut ways, mut kept) = (0, 0);
    let seeds = std::env::var("CATENA_PLAN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    for seed in 0..seeds {
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
