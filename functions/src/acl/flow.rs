//! The flow of a packet as the verdict cache keeps it: few whole words, in the order of the packet's bytes.
//!
//! Most packets belong to flows whose verdict is remembered, so this is all that is read of them: no byte
//! is swapped and no field taken apart before a packet has to be searched for.

use catena_packet::wire::{Layers, Seed};

use super::key::{KeyV4, KeyV6};
use super::protocol;
use crate::effects::Fields;

/// An IPv4 flow: both addresses, then ports, protocol and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowV4(pub [u64; 2]);

/// An IPv6 flow: four words of addresses, then ports, protocol and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowV6(pub [u64; 5]);

/// In the last word, beside the ports (bits 0 to 31) and the protocol: the packet carries ports.
const HAS_PORTS: u64 = 1 << 40;
/// Set in the last word of every flow, so that none is all zeros.
const PRESENT: u64 = 1 << 48;

/// Which bits of flows tell them apart: those of fields that some rule asks for. Two packets that differ in others
/// are one flow, and remembered once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    v4: [u64; 2],
    v6: [u64; 5],
}

impl Mask {
    /// All bits but those of `unread` fields.
    pub fn without(unread: Fields) -> Self {
        let read = |field, bits: u64| if unread.has(field) { 0 } else { bits };
        let (src, dst) = (read(Fields::SOURCE, u64::MAX), read(Fields::DESTINATION, u64::MAX));
        let ports = read(Fields::PORTS, HAS_PORTS | u64::from(u32::MAX));
        let last = PRESENT | read(Fields::PROTOCOL, 0xff << 32) | ports;
        // Of an IPv4 packet's eight bytes of addresses the source's come first, and are the word's lower half.
        Self { v4: [src & u64::from(u32::MAX) | dst << 32, last], v6: [src, src, dst, dst, last] }
    }
}

impl FlowV4 {
    /// Leave out the bits that do not count.
    #[inline(always)]
    pub fn masked(self, Mask { v4: [addresses, last], .. }: &Mask) -> Self {
        Self([self.0[0] & addresses, self.0[1] & last])
    }

    /// Read the flow of an IPv4 packet; `None` if `layers` are not this frame's.
    #[inline(always)]
    pub fn read(frame: &[u8], layers: &Layers) -> Option<Self> {
        let addresses = frame.get(usize::from(layers.l3) + 12..)?.first_chunk()?;
        Some(Self([u64::from_le_bytes(*addresses), last(frame, layers)?]))
    }

    /// Hash it.
    #[inline(always)]
    pub fn hash(&self, seed: &Seed) -> u64 {
        seed.hash2(self.0)
    }
}

impl FlowV6 {
    /// Leave out the bits that do not count.
    #[inline(always)]
    pub fn masked(mut self, mask: &Mask) -> Self {
        self.0.iter_mut().zip(&mask.v6).for_each(|(word, mask)| *word &= mask);
        self
    }

    /// Read the flow of an IPv6 packet; `None` if `layers` are not this frame's.
    #[inline(always)]
    pub fn read(frame: &[u8], layers: &Layers) -> Option<Self> {
        let addresses = frame.get(usize::from(layers.l3) + 8..)?.first_chunk::<32>()?;
        let (words, _) = addresses.as_chunks::<8>();
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| u64::from_le_bytes(words[i]));
        Some(Self([a, b, c, d, last(frame, layers)?]))
    }

    /// Hash it.
    #[inline(always)]
    pub fn hash(&self, seed: &Seed) -> u64 {
        seed.hash5(self.0)
    }
}

/// Read the last word of a flow.
#[inline(always)]
fn last(frame: &[u8], layers: &Layers) -> Option<u64> {
    let protocol = PRESENT | u64::from(layers.proto) << 32;
    if layers.has(Layers::PORTS) {
        let ports = frame.get(usize::from(layers.l4)..)?.first_chunk()?;
        return Some(protocol | HAS_PORTS | u64::from(u32::from_le_bytes(*ports)));
    }
    Some(protocol | uncommon_ports(frame, layers).unwrap_or(0))
}

/// Ports of the protocols whose headers are not parsed (DCCP, UDP-Lite), where they are there.
#[inline(never)]
fn uncommon_ports(frame: &[u8], layers: &Layers) -> Option<u64> {
    const PARSED: [u8; 3] = [6, 17, 132];
    if layers.has(Layers::LATER) || !protocol::has_ports(layers.proto) || PARSED.contains(&layers.proto) {
        return None;
    }
    let ports = frame.get(usize::from(layers.l4)..layers.end(frame)?)?.first_chunk()?;
    Some(HAS_PORTS | u64::from(u32::from_le_bytes(*ports)))
}

/// Ports, protocol and whether there are ports, of a flow's last word.
#[inline(always)]
pub fn upper(last: u64) -> (u16, u16, u8, bool) {
    ((last as u16).swap_bytes(), ((last >> 16) as u16).swap_bytes(), (last >> 32) as u8, last & HAS_PORTS != 0)
}

