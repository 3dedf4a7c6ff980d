//! Capture files as lists of packets.

use std::path::Path;

use catena_packet::pcap::{Format, LinkType, Reader, Record, Writer};

/// A packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// When it was captured, in ns since 1970.
    pub time: u64,
    /// What was kept of it, from the Ethernet header on.
    pub frame: Vec<u8>,
    /// How many bytes the capture cut off its end.
    pub missing: u32,
}

/// Read a capture of Ethernet frames.
///
/// # Panics
/// When the file is something else.
pub fn read(path: &Path) -> Vec<Packet> {
    let mut reader = Reader::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut packets = Vec::new();
    while let Some(packet) = next(&mut reader).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
        packets.push(packet.expect("an Ethernet frame"));
    }
    packets
}

/// Read as much of a capture as can be read, without what is not Ethernet.
pub fn read_ethernet(path: &Path) -> Vec<Packet> {
    let Ok(mut reader) = Reader::open(path) else { return Vec::new() };
    let mut packets = Vec::new();
    while let Ok(Some(packet)) = next(&mut reader) {
        packets.extend(packet);
    }
    packets
}

/// Return the next record: as a packet, if it is an Ethernet frame.
fn next(reader: &mut Reader) -> Result<Option<Option<Packet>>, catena_packet::pcap::Error> {
    let record = reader.next()?;
    Ok(record.map(|record| {
        let missing = record.original_len.saturating_sub(record.bytes.len() as u32);
        let packet = || Packet { time: record.time_ns, frame: record.bytes.to_vec(), missing };
        (record.link == LinkType::ETHERNET).then(packet)
    }))
}

/// Write a capture.
pub fn write<'a>(path: &Path, packets: impl IntoIterator<Item = &'a Packet>) {
    let mut writer = Writer::create(path, Format::PCAPNG, LinkType::ETHERNET).expect("a capture file");
    for packet in packets {
        let record = Record::new(packet.time, LinkType::ETHERNET, &packet.frame);
        let original_len = record.original_len + packet.missing;
        writer.write(&Record { original_len, ..record }).expect("a record");
    }
    writer.finish().expect("a whole file");
}
