//! Rewriting the source of a packet on its way out, which is most of what NAT does.

use catena_packet::wire::number::proto;
use catena_packet::wire::{Layers, tcp};

use super::family::Translate;
use crate::rewrite::{Change, adjust_upper};

/// Rewrite the source of a whole TCP segment or UDP datagram: as [`end`](crate::rewrite::end) does, with fewer checks.
/// Returns the flags of TCP, 0 of UDP; `None`, and has changed nothing, where the headers are not where `layers` says.
/// It gets a new identification if routers may fragment it: what `next` returns for its ends.
#[inline(always)]
pub fn source<F: Translate>(
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
    let new = adjust_upper(old, change.upper_sum, !is_tcp);
    upper[place..place + 2].copy_from_slice(&new.to_be_bytes());
    upper[..2].copy_from_slice(&change.port.to_be_bytes());
}
