//! What classes and branches cost: filters as conditions on parsed headers, beside the programs that libpcap compiles
//! them to, in cycles per packet of a branch that tries them in order.
//!
//! `cargo bench -p catena-compile --bench filters`; exits with 1 if conditions cost more than 1.1 times what programs do,
//! in a row of each of three tries. Headers are parsed in both, as the functions behind need them. Rounds take turns; a
//! figure is the median of its rounds.

use std::process::ExitCode;

use catena_dataplane::branch::bpf::{Insn, Program};
use catena_dataplane::branch::{Arm, Branch, Test, View};
use catena_dataplane::clock::hertz;
use catena_dataplane::worker::{pin_this_thread, thread_cpu_ns};
use catena_dataplane::{Context, Module};
use catena_packet::random::SplitMix64;
use catena_packet::wire::Seed;
use catena_packet::{BATCH, Batch, Depot};
use catena_policy::{Filter, Libpcap};

const BAR: f64 = 1.1;
const TRIES: usize = 3;
const ROUNDS: usize = 101;
/// Batches in a round.
const ROUND: usize = 64;

/// What is tried in order, with `{}` for the number of the class.
const CASES: [(&str, &str, u32); 7] = [
    ("1 network", "dst net 203.0.{}.0/24", 1),
    ("16 networks", "dst net 203.0.{}.0/24", 16),
    ("1 port", "tcp port 100{}", 1),
    ("16 ports", "udp dst port 100{}", 16),
    ("network, protocol and ports", "src net 10.0.0.0/8 and tcp dst port (80 or 443 or 100{})", 1),
    ("16 of them", "src net 10.0.0.0/8 and (udp dst portrange 100{}-100{} or dst net 203.0.{}.0/24)", 16),
    ("TCP flags", "tcp[tcpflags] & tcp-syn != 0 and dst net 203.0.{}.0/24", 1),
];

/// Frames of UDP and TCP to 32 networks and ports, in an order that a processor does not learn.
fn frames() -> Vec<[u8; 64]> {
    let mut series = SplitMix64::new(1);
    let frame = |_| {
        let random = series.bits();
        let class = (random >> 33) as u8 % 32;
        let mut frame = [0; 64];
        frame[12] = 8;
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0, 0, 64, if random >> 62 == 0 { 6 } else { 17 }]);
        frame[26..34].copy_from_slice(&[10, 0, (random >> 40) as u8, 1, 203, 0, class, (random >> 48) as u8]);
        let port = format!("100{class}").parse::<u16>().unwrap_or(0);
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame[38..40].copy_from_slice(&[0, 30]);
        frame[46] = 0x50;
        frame[47] = 2;
        frame
    };
    (0..ROUND * BATCH).map(frame).collect()
}

/// Cycles per packet of one round.
fn round(branch: &mut Branch, cx: &mut Context, frames: &[[u8; 64]]) -> f64 {
    let mut batches: Vec<Batch> = frames
        .chunks(BATCH)
        .map(|chunk| {
            let mut batch = Batch::new();
            for frame in chunk {
                let mut packet = cx.pool().take(frame.len()).expect("packets come back");
                packet.fill(frame);
                batch.push(packet);
            }
            batch
        })
        .collect();
    let start = thread_cpu_ns();
    for batch in &mut batches {
        branch.process(cx, batch);
        cx.parse(batch);
    }
    let took = thread_cpu_ns() - start;
    for batch in &mut batches {
        cx.pool().put_batch(batch);
    }
    took as f64 * hertz() as f64 / 1e9 / frames.len() as f64
}

/// A branch of which all arms lead on, so that packets stay in their batch.
fn branch(filters: &[Filter], test: impl Fn(&Filter) -> Test) -> Branch {
    let mut arms: Vec<Arm> = filters.iter().map(|filter| Arm { when: vec![test(filter)], gate: 0 }).collect();
    arms.push(Arm { when: vec![], gate: 0 });
    Branch::new(arms, Seed::from_number(1))
}

fn program(filter: &Filter) -> Test {
    let insns: Vec<Insn> = filter.program.iter().map(|i| Insn { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
    Test::Program(Box::new(Program::new(&insns).expect("libpcap's programs run")), View::Frame)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() -> ExitCode {
    if !pin_this_thread(0) {
        eprintln!("not pinned to a core");
    }
    let frames = frames();
    let mut cx = Context::new(&Depot::map(2 * ROUND * BATCH, 0).expect("there is memory for packets"), 1);
    let mut missed = false;
    println!("{:30} {:>10} {:>8} {:>6}", "filters", "conditions", "programs", "ratio");
    for (name, text, classes) in CASES {
        let text = |class: u32| text.replace("{}", &class.to_string());
        let filters: Vec<Filter> =
            (0..classes).map(|class| Filter::new(&text(class), &Libpcap).expect("the filters are valid")).collect();
        let mut conditions = branch(&filters, |filter| {
            catena_compile::filter::test(&filter.expression).expect("libpcap's programs run")
        });
        let mut programs = branch(&filters, program);
        let mut fits = false;
        for _ in 0..TRIES {
            let mut figures = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                figures[0].push(round(&mut conditions, &mut cx, &frames));
                figures[1].push(round(&mut programs, &mut cx, &frames));
            }
            let [conditions, programs] = figures.map(median);
            println!("{name:30} {conditions:10.1} {programs:8.1} {:6.2}", conditions / programs);
            fits = conditions <= BAR * programs;
            if fits {
                break;
            }
        }
        missed |= !fits;
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
