//! Rewriting headers: an address, a port, and every checksum over them, incrementally (RFC 1624).

use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, checksum, tcp};

use super::family::Family;

/// Which end of a packet is rewritten: an index of [`Family::PLACES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Its source, on the way out.
    Source = 0,
    /// Its destination, on the way back.
    Destination = 1,
}

/// What an end becomes, with what that does to checksums: sums to add to their complements.
#[derive(Clone, Copy, Debug)]
pub struct Change<A> {
    /// The new address.
    pub address: A,
    /// The new port or identifier.
    pub port: u16,
    /// Of the addresses alone.
    pub address_sum: u16,
    /// Of all that the upper layer's checksum covers.
    pub upper_sum: u16,
}

impl<A: Copy> Change<A> {
    /// Work out the change of one endpoint into another.
    pub fn new<F: Family<Address = A>>(from: (A, u16), to: (A, u16), proto: u8) -> Self {
        let address_sum = checksum::add(!F::sum(from.0), F::sum(to.0));
        let port_sum = checksum::add(!from.1, to.1);
        let upper_sum =
            if proto == F::ICMP && !F::ICMP_PSEUDO { port_sum } else { checksum::add(address_sum, port_sum) };
        Change { address: to.0, port: to.1, address_sum, upper_sum }
    }

    /// Return the change back to `address` and `port`: what was added is taken away.
    #[must_use]
    pub fn back(&self, address: A, port: u16) -> Self {
        Change { address, port, address_sum: !self.address_sum, upper_sum: !self.upper_sum }
    }
}

/// Return a checksum after a change (RFC 1624, Eqn. 3).
#[inline(always)]
pub fn adjust(check: u16, change: u16) -> u16 {
    !checksum::add(!check, change)
}

/// Where port (or identifier) and checksum stand in an upper-layer header. Chosen without a branch, as all choices
/// by protocol are here: in a mix of protocols a branch would be mispredicted again and again.
#[inline(always)]
pub fn places(number: u8, side: Side) -> (usize, usize) {
    let (is_tcp, is_udp) = (usize::from(number == proto::TCP), usize::from(number == proto::UDP));
    let is_other = 1 - is_tcp - is_udp;
    (2 * side as usize * (is_tcp + is_udp) + 4 * is_other, 16 * is_tcp + 6 * is_udp + 2 * is_other)
}

/// Rewrite one end of a packet. Returns whether the headers were where `layers` says.
#[inline(always)]
pub fn end<F: Family>(frame: &mut [u8], layers: &Layers, side: Side, change: &Change<F::Address>) -> bool {
    let (port_place, sum_place) = places(layers.proto, side);
    let l4 = usize::from(layers.l4);
    let Some(upper) = frame.get_mut(l4..) else { return false };
    let Some(sum) = upper.get_mut(sum_place..).and_then(|rest| rest.first_chunk_mut::<2>()) else { return false };
    let old = u16::from_be_bytes(*sum);
    let mut new = adjust(old, change.upper_sum);
    let is_udp = layers.proto == proto::UDP;
    // RFC 768: no checksum stays none, and a zero is written as all ones; RFC 3022 §4.1 asks the same of a NAT.
    if is_udp & ((old == 0) | (new == 0)) {
        new = if old == 0 { 0 } else { 0xffff };
    }
    *sum = new.to_be_bytes();
    let Some(port) = upper.get_mut(port_place..).and_then(|rest| rest.first_chunk_mut::<2>()) else { return false };
    *port = change.port.to_be_bytes();
    address::<F>(frame, layers, side, change.address, change.address_sum)
}

/// Rewrite the source of a whole TCP segment or UDP datagram: as [`end`] does, with fewer checks. Returns the flags
/// of TCP, 0 of UDP; `None`, and has changed nothing, where the headers are not where `layers` says. It gets a new
/// identification if routers may fragment it: what `next` returns for its ends.
#[inline(always)]
pub fn source<F: Family>(
    frame: &mut [u8],
    layers: &Layers,
    change: &Change<F::Address>,
    next: impl FnOnce([u64; 2]) -> u16,
) -> Option<u8> {
    let (before, upper) = frame.split_at_mut_checked(usize::from(layers.l4))?;
    let header = before.get_mut(usize::from(layers.l3)..).filter(|header| header.len() >= F::HEADER)?;
    let is_tcp = layers.proto == proto::TCP;
    let flags = if let Some(upper) = upper.first_chunk_mut::<18>() {
        source_port(upper, 6 + 10 * usize::from(is_tcp), is_tcp, change);
        tcp::Packet::new_unchecked(&*upper).flags() & u8::from(is_tcp).wrapping_neg()
    } else {
        source_port(upper.first_chunk_mut::<8>().filter(|_| !is_tcp)?, 6, false, change);
        0
    };
    F::rewrite_source(header, change.address, change.address_sum, next);
    Some(flags)
}

/// Rewrite the source port, and the checksum at `place`.
#[inline(always)]
fn source_port<A, const N: usize>(upper: &mut [u8; N], place: usize, is_tcp: bool, change: &Change<A>) {
    let old = u16::from_be_bytes([upper[place], upper[place + 1]]);
    let mut new = adjust(old, change.upper_sum);
    if !is_tcp & ((old == 0) | (new == 0)) {
        new = if old == 0 { 0 } else { 0xffff };
    }
    upper[place..place + 2].copy_from_slice(&new.to_be_bytes());
    upper[..2].copy_from_slice(&change.port.to_be_bytes());
}

/// Rewrite one address, and nothing of the upper layer.
#[inline(always)]
pub fn address<F: Family>(frame: &mut [u8], layers: &Layers, side: Side, new: F::Address, sum: u16) -> bool {
    let Some(header) = frame.get_mut(usize::from(layers.l3)..) else { return false };
    F::rewrite(header, side, new, sum)
}
