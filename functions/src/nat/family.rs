//! What translation must know of IPv4 and of IPv6: where things stand, and which words key them.

use std::fmt::Debug;

use catena_packet::wire::checksum::Delta;
use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, Net, Seed, checksum, ipv6ext};
use catena_state::Key;

use super::identifications::Identifications;
use super::rewrite::{Side, adjust};
use super::tags::Vlan;

/// A key of two words.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Words(pub u64, pub u64);

impl Words {
    /// Return both words.
    pub fn words(self) -> [u64; 2] {
        [self.0, self.1]
    }
}

impl PartialEq for Words {
    #[inline(always)]
    fn eq(&self, other: &Words) -> bool {
        // Word by word: a key that was just written by words is read slowly as one of 16 bytes.
        (self.0 ^ other.0) | (self.1 ^ other.1) == 0
    }
}

impl Key for Words {
    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash2([self.0, self.1])
    }
}

/// Keys a host: an address of IPv4 or 64 bits of one of IPv6, and its VLAN with the family.
pub type Host = Words;

/// A family of addresses.
pub trait Family: Send + Sync + 'static {
    /// The network layer.
    const NET: Net;
    /// Its ICMP.
    const ICMP: u8;
    /// Whether ICMP's checksum covers the addresses.
    const ICMP_PSEUDO: bool;
    /// Length of the header without options or extensions, in bytes.
    const HEADER: usize;
    /// Offsets of source and destination address from the start of the header, in bytes.
    const PLACES: [usize; 2];
    /// Whether a host has many addresses.
    const IS_HOST_SUBNET: bool;
    /// Offset of the header's checksum, if it has one.
    const CHECKSUM: Option<usize>;

    /// An address.
    type Address: Copy + Eq + Ord + Debug + Send + Sync + 'static;
    /// Keys address, port and protocol, of an inside endpoint also its VLAN.
    type Endpoint: Key;
    /// Keys two addresses and up to eight bytes.
    type Pair: Key;

    /// Read source and destination from the header at `l3`; `None` beyond the frame.
    fn addresses(frame: &[u8], l3: usize) -> Option<[Self::Address; 2]>;
    /// Write an address to `place`; returns whether it fits.
    fn write(frame: &mut [u8], place: usize, address: Self::Address) -> bool;
    /// Write one address into the header that `header` begins with, and add `sum` to the header's checksum where it
    /// has one; returns whether the header is whole, and changes nothing if not.
    fn rewrite(header: &mut [u8], side: Side, address: Self::Address, sum: u16) -> bool;
    /// As [`Self::rewrite`], of the source of a packet that is no fragment; it also gets a new identification if routers
    /// may fragment it.
    fn rewrite_source(header: &mut [u8], address: Self::Address, sum: u16, next: &mut Identifications) -> bool;
    /// Return the one's complement sum of an address's words.
    fn sum(address: Self::Address) -> u16;
    /// Return the key of an endpoint in no VLAN.
    fn endpoint(address: Self::Address, port: u16, proto: u8) -> Self::Endpoint;
    /// Return what [`Self::endpoint`] was given.
    fn parts(endpoint: Self::Endpoint) -> (Self::Address, u16, u8);
    /// Return the key of an endpoint, which is in no VLAN, in one.
    fn within(endpoint: Self::Endpoint, vlan: Vlan) -> Self::Endpoint;
    /// Return the VLAN of an endpoint.
    fn vlan(endpoint: Self::Endpoint) -> Vlan;
    /// Return the key of the host with an address in a VLAN. Of IPv6 that is a subnet: a machine has as many addresses
    /// there as it likes (RFC 7934 §3, RFC 8981), so whatever is counted by single addresses is not bounded.
    fn host(address: Self::Address, vlan: Vlan) -> Host;
    /// Return the host that has an endpoint.
    fn host_of(endpoint: Self::Endpoint) -> Host {
        Self::host(Self::parts(endpoint).0, Self::vlan(endpoint))
    }
    /// Return the key of two addresses and a number.
    fn pair(a: Self::Address, b: Self::Address, number: u64) -> Self::Pair;
    /// Return the first address of a pair, and its number.
    fn first_of_pair(pair: &Self::Pair) -> (Self::Address, u64);
    /// Return the address `n` after this one.
    fn after(address: Self::Address, n: u32) -> Self::Address;
    /// Return by how much `address` is after `first`, which is not greater and not further than that.
    fn distance(first: Self::Address, address: Self::Address) -> u32;
    /// Return whether a packet from `src` to `dst` may go beyond its link, and so be translated.
    fn is_routable(src: Self::Address, dst: Self::Address) -> bool;
    /// Return whether a packet from `src` to `dst`, which is not routable, is the link's own business: neighbour
    /// discovery, DHCP, routers' hellos.
    fn stays_on_link(src: Self::Address, dst: Self::Address) -> bool;
    /// Say why no packet may come from an external address between `first` and `last`, if so.
    fn unusable(first: Self::Address, last: Self::Address) -> Option<&'static str>;
    /// Return protocol and upper-layer offset of the header at the start of `packet`, which may be cut short.
    /// `None` for what has no ports to read there.
    fn upper(packet: &[u8]) -> Option<(u8, usize)>;
    /// Return the identification that the fragment at `l3` shares with the others of its datagram.
    fn fragment_ident(frame: &[u8], l3: usize) -> Option<u32>;
    /// Return whether a packet is whole, and no router may fragment it.
    fn is_atomic(frame: &[u8], layers: &Layers) -> bool;
    /// Change the identification of a packet at `l3` that is not atomic; `None` where it has none.
    fn set_ident(frame: &mut [u8], l3: usize, ident: u32) -> Option<()>;
    /// Return the next identification of what only identifications tell apart.
    fn next_ident(next: &mut Identifications, ends: [Self::Address; 2], proto: u8) -> u32;
    /// Return whether an ICMP message of this type tells of an error with another packet.
    fn is_error(icmp_type: u8) -> bool;
}

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

