//! What holds for all graphs: rates are conserved, affinity groups meet one instance, cores suffice, and
//! placement is at least as good as the paper's, of which a plain transcription stands here.

use proptest::prelude::*;

use super::graph::{PEdge, PEnd, PGraph, Side};
use super::incremental::Growing;
use super::instances::{HASHES, IEnd, IGraph, Range};
use super::keys::{self, Splitting};
use super::traffic::{Places, Traffic};
use super::{balance, pack, random, sample, split, swap, throughput};
use catena_plan_model::catalogue::{Affinity, Fields};
use catena_plan_model::random::Random;
use catena_policy::Direction;

fn affinity() -> impl Strategy<Value = Affinity> {
    prop_oneof![
        Just(Affinity::Any),
        Just(Affinity::Single),
        (0_u8..32).prop_map(|fields| Affinity::Fields(Fields(fields))),
    ]
}

fn fields() -> impl Strategy<Value = Fields> {
    prop_oneof![3 => Just(Fields(0)), 1 => (1_u8..32).prop_map(Fields)]
}

/// Up to six functions, edges any way (merged chains may make circles), and counts.
fn policy() -> impl Strategy<Value = (PGraph, Vec<Splitting>, Vec<u32>)> {
    (1_usize..7).prop_flat_map(|nodes| {
        let end = move |port: Side| {
            (0..nodes + 1).prop_map(move |n| if n == nodes { PEnd::Port(port) } else { PEnd::Node(n) })
        };
        let edge = (end(Side::In), end(Side::Out), 0_u32..1_000_000, any::<bool>())
            .prop_filter("no circle of one", |(a, b, ..)| a != b)
            .prop_map(|(from, to, bps, back)| PEdge {
                direction: if back { Direction::Return } else { Direction::Forward },
                ..sample::edge(from, to, f64::from(bps))
            });
        let splitting = (affinity(), fields()).prop_map(|(affinity, rewrites)| Splitting { affinity, rewrites });
        let sets = prop::collection::vec(edge, 0..15);
        (sets, prop::collection::vec(splitting, nodes), prop::collection::vec(1_u32..6, nodes)).prop_map(
            move |(edges, splitting, counts)| {
                let nodes = (0..nodes).map(|n| sample::node(&n.to_string())).collect();
                (PGraph { nodes, edges }, splitting, counts)
            },
        )
    })
}

/// Every edge of the policy graph is carried in full, every instance gets its node's load in proportion to
/// its range, and the ranges of a node are all hashes without overlap.
fn conserves(policy: &PGraph, graph: &IGraph) {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
    let mut sums = vec![0.0; policy.edges.len()];
    graph.edges.iter().for_each(|e| sums[e.edge] += e.bps);
    assert!(sums.iter().zip(&policy.edges).all(|(&sum, edge)| close(sum, edge.bps)), "{sums:?}");
    let mut loads = vec![0.0; policy.nodes.len()];
    for edge in &policy.edges {
        if let PEnd::Node(to) = edge.to {
            loads[to] += edge.bps;
        }
    }
    for (instance, load) in graph.instances.iter().zip(graph.loads()) {
        assert!(close(load, loads[instance.node] * instance.range.share()), "{load} {instance:?}");
    }
    for instances in &graph.of_node {
        let mut ranges: Vec<Range> = instances.iter().map(|&i| graph.instances[i].range).collect();
        ranges.sort_by_key(|r| r.from);
        assert_eq!((ranges[0].from, ranges[ranges.len() - 1].to), (0, HASHES));
        assert!(ranges.windows(2).all(|w| w[0].to == w[1].from));
    }
    for (id, at) in graph.at.iter().enumerate() {
        let mut expected: Vec<usize> = (0..graph.edges.len())
            .filter(|&e| [graph.edges[e].from, graph.edges[e].to].contains(&IEnd::Instance(id)))
            .collect();
        let mut at = at.clone();
        at.sort_unstable();
        expected.sort_unstable();
        assert_eq!(at, expected);
    }
}

