//! The most packets against trying everything, and against examples worked by hand.

use proptest::prelude::*;

use super::*;
use crate::tests::{attainable, checked, cpu, graph, trees};
use crate::{Cost, Ends, Objective, Options, solve};

fn options() -> Options {
    Options { objective: Objective::MostPackets, front: Front::Never, surplus: 0.0, ..Options::default() }
}

fn with_batches(graph: Graph, per_batch: &[f64], ends: Ends) -> Graph {
    let packets = graph.packets();
    let mut graph = Graph { queue_ends: ends, ..graph };
    for (m, module) in graph.modules.iter_mut().enumerate() {
        module.batch = batch(packets[m] / packets[0]);
        // A batch's part of what a packet costs is less than all of it.
        module.per_batch = per_batch[m % per_batch.len()] * module.cycles * module.batch;
    }
    graph
}

/// The most packets of all partitions, with a program for each.
fn exhaustive(graph: &Graph, promises: &[Promise]) -> Option<f64> {
    let run = Run { graph: graph.clone(), promises, options: options() };
    let way = run.way(Vec::new()).unwrap();
    let (free, given) = (way.free.clone(), way.given.clone());
    let search = Search { run: &run, ways: vec![way], whole: None, surplus: 0.0, end: Instant::now() };
    let all = (0..1_usize << free.len()).map(|set| {
        let mut starts = given.clone();
        free.iter().enumerate().for_each(|(bit, m)| starts[*m] = set >> bit & 1 == 1);
        search.weighed(0, &starts).unwrap().map(|kept| kept.served)
    });
    all.flatten().reduce(f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_partition_serves_more(
        graph in trees(2..=6, (10.0..200.0).boxed()),
        drops in proptest::collection::vec(0.3..1.0, 6),
        per_batch in proptest::collection::vec(0.0..0.9, 6),
        ends in (0.0..20.0, 0.0..150.0),
    ) {
        let end = Cost { packet: ends.0, batch: ends.1 };
        let graph = with_batches(graph, &per_batch, Ends { entrance: end, drop: ends.0, exit: end });
        let promises = [cpu(&attainable(&graph, &drops, true))];
        let plan = solve(&graph, &promises, options());
        match exhaustive(&graph, &promises) {
            None => prop_assert!(plan.is_err()),
            Some(most) => {
                let plan = plan.unwrap();
                prop_assert_eq!(plan.proof, Proof::Most);
                let served = plan.tasks.throughput();
                prop_assert!((served / most - 1.0).abs() < 1e-5, "{served} of {most}");
                checked(&plan, &promises)?;
            }
        }
    }

    #[test]
    fn a_bound_is_never_below_what_is_served(
        graph in trees(2..=7, (10.0..200.0).boxed()),
        drops in proptest::collection::vec(0.3..1.0, 7),
        port in 1.0..100.0,
    ) {
        let mut graph = graph;
        graph.modules[0].kind = Kind::Port;
        graph.modules[0].cycles = port;
        // A class that ends at the port has no cycles of its own.
        prop_assume!(graph.classes.iter().all(|class| class.exit != 0));
        let promises = [cpu(&attainable(&graph, &drops, true))];
        let levels = Levels::of(&graph, &promises).unwrap();
        let whole = Whole::named(&graph, &promises, &levels);
        if let Ok(plan) = solve(&graph, &promises, options()) {
            let starts: Vec<bool> =
                (0..graph.modules.len()).map(|m| plan.tasks.tasks.iter().any(|task| task.start == m)).collect();
            let most = bound(&InPlace::of(&graph, &starts).graph, whole.as_ref());
            prop_assert!(plan.tasks.throughput() <= most * (1.0 + 1e-6), "{} of {most}", plan.tasks.throughput());
        }
    }
}

#[test]
fn a_queue_that_gives_full_batches_is_worth_a_task_more() {
    // Figure 5.3: A, then B or C, which take 100 cycles in batches of 16, and half of that in full ones.
    let plain = graph(&[(None, 100.0), (Some(0), 100.0), (Some(0), 100.0)], &[(1, 1e8), (2, 1e8)]);
    let end = Cost { packet: 2.0, batch: 0.0 };
    let mut graph = Graph { queue_cycles: 4.0, queue_ends: Ends { entrance: end, drop: 0.0, exit: end }, ..plain };
    for m in [1, 2] {
        graph.modules[m].batch = 16.0;
        graph.modules[m].per_batch = 1600.0;
    }
    let promise = [cpu(&[1.05, 1.0])];
    let with = |objective| solve(&graph, &promise, Options { objective, ..options() }).unwrap();
    let (fewest, most) = (with(Objective::FewestTasks), with(Objective::MostPackets));
    assert_eq!((fewest.tasks.tasks.len(), most.tasks.tasks.len()), (2, 3));
    assert!(most.tasks.throughput() > 1.2 * fewest.tasks.throughput());
    assert!(most.tasks.error(&promise[0]) < 1e-6);
}

#[test]
fn a_classifier_that_tells_fewer_apart_tries_fewer() {
    let modules = [(None, 10.0), (Some(0), 10.0), (Some(0), 10.0), (Some(0), 10.0)];
    let plain = graph(&modules, &[(1, 1e6), (2, 1e6), (3, 2e6)]);
    let graph = Graph { classify_cycles: 100.0, classify_each: 20.0, ..plain };
    // Of four packets two are found at once, one by the second try, one by the third.
    let all = graph.classifier(&[0, 1, 2]);
    assert!((all - 100.0).abs() < 1e-9);
    assert!((graph.classifier(&[2]) - (100.0 - 20.0 * 0.75)).abs() < 1e-9);
}

#[test]
fn batches_are_of_those_packets_that_come() {
    assert!((batch(1.0) - 32.0).abs() < 1e-9);
    assert!((batch(0.2) - 6.4).abs() < 0.01);
    assert!(batch(1e-6) < 1.001);
}
