//! Packets as a line of text, both ways.
//!
//! ```text
//! udp 10.0.0.1:4000 > 192.0.2.9:53 len 12           len: bytes of payload; 0 when absent
//! udp 10.0.0.1:4000 > 192.0.2.9:53 nosum            without a checksum
//! tcp [2001:db8::1]:4000 > [2001:db8::2]:80 SA      flags: any of F S R P A U, or `.` for none
//! icmp 10.0.0.1 > 192.0.2.9 echo 7                  echo or reply, with its identifier
//! icmp 10.0.0.1 > 192.0.2.9 unreachable { udp … }   or exceeded; what it is about, cut to 8 bytes after IP
//! udp 10.0.0.1:4000 > 192.0.2.9:53 len 16 id 5 first      the first fragment of datagram 5
//! ip 10.0.0.1 > 192.0.2.9 proto 17 id 5 later 24 len 8    a later fragment, at byte 24
//! ip 10.0.0.1 > 192.0.2.9 proto 47 len 20           any other protocol
//! arp
//! tag 9200 { udp … }                                behind a VLAN tag of this type, of VLAN 7
//! tag 8100:10 { tag 8100:20 { udp … } }             of VLAN 10, and in that of VLAN 20
//! snap { udp … }                                    in a frame that is not parsed: also mpls, pppoe, llc and lldp
//! ```
//!
//! `describe` adds `!ip` and `!sum` where the header's or the upper layer's checksum is wrong.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use catena_packet::wire::number::{ethertype, proto};
use catena_packet::wire::{Layers, Net, checksum, ipv4, ipv6, parse, tcp};

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
const FLAGS: &str = "FSRPAU";
const IP_HEADER: [usize; 2] = [20, 40];