/// Sends a packet whose key's hash at node n is `hashes[n]` along an edge of the policy graph from `from`:
/// which instances could it reach?
fn reached(graph: &IGraph, edge: usize, from: IEnd, target_hash: u64) -> Vec<IEnd> {
    let takes = |e: &&super::instances::IEdge| {
        let range = graph.range(e.to);
        e.edge == edge && e.from == from && (e.hash.is_none() || (range.from <= target_hash && target_hash < range.to))
    };
    graph.edges.iter().filter(takes).map(|e| e.to).collect()
}

fn groups_meet_one_instance(policy: &PGraph, splitting: &[Splitting], graph: &IGraph, hash: u64) {
    for (id, edge) in policy.edges.iter().enumerate() {
        let PEnd::Node(to) = edge.to else { continue };
        let owner = |node: usize, hash: u64| {
            let holds = |&&i: &&usize| graph.instances[i].range.from <= hash && hash < graph.instances[i].range.to;
            IEnd::Instance(*graph.of_node[node].iter().find(holds).expect("what the test made is well formed"))
        };
        let Some(key) = graph.keys[to] else {
            assert_eq!(graph.of_node[to].len(), 1);
            continue;
        };
        // The key may only look at fields in which all packets of a group agree.
        if let Affinity::Fields(fields) = splitting[to].affinity {
            assert!(key.0 != 0 && key.0 & !fields.0 == 0);
        }
        let sources: Vec<(IEnd, u64)> = match edge.from {
            PEnd::Port(side) => vec![(IEnd::Port(side), hash)],
            PEnd::Drop => continue,
            // The packet is at the source by the source's hash: the same one if key and header are the same.
            PEnd::Node(from) => {
                let same = graph.keys[from] == Some(key) && !keys::disturbed(splitting, edge, key);
                let others = [0, 1, HASHES / 3, HASHES / 2, HASHES - 1];
                let at: Vec<u64> = if same { vec![hash] } else { others.to_vec() };
                at.into_iter().map(|h| (owner(from, h), hash)).collect()
            }
        };
        for (from, hash) in sources {
            assert_eq!(reached(graph, id, from, hash), [owner(to, hash)], "edge {id} from {from:?}");
        }
    }
}

