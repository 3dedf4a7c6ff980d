//! Task plans of small servers.

use catena_policy::{Library, NoFiles, PolicyGraph};

use super::*;
use catena_plan_alpine::Until;
use catena_plan_alpine::tree::Unit;
use catena_plan_model::demand::shares;
use catena_plan_model::placement::{Link, Placement, Subgroup};
use catena_plan_model::problem::{Chain, Edge, Node, Objective, Replication, Server};
use catena_plan_model::profile::FULL_BATCH;
use catena_plan_model::profile::Overheads;
use catena_plan_model::relation::{Member, Relation};

const FEWEST: catena_plan_alpine::Objective = catena_plan_alpine::Objective::FewestTasks;

fn policy(source: &str) -> PolicyGraph {
    let outcome = catena_policy::load("t.catena", source, &Library::default(), &NoFiles);
    outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))
}

/// One server of two cores; every function costs 100 cycles.
fn problem(policy: &PolicyGraph) -> Problem {
    let chain = |chain: &catena_policy::Chain| {
        let flow = shares::of(chain);
        let node = |(n, node): (usize, &catena_policy::Node)| Node {
            name: node.name.clone(),
            function: node.function.clone(),
            share: flow.nodes[n],
            entry: flow.entries[n],
            server: Some(100.0),
            per_batch: 0.0,
            batch: FULL_BATCH,
            smart_nic: None,
            pisa: None,
            openflow: None,
            guarded: false,
            return_only: flow.return_only[n],
            rewrites: false,
            returns: Default::default(),
            replicable: true,
        };
        Chain {
            name: chain.name.clone(),
            t_min_bps: 0.0,
            t_max_bps: chain.promise.t_max_bps.map_or(f64::INFINITY, |bps| bps as f64),
            ingress_bps: 4e10,
            d_max_ns: f64::INFINITY,
            weight: 1.0,
            packet_bytes: 125.0,
            nodes: chain.nodes.iter().enumerate().map(node).collect(),
            edges: flow.edges.iter().map(|&(from, to, share)| Edge { from, to, share }).collect(),
        }
    };
    Problem {
        chains: policy.chains.iter().map(chain).collect(),
        servers: vec![Server { name: "s".into(), cores: 2, shared: true, clock_hz: 2e9, nics_bps: vec![4e10] }],
        smart_nics: Vec::new(),
        switch: None,
        overheads: Overheads { visit: 60.0, spread: 0.0, queue: 10.0, classify: 10.0, ..Overheads::default() },
        bounce_ns: 0.0,
        switch_ns: 0.0,
        replication: Replication::ByState,
        relations: Vec::new(),
        unseen: Vec::new(),
        objective: Objective::Marginal,
    }
}

fn of(
    policy: &PolicyGraph,
    problem: &Problem,
    server: usize,
    placement: &Placement,
    objective: catena_plan_alpine::Objective,
) -> Result<TaskPlan, String> {
    Ok(Division::of(policy, problem, server, placement, objective, Until::default())?.figures())
}

/// Whole chains on the server, at these rates.
fn placed(rates_bps: &[f64]) -> Placement {
    let group = |chain| Subgroup { chain, nodes: vec![0], server: 0, cores: 1.0, link: Link::Nic(0) };
    Placement { sites: Vec::new(), subgroups: (0..rates_bps.len()).map(group).collect(), rates_bps: rates_bps.to_vec() }
}

const TWO: &str = "class w = \"tcp\"\nclass v = \"udp\"\n\
    chain a for w { in -> A -> B -> out }\nchain b for v { in -> C -> out }\n";

#[test]
fn chains_that_are_planned_the_same_rate_need_one_task() {
    let policy = policy(TWO);
    let plan = of(&policy, &problem(&policy), 0, &placed(&[1e9, 1e9]), FEWEST).unwrap();
    assert_eq!((plan.tasks.len(), plan.workers), (1, 2));
    assert_eq!((&plan.tasks[0].start, &plan.tree), (&Start::Port, &SchedulerTree::Task(0)));
}

