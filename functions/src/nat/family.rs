//! What translation must know of IPv4 and of IPv6 beside [`Family`]: which words key things, and what may pass.

use catena_packet::wire::Layers;
use catena_state::Key;
pub use catena_state::value::ports::Host;

use super::identifications::{Draw, Numbering};
use crate::family::Family;
use catena_packet::wire::vlan::Vlan;

/// What NAT needs of a family of addresses.
pub trait Translate: Family {
    /// Whether a host has many addresses.
    const IS_HOST_SUBNET: bool;
    /// Keys address, port and protocol, of an inside endpoint also its VLAN.
    type Endpoint: Key;
    /// Keys two addresses and up to eight bytes.
    type Pair: Key;

    /// As [`Family::rewrite`], of the source of a packet that is no fragment; it also gets a new identification if routers
    /// may fragment it: what `next` returns for its ends.
    fn rewrite_source(header: &mut [u8], address: Self::Address, sum: u16, next: impl FnOnce([u64; 2]) -> u16) -> bool;
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
    /// Return whether a packet is whole, and no router may fragment it.
    fn is_atomic(frame: &[u8], layers: &Layers) -> bool;
    /// Change the identification of a packet at `l3` that is not atomic; `None` where it has none.
    fn set_ident(frame: &mut [u8], l3: usize, ident: u32) -> Option<()>;
    /// Return what to ask for the next identification of what only identifications tell apart.
    fn draw(numbering: &Numbering, ends: [Self::Address; 2], proto: u8) -> Draw;
    /// Return the identification that the number so asked for becomes.
    fn ident(numbering: &Numbering, number: u32) -> u32;
    /// Return whether an ICMP message of this type tells of an error with another packet.
    fn is_error(icmp_type: u8) -> bool;
}
