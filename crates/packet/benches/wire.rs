//! Cycles per packet of the wire code: 10,000 distinct small frames, one pass after the other, median of the passes.
//!
//! Prints one JSON line a case, in the form that all benchmarks of the project share. Cycles are those of the time stamp
//! counter: its rate is constant, so turbo and neighbours show in the spread.

use catena_packet::wire::checksum::{sum, verify_ipv4_checksum};
use catena_packet::wire::{FlowKeyV4, FlowKeyV6, Layers, Malformed, Seed, parse};
use std::hint::black_box;

const FRAMES: usize = 10_000;
const PASSES: usize = 101;

/// A frame of 64 bytes (74 for TCP over IPv6, which is no shorter), in a slot as a packet buffer would have it.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Slot {
    bytes: [u8; 128],
    length: usize,
}

impl Slot {
    fn frame(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn main() {
    let v4 = slots(frame_v4);
    let v6 = slots(frame_v6);
    let tagged = slots(|i| {
        let frame = frame_v4(i);
        [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat()
    });
    let mixed = slots(|i| if random(i) & 64 == 0 { frame_v4(i) } else { frame_v6(i) });
    let seed = Seed::from_number(1);

    report("parse IPv4 TCP and UDP", &v4, |frame| word(parse(frame)));
    report("parse IPv6 TCP and UDP", &v6, |frame| word(parse(frame)));
    report("parse IPv4 and IPv6 at random", &mixed, |frame| word(parse(frame)));
    report("parse IPv4 behind a VLAN tag", &tagged, |frame| word(parse(frame)));
    report("parse, key and hash IPv4", &v4, |frame| {
        let Ok(layers) = parse(frame) else { return 0 };
        FlowKeyV4::read(frame, &layers).map_or(0, |key| key.hash(&seed))
    });
    report("parse, key and hash IPv6", &v6, |frame| {
        let Ok(layers) = parse(frame) else { return 0 };
        FlowKeyV6::read(frame, &layers).map_or(0, |key| key.hash(&seed))
    });
    report("parse, key and symmetric hash IPv4", &v4, |frame| {
        let Ok(layers) = parse(frame) else { return 0 };
        FlowKeyV4::read(frame, &layers).map_or(0, |key| key.symmetric_hash(&seed))
    });
    report("verify an IPv4 checksum", &v4, |frame| verify_ipv4_checksum(&frame[14..34]).into());
    let large = vec![0x5a; 1500];
    report("sum 1500 bytes", &v4, |_| sum(black_box(&large)).into());
}

/// Measure one look at each frame. What it returns is added up, so that nothing is left out.
fn report(case: &str, slots: &[Slot], look: impl Fn(&[u8]) -> u64) {
    let mut cycles: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = now();
            let mut total = 0u64;
            for slot in slots {
                total = total.wrapping_add(look(slot.frame()));
            }
            black_box(total);
            (now() - start) as f64 / slots.len() as f64
        })
        .collect();
    cycles.sort_by(f64::total_cmp);
    let spread = cycles[PASSES * 3 / 4] - cycles[PASSES / 4];
    let value = cycles[PASSES / 2];
    println!(r#"{{"bench":"wire","case":"{case}","unit":"cycles/packet","value":{value:.1},"spread":{spread:.1}}}"#);
}

/// All eight bytes of a result, so that the parser must make them.
fn word(layers: Result<Layers, Malformed>) -> u64 {
    match layers {
        Ok(l) => u64::from(l.l3) ^ u64::from(l.l4) << 8 ^ u64::from(l.payload) << 24 ^ u64::from(l.flags),
        Err(malformed) => panic!("a benchmark frame is malformed: {malformed}"),
    }
}

fn slots(frame: impl Fn(u64) -> Vec<u8>) -> Vec<Slot> {
    (0..FRAMES as u64)
        .map(|i| {
            let frame = frame(i);
            let mut bytes = [0; 128];
            bytes[..frame.len()].copy_from_slice(&frame);
            Slot { bytes, length: frame.len() }
        })
        .collect()
}

fn random(i: u64) -> u64 {
    Seed::from_number(99).hash2([i, 1])
}

/// 64 bytes; TCP or UDP at random.
fn frame_v4(i: u64) -> Vec<u8> {
    let random = random(i).to_be_bytes();
    let mut frame = vec![0; 64];
    frame[12..18].copy_from_slice(&[0x08, 0, 0x45, 0, 0, 50]);
    frame[22] = 64;
    frame[26..34].copy_from_slice(&random);
    frame[34..38].copy_from_slice(&(i as u32).to_be_bytes());
    upper(&mut frame, 23, 34, random[7]);
    frame
}

fn frame_v6(i: u64) -> Vec<u8> {
    let random = random(i).to_be_bytes();
    let mut frame = vec![0; if random[7] & 1 == 0 { 74 } else { 64 }];
    let payload = (frame.len() - 54) as u8;
    frame[12..19].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0]);
    frame[19] = payload;
    frame[30..38].copy_from_slice(&random);
    frame[54..58].copy_from_slice(&(i as u32).to_be_bytes());
    upper(&mut frame, 20, 54, random[7]);
    frame
}

fn upper(frame: &mut [u8], proto_at: usize, l4: usize, random: u8) {
    if random & 1 == 0 {
        frame[proto_at] = 6;
        frame[l4 + 12] = 0x50;
    } else {
        frame[proto_at] = 17;
        let length = frame.len() - l4;
        frame[l4 + 5] = length as u8;
    }
}

/// Read the time stamp counter.
fn now() -> u64 {
    // SAFETY: every x86-64 machine has the instruction; the kernels this runs under do not forbid it.
    unsafe { std::arch::x86_64::_rdtsc() }
}
