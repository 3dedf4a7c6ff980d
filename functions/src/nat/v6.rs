//! What translation must know of IPv6.

use catena_packet::wire::{Layers, Seed, ipv6ext};
use catena_state::{Key, Plain, Words};

use super::family::{Host, Translate};
use super::identifications::{Draw, Numbering};
use crate::family::{Family, V6};
use crate::rewrite::Side;
use catena_packet::wire::vlan::Vlan;

/// Address, then VLAN, port and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub struct Endpoint6([u64; 3]);

impl Key for Endpoint6 {
    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        let [upper, lower, tail] = self.0;
        seed.hash5([upper, lower, tail, 0, 0])
    }
}

/// Return whether an address is a group of an interface or of a link: ff01::/16, ff02::/16 and their like with flags
/// (RFC 4291 §2.7).
#[inline(always)]
fn is_link_group(address: [u64; 2]) -> bool {
    (address[0] >> 56 == 0xff) & (address[0] >> 48 & 0xf <= 2)
}

/// Return where the fragment header of the packet at `l3` ends, from there, if it has one.
fn fragment_of(frame: &[u8], l3: usize) -> Option<usize> {
    let packet = frame.get(l3..)?;
    let header = packet.first_chunk::<40>()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let chain = ipv6ext::walk(header[6], packet.get(40..40 + length)?).ok()?;
    chain.fragment.map(|_| 40 + chain.fragmented)
}

impl Translate for V6 {
    const IS_HOST_SUBNET: bool = true;

    type Endpoint = Endpoint6;
    type Pair = [u64; 5];

    #[inline(always)]
    fn rewrite_source(header: &mut [u8], address: [u64; 2], sum: u16, _: impl FnOnce([u64; 2]) -> u16) -> bool {
        // RFC 8200 §4.5: "fragmentation in IPv6 is performed only by source nodes".
        Self::rewrite(header, Side::Source, address, sum)
    }

    #[inline(always)]
    fn endpoint(address: [u64; 2], port: u16, proto: u8) -> Endpoint6 {
        Endpoint6([address[0], address[1], u64::from(port) << 8 | u64::from(proto)])
    }

    #[inline(always)]
    fn parts(endpoint: Endpoint6) -> ([u64; 2], u16, u8) {
        let [upper, lower, tail] = endpoint.0;
        ([upper, lower], (tail >> 8) as u16, tail as u8)
    }

    fn within(Endpoint6([upper, lower, tail]): Endpoint6, vlan: Vlan) -> Endpoint6 {
        Endpoint6([upper, lower, tail | u64::from(vlan) << 24])
    }

    fn vlan(endpoint: Endpoint6) -> Vlan {
        (endpoint.0[2] >> 24) as Vlan
    }

    fn host(address: [u64; 2], vlan: Vlan) -> Host {
        Words(address[0], u64::from(vlan) << 8 | 6)
    }

    fn pair(a: [u64; 2], b: [u64; 2], number: u64) -> [u64; 5] {
        [a[0], a[1], b[0], b[1], number]
    }

    fn first_of_pair(pair: &[u64; 5]) -> ([u64; 2], u64) {
        ([pair[0], pair[1]], pair[4])
    }

    fn after(address: [u64; 2], n: u32) -> [u64; 2] {
        let (lower, carry) = address[1].overflowing_add(u64::from(n));
        [address[0].wrapping_add(u64::from(carry)), lower]
    }

    fn distance(first: [u64; 2], address: [u64; 2]) -> u32 {
        address[1].wrapping_sub(first[1]) as u32
    }

    #[inline(always)]
    fn is_routable(src: [u64; 2], dst: [u64; 2]) -> bool {
        // RFC 4291 §2.5.6: "Routers must not forward any packets with Link-Local source or destination addresses to
        // other links". Nor are those of :: and ::1 (§2.5.2, §2.5.3), and no group is a source (§2.7).
        let nowhere = |address: [u64; 2]| (address[0] >> 54 == 0xfe80 >> 6) | ((address[0] == 0) & (address[1] <= 1));
        !(nowhere(src) | (src[0] >> 56 == 0xff) | nowhere(dst) | is_link_group(dst))
    }

    fn stays_on_link(src: [u64; 2], dst: [u64; 2]) -> bool {
        // RFC 4861 §7.2.2 lets a node ask for its neighbour from a global address.
        let is_of_link = dst[0] >> 54 == 0xfe80 >> 6 || is_link_group(dst);
        is_of_link && src != [0, 1] && src[0] >> 56 != 0xff
    }

    fn unusable(first: [u64; 2], last: [u64; 2]) -> Option<&'static str> {
        let overlaps = |from: [u64; 2], to: [u64; 2]| first <= to && from <= last;
        match () {
            () if overlaps([0, 1], [0, 1]) => Some("the loopback address (::1)"),
            () if overlaps([0, 0], [0, 0]) => Some("the unspecified address (::)"),
            () if overlaps([0xfe80 << 48, 0], [(0xfec0 << 48) - 1, u64::MAX]) => {
                Some("link-local addresses (fe80::/10)")
            }
            () if overlaps([0xff00 << 48, 0], [u64::MAX; 2]) => Some("multicast addresses (ff00::/8)"),
            () => None,
        }
    }

    fn upper(packet: &[u8]) -> Option<(u8, usize)> {
        let header = packet.first_chunk::<40>()?;
        let chain = ipv6ext::walk(header[6], packet.get(40..)?).ok()?;
        let later = chain.fragment.is_some_and(|fragment| fragment.offset > 0);
        (header[0] >> 4 == 6 && !later).then_some((chain.proto, 40 + chain.offset))
    }

    fn is_atomic(_frame: &[u8], layers: &Layers) -> bool {
        !layers.has(Layers::FRAGMENT)
    }

    fn set_ident(frame: &mut [u8], l3: usize, ident: u32) -> Option<()> {
        let end = fragment_of(frame, l3)?;
        frame.get_mut(l3 + end - 4..l3 + end)?.copy_from_slice(&ident.to_be_bytes());
        Some(())
    }

    fn draw(numbering: &Numbering, [src, dst]: [[u64; 2]; 2], _proto: u8) -> Draw {
        // RFC 8200 §4.5: addresses and identification alone tell fragments apart.
        numbering.draw32(Self::pair(src, dst, 0))
    }

    fn ident(numbering: &Numbering, number: u32) -> u32 {
        numbering.ident32(number)
    }

    fn is_error(icmp_type: u8) -> bool {
        // RFC 4443 §2.1: "Error messages are identified as such by a zero in the high-order bit".
        (1..128).contains(&icmp_type)
    }
}