fn last_of(sport: u16, dport: u16, protocol: u8, has_ports: bool) -> u64 {
    let ports = u64::from(sport.swap_bytes()) | u64::from(dport.swap_bytes()) << 16;
    PRESENT | u64::from(protocol) << 32 | if has_ports { HAS_PORTS | ports } else { 0 }
}

impl From<&KeyV4> for FlowV4 {
    fn from(key: &KeyV4) -> Self {
        let addresses = u64::from(key.src) << 32 | u64::from(key.dst);
        Self([addresses.swap_bytes(), last_of(key.sport, key.dport, key.protocol, key.has_ports)])
    }
}

impl From<&KeyV6> for FlowV6 {
    fn from(key: &KeyV6) -> Self {
        let half = |half: u128| (half as u64).swap_bytes();
        let addresses = [half(key.src >> 64), half(key.src), half(key.dst >> 64), half(key.dst)];
        let [a, b, c, d] = addresses;
        Self([a, b, c, d, last_of(key.sport, key.dport, key.protocol, key.has_ports)])
    }
}

impl From<&FlowV4> for KeyV4 {
    #[inline(always)]
    fn from(&FlowV4([addresses, last]): &FlowV4) -> Self {
        let (sport, dport, protocol, has_ports) = upper(last);
        let addresses = addresses.swap_bytes();
        Self { src: (addresses >> 32) as u32, dst: addresses as u32, sport, dport, protocol, has_ports }
    }
}

impl From<&FlowV6> for KeyV6 {
    #[inline(always)]
    fn from(&FlowV6([a, b, c, d, last]): &FlowV6) -> Self {
        let (sport, dport, protocol, has_ports) = upper(last);
        let join = |high: u64, low: u64| u128::from(high.swap_bytes()) << 64 | u128::from(low.swap_bytes());
        Self { src: join(a, b), dst: join(c, d), sport, dport, protocol, has_ports }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_flow() {
        let v4 = KeyV4 { src: 0x0a00_0001, dst: 0xc000_0209, sport: 4000, dport: 53, protocol: 17, has_ports: true };
        assert_eq!(KeyV4::from(&FlowV4::from(&v4)), v4);
        let (src, dst) = (0x2001_0db8_0000_0001_0002_0003_0004_0005, 0xfe80_0000_0000_0000_1111_2222_3333_4444);
        let v6 = KeyV6 { src, dst, sport: 1, dport: 0xff00, protocol: 6, has_ports: true };
        assert_eq!(KeyV6::from(&FlowV6::from(&v6)), v6);
        assert_ne!(FlowV4::from(&KeyV4::default()), FlowV4::default());
    }

    #[test]
    fn a_mask_leaves_out_the_fields_that_are_not_read() {
        let v4 = KeyV4 { src: 1, dst: 2, sport: 3, dport: 4, protocol: 17, has_ports: true };
        let of = |key: &KeyV4, unread| KeyV4::from(&FlowV4::from(key).masked(&Mask::without(unread)));
        assert_eq!(of(&v4, Fields::NONE), v4);
        assert_eq!(of(&v4, Fields::PORTS), KeyV4 { sport: 0, dport: 0, has_ports: false, ..v4 });
        assert_eq!(of(&v4, Fields::SOURCE | Fields::PROTOCOL), KeyV4 { src: 0, protocol: 0, ..v4 });
        assert_eq!(of(&v4, Fields::DESTINATION), KeyV4 { dst: 0, ..v4 });
        let v6 = KeyV6 { src: 1 << 90 | 1, dst: 1 << 90 | 2, sport: 3, dport: 4, protocol: 17, has_ports: true };
        let of = |unread| KeyV6::from(&FlowV6::from(&v6).masked(&Mask::without(unread)));
        assert_eq!(of(Fields::SOURCE), KeyV6 { src: 0, ..v6 });
        assert_eq!(
            of(Fields::DESTINATION | Fields::PORTS),
            KeyV6 { dst: 0, sport: 0, dport: 0, has_ports: false, ..v6 }
        );
    }

    #[test]
    fn ports_of_unparsed_protocols_are_read_where_they_are_there() {
        use crate::testing::craft;
        let read = |line: &str| {
            let frame = craft(line);
            let layers = catena_packet::wire::parse(&frame).unwrap();
            upper(FlowV4::read(&frame, &layers).unwrap().0[1])
        };
        assert_eq!(read("ip 10.0.0.1 > 10.0.0.2 proto 33 len 12"), (1, 0x0203, 33, true));
        assert_eq!(read("ip 10.0.0.1 > 10.0.0.2 proto 136 len 8"), (1, 0x0203, 136, true));
        assert_eq!(read("ip 10.0.0.1 > 10.0.0.2 proto 33 len 8 id 5 later 24"), (0, 0, 33, false));
        assert_eq!(read("ip 10.0.0.1 > 10.0.0.2 proto 47 len 8"), (0, 0, 47, false));
    }
}