proptest! {
    #[test]
    fn instance_graphs_conserve_rates_and_keep_groups_together(
        (policy, splitting, counts) in policy(), hash in 0..HASHES, splits in prop::collection::vec(0_usize..30, 0..12)
    ) {
        let mut graph = IGraph::build(&policy, &splitting, &counts).expect("what the test made is well formed");
        conserves(&policy, &graph);
        groups_meet_one_instance(&policy, &splitting, &graph, hash);
        // And also after splits, which move nothing.
        let cores = [11_u32; 4];
        let mut places = Growing::new(pack::depth_first(&Traffic::of(&graph), &cores).expect("what the test made is well formed"));
        for instance in splits {
            let before = (graph.clone(), places.places().clone());
            let free: u32 = before.1.free.iter().sum();
            match split::halve(&mut graph, &mut places, instance % before.0.instances.len()) {
                Ok(new) => {
                    prop_assert_eq!(new, before.0.instances.len());
                    prop_assert_eq!(&places.places().server[..new], &before.1.server[..]);
                    least_cross(&graph, &before.1, places.places(), new);
                }
                Err(split::Refused::Single) => prop_assert_eq!(&graph, &before.0),
                Err(split::Refused::NoRoom(_)) => prop_assert_eq!(free, 0),
                Err(other) => prop_assert!(false, "{}", other),
            }
            within(places.places(), &cores);
        }
        conserves(&policy, &graph);
        groups_meet_one_instance(&policy, &splitting, &graph, hash);
    }

    #[test]
    fn placement_is_the_papers_and_then_better(
        n in 1_usize..24, edges in prop::collection::vec((0_usize..24, 0_usize..24, 0_i64..20), 0..60),
        cores in prop::collection::vec(0_u32..9, 1..7), seed in any::<u64>()
    ) {
        let edges: Vec<_> = edges.into_iter().map(|(a, b, bps)| (a % n, b % n, bps)).collect();
        let traffic = Traffic::between(n, &edges);
        let room = cores.iter().sum::<u32>() as usize >= n;
        prop_assert_eq!(pack::depth_first(&traffic, &cores).is_ok(), room);
        prop_assert_eq!(swap::place(&traffic, &cores).is_ok(), room);
        prop_assume!(room);

        // Swap by swap as the plain transcription, from either beginning.
        for beginning in [
            pack::depth_first(&traffic, &cores).expect("what the test made is well formed"),
            random::place(n, &cores, &mut Random::new(seed)).expect("what the test made is well formed"),
        ] {
            let plain = swap_all_pairs(&edges, beginning.server.clone());
            let mut ours = beginning.clone();
            let improved = swap::improve(&traffic, &mut ours, false);
            prop_assert_eq!(&ours.server, &plain);
            prop_assert_eq!(improved.saved_bps, traffic.cross(&beginning.server) - traffic.cross(&ours.server));
            prop_assert!(improved.saved_bps >= 0);
            within(&ours, &cores);
            let swapped = traffic.cross(&ours.server);
            let more = swap::improve(&traffic, &mut ours, true);
            prop_assert_eq!(more.saved_bps, swapped - traffic.cross(&ours.server));
            prop_assert!(more.saved_bps >= 0);
            within(&ours, &cores);
        }

        let plain = swap_all_pairs(&edges, pack_plainly(n, &edges, &cores));
        let ours = swap::place(&traffic, &cores).expect("what the test made is well formed");
        within(&ours, &cores);
        prop_assert!(traffic.cross(&ours.server) <= cross(&edges, &plain));
        prop_assert_eq!(traffic.cross(&ours.server), cross(&edges, &ours.server));
        within(&pack::grow(&traffic, &cores).expect("what the test made is well formed"), &cores);
    }

    #[test]
    fn what_takes_several_cores_stays_whole_and_fits(
        (policy, splitting, _) in policy(), sizes in prop::collection::vec(1_u32..5, 7),
        cores in prop::collection::vec(0_u32..9, 1..5), link in 1e3..3e6
    ) {
        let counts = vec![1; policy.nodes.len()];
        let graph = IGraph::build(&policy, &splitting, &counts).expect("what the test made is well formed");
        let traffic = Traffic::of(&graph).sized(&sizes);
        let links = vec![link; cores.len()];
        let fits = |places: &Places| {
            cores.iter().enumerate().all(|(server, &cores)| {
                let on = (0..traffic.len()).filter(|&id| places.server[id] == server).map(|id| traffic.cores(id));
                on.sum::<u32>() + places.free[server] == cores
            })
        };
        let packed = pack::depth_first(&traffic, &cores);
        let placed = balance::place_sized(&graph, &traffic, &cores, &links, None);
        match (&packed, &placed) {
            (Ok(packed), Ok(placed)) => {
                prop_assert!(fits(packed) && fits(placed));
                let mut swapped = packed.clone();
                let improved = swap::improve(&traffic, &mut swapped, true);
                prop_assert!(fits(&swapped) && improved.saved_bps >= 0);
                prop_assert_eq!(improved.saved_bps, traffic.cross(&packed.server) - traffic.cross(&swapped.server));
            }
            // Where one way of packing finds no room, another one may.
            (_, Err(no_room)) => prop_assert!(no_room.needed > no_room.cores || no_room.largest > 1, "{no_room}"),
            (Err(_), Ok(placed)) => prop_assert!(fits(placed)),
        }
    }

    #[test]
    fn links_carry_what_crosses_and_are_relieved(
        (policy, splitting, counts) in policy(), seed in any::<u64>(), link in 1e3..3e6
    ) {
        let graph = IGraph::build(&policy, &splitting, &counts).expect("what the test made is well formed");
        let places = random::place(graph.instances.len(), &[12; 3], &mut Random::new(seed)).expect("what the test made is well formed");
        let load = throughput::load(&graph, &places);
        let out: f64 = load.out_of.iter().sum::<f64>() + load.entering;
        let into: f64 = load.into.iter().sum::<f64>() + load.leaving;
        prop_assert!((out - into).abs() < 1e-3 && (out - load.switch).abs() < 1e-3);

        // Relieving links makes none fuller than the fullest was, and no server too full; placing by links
        // is never worse than the paper's placement, if one link is overbooked at all.
        let fullest = |places: &Places| {
            let load = throughput::load(&graph, places);
            load.into.iter().chain(&load.out_of).fold(0.0, |a: f64, &b| a.max(b))
        };
        let (links, traffic) = ([link; 3], Traffic::of(&graph));
        let mut relieved = places.clone();
        let said = balance::relieve(&graph, &traffic, &mut relieved, &links, None);
        prop_assert!((said * link - fullest(&relieved)).abs() < 1e-3);
        prop_assert!(fullest(&relieved) <= fullest(&places) + 1e-3);
        within(&relieved, &[12; 3]);
        let paper = swap::paper(&traffic, &[12; 3]).expect("what the test made is well formed");
        let ours = balance::place(&graph, &[12; 3], &links).expect("what the test made is well formed");
        within(&ours, &[12; 3]);
        prop_assert!(fullest(&ours) <= fullest(&paper).max(link) + 1e-3);
        within(&pack::by_range(&graph, &[12; 3]).expect("what the test made is well formed"), &[12; 3]);
    }
}

