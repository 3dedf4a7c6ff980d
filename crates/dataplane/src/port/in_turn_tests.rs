//! Whatever the times and whoever is asked, packets come in the order of their times.

use std::io::Cursor;

use catena_packet::Depot;
use catena_packet::pcap::{Format, LinkType, Reader, Record, Writer};
use proptest::prelude::*;

use super::*;
use crate::port::CaptureIn;

/// A capture of frames at `times`, for `port`.
fn capture(times: &[u64], port: u16) -> Box<dyn Source> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, Format::PCAPNG, LinkType::ETHERNET).unwrap();
    for &time_ns in times {
        let bytes = [0; 60];
        writer.write(&Record { link: LinkType::ETHERNET, time_ns, bytes: &bytes, original_len: 60 }).unwrap();
    }
    writer.finish().unwrap();
    Box::new(CaptureIn::new(Reader::new(Cursor::new(file)).unwrap(), port))
}

proptest! {
    #[test]
    fn packets_of_two_captures_come_by_their_times(
        mut first in proptest::collection::vec(1u64..1000, 0..200),
        mut second in proptest::collection::vec(1u64..1000, 0..200),
        asked in proptest::collection::vec(0usize..2, 1..50),
    ) {
        first.sort_unstable();
        second.sort_unstable();
        let mut cx = Context::new(&Depot::map(1024, 64).unwrap(), 0);
        let mut sources = in_turn([capture(&first, 0), capture(&second, 1)]);
        let (mut came, mut batch) = (Vec::new(), Batch::new());
        let mut done = [false; 2];
        let mut fruitless = 0;
        for side in asked.iter().copied().chain([0, 1].into_iter().cycle()) {
            done[side] = sources[side].pull(&mut cx, &mut batch) == Pulled::Done;
            fruitless = if batch.is_empty() { fruitless + 1 } else { 0 };
            for packet in batch.drain() {
                prop_assert!(cx.now() >= packet.meta().arrival);
                came.push((packet.meta().arrival, packet.meta().way.port()));
            }
            if done == [true; 2] {
                break;
            }
            prop_assert!(fruitless < asked.len() + 4, "nobody's turn comes");
        }
        let mut expected: Vec<_> = first.iter().map(|&t| (t, 0)).chain(second.iter().map(|&t| (t, 1))).collect();
        expected.sort_unstable();
        prop_assert_eq!(came, expected);
    }
}

#[test]
fn time_stands_at_the_packets_given_not_at_those_read_ahead() {
    let mut cx = Context::new(&Depot::map(64, 8).unwrap(), 0);
    let [mut first, mut second] = in_turn([capture(&[10, 20, 30], 0), capture(&[15, 1000], 1)]);
    let mut batch = Batch::new();
    assert_eq!((first.pull(&mut cx, &mut batch), batch.len(), cx.now()), (Pulled::Idle, 0, 0));
    assert_eq!((second.pull(&mut cx, &mut batch), batch.len(), cx.now()), (Pulled::Idle, 0, 0));
    assert_eq!((first.pull(&mut cx, &mut batch), batch.len(), cx.now()), (Pulled::More, 1, 10));
}
