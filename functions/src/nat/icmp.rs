//! ICMP errors: the packet they are about is translated inside out (RFC 5508 §4).

use catena_packet::wire::Layers;
use catena_packet::wire::checksum::{self, Delta};
use catena_packet::wire::number::proto;

use super::family::Translate;
use crate::rewrite::{self, Side, adjust, adjust_upper, places};

/// The packet that an error is about: an inside or external endpoint at one of its ends.
#[derive(Clone, Copy, Debug)]
pub struct About<F: Translate> {
    /// Where it begins in the frame.
    at: usize,
    /// Where its upper layer begins.
    l4: usize,
    /// Where the ICMP message ends.
    end: usize,
    /// Its protocol.
    pub proto: u8,
    /// Its addresses.
    pub addresses: [F::Address; 2],
    /// Its ports; twice the identifier of a query.
    pub ports: [u16; 2],
}

/// Read the packet that an ICMP error is about; `None` if it is no error or does not show enough of it.
pub fn about<F: Translate>(frame: &[u8], layers: &Layers) -> Option<About<F>> {
    let message = usize::from(layers.l4);
    if layers.proto != F::ICMP || layers.flags & (Layers::FRAGMENT | Layers::LATER) != 0 {
        return None;
    }
    if !F::is_error(*frame.get(message)?) {
        return None;
    }
    let end = ip_end::<F>(frame, layers)?;
    let at = message + 8;
    let (number, length) = F::upper(frame.get(at..end)?)?;
    let l4 = at + length;
    // RFC 792: "the first 64 bits of the original datagram's data" are there.
    let upper = frame.get(l4..end)?.first_chunk::<8>()?;
    let word = |place: usize| u16::from_be_bytes([upper[place], upper[place + 1]]);
    let ports = match number {
        proto::TCP | proto::UDP => [word(0), word(2)],
        number if number == F::ICMP && !F::is_error(upper[0]) => [word(4), word(4)],
        _ => return None,
    };
    Some(About { at, l4, end, proto: number, addresses: F::addresses(frame, at)?, ports })
}

/// Return where the IP packet ends, before any padding of the frame.
fn ip_end<F: Translate>(frame: &[u8], layers: &Layers) -> Option<usize> {
    let l3 = usize::from(layers.l3);
    let length = |place: usize| frame.get(l3 + place..)?.first_chunk().map(|b| usize::from(u16::from_be_bytes(*b)));
    let end = if F::CHECKSUM.is_some() { l3 + length(2)? } else { l3 + 40 + length(4)? };
    Some(end.min(frame.len()))
}

/// Changes words and adds up what that does to a checksum over them.
struct Patch<'a> {
    frame: &'a mut [u8],
    delta: Delta,
}

impl Patch<'_> {
    fn put(&mut self, place: usize, new: u16) -> Option<u16> {
        let word = self.frame.get_mut(place..)?.first_chunk_mut::<2>()?;
        let old = u16::from_be_bytes(*word);
        self.delta = self.delta.change16(old, new);
        *word = new.to_be_bytes();
        Some(old)
    }

    fn get(&self, place: usize) -> Option<u16> {
        self.frame.get(place..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
    }
}

/// Rewrite an error. The packet it is about gets `address` and `port` at its `inner` end, the error itself
/// `address` at its `outer` end. Returns `None` where the headers are not what they were.
pub fn translate<F: Translate>(
    frame: &mut [u8],
    layers: &Layers,
    about: &About<F>,
    (outer, inner): (Side, Side),
    address: F::Address,
    port: u16,
) -> Option<()> {
    let l3 = usize::from(layers.l3);
    let old = about.addresses[inner as usize];
    let change = rewrite::Change::of::<F>((old, about.ports[inner as usize]), (address, port), about.proto);
    let outer_old = F::addresses(frame, l3)?[outer as usize];
    let outer_sum = checksum::add(!F::sum(outer_old), F::sum(address));

    let mut patch = Patch { frame, delta: Delta::new() };
    let (port_place, sum_place) = places(about.proto, inner);
    patch.put(about.l4 + port_place, port)?;
    // RFC 5508 REQ-3 asks for the inner checksums too; TCP's often lies beyond what is shown.
    if about.l4 + sum_place + 2 <= about.end {
        let check = patch.get(about.l4 + sum_place)?;
        patch.put(about.l4 + sum_place, adjust_upper(check, change.upper_sum, about.proto == proto::UDP))?;
    }
    if let Some(place) = F::CHECKSUM {
        let check = patch.get(about.at + place)?;
        patch.put(about.at + place, adjust(check, change.address_sum))?;
    }
    let place = about.at + F::place(inner);
    patch.delta = patch.delta.change16(0xffff, change.address_sum);
    if !F::write(patch.frame, place, address) {
        return None;
    }
    if F::IS_V6 {
        patch.delta = patch.delta.change16(0xffff, outer_sum);
    }
    let Patch { frame, delta } = patch;
    let sum = frame.get_mut(usize::from(layers.l4) + 2..)?.first_chunk_mut::<2>()?;
    *sum = delta.apply(u16::from_be_bytes(*sum)).to_be_bytes();
    rewrite::address::<F>(frame, layers, outer, address, outer_sum).then_some(())
}
