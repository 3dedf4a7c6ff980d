//! Drawn chain files on drawn servers without a switch, planned on to the tasks of their workers: what the plans say of those
//! is so, keeps to what chains may have, and every lie about it is found.

use std::collections::BTreeMap;

use catena_policy::{Library, NoFiles, PolicyGraph};
use serde_json::{Value, json};

use crate::deployment::{Before, Ways};
use crate::explain::Case;
use crate::plan::{Plan, Verdict};
use catena_plan_alpine::{Objective as Tasks, SchedulerTree};
use catena_plan_lemur::exact::{self, Settings};
use catena_plan_lemur::{Strategy, place};
use catena_plan_model::demand::{self, Options};
use catena_plan_model::paper::{self, Forwarding};
use catena_plan_model::problem::{Objective, Problem, Replication};
use catena_plan_model::profile::{Overheads, Profile};
use catena_plan_model::rack::{self, Rack};
use catena_plan_model::random::Random;
use catena_plan_model::switch::for_problem;

/// Functions of the paper that servers run, cheap and dear ones.
const FUNCTIONS: [&str; 5] = ["ACL()", "Monitor", "BPF", "LB", "Encrypt"];

/// One to four chains, each for a class or two, some with promises, some related.
fn file(random: &mut Random) -> String {
    let mut text = String::new();
    let count = 1 + random.below(4);
    let several = random.below(4) == 0;
    // Drawn apart, so that what goes forward stays as it was.
    let mut back = Random::new(random.clone().number());
    for chain in 0..count {
        for class in 0..1 + usize::from(several) {
            text += &format!("class k{chain}{class} = \"src net 10.{chain}.{}.0/24\"\n", class);
        }
    }
    for chain in 0..count {
        let classes = if several { format!("k{chain}0, k{chain}1") } else { format!("k{chain}0") };
        let promise = match random.below(5) {
            0 => format!("promise {}Mbps.. ", 1 + random.below(900)),
            1 => format!("promise ..{}Mbps ", 1 + random.below(3_000)),
            2 => format!("promise {}Mbps..{}Mbps ", 1 + random.below(200), 300 + random.below(3_000)),
            _ => String::new(),
        };
        let mut functions: Vec<String> =
            (0..1 + random.below(3)).map(|_| FUNCTIONS[random.below(FUNCTIONS.len())].to_owned()).collect();
        if random.below(4) == 0 {
            functions.push("[ \"udp\": Monitor, else: LB ]".to_owned());
        }
        if random.below(4) == 0 {
            // An arm without functions: what stands behind is entered by two ways.
            functions
                .insert(random.below(functions.len() + 1), "[ \"udp\" ~ 30%: Monitor, else: ] -> ACL()".to_owned());
        }
        if random.below(6) == 0 {
            // Where a chain begins, inside it, or both.
            functions.insert(random.below(functions.len() + 1), "[ \"tcp\": Monitor, else: drop ]".to_owned());
        }
        let end = if random.below(8) == 0 { "drop" } else { "out" };
        // What returns meets functions that nothing else meets, always or in part.
        let back = match back.below(6) {
            0 => "\n  out -> Monitor -> in",
            1 => "\n  out -> [ \"tcp\" ~ 60%: LB -> Encrypt, \"udp\": drop, else: ACL() ] -> in",
            _ => "",
        };
        text +=
            &format!("chain c{chain} for {classes} {{ {promise}in -> {} -> {end}{back}\n}}\n", functions.join(" -> "));
    }
    if count > 1 {
        let weight = |random: &mut Random| 1 + random.below(20);
        let (a, b) = (weight(random), weight(random));
        match random.below(6) {
            0 => text += &format!("cpu c0 : c1 = {a} : {b}\n"),
            1 => text += &format!("throughput c0 : c1 = {a} : {b}\n"),
            2 => text += &format!("share c0 : c1 = {a} : {b}\n"),
            3 => text += "priority c0 > c1\n",
            _ => {}
        }
    }
    if several && random.below(2) == 0 {
        text += ["cpu k00 : k01 = 1 : 3\n", "throughput k00 : k01 = 2 : 1\n", "priority k00 > k01\n"][random.below(3)];
    }
    text
}