#[test]
fn chains_get_packets_in_the_ratio_of_their_planned_rates() {
    let policy = policy(TWO);
    let plan = of(&policy, &problem(&policy), 0, &placed(&[1e9, 3e9]), FEWEST).unwrap();
    assert_eq!(plan.tasks[1].start, Start::Function { chain: "a".into(), node: "a".into() });
    assert!((plan.classes[1].packets / plan.classes[0].packets - 3.0).abs() < 1e-6);
    // 2 cores of 2·10⁹ cycles: reading and classifying 60 cycles for each packet that comes, of both classes
    // alike, 10 for a queue, 100 for a function.
    let spent = plan.classes[0].packets * 210.0 + plan.classes[1].packets * (100.0 + 2.0 * 60.0);
    assert!((spent / 4e9 - 1.0).abs() < 0.01, "{spent}");
}

#[test]
fn what_the_file_says_about_cycles_goes_before_the_planned_rates() {
    let policy = policy(&format!("{TWO}cpu a : b = 1 : 4\n"));
    let plan = of(&policy, &problem(&policy), 0, &placed(&[1e9, 1e9]), FEWEST).unwrap();
    assert!((plan.classes[1].cpu / plan.classes[0].cpu - 4.0).abs() < 1e-6, "{:?}", plan.classes);
}

#[test]
fn who_is_owed_a_part_is_to_find_its_queue_full() {
    let related = |relation: &str, promised: f64| -> Vec<(String, f64)> {
        let policy = policy(&format!("{TWO}{relation}\n"));
        let mut problem = problem(&policy);
        problem.chains[0].t_min_bps = promised;
        let placement = placed(&[1e9, 1e9]);
        let division = Division::of(&policy, &problem, 0, &placement, FEWEST, Until::default()).unwrap();
        division.related().map(|of| (division.modules()[of.module].clone(), of.promised_bps)).collect()
    };
    let both = |promised| vec![("a/a".to_owned(), promised), ("b/c".to_owned(), 0.0)];
    assert_eq!(related("throughput a : b = 1 : 2", 1e8), both(1e8));
    assert_eq!(related("cpu a : b = 1 : 2", 0.0), both(0.0));
    // Who comes last has what is left.
    assert_eq!(related("priority b > a", 1e8), both(1e8)[1..]);
    assert_eq!(related("", 1e8), []);
}

/// What a chain is promised is of all its classes together: none of them is held against all of it.
#[test]
fn classes_of_a_chain_have_its_promise_together() {
    let source = "class w = \"tcp\"\nclass v = \"udp\"\nclass x = \"icmp\"\n\
        chain a for w, v { promise 1Gbps.. in -> A -> out }\nchain b for x { in -> B -> out }\ncpu w : v = 1 : 3\n";
    let policy = policy(source);
    let mut problem = problem(&policy);
    problem.chains[0].t_min_bps = 1e9;
    let division = Division::of(&policy, &problem, 0, &placed(&[1e9, 1e9]), FEWEST, Until::default()).unwrap();
    let related: Vec<Related> = division.related().collect();
    let modules: Vec<usize> = related.iter().map(|of| of.module).collect();
    assert_eq!(modules.len(), 2, "{related:?}");
    assert!(related.iter().all(|of| of.promised_bps == 1e9 && of.chain == modules), "{related:?}");
}

/// Where more comes of one chain than of another, more of it is read in vain, and who waits for the port has less.
#[test]
fn the_port_reads_what_comes_of_each() {
    let division = two("", "throughput a : b = 1 : 1", 0.0);
    let [even, uneven] = [[1e6, 1e6], [3e6, 1e6]].map(|came| parts_where(&division, came, [0.0; 2]));
    // Of one packet each, two are read, or four.
    let [two, four] = [&even, &uneven].map(|parts| parts[0] / (parts[1] + parts[2]));
    assert!((four / two / 2.0 - 1.0).abs() < 0.01, "{even:?} and {uneven:?}");
    assert!((uneven[1] / uneven[2] - 1.0).abs() < 0.01, "{uneven:?}");
}

