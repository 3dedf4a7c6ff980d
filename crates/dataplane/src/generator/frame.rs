//! Writes the frames: Ethernet, IPv4 or IPv6, then UDP, TCP or an ICMP echo request, with all checksums.

use std::net::{Ipv4Addr, Ipv6Addr};

use catena_packet::wire::ethernet::Mac;
use catena_packet::wire::number::{ethertype, proto};
use catena_packet::wire::{checksum, ethernet, ipv4, ipv6, tcp, udp};

use super::spec::{LONGEST, SHORTEST, Spec};
use super::tuple::{Proto, Tuple};

const L3: usize = ethernet::HEADER_LEN;
const ICMP_HEADER: usize = 8;
/// A SYN carries one option, the largest segment (RFC 9293 §3.7.1).
pub(super) const SYN_HEADER: usize = tcp::HEADER_LEN + 4;
/// RFC 9293 §3.8.6: as large as it gets without scaling.
const WINDOW: u16 = 65535;

/// What is said above IP.
#[derive(Clone, Copy, Debug)]
pub(super) enum Say {
    /// A UDP datagram or an ICMP echo request that fills the frame.
    Datagram,
    /// A TCP segment with so many bytes of data.
    Segment { from_server: bool, flags: u8, seq: u32, ack: u32, data: usize },
}

/// What all frames of a generator share.
pub(super) struct Frames {
    smac: Mac,
    dmac: Mac,
    ttl: u8,
    /// The payload of every packet, as much of it as fits: RFC 864's characters.
    payload: Box<[u8]>,
    /// The one's complement sum of that many bytes of `payload`.
    sums: Box<[u16]>,
}

/// Return the length of all headers of a packet without TCP options, in bytes.
pub(super) fn headers(proto: Proto, v6: bool) -> usize {
    let upper = match proto {
        Proto::Udp => udp::HEADER_LEN,
        Proto::Tcp => tcp::HEADER_LEN,
        Proto::Icmp => ICMP_HEADER,
    };
    L3 + if v6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN } + upper
}

impl Frames {
    pub fn new(spec: &Spec) -> Self {
        // RFC 864 §"Data Syntax": a line of 72 characters, the next one shifted by one.
        let line = |number: usize| (0..72).map(move |i| b' ' + ((number + i) % 95) as u8).chain(*b"\r\n");
        let payload: Box<[u8]> = (0..).flat_map(line).take(LONGEST).collect();
        let sums = (0..=LONGEST).map(|length| checksum::sum(&payload[..length])).collect();
        Frames { smac: spec.smac, dmac: spec.dmac, ttl: spec.ttl, payload, sums }
    }

    /// Return the segment that a plain TCP flow repeats, for frames of `length` bytes.
    pub fn plain_segment(tuple: &Tuple, bits: u64, length: usize) -> Say {
        let data = length - headers(Proto::Tcp, tuple.v6).min(length);
        let flags = if data > 0 { tcp::flag::PSH | tcp::flag::ACK } else { tcp::flag::ACK };
        Say::Segment { from_server: false, flags, seq: bits as u32, ack: (bits >> 32) as u32, data }
    }

