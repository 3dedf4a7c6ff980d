//! IPv4 and IPv6, for functions that are written once for both: where addresses stand, and how one becomes another.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use catena_packet::wire::number::proto;
use catena_packet::wire::{Net, checksum, ipv4, ipv6, ipv6ext};
use catena_state::Plain;

use crate::rewrite::{Side, adjust};

/// A family of addresses.
pub trait Family: Send + Sync + Sized + 'static {
    /// The network layer.
    const NET: Net;
    /// Whether it is IPv6.
    const IS_V6: bool = matches!(Self::NET, Net::Ipv6);
    /// Which of the two families' objects are its own.
    const PART: u8 = Self::IS_V6 as u8;
    /// Its ICMP.
    const ICMP: u8;
    /// Length of the header without options or extensions, in bytes.
    const HEADER: usize;
    /// Offset of the source address from the start of the header, in bytes.
    const SOURCE: usize;
    /// Offset of the header's checksum, if it has one.
    const CHECKSUM: Option<usize>;

    /// An address.
    type Address: Plain + Eq + Ord + Debug + Sync;

    /// Return the offset of an address from the start of the header, in bytes: the destination follows the source.
    #[inline(always)]
    fn place(side: Side) -> usize {
        Self::SOURCE + size_of::<Self::Address>() * side as usize
    }

    /// Read source and destination from the header at `l3`; `None` beyond the frame.
    fn addresses(frame: &[u8], l3: usize) -> Option<[Self::Address; 2]>;
    /// Write an address to `place`; returns whether it fits.
    fn write(frame: &mut [u8], place: usize, address: Self::Address) -> bool;
    /// Write one address into the header that `header` begins with, and add `sum` to the header's checksum where it
    /// has one; returns whether the header is whole, and changes nothing if not.
    fn rewrite(header: &mut [u8], side: Side, address: Self::Address, sum: u16) -> bool;
    /// Return an address as a function's arguments have it, if it is of this family.
    fn address(ip: IpAddr) -> Option<Self::Address>;
    /// Return the same the other way.
    fn ip(address: Self::Address) -> IpAddr;
    /// Return the one's complement sum of an address's words.
    fn sum(address: Self::Address) -> u16;
    /// Return the identification that the fragment at `l3` shares with the others of its datagram.
    fn fragment_ident(frame: &[u8], l3: usize) -> Option<u32>;
}

/// An address of a family.
pub type AddressOf<F> = <F as Family>::Address;

/// IPv4.
pub struct V4;

impl Family for V4 {
    const NET: Net = Net::Ipv4;
    const ICMP: u8 = proto::ICMP;
    const HEADER: usize = ipv4::HEADER_LEN;
    const SOURCE: usize = 12;
    const CHECKSUM: Option<usize> = Some(10);

    type Address = u32;

    #[inline(always)]
    fn addresses(frame: &[u8], l3: usize) -> Option<[u32; 2]> {
        let both = u64::from_be_bytes(*frame.get(l3 + Self::SOURCE..)?.first_chunk()?);
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
        let place = Self::place(side);
        header[place..place + 4].copy_from_slice(&address.to_be_bytes());
        true
    }

    fn address(ip: IpAddr) -> Option<u32> {
        if let IpAddr::V4(ip) = ip { Some(ip.to_bits()) } else { None }
    }

    fn ip(address: u32) -> IpAddr {
        Ipv4Addr::from_bits(address).into()
    }

    fn sum(address: u32) -> u16 {
        checksum::sum(&address.to_be_bytes())
    }

    fn fragment_ident(frame: &[u8], l3: usize) -> Option<u32> {
        frame.get(l3 + 4..)?.first_chunk().map(|bytes| u32::from(u16::from_be_bytes(*bytes)))
    }
}

/// IPv6.
pub struct V6;

impl Family for V6 {
    const NET: Net = Net::Ipv6;
    const ICMP: u8 = proto::ICMPV6;
    const HEADER: usize = ipv6::HEADER_LEN;
    const SOURCE: usize = 8;
    const CHECKSUM: Option<usize> = None;

    type Address = [u64; 2];

    #[inline(always)]
    fn addresses(frame: &[u8], l3: usize) -> Option<[[u64; 2]; 2]> {
        let bytes = frame.get(l3 + Self::SOURCE..)?.first_chunk::<32>()?;
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
        let place = Self::place(side);
        header[place..place + 8].copy_from_slice(&address[0].to_be_bytes());
        header[place + 8..place + 16].copy_from_slice(&address[1].to_be_bytes());
        true
    }

    fn address(ip: IpAddr) -> Option<[u64; 2]> {
        if let IpAddr::V6(ip) = ip { Some([(ip.to_bits() >> 64) as u64, ip.to_bits() as u64]) } else { None }
    }

    fn ip(address: [u64; 2]) -> IpAddr {
        Ipv6Addr::from_bits(u128::from(address[0]) << 64 | u128::from(address[1])).into()
    }

    fn sum(address: [u64; 2]) -> u16 {
        checksum::add(checksum::sum(&address[0].to_be_bytes()), checksum::sum(&address[1].to_be_bytes()))
    }

    fn fragment_ident(frame: &[u8], l3: usize) -> Option<u32> {
        let packet = frame.get(l3..)?;
        let header = packet.first_chunk::<{ Self::HEADER }>()?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let extensions = packet.get(Self::HEADER..Self::HEADER + length)?;
        Some(ipv6ext::walk(header[6], extensions).ok()?.fragment?.ident)
    }
}
