//! Attributes: values that functions tag packets with, in slots that get their offsets by name when a
//! pipeline is built.

use std::collections::BTreeMap;

use catena_packet::Packet;
use catena_packet::meta::ATTRIBUTE_BYTES;

/// Where an attribute of two bytes stands in a packet's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u8);

impl Slot {
    /// Return the packet's value (0 when no function has set it).
    #[inline(always)]
    pub fn get(self, packet: &Packet) -> u16 {
        let at = usize::from(self.0);
        let bytes = &packet.meta().attributes;
        u16::from_le_bytes([bytes[at], bytes[at + 1]])
    }

    /// Set the packet's value.
    #[inline(always)]
    pub fn set(self, packet: &mut Packet, value: u16) {
        let at = usize::from(self.0);
        packet.meta_mut().attributes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
}

/// The attributes of one pipeline.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    slots: BTreeMap<String, Slot>,
}

impl Attributes {
    /// Return the slot of an attribute, giving it one at the first call.
    ///
    /// # Errors
    /// The number of attributes there is room for, when there is none left.
    pub fn slot(&mut self, name: &str) -> Result<Slot, usize> {
        if let Some(slot) = self.slots.get(name) {
            return Ok(*slot);
        }
        let offset = self.slots.len() * 2;
        if offset + 2 > ATTRIBUTE_BYTES {
            return Err(ATTRIBUTE_BYTES / 2);
        }
        let slot = Slot(offset as u8);
        self.slots.insert(name.to_owned(), slot);
        Ok(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_packet::Depot;

    #[test]
    fn slots_do_not_overlap_and_run_out() {
        let mut attributes = Attributes::default();
        let slots: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|n| attributes.slot(n).unwrap()).into();
        assert_eq!(attributes.slot("a"), Ok(slots[0]));
        assert_eq!(attributes.slot("g"), Err(6));
        let depot = Depot::map(1, 0).unwrap();
        let mut packet = depot.pool().take(0).unwrap();
        slots.iter().zip(1..).for_each(|(slot, value)| slot.set(&mut packet, value * 257));
        assert!(slots.iter().zip(1..).all(|(slot, value)| slot.get(&packet) == value * 257));
    }
}