/// What comes of each is more than can be done, so that most of a worker reads what is dropped: much less is left to share than
/// the plan of what is carried says. It is shared in the same ratio.
#[test]
fn a_share_is_of_what_promises_leave() {
    let policy = policy(&format!("{TWO}share a : b = 3 : 1\n"));
    let mut problem = problem(&policy);
    let promised = [1e9, 2e9];
    problem.chains.iter_mut().zip(promised).for_each(|(chain, promised)| chain.t_min_bps = promised);
    let member = |chain: usize, weight: f64| Member {
        chain,
        class: None,
        factor: 1.0 / weight,
        from_bps: promised[chain],
        cap_bps: f64::INFINITY,
    };
    let (text, members) = ("share a : b = 3 : 1".to_owned(), vec![member(0, 3.0), member(1, 1.0)]);
    problem.relations = vec![Relation::Ratio { text, members }];
    let plan = of(&policy, &problem, 0, &placed(&[1e9 + 27e9, 2e9 + 9e9]), FEWEST).unwrap();
    let [a, b] = [0, 1].map(|c| plan.classes[c].packets);
    assert!(a + b < 20e6, "{a} + {b}");
    assert!(((a - 1e6) / (b - 2e6) - 3.0).abs() < 0.01, "{a} : {b}");
}

/// Tasks give less than was planned of what nobody is held to, and the ratio of planned rates would give a chain as much less of what
/// it may have.
#[test]
fn who_has_all_that_it_may_have_is_in_no_ratio_of_what_is_shared() {
    for (relation, weights) in
        [("share a : b = 5 : 1", Some([5.0, 1.0])), ("share a : b = 1 : 2", Some([1.0, 2.0])), ("", None)]
    {
        let policy = policy(&format!("{}{relation}\n", TWO.replace("{ in -> A", "{ promise ..300Mbps in -> A")));
        let mut problem = problem(&policy);
        if let Some(weights) = weights {
            let member = |chain: usize| Member {
                chain,
                class: None,
                factor: 1.0 / weights[chain],
                from_bps: 0.0,
                cap_bps: problem.chains[chain].t_max_bps,
            };
            let members = vec![member(0), member(1)];
            problem.relations = vec![Relation::Ratio { text: relation.to_owned(), members }];
        }
        let plan = of(&policy, &problem, 0, &placed(&[0.3e9, 35e9]), FEWEST).unwrap();
        let [a, b] = [0, 1].map(|c| plan.classes[c].packets * 1_000.0);
        assert!(b < 30e9, "{relation}: {b} of 35e9, so that the ratio of planned rates shows");
        assert!((0.98 * 0.3e9..=1.001 * 0.3e9).contains(&a), "{relation}: {a}");
    }
}

#[test]
fn what_relations_leave_a_chain_is_held_against_its_promise() {
    let policy = policy(&format!("{TWO}cpu a : b = 1 : 9\n"));
    let mut problem = problem(&policy);
    problem.unseen = vec!["cpu a : b = 1 : 9".into()];
    let plan = of(&policy, &problem, 0, &placed(&[1e9, 1e9]), FEWEST).unwrap();
    let gets = plan.classes[0].packets * 1_000.0;
    problem.chains[0].t_min_bps = 0.9 * gets;
    assert_eq!(broken(&problem, &plan), None);
    problem.chains[0].t_min_bps = 1.1 * gets;
    let why = broken(&problem, &plan).expect("a tenth more than it gets is promised");
    assert!(why.contains("`cpu a : b = 1 : 9`, a gets"), "{why}");
}

#[test]
fn chains_that_nothing_leaves_come_last() {
    let policy = policy(&TWO.replace("C -> out", "C -> drop"));
    let mut problem = problem(&policy);
    problem.relations = vec![Relation::Last(vec![1])];
    let plan = of(&policy, &problem, 0, &placed(&[1e9, 0.0]), FEWEST).unwrap();
    let SchedulerTree::Fair(both) = &plan.tree else { panic!("{:?}", plan.tree) };
    assert!(matches!(both[1].1, SchedulerTree::Priority(_)), "{:?}", plan.tree);
}