/// IPv4.
pub struct V4;

impl Family for V4 {
    const NET: Net = Net::Ipv4;
    const ICMP: u8 = proto::ICMP;
    const ICMP_PSEUDO: bool = false;
    const HEADER: usize = 20;
    const PLACES: [usize; 2] = [12, 16];
    const IS_HOST_SUBNET: bool = false;
    const CHECKSUM: Option<usize> = Some(10);

    type Address = u32;
    type Endpoint = Words;
    type Pair = [u64; 2];

    #[inline(always)]
    fn addresses(frame: &[u8], l3: usize) -> Option<[u32; 2]> {
        let both = u64::from_be_bytes(*frame.get(l3 + 12..)?.first_chunk()?);
        Some([(both >> 32) as u32, both as u32])
    }

    #[inline(always)]
    fn write(frame: &mut [u8], place: usize, address: u32) -> bool {
        let Some(bytes) = frame.get_mut(place..).and_then(|rest| rest.first_chunk_mut()) else { return false };
        *bytes = address.to_be_bytes();
        true
    }

    #[inline(always)]
    fn rewrite(header: &mut [u8], side: Side, address: u32, sum: u16) -> bool {
        let Some(header) = header.first_chunk_mut::<{ Self::HEADER }>() else { return false };
        let check = adjust(u16::from_be_bytes([header[10], header[11]]), sum);
        header[10..12].copy_from_slice(&check.to_be_bytes());
        let place = Self::PLACES[side as usize];
        header[place..place + 4].copy_from_slice(&address.to_be_bytes());
        true
    }

    #[inline(always)]
    fn rewrite_source(header: &mut [u8], address: u32, sum: u16, next: &mut Identifications) -> bool {
        let Some(header) = header.first_chunk_mut::<{ Self::HEADER }>() else { return false };
        let mut delta = Delta::new().change16(0xffff, sum);
        // A branch, as most of today's traffic is atomic.
        if header[6] & 0x40 == 0 {
            let dst = u32::from_be_bytes([header[16], header[17], header[18], header[19]]);
            let new = next.next16(Self::pair(address, dst, header[9].into()));
            delta = delta.change16(u16::from_be_bytes([header[4], header[5]]), new);
            header[4..6].copy_from_slice(&new.to_be_bytes());
        }
        let check = delta.apply(u16::from_be_bytes([header[10], header[11]]));
        header[10..12].copy_from_slice(&check.to_be_bytes());
        header[12..16].copy_from_slice(&address.to_be_bytes());
        true
    }

