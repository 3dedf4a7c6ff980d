//! How fast captures are read and written, from and to memory.
//!
//! The floor that is asserted is far below what any machine does, so that only a real loss (an
//! allocation or a system call per record) fails the test; the figures are printed.

use std::io;
use std::time::Instant;

use catena_packet::pcap::{Format, LinkType, Reader, Record, Writer};

const PACKETS: u64 = 1_000_000;
const PACKET: [u8; 64] = [0x5a; 64];

/// Millions of packets a second that `f` handles, at the best of three.
fn mpps(mut f: impl FnMut()) -> f64 {
    let best = (0..3)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    PACKETS as f64 / best / 1e6
}

fn write_to(stream: impl io::Write, format: Format) {
    let mut writer = Writer::new(stream, format, LinkType::ETHERNET).expect("a writer");
    for n in 0..PACKETS {
        let record = Record::new(n * 1_000, LinkType::ETHERNET, &PACKET);
        writer.write(&record).expect("room in memory");
    }
    writer.finish().expect("room in memory");
}

#[test]
fn records_pass_by_the_million() {
    for (name, format) in [("pcap", Format::PCAP), ("pcapng", Format::PCAPNG)] {
        let mut file = Vec::new();
        write_to(&mut file, format);
        let reading = mpps(|| {
            let mut reader = Reader::new(&file[..]).expect("a capture");
            let mut bytes = 0;
            while let Some(record) = reader.next().expect("a good file") {
                bytes += record.bytes.len() as u64 + (record.time_ns & 1);
            }
            assert_eq!(bytes, PACKETS * 64);
        });
        let writing = mpps(|| write_to(io::sink(), format));
        eprintln!("{name}: {reading:.1} Mpps read, {writing:.1} Mpps written (64-byte packets)");
        assert!(reading > 1.0 && writing > 1.0);
    }
}
