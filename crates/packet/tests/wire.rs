//! Property tests of the wire code: arbitrary bytes, and frames made of them, against a slow reference parser.

mod frames;
mod properties;
mod reference;
mod rewriting;

use catena_packet::wire::{Malformed, parse};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..160)) {
        properties::layers_agree(&bytes);
        properties::views_never_panic(&bytes);
        rewriting::rewrites(&bytes);
        properties::flow_agrees(&bytes);
    }

    #[test]
    fn likely_frames(bytes in vec(any::<u8>(), 60..400)) {
        let frame = frames::frame(&bytes);
        properties::layers_agree(&frame);
        properties::views_agree_with_layers(&frame);
        properties::flow_agrees(&frame);
        // Every header of the frame, as the view that may be meant for it sees it.
        for at in (0..frame.len()).step_by(2) {
            properties::views_never_panic(&frame[at..]);
            rewriting::rewrites(&frame[at..]);
        }
    }
}

/// Headers of tunnels, which no generated frame holds: random flags and lengths around those that are valid.
#[test]
fn likely_tunnels() {
    let seed = catena_packet::wire::Seed::from_number(5);
    for number in 0..50_000 {
        let mut bytes: Vec<u8> = (0..10).flat_map(|word| seed.hash2([number, word]).to_le_bytes()).collect();
        bytes[0] &= [0xb0, 0x08, 0x0f][number as usize % 3];
        bytes[1] &= [0, 0xff, 0xcf][number as usize % 3];
        properties::views_never_panic(&bytes);
        rewriting::rewrites(&bytes);
    }
}

/// The generator reaches every reason to drop that the parser has, and most of its frames are good.
#[test]
fn frames_reach_every_reason() {
    // The others belong to views that the parser does not use.
    let of_the_parser = |malformed: &Malformed| {
        let reason = malformed.reason();
        !["option", "GRE", "VXLAN with", "VXLAN header", "NSH", "neither"].iter().any(|other| reason.contains(other))
            || *malformed == Malformed::Ipv6ExtensionOrder
    };
    let mut missing: Vec<_> = Malformed::ALL.iter().copied().filter(of_the_parser).collect();
    let mut good = 0;
    const FRAMES: u64 = 200_000;
    let seed = catena_packet::wire::Seed::from_number(3);
    for number in 0..FRAMES {
        let bytes: Vec<u8> = (0..48).flat_map(|word| seed.hash2([number, word]).to_le_bytes()).collect();
        match parse(&frames::frame(&bytes)) {
            Ok(_) => good += 1,
            Err(malformed) => missing.retain(|&reason| reason != malformed),
        }
    }
    assert!(missing.is_empty(), "never seen: {missing:?}");
    assert!(good > FRAMES / 2, "{good} good frames of {FRAMES}");
}