fn server(random: &mut Random) -> Rack {
    let nics = ["\"1Gbps\"", "\"40Gbps\"", "\"2Gbps\", \"10Gbps\""][random.below(3)];
    let text = format!(
        "name = \"one\"\npacket_bytes = 512\n[[server]]\nname = \"s\"\ncores = {}\nsteering_cores = 0\nshared = true\n\
         clock = \"2GHz\"\nnics = [{nics}]\n",
        1 + random.below(4)
    );
    rack::parse(&text, &[]).rack.expect("a rack")
}

pub(super) struct Drawn {
    pub(super) file: String,
    policy: PolicyGraph,
    rack: Rack,
    problem: Problem,
    tasks: Tasks,
}

pub(super) fn drawn(seed: u64) -> Drawn {
    let mut random = Random::new(seed);
    let file = file(&mut random);
    let rack = server(&mut random);
    let objective = [Objective::Marginal, Objective::Fair][random.below(2)];
    let tasks = if random.below(4) == 0 { Tasks::MostPackets } else { Tasks::FewestTasks };
    of(file, rack, objective, tasks)
}

fn of(file: String, rack: Rack, objective: Objective, tasks: Tasks) -> Drawn {
    let outcome = catena_policy::load("t.catena", &file, &Library::default(), &NoFiles);
    let policy = outcome.graph.unwrap_or_else(|| panic!("{:?}\n{file}", outcome.diagnostics));
    let overheads =
        Overheads { visit: 60.0, queue: 20.0, classify: 15.0, step: 2.0, branch: 10.0, ..Overheads::default() };
    let profile = Profile { overheads, ..paper::profile() };
    let options = Options { replication: Replication::ByState, objective };
    let problem = demand::problem(&policy, &rack, &paper::catalogue(Forwarding::Anywhere), &profile, options);
    let problem = problem.unwrap_or_else(|unknown| panic!("{unknown:?}"));
    Drawn { file, policy, rack, problem, tasks }
}

impl Drawn {
    pub(super) fn planned(&self, exactly: bool) -> Plan {
        let switch = for_problem(&self.problem);
        let mut outcome = place(&self.problem, Strategy::Lemur, &*switch);
        if exactly {
            let settings = Settings { time: std::time::Duration::from_secs(2), ..Settings::default() };
            outcome = exact::plan(&self.problem, &*switch, outcome.placement(), &settings).outcome;
        }
        let sources = BTreeMap::new();
        let case = Case {
            problem: &self.problem,
            rack: &self.rack,
            switch: &*switch,
            sources: &sources,
            strategy: "any",
            runs: None,
        };
        let catalogue = paper::catalogue(Forwarding::Anywhere);
        let ways = Ways { policy: &self.policy, catalogue: &catalogue };
        Plan::of(&case, &outcome).scheduled(&self.policy, self.tasks).deployed(Before::Nothing(7), Some(ways))
    }
}

