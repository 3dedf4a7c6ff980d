//! Rewriting headers: an address, a port, and every checksum over them, incrementally (RFC 1624).

use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, checksum};
use catena_state::Plain;

use crate::family::Family;

/// Which end of a packet is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Its source, on the way out.
    Source = 0,
    /// Its destination, on the way back.
    Destination = 1,
}

/// What an end becomes, with what that does to checksums: sums to add to their complements.
#[derive(Clone, Copy, Debug, Plain)]
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
    /// Work out the change of one endpoint into another, where the upper layer's checksum covers both address and port.
    pub fn new<F: Family<Address = A>>(from: (A, u16), to: (A, u16)) -> Self {
        let address_sum = checksum::add(!F::sum(from.0), F::sum(to.0));
        let upper_sum = checksum::add(address_sum, checksum::add(!from.1, to.1));
        Change { address: to.0, port: to.1, address_sum, upper_sum }
    }

    /// As [`Self::new`], for a protocol whose checksum may leave out the addresses, as that of IPv4's ICMP does.
    pub fn of<F: Family<Address = A>>(from: (A, u16), to: (A, u16), proto: u8) -> Self {
        let change = Self::new::<F>(from, to);
        let is_alone = proto == F::ICMP && !F::IS_V6;
        Change { upper_sum: if is_alone { checksum::add(!from.1, to.1) } else { change.upper_sum }, ..change }
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

/// Return TCP's or UDP's checksum after a change. RFC 768: no checksum stays none, and a zero is written as all ones; RFC 3022 §4.1
/// asks the same of a NAT. A branch, as most UDP has a checksum: where some has and some has none it is mispredicted.
#[inline(always)]
pub fn adjust_upper(check: u16, change: u16, is_udp: bool) -> u16 {
    let new = adjust(check, change);
    // All ones but for UDP: nothing of a zero is left then, and no branch goes by the protocol.
    let others = u16::from(is_udp).wrapping_sub(1);
    if (check | others == 0) | (new | others == 0) { none_or_ones(check) } else { new }
}

/// Apart, lest the choice is made for each packet.
#[cold]
#[inline(never)]
fn none_or_ones(check: u16) -> u16 {
    if check == 0 { 0 } else { 0xffff }
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
    *sum = adjust_upper(old, change.upper_sum, layers.proto == proto::UDP).to_be_bytes();
    let Some(port) = upper.get_mut(port_place..).and_then(|rest| rest.first_chunk_mut::<2>()) else { return false };
    *port = change.port.to_be_bytes();
    address::<F>(frame, layers, side, change.address, change.address_sum)
}

/// Rewrite one end of a packet of any protocol: its port only where it is TCP's or UDP's. Headers that are not where
/// `layers` says stay as they are.
#[inline(always)]
pub fn of_any<F: Family>(frame: &mut [u8], layers: &Layers, side: Side, change: &Change<F::Address>) {
    address::<F>(frame, layers, side, change.address, change.address_sum);
    if layers.has(Layers::PORTS) && layers.proto != proto::SCTP {
        of_ports(frame, layers, side, change);
    } else {
        of_portless::<F>(frame, layers, change.address_sum);
    }
}

#[inline(always)]
fn of_ports<A>(frame: &mut [u8], layers: &Layers, side: Side, change: &Change<A>) {
    let Some(upper) = frame.get_mut(usize::from(layers.l4)..) else { return };
    let is_udp = layers.proto == proto::UDP;
    let place = if is_udp { 6 } else { 16 };
    if let Some(sum) = upper.get_mut(place..place + 2) {
        let old = u16::from_be_bytes([sum[0], sum[1]]);
        sum.copy_from_slice(&adjust_upper(old, change.upper_sum, is_udp).to_be_bytes());
    }
    let place = 2 * side as usize;
    if let Some(port) = upper.get_mut(place..place + 2) {
        port.copy_from_slice(&change.port.to_be_bytes());
    }
}

/// Only ICMPv6 covers addresses with its checksum (RFC 4443 §2.3); later fragments have no header at all.
#[cold]
fn of_portless<F: Family>(frame: &mut [u8], layers: &Layers, sum: u16) {
    if layers.proto != proto::ICMPV6 || layers.has(Layers::LATER) {
        return;
    }
    let place = usize::from(layers.l4) + 2;
    if let Some(check) = frame.get_mut(place..place + 2) {
        let new = adjust(u16::from_be_bytes([check[0], check[1]]), sum);
        check.copy_from_slice(&new.to_be_bytes());
    }
}

/// Rewrite one address, and nothing of the upper layer.
#[inline(always)]
pub fn address<F: Family>(frame: &mut [u8], layers: &Layers, side: Side, new: F::Address, sum: u16) -> bool {
    let Some(header) = frame.get_mut(usize::from(layers.l3)..) else { return false };
    F::rewrite(header, side, new, sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_udp_checksum_of_none_stays_none_and_zero_is_written_as_ones() {
        // RFC 1624 §4: with this change the right answer is 0x0000.
        let change = checksum::add(!0x5555, 0x3285);
        assert_eq!([true, false].map(|is_udp| adjust_upper(0xdd2f, change, is_udp)), [0xffff, 0]);
        for change in 0..=u16::MAX {
            assert_eq!(adjust_upper(0, change, true), 0);
            assert_eq!(adjust_upper(0, change, false), adjust(0, change));
            assert!(adjust_upper(0xdd2f, change, true) != 0, "{change}");
        }
    }
}