/// Make the Ethernet frame that a line describes.
///
/// # Panics
/// When the line is not of the notation.
pub fn craft(line: &str) -> Vec<u8> {
    if line == "arp" {
        return [&MACS[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[0; 20]].concat();
    }
    if let Some((link, inner)) = line.split_once(" { ")
        && let Some((link, is_typed)) = link_header(link)
    {
        let inner = craft(inner.strip_suffix(" }").expect("a brace is closed"));
        let inner = if is_typed { &inner[12..] } else { &inner[14..] };
        return [&MACS[..], &link, inner].concat();
    }
    let packet = ip_packet(line);
    let ethertype = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    [&MACS[..], &ethertype, &packet].concat()
}

/// Return what stands between the addresses of a frame and the EtherType or packet that it carries, and whether it is the EtherType.
fn link_header(link: &str) -> Option<(Vec<u8>, bool)> {
    Some(match link {
        // IEEE 802.3: a length and 802.2 LLC; RFC 1042 for IP.
        "snap" => (vec![0, 64, 0xaa, 0xaa, 3, 0, 0, 0], true),
        "llc" => (vec![0, 64, 0x42, 0x42, 3], false),
        // RFC 3032 §2.1: label 17, bottom of the stack. RFC 2516 §4 and RFC 1661 §2: a session's IPv4.
        "mpls" => (vec![0x88, 0x47, 0, 1, 0x11, 64], false),
        "pppoe" => (vec![0x88, 0x64, 0x11, 0, 0, 1, 0, 64, 0, 0x21], false),
        "lldp" => (vec![0x88, 0xcc], false),
        tag => {
            let tag = tag.strip_prefix("tag ")?;
            let (kind, id) = tag.split_once(':').unwrap_or((tag, "7"));
            let number = u16::from_str_radix(kind, 16).expect("a tag's type");
            let id: u16 = id.parse().expect("the number of a VLAN");
            ([number.to_be_bytes(), id.to_be_bytes()].concat(), true)
        }
    })
}

/// Return the number after a word, if the word is there.
fn number_after(words: &[&str], word: &str) -> Option<u16> {
    let at = words.iter().position(|w| *w == word)?;
    Some(words[at + 1].parse().unwrap_or_else(|_| panic!("no number after `{word}` in {words:?}")))
}

fn ip_packet(line: &str) -> Vec<u8> {
    let (line, inner) = match line.split_once(" { ") {
        Some((line, inner)) => (line, Some(inner.strip_suffix(" }").expect("a brace is closed"))),
        None => (line, None),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let [kind, src, ">", dst, ref rest @ ..] = words[..] else { panic!("not a packet: {line}") };
    let endpoint = |text: &str| -> SocketAddr {
        match text.parse::<SocketAddr>() {
            Ok(endpoint) => endpoint,
            Err(_) => SocketAddr::new(text.parse().unwrap_or_else(|_| panic!("no address: {text}")), 0),
        }
    };
    let (src, dst) = (endpoint(src), endpoint(dst));
    let v6 = src.is_ipv6();
    let payload: Vec<u8> = (0..number_after(rest, "len").unwrap_or(0)).map(|i| i as u8).collect();
    let ports = [src.port().to_be_bytes(), dst.port().to_be_bytes()].concat();
    let (number, mut upper) = match kind {
        "udp" => {
            let length = (8 + payload.len()) as u16;
            (proto::UDP, [&ports[..], &length.to_be_bytes(), &[0, 0], &payload].concat())
        }
        "tcp" => {
            let flags = rest.first().map_or("", |word| word);
            let bits = FLAGS.chars().zip(0..).filter(|(c, _)| flags.contains(*c)).fold(0u8, |b, (_, i)| b | 1 << i);
            (proto::TCP, [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, bits, 16, 0, 0, 0, 0, 0], &payload].concat())
        }
        "icmp" => {
            let number = if v6 { proto::ICMPV6 } else { proto::ICMP };
            let kind = match (rest[0], v6) {
                ("echo", false) => 8,
                ("echo", true) => 128,
                ("reply", false) => 0,
                ("reply", true) => 129,
                ("unreachable", false) => 3,
                ("unreachable", true) => 1,
                ("exceeded", false) => 11,
                ("exceeded", true) => 3,
                (other, _) => panic!("no ICMP message: {other}"),
            };
            let ident = if inner.is_none() { number_after(rest, rest[0]).unwrap_or(0) } else { 0 }.to_be_bytes();
            let body = inner.map_or(payload, |inner| {
                let mut about = ip_packet(inner);
                about.truncate(IP_HEADER[usize::from(v6)] + 8);
                about
            });
            (number, [&[kind, 0, 0, 0, ident[0], ident[1], 0, 0], &body[..]].concat())
        }
        "ip" => (number_after(rest, "proto").expect("a protocol") as u8, payload),
        other => panic!("no kind of packet: {other}"),
    };
    if !rest.contains(&"nosum") {
        let sum = checksum::add(pseudo(src.ip(), dst.ip(), number, upper.len()), checksum::sum(&upper));
        if let Some(at) = sum_place(number).filter(|_| kind != "ip") {
            let sum = if number == proto::ICMP { checksum::sum(&upper) } else { sum };
            let check = if number == proto::UDP { checksum::udp_nonzero(!sum) } else { !sum };
            upper[at..at + 2].copy_from_slice(&check.to_be_bytes());
        }
    }
    let ident = number_after(rest, "id").unwrap_or(0);
    let (more, offset) = (rest.contains(&"first"), number_after(rest, "later").unwrap_or(0));
    match (src.ip(), dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut packet = ipv4::Packet::new_unchecked(vec![0; 20 + upper.len()]);
            packet.set_header_len(20);
            packet.set_total_len(20 + upper.len() as u16);
            packet.set_ident(ident);
            packet.set_fragment(false, more, offset);
            packet.set_ttl(64);
            packet.set_proto(number);
            packet.set_src(src);
            packet.set_dst(dst);
            packet.payload_mut().copy_from_slice(&upper);
            packet.fill_checksum();
            packet.into_inner()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut next = number;
            if more || offset > 0 {
                let field = (offset | u16::from(more)).to_be_bytes();
                upper = [&[number, 0, field[0], field[1], 0, 0][..], &ident.to_be_bytes(), &upper].concat();
                next = proto::FRAGMENT;
            }
            let mut packet = ipv6::Packet::new_unchecked(vec![0; 40 + upper.len()]);
            packet.set_class_and_label(0, 0);
            packet.set_payload_len(upper.len() as u16);
            packet.set_next_header(next);
            packet.set_hop_limit(64);
            packet.set_src(src);
            packet.set_dst(dst);
            packet.payload_mut().copy_from_slice(&upper);
            packet.into_inner()
        }
        _ => panic!("two families in {line}"),
    }
}

/// Return where a protocol's checksum stands in its header.
fn sum_place(number: u8) -> Option<usize> {
    match number {
        proto::TCP => Some(16),
        proto::UDP => Some(6),
        proto::ICMP | proto::ICMPV6 => Some(2),
        _ => None,
    }
}

