//! What a program is shown of a packet, so that it finds at fixed offsets what the parser found elsewhere.

use catena_packet::wire::{Layers, Net, ethernet, ipv6};

use super::bpf::Program;

/// Most bytes of an IPv4 header: its length is four bits of four bytes each.
const MOST_IPV4: usize = 60;

/// What a program is shown of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The frame as it came.
    Frame,
    /// The frame without VLAN tags.
    Untagged,
    /// The frame without VLAN tags, and the upper layer right behind an IP header that names it: without IPv6 extension
    /// headers and authentication headers.
    Bare,
}

impl View {
    /// Return whether `program` matches what it is shown of the packet.
    #[inline]
    pub fn matches(self, program: &Program, data: &[u8], layers: Layers) -> bool {
        const IN_BETWEEN: u8 = Layers::VLAN | Layers::OPTIONS | Layers::AUTHENTICATED;
        if self == View::Frame || layers.flags & IN_BETWEEN == 0 {
            return program.matches(data);
        }
        self.matches_in_between(program, data, layers)
    }

    #[cold]
    fn matches_in_between(self, program: &Program, data: &[u8], layers: Layers) -> bool {
        let l3 = usize::from(layers.l3);
        // The two bytes before the network header are its type, behind tags as without. The MAC addresses are not those
        // of the frame: who asks for them is shown the frame.
        let untagged = data.get(l3.saturating_sub(ethernet::HEADER_LEN)..).unwrap_or_default();
        let header = match layers.net {
            _ if self != View::Bare || layers.has(Layers::LATER) => None,
            Net::Ipv6 => Some(ipv6::HEADER_LEN),
            Net::Ipv4 if layers.has(Layers::AUTHENTICATED) => data.get(l3).map(|first| usize::from(first & 0xf) * 4),
            _ => None,
        };
        let upper = data.get(usize::from(layers.l4)..);
        match header
            .zip(upper)
            .and_then(|(header, upper)| Some((untagged.get(..ethernet::HEADER_LEN + header)?, upper)))
        {
            None => program.matches(untagged),
            Some((headers, upper)) => {
                let mut room = [0; ethernet::HEADER_LEN + MOST_IPV4];
                let Some(head) = room.get_mut(..headers.len()) else { return program.matches(untagged) };
                head.copy_from_slice(headers);
                name_upper(&mut head[ethernet::HEADER_LEN..], layers, usize::from(layers.l4) - l3);
                program.matches_parts(head, upper)
            }
        }
    }
}

/// Write into an IP header that the upper layer follows it at once; `skipped` bytes stood before the upper layer.
fn name_upper(header: &mut [u8], layers: Layers, skipped: usize) {
    let (proto, length) = if layers.net == Net::Ipv6 { (6, 4) } else { (9, 2) };
    let removed = skipped - header.len();
    header[proto] = layers.proto;
    let old = u16::from_be_bytes([header[length], header[length + 1]]);
    let new = old.saturating_sub(removed as u16);
    header[length..length + 2].copy_from_slice(&new.to_be_bytes());
}
