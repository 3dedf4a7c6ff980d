//! The reader on files made by hand: every variant of the formats, and every kind of damage.

mod damage;
mod files;
mod formats;

use std::io::Read;

use catena_packet::pcap::{Error, Reader};

/// A record that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    time_ns: u64,
    link: u16,
    original_len: u32,
    bytes: Vec<u8>,
}

fn kept(time_ns: u64, link: u16, original_len: u32, bytes: &[u8]) -> Kept {
    Kept { time_ns, link, original_len, bytes: bytes.to_vec() }
}

/// All records of a capture, and the error it ended with.
fn read(stream: impl Read) -> (Vec<Kept>, Option<Error>) {
    let mut records = Vec::new();
    let mut reader = match Reader::new(stream) {
        Ok(reader) => reader,
        Err(error) => return (records, Some(error)),
    };
    let error = loop {
        match reader.next() {
            Ok(Some(r)) => records.push(kept(r.time_ns, r.link.0, r.original_len, r.bytes)),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert_eq!(reader.records(), records.len() as u64);
    assert!(reader.next().expect("nothing follows an end").is_none());
    if let Some(place) = error.as_ref().and_then(Error::place) {
        assert_eq!(place.records, records.len() as u64);
    }
    (records, error)
}

/// All records of a capture that is whole.
fn read_whole(stream: impl Read) -> Vec<Kept> {
    let (records, error) = read(stream);
    assert!(error.is_none(), "{error:?}");
    records
}
