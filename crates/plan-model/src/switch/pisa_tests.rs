//! Tests of the stage packer: Lemur's 10 and 11 translators, dependencies, tags, and monotony.

use proptest::prelude::*;

use super::*;
use crate::catalogue::Match;
use crate::problem::{Chain, Edge, Node, Objective, Replication};
use crate::profile::{FULL_BATCH, Overheads};

/// Tofino, and the stages that Lemur takes for itself.
pub const TOFINO: Stages = Stages { stages: 12, sram_blocks: 80, tcam_blocks: 24, tables: 16, framework_stages: 2 };

pub fn table(entries: u32) -> Table {
    Table {
        name: "t".into(),
        matching: Match::Exact,
        key_bits: 104,
        action_bits: 48,
        entries,
        entries_per_unit: 0.0,
        after: Vec::new(),
    }
}

/// A chain of functions with these tables; the first one is the entry.
pub fn chain(functions: Vec<Vec<Table>>, edges: &[(usize, usize)]) -> Chain {
    let node = |(i, tables): (usize, Vec<Table>)| Node {
        name: format!("n{i}"),
        function: format!("f{i}"),
        share: 1.0,
        entry: if i == 0 { 1.0 } else { 0.0 },
        server: Some(1000.0),
        per_batch: 0.0,
        batch: FULL_BATCH,
        smart_nic: None,
        pisa: Some(tables),
        openflow: None,
        guarded: false,
        return_only: false,
        rewrites: false,
        returns: Default::default(),
        replicable: true,
    };
    Chain {
        name: "c".into(),
        t_min_bps: 0.0,
        t_max_bps: f64::INFINITY,
        ingress_bps: 1e11,
        d_max_ns: f64::INFINITY,
        weight: 1.0,
        packet_bytes: 1500.0,
        nodes: functions.into_iter().enumerate().map(node).collect(),
        edges: edges.iter().map(|&(from, to)| Edge { from, to, share: 1.0 }).collect(),
    }
}

pub fn problem(chains: Vec<Chain>) -> Problem {
    Problem {
        chains,
        servers: Vec::new(),
        smart_nics: Vec::new(),
        switch: None,
        overheads: Overheads::default(),
        bounce_ns: 0.0,
        switch_ns: 0.0,
        replication: Replication::ByState,
        relations: Vec::new(),
        unseen: Vec::new(),
        objective: Objective::Marginal,
    }
}

/// BPF → `nats` translators → IPv4Fwd (Lemur, §5.2). A translator has a table for each direction.
fn extreme(nats: usize) -> Problem {
    let bpf = Table { matching: Match::Ternary, action_bits: 8, ..table(64) };
    let fwd = Table { matching: Match::Prefix, key_bits: 32, action_bits: 16, ..table(1_000) };
    let mut functions = vec![vec![bpf]];
    functions.extend(vec![vec![table(12_000), table(12_000)]; nats]);
    functions.push(vec![fwd]);
    let edges: Vec<(usize, usize)> = (1..=nats).flat_map(|nat| [(0, nat), (nat, nats + 1)]).collect();
    problem(vec![chain(functions, &edges)])
}

fn all_but(problem: &Problem, left: &[usize]) -> Vec<Vec<bool>> {
    problem.chains.iter().map(|chain| (0..chain.nodes.len()).map(|node| !left.contains(&node)).collect()).collect()
}

#[test]
fn twelve_stages_hold_ten_translators_and_not_eleven() {
    let pisa = Pisa::new(TOFINO);
    let ten = extreme(10);
    let verdict = pisa.verdict(&ten, &all_but(&ten, &[]));
    assert!(verdict.fits());
    assert_eq!(verdict.stages, Use { used: 12, available: 12 });

    let eleven = extreme(11);
    let verdict = pisa.verdict(&eleven, &all_but(&eleven, &[]));
    assert!(!verdict.fits() && verdict.proven);
    assert_eq!(verdict.overflows, [Overflow::Stages(Use { used: 13, available: 12 })]);
    // Lemur's own placement: one of the eleven on a server, with tags for its packets.
    let verdict = pisa.verdict(&eleven, &all_but(&eleven, &[5]));
    assert!(verdict.fits());
    assert_eq!(verdict.stages.used, 12);
    // The translators alone are to blame: with either end on a server, a stage for tags takes its place.
    let conflict = (1..=11).map(|nat| (0, nat)).collect();
    assert_eq!(pisa.conflict(&eleven, &all_but(&eleven, &[])), Some(conflict));
    assert_eq!(pisa.conflict(&eleven, &all_but(&eleven, &[5])), None);
}