fn pseudo(src: IpAddr, dst: IpAddr, number: u8, length: usize) -> u16 {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => checksum::pseudo_v4(src.to_bits(), dst.to_bits(), number, length as u16),
        (IpAddr::V6(src), IpAddr::V6(dst)) => checksum::pseudo_v6(src.octets(), dst.octets(), number, length as u32),
        _ => panic!("two families in one packet"),
    }
}

/// Write an Ethernet frame as a line.
pub fn describe(frame: &[u8]) -> String {
    if let Some(&[kind, of_kind, control, below]) = frame.get(12..16)
        && ethertype::is_vlan(u16::from_be_bytes([kind, of_kind]))
    {
        let id = u16::from_be_bytes([control & 15, below]);
        let inner = describe(&[&frame[..12], &frame[16..]].concat());
        return format!("tag {kind:02x}{of_kind:02x}:{id} {{ {inner} }}");
    }
    let layers = match parse(frame) {
        Ok(layers) => layers,
        Err(why) => return format!("malformed: {why}"),
    };
    match layers.net {
        Net::Arp => "arp".to_owned(),
        Net::Other => "other".to_owned(),
        Net::Ipv4 => {
            let packet = ipv4::Packet::new_unchecked(&frame[usize::from(layers.l3)..]);
            let end = usize::from(layers.l3) + usize::from(packet.total_len());
            let (src, dst) = (packet.src().into(), packet.dst().into());
            let mut line = describe_ip(src, dst, layers.proto, &frame[usize::from(layers.l4)..end], &layers);
            if packet.is_fragment() {
                let _ = write!(line, " id {}", packet.ident());
                line += &fragment(packet.more_fragments(), packet.fragment_offset());
            }
            if !packet.verify_checksum() {
                line += " !ip";
            }
            line
        }
        Net::Ipv6 => {
            let packet = ipv6::Packet::new_unchecked(&frame[usize::from(layers.l3)..]);
            let end = usize::from(layers.l3) + 40 + usize::from(packet.payload_len());
            let (src, dst) = (packet.src().into(), packet.dst().into());
            let mut line = describe_ip(src, dst, layers.proto, &frame[usize::from(layers.l4)..end], &layers);
            if let Some(part) = packet.extensions().ok().and_then(|chain| chain.fragment).filter(|f| !f.is_atomic()) {
                let _ = write!(line, " id {}", part.ident);
                line += &fragment(part.more, part.offset);
            }
            line
        }
    }
}

fn fragment(more: bool, offset: u16) -> String {
    match offset {
        0 if more => " first".to_owned(),
        offset => format!(" later {offset}"),
    }
}

fn describe_ip(src: IpAddr, dst: IpAddr, number: u8, upper: &[u8], layers: &Layers) -> String {
    let word = |at: usize| upper.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let (from, to) = (SocketAddr::new(src, word(0)), SocketAddr::new(dst, word(2)));
    let len = |header: usize| match upper.len().saturating_sub(header) {
        0 => String::new(),
        len => format!(" len {len}"),
    };
    if layers.has(Layers::LATER) {
        return format!("ip {src} > {dst} proto {number}{}", len(0));
    }
    let mut line = match number {
        proto::UDP if upper.len() >= 8 => {
            format!("udp {from} > {to}{}{}", if word(6) == 0 { " nosum" } else { "" }, len(8))
        }
        proto::TCP if upper.len() >= 20 => {
            let bits = tcp::Packet::new_unchecked(upper).flags();
            let flags: String = FLAGS.chars().zip(0..).filter(|(_, i)| bits >> i & 1 == 1).map(|(c, _)| c).collect();
            format!("tcp {from} > {to} {}{}", if flags.is_empty() { "." } else { &flags }, len(20))
        }
        proto::ICMP | proto::ICMPV6 if upper.len() >= 8 => {
            let v6 = number == proto::ICMPV6;
            match (upper[0], v6) {
                (8, false) | (128, true) => format!("icmp {src} > {dst} echo {}{}", word(4), len(8)),
                (0, false) | (129, true) => format!("icmp {src} > {dst} reply {}{}", word(4), len(8)),
                (3, false) | (1, true) => format!("icmp {src} > {dst} unreachable {{ {} }}", about(&upper[8..])),
                (11, false) | (3, true) => format!("icmp {src} > {dst} exceeded {{ {} }}", about(&upper[8..])),
                (other, _) => format!("icmp {src} > {dst} type {other}{}", len(8)),
            }
        }
        _ => return format!("ip {src} > {dst} proto {number}{}", len(0)),
    };
    let sum = match number {
        proto::ICMP => checksum::sum(upper),
        _ => checksum::add(pseudo(src, dst, number, upper.len()), checksum::sum(upper)),
    };
    // A fragment's checksum covers what is not here.
    if !layers.has(Layers::FRAGMENT) && sum != 0xffff && !(number == proto::UDP && word(6) == 0) {
        line += " !sum";
    }
    line
}

