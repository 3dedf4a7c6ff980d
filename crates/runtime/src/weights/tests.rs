//! Weights on a worker that is counted, and not run: what it does in some time follows from its tree and what packets cost it.

use super::*;
use catena_plan::alpine::{Objective, Until};
use catena_plan::placement::{Link, Placement, Subgroup};
use catena_plan::problem::{self, Problem, Replication, Server};
use catena_plan::profile::{FULL_BATCH, Overheads};
use catena_policy::{Library, NoFiles, PolicyGraph};

/// A look is this long.
const LOOK: Duration = Duration::from_millis(50);

/// A server of one worker, by whose profile every function costs 100 cycles.
fn problem(policy: &PolicyGraph) -> Problem {
    let chain = |chain: &catena_policy::Chain| {
        let flow = catena_plan::demand::shares::of(chain);
        let node = |(n, node): (usize, &catena_policy::Node)| problem::Node {
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
            return_only: false,
            rewrites: false,
            returns: Default::default(),
            replicable: true,
        };
        problem::Chain {
            name: chain.name.clone(),
            t_min_bps: 0.0,
            t_max_bps: f64::INFINITY,
            ingress_bps: 4e10,
            d_max_ns: f64::INFINITY,
            weight: 1.0,
            packet_bytes: 125.0,
            nodes: chain.nodes.iter().enumerate().map(node).collect(),
            edges: flow.edges.iter().map(|&(from, to, share)| problem::Edge { from, to, share }).collect(),
        }
    };
    Problem {
        chains: policy.chains.iter().map(chain).collect(),
        servers: vec![Server { name: "s".into(), cores: 1, shared: true, clock_hz: 2e9, nics_bps: vec![4e10] }],
        smart_nics: Vec::new(),
        switch: None,
        overheads: Overheads { visit: 60.0, spread: 0.0, queue: 10.0, classify: 10.0, ..Overheads::default() },
        bounce_ns: 0.0,
        switch_ns: 0.0,
        replication: Replication::ByState,
        relations: Vec::new(),
        unseen: Vec::new(),
        objective: problem::Objective::Marginal,
    }
}

/// Two chains of a function each, which a relation divides a worker between.
fn two(relation: &str) -> Division {
    let source = format!(
        "class w = \"tcp\"\nclass v = \"udp\"\nchain a for w {{ in -> A -> out }}\nchain b for v {{ in -> B -> out }}\n{relation}\n"
    );
    let outcome = catena_policy::load("t.catena", &source, &Library::default(), &NoFiles);
    let policy = outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let group = |chain| Subgroup { chain, nodes: vec![0], server: 0, cores: 1.0, link: Link::Nic(0) };
    let placement = Placement { sites: Vec::new(), subgroups: [0, 1].map(group).into(), rates_bps: vec![1e9; 2] };
    Division::of(&policy, &problem(&policy), 0, &placement, Objective::FewestTasks, Until::default()).unwrap()
}

/// What packets cost a worker, in cycles, and how many of ten that it reads are of each chain; the rest is of none.
struct Costs {
    reading: f64,
    classifying: f64,
    entrance: f64,
    exit: f64,
    functions: [f64; 2],
    of_ten: [f64; 2],
}

const AS_PLANNED: Costs =
    Costs { reading: 50.0, classifying: 10.0, entrance: 5.0, exit: 5.0, functions: [100.0; 2], of_ten: [5.0; 2] };

/// Something that is counted by name, of a worker that reads for so many.
fn watched(reads_for: usize) -> Watched {
    let names = ["port", CLASSIFY, "a/a", "b/b"].map(str::to_owned).into_iter();
    let names = names.chain(["a/a", "b/b"].map(queue));
    let counters = || (0..3).map(|_| Arc::default()).collect();
    let modules = names.map(|name| (name, vec![Arc::default()])).collect();
    Watched { modules, tasks: counters(), ids: Vec::new(), others: Vec::new(), beside: Vec::new(), reads_for }
}

/// The cycles of a look that each task has.
fn parts(tree: &SchedulerTree) -> [f64; 3] {
    let cycles = LOOK.as_secs_f64() * clock::hertz() as f64;
    let SchedulerTree::Fair(children) = tree else { panic!("{tree:?}") };
    let all: f64 = children.iter().map(|(weight, _)| f64::from(*weight)).sum();
    let of = |task: usize| -> f64 {
        let own = children.iter().filter(|(_, child)| *child == SchedulerTree::Task(task));
        own.map(|(weight, _)| f64::from(*weight) / all * cycles).sum()
    };
    [0, 1, 2].map(of)
}

