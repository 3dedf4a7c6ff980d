//! What translation must know of IPv4.

use catena_packet::wire::Layers;
use catena_packet::wire::checksum;

use catena_state::Words;

use super::family::{Host, Translate};
use super::identifications::{Draw, Numbering};
use crate::family::{Family, V4};
use crate::rewrite::adjust;
use catena_packet::wire::vlan::Vlan;

/// The flag of an IPv4 header that keeps routers from fragmenting, with the two bytes it stands in (RFC 791 §3.1).
const DONT_FRAGMENT: u16 = 0x4000;

const SUSPECT_SOURCE: u8 = 1;
const SUSPECT_DESTINATION: u8 = 2;
/// By the first byte of an address, whether it may be a source or a destination that [`is_routable4`] refuses: most packets
/// need no closer look.
static SUSPECT: [u8; 256] = {
    let mut suspect = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        suspect[byte] = match byte {
            0 | 127 | 169 | 224 | 255 => SUSPECT_SOURCE | SUSPECT_DESTINATION,
            225.. => SUSPECT_SOURCE,
            _ => 0,
        };
        byte += 1;
    }
    suspect
};

#[inline(never)]
fn is_routable4(src: u32, dst: u32) -> bool {
    // RFC 3927 §2.7: a packet "whose source and/or destination address is in the 169.254/16 prefix" is not
    // forwarded; nor are those of 0/8 and 127/8 (RFC 1122 §3.2.1.3), from 224/3, to 224.0.0/24 (RFC 5771 §4)
    // and to 255.255.255.255.
    let nowhere = |address: u32| matches!(address >> 24, 0 | 127) | (address >> 16 == 0xa9fe);
    !(nowhere(src) | (src >= 0xe000_0000) | nowhere(dst) | (dst >> 8 == 0xe0_0000) | (dst == u32::MAX))
}

impl Translate for V4 {
    const IS_HOST_SUBNET: bool = false;

    type Endpoint = Words;
    type Pair = [u64; 2];

    #[inline(always)]
    fn rewrite_source(header: &mut [u8], address: u32, sum: u16, next: impl FnOnce([u64; 2]) -> u16) -> bool {
        let Some(header) = header.first_chunk_mut::<{ Self::HEADER }>() else { return false };
        let mut change = sum;
        // A branch, as most of today's traffic is atomic.
        if header[6] & 0x40 == 0 {
            let dst = u32::from_be_bytes([header[16], header[17], header[18], header[19]]);
            let new = next(Self::pair(address, dst, header[9].into()));
            change = checksum::add(change, checksum::add(!u16::from_be_bytes([header[4], header[5]]), new));
            header[4..6].copy_from_slice(&new.to_be_bytes());
        }
        let check = adjust(u16::from_be_bytes([header[10], header[11]]), change);
        header[10..12].copy_from_slice(&check.to_be_bytes());
        header[12..16].copy_from_slice(&address.to_be_bytes());
        true
    }

    #[inline(always)]
    fn endpoint(address: u32, port: u16, proto: u8) -> Words {
        Words(u64::from(address) << 32 | u64::from(port) << 8 | u64::from(proto), 0)
    }

    #[inline(always)]
    fn parts(Words(endpoint, _): Words) -> (u32, u16, u8) {
        ((endpoint >> 32) as u32, (endpoint >> 8) as u16, endpoint as u8)
    }

    fn within(Words(endpoint, _): Words, vlan: Vlan) -> Words {
        Words(endpoint, vlan.into())
    }

    fn vlan(Words(_, vlan): Words) -> Vlan {
        vlan as Vlan
    }

    fn host(address: u32, vlan: Vlan) -> Host {
        Words(address.into(), u64::from(vlan) << 8 | 4)
    }

    #[inline(always)]
    fn pair(a: u32, b: u32, number: u64) -> [u64; 2] {
        [u64::from(a) << 32 | u64::from(b), number]
    }

    fn first_of_pair(pair: &[u64; 2]) -> (u32, u64) {
        ((pair[0] >> 32) as u32, pair[1])
    }

    fn after(address: u32, n: u32) -> u32 {
        address.wrapping_add(n)
    }

