//! How long Alpine's partition takes: the three pipelines of Lan's dissertation, §5.5.3 (Table 5.4), and
//! binary trees (Figure 5.10).
//!
//! `bench-alpine-solve [FILE]` prints a record a case, and writes them to FILE if it is given one.
//!
//! The dissertation does not print its pipelines: it names Click's IP router, firewall and transparent proxy,
//! their number of modules (8, 4, 7), five classes of equal rate, random ratios. Trees of these sizes
//! stand here for them, one module more for the port; where there are fewer exits than classes (the
//! firewall), classes share paths, so that some ratios need the classifier in front. Ratios are drawn
//! anew in each of ten trials: once from what some partition holds ("attainable"), once from 1 to 10
//! whatever the graph ("any").

use std::time::Instant;

use catena_bench::Record;
use catena_bench::record::{median, write};
use catena_plan::alpine::{Alpine, Class, Graph, Kind, Module, Options, Promise, Proof, Refusal, solve};

/// Trials a case.
const TRIALS: u64 = 10;

fn main() {
    let mut records = Vec::new();
    let router = tree(&[None, Some(0), Some(1), Some(2), Some(2), Some(2), Some(2), Some(2)], &[3, 4, 5, 6, 7]);
    let firewall = tree(&[None, Some(0), Some(0), Some(0)], &[1, 2, 3, 1, 2]);
    let proxy = tree(&[None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)], &[3, 4, 5, 6, 6]);
    for (name, graph, paper) in
        [("IP router", &router, 43.41), ("firewall", &firewall, 16.31), ("transparent proxy", &proxy, 23.28)]
    {
        case(&mut records, name, graph, Some(paper * 1e3), Some(100.0));
    }
    for depth in [2, 4, 6, 8, 10] {
        let count = (1usize << depth) - 1;
        let upstream: Vec<Option<usize>> = (0..count).map(|m| (m > 0).then(|| (m.max(1) - 1) / 2)).collect();
        let exits: Vec<usize> = (count / 2..count).collect();
        // Figure 5.10: more than an hour from depth 9 on.
        let paper = (depth == 10).then_some(3.6e6);
        let bar = (depth == 10).then_some(1e4);
        case(&mut records, &format!("binary tree of depth {depth}"), &tree(&upstream, &exits), paper, bar);
    }
    for record in &records {
        println!(
            "{}: {} {} (limit: {})",
            record.case,
            record.value,
            record.unit,
            record.limit.as_deref().unwrap_or("")
        );
    }
    if let Some(file) = std::env::args_os().nth(1)
        && let Err(error) = write(file.as_ref(), &records)
    {
        eprintln!("{}: {error}", file.display());
        std::process::exit(1);
    }
}

/// Modules by upstream, one class for each of `exits`, and a port in front.
fn tree(upstream: &[Option<usize>], exits: &[usize]) -> Graph {
    let port = Module {
        name: "port".to_owned(),
        cycles: 40.0,
        upstream: None,
        kind: Kind::Port,
        cuttable: false,
        replicable: true,
        origin: 0,
    };
    let module = |(m, up): (usize, &Option<usize>)| Module {
        name: format!("m{m}"),
        cycles: 20.0 + (m * 37 % 5) as f64 * 10.0,
        upstream: Some(up.map_or(0, |up| up + 1)),
        kind: Kind::Function,
        cuttable: true,
        replicable: true,
        origin: m + 1,
    };
    let class = |(j, exit): (usize, &usize)| Class {
        name: format!("c{j}"),
        exit: exit + 1,
        packets: 3e6,
        known_in_front: true,
    };
    Graph {
        modules: std::iter::once(port).chain(upstream.iter().enumerate().map(module)).collect(),
        classes: exits.iter().enumerate().map(class).collect(),
        hz: 2.6e9,
        queue_cycles: 25.0,
        classify_cycles: 60.0,
    }
}

fn case(records: &mut Vec<Record>, name: &str, graph: &Graph, paper: Option<f64>, bar: Option<f64>) {
    for attainable in [true, false] {
        let (mut samples, mut proven, mut fewest, mut fronted, mut starved) = (Vec::new(), 0, Vec::new(), 0, 0);
        let mut error: f64 = 0.0;
        for trial in 0..TRIALS {
            let mut random = Random(trial + 1);
            let weights = if attainable { held(graph, &mut random) } else { any(graph, &mut random) };
            let promises = [Promise::Cpu(weights.iter().enumerate().map(|(j, w)| (vec![j], *w)).collect())];
            let start = Instant::now();
            let plan: Result<Alpine, Refusal> = solve(graph, &promises, Options::default());
            samples.push(start.elapsed().as_secs_f64() * 1e3);
            match plan {
                Ok(plan) => {
                    proven += u64::from(matches!(plan.proof, Proof::Exact | Proof::GeneralPosition));
                    fronted += u64::from(!plan.apart.is_empty());
                    fewest.push(plan.tasks.tasks.len());
                    error = error.max(plan.tasks.error(&promises[0]));
                }
                Err(_) => starved += 1,
            }
        }
        let most = samples.iter().copied().fold(0.0, f64::max);
        let (value, spread) = median(&mut samples);
        fewest.sort_unstable();
        let tasks = format!("{}–{}", fewest.first().unwrap_or(&0), fewest.last().unwrap_or(&0));
        let limit = format!(
            "{} modules, {} classes, {tasks} tasks; of {TRIALS}: proven {proven}, classifier in front {fronted}, \
             no plan {starved}; slowest {most:.1} ms; largest error planned {error:.0e}",
            graph.modules.len() - 1,
            graph.classes.len()
        );
        let promises = if attainable { "attainable promises" } else { "any promises" };
        records.push(Record {
            bench: "alpine".to_owned(),
            case: format!("solve {name}: {promises}"),
            unit: "ms".to_owned(),
            value,
            spread,
            bar,
            paper,
            peer: Vec::new(),
            limit: Some(limit),
            ..Record::default()
        });
    }
}

/// What classes get when a third of the modules drop some packets: ratios that some partition holds. Classes
/// with the same path get the same.
fn held(graph: &Graph, random: &mut Random) -> Vec<f64> {
    let mut sigma = vec![1.0; graph.modules.len()];
    for (m, module) in graph.modules.iter().enumerate() {
        let drops = random.next() < 0.34;
        let part = 0.4 + 0.6 * random.next();
        sigma[m] = module.upstream.map_or(1.0, |up| sigma[up]) * if drops { part } else { 1.0 };
    }
    let cycles = |j: usize| graph.path(j).map(|m| sigma[m] * graph.modules[m].charged()).sum();
    (0..graph.classes.len()).map(cycles).collect()
}

fn any(graph: &Graph, random: &mut Random) -> Vec<f64> {
    graph.classes.iter().map(|_| 1.0 + 9.0 * random.next()).collect()
}

/// Numbers that are the same in every run (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", SplitMix).
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) as f64 / u64::MAX as f64
    }
}
