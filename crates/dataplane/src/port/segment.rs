//! Cutting a super-packet into the packets that would be on the wire.
//!
//! A sender with segmentation offload hands its interface one packet of up to 64 KiB and the payload
//! size of each segment; receive offload joins segments to such packets again. Here is what the
//! interface would do (for TCP: RFC 9293 §3.8.6; ECN: RFC 3168 §6.1.2).

use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, Net, checksum, ipv4, parse, tcp, udp};

/// What the segments of a super-packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// TCP segments of one stretch of a stream.
    Tcp,
    /// Datagrams of one UDP flow.
    Udp,
}

/// How a super-packet is cut. It keeps none of the packet's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segments {
    layers: Layers,
    /// Length of all headers, in bytes.
    header: usize,
    /// Where the payload ends.
    end: usize,
    /// Payload bytes of each segment but the last.
    size: usize,
}

impl Segments {
    /// Plan how to cut `frame`, whose upper-layer header is at `l4`, into segments of `size` payload bytes.
    ///
    /// Returns `None` where `frame` is no plain TCP or UDP packet, as a tunnel's is not.
    pub(super) fn of(frame: &[u8], kind: Kind, l4: usize, size: usize) -> Option<Self> {
        let layers = parse(frame).ok()?;
        let wanted = match kind {
            Kind::Tcp => proto::TCP,
            Kind::Udp => proto::UDP,
        };
        let fits = layers.proto == wanted
            && layers.has(Layers::PORTS)
            && layers.flags & (Layers::FRAGMENT | Layers::AUTHENTICATED) == 0
            && usize::from(layers.l4) == l4
            && size > 0;
        // The parser has held the lengths that are read here against the frame's.
        let l3 = usize::from(layers.l3);
        let end = match layers.net {
            Net::Ipv4 => l3 + usize::from(word(frame, l3 + 2)),
            Net::Ipv6 => l3 + 40 + usize::from(word(frame, l3 + 4)),
            _ => return None,
        };
        let header = usize::from(layers.payload);
        (fits && header < end && end <= frame.len()).then_some(Segments { layers, header, end, size })
    }

    /// Return how many segments there are: at least one.
    pub(super) fn count(&self) -> usize {
        (self.end - self.header).div_ceil(self.size)
    }

    /// Return the length of a segment's frame in bytes.
    pub(super) fn len(&self, index: usize) -> usize {
        self.header + self.payload(index).len()
    }

    fn payload(&self, index: usize) -> std::ops::Range<usize> {
        let start = self.header + index * self.size;
        start..self.end.min(start + self.size)
    }

    /// Write segment `index` of `frame` to `out`, which has the segment's length.
    pub(super) fn write(&self, frame: &[u8], index: usize, out: &mut [u8]) {
        let payload = self.payload(index);
        let (header, body) = out.split_at_mut(self.header);
        header.copy_from_slice(&frame[..self.header]);
        body.copy_from_slice(&frame[payload]);
        let (l3, l4) = (usize::from(self.layers.l3), usize::from(self.layers.l4));
        let upper = out.len() - l4;
        let pseudo = match self.layers.net {
            Net::Ipv4 => {
                let total = (out.len() - l3) as u16;
                put(out, l3 + 2, total);
                let id = word(frame, l3 + 4).wrapping_add(index as u16);
                put(out, l3 + 4, id);
                put(out, l3 + 10, 0);
                let check = checksum::checksum(&out[l3..l3 + ipv4_header(out[l3])]);
                put(out, l3 + 10, check);
                // Source and destination are the pseudo header's first eight bytes.
                let addresses = checksum::sum(&out[l3 + 12..l3 + 20]);
                checksum::add(addresses, checksum::pseudo_v4(0, 0, self.layers.proto, upper as u16))
            }
            _ => {
                put(out, l3 + 4, (out.len() - l3 - 40) as u16);
                let addresses = checksum::sum(&out[l3 + 8..l3 + 40]);
                checksum::add(addresses, checksum::pseudo_v4(0, 0, self.layers.proto, upper as u16))
            }
        };
        if self.layers.proto == proto::TCP {
            self.finish_tcp(&mut out[l4..], index, pseudo);
        } else {
            finish_udp(&mut out[l4..], pseudo);
        }
    }

    fn finish_tcp(&self, segment: &mut [u8], index: usize, pseudo: u16) {
        use tcp::flag::{CWR, FIN, PSH};
        let mut segment = tcp::Packet::new_unchecked(segment);
        segment.set_seq(segment.seq().wrapping_add((index * self.size) as u32));
        let not_first = if index > 0 { CWR } else { 0 };
        let not_last = if index + 1 < self.count() { FIN | PSH } else { 0 };
        segment.set_flags(segment.flags() & !(not_first | not_last));
        segment.fill_checksum(pseudo);
    }
}

fn finish_udp(datagram: &mut [u8], pseudo: u16) {
    const LENGTH: usize = 4;
    const CHECK: usize = 6;
    const _: () = assert!(CHECK + 2 == udp::HEADER_LEN);
    put(datagram, LENGTH, datagram.len() as u16);
    put(datagram, CHECK, 0);
    let check = !checksum::add(pseudo, checksum::sum(datagram));
    put(datagram, CHECK, checksum::udp_nonzero(check));
}

fn ipv4_header(first: u8) -> usize {
    (usize::from(first & 0xf) * 4).max(ipv4::HEADER_LEN)
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