    fn distance(first: u32, address: u32) -> u32 {
        address.wrapping_sub(first)
    }

    #[inline(always)]
    fn is_routable(src: u32, dst: u32) -> bool {
        let suspect = |address: u32, side: u8| SUSPECT[(address >> 24) as usize] & side;
        suspect(src, SUSPECT_SOURCE) | suspect(dst, SUSPECT_DESTINATION) == 0 || is_routable4(src, dst)
    }

    fn stays_on_link(src: u32, dst: u32) -> bool {
        let is_of_link = dst >> 16 == 0xa9fe || dst >> 8 == 0xe0_0000 || dst == u32::MAX;
        is_of_link && src >> 24 != 127 && src < 0xe000_0000
    }

    fn unusable(first: u32, last: u32) -> Option<&'static str> {
        let overlaps = |from: u32, to: u32| first <= to && from <= last;
        match () {
            () if overlaps(0, 0x00ff_ffff) => Some("addresses of this network (0.0.0.0/8)"),
            () if overlaps(0x7f00_0000, 0x7fff_ffff) => Some("loopback addresses (127.0.0.0/8)"),
            () if overlaps(0xa9fe_0000, 0xa9fe_ffff) => Some("link-local addresses (169.254.0.0/16)"),
            () if overlaps(0xe000_0000, 0xefff_ffff) => Some("multicast addresses (224.0.0.0/4)"),
            () if overlaps(0xf000_0000, u32::MAX) => Some("reserved addresses (240.0.0.0/4)"),
            () => None,
        }
    }

    fn upper(packet: &[u8]) -> Option<(u8, usize)> {
        let header = packet.first_chunk::<20>()?;
        let length = usize::from(header[0] & 15) * 4;
        let later = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
        (header[0] >> 4 == 4 && length >= 20 && !later).then_some((header[9], length))
    }

    fn is_atomic(frame: &[u8], layers: &Layers) -> bool {
        // RFC 6864 §4: "(DF==1)&&(MF==0)&&(frag_offset==0)".
        let bits = frame
            .get(usize::from(layers.l3) + 6..)
            .and_then(|rest| rest.first_chunk())
            .map(|bits| u16::from_be_bytes(*bits));
        bits.is_some_and(|bits| bits & 0x7fff == DONT_FRAGMENT)
    }

    fn set_ident(frame: &mut [u8], l3: usize, ident: u32) -> Option<()> {
        let header = frame.get_mut(l3..)?.first_chunk_mut::<{ Self::HEADER }>()?;
        let word = |place: usize| u16::from_be_bytes([header[place], header[place + 1]]);
        let (old, new) = (word(4), ident as u16);
        let check = adjust(word(10), checksum::add(!old, new));
        header[4..6].copy_from_slice(&new.to_be_bytes());
        header[10..12].copy_from_slice(&check.to_be_bytes());
        Some(())
    }

    fn draw(numbering: &Numbering, [src, dst]: [u32; 2], proto: u8) -> Draw {
        numbering.draw16(Self::pair(src, dst, proto.into()))
    }

    fn ident(numbering: &Numbering, number: u32) -> u32 {
        numbering.ident16(number).into()
    }

    fn is_error(icmp_type: u8) -> bool {
        // RFC 792: unreachable, source quench, time exceeded, parameter problem. A redirect (5) is for the link.
        matches!(icmp_type, 3 | 4 | 11 | 12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every first byte the addresses around those that are told apart.
    #[test]
    fn no_address_is_routable_by_its_first_byte_alone_that_is_not() {
        let rests = [0, 1, 0xff, 0x100, 0x00fd_ffff, 0x00fe_0000, 0x00fe_ffff, 0x00ff_0000, 0x00ff_fffe, 0x00ff_ffff];
        let addresses = || (0..=255u32).flat_map(|first| rests.map(|rest| first << 24 | rest));
        for address in addresses() {
            for other in [0x0a00_0001, 0xa9fe_0001, 0xcb00_7101] {
                for (src, dst) in [(address, other), (other, address)] {
                    assert_eq!(V4::is_routable(src, dst), is_routable4(src, dst), "{src:x} > {dst:x}");
                }
            }
        }
    }
}
