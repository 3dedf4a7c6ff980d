//! Cycles per lookup of the ACL's classifier for lists of 100 to 100,000 rules.
//!
//! `cargo run --release -p catena-functions --example acl_cycles [STYLE...]`

use std::sync::Arc;
use std::time::Instant;

use catena_functions::acl::classifier::Classifier;
use catena_functions::acl::key::KeyV4;
use catena_functions::acl::matcher::Matcher;
use catena_functions::acl::synthetic::{self, Style};

fn cycles() -> u64 {
    // SAFETY: reading the time-stamp counter has no precondition on x86-64.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Median over five runs of the cycles per item.
fn median(items: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = cycles();
            run();
            (cycles() - start) as f64 / items as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "family style   rules  build ms  B/rule  trees   cold   warm   cached: cold   warm  (cycles per packet)"
    );
    for style in Style::ALL {
        if !wanted.is_empty() && !wanted.contains(&format!("{style:?}").to_lowercase()) {
            continue;
        }
        for count in [100, 1_000, 10_000, 100_000] {
            let rules = synthetic::rules_v4(style, count, 1);
            let start = Instant::now();
            let classifier = Classifier::build(&rules).expect("few rules");
            let build = start.elapsed();
            let bytes = classifier.bytes().0 as f64 / count as f64;
            let cold = synthetic::packets_v4(&rules, 1 << 19, 2);
            let mut found = vec![0; cold.len()];
            let cold_cycles = median(cold.len(), || {
                classifier.classify_batch_v4(&cold, &mut found)
            });
            let flows = 10_000;
            let warm_cycles = median(flows * 50, || {
                for _ in 0..50 {
                    classifier.classify_batch_v4(&cold[..flows], &mut found);
                }
            });
            let mut matcher = Matcher::new(Arc::new(classifier), 7);
            let trees = matcher.classifier().trees().0;
            let mut through = |keys: &[KeyV4], times: usize| {
                median(keys.len() * times, || {
                    for _ in 0..times {
                        for (keys, found) in keys.chunks(32).zip(found.chunks_mut(32)) {
                            matcher.classify_v4(keys, found);
                        }
                    }
                })
            };
            let cached_warm = through(&cold[..flows], 50);
            let cached_cold = through(&cold, 4);
            println!(
                "v4     {:5} {count:7} {:9.1} {bytes:7.0} {:6} {cold_cycles:6.1} {warm_cycles:6.1}   {cached_cold:6.1} {cached_warm:6.1}",
                format!("{style:?}"),
                build.as_secs_f64() * 1e3,
                trees,
            );
        }
    }
}
