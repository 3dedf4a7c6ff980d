//! How long Alpine's partition takes: the three pipelines of Lan's dissertation, §5.5.3 (Table 5.4), and
//! binary trees (Figure 5.10).
//!
//! `bench-alpine-solve [FILE]` prints a record a case, and puts them into FILE if it is given one. Costs are made up
//! here; `bench-alpine-run` has measured ones. Ratios are drawn anew in each of ten trials.

mod pipelines;
mod ratios;

use std::time::Instant;

use catena_plan::alpine::{Alpine, Graph, Options, Proof, Refusal, solve};
use catena_records::Record;
use catena_records::record::{median, retire, update};

use pipelines::{Figures, Shape};
use ratios::Draw;

/// Trials a case.
const TRIALS: u64 = 10;

fn main() {
    let mut records = Vec::new();
    for (shape, paper) in Shape::pipelines().iter().zip([43.41, 16.31, 23.28]) {
        case(&mut records, &shape.name, &graph(shape), &[Draw::Attainable, Draw::Any], Some(paper * 1e3), Some(100.0));
    }
    for depth in [2, 4, 6, 8, 10] {
        let shape = Shape::binary(depth);
        // Figure 5.10: more than an hour from depth 9 on.
        let paper = (depth == 10).then_some(3.6e6);
        let bar = (depth == 10).then_some(1e4);
        case(&mut records, &shape.name, &graph(&shape), &[Draw::Attainable, Draw::Any], paper, bar);
    }
    // The integer program of Lan's dissertation, §5.3.2, where neither the closed form nor trying all partitions applies.
    for depth in [4, 5] {
        let shape = Shape::binary(depth);
        case(&mut records, &shape.name, &graph(&shape), &[Draw::EveryOther], None, None);
    }
    if let Some(file) = std::env::args_os().nth(1)
        && let Err(error) =
            update(file.as_ref(), &records).and_then(|()| retire(file.as_ref(), "alpine", "solve ", &records))
    {
        eprintln!("{}: {error}", file.display());
        std::process::exit(1);
    }
}

fn graph(shape: &Shape) -> Graph {
    let modules = (0..shape.upstream.len()).map(|m| 20.0 + (m * 37 % 5) as f64 * 10.0).collect();
    shape.graph(&Figures {
        hz: 2.6e9,
        packets: 3e6,
        port: 40.0,
        modules,
        queue: 25.0,
        classify: 60.0,
        ..Figures::default()
    })
}

fn case(records: &mut Vec<Record>, name: &str, graph: &Graph, draws: &[Draw], paper: Option<f64>, bar: Option<f64>) {
    for draw in draws {
        let (mut samples, mut proven, mut fewest, mut fronted, mut starved) = (Vec::new(), 0, Vec::new(), 0, 0);
        let mut error: f64 = 0.0;
        for trial in 0..TRIALS {
            let promises = [draw.promise(graph, trial)];
            let start = Instant::now();
            let plan: Result<Alpine, Refusal> = solve(graph, &promises, Options::default());
            samples.push(start.elapsed().as_secs_f64() * 1e3);
            match plan {
                Ok(plan) => {
                    if matches!(plan.proof, Proof::Exact | Proof::GeneralPosition) {
                        proven += 1;
                    }
                    if !plan.apart.is_empty() {
                        fronted += 1;
                    }
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
        let record = Record {
            bench: "alpine".to_owned(),
            case: format!("solve {name}: {}", draw.name()),
            unit: "ms".to_owned(),
            value,
            spread,
            bar,
            paper,
            peer: Vec::new(),
            limit: Some(limit),
            ..Record::default()
        };
        println!("{}: {value} {} ({})", record.case, record.unit, record.limit.as_deref().unwrap_or_default());
        records.push(record);
    }
}
