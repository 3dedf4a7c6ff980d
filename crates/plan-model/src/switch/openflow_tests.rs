//! Tests of the OpenFlow switch: order of tables, entries, and VLAN numbers.

use proptest::prelude::*;

use super::*;
use crate::switch::pisa::tests::{chain, problem};

/// ACL and monitoring in the first table, tunnels in the second, ACL and forwarding in the third.
fn switch() -> OpenFlow {
    let table = |name: &str, functions: &[&str], entries| FlowTable {
        name: name.into(),
        functions: functions.iter().map(|f| (*f).to_owned()).collect(),
        entries,
    };
    OpenFlow::new(vec![
        table("early", &["ACL", "Monitor"], 100),
        table("vlan", &["Tunnel"], 50),
        table("late", &["ACL", "IPv4Fwd"], 200),
    ])
}

/// A linear chain of functions with their entries.
fn line(functions: &[(&str, u32)]) -> Problem {
    let edges: Vec<(usize, usize)> = (1..functions.len()).map(|to| (to - 1, to)).collect();
    let mut line = chain(vec![Vec::new(); functions.len()], &edges);
    for (node, (function, entries)) in line.nodes.iter_mut().zip(functions) {
        node.function = (*function).to_owned();
        node.openflow = Some(*entries);
    }
    problem(vec![line])
}

fn all(problem: &Problem) -> Vec<Vec<bool>> {
    problem.chains.iter().map(|chain| vec![true; chain.nodes.len()]).collect()
}

#[test]
fn a_path_meets_the_tables_in_their_order() {
    let good = line(&[("Monitor", 1), ("Tunnel", 1), ("ACL", 1)]);
    assert!(switch().verdict(&good, &all(&good)).fits());
    let bad = line(&[("IPv4Fwd", 1), ("Tunnel", 1)]);
    let verdict = switch().verdict(&bad, &all(&bad));
    assert_eq!(verdict.overflows, [Overflow::TableOrder { chain: 0, nodes: vec![0, 1] }]);
    let bad = line(&[("Tunnel", 1), ("ACL", 1), ("IPv4Fwd", 1)]);
    assert!(!switch().verdict(&bad, &all(&bad)).fits(), "two functions, one table");
    // After a stay on a server the packet meets the first table again.
    let apart = line(&[("IPv4Fwd", 1), ("Dedup", 1), ("Tunnel", 1)]);
    assert!(switch().verdict(&apart, &[vec![true, false, true]]).fits());
    assert_eq!(switch().verdict(&apart, &all(&apart)).overflows, [Overflow::Unable { chain: 0, node: 1 }]);
}

#[test]
fn tables_hold_so_many_entries() {
    let early = line(&[("ACL", 100)]);
    assert!(switch().verdict(&early, &all(&early)).fits());
    let two = problem([line(&[("ACL", 150)]).chains, line(&[("ACL", 120)]).chains].concat());
    let verdict = switch().verdict(&two, &all(&two));
    assert!(!verdict.fits(), "270 of 300, but neither fits the early table");
    let much = problem([line(&[("Monitor", 60)]).chains, line(&[("Monitor", 41)]).chains].concat());
    let entries = Use { used: 101, available: 100 };
    let expected = [Overflow::Entries { function: "Monitor".into(), entries }];
    assert_eq!(switch().verdict(&much, &all(&much)).overflows, expected);
    assert_eq!(switch().conflict(&much, &all(&much)), Some(vec![(0, 0), (1, 0)]));
    // The list alone would put the first ACL in the early table.
    let tight = problem([line(&[("ACL", 90), ("Tunnel", 1)]).chains, line(&[("ACL", 200)]).chains].concat());
    assert!(switch().verdict(&tight, &all(&tight)).fits());
    let layout = switch().layout(&tight, &all(&tight));
    assert_eq!(layout[2].holds, [(1, 0)]);
    assert_eq!(layout[2].entries, Use { used: 200, available: 200 });
}

#[test]
fn twelve_bits_number_4094_places() {
    let chains = |n: usize| problem(vec![line(&[("ACL", 0)]).chains.remove(0); n]);
    // One number where packets enter, and one for those that come back.
    let most = chains(2047);
    assert_eq!(switch().verdict(&most, &[]).vlan_ids, Use { used: 4094, available: 4094 });
    assert!(switch().verdict(&most, &[]).fits());
    let more = chains(2048);
    let vlan_ids = Use { used: 4096, available: 4094 };
    assert_eq!(switch().verdict(&more, &[]).overflows, [Overflow::VlanIds(vlan_ids)]);
}

proptest! {
    #[test]
    fn what_is_left_of_a_set_that_fits_fits(
        lines in prop::collection::vec(prop::collection::vec((0_usize..4, 0_u32..120, any::<bool>()), 1..5), 1..4),
        drop in any::<usize>(),
    ) {
        let name = |kind: usize| ["ACL", "Monitor", "Tunnel", "IPv4Fwd"][kind];
        let build = |nodes: &Vec<(usize, u32, bool)>| {
            line(&nodes.iter().map(|&(kind, entries, _)| (name(kind), entries)).collect::<Vec<_>>()).chains
        };
        let problem = problem(lines.iter().flat_map(build).collect());
        let mut set: Vec<Vec<bool>> = lines.iter().map(|nodes| nodes.iter().map(|n| n.2).collect()).collect();
        let nodes = crate::switch::members(&set);
        if !nodes.is_empty() && switch().verdict(&problem, &set).fits() {
            let (chain, node) = nodes[drop % nodes.len()];
            set[chain][node] = false;
            prop_assert!(switch().verdict(&problem, &set).fits());
        }
    }
}
