//! The fuzzers' seeds, played on the stable toolchain: what the fuzzers hold must hold of these at least.

#[path = "../fuzz/borders.rs"]
mod borders;
#[path = "../fuzz/fragments.rs"]
mod fragments;
#[path = "../crates/packet/tests/wire/frames.rs"]
mod frames;
#[path = "../fuzz/pipeline.rs"]
mod pipeline;

use std::path::Path;

fn each_seed(target: &str, mut play: impl FnMut(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let seeds = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut played = 0;
    for seed in seeds {
        let path = seed.expect("a folder's entry").path();
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Cut off anywhere it must hold as well; some of the places will do.
        for cut in (0..=bytes.len()).rev().step_by(1 + bytes.len() / 16) {
            play(&bytes[..cut]);
        }
        played += 1;
    }
    assert!(played > 0, "{}: has no seeds", folder.display());
}

#[test]
fn readers_survive_their_seeds() {
    each_seed("pcap", borders::capture_ends);
    each_seed("bpf", borders::filter_ends);
    each_seed("routes", borders::routes_hold_together);
    each_seed("generator_spec", borders::traffic_is_well_formed);
    each_seed("acl_rules", borders::rules_mean_what_they_say);
    let library = catena_compile::library::signatures();
    each_seed("chain_language", |bytes| catena_policy::fuzz_one(bytes, &library));
}

#[test]
fn a_chain_of_functions_accounts_for_its_seeds() {
    each_seed("functions", pipeline::packets_are_accounted_for);
    each_seed("fragments", fragments::none_gets_past);
    each_seed("layers", |bytes| pipeline::packets_are_accounted_for(&frames::frame(bytes)));
}
