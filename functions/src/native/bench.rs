//! What the way into C and back costs, in cycles of the time-stamp counter per packet, in batches of 32.
//!
//! `taskset -c 1 cargo bench -p catena-functions --bench native`
//!
//! Each row passes every packet on: in Rust; in C; in C, declaring that it changes no headers, so that they need
//! not be parsed again; and in C with a look-up and an update of a map entry for each packet's source address.

use std::arch::x86_64::_rdtsc;
use std::path::Path;
use std::process::Command;

use catena_dataplane::attribute::Attributes;
use catena_dataplane::module::Verdict;
use catena_dataplane::{Context, Module};
use catena_functions::native::DESCRIPTOR;
use catena_functions::{Args, Build, Tables, Value};
use catena_packet::wire::Seed;
use catena_packet::{BATCH, Batch, Depot};
use catena_state::Share;

struct Pass;

impl Module for Pass {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
        cx.decide(batch, |_, _| Verdict::Gate(0));
    }
}

fn cycles() -> u64 {
    // SAFETY: reads a counter that every x86-64 processor has.
    unsafe { _rdtsc() }
}

/// Cycles per packet, the median of 1,000 stretches of 100 batches.
fn measure(mut module: Box<dyn Module>, sources: u32) -> f64 {
    let depot = Depot::map(512, 0).expect("there is memory for some packets");
    let mut cx = Context::new(&depot, 1);
    let mut batch = Batch::new();
    let mut frame = [0; 64];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17]);
    frame[38..40].copy_from_slice(&[0, 30]);
    while !batch.is_full() {
        let mut packet = cx.pool().take(frame.len()).expect("there are buffers");
        packet.fill(&frame);
        batch.push(packet);
    }
    let mut stretches = Vec::new();
    let mut source = 0;
    for _ in 0..1_000 {
        let start = cycles();
        for _ in 0..100 {
            if sources > 1 {
                for packet in batch.iter_mut() {
                    source = (source + 1) % sources;
                    packet.data_mut()[26..30].copy_from_slice(&source.to_be_bytes());
                }
            }
            module.process(&mut cx, &mut batch);
            assert_eq!(batch.len(), BATCH);
        }
        stretches.push((cycles() - start) as f64 / (100 * BATCH) as f64);
    }
    stretches.sort_by(f64::total_cmp);
    cx.pool().put_batch(&mut batch);
    stretches[stretches.len() / 2]
}

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let lib = folder.path().join("pass.so");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-I"])
        .arg(here.join("../include"))
        .arg("-o")
        .args([&lib, &here.join("src/native/test/pass.c")])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no C compiler here");
        return;
    }
    let native = |symbol: &str| -> Box<dyn Module> {
        let args = Args::default()
            .with("lib", Value::Text(lib.display().to_string()))
            .with("name", Value::Text(symbol.to_owned()));
        let mut attributes = Attributes::default();
        let mut build = Build {
            instance: "it",
            seed: Seed::from_number(1),
            share: Share::WHOLE,
            team: None,
            attributes: &mut attributes,
            taken: &[],
            tables: &Tables::default(),
        };
        (DESCRIPTOR.build)(&args, &mut build).expect("the library is right")
    };
    println!("pass in Rust                        {:5.1}", measure(Box::new(Pass), 1));
    println!("pass in C                           {:5.1}", measure(native("all"), 1));
    println!("pass in C, headers kept             {:5.1}", measure(native("kept"), 1));
    println!("pass in Rust, 10,000 sources set    {:5.1}", measure(Box::new(Pass), 10_000));
    println!("count in C by 10,000 sources        {:5.1}", measure(native("each"), 10_000));
}