#[test]
fn tasks_are_what_plans_say() {
    let (mut tasks, mut kept, mut held) = (0, 0, 0);
    let seeds = std::env::var("CATENA_PLAN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    for seed in 0..seeds {
        let drawn = drawn(seed);
        for exactly in [false, true] {
            let plan = drawn.planned(exactly);
            let text = serde_json::to_string(&plan).expect("JSON");
            Plan::from_json(&text).unwrap_or_else(|why| panic!("seed {seed}, {exactly}: {why}\n{}", drawn.file));
            let Some(of) = &plan.servers[0].tasks else {
                let why = format!("{:?}", plan.verdict);
                // What is dropped where it enters its chain waits nowhere, so that nobody can hold it to a ratio.
                let dropped = why.contains("no partition keeps the promises") && drawn.file.contains("else: drop");
                let legal = dropped
                    || plan.placement.is_none()
                    || why.contains("its packets enter their chain at several functions")
                    || why.contains("share in a ratio, but one of them comes before");
                assert!(legal, "seed {seed}: {why}\n{}", drawn.file);
                continue;
            };
            tasks += 1;
            if plan.is_kept() {
                kept += 1;
            }
            for chain in &drawn.problem.chains {
                let own = |name: &str| name.split('/').next() == Some(&chain.name);
                let packets: f64 = of.classes.iter().filter(|class| own(&class.name)).map(|class| class.packets).sum();
                let bps = packets * chain.packet_bits();
                assert!(bps <= chain.limit_bps() * 1.001, "seed {seed}: {} has {bps}\n{}", chain.name, drawn.file);
                if chain.t_max_bps.is_finite() {
                    held += 1;
                }
            }
        }
    }
    assert!(tasks > seeds as usize && kept * 2 > tasks && held > 20, "{tasks} with tasks, {kept} kept, {held} held");
}

/// A case of this machine, whose chains are x and y.
pub(super) fn two(promises: [&str; 2], relation: &str) -> Plan {
    let file = format!(
        "class a = \"src net 10.1.0.0/16\"\nclass b = \"src net 10.2.0.0/16\"\n\
         chain x for a {{ {} in -> ACL() -> out }}\nchain y for b {{ {} in -> ACL() -> out }}\n{relation}\n",
        promises[0], promises[1]
    );
    on_two_cores(&file)
}

/// The plan of a file for this machine.
pub(super) fn on_two_cores(file: &str) -> Plan {
    let rack = "name = \"one\"\npacket_bytes = 512\n[[server]]\nname = \"s\"\ncores = 2\nsteering_cores = 0\nshared = true\n\
                clock = \"2.5GHz\"\nnics = [\"40Gbps\"]\n";
    let rack = rack::parse(rack, &[]).rack.expect("a rack");
    of(file.to_owned(), rack, Objective::Marginal, Tasks::FewestTasks).planned(true)
}

/// Where ways part and do not meet again, packets of one class leave at several places.
#[test]
fn each_class_is_said_once() {
    let file = "class a = \"src net 10.1.0.0/16\"\nclass b = \"src net 10.2.0.0/16\"\n\
        chain x for a { in -> ACL() -> [ \"tcp\": BPF(), else: Monitor() ] -> [ \"port 1\": ACL(), else: ] -> out }\n\
        chain y for b { promise 1Gbps.. in -> ACL() -> [ \"tcp\": drop, else: ] -> out }\nshare x : y = 1 : 2\n";
    let rack = "name = \"one\"\npacket_bytes = 512\n[[server]]\nname = \"s\"\ncores = 2\nsteering_cores = 0\nshared = true\n\
                clock = \"2.5GHz\"\nnics = [\"40Gbps\"]\n";
    let rack = rack::parse(rack, &[]).rack.expect("a rack");
    let plan = of(file.to_owned(), rack, Objective::Marginal, Tasks::FewestTasks).planned(true);
    let classes = &plan.servers[0].tasks.as_ref().expect("tasks").classes;
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["x", "y"]);
    // Said in two parts it is found, though they add up.
    let mut parted = serde_json::to_value(&plan).expect("JSON");
    let classes = parted["servers"][0]["tasks"]["classes"].as_array_mut().expect("classes");
    for figure in ["packets", "cpu"] {
        classes[0][figure] = (classes[0][figure].as_f64().expect("a figure") / 2.0).into();
    }
    let half = classes[0].clone();
    classes.push(half);
    let why = Plan::from_json(&parted.to_string()).expect_err("x is there twice");
    assert!(why.contains("tasks.classes: x comes twice"), "{why}");
}

