//! How fast captures are read and written, from and to memory: 64-byte packets, the best of three passes.
//!
//! `cargo bench -p catena-packet --bench pcap`; prints one JSON line a case, in the form that all benchmarks of the
//! project share, and exits with 1 if a case is below its floor. The floor is far below what any machine does, so that
//! only a real loss (an allocation or a system call for each record) misses it.

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use catena_packet::pcap::{Format, LinkType, Reader, Record, Writer};

const PACKETS: u64 = 1_000_000;
const PACKET: [u8; 64] = [0x5a; 64];
/// In millions of packets a second.
const FLOOR: f64 = 1.0;

/// Measure three passes over all packets and print the best; returns whether the floor is kept.
fn report(case: &str, mut pass: impl FnMut()) -> bool {
    let mut rates = [0; 3].map(|_| {
        let start = Instant::now();
        pass();
        PACKETS as f64 / start.elapsed().as_secs_f64() / 1e6
    });
    rates.sort_by(f64::total_cmp);
    let (value, spread) = (rates[2], rates[2] - rates[0]);
    println!(
        r#"{{"bench":"pcap","case":"{case}","unit":"Mpps","value":{value:.1},"spread":{spread:.1},"floor":{FLOOR:.1}}}"#
    );
    value >= FLOOR
}

fn write_to(stream: impl io::Write, format: Format) {
    let mut writer = Writer::new(stream, format, LinkType::ETHERNET).expect("a writer");
    for n in 0..PACKETS {
        let record = Record::new(n * 1_000, LinkType::ETHERNET, &PACKET);
        writer.write(&record).expect("room in memory");
    }
    writer.finish().expect("room in memory");
}

fn read_from(file: &[u8]) {
    let mut reader = Reader::new(file).expect("a capture");
    let mut bytes = 0;
    while let Some(record) = reader.next().expect("a good file") {
        bytes += record.bytes.len() as u64 + (record.time_ns & 1);
    }
    assert_eq!(bytes, PACKETS * 64);
}

fn main() -> ExitCode {
    let mut held = true;
    for (name, format) in [("pcap", Format::PCAP), ("pcapng", Format::PCAPNG)] {
        let mut file = Vec::new();
        write_to(&mut file, format);
        held &= report(&format!("read {name}"), || read_from(&file));
        held &= report(&format!("write {name}"), || write_to(io::sink(), format));
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
