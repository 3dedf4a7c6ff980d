//! SplitMix64 chains, as they are and reduced, on random packets: what can be observed is the same.
//!
//! `CATENA_CASES` says how many chains (default 600; the book's figure is of 20,000).

mod chains;
mod declared;
mod packets;

use std::collections::BTreeMap;

use catena_compile::host::Lowered;
use catena_compile::library::signatures;
use catena_compile::{Counts, Findings, Host, lower, reduce};
use catena_packet::random::SplitMix64;
use catena_policy::{Disk, load};

use crate::run::{self, Observed, Packet};

fn cases() -> u64 {
    std::env::var("CATENA_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(600)
}

/// Lower a chain file whose functions write into a folder.
fn lowered(text: &str, folder: &std::path::Path) -> Host {
    let text = text.replace("\"@", &format!("\"{}/", folder.display()));
    let outcome = load("random.catena", &text, &signatures(), &Disk);
    let graph = outcome.graph.unwrap_or_else(|| panic!("{:?}\n{text}", outcome.diagnostics));
    lower(&graph).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn traffic(random: &mut SplitMix64, host: &Host) -> Vec<Packet> {
    let mut time = 1_600_000_000_000_000_000;
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let count = 150 + random.below(150);
    let packet = |_| {
        time += random.below(2_000_000) as u64;
        let frame = match random.below(3) {
            // Flows have more than one packet.
            0 if !frames.is_empty() => frames[random.below(frames.len() as u32) as usize].clone(),
            _ => packets::frame(random),
        };
        frames.push(frame.clone());
        let side = usize::from(host.entries[1].is_some() && random.below(3) == 0);
        (side, time, frame)
    };
    (0..count).map(packet).collect()
}

fn observe(host: &Host, packets: &[Packet], folder: &std::path::Path) -> Observed {
    let observed = run::run(host, packets, folder);
    for file in observed.files.keys() {
        std::fs::remove_file(folder.join(file)).expect("the file was just read");
    }
    observed
}

/// Reduce random chains; `same` holds what both did against each other. Returns how often each kind of logic was
/// taken out, and how many packets left.
fn compare(
    counts: Counts,
    seed: u64,
    same: impl Fn(&Host, Observed, Observed, &str),
) -> (BTreeMap<&'static str, u64>, u64) {
    let (mut taken, mut left) = (BTreeMap::new(), 0);
    for case in 0..cases() {
        let mut random = SplitMix64::new(seed << 32 | case);
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let text = chains::file(&mut random);
        let host = lowered(&text, folder.path());
        let (reduced, findings) = reduce(host.clone(), counts).expect("what could be lowered can be reduced");
        for finding in findings.taken() {
            *taken.entry(kind(&finding.what)).or_default() += 1;
        }
        let packets = traffic(&mut random, &host);
        let before = observe(&host, &packets, folder.path());
        let after = observe(&reduced, &packets, folder.path());
        left += before.out.len() as u64;
        same(&host, before, after, &explain(case, &text, &findings));
    }
    (taken, left)
}

fn explain(case: u64, text: &str, findings: &Findings) -> String {
    format!("case {case}:\n{text}\n{findings}")
}

/// What was taken out, without names and numbers.
fn kind(what: &str) -> &'static str {
    let kinds = [
        ("rule ", "rules"),
        ("rules ", "rules"),
        ("its verdict", "verdicts"),
        ("its look-up", "look-ups"),
        ("reading", "fields read"),
        ("verifying", "checksums"),
        ("writing", "writes"),
        ("work on", "early drops"),
        ("all work", "lost ways"),
    ];
    kinds.into_iter().find(|(start, _)| what.starts_with(start)).expect("all kinds are listed").1
}

#[test]
fn everything_observed_is_the_same() {
    let (taken, left) = compare(Counts::Functions, 1, |_, before, after, case| {
        assert!(before.out == after.out, "packets out of {case}");
        assert_eq!(before.counted, after.counted, "counts of {case}");
        assert_eq!(before.gauges, after.gauges, "gauges of {case}");
        assert_eq!(before.files, after.files, "records of {case}");
    });
    println!("{taken:?}, {left} packets left");
    for kind in ["rules", "verdicts", "look-ups", "fields read", "checksums", "writes"] {
        assert!(taken.get(kind).is_some_and(|n| n * 100 > cases()), "{kind}: hardly ever taken out: {taken:?}");
    }
    assert!(left > 30 * cases(), "hardly any packet gets through: {left}");
}

/// What left, with when, by side and by what it came in as.
type Ways<'a> = BTreeMap<(bool, &'a [u8]), Vec<(u64, &'a [u8])>>;

/// Return what left, in order, by side and by what it came in as: such packets take the same way.
fn by_way(observed: &Observed) -> Ways<'_> {
    let mut ways: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (side, clock, bytes) in &observed.out {
        let came = &observed.came[*clock as usize - 1];
        ways.entry((*side, came.as_slice())).or_default().push((*clock, bytes.as_slice()));
    }
    ways
}

#[test]
fn early_drops_change_only_which_stateless_function_counts_them() {
    let stateless = |host: &Host| {
        let name = |m: &catena_compile::host::Module| match &m.kind {
            Lowered::Function { descriptor, args, .. } => {
                (!(descriptor.effects)(args).observes).then(|| m.name.clone())
            }
            Lowered::Branch(_) | Lowered::Parsed | Lowered::Discard => Some(m.name.clone()),
            Lowered::Exit(_) => None,
        };
        host.modules.iter().filter_map(name).collect::<Vec<_>>()
    };
    let (taken, _) = compare(Counts::Totals, 2, |host, mut before, mut after, case| {
        // Packets that part and meet again may leave in another order, those that are the same may not.
        assert!(by_way(&before) == by_way(&after), "packets out of {case}");
        let drops = |o: &Observed| o.counted.values().flat_map(|(_, _, drops, _)| drops.values()).sum::<u64>();
        assert_eq!(drops(&before), drops(&after), "drops of {case}");
        for name in stateless(host) {
            before.counted.remove(&name);
            after.counted.remove(&name);
        }
        assert_eq!(before.counted, after.counted, "counts of functions with state of {case}");
        assert_eq!(before.gauges, after.gauges, "gauges of {case}");
        assert_eq!(before.files, after.files, "records of {case}");
    });
    println!("{taken:?}");
    for kind in ["early drops", "lost ways"] {
        assert!(taken.get(kind).is_some_and(|n| n * 100 > cases()), "{kind}: hardly ever: {taken:?}");
    }
}