/// Do as much as a look is long, by the trees that are set: the first worker reads for all, and each has as much of that as another.
/// Returns what was brought through of each chain.
fn work(weights: &Weights, costs: &Costs) -> [f64; 2] {
    let Costs { reading, classifying, entrance, exit, functions, of_ten } = costs;
    let workers = weights.workers.len() as f64;
    let known = (of_ten[0] + of_ten[1]) / 10.0;
    let entering = classifying + known * entrance;
    let first = parts(&reading::for_all(&weights.given, weights.workers[0].reads_for));
    let read = first[0] / (reading + entering / workers);
    let mut through = [0.0; 2];
    for (n, worker) in weights.workers.iter().enumerate() {
        let has = parts(&reading::for_all(&weights.given, worker.reads_for));
        let module = |name: &str, packets: f64, each: f64| {
            let node = &worker.modules[name][0];
            node.input.packets.add(packets as u64);
            node.input.bytes.add((packets * 125.0) as u64);
            node.cycles.add((packets * each) as u64);
        };
        let task = |task: usize, packets: f64, cycles: f64| {
            let counters = &worker.tasks[task];
            counters.input.packets.add(packets as u64);
            counters.runs.add((packets / 32.0) as u64);
            counters.cycles.add(cycles as u64);
        };
        let share = read / workers;
        module(CLASSIFY, share, *classifying);
        if n == 0 {
            task(0, read, has[0])
        } else {
            task(0, share, share * entering)
        }
        for (chain, name) in ["a/a", "b/b"].into_iter().enumerate() {
            let came = share * of_ten[chain] / 10.0;
            let each = exit + functions[chain];
            let done = came.min(has[chain + 1] / each);
            module(&queue(name), came, *entrance);
            module(name, done, functions[chain]);
            task(chain + 1, done, done * each);
            through[chain] += done;
        }
    }
    through
}

/// Look as often as it takes weights to settle; returns the packets of each chain of the last time.
fn settled(weights: &mut Weights, costs: &Costs) -> [f64; 2] {
    for _ in 0..20 {
        work(weights, costs);
        let now = Instant::now();
        (weights.next, weights.looked) = (now, now.checked_sub(LOOK).unwrap());
        weights.look(&[]);
    }
    work(weights, costs)
}

fn weights(relation: &str) -> Weights {
    of(relation, 1)
}

fn of(relation: &str, workers: usize) -> Weights {
    let watched = (0..workers).map(|n| watched(if n == 0 { workers } else { 1 })).collect();
    Weights::new(Weighed { division: two(relation), several: true, shares: Vec::new() }, watched)
}

#[test]
fn weights_follow_what_functions_cost_in_the_run() {
    for (relation, costs, wanted) in [
        ("throughput a : b = 1 : 1", AS_PLANNED, 1.0),
        ("throughput a : b = 1 : 1", Costs { functions: [400.0, 50.0], ..AS_PLANNED }, 1.0),
        ("throughput a : b = 1 : 2", Costs { functions: [400.0, 50.0], ..AS_PLANNED }, 2.0),
        ("throughput a : b = 1 : 2", Costs { reading: 200.0, of_ten: [2.0, 8.0], ..AS_PLANNED }, 2.0),
    ] {
        let mut weights = weights(relation);
        let planned = work(&weights, &costs);
        let [a, b] = settled(&mut weights, &costs);
        let is_planned = (planned[1] / planned[0] / wanted - 1.0).abs() < 0.03;
        assert_eq!(is_planned, (costs.functions, costs.reading) == (AS_PLANNED.functions, AS_PLANNED.reading));
        assert!((b / a / wanted - 1.0).abs() < 0.03, "{relation}: {a} and {b} of costs {:?}", costs.functions);
    }
}

/// Where one reads too little for all, the others have idle time, in which everybody has all that comes.
#[test]
fn a_ratio_holds_on_all_workers_of_which_one_reads() {
    for (workers, reading) in [(2, 40.0), (2, 120.0), (3, 40.0)] {
        let costs = Costs { reading, functions: [800.0, 300.0], of_ten: [2.0, 8.0], ..AS_PLANNED };
        let mut weights = of("throughput a : b = 1 : 2", workers);
        let [a, b] = settled(&mut weights, &costs);
        assert!((b / a / 2.0 - 1.0).abs() < 0.03, "{workers} workers: {a} and {b}");
    }
}

