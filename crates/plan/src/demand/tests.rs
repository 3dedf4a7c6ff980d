//! Chain files become problems with the right shares, sizes and devices.

use catena_policy::{Library, NoFiles, PolicyGraph};

use super::shares;

/// The graph of a chain file; functions need not be known.
fn graph(source: &str) -> PolicyGraph {
    let outcome = catena_policy::load("t.catena", source, &Library::default(), &NoFiles);
    outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))
}

fn near(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-9), "{a:?} is not {b:?}");
}

#[test]
fn a_three_way_branch_without_estimates_divides_evenly() {
    let graph = graph("Encrypt -> LB -> [ NAT, NAT, NAT ] -> IPv4Fwd");
    let flow = shares::of(&graph.chains[0]);
    let third = 1.0 / 3.0;
    near(&flow.nodes, &[1.0, 1.0, third, third, third, 1.0]);
    near(&flow.entries, &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(flow.edges.len(), 7);
}

#[test]
fn what_the_branches_of_a_filter_keep_flows_together_again_at_the_merge() {
    let graph = graph("BPF -> [ \"udp\": A, \"tcp port 80\": B -> C, else: D ] -> E");
    let flow = shares::of(&graph.chains[0]);
    let at = |name: &str| flow.nodes[graph.chains[0].nodes.iter().position(|n| n.function == name).expect("there")];
    near(&[at("A"), at("B"), at("C"), at("D"), at("E")], &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0]);
}