#[test]
fn a_chain_with_an_upper_end_waits_in_a_queue_of_its_own_and_is_held_to_it() {
    let policy = policy(&TWO.replace("in -> A", "promise 0..1Gbps in -> A"));
    let plan = of(&policy, &problem(&policy), 0, &placed(&[1e9, 1e9]), FEWEST).unwrap();
    let held = plan.tasks.iter().position(|t| matches!(&t.start, Start::Function { chain, .. } if chain == "a"));
    // Half of it on each worker.
    let limit = |tree: &SchedulerTree| {
        matches!(tree, SchedulerTree::Limit { unit: Unit::Bits, rate: 500_000_000, child, .. }
        if matches!(**child, SchedulerTree::Task(t) if Some(t) == held))
    };
    let SchedulerTree::Fair(children) = &plan.tree else { panic!("{:?}", plan.tree) };
    assert!(children.iter().any(|(_, child)| limit(child)), "{:?}", plan.tree);
}

#[test]
fn classes_of_one_chain_wait_where_they_enter_it() {
    let source = "class w = \"tcp\"\nclass v = \"udp\"\nclass x = \"icmp\"\n\
        chain a for w, v, x { in -> A -> B -> C -> out }\n";
    for relation in
        ["cpu w : v = 1 : 3", "throughput w : v = 3 : 1", "throughput w : v : x = 1 : 2 : 3", "priority w > v"]
    {
        let policy = policy(&format!("{source}{relation}\n"));
        for objective in [FEWEST, catena_plan_alpine::Objective::MostPackets] {
            let plan = of(&policy, &problem(&policy), 0, &placed(&[1e9]), objective);
            let plan = plan.unwrap_or_else(|why| panic!("{relation}: {why}"));
            let behind = plan.tasks.iter().filter(|task| task.start != Start::Port);
            assert!(behind.clone().all(|task| matches!(task.start, Start::Class(_))), "{relation}: {:?}", plan.tasks);
            assert!(behind.count() > 0, "{relation}");
        }
    }
}

#[test]
fn no_queue_stands_where_ways_have_merged() {
    let source = "class w = \"tcp\"\nclass v = \"udp\"\n\
        chain a for w { in -> BPF -> [ \"port 80\": A, else: B ] -> C -> out }\nchain b for v { in -> C -> out }\n\
        cpu a : b = 1 : 3\n";
    let policy = policy(source);
    let plan = of(&policy, &problem(&policy), 0, &placed(&[1e9, 1e9]), FEWEST).unwrap();
    let merged = Start::Function { chain: "a".into(), node: "c".into() };
    assert!(plan.tasks.iter().all(|task| task.start != merged), "{:?}", plan.tasks);
    assert!((plan.classes[1].cpu / plan.classes[0].cpu - 3.0).abs() < 1e-6, "{:?}", plan.classes);
}

#[test]
fn functions_of_the_return_direction_are_at_the_end_of_every_way_and_cost_its_task() {
    let modules = |task: &TaskFigures| task.modules.join(" ");
    let behind = policy("chain a { in -> A -> out\n out -> [ \"tcp\" ~ 25%: B, else: ] -> C -> in }\n");
    let plan = of(&behind, &problem(&behind), 0, &placed(&[1e9]), FEWEST).unwrap();
    assert_eq!(plan.tasks.len(), 1);
    assert_eq!(modules(&plan.tasks[0]), "port classify a/a a/b a/c a/c");
    // Reading takes 50 and finding the chain 10, A and C 100 each for every packet, B for every fourth.
    let (task, all) = (&plan.tasks[0], 60.0 + 200.0 + 25.0);
    assert!((task.cycles / task.packets - all).abs() < 1e-6, "{} cycles a packet", task.cycles / task.packets);

    // Where a chain waits in a queue, and where nothing goes forward that would wait.
    let waits = policy("chain a { promise 0..1Gbps in -> A -> out\n out -> B -> in }\n");
    let plan = of(&waits, &problem(&waits), 0, &placed(&[1e9]), FEWEST).unwrap();
    assert_eq!(plan.tasks.iter().map(modules).collect::<Vec<_>>(), ["port classify", "a/a a/b"]);
    let passes = policy("chain a { in -> out\n out -> B -> in }\n");
    let plan = of(&passes, &problem(&passes), 0, &placed(&[1e9]), FEWEST).unwrap();
    assert_eq!(plan.tasks.iter().map(modules).collect::<Vec<_>>(), ["port classify a/b"]);
}