/// Describe the packet that an ICMP error is about, of which 8 bytes after IP are there; its upper checksum is
/// held against the payload that the notation would have made.
fn about(packet: &[u8]) -> String {
    let mut frame = match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 28 => {
            let total = u16::from_be_bytes([packet[2], packet[3]]).max(28);
            let mut whole = packet.to_vec();
            whole.resize(usize::from(total), 0);
            [&MACS[..], &[8, 0], &whole].concat()
        }
        Some(6) if packet.len() >= 48 => {
            let total = 40 + u16::from_be_bytes([packet[4], packet[5]]).max(8);
            let mut whole = packet.to_vec();
            whole.resize(usize::from(total), 0);
            [&MACS[..], &[0x86, 0xdd], &whole].concat()
        }
        _ => return "cut".to_owned(),
    };
    let v6 = frame[12] == 0x86;
    let start = 14 + IP_HEADER[usize::from(v6)];
    let number = if v6 { frame[20] } else { frame[23] };
    let payload = start + if number == proto::TCP { 20 } else { 8 };
    if number == proto::TCP {
        // What was cut off after 8 bytes: as the notation makes it, but for the flags and the checksum.
        frame[start + 12] = 0x50;
        let line = describe(&frame);
        return line.replace(" . !sum", "").replace(" .", "");
    }
    for (i, byte) in frame.iter_mut().skip(payload).enumerate() {
        *byte = i as u8;
    }
    describe(&frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_crafted_is_described_alike() {
        for line in [
            "udp 10.0.0.1:4000 > 192.0.2.9:53 len 12",
            "udp 10.0.0.1:4000 > 192.0.2.9:53 nosum",
            "udp [2001:db8::1]:4000 > [2001:db8::2]:53",
            "tcp 10.0.0.1:4000 > 192.0.2.9:80 SA",
            "tcp [2001:db8::1]:4000 > [2001:db8::2]:80 . len 3",
            "icmp 10.0.0.1 > 192.0.2.9 echo 7",
            "icmp 2001:db8::1 > 2001:db8::2 reply 7 len 5",
            "icmp 10.0.0.1 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 10.0.0.1:4000 len 12 }",
            "icmp 10.0.0.1 > 192.0.2.9 exceeded { icmp 192.0.2.9 > 10.0.0.1 echo 9 }",
            "icmp 2001:db8::1 > 2001:db8::2 unreachable { udp [2001:db8::2]:53 > [2001:db8::1]:4000 }",
            "icmp 10.0.0.1 > 192.0.2.9 unreachable { tcp 192.0.2.9:80 > 10.0.0.1:4000 }",
            "udp 10.0.0.1:4000 > 192.0.2.9:53 len 16 id 5 first",
            "ip 10.0.0.1 > 192.0.2.9 proto 17 len 8 id 5 later 24",
            "udp [2001:db8::1]:4000 > [2001:db8::2]:53 len 120 id 5 first",
            "ip 2001:db8::1 > 2001:db8::2 proto 17 len 8 id 5 later 128",
            "ip 10.0.0.1 > 192.0.2.9 proto 47 len 20",
            "tag 8100:4094 { tcp 10.0.0.1:4000 > 192.0.2.9:80 SA }",
            "tag 88a8:10 { tag 8100:20 { icmp 10.0.0.1 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 10.0.0.1:4000 } } }",
            "arp",
        ] {
            assert_eq!(describe(&craft(line)), line);
        }
    }

    #[test]
    fn wrong_checksums_show() {
        let mut frame = craft("udp 10.0.0.1:4000 > 192.0.2.9:53 len 12");
        frame[26] ^= 1;
        assert_eq!(describe(&frame), "udp 11.0.0.1:4000 > 192.0.2.9:53 len 12 !sum !ip");
    }
}
