//! `unparsed = drop`: a chain drops what is not IPv4, IPv6 or ARP where it enters, counted, whatever comes behind.

use catena_compile::library::signatures;
use catena_compile::{Counts, Host, lower, reduce};
use catena_policy::{Disk, load};

use crate::run::{self, Packet};

const REASON: &str = "not IPv4, IPv6 or ARP";

fn host(text: &str) -> Host {
    let outcome = load("unparsed.catena", text, &signatures(), &Disk);
    lower(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).expect("it can be lowered")
}

fn frame(after_addresses: &[&[u8]]) -> Vec<u8> {
    let mut frame = [&[2; 12], &after_addresses.concat()[..]].concat();
    frame.resize(64, 0);
    frame
}

/// IPv4 as it is, ARP, and IPv4 behind what is not parsed.
fn frames() -> [(&'static str, Vec<u8>, bool); 8] {
    let ip = [&[0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..], &[0, 80, 0, 80, 0, 8, 0, 0]]
        .concat();
    let arp = [0, 1, 8, 0, 6, 4, 0, 1];
    [
        ("IPv4", frame(&[&[8, 0], &ip]), true),
        ("IPv4 behind 0x9200", frame(&[&[0x92, 0, 0, 7, 8, 0], &ip]), true),
        ("ARP", frame(&[&[8, 6], &arp]), true),
        ("SNAP", frame(&[&[0, 36, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ip]), false),
        ("MPLS", frame(&[&[0x88, 0x47, 0, 1, 0x11, 64], &ip]), false),
        ("PPPoE", frame(&[&[0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0, 0x21], &ip]), false),
        ("MPLS behind a tag", frame(&[&[0x81, 0, 0, 7, 0x88, 0x47, 0, 1, 0x11, 64], &ip]), false),
        ("LLDP", frame(&[&[0x88, 0xcc, 2, 7, 4]]), false),
    ]
}

/// Which frames leave, and how many each module dropped for the reason.
fn play(host: &Host, side: usize) -> (Vec<&'static str>, Vec<(String, u64)>) {
    let packets: Vec<Packet> = frames().into_iter().map(|(_, frame, _)| (side, 1, frame)).collect();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let observed = run::run(host, &packets, folder.path());
    let mut left: Vec<u64> = observed.out.iter().map(|(_, clock, _)| *clock).collect();
    left.sort_unstable();
    let dropped = observed.counted.iter().filter_map(|(name, counted)| Some((name.clone(), *counted.2.get(REASON)?)));
    (left.iter().map(|clock| frames()[*clock as usize - 1].0).collect(), dropped.collect())
}

#[test]
fn a_chain_drops_what_is_not_parsed() {
    let all: Vec<_> = frames().iter().map(|(name, ..)| *name).collect();
    let parsed: Vec<_> = frames().iter().filter(|(.., parsed)| *parsed).map(|(name, ..)| *name).collect();
    let count = (all.len() - parsed.len()) as u64;
    let both = host("chain c { unparsed = drop  in <-> Monitor() <-> out }");
    assert_eq!(play(&both, 0), (parsed.clone(), vec![("unparsed".to_owned(), count)]));
    assert_eq!(play(&both, 1), (parsed.clone(), vec![("unparsed back".to_owned(), count)]));
    let (reduced, _) = reduce(both, Counts::Functions).expect("it can be reduced");
    assert_eq!(play(&reduced, 0), (parsed, vec![("unparsed".to_owned(), count)]));
    for said in ["", "unparsed = pass"] {
        assert_eq!(play(&host(&format!("chain c {{ {said}  in -> Monitor() -> out }}")), 0), (all.clone(), vec![]));
    }
}

/// Each chain says it for itself.
#[test]
fn other_chains_are_left_alone() {
    let two = host(
        "class tagged = \"vlan\"\nchain strict for tagged { unparsed = drop  in -> Monitor() -> out }\n\
         chain lax { in -> Monitor() -> out }",
    );
    let all = frames().into_iter().map(|(name, ..)| name).filter(|name| *name != "MPLS behind a tag").collect();
    assert_eq!(play(&two, 0), (all, vec![("strict/unparsed".to_owned(), 1)]));
    let shown = two.to_string();
    assert!(shown.contains("strict/unparsed: drops what is not IPv4, IPv6 or ARP"), "{shown}");
}