    fn sum(address: u32) -> u16 {
        checksum::sum(&address.to_be_bytes())
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

    fn fragment_ident(frame: &[u8], l3: usize) -> Option<u32> {
        frame.get(l3 + 4..)?.first_chunk().map(|bytes| u32::from(u16::from_be_bytes(*bytes)))
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

    fn next_ident(next: &mut Identifications, [src, dst]: [u32; 2], proto: u8) -> u32 {
        next.next16(Self::pair(src, dst, proto.into())).into()
    }

    fn is_error(icmp_type: u8) -> bool {
        // RFC 792: unreachable, source quench, time exceeded, parameter problem. A redirect (5) is for the link.
        matches!(icmp_type, 3 | 4 | 11 | 12)
    }
}

/// IPv6.
pub struct V6;

/// Address, then VLAN, port and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Family for V6 {
    const NET: Net = Net::Ipv6;
    const ICMP: u8 = proto::ICMPV6;
    const ICMP_PSEUDO: bool = true;
    const HEADER: usize = 40;
    const PLACES: [usize; 2] = [8, 24];
    const IS_HOST_SUBNET: bool = true;
    const CHECKSUM: Option<usize> = None;

    type Address = [u64; 2];
    type Endpoint = Endpoint6;
    type Pair = [u64; 5];

    #[inline(always)]
    fn addresses(frame: &[u8], l3: usize) -> Option<[[u64; 2]; 2]> {
        let bytes = frame.get(l3 + 8..)?.first_chunk::<32>()?;
        let (words, _) = bytes.as_chunks::<8>();
        let word = |i: usize| u64::from_be_bytes(words[i]);
        Some([[word(0), word(1)], [word(2), word(3)]])
    }

    #[inline(always)]
    fn write(frame: &mut [u8], place: usize, address: [u64; 2]) -> bool {
        let Some(bytes) = frame.get_mut(place..).and_then(|rest| rest.first_chunk_mut::<16>()) else { return false };
        bytes[..8].copy_from_slice(&address[0].to_be_bytes());
        bytes[8..].copy_from_slice(&address[1].to_be_bytes());
        true
    }

    #[inline(always)]
    fn rewrite(header: &mut [u8], side: Side, address: [u64; 2], _sum: u16) -> bool {
        let Some(header) = header.first_chunk_mut::<{ Self::HEADER }>() else { return false };
        let place = Self::PLACES[side as usize];
        header[place..place + 8].copy_from_slice(&address[0].to_be_bytes());
        header[place + 8..place + 16].copy_from_slice(&address[1].to_be_bytes());
        true
    }

    #[inline(always)]
    fn rewrite_source(header: &mut [u8], address: [u64; 2], sum: u16, _next: &mut Identifications) -> bool {
        // RFC 8200 §4.5: "fragmentation in IPv6 is performed only by source nodes".
        Self::rewrite(header, Side::Source, address, sum)
    }

    fn sum(address: [u64; 2]) -> u16 {
        checksum::add(checksum::sum(&address[0].to_be_bytes()), checksum::sum(&address[1].to_be_bytes()))
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

    fn fragment_ident(frame: &[u8], l3: usize) -> Option<u32> {
        let packet = frame.get(l3..)?;
        let header = packet.first_chunk::<40>()?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        Some(ipv6ext::walk(header[6], packet.get(40..40 + length)?).ok()?.fragment?.ident)
    }

    fn is_atomic(_frame: &[u8], layers: &Layers) -> bool {
        !layers.has(Layers::FRAGMENT)
    }

    fn set_ident(frame: &mut [u8], l3: usize, ident: u32) -> Option<()> {
        let end = fragment_of(frame, l3)?;
        frame.get_mut(l3 + end - 4..l3 + end)?.copy_from_slice(&ident.to_be_bytes());
        Some(())
    }

    fn next_ident(next: &mut Identifications, [src, dst]: [[u64; 2]; 2], _proto: u8) -> u32 {
        // RFC 8200 §4.5: addresses and identification alone tell fragments apart.
        next.next32(Self::pair(src, dst, 0))
    }

    fn is_error(icmp_type: u8) -> bool {
        // RFC 4443 §2.1: "Error messages are identified as such by a zero in the high-order bit".
        (1..128).contains(&icmp_type)
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
