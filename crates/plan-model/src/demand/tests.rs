//! Chain files become problems with the right shares, sizes and devices.

use catena_policy::{Library, NoFiles, PolicyGraph};

use super::{Options, in_front, problem, shares};
use crate::paper;
use crate::problem::Problem;
use crate::profile::{NETWORK_STEPS, Overheads};

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

#[test]
fn nodes_that_only_the_return_direction_passes_have_their_part_of_it() {
    let graph = graph("chain c { in -> A -> out\n out -> [ \"udp\" ~ 20%: B, else: ] -> C -> in }\n");
    let flow = shares::of(&graph.chains[0]);
    near(&flow.nodes, &[1.0, 0.2, 1.0]);
    near(&flow.entries, &[1.0, 0.2, 0.8]);
    assert_eq!((flow.return_only, flow.edges), (vec![false, true, true], vec![(1, 2, 0.2)]));
}

#[test]
fn a_filter_costs_what_its_steps_do() {
    let rack = "name = \"one\"\n[[server]]\nname = \"s\"\ncores = 1\nsteering_cores = 0\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";
    let rack = crate::rack::parse(rack, &[]).rack.expect("a rack");
    let overheads =
        Overheads { visit: 50.0, classify: 14.0, step: 2.0, branch: 10.0, choice: 8.0, ..Overheads::default() };
    let found_of = |first: &str, parts: [f64; 2]| {
        let text = format!(
            "class a = \"{first}\"\nclass b = \"dst net 203.0.128.0/17\"\n\
             chain x for a {{ in -> A -> out }}\nchain y for b {{ in -> B -> out }}\n"
        );
        let graph = graph(&text);
        (graph.classes[0].filter.steps(), in_front(&graph, &rack, overheads, &parts).classify)
    };
    let found = |first: &str| found_of(first, [0.5, 0.5]);
    let (network, both) = found("dst net 203.0.0.0/17");
    assert_eq!(network, NETWORK_STEPS);
    // Half of the packets try one filter, half both.
    near(&[both], &[10.0 + 1.5 * 14.0 + 8.0]);
    // Of those of which three in four are of one class, 0.81 bits tell the class.
    near(&[found_of("dst net 203.0.0.0/17", [0.75, 0.25]).1], &[10.0 + 1.25 * 14.0 + 8.0 * 0.811_278_124_459_133]);
    near(&[found_of("dst net 203.0.0.0/17", [1.0, 0.0]).1], &[10.0 + 14.0]);
    let (ports, longer) = found("src net 10.0.0.0/8 and udp portrange 1-1000");
    assert!(ports > network);
    near(&[longer], &[both + f64::from(ports - network) * 2.0]);
}

#[test]
fn a_margin_is_over_every_cycle_whoever_adds_it() {
    let rack = "packet_bytes = 512\n[[server]]\nname = \"s\"\ncores = 2\nclock = \"2GHz\"\nnics = [\"40Gbps\"]\n";
    let rack = crate::rack::parse(rack, &[]).rack.expect("a rack");
    let graph = graph(
        "class a = \"udp\"\nclass b = \"tcp\"\nchain x for a { in -> Dedup -> NAT -> out }\n\
         chain y for b { in -> Monitor -> out }\nshare x : y = 1 : 2\n",
    );
    let (catalogue, mut profile) = (paper::catalogue(paper::Forwarding::Anywhere), paper::profile());
    let visit = profile.overheads.visit;
    profile.overheads = Overheads {
        queue: 30.0,
        parse: 40.0,
        parse_batch: 30.0,
        classify: 14.0,
        step: 2.0,
        branch: 10.0,
        choice: 8.0,
        ..profile.overheads
    };
    let made = |profile: &crate::profile::Profile| {
        problem(&graph, &rack, &catalogue, profile, Options::default()).expect("it can be planned")
    };
    let (plain, wide) = (made(&profile), made(&profile.clone().times(1.25)));
    let all = |problem: &Problem| {
        let Overheads { visit, spread, queue, classify, .. } = problem.overheads;
        // One core bounds the share of x; that of y its port.
        let caps = problem.relations.iter().flat_map(|r| r.members()).map(|m| 1e12 / m.cap_bps).take(1);
        let nodes = problem.chains.iter().flat_map(|c| &c.nodes).flat_map(|n| [n.server.unwrap_or(0.0), n.per_batch]);
        [visit, spread, queue, classify].into_iter().chain(nodes).chain(caps).collect::<Vec<f64>>()
    };
    assert!(visit > 0.0 && plain.overheads.classify > 0.0 && all(&plain).len() > 10);
    near(&all(&wide), &all(&plain).iter().map(|cycles| 1.25 * cycles).collect::<Vec<_>>());
    near(&all(&plain.with_margin(1.25)), &all(&wide));
}