#[test]
fn without_its_optimisations_ten_translators_take_27_stages_and_by_estimate_14() {
    let eleven = extreme(11);
    let set = all_but(&eleven, &[11]);
    let stages = |generation| Pisa::generated(TOFINO, generation).verdict(&eleven, &set);
    let naive = stages(Generation::Naive);
    assert_eq!(naive.stages, Use { used: 27, available: 12 });
    assert!(!naive.fits());
    let estimate = stages(Generation::Conservative);
    assert_eq!(estimate.stages, Use { used: 14, available: 12 });
    assert!(!estimate.fits());
    assert!(stages(Generation::Packed).fits());
}

#[test]
fn the_layout_shows_each_stage() {
    let ten = extreme(10);
    let pisa = Pisa::new(TOFINO);
    let layout = pisa.layout(&ten, &all_but(&ten, &[]));
    assert_eq!(layout.len(), 12);
    assert_eq!(layout[0].holds, [(0, 0)]);
    assert_eq!(layout[11].holds, [(0, 11)]);
    assert!(layout[1..11].iter().all(|stage| stage.sram == Use { used: 60, available: 80 }));
    assert!(pisa.layout(&extreme(11), &all_but(&extreme(11), &[])).is_empty());
}

fn stages_of(problem: &Problem, left: &[usize]) -> u64 {
    Pisa::new(TOFINO).verdict(problem, &all_but(problem, left)).stages.used
}

