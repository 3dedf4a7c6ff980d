//! Cycles per lookup of the ACL's classifier, for lists of 100 to 100,000 rules, with and without
//! the cache of rulings.
//!
//! `cargo bench -p catena-functions --bench acl -- [acl|fw|ipc|overlap]...`, best pinned
//! to a core. *New* are half a million different packets, *known* 10,000 that come again and again;
//! *useless* is the cache while it is on trial with packets that are all new, *resting* after it.

use std::sync::Arc;
use std::time::Instant;

use catena_functions::acl::classifier::Classifier;
use catena_functions::acl::flow::{FlowV4, FlowV6};
use catena_functions::acl::list::{List, Ruling};
use catena_functions::acl::matcher::Matcher;
use catena_functions::acl::rule::{Action, Rule};
use catena_functions::acl::synthetic::{self, Style};
use catena_packet::wire::Seed;

const NEW: usize = 1 << 19;
const KNOWN: usize = 10_000;
const BATCH: usize = 32;
const STRETCH: usize = 64 * BATCH;
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// Looks up a batch without and with the cache.
type Lookup<K, F> = (fn(&Classifier, &[K], &mut [u32]), fn(&mut Matcher, &[F], &mut [Ruling]));

/// Reads the time-stamp counter.
fn now() -> u64 {
    // SAFETY: `rdtsc` has no precondition on x86-64.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Cycles per packet of passes over `keys`, batch by batch: the median over stretches short enough
/// that few of them are interrupted.
fn pass<K, R>(passes: usize, keys: &[K], found: &mut [R], mut lookup: impl FnMut(&[K], &mut [R])) -> f64 {
    let mut times = Vec::new();
    for _ in 0..passes {
        for (keys, found) in keys.chunks(STRETCH).zip(found.chunks_mut(STRETCH)) {
            let start = now();
            for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
                lookup(keys, found);
            }
            times.push((now() - start) as f64 / keys.len() as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure<K, F>(family: &str, name: &str, rules: &[Rule], keys: &[K], (plain, cached): Lookup<K, F>)
where
    F: for<'a> From<&'a K>,
{
    let start = Instant::now();
    let list = match List::new(rules, Action::Deny) {
        Ok(list) => Arc::new(list),
        Err(error) => return println!("{error}"),
    };
    let classifier = list.classifier();
    let build = start.elapsed().as_secs_f64() * 1e3;
    let mut found = vec![0; keys.len()];
    let known = &keys[..KNOWN];
    let plain_new = pass(3, keys, &mut found, |k, f| plain(classifier, k, f));
    let plain_known = pass(100, known, &mut found, |k, f| plain(classifier, k, f));
    let (bytes, trees) = match family {
        "v4" => (classifier.bytes().0, classifier.trees().0),
        _ => (classifier.bytes().1, classifier.trees().1),
    };
    let flows: Vec<F> = keys.iter().map(F::from).collect();
    let mut found = vec![Ruling::DENIED_BY_DEFAULT; keys.len()];
    let mut matcher = Matcher::new(Arc::clone(&list), Seed::from_number(7));
    let mut through = |passes, flows: &[F]| pass(passes, flows, &mut found, |k, f| cached(&mut matcher, k, f));
    let known = through(100, &flows[..KNOWN]);
    // The trial of a cache that has proved useful ends within 50,000 packets of another kind.
    let (useless, rest) = flows.split_at(40_000);
    let useless = through(1, useless);
    through(1, rest);
    let resting = through(3, &flows);
    println!(
        "{family}     {name:8}{:7} {build:9.1} {:7.0} {trees:6}  {plain_new:7.1} {plain_known:7.1}  {known:7.1} {useless:7.1} {resting:7.1}",
        rules.len(),
        bytes as f64 / rules.len() as f64,
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    println!("cycles per packet                              classifier alone  with the cache");
    println!("family style     rules  build ms  B/rule  trees      new   known    known useless resting");
    let v4: Lookup<_, FlowV4> = (Classifier::classify_batch_v4, Matcher::classify_v4);
    let v6: Lookup<_, FlowV6> = (Classifier::classify_batch_v6, Matcher::classify_v6);
    for (name, style) in [("acl", Style::Acl), ("fw", Style::Fw), ("ipc", Style::Ipc)] {
        for count in SIZES.into_iter().filter(|_| chosen(name)) {
            let rules = synthetic::rules_v4(style, count, 1);
            measure("v4", name, &rules, &synthetic::packets_v4(&rules, NEW, 2), v4);
        }
        for count in SIZES.into_iter().filter(|_| chosen(name)) {
            let rules = synthetic::rules_v6(style, count, 1);
            measure("v6", name, &rules, &synthetic::packets_v6(&rules, NEW, 2), v6);
        }
    }
    for count in SIZES.into_iter().filter(|_| chosen("overlap")) {
        let rules = synthetic::overlapping_v4(count, 1);
        measure("v4", "overlap", &rules, &synthetic::packets_v4(&rules, NEW, 2), v4);
    }
}