    /// Write a whole frame. It is at least [`SHORTEST`] and as long as its headers and data need; what
    /// remains after a segment's data is padding.
    #[inline]
    pub fn write(&self, frame: &mut [u8], tuple: &Tuple, say: &Say) {
        debug_assert!(frame.len() >= SHORTEST);
        let reverse = matches!(say, Say::Segment { from_server: true, .. });
        let header = match (say, tuple.proto) {
            (Say::Segment { flags, .. }, _) if flags & tcp::flag::SYN != 0 => SYN_HEADER,
            (Say::Segment { .. }, _) => tcp::HEADER_LEN,
            _ => ICMP_HEADER,
        };
        let l4 = L3 + if tuple.v6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN };
        let data = match say {
            Say::Segment { data, .. } => *data,
            Say::Datagram => frame.len() - l4 - header,
        };
        let (content, padding) = frame.split_at_mut(l4 + header + data);
        if !padding.is_empty() {
            padding.fill(0);
        }
        let mut link = ethernet::Packet::new_unchecked(&mut *content);
        let (smac, dmac) = if reverse { (self.dmac, self.smac) } else { (self.smac, self.dmac) };
        link.set_src(smac);
        link.set_dst(dmac);
        link.set_ethertype(if tuple.v6 { ethertype::IPV6 } else { ethertype::IPV4 });
        let pseudo = self.write_ip(&mut content[L3..], tuple, reverse, header + data);
        let upper = &mut content[l4..];
        upper[header..].copy_from_slice(&self.payload[..data]);
        let below = checksum::add(pseudo, self.sums[data]);
        match (*say, tuple.proto) {
            (Say::Segment { from_server: _, flags, seq, ack, data: _ }, _) => {
                write_segment(&mut upper[..header], tuple, reverse, (flags, seq, ack), below);
            }
            (Say::Datagram, Proto::Icmp) => write_echo(&mut upper[..header], tuple, below),
            (Say::Datagram, _) => {
                let length = (header + data) as u16;
                let mut datagram = udp::Packet::new_unchecked(&mut upper[..header]);
                datagram.set_src_port(tuple.sport);
                datagram.set_dst_port(tuple.dport);
                datagram.set_length(length);
                let sum = words([tuple.sport.into(), tuple.dport.into(), length.into(), below.into()]);
                datagram.set_checksum(checksum::udp_nonzero(!sum));
            }
        }
    }

    /// Write the IP header; returns the sum of the pseudo header (0 for ICMP over IPv4, which has none).
    #[inline]
    fn write_ip(&self, packet: &mut [u8], tuple: &Tuple, reverse: bool, length: usize) -> u16 {
        let (src, dst) = if reverse { (tuple.dst, tuple.src) } else { (tuple.src, tuple.dst) };
        let proto = match (tuple.proto, tuple.v6) {
            (Proto::Udp, _) => proto::UDP,
            (Proto::Tcp, _) => proto::TCP,
            (Proto::Icmp, false) => proto::ICMP,
            (Proto::Icmp, true) => proto::ICMPV6,
        };
        if tuple.v6 {
            let mut ip = ipv6::Packet::new_unchecked(packet);
            ip.set_class_and_label(0, 0);
            ip.set_payload_len(length as u16);
            ip.set_next_header(proto);
            ip.set_hop_limit(self.ttl);
            ip.set_src(Ipv6Addr::from(src));
            ip.set_dst(Ipv6Addr::from(dst));
            return checksum::pseudo_v6(src, dst, proto, length as u32);
        }
        let v4 = |a: [u8; 16]| Ipv4Addr::new(a[0], a[1], a[2], a[3]);
        let (src, dst) = (v4(src), v4(dst));
        let total = (ipv4::HEADER_LEN + length) as u16;
        let mut ip = ipv4::Packet::new_unchecked(packet);
        ip.set_header_len(ipv4::HEADER_LEN);
        ip.set_tos(0);
        ip.set_total_len(total);
        ip.set_ident(0);
        ip.set_fragment(true, false, 0);
        ip.set_ttl(self.ttl);
        ip.set_proto(proto);
        ip.set_src(src);
        ip.set_dst(dst);
        // All words but the addresses: version and length, total length, "don't fragment", TTL and protocol.
        let rest = 0x4500 + u32::from(total) + 0x4000 + (u32::from(self.ttl) << 8 | u32::from(proto));
        ip.set_checksum(!words([rest, src.to_bits(), dst.to_bits()]));
        match tuple.proto {
            Proto::Icmp => 0,
            _ => checksum::pseudo_v4(src.to_bits(), dst.to_bits(), proto, length as u16),
        }
    }
}

#[inline]
fn write_segment(header: &mut [u8], tuple: &Tuple, reverse: bool, (flags, seq, ack): (u8, u32, u32), below: u16) {
    let (sport, dport) = if reverse { (tuple.dport, tuple.sport) } else { (tuple.sport, tuple.dport) };
    let length = header.len();
    let mut segment = tcp::Packet::new_unchecked(header);
    segment.set_src_port(sport);
    segment.set_dst_port(dport);
    segment.set_seq(seq);
    segment.set_ack(ack);
    segment.set_header_len(length);
    segment.set_flags(flags);
    segment.set_window(WINDOW);
    segment.set_urgent(0);
    let mut option = 0;
    if flags & tcp::flag::SYN != 0 {
        // Kind 2, 4 bytes long. The link carries our longest frame whole.
        option = 0x0204_0000 | (LONGEST - headers(Proto::Tcp, tuple.v6)) as u32;
        segment.options_mut().copy_from_slice(&option.to_be_bytes());
    }
    let ports = u32::from(sport) << 16 | u32::from(dport);
    // The data offset counts words of 4 bytes, in the upper half of its byte.
    let control = (length as u32) << 10 | u32::from(flags);
    segment.set_checksum(!words([ports, seq, ack, control, WINDOW.into(), option, below.into()]));
}

/// Return the one's complement sum of words of 32 bits (RFC 1071 §2(C): they add as pairs of 16).
#[inline]
fn words<const N: usize>(words: [u32; N]) -> u16 {
    let total: u64 = words.iter().map(|word| u64::from(*word)).sum();
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16 & 0xffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16);
    ((total & 0xffff) + (total >> 16)) as u16
}

/// Write an ICMP echo request (RFC 792, RFC 4443 §4.1).
#[inline]
fn write_echo(header: &mut [u8], tuple: &Tuple, below: u16) {
    let kind = if tuple.v6 { 128 } else { 8 };
    let [high, low] = tuple.sport.to_be_bytes();
    header.copy_from_slice(&[kind, 0, 0, 0, high, low, 0, 1]);
    let sum = !checksum::add(below, checksum::sum(header));
    header[2..4].copy_from_slice(&sum.to_be_bytes());
}