/// No server has more instances than cores, and what is counted free is.
fn within(places: &Places, cores: &[u32]) {
    for (server, &cores) in cores.iter().enumerate() {
        let used = places.server.iter().filter(|&&s| s == server).count();
        assert_eq!(used + places.free[server] as usize, cores as usize);
    }
}

/// No other server with a free core would have had less traffic cross.
fn least_cross(graph: &IGraph, before: &Places, after: &Places, new: usize) {
    let traffic = Traffic::of(graph);
    let chosen = traffic.cross(&after.server);
    for server in (0..before.free.len()).filter(|&s| before.free[s] > 0) {
        let mut other = after.server.clone();
        other[new] = server;
        assert!(chosen <= traffic.cross(&other));
    }
}

/// Cross-partition traffic, edge by edge.
fn cross(edges: &[(usize, usize, i64)], server: &[usize]) -> i64 {
    edges.iter().filter(|&&(a, b, _)| server[a] != server[b]).map(|e| e.2).sum()
}

/// The paper's swapping, to the letter: look at all pairs, swap the best, again.
fn swap_all_pairs(edges: &[(usize, usize, i64)], mut server: Vec<usize>) -> Vec<usize> {
    loop {
        let now = cross(edges, &server);
        let mut best = (0, 0, 0);
        for a in 0..server.len() {
            for b in a + 1..server.len() {
                server.swap(a, b);
                let gain = now - cross(edges, &server);
                server.swap(a, b);
                if server[a] != server[b] && gain > best.0 {
                    best = (gain, a, b);
                }
            }
        }
        if best.0 == 0 {
            return server;
        }
        server.swap(best.1, best.2);
    }
}

/// The paper's packing: one server after the other, by a recursive depth-first search.
fn pack_plainly(n: usize, edges: &[(usize, usize, i64)], cores: &[u32]) -> Vec<usize> {
    fn visit(id: usize, edges: &[(usize, usize, i64)], seen: &mut [bool], order: &mut Vec<usize>) {
        if std::mem::replace(&mut seen[id], true) {
            return;
        }
        order.push(id);
        for next in 0..seen.len() {
            if edges.iter().any(|&(a, b, _)| (a, b) == (id, next) || (b, a) == (id, next)) {
                visit(next, edges, seen, order);
            }
        }
    }
    let (mut seen, mut order) = (vec![false; n], Vec::new());
    (0..n).for_each(|root| visit(root, edges, &mut seen, &mut order));
    let slots = cores.iter().enumerate().flat_map(|(s, &c)| std::iter::repeat_n(s, c as usize));
    let mut server = vec![0; n];
    order.into_iter().zip(slots).for_each(|(id, s)| server[id] = s);
    server
}
