//! Lies planted in real plans, one at a time, as somebody would write them into a plan's file: each is found.

use serde_json::{Value, json};

use super::devices_tests;
use super::tests::{drawn, explained};
use super::whole_tests::two;
use crate::plan::Plan;
use catena_plan_lemur::{Strategy, place};
use catena_plan_model::random::Random;
use catena_plan_model::switch::for_problem;

/// A lie: its name, and what makes a plan tell it; false: this plan gives no occasion to.
type Lie = (&'static str, fn(&mut Value) -> bool);

/// Change the value at `pointer`; false: there is none.
fn change(plan: &mut Value, pointer: &str, change: impl FnOnce(&mut Value)) -> bool {
    plan.pointer_mut(pointer).map(change).is_some()
}

/// Multiply the number at `pointer`; false: there is none, or it is 0.
fn times(plan: &mut Value, pointer: &str, factor: f64) -> bool {
    let Some(number) = plan.pointer(pointer).and_then(Value::as_f64).filter(|number| *number > 1e-3) else {
        return false;
    };
    change(plan, pointer, |value| *value = json!(number * factor))
}

/// The first index below `most` for which `which` is true of the value at `list`.
fn first(plan: &Value, list: &str, which: impl Fn(&Value) -> bool) -> Option<usize> {
    plan.pointer(list)?.as_array()?.iter().position(which)
}

/// A subgroup on a server that has a chain's functions to do and may have no second core.
fn single(plan: &Value) -> Option<(usize, usize)> {
    let servers = plan["servers"].as_array()?.len();
    (0..servers).find_map(|s| {
        let group = first(plan, &format!("/servers/{s}/subgroups"), |g| g["replicable"] == false && g["cores"] == 1.0)?;
        Some((s, group))
    })
}

/// The placement's subgroup that a plan lists as the `group`th of server `s`.
fn placed(plan: &Value, s: usize, group: usize) -> Option<usize> {
    let all = plan["placement"]["subgroups"].as_array()?;
    (0..all.len()).filter(|index| all[*index]["server"] == s).nth(group)
}

/// All workers of a plan.
fn workers(plan: &mut Value) -> impl Iterator<Item = &mut Value> {
    let servers = plan["servers"].as_array_mut().expect("servers").iter_mut();
    servers.flat_map(|server| server["workers"].as_array_mut().expect("workers"))
}

/// Change the first limit in a worker's tree; false: there is none.
fn limit(plan: &mut Value, change: fn(&mut Value)) -> bool {
    let leaves = workers(plan).filter_map(|worker| worker.get_mut("tree")).flat_map(|tree| match tree.get("fair") {
        Some(_) => tree["fair"].as_array_mut().expect("children").iter_mut().map(|child| &mut child[1]).collect(),
        None => vec![tree],
    });
    let mut limits = leaves.filter(|leaf| leaf["limit"].is_object());
    limits.next().map(change).is_some()
}

/// Change this of the first reason that has it; false: none has.
fn reason(plan: &mut Value, key: &str, change: fn(&Value) -> Value) -> bool {
    let chains = plan["chains"].as_array_mut().expect("chains").iter_mut();
    let mut functions = chains.flat_map(|chain| chain["functions"].as_array_mut().expect("functions"));
    let why = functions.find(|function| function["why"].get(key).is_some()).map(|function| &mut function["why"]);
    why.is_some_and(|why| {
        why[key] = change(&why[key]);
        true
    })
}

const LIES: [Lie; 50] = [
    ("by hand: another rack's name", |plan| change(plan, "/rack", |name| *name = json!("another"))),
    ("by hand: a change to rack or chains that nobody asked for", |plan| {
        plan["what_if"] = json!(["cores s = 9"]);
        true
    }),
    ("by hand: figures that are a paper's, or not", |plan| {
        change(plan, "/chains/0/functions/0/borrowed", |is| *is = json!(*is != json!(true)))
    }),
    ("a reason that is none", |plan| {
        let guarded = plan["chains"][0]["functions"][0]["why"]["kind"] == "guarded";
        let other = if guarded { "no_switch" } else { "guarded" };
        change(plan, "/chains/0/functions/0/why", |why| *why = json!({ "kind": other }))
    }),
    ("a rate raised", |plan| times(plan, "/chains/0/rate_bps", 1.01)),
    ("a rate raised everywhere", |plan| {
        // With more than any link carries, whoever is asked.
        times(plan, "/chains/0/rate_bps", 100.0)
            && times(plan, "/chains/0/slack_bps", 100.0)
            && times(plan, "/placement/rates_bps/0", 100.0)
    }),
    ("a core taken twice", |plan| {
        let Some(s) = first(plan, "/servers", |s| s["workers"].as_array().is_some_and(|w| w.len() > 1)) else {
            return false;
        };
        let core = plan["servers"][s]["workers"][0]["core"].clone();
        change(plan, &format!("/servers/{s}/workers/1/core"), |value| *value = core)
    }),
    ("a core given that is for steering", |plan| {
        let Some(s) = first(plan, "/servers", |s| s["steering"][0].is_u64() && s["workers"][0].is_object()) else {
            return false;
        };
        let core = plan["servers"][s]["steering"][0].clone();
        change(plan, &format!("/servers/{s}/workers/0/core"), |value| *value = core)
    }),
    ("more cores than a server has", |plan| change(plan, "/placement/subgroups/0/cores", |cores| *cores = json!(64.0))),
    ("a hop over a link that is not there", |plan| {
        change(plan, "/placement/subgroups/0/link", |link| *link = json!({ "nic": 9 }))
    }),
    ("a link's name that is not there", |plan| {
        let Some(s) = first(plan, "/servers", |s| s["subgroups"][0].is_object()) else { return false };
        change(plan, &format!("/servers/{s}/subgroups/0/link"), |link| *link = json!("s0.eth7"))
    }),
    ("a link that carries less than it does", |plan| {
        let Some(link) = first(plan, "/links", |l| l["used_bps"].as_f64().is_some_and(|bps| bps > 1e6)) else {
            return false;
        };
        times(plan, &format!("/links/{link}/used_bps"), 0.5)
    }),
    ("a function left out", |plan| {
        change(plan, "/chains/0/functions", |functions| {
            functions.as_array_mut().and_then(Vec::pop);
        })
    }),
    ("a function left out of its subgroup", |plan| {
        change(plan, "/placement/subgroups/0/nodes", |nodes| {
            nodes.as_array_mut().and_then(Vec::pop);
        })
    }),
    ("functions in another order", |plan| {
        let two = plan["chains"][0]["functions"].as_array().is_some_and(|functions| functions.len() > 1);
        two && change(plan, "/chains/0/functions", |functions| functions.as_array_mut().expect("a list").swap(0, 1))
    }),
    ("an edge turned round", |plan| {
        change(plan, "/chains/0/edges/0", |edge| {
            let from = edge["from"].clone();
            edge["from"] = std::mem::replace(&mut edge["to"], from);
        })
    }),
    ("a promise's rate lowered", |plan| times(plan, "/chains/0/t_min_bps", 0.5)),
    ("kept where a promise is not", |plan| {
        // Nothing is carried, and said to be.
        let promised = plan["chains"][0]["t_min_bps"].as_f64().is_some_and(|bps| bps > 1e6);
        promised && times(plan, "/placement/rates_bps/0", 1e-3) && times(plan, "/chains/0/rate_bps", 1e-3)
    }),
    ("a delay that is not kept", |plan| {
        let limited = plan["problem"]["chains"][0]["d_max_ns"].is_f64();
        limited && ["/problem/chains/0/d_max_ns", "/chains/0/d_max_ns"].iter().all(|at| times(plan, at, 1e-4))
    }),
    ("a batch that takes less than it does", |plan| times(plan, "/chains/0/batch_ns", 0.5)),
    ("a queue that is not there", |plan| change(plan, "/chains/0", |chain| chain["queue_ns"] = json!(1e6))),
    ("more than one core for what may have one", |plan| {
        let Some((s, group)) = single(plan) else { return false };
        let Some(index) = placed(plan, s, group) else { return false };
        change(plan, &format!("/placement/subgroups/{index}/cores"), |cores| *cores = json!(2.0))
            && change(plan, &format!("/servers/{s}/subgroups/{group}/cores"), |cores| *cores = json!(2.0))
    }),
    ("replicable, and it is not", |plan| {
        let Some((s, group)) = single(plan) else { return false };
        change(plan, &format!("/servers/{s}/subgroups/{group}/replicable"), |value| *value = json!(true))
    }),
    ("a switch that forwards more than it can", |plan| {
        let carries = plan["placement"]["rates_bps"][0].as_f64().is_some_and(|bps| bps > 1e6);
        carries && change(plan, "/problem/switch/capacity_bps", |bps| *bps = json!(1e3))
    }),
    ("a worker's limit of nothing", |plan| {
        limit(plan, |tree| {
            (tree["limit"]["rate"], tree["limit"]["burst"]) = (json!(1), json!(1));
        })
    }),
    ("a worker's limit of packets", |plan| limit(plan, |tree| tree["limit"]["unit"] = json!("packets"))),
    ("a worker's limit that saves up too much", |plan| limit(plan, |tree| tree["limit"]["burst"] = json!(1e15 as u64))),
    ("a worker without its limit", |plan| limit(plan, |tree| *tree = tree["limit"]["child"].clone())),
    ("a worker's other weights", |plan| {
        let mut trees = workers(plan).filter_map(|worker| worker.pointer_mut("/tree/fair")?.as_array_mut());
        trees.find(|children| children.len() > 1).is_some_and(|children| {
            children[0][0] = json!(children[0][0].as_u64().unwrap_or(0) / 2 + 60_000);
            true
        })
    }),
    ("nothing keeps a chain from more", |plan| {
        let c = first(plan, "/chains", |chain| {
            let kinds = chain["bounds"].as_array().expect("bounds").iter();
            // What is nearly full may be left out.
            kinds.filter(|bound| ["t_max", "cores"].iter().any(|kind| bound["kind"] == *kind)).count() > 0
                && chain["t_max_bps"] == chain["rate_bps"]
        });
        c.is_some_and(|c| change(plan, &format!("/chains/{c}/bounds"), |bounds| *bounds = json!([])))
    }),
    ("what keeps a chain from more, twice", |plan| {
        change(plan, "/chains/0/bounds", |bounds| {
            let all = bounds.as_array_mut().expect("bounds");
            all.extend(all.first().cloned());
        }) && plan["chains"][0]["bounds"][0].is_object()
    }),
    ("a function that may have one core, and is not there", |plan| {
        let single = |bound: &Value| bound["limit"]["single"].is_string();
        let c = first(plan, "/chains", |chain| chain["bounds"].as_array().expect("bounds").iter().any(single));
        c.is_some_and(|c| {
            let mut all = plan["chains"][c]["bounds"].as_array_mut().expect("bounds").iter_mut();
            all.find(|bound| single(bound)).map(|bound| bound["limit"]["single"] = json!("nobody")).is_some()
        })
    }),
    ("beside nobody", |plan| reason(plan, "beside", |_| json!(["nobody"]))),
    ("fewer visits than there are", |plan| reason(plan, "now", |now| json!(now.as_f64().unwrap_or(0.0) / 2.0))),
    ("more visits than there would be", |plan| reason(plan, "then", |then| json!(then.as_f64().unwrap_or(0.0) * 2.0))),
    ("steering cores that are not there", |plan| change(plan, "/servers/0/steering", |cores| *cores = json!([17, 99]))),
    ("a steering core twice", |plan| change(plan, "/servers/0/steering", |cores| *cores = json!([1, 1]))),
    ("by hand: far more steering cores", |plan| {
        change(plan, "/servers/0/steering", |cores| *cores = json!((0..40).collect::<Vec<u32>>()))
    }),
    ("by hand: another part of the promises", |plan| {
        plan["held"] = json!(0.25);
        true
    }),
    ("a switch of another kind", |plan| change(plan, "/switch/kind", |kind| *kind = json!("programmable, 99 stages"))),
    ("an unknown server", |plan| {
        let Some(f) = first(plan, "/chains/0/functions", |f| f["device"] == "server") else { return false };
        change(plan, &format!("/chains/0/functions/{f}/on"), |on| *on = json!("nowhere"))
    }),
    ("a server that is not there", |plan| {
        let Some(n) = first(plan, "/placement/sites/0", |site| site["server"].is_u64()) else { return false };
        change(plan, &format!("/placement/sites/0/{n}"), |site| *site = json!({ "server": 9 }))
    }),
    ("a ratio broken", |plan| {
        // By its text: what a planner would compute with is as it was.
        let ratio = plan["problem"]["relations"][0]["ratio"]["text"].as_str().map(str::to_owned);
        let carried = (0..2).all(|c| plan["chains"][c]["slack_bps"].as_f64().is_some_and(|bps| bps > 1e6));
        // Neither is so near to what it may have that another ratio would leave it there.
        let free = (0..2).all(|m| {
            let cap = plan["problem"]["relations"][0]["ratio"]["members"][m]["cap_bps"].as_f64();
            let rate = plan["chains"][m]["rate_bps"].as_f64();
            rate.zip(cap).is_some_and(|(rate, cap)| rate < 0.9 * cap)
        });
        let Some(text) = ratio.filter(|_| carried && free) else { return false };
        let text = text.split('=').next().unwrap_or_default().to_owned() + "= 1 : 17";
        change(plan, "/problem/relations/0/ratio/text", |value| *value = json!(text))
    }),
    ("a limit that lets a chain have less than its part", |plan| {
        // What the chain carries, as if it could have no more.
        let ratio = &plan["problem"]["relations"][0]["ratio"];
        let Some(chain) = ratio["members"][1]["chain"].as_u64() else { return false };
        let rate = plan["placement"]["rates_bps"][chain as usize].as_f64().unwrap_or(0.0);
        let limit = ratio["members"][1]["cap_bps"].as_f64().unwrap_or(f64::INFINITY);
        rate < 0.9 * limit && change(plan, "/problem/relations/0/ratio/members/1", |m| m["cap_bps"] = json!(rate))
    }),
    ("a fair division proven where chains come first", |plan| {
        let first = plan["problem"]["relations"][0]["priority"].is_object() && plan["objective"] == "fair";
        first && change(plan, "/verdict/kept", |kept| kept["bound_bps"] = kept["marginal_bps"].clone())
    }),
    ("proven, and there is more", |plan| {
        change(plan, "/verdict/kept", |kept| {
            kept["bound_bps"] = json!(kept["marginal_bps"].as_f64().unwrap_or(0.0) / 2.0 - 1e9);
        })
    }),
    ("by hand: another bound", |plan| {
        // Heuristics prove nothing.
        change(plan, "/verdict/kept", |kept| kept["bound_bps"] = kept["marginal_bps"].clone())
    }),
    ("by hand: larger sockets", |plan| {
        times(plan, "/servers/0/cores_per_socket", 4.0)
            .then(|| {
                let cores = plan["servers"][0]["cores_per_socket"].as_f64().unwrap_or(0.0);
                plan["servers"][0]["cores_per_socket"] = json!(cores as u64);
            })
            .is_some()
    }),
    ("by hand: what a function costs", |plan| {
        times(plan, "/problem/chains/0/nodes/0/per_batch", 0.9) || times(plan, "/problem/overheads/spread", 0.9)
    }),
    ("by hand: what a queue costs", |plan| change(plan, "/problem/overheads/queue", |cycles| *cycles = json!(77.0))),
];

#[test]
fn every_planted_lie_is_found() {
    let mut told = [0; LIES.len()];
    for seed in 0..90 {
        let (problem, rack) = drawn(seed);
        let outcome = place(&problem, Strategy::Lemur, &*for_problem(&problem));
        if outcome.placement().is_none_or(|placement| placement.subgroups.is_empty()) {
            continue;
        }
        let plan = explained(&problem, &rack, &outcome);
        let honest = serde_json::to_value(&plan).expect("JSON");
        Plan::from_json(&honest.to_string()).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for (told, (name, tell)) in told.iter_mut().zip(LIES) {
            let mut lying = honest.clone();
            // Everything else is found without digests.
            if !name.starts_with("by hand: ") {
                lying.as_object_mut().expect("a plan").remove("digests");
            }
            if !tell(&mut lying) {
                continue;
            }
            let Err(why) = Plan::without_digests(&lying.to_string()) else {
                panic!("seed {seed}: nobody finds out: {name}");
            };
            assert!(why.starts_with("the plan says what is not so:\n  "), "{name}: {why}");
            *told += 1;
        }
    }
    let never: Vec<&str> = LIES.iter().zip(told).filter(|(_, told)| *told == 0).map(|(lie, _)| lie.0).collect();
    assert!(never.is_empty(), "never told: {never:?}; {told:?}");
}

/// Put something else in place of one value, wherever it is.
fn scramble(value: &mut Value, random: &mut Random) {
    let count = match value {
        Value::Array(values) => values.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    if count > 0 && random.below(12) > 0 {
        let inner = match value {
            Value::Array(values) => values.get_mut(random.below(count)),
            Value::Object(fields) => fields.values_mut().nth(random.below(count)),
            _ => None,
        };
        return inner.into_iter().for_each(|inner| scramble(inner, random));
    }
    let others = [json!(0), json!(-1.5), json!(1), json!(7), json!(4_000_000_000_u32), json!(1e300), json!("x")];
    *value = others[random.below(others.len())].clone();
}

#[test]
fn whatever_a_file_says_reading_ends() {
    let mut random = Random::new(7);
    let mut refused = 0;
    for seed in 0..20 {
        let (problem, rack) = drawn(seed);
        let outcome = place(&problem, Strategy::Lemur, &*for_problem(&problem));
        let honest = serde_json::to_value(explained(&problem, &rack, &outcome)).expect("JSON");
        for _ in 0..150 {
            let mut plan = honest.clone();
            scramble(&mut plan, &mut random);
            if Plan::from_json(&plan.to_string()).is_err() {
                refused += 1;
            }
        }
    }
    assert!(refused > 1_500, "{refused} of 3,000");
}

#[test]
fn a_plan_without_digests_or_with_a_chain_twice_is_refused() {
    let (problem, rack) = drawn(1);
    let outcome = place(&problem, Strategy::Lemur, &*for_problem(&problem));
    let honest = serde_json::to_value(explained(&problem, &rack, &outcome)).expect("JSON");
    let mut without = honest.clone();
    without.as_object_mut().expect("a plan").remove("digests");
    assert!(Plan::from_json(&without.to_string()).is_err_and(|why| why.starts_with("the plan has no digests")));
    let mut twice = honest;
    let chains = twice["chains"].as_array_mut().expect("chains");
    let first = chains.first().cloned().expect("a chain");
    chains.push(first);
    assert!(Plan::from_json(&twice.to_string()).is_err_and(|why| why.contains("chains: entries")));
}

#[test]
fn what_was_changed_by_hand_is_named() {
    let (problem, rack) = drawn(1);
    let outcome = place(&problem, Strategy::Lemur, &*for_problem(&problem));
    let honest = serde_json::to_value(explained(&problem, &rack, &outcome)).expect("JSON");
    let told = |pointer: &str, to: Value| {
        let mut lying = honest.clone();
        change(&mut lying, pointer, |value| *value = to);
        Plan::from_json(&lying.to_string()).expect_err("it was changed")
    };
    let why = ": this is not what the plan was made with: it was changed afterwards, as its digest tells";
    let said = |place: &str| format!("the plan says what is not so:\n  {place}{why}");
    assert_eq!(told("/problem/overheads/visit", json!(1.0)), said("problem"));
    assert_eq!(told("/servers/0/cores_per_socket", json!(1000)), said("servers: cores_per_socket"));
}

#[test]
fn a_lie_is_refused_with_its_place() {
    let (problem, rack) = (0..).map(drawn).find(|(problem, _)| problem.chains.len() == 2).expect("there are some");
    let outcome = place(&problem, Strategy::Lemur, &*for_problem(&problem));
    let plan = serde_json::to_value(explained(&problem, &rack, &outcome)).expect("JSON");
    let mut lying = plan;
    lying["chains"][1]["name"] = json!("other");
    let why = Plan::from_json(&lying.to_string()).expect_err("there is no such chain");
    assert!(why.contains("chains[1].name: the plan says \"other\", it is \"c1\""), "{why}");
}

#[test]
fn figures_of_about_one_core_are_those_of_one_or_of_several() {
    let plan = two(["promise 1Gbps..", "promise 1Gbps.."], "throughput x : y = 1 : 1");
    let mut honest = serde_json::to_value(&plan).expect("JSON");
    // As solvers leave it where two chains share two cores.
    for cores in ["/placement/subgroups/0/cores", "/servers/0/subgroups/0/cores", "/chains/0/bounds/1/cores"] {
        assert!(change(&mut honest, cores, |cores| *cores = json!(0.999_999_999_999_999_8)));
    }
    Plan::from_json(&honest.to_string()).expect("it is as true as before");
    for (figure, factor) in [("cycles", 0.01), ("cycles", 1.1), ("capacity_bps", 3.0), ("load", 7.0)] {
        let mut lying = honest.clone();
        assert!(times(&mut lying, &format!("/servers/0/subgroups/0/{figure}"), factor));
        let why = Plan::from_json(&lying.to_string()).expect_err(figure);
        assert!(why.contains(&format!("servers[0].subgroups[0].{figure}: ")), "{why}");
    }
}

/// Put something beside the fields of every object, one at a time, and `read` the whole.
fn beside_each(plan: &Value, at: &str, read: &mut impl FnMut(&str, Value)) {
    let whole = plan;
    let Some(here) = whole.pointer(at) else { return };
    let inner: Vec<String> = match here {
        Value::Array(values) => (0..values.len()).map(|n| n.to_string()).collect(),
        Value::Object(fields) => fields.keys().cloned().collect(),
        _ => return,
    };
    // Of a word alone, as of why a function is where it is, serde does not look at what is beside it.
    let is_word = here.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("kind"));
    if here.is_object() && !is_word {
        let mut more = whole.clone();
        change(&mut more, at, |object| object["t_maxx"] = json!(1));
        read(at, more);
    }
    inner.iter().for_each(|key| beside_each(whole, &format!("{at}/{key}"), read));
}

#[test]
fn what_plans_do_not_have_is_refused_wherever_it_is() {
    let (mut objects, mut unseen) = (0, Vec::new());
    let whole = two(["promise 1Gbps..", "promise ..1Gbps"], "");
    for plan in devices_tests::all(devices_tests::FILE).chain([whole]) {
        let honest = serde_json::to_value(&plan).expect("JSON");
        beside_each(&honest, "", &mut |at, more| {
            objects += 1;
            if serde_json::from_value::<Plan>(more).is_ok() {
                unseen.push(at.to_owned());
            }
        });
    }
    assert!(objects > 200 && unseen.is_empty(), "{objects} objects; nobody sees what is put beside {unseen:?}");
}

#[test]
fn what_every_plan_has_is_not_left_out() {
    for plan in devices_tests::all(devices_tests::FILE) {
        let honest = serde_json::to_value(&plan).expect("JSON");
        let devices = honest["deployment"]["devices"].as_array().expect("devices");
        let servers = (0..devices.len()).filter(|n| devices[*n]["device"] == "server");
        let schedules = servers.map(|n| (format!("/deployment/devices/{n}"), "schedule"));
        for (at, key) in schedules.chain([("/digests".to_owned(), "steering")]) {
            let mut lying = honest.clone();
            assert!(change(&mut lying, &at, |object| drop(object.as_object_mut().expect("an object").remove(key))));
            assert!(lying != honest && Plan::from_json(&lying.to_string()).is_err(), "nobody misses {key}");
        }
        for (n, device) in devices.iter().enumerate() {
            for t in 0..device["tables"].as_array().map_or(0, Vec::len) {
                let mut lying = honest.clone();
                change(&mut lying, &format!("/deployment/devices/{n}/tables/{t}/functions"), |functions| {
                    let all = functions.as_array_mut().expect("a list");
                    all.extend(all.first().cloned());
                });
                assert!(Plan::from_json(&lying.to_string()).is_err(), "nobody sees a function twice in table {t}");
            }
        }
    }
}