/// Bits per second of a chain on workers that have more to do than they can.
fn gets(plan: &Plan, chain: &str) -> f64 {
    let tasks = plan.servers[0].tasks.as_ref().expect("tasks");
    tasks.classes.iter().filter(|class| class.name == chain).map(|class| class.packets * 4096.0).sum()
}

#[test]
fn who_has_all_it_may_have_leaves_its_part_of_a_ratio() {
    for relation in ["cpu x : y = 100 : 1", "throughput x : y = 100 : 1", ""] {
        let plan = two(["promise ..10Mbps", "promise 1Gbps.."], relation);
        assert!(plan.is_kept(), "{relation}: {:?}", plan.verdict);
        let (x, y) = (gets(&plan, "x"), gets(&plan, "y"));
        assert!((x / 1e7 - 1.0).abs() < 0.01 && y > 1e9, "{relation}: {x} and {y}");
    }
}

#[test]
fn a_promise_that_a_ratio_leaves_no_room_for_is_broken() {
    let plan = two(["promise 9Gbps..", "promise 1Gbps.."], "cpu x : y = 1 : 9");
    assert!(matches!(plan.verdict, Verdict::Broken { .. }), "{:?}", plan.verdict);
}

#[test]
fn priority_is_for_what_promises_leave() {
    let plan = two(["", "promise 3Gbps.."], "priority x > y");
    assert!(plan.is_kept() && gets(&plan, "y") > 2.97e9 && gets(&plan, "x") > 1e9, "{:?}", plan.verdict);
    let tree = &plan.servers[0].tasks.as_ref().expect("tasks").tree;
    // What is promised comes before all levels, and what is beyond it on its own.
    let SchedulerTree::Fair(both) = tree else { panic!("{tree:?}") };
    assert_eq!(both[0].1, SchedulerTree::Task(0), "reading goes on beside all levels");
    let SchedulerTree::Priority(levels) = &both[1].1 else { panic!("{tree:?}") };
    assert!(matches!(levels[0], SchedulerTree::Limit { rate: 1_500_000_000, .. }) && levels.len() == 3, "{tree:?}");
    let free = two(["", ""], "priority x > y");
    assert!(!format!("{:?}", free.servers[0].tasks).contains("Limit"), "nothing is promised");
}