/// A promise is of bits: where packets are shorter than planned, it is of more of them.
#[test]
fn shorter_packets_are_more_packets_of_what_is_promised() {
    let source = "class w = \"tcp\"\nclass v = \"udp\"\nchain a for w { promise 1Gbps.. in -> A -> out }\n\
        chain b for v { in -> B -> out }\npriority b > a\n";
    let policy = policy(source);
    let mut problem = problem(&policy);
    problem.chains[0].t_min_bps = 1e9;
    let division = Division::of(&policy, &problem, 0, &placed(&[1e9, 1e9]), FEWEST, Until::default()).unwrap();
    let mut came = vec![0.0; division.modules().len()];
    division.tasks().for_each(|(start, _)| came[start] = 1e6);
    let of = |bits: f64| division.weighed(&division.planned(), &came, &vec![bits; came.len()]).unwrap().0;
    let planned = problem.chains[0].packet_bits();
    assert_eq!(of(0.0), of(planned), "what is not known is as planned");
    // Four times as many packets of what is promised leave the other fewer, and bits are the same.
    let [long, short] = [planned, planned / 4.0].map(of);
    assert_eq!(promised(&long), promised(&short));
    // Of what the port leaves, a takes 105 cycles for each packet that it is promised.
    let [long, short] = [(long, planned), (short, planned / 4.0)].map(|(tree, bits)| {
        let promised = promised(&tree).iter().sum::<u64>() as f64 / bits;
        part(&tree, 2) - promised * 105.0 / problem.servers[0].clock_hz
    });
    assert!(short < long, "{short} and {long} of the worker's cycles for what is not promised");
}

/// Bits per second in front of all weights.
fn promised(tree: &SchedulerTree) -> Vec<u64> {
    match tree {
        SchedulerTree::Limit { rate, .. } => vec![*rate],
        SchedulerTree::Fair(children) => children.iter().flat_map(|(_, child)| promised(child)).collect(),
        SchedulerTree::Priority(children) | SchedulerTree::RoundRobin(children) => {
            children.iter().flat_map(promised).collect()
        }
        SchedulerTree::Task(_) => Vec::new(),
    }
}

/// The part of a worker that a task has by weights, not what it has in front of them.
fn part(tree: &SchedulerTree, task: usize) -> f64 {
    match tree {
        SchedulerTree::Task(own) => f64::from(u8::from(*own == task)),
        SchedulerTree::Limit { .. } => 0.0,
        SchedulerTree::Fair(children) => {
            let all: f64 = children.iter().map(|(weight, _)| f64::from(*weight)).sum();
            children.iter().map(|(weight, child)| f64::from(*weight) / all * part(child, task)).sum()
        }
        SchedulerTree::Priority(children) | SchedulerTree::RoundRobin(children) => {
            children.iter().map(|child| part(child, task)).sum()
        }
    }
}

/// Two chains of one function each.
fn two(first: &str, relation: &str, t_min_bps: f64) -> Division {
    let source = format!(
        "class w = \"tcp\"\nclass v = \"udp\"\nchain a for w {{ {first} in -> A -> out }}\n\
         chain b for v {{ in -> B -> out }}\n{relation}\n"
    );
    let policy = policy(&source);
    let mut problem = problem(&policy);
    problem.chains[0].t_min_bps = t_min_bps;
    let weights = relation.split_once('=').and_then(|(_, weights)| weights.split_once(':'));
    let [a, b] = weights.map(|(a, b)| [a, b].map(|weight| weight.trim().parse::<f64>().unwrap())).unwrap();
    if relation.starts_with("share") {
        let member = |chain: usize, weight: f64, from_bps: f64| Member {
            chain,
            class: None,
            factor: 1.0 / weight,
            from_bps,
            cap_bps: f64::INFINITY,
        };
        let members = vec![member(0, a, t_min_bps), member(1, b, 0.0)];
        problem.relations = vec![Relation::Ratio { text: relation.to_owned(), members }];
    }
    let placement = placed(&[t_min_bps + 3e9 * a, 3e9 * b]);
    Division::of(&policy, &problem, 0, &placement, FEWEST, Until::default()).unwrap()
}

