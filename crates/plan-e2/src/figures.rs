//! Golden tests: the transformations of Lan's dissertation, Figure 3.3 (a) to (d).

use super::graph::{PGraph, Side};
use super::instances::{IEnd, IGraph};
use super::keys::Splitting;
use super::sample;
use catena_plan_model::catalogue::{Affinity, Fields};

const SOURCE: Affinity = Affinity::Fields(Fields::SOURCE);
const FLOW: Affinity = Affinity::Fields(Fields::FIVE_TUPLE);

/// One line an edge: ends, gigabits per second, and the hash filter in 1/12 of the hashes.
fn picture(policy: &PGraph, affinities: [Affinity; 2], counts: [u32; 2]) -> Vec<String> {
    let splitting = affinities.map(|affinity| Splitting { affinity, rewrites: Fields(0) });
    let graph = IGraph::build(policy, &splitting, &counts).expect("what the test made is well formed");
    let name = |end: IEnd| match end {
        IEnd::Port(Side::In) => "in".into(),
        IEnd::Port(Side::Out) => "out".into(),
        IEnd::Drop => "drop".into(),
        IEnd::Instance(id) => {
            let node = graph.instances[id].node;
            let place = graph.of_node[node].iter().position(|&i| i == id).expect("what the test made is well formed");
            let number = if graph.of_node[node].len() > 1 { (place + 1).to_string() } else { String::new() };
            format!("{}{number}", policy.nodes[node].name)
        }
    };
    let line = |edge: &super::instances::IEdge| {
        let range = graph.range(edge.to);
        let hash = edge.hash.map_or(String::new(), |fields| {
            let by = if fields == Fields::SOURCE { "source" } else { "flow" };
            format!(
                " [{by} {:.0}..{:.0}]",
                range.from as f64 * 12.0 / 2f64.powi(32),
                range.to as f64 * 12.0 / 2f64.powi(32)
            )
        });
        format!("{} -> {} {:.1}{hash}", name(edge.from), name(edge.to), edge.bps / 1e9)
    };
    graph.edges.iter().map(line).collect()
}

#[test]
fn a_original_policy_graph() {
    assert_eq!(
        picture(&sample::line(2, 12e9), [SOURCE, FLOW], [1, 1]),
        ["in -> A 12.0", "A -> B 12.0", "B -> out 12.0"]
    );
}

#[test]
fn b_b_is_split() {
    let expected =
        ["in -> A 12.0", "A -> B1 6.0 [flow 0..6]", "A -> B2 6.0 [flow 6..12]", "B1 -> out 6.0", "B2 -> out 6.0"];
    assert_eq!(picture(&sample::line(2, 12e9), [SOURCE, FLOW], [1, 2]), expected);
}

#[test]
fn c_a_and_b_are_split_and_every_instance_distributes() {
    let expected = [
        "in -> A1 6.0 [flow 0..6]",
        "in -> A2 6.0 [flow 6..12]",
        "A1 -> B1 3.0 [source 0..6]",
        "A1 -> B2 3.0 [source 6..12]",
        "A2 -> B1 3.0 [source 0..6]",
        "A2 -> B2 3.0 [source 6..12]",
        "B1 -> out 6.0",
        "B2 -> out 6.0",
    ];
    assert_eq!(picture(&sample::line(2, 12e9), [FLOW, SOURCE], [2, 2]), expected);
}

#[test]
fn d_a_satisfies_b_and_instances_are_joined_directly() {
    let expected = [
        "in -> A1 6.0 [source 0..6]",
        "in -> A2 6.0 [source 6..12]",
        "A1 -> B1 6.0",
        "A2 -> B2 6.0",
        "B1 -> out 6.0",
        "B2 -> out 6.0",
    ];
    assert_eq!(picture(&sample::line(2, 12e9), [SOURCE, FLOW], [2, 2]), expected);
}

/// Not in the figure: unequal numbers of instances keep what can be kept.
#[test]
fn two_and_three_instances_are_joined_where_ranges_overlap() {
    let expected = [
        "in -> A1 6.0 [source 0..6]",
        "in -> A2 6.0 [source 6..12]",
        "A1 -> B1 4.0 [source 0..4]",
        "A1 -> B2 2.0 [source 4..8]",
        "A2 -> B2 2.0 [source 4..8]",
        "A2 -> B3 4.0 [source 8..12]",
        "B1 -> out 4.0",
        "B2 -> out 4.0",
        "B3 -> out 4.0",
    ];
    assert_eq!(picture(&sample::line(2, 12e9), [SOURCE, FLOW], [2, 3]), expected);
}