#[test]
fn a_worker_that_is_idle_keeps_its_weights() {
    let mut weights = weights("throughput a : b = 1 : 1");
    let given = weights.given.clone();
    for _ in 0..20 {
        work(&weights, &Costs { functions: [400.0, 50.0], ..AS_PLANNED });
        let now = Instant::now();
        // Done in a tenth of the time.
        (weights.next, weights.looked) = (now, now.checked_sub(10 * LOOK).unwrap());
        weights.look(&[]);
    }
    assert_eq!((weights.times(), &weights.given), (0, &given));
    // What things cost it learned all the same.
    assert!(weights.costs.modules.iter().any(|cycles| (cycles - 400.0).abs() < 0.1), "{:?}", weights.costs);
}

#[test]
fn who_is_for_somebody_pays_for_reading_who_is_for_none() {
    let mut weights = weights("throughput a : b = 1 : 1");
    let costs = Costs { of_ten: [2.5; 2], ..AS_PLANNED };
    let [a, b] = settled(&mut weights, &costs);
    assert!((b / a - 1.0).abs() < 0.03, "{a} and {b}");
    let came = |packets: f64| -> Vec<f64> {
        let has = |name: &String| if name.contains('/') { packets } else { 0.0 };
        weights.names.iter().map(has).collect()
    };
    let classify = weights.names.iter().position(|name| name == CLASSIFY).unwrap();
    let all = |costs: &Measured| costs.sources[0] + costs.modules[classify];
    let times = |read: f64, packets: f64| all(&weights.with_strangers(read, &came(packets))) / all(&weights.costs);
    assert_eq!([times(40_000.0, 10_000.0), times(20_000.0, 10_000.0), times(10_000.0, 10_000.0)], [2.0, 1.0, 1.0]);
    // So few tell nothing.
    assert_eq!(times(4_000.0, 100.0), 1.0);
}

#[test]
fn a_cost_is_the_middle_of_its_last_measurements() {
    let mut samples = Samples::default();
    let costs = [50.0, 900.0, 52.0, 48.0, 51.0, 49.0, 70.0, 70.0, 70.0].map(|cycles| samples.add(cycles));
    assert_eq!(costs, [50.0, 50.0, 52.0, 50.0, 51.0, 51.0, 51.0, 51.0, 70.0]);
}

#[test]
fn trees_whose_weights_hardly_differ_are_the_same() {
    let tree =
        |first| SchedulerTree::Fair(vec![(first, SchedulerTree::Task(0)), (65_536 - first, SchedulerTree::Task(1))]);
    assert!(is_same(&tree(30_000), &tree(30_150)) && !is_same(&tree(30_000), &tree(31_000)));
    assert!(is_same(&tree(1_000), &tree(1_009)) && !is_same(&tree(1_000), &tree(1_020)));
    assert!(!is_same(&tree(30_000), &SchedulerTree::Task(0)));
}

#[test]
fn a_task_has_plenty_where_its_queue_drops_and_little_where_it_does_not() {
    let of =
        |shares| Weights::new(Weighed { division: two("cpu a : b = 1 : 1"), several: true, shares }, vec![watched(1)]);
    let has = |weights: &Weights, came: [f64; 2], dropped: [u64; 2]| {
        let (mut now, mut all) = (weights.counts(), vec![0.0; weights.names.len()]);
        let starts: Vec<usize> = weights.division.tasks().map(|(start, _)| start).collect();
        for n in [0, 1] {
            (now.dropped[starts[n + 1]], all[starts[n + 1]]) = (dropped[n], came[n]);
        }
        let did = weights.did(&now, &all);
        [did[1].has, did[2].has]
    };
    let weights = of(Vec::new());
    assert_eq!(has(&weights, [1e5, 1e5], [1_000, 0]), [Has::Plenty, Has::Little]);
    assert_eq!(has(&weights, [1e5, 900.0], [50, 900]), [Has::Little, Has::Nothing]);
    // The weights of tenants follow their accounts.
    let tenants = of(vec![[("a", 1.0), ("b", 1.0)].map(|(chain, weight)| (chain.to_owned(), weight)).into()]);
    assert_eq!(has(&tenants, [1e5, 1e5], [1_000, 0]), [Has::Nothing; 2]);
}