/// The parts of tasks where so many packets of each chain came.
fn parts_where(division: &Division, each: [f64; 2], bits: [f64; 2]) -> Vec<f64> {
    let (mut came, mut sizes) = (vec![0.0; division.modules().len()], vec![0.0; division.modules().len()]);
    for ((start, _), n) in division.tasks().skip(1).zip(0..) {
        (came[start], sizes[start]) = (each[n], bits[n]);
    }
    let (tree, _) = division.weighed(&division.planned(), &came, &sizes).unwrap();
    (0..3).map(|task| part(&tree, task)).collect()
}

#[test]
fn who_is_silent_takes_nothing_from_who_is_not() {
    for relation in ["throughput a : b = 1 : 2", "cpu a : b = 1 : 2", "share a : b = 1 : 2"] {
        for (first, promised) in [("", 0.0), ("promise 1Gbps..", 1e9)] {
            let division = two(first, relation, promised);
            let both = parts_where(&division, [1e6, 1e6], [0.0; 2]);
            let one = parts_where(&division, [0.0, 1e6], [0.0; 2]);
            // Reading is cheap here: who is alone has most of the worker.
            assert!(one[2] > both[2] && one[0] < 1.5 * both[0], "{relation}, {promised}: {one:?}, {both:?} together");
            // Whom something comes of has its part.
            let few = parts_where(&division, [2e4, 1e6], [0.0; 2]);
            assert!(few[1] > one[1], "{relation}: {few:?}");
        }
    }
}

#[test]
fn what_is_shared_beyond_promises_is_bits() {
    let division = two("", "share a : b = 1 : 1", 0.0);
    let ratio = |bits: [f64; 2]| {
        let parts = parts_where(&division, [1e6, 1e6], bits);
        parts[1] / parts[2]
    };
    let (even, short) = (ratio([4_000.0, 4_000.0]), ratio([1_000.0, 4_000.0]));
    assert!((short / even / 4.0 - 1.0).abs() < 0.01, "{short} and {even}");
}

#[test]
fn tasks_that_nobody_had_time_to_look_for_keep_what_is_promised() {
    // Two classes of one chain share as one subject: no closed form knows the tasks.
    let source = "class w = \"tcp\"\nclass v = \"udp\"\nclass u = \"icmp\"\n\
        chain a for w { in -> [ \"port 80\": A, else: B ] -> out }\nchain b for v { in -> C -> out }\n\
        chain c for u { in -> D -> out }\ncpu a : b = 1 : 3\n";
    let policy = policy(source);
    let problem = problem(&policy);
    let placement = placed(&[1e9, 1e9, 1e9]);
    for objective in [FEWEST, catena_plan_alpine::Objective::MostPackets] {
        let over = Until::of(std::time::Instant::now());
        let division = Division::of(&policy, &problem, 0, &placement, objective, over).unwrap();
        let plan = division.figures();
        assert!(plan.cut_short && !plan.minimal, "{objective:?}: {plan:?}");
        let cpu = |chain: &str| -> f64 {
            plan.classes.iter().filter(|class| class.name.starts_with(chain)).map(|class| class.cpu).sum()
        };
        assert!((cpu("b") / cpu("a") - 3.0).abs() < 1e-6, "{objective:?}: {:?}", plan.classes);
        // A run makes the same ones of it, and they can be weighed again.
        let again = Division::of(&policy, &problem, 0, &placement, objective, over).unwrap();
        assert_eq!(again.figures(), plan);
        assert!(again.weighed(&again.planned(), &[], &[]).is_some());
        let enough = of(&policy, &problem, 0, &placement, objective).unwrap();
        assert!(!enough.cut_short, "{objective:?}");
    }
}

