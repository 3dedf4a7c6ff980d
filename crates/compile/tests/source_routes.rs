//! `source_routes`: what an ACL drops for its source route is dropped whatever the chain is reduced to.

use catena_compile::library::signatures;
use catena_compile::{Counts, Host, lower, reduce};
use catena_functions::effects::Way;
use catena_policy::{Disk, load};

use crate::run::{self, Packet};

const REASON: &str = "source route";

fn host(text: &str) -> Host {
    let outcome = load("routes.catena", text, &signatures(), &Disk);
    lower(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).expect("it can be lowered")
}

/// IPv4 to 10.0.0.2 with a loose source route to 10.9.9.9.
fn routed() -> Vec<u8> {
    let header = [0x47, 0, 0, 36, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 131, 7, 4, 10, 9, 9, 9, 0];
    [&[2; 12], &[8, 0][..], &header, &[0, 80, 0, 80, 0, 8, 0, 0]].concat()
}

/// How many packets leave, and which modules dropped how many for their source route.
fn play(host: &Host) -> (usize, Vec<(String, u64)>) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let packets: Vec<Packet> = vec![(0, 1, routed())];
    let observed = run::run(host, &packets, folder.path());
    let dropped = observed.counted.iter().filter_map(|(name, counted)| Some((name.clone(), *counted.2.get(REASON)?)));
    (observed.out.len(), dropped.collect())
}

/// The second ACL is told its verdict by the first, or permits all that the first lets through: it drops the route that
/// the first lets pass.
#[test]
fn a_list_that_does_not_search_drops_source_routes() {
    let second = [
        ("ACL(rules = [\"deny to 10.7.0.0/16\", \"permit any\"])", "told"),
        ("ACL(rules = \"permit any\")", "permits"),
    ];
    for (second, how) in second {
        let text = format!(
            "chain c {{ a = ACL(rules = [\"deny to 10.9.9.9\", \"permit any\"], source_routes = pass)\nb = {second}\n\
             in -> a -> b -> out }}"
        );
        let whole = host(&text);
        let expected = (0, vec![("b".to_owned(), 1)]);
        assert_eq!(play(&whole), expected, "{how}");
        for counts in [Counts::Functions, Counts::Totals] {
            let (reduced, _) = reduce(host(&text), counts).expect("it can be reduced");
            let spared = (0..reduced.modules.len()).filter_map(|module| reduced.spared(module));
            let ways: Vec<&Way> = spared.map(|spared| &spared.ways[0]).collect();
            assert!(ways.iter().any(|way| matches!(way, Way::Told { .. } | Way::Permits)), "{how}: {ways:?}");
            assert_eq!(play(&reduced), expected, "{how}");
        }
        let passes =
            host(&text.replace("])", "], source_routes = pass)").replace("any\")", "any\", source_routes = pass)"));
        assert_eq!(play(&passes), (1, Vec::new()), "{how}");
    }
}