/// A lie: its name, and what makes a plan tell it; false: this plan gives no occasion to.
type Lie = (&'static str, fn(&mut Value) -> bool);

fn tasks(plan: &mut Value) -> &mut Value {
    &mut plan["servers"][0]["tasks"]
}

fn times(value: &mut Value, factor: f64) -> bool {
    match value.as_f64().filter(|number| *number > 1e-3) {
        Some(number) => *value = json!(number * factor),
        None => return false,
    }
    true
}

/// Do something to the first object of the tree that has `key`.
fn within(tree: &mut Value, key: &str, act: &mut dyn FnMut(&mut Value) -> bool) -> bool {
    match tree {
        Value::Object(fields) => {
            if let Some(found) = fields.get_mut(key) {
                return act(found);
            }
            fields.values_mut().any(|value| within(value, key, act))
        }
        Value::Array(values) => values.iter_mut().any(|value| within(value, key, act)),
        _ => false,
    }
}

const LIES: [Lie; 27] = [
    ("another thing that was looked for", |plan| {
        let objective = &mut tasks(plan)["objective"];
        *objective = json!(if *objective == json!("most_packets") { "fewest_tasks" } else { "most_packets" });
        true
    }),
    ("the fewest tasks, which nobody has proven", |plan| {
        let minimal = &mut tasks(plan)["minimal"];
        *minimal = json!(*minimal != json!(true));
        true
    }),
    ("a weight of the tree", |plan| {
        within(&mut tasks(plan)["tree"], "fair", &mut |children| {
            let first = &mut children[0][0];
            *first = json!(first.as_u64().unwrap_or(0) * 2 + 5_000);
            true
        })
    }),
    ("weights in another order", |plan| {
        within(&mut tasks(plan)["tree"], "fair", &mut |children| {
            let (a, b) = (children[0][0].clone(), children[1][0].clone());
            let far = a.as_f64().unwrap_or(0.0) - b.as_f64().unwrap_or(0.0);
            (children[0][0], children[1][0]) = (b, a);
            far.abs() > 1_000.0
        })
    }),
    ("turns instead of weights", |plan| {
        within(&mut tasks(plan)["tree"], "fair", &mut |_| true) && {
            let tree = &mut tasks(plan)["tree"];
            let children = tree["fair"].as_array().cloned().unwrap_or_default();
            *tree = json!({ "round_robin": children.iter().map(|child| child[1].clone()).collect::<Vec<_>>() });
            !children.is_empty()
        }
    }),
    ("a priority that nobody has", |plan| {
        let free = plan["problem"]["relations"].as_array().is_none_or(Vec::is_empty) && plan["unseen"].is_null();
        let tree = &mut tasks(plan)["tree"];
        let children = tree["fair"].as_array().cloned().unwrap_or_default();
        *tree = json!({ "priority": children.iter().map(|child| child[1].clone()).collect::<Vec<_>>() });
        free && children.len() > 1
    }),
    ("a priority turned round", |plan| {
        within(&mut tasks(plan)["tree"], "priority", &mut |levels| {
            levels.as_array_mut().expect("levels").reverse();
            true
        })
    }),
    ("reading before everything", |plan| {
        let tree = &mut tasks(plan)["tree"];
        let levels = tree["fair"][1][1]["priority"].as_array().cloned().unwrap_or_default();
        *tree = json!({ "priority": std::iter::once(json!({ "task": 0 })).chain(levels.clone()).collect::<Vec<_>>() });
        !levels.is_empty()
    }),
    ("a priority left out", |plan| {
        let written =
            plan["problem"]["relations"].as_array().is_some_and(|all| all.iter().any(|r| !r["priority"].is_null()));
        let tree = &mut tasks(plan)["tree"];
        let levels = tree["fair"][1][1]["priority"].as_array().cloned().unwrap_or_default();
        if levels.is_empty() {
            return false;
        }
        tree["fair"][1][1] = json!({ "fair": levels.iter().map(|level| json!([1, level])).collect::<Vec<_>>() });
        written && levels.len() > 1
    }),
    ("a promise before another one", |plan| {
        let front = tasks(plan).pointer_mut("/tree/fair/1/1/priority/0/fair").and_then(Value::as_array_mut);
        // The first level may have limits, too, and other weights.
        let limited = |all: &&mut Vec<Value>| all.len() > 1 && all.iter().all(|child| child[1]["limit"].is_object());
        front.filter(limited).is_some_and(|all| {
            let equal = all[0][0] == 1 && all[1][0] == 1;
            all[0][0] = json!(60_000);
            equal
        })
    }),
    ("a limit raised", |plan| {
        within(&mut tasks(plan)["tree"], "limit", &mut |limit| {
            limit["rate"] = json!(limit["rate"].as_u64().unwrap_or(0) * 2 + 10);
            true
        })
    }),
    ("a limit lowered", |plan| {
        within(&mut tasks(plan)["tree"], "limit", &mut |limit| {
            let before = limit["rate"].as_u64().unwrap_or(0);
            limit["rate"] = json!(before / 2);
            before > 10
        })
    }),
    ("a burst raised", |plan| {
        within(&mut tasks(plan)["tree"], "limit", &mut |limit| {
            limit["burst"] = json!(limit["burst"].as_u64().unwrap_or(0) * 10 + 10);
            true
        })
    }),
    ("a limit left out", |plan| {
        fn without(tree: &mut Value) -> bool {
            if let Some(child) = tree.get("limit").map(|limit| limit["child"].clone()) {
                *tree = child;
                return true;
            }
            match tree {
                Value::Object(fields) => fields.values_mut().any(without),
                Value::Array(values) => values.iter_mut().any(without),
                _ => false,
            }
        }
        without(&mut tasks(plan)["tree"])
    }),
    ("a limit that nobody has", |plan| {
        let capped = plan["chains"].as_array().is_some_and(|all| all.iter().any(|c| !c["t_max_bps"].is_null()));
        let tree = tasks(plan)["tree"].clone();
        tasks(plan)["tree"] = json!({ "limit": { "unit": "bits", "rate": 1_000, "burst": 1, "child": tree } });
        !capped
    }),
    ("a task that is not scheduled", |plan| {
        within(&mut tasks(plan)["tree"], "fair", &mut |children| children.as_array_mut().and_then(Vec::pop).is_some())
    }),
    ("a task's weight", |plan| times(&mut tasks(plan)["tasks"][0]["weight"], 0.9)),
    ("a task's packets", |plan| times(&mut tasks(plan)["tasks"][0]["packets"], 1.5)),
    ("a task's cycles", |plan| times(&mut tasks(plan)["tasks"][0]["cycles"], 0.5)),
    ("a function of another chain", |plan| {
        let many = tasks(plan)["tasks"].as_array().is_some_and(|all| all.len() > 1);
        many && {
            let taken = json!("c0/nowhere");
            tasks(plan)["tasks"][1]["modules"].as_array_mut().expect("modules").push(taken);
            true
        }
    }),
    ("a function left out", |plan| {
        let Some(list) = tasks(plan)["tasks"].as_array_mut() else { return false };
        let Some(modules) = list.last_mut().and_then(|task| task["modules"].as_array_mut()) else { return false };
        let Some(last) = modules.last().cloned().filter(|_| modules.len() > 2) else { return false };
        // It is there once for each way that leads to it.
        modules.retain(|module| *module != last);
        true
    }),
    ("cycles of the port", |plan| times(&mut tasks(plan)["port_cycles"], 0.9)),
    ("cycles of finding the chain", |plan| times(&mut tasks(plan)["classify_cycles"], 2.0)),
    ("workers", |plan| {
        let workers = &mut tasks(plan)["workers"];
        *workers = json!(workers.as_u64().unwrap_or(0) + 1);
        true
    }),
    ("what a class gets", |plan| times(&mut tasks(plan)["classes"][0]["packets"], 1e3)),
    ("what a class gets, and it waits", |plan| {
        let of = |list: &Value| list.as_array().map_or(0, Vec::len);
        let of_plan = tasks(plan);
        // A task for each class beside the port's, and no queue further down.
        let waits = of(&of_plan["tasks"]) == of(&of_plan["classes"]) + 1;
        waits && times(&mut tasks(plan)["classes"][0]["packets"], 0.5)
    }),
    ("a tree for every worker", |plan| {
        plan["servers"][0]["workers"][0]["tree"] = json!({ "task": 0 });
        true
    }),
];

#[test]
fn every_lie_about_tasks_is_found() {
    let mut told = [0; LIES.len()];
    for seed in 0..80 {
        let plan = drawn(seed).planned(false);
        if plan.servers[0].tasks.is_none() {
            continue;
        }
        let honest = serde_json::to_value(&plan).expect("JSON");
        for (told, (name, tell)) in told.iter_mut().zip(LIES) {
            let mut lying = honest.clone();
            if !tell(&mut lying) {
                continue;
            }
            let Err(why) = Plan::from_json(&lying.to_string()) else {
                panic!(
                    "seed {seed}: nobody finds out: {name}\n{}\n{:#}",
                    drawn(seed).file,
                    lying["servers"][0]["tasks"]
                );
            };
            assert!(why.starts_with("the plan says what is not so:\n  "), "{name}: {why}");
            *told += 1;
        }
    }
    let never: Vec<&str> = LIES.iter().zip(told).filter(|(_, told)| *told == 0).map(|(lie, _)| lie.0).collect();
    assert!(never.is_empty(), "never told: {never:?}; {told:?}");
}
