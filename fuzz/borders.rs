//! Every reader of what comes from outside: whatever the bytes, it returns, and what it accepts holds together.

use std::hint::black_box;

use catena_dataplane::branch::bpf::{Insn, Program};
use catena_dataplane::generator::{Generator, Spec};
use catena_dataplane::{Context, Pulled, Source};
use catena_functions::acl::classifier::Classifier;
use catena_functions::acl::key::{KeyV4, KeyV6};
use catena_functions::acl::rule::Rule;
use catena_functions::acl::{iptables, parse, synthetic};
use catena_functions::ipv4fwd::routes;
use catena_packet::pcap::{MAX_RECORD, Reader};
use catena_packet::wire;
use catena_packet::{Batch, Depot};

/// Most rules of a list that is compiled: more take long, and show nothing that few do not.
const MOST_RULES: usize = 64;
/// Flows of a generator that is run: each takes memory.
const MOST_FLOWS: u64 = 1000;
/// Batches pulled of a generator.
const PULLS: usize = 4;

/// Read a capture file to its end or to where it is wrong.
pub fn capture_ends(file: &[u8]) {
    let Ok(mut reader) = Reader::new(file) else { return };
    let mut records = 0;
    while let Ok(Some(record)) = reader.next() {
        assert!(record.bytes.len() <= MAX_RECORD, "a record beyond the bound");
        black_box(record.bytes);
        records += 1;
    }
    assert_eq!(reader.records(), records);
}

/// Check a filter program and run it: a byte for the number of instructions, eight for each, then the packet.
pub fn filter_ends(bytes: &[u8]) {
    let Some((&count, rest)) = bytes.split_first() else { return };
    let (program, packet) = rest.split_at(rest.len().min(usize::from(count) * 8));
    let insns: Vec<Insn> = program
        .chunks_exact(8)
        .map(|b| Insn {
            code: u16::from_be_bytes([b[0], b[1]]),
            jt: b[2],
            jf: b[3],
            k: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
        })
        .collect();
    match Program::new(&insns) {
        Ok(program) => {
            black_box(program.matches(packet));
            black_box(program.matches(&[]));
        }
        Err(invalid) => assert!(invalid.at < insns.len().max(1), "{invalid:?} of {} instructions", insns.len()),
    }
}

/// Read routes; what is accepted is in order, and every next hop stands in the list.
pub fn routes_hold_together(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match routes::parse(&text) {
        Ok(routes) => {
            assert!(routes.ipv4.is_sorted_by(|a, b| a.0 < b.0) && routes.ipv6.is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!(routes.hops.len(), routes.hop_lines.len());
        }
        Err(error) => {
            let line = text.lines().nth(error.line - 1).expect("an error names a line of the text");
            assert!(error.column - 1 + error.width <= line.chars().count() + 1, "{error} is beyond its line");
        }
    }
}

/// Read a generator's specification and pull some of its traffic, of at most a thousand flows: every frame parses.
pub fn traffic_is_well_formed(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut spec = match text.parse::<Spec>() {
        Ok(spec) => spec,
        Err(error) => {
            black_box(error.to_string());
            return;
        }
    };
    spec.flows = spec.flows.min(MOST_FLOWS);
    let mut generator = Generator::new(&spec).expect("what the reader accepts can be made");
    let depot = Depot::map(64, 64).expect("there is memory for a few packets");
    let mut cx = Context::new(&depot, 1);
    let mut batch = Batch::new();
    for pull in 1..=PULLS {
        // A tenth of a second a time, for what waits for the clock.
        cx.set_now(pull as u64 * 100_000_000);
        let pulled = generator.pull(&mut cx, &mut batch);
        for packet in batch.iter() {
            assert!(wire::parse(packet.data()).is_ok(), "{text}: {:?}", packet.data());
        }
        cx.pool().put_batch(&mut batch);
        if pulled == Pulled::Done {
            break;
        }
    }
    drop((generator, cx));
    assert!(depot.all_home(), "a packet buffer is lost");
}

/// Read rules, in Catena's notation and as iptables saves them, and ask the classifier of a short list what the
/// list itself says. The text ends at the first zero byte; packets are made of what is behind it.
pub fn rules_mean_what_they_say(bytes: &[u8]) {
    let (text, packets) = match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let text = String::from_utf8_lossy(text);
    if let Ok(rules) = parse::parse(&text) {
        for rule in &rules {
            let written = rule.to_string();
            assert_eq!(parse::parse_line(&written, rule.line).as_deref(), Ok(&[*rule][..]), "{written}");
        }
        classifier_agrees(&rules, packets);
    }
    for leave_out in [vec![], vec!["conntrack".to_owned()]] {
        if let Ok(read) = iptables::read(&text, &iptables::Options { leave_out, ..Default::default() }) {
            classifier_agrees(&read.rules, packets);
        }
    }
}

fn classifier_agrees(rules: &[Rule], packets: &[u8]) {
    if rules.is_empty() || rules.len() > MOST_RULES {
        return;
    }
    let classifier = Classifier::build(rules).expect("a short list");
    let seed = packets.iter().fold(1, |seed: u64, byte| seed.wrapping_mul(257).wrapping_add((*byte).into()));
    let drawn = packets.chunks_exact(14).map(key_v4);
    for key in synthetic::packets_v4(rules, 16, seed).into_iter().chain(drawn) {
        let first = rules.iter().position(|rule| rule.matches_v4(&key));
        assert_eq!(classifier.classify_v4(&key).map(|rule| rule as usize), first, "{key:?}");
    }
    let drawn = packets.chunks_exact(38).map(key_v6);
    for key in synthetic::packets_v6(rules, 16, seed).into_iter().chain(drawn) {
        let first = rules.iter().position(|rule| rule.matches_v6(&key));
        assert_eq!(classifier.classify_v6(&key).map(|rule| rule as usize), first, "{key:?}");
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn key_v4(b: &[u8]) -> KeyV4 {
    let has_ports = b[13] & 1 != 0;
    let port = |at: usize| if has_ports { number(&b[at..at + 2]) as u16 } else { 0 };
    let (src, dst) = (number(&b[..4]) as u32, number(&b[4..8]) as u32);
    KeyV4 { src, dst, sport: port(8), dport: port(10), protocol: b[12], has_ports }
}

fn key_v6(b: &[u8]) -> KeyV6 {
    let has_ports = b[37] & 1 != 0;
    let port = |at: usize| if has_ports { number(&b[at..at + 2]) as u16 } else { 0 };
    let (src, dst) = (number(&b[..16]), number(&b[16..32]));
    KeyV6 { src, dst, sport: port(32), dport: port(34), protocol: b[36], has_ports }
}