/// Of whom comes last what comes is read as well, in vain: the port has so much that who comes first never waits for packets.
#[test]
fn who_comes_first_has_all_that_can_be_read_for_it() {
    let source = "class w = \"tcp\"\nclass v = \"udp\"\nchain a for w { in -> A -> out }\nchain b for v { in -> B -> out }\n\
        priority a > b\n";
    let policy = policy(source);
    let mut shares = Vec::new();
    // What was planned is dearer and cheaper than what is measured.
    for costs in [20.0, 100.0, 400.0] {
        let mut problem = problem(&policy);
        problem.chains.iter_mut().flat_map(|chain| &mut chain.nodes).for_each(|node| node.server = Some(costs));
        let division = Division::of(&policy, &problem, 0, &placed(&[1e9, 1.0]), FEWEST, Until::default()).unwrap();
        let mut came = vec![0.0; division.modules().len()];
        division.tasks().for_each(|(start, _)| came[start] = 1e6);
        let mut measured = division.planned();
        for (cycles, name) in measured.modules.iter_mut().zip(division.modules()) {
            *cycles = if name.contains('/') { 70.0 } else { 25.0 };
        }
        measured.sources.iter_mut().for_each(|cycles| *cycles = 5.0);
        measured.entrances.iter_mut().for_each(|cycles| *cycles = 5.0);
        let (tree, _) = division.weighed(&measured, &came, &vec![0.0; came.len()]).unwrap();
        let SchedulerTree::Fair(children) = &tree else { panic!("{tree:?}") };
        let port = children.iter().find(|(_, child)| *child == SchedulerTree::Task(0)).expect("the port's task").0;
        let all: u32 = children.iter().map(|(weight, _)| weight).sum();
        // For each packet of a one of b is read, at 35 cycles; a's takes 75.
        let (is, shall) = (f64::from(port) / f64::from(all), 70.0 / (70.0 + 75.0));
        assert!((is - shall).abs() < 0.15, "{is} of the worker's cycles, planned with {costs} a packet");
        shares.push(is);
    }
    assert!(shares.iter().all(|is| (is - shares[0]).abs() < 1e-3), "{shares:?}");
}

/// What comes to the queue of who comes last is put there by the port's task, whatever is served of it: that is paid with what is read.
#[test]
fn weights_are_found_where_who_comes_first_takes_all() {
    let source = "class w = \"tcp\"\nclass v = \"udp\"\nchain a for w { in -> A -> A2 -> out }\n\
        chain b for v { in -> B -> B2 -> out }\npriority a > b\n";
    let policy = policy(source);
    let mut problem = problem(&policy);
    // Reading was thought to be far dearer than it is.
    problem.overheads.visit = 200.0;
    problem.chains.iter_mut().flat_map(|chain| &mut chain.nodes).for_each(|node| node.server = Some(18.0));
    let division = Division::of(&policy, &problem, 0, &placed(&[1e9, 1.0]), FEWEST, Until::default()).unwrap();
    let mut came = vec![0.0; division.modules().len()];
    division.tasks().for_each(|(start, _)| came[start] = 1.2e6);
    let mut measured = division.planned();
    for (entrance, source, cycles) in [(13.2, 8.0, 33.0), (13.2, 0.0, 60.0), (40.0, 8.0, 33.0), (5.0, 8.0, 160.0)] {
        measured.modules = vec![0.0, 41.0, cycles, 33.0, 18.0, 18.0];
        measured.entrances = vec![0.0, 0.0, entrance, 0.0, entrance, 0.0];
        measured.sources = vec![7.0, 8.0, source];
        let weighed = division.weighed(&measured, &came, &vec![512.0; came.len()]);
        let (tree, _) = weighed.unwrap_or_else(|| panic!("no weights, with {entrance} and {cycles} cycles"));
        let SchedulerTree::Fair(children) = &tree else { panic!("{tree:?}") };
        let port = children.iter().find(|(_, child)| *child == SchedulerTree::Task(0)).expect("the port's task").0;
        // Two packets are read, and one of them is served; a little is left for the last.
        let (read, served) = (2.0 * (48.0 + entrance), cycles + 33.0 + 8.0);
        let (is, shall) = (f64::from(port) / 65_536.0, read / (read + served));
        assert!((is - shall).abs() < 0.04, "{is} of the worker's cycles, not {shall}");
    }
}
