//! Lan's dissertation, Figure 3.8: the most that a rack of 24 servers and 24 external ports carries, with
//! instances placed by E2's algorithm (ours, and the paper's alone), packed depth-first, and at random.

use catena_plan::e2::random;
use catena_plan::e2::throughput::{Cluster, Component, Sustained, Work, bound, maximum};
use catena_plan::e2::traffic::Traffic;
use catena_plan::e2::{balance, pack, swap};
use catena_plan::random::Random;
use catena_records::record::{Point, Record, median};

use crate::graphs::{self, Graph};

/// Figures of the prototype (§3.6): one 10 Gbps link a server, 16 cores of which E2D has one, and a switch with
/// 48 ports.
const CLUSTER: Cluster =
    Cluster { servers: 24, cores: 15, link_bps: 10e9, ports: 24, port_bps: 10e9, switch_bps: 480e9 };
/// Steps of traffic tried.
const STEPS: u32 = 48;

/// One figure relative to another.
type Ratio = fn(&Found) -> f64;

/// What each way of placing sustains.
struct Found {
    sliced: Sustained,
    ours: Sustained,
    paper: Sustained,
    packing: Sustained,
    random: Sustained,
    /// What no placement carries more than, and why.
    bound: Sustained,
}

fn find(graph: &Graph, cluster: &Cluster, seed: u64) -> Option<Found> {
    let work = Work {
        policy: &graph.policy,
        splitting: &graph.splitting,
        capacities_bps: &graph.capacities,
        steps: STEPS,
        slices: &[],
    };
    let links = vec![cluster.link_bps; cluster.servers];
    let mut numbers = Random::new(seed);
    Some(Found {
        sliced: maximum(&Work { slices: &[24, 12, 8, 6, 4], ..work }, cluster, |graph, cores| {
            balance::place(graph, cores, &links)
        })?,
        ours: maximum(&work, cluster, |graph, cores| balance::place(graph, cores, &links))?,
        paper: maximum(&work, cluster, |graph, cores| swap::paper(&Traffic::of(graph), cores))?,
        packing: maximum(&work, cluster, |graph, cores| pack::depth_first(&Traffic::of(graph), cores))?,
        random: maximum(&work, cluster, |graph, cores| random::place(graph.instances.len(), cores, &mut numbers))?,
        bound: bound(&work, cluster),
    })
}

/// Measure `samples` graphs of each of the two kinds, with functions that carry so many bits per second a core: all
/// `alike`, or that on average.
pub fn records(core_bps: f64, alike: bool, samples: u64) -> Vec<Record> {
    let mut records = Vec::new();
    type Make = fn(f64, &mut Random) -> Graph;
    let kinds: [(&str, Make, f64, f64); 2] = [
        ("line of 5", |bps, random| graphs::line(5, bps, random), 1.0 / 2.25, 1.0),
        ("random graph of 10", |bps, random| graphs::random_graph(10, 2.0, bps, random), 1.0 / 2.59, 0.78),
    ];
    // Which of the two graphs has 2.25 and which 2.59 the text does not say.
    for (kind, make, paper_random, paper_packing) in kinds {
        let graph = |seed| {
            let graph = make(core_bps, &mut Random::new(seed));
            if alike { graph.alike(core_bps) } else { graph }
        };
        let found: Vec<Found> = (0..samples).filter_map(|seed| find(&graph(seed), &CLUSTER, seed)).collect();
        let core = core_bps / 1e9;
        let functions = if alike { "alike" } else { "that differ" };
        let record = |what: &str, unit: &str, value: fn(&Found) -> f64| {
            let (value, spread) = median(&mut found.iter().map(value).collect::<Vec<f64>>());
            let case = format!("{kind} {functions}, {core} Gbps a core: {what}");
            Record { bench: "e2".into(), case, unit: unit.into(), value, spread, ..Record::default() }
        };
        let gbps = |what: &str, value: fn(&Found) -> Sustained| {
            let count = |component| found.iter().filter(|f| value(f).component == component).count();
            let limit = format!(
                "cores {}, links {}, switch {}, ports {} of {}",
                count(Component::Core),
                count(Component::Link),
                count(Component::Switch),
                count(Component::Ports),
                found.len()
            );
            let (bps, spread) = median(&mut found.iter().map(|f| value(f).bps / 1e9).collect::<Vec<f64>>());
            let (figure, axis) = (format!("Figure 3.8, {kind} {functions}"), "Gbit/s a core".to_owned());
            let point = Some(Point { figure, axis, x: core, line: what.to_owned() });
            Record { limit: Some(limit), value: bps, spread, point, ..record(what, "Gbit/s", |_| 0.0) }
        };
        records.extend([
            gbps("ours, sized in slices", |f| f.sliced),
            gbps("ours, sized as the paper", |f| f.ours),
            gbps("the paper's algorithm", |f| f.paper),
            gbps("packing", |f| f.packing),
            gbps("random", |f| f.random),
            gbps("no placement more than", |f| f.bound),
        ]);
        // Where no placement carries so many times what random ones do, the bar cannot be kept.
        let (possible, _) = median(&mut found.iter().map(|f| f.random.bps / f.bound.bps).collect::<Vec<f64>>());
        let bar = Some(1.0 / 2.25).filter(|bar| possible <= *bar);
        let ratios: [(&str, Ratio, Option<f64>, Option<f64>); 5] = [
            ("random/ours in slices", |f| f.random.bps / f.sliced.bps, bar, Some(paper_random)),
            ("random/ours", |f| f.random.bps / f.ours.bps, None, Some(paper_random)),
            ("random/the paper's algorithm", |f| f.random.bps / f.paper.bps, None, Some(paper_random)),
            ("packing/ours", |f| f.packing.bps / f.ours.bps, Some(1.0), Some(paper_packing)),
            ("the paper's algorithm/ours", |f| f.paper.bps / f.ours.bps, Some(1.0), None),
        ];
        for (what, value, bar, paper) in ratios {
            let worst = found.iter().map(value).fold(0.0, f64::max);
            let least =
                if what.starts_with("random") { format!("; no placement below {possible:.2}") } else { String::new() };
            let limit = Some(format!("worst of {}: {worst:.2}{least}", found.len()));
            records.push(Record { bar, paper, limit, ..record(what, "ratio", value) });
        }
    }
    records
}
