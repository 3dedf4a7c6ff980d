//! SplitMix64 frames that meet the rules of random chains: good ones, odd ones, and broken ones.

use catena_packet::random::SplitMix64;
use catena_packet::wire::checksum;

const HOSTS: [[u8; 4]; 8] = [
    [10, 1, 2, 3],
    [10, 1, 2, 4],
    [10, 1, 9, 9],
    [10, 7, 7, 7],
    [192, 0, 2, 9],
    [192, 0, 2, 77],
    [198, 51, 100, 1],
    [203, 0, 113, 5],
];
const PORTS: [u16; 6] = [53, 80, 55, 1024, 40_000, 7];

fn port(random: &mut SplitMix64) -> u16 {
    PORTS[random.below(6) as usize]
}

/// What comes after the IP header, and its protocol.
fn upper(random: &mut SplitMix64, v6: bool) -> (u8, Vec<u8>) {
    let ports = [port(random).to_be_bytes(), port(random).to_be_bytes()].concat();
    let payload = vec![0x5a; random.below(20) as usize];
    match random.below(12) {
        0..5 => {
            let flags = [0x02, 0x10, 0x11, 0x04, 0x12][random.below(5) as usize];
            let mut tcp = [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0x20, 0, 0x12, 0x34, 0, 0]].concat();
            tcp.extend(payload);
            (6, tcp)
        }
        5..9 => {
            let length = (8 + payload.len() as u16).to_be_bytes();
            (17, [&ports[..], &length, &[0x56, 0x78], &payload].concat())
        }
        9 if v6 => {
            let kind = [128, 135, 1][random.below(3) as usize];
            (58, [&[kind, 0, 0x11, 0x11, 0, 7, 0, 1], &payload[..]].concat())
        }
        9 => (1, [&[8, 0, 0x11, 0x11, 0, 7, 0, 1], &payload[..]].concat()),
        10 => (132, [&ports[..], &[0, 0, 0, 0, 0, 0, 0, 0], &payload].concat()),
        // UDP-Lite with ports that are there or not, or a protocol without any.
        _ if random.below(2) == 0 => (136, [&ports[..], &payload].concat()[..random.below(5) as usize].to_vec()),
        _ => (47, payload),
    }
}

fn ipv4(random: &mut SplitMix64) -> Vec<u8> {
    let mut host = || HOSTS[random.below(8) as usize];
    let (src, dst) = (host(), host());
    let (protocol, upper) = upper(random, false);
    let ttl = [64, 64, 2, 1, 0][random.below(5) as usize];
    let mut header = [&[0x45, 0, 0, 0, 0, 9, 0, 0, ttl, protocol, 0, 0], &src[..], &dst].concat();
    // Router alert, or a loose source route.
    let options: [&[u8]; 3] = [&[], &[0x94, 4, 0, 0], &[131, 7, 4, 10, 1, 2, 3, 0]];
    header.extend(options[[0, 0, 0, 0, 0, 0, 0, 0, 1, 2][random.below(10) as usize]]);
    header[0] = 0x40 | (header.len() / 4) as u8;
    let total = ((header.len() + upper.len()) as u16).to_be_bytes();
    header[2..4].copy_from_slice(&total);
    if random.below(12) == 0 && upper.len().is_multiple_of(8) {
        // A fragment: the first, or a later one.
        let fragment: u16 = if random.below(2) == 0 { 0x2000 } else { 0x0003 };
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
    }
    let sum = checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    if random.below(20) == 0 {
        header[10] ^= 1;
    }
    header.extend(upper);
    header
}

fn ipv6(random: &mut SplitMix64) -> Vec<u8> {
    let (protocol, upper) = upper(random, true);
    let hops = [64, 255, 2, 1][random.below(4) as usize];
    let mut address = || {
        let mut bytes = [0x20, 0x01, 0x0d, 0xb8, 0, random.below(4) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[15] = [7, 1][random.below(2) as usize];
        bytes
    };
    let (src, dst) = (address(), address());
    // A routing header that has come to its end, or leads on.
    let (next, route) = match random.below(10) {
        left @ 0..2 => (43, [&[protocol, 2, 0, left as u8, 0, 0, 0, 0], &src[..]].concat()),
        _ => (protocol, Vec::new()),
    };
    let length = ((route.len() + upper.len()) as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, length[0], length[1], next, hops], &src[..], &dst, &route, &upper].concat()
}

/// Return a frame.
pub fn frame(random: &mut SplitMix64) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if random.below(10) == 0 {
        frame.extend([0x81, 0, 0, 5]);
    }
    match random.below(20) {
        0 => frame.extend([&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[1; 20][..]].concat()),
        1 => frame.extend([0x88, 0xcc, 1, 2, 3]),
        2..6 => frame.extend([&[0x86, 0xdd], &ipv6(random)[..]].concat()),
        _ => frame.extend([&[8, 0], &ipv4(random)[..]].concat()),
    }
    if random.below(30) == 0 {
        frame.truncate(random.below(frame.len() as u32) as usize);
    }
    frame
}