#[test]
fn functions_of_a_path_follow_each_other_and_chains_share_stages() {
    let line = chain(vec![vec![table(9)]; 4], &[(0, 1), (1, 2), (2, 3)]);
    assert_eq!(stages_of(&problem(vec![line.clone()]), &[]), 4);
    assert_eq!(stages_of(&problem(vec![line.clone(), line.clone()]), &[]), 4);
    let diamond = chain(vec![vec![table(9)]; 4], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    assert_eq!(stages_of(&problem(vec![diamond]), &[]), 3);
    let ordered = chain(vec![vec![table(9), Table { after: vec![0], ..table(9) }]], &[]);
    assert_eq!(stages_of(&problem(vec![ordered]), &[]), 2);
    let backwards = chain(vec![vec![Table { after: vec![1], ..table(9) }, table(9)]], &[]);
    assert_eq!(stages_of(&problem(vec![backwards]), &[]), 2);
}

#[test]
fn a_stay_on_a_server_breaks_a_path_and_takes_tags() {
    let line = problem(vec![chain(vec![vec![table(9)]; 5], &[(0, 1), (1, 2), (2, 3), (3, 4)])]);
    assert_eq!(stages_of(&line, &[2]), 3, "two and a tag; untagging and two");
    assert_eq!(stages_of(&line, &[4]), 5, "four and a tag");
    assert_eq!(stages_of(&line, &[0]), 5, "untagging and four");
    assert_eq!(stages_of(&line, &[0, 4]), 5, "untagging, three, and a tag");
    assert_eq!(stages_of(&line, &[0, 1, 2, 3, 4]), 2, "steering and tags alone");
}

#[test]
fn what_cannot_be_there_is_named() {
    let pisa = Pisa::new(TOFINO);
    let why = |functions: Vec<Vec<Table>>| {
        let problem = problem(vec![chain(functions, &[])]);
        pisa.verdict(&problem, &all_but(&problem, &[])).overflows
    };
    assert_eq!(why(vec![vec![table(400_000)]]), [Overflow::Sram(Use { used: 978, available: 960 })]);
    let masks = Table { matching: Match::Ternary, ..table(60_000) };
    assert_eq!(why(vec![vec![masks]]), [Overflow::Tcam(Use { used: 354, available: 288 })]);
    let circle = vec![Table { after: vec![1], ..table(9) }, Table { after: vec![0], ..table(9) }];
    assert_eq!(why(vec![circle]), [Overflow::Unable { chain: 0, node: 0 }]);
    let mut none = problem(vec![chain(vec![vec![]], &[])]);
    assert!(pisa.verdict(&none, &all_but(&none, &[])).fits());
    none.chains[0].nodes[0].pisa = None;
    assert_eq!(pisa.verdict(&none, &[vec![true]]).overflows, [Overflow::Unable { chain: 0, node: 0 }]);
    assert!(pisa.verdict(&none, &[]).fits(), "what is not mentioned is not on the switch");
}

#[test]
fn a_large_table_lies_in_several_stages() {
    let big = problem(vec![chain(vec![vec![table(60_000)], vec![table(9)]], &[(0, 1)])]);
    assert_eq!(stages_of(&big, &[]), 3);
}

/// Chains of random functions on a switch so small that little fits, and a set with one node more.
fn sets() -> impl Strategy<Value = (Problem, Stages, Vec<Vec<bool>>, usize)> {
    let table = (0_usize..5, 1_u32..40_000, any::<bool>()).prop_map(|(kind, entries, after)| {
        let matching = [Match::Exact, Match::Exact, Match::Ternary, Match::Prefix, Match::None][kind];
        let entries = if kind < 2 { entries } else { entries / 8 };
        (Table { matching, ..table(entries) }, after)
    });
    let function = prop::collection::vec(table, 0..4).prop_map(|tables| {
        let ordered = |(i, (table, after)): (usize, (Table, bool))| Table {
            after: if after && i > 0 { vec![i - 1] } else { Vec::new() },
            ..table
        };
        tables.into_iter().enumerate().map(ordered).collect::<Vec<Table>>()
    });
    let one = prop::collection::vec((function, any::<u8>(), any::<bool>()), 1..8);
    let stages = (2_u32..7, 40_u32..90, 4_u32..24, 2_u32..5, 0_u32..4);
    (prop::collection::vec(one, 1..4), stages, any::<usize>()).prop_map(|(chains, stages, drop)| {
        let set = chains.iter().map(|nodes| nodes.iter().map(|(_, _, on)| *on).collect()).collect();
        let build = |nodes: Vec<(Vec<Table>, u8, bool)>| {
            let links: Vec<u8> = nodes.iter().map(|(_, links, _)| *links).collect();
            let edges: Vec<(usize, usize)> = (0..nodes.len())
                .flat_map(|to| (0..to).map(move |from| (from, to)))
                .filter(|&(from, to)| links[to] >> from & 1 == 1 && (to - from < 3))
                .collect();
            chain(nodes.into_iter().map(|(tables, _, _)| tables).collect(), &edges)
        };
        let (stages, sram_blocks, tcam_blocks, tables, framework_stages) = stages;
        let stages = Stages { stages, sram_blocks, tcam_blocks, tables, framework_stages };
        (problem(chains.into_iter().map(build).collect()), stages, set, drop)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn what_is_left_of_a_set_that_fits_fits((problem, stages, set, drop) in sets()) {
        for generation in [Generation::Packed, Generation::Conservative, Generation::Naive] {
            let before = Pisa::generated(stages, generation).verdict(&problem, &set);
            let nodes = super::super::members(&set);
            if nodes.is_empty() || !before.fits() {
                continue;
            }
            let (chain, node) = nodes[drop % nodes.len()];
            let mut less = set.clone();
            less[chain][node] = false;
            // A switch that does not remember the larger set.
            let after = Pisa::generated(stages, generation).verdict(&problem, &less);
            prop_assert!(after.fits() || !after.proven, "{generation:?}: {after}");
        }
    }

    #[test]
    fn a_conflict_does_not_fit_and_is_minimal((problem, stages, set, _) in sets()) {
        let pisa = Pisa::new(stages);
        let Some(conflict) = pisa.conflict(&problem, &set) else {
            prop_assert!(pisa.verdict(&problem, &set).fits());
            return Ok(());
        };
        let mut only: Vec<Vec<bool>> = set.iter().map(|nodes| vec![false; nodes.len()]).collect();
        for &(chain, node) in &conflict {
            prop_assert!(set[chain][node]);
            only[chain][node] = true;
        }
        prop_assert!(!pisa.verdict(&problem, &only).fits());
        for &(chain, node) in &conflict {
            only[chain][node] = false;
            prop_assert!(pisa.verdict(&problem, &only).fits());
            only[chain][node] = true;
        }
    }
}
