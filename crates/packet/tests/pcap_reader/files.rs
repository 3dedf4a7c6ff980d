//! Capture files made by hand, byte for byte, for the tests of the reader.

use std::io::Write;

/// The byte order in which a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

pub const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub fn u16(self, n: u16) -> [u8; 2] {
        match self {
            Order::Little => n.to_le_bytes(),
            Order::Big => n.to_be_bytes(),
        }
    }

    pub fn u32(self, n: u32) -> [u8; 4] {
        match self {
            Order::Little => n.to_le_bytes(),
            Order::Big => n.to_be_bytes(),
        }
    }

    pub fn u64(self, n: u64) -> [u8; 8] {
        match self {
            Order::Little => n.to_le_bytes(),
            Order::Big => n.to_be_bytes(),
        }
    }
}

/// The 24 bytes at the head of a pcap file.
pub fn pcap_header(order: Order, magic: u32, version: (u16, u16), link: u32) -> Vec<u8> {
    let mut file = order.u32(magic).to_vec();
    file.extend(order.u16(version.0));
    file.extend(order.u16(version.1));
    file.extend([0; 8]);
    file.extend(order.u32(65535));
    file.extend(order.u32(link));
    file
}

/// The words in front of a pcap record, and its data.
pub fn pcap_record(order: Order, words: &[u32], data: &[u8]) -> Vec<u8> {
    let mut record: Vec<u8> = words.iter().flat_map(|word| order.u32(*word)).collect();
    record.extend(data);
    record
}

/// A block of pcapng around a body, which is padded.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let len = order.u32(padded as u32 + 12);
    let mut block = order.u32(kind).to_vec();
    block.extend(len);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(len);
    block
}

pub fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend(order.u64(u64::MAX));
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface description with the options given as code and value.
pub fn interface(order: Order, link: u16, snap_len: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = order.u16(link).to_vec();
    body.extend([0; 2]);
    body.extend(order.u32(snap_len));
    for (code, value) in options {
        body.extend(order.u16(*code));
        body.extend(order.u16(value.len() as u16));
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(order, 1, &body)
}

pub fn enhanced(order: Order, interface: u32, ticks: u64, original: u32, data: &[u8]) -> Vec<u8> {
    let mut body = order.u32(interface).to_vec();
    body.extend(order.u32((ticks >> 32) as u32));
    body.extend(order.u32(ticks as u32));
    body.extend(order.u32(data.len() as u32));
    body.extend(order.u32(original));
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    // A comment, as Wireshark leaves them.
    body.extend(order.u16(1));
    body.extend(order.u16(2));
    body.extend(b"hi\0\0");
    body.extend([0; 4]);
    block(order, 6, &body)
}

pub fn obsolete(order: Order, interface: u16, ticks: u64, original: u32, data: &[u8]) -> Vec<u8> {
    let mut body = order.u16(interface).to_vec();
    body.extend(order.u16(0xffff));
    body.extend(order.u32((ticks >> 32) as u32));
    body.extend(order.u32(ticks as u32));
    body.extend(order.u32(data.len() as u32));
    body.extend(order.u32(original));
    body.extend(data);
    block(order, 2, &body)
}

pub fn simple(order: Order, original: u32, data: &[u8]) -> Vec<u8> {
    let mut body = order.u32(original).to_vec();
    body.extend(data);
    block(order, 3, &body)
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// A small pcap file of three records, and where each ends.
pub fn small_pcap(order: Order) -> (Vec<u8>, Vec<usize>) {
    let mut file = pcap_header(order, 0xa1b2_c3d4, (2, 4), 1);
    let mut ends = Vec::new();
    for n in 0..3u32 {
        let data = vec![n as u8; 5 + n as usize];
        file.extend(pcap_record(order, &[n, 0, 5 + n, 60], &data));
        ends.push(file.len());
    }
    (file, ends)
}

/// A small pcapng file with the kinds of blocks there are; where each record ends, and where
/// else a file can end in peace.
pub fn small_pcapng(order: Order) -> (Vec<u8>, Vec<usize>, Vec<usize>) {
    let (mut file, mut ends, mut rests) = (Vec::new(), Vec::new(), Vec::new());
    for part in [
        section(order),
        interface(order, 1, 0, &[]),
        block(order, 4, &[0; 4]),
        enhanced(order, 0, 1, 60, b"first"),
        simple(order, 3, b"two"),
        obsolete(order, 0, 3, 60, b"third"),
        block(order, 5, &[0; 12]),
    ] {
        let kind = order.u32(u32::from_le_bytes(part[..4].try_into().unwrap()));
        let kind = u32::from_le_bytes(kind);
        file.extend(part);
        if matches!(kind, 2 | 3 | 6) {
            ends.push(file.len());
        } else {
            rests.push(file.len());
        }
    }
    (file, ends, rests)
}
