//! Slots: flows are numbered by one hash, and what is shared out among workers is slots rather than flows.
//!
//! All packets of an inside address are of one slot, on both ways and whatever a function makes of their headers, and so is what
//! they leave behind in a function's state. Whoever gets a slot gets that with it.

/// How many slots there are.
pub const SLOTS: usize = 1 << BITS;

const BITS: u32 = 12;

/// A slot: less than [`SLOTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// The slot of all that was never numbered.
    pub const NONE: Slot = Slot(0);

    /// Return the slot of a hash: its highest bits.
    #[inline(always)]
    pub const fn of(hash: u64) -> Slot {
        Slot((hash >> (u64::BITS - BITS)) as u16)
    }

    /// Return the slot with this number, if there is one.
    pub const fn numbered(number: u16) -> Option<Slot> {
        if (number as usize) < SLOTS { Some(Slot(number)) } else { None }
    }

    /// Return its number.
    #[inline(always)]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// Some of the slots.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet(Box<[u64; SLOTS / 64]>);

impl SlotSet {
    /// Return none of them.
    pub fn none() -> SlotSet {
        SlotSet(Box::new([0; SLOTS / 64]))
    }

    /// Add one.
    pub fn insert(&mut self, slot: Slot) {
        self.0[usize::from(slot.0) / 64] |= 1 << (slot.0 % 64);
    }

    /// Return whether one is among them.
    #[inline(always)]
    pub fn holds(&self, slot: Slot) -> bool {
        self.0[usize::from(slot.0) / 64 % self.0.len()] >> (slot.0 % 64) & 1 == 1
    }

    /// Return them in their order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> {
        (0..SLOTS as u16).map(Slot).filter(|slot| self.holds(*slot))
    }

    /// Return how many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Return whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> SlotSet {
        let mut set = SlotSet::none();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl std::fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(Slot::number)).finish()
    }
}

/// How a packet came in: by which port, and of which slot. One word, as packets have a single cache line to be known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way(u16);

/// Bits that tell the port.
const PORT_BITS: u32 = u16::BITS - BITS;

impl Way {
    /// How many ports are told apart.
    pub const PORTS: u16 = 1 << PORT_BITS;

    /// Return the way by a port, less than [`Self::PORTS`], of packets of no known slot.
    #[inline(always)]
    pub const fn by(port: u16) -> Way {
        Way(port % Self::PORTS)
    }

    /// Return the way by the same port of the packets of a slot.
    #[inline(always)]
    #[must_use]
    pub const fn of(self, slot: Slot) -> Way {
        Way(self.port() | slot.0 << PORT_BITS)
    }

    /// Return the port.
    #[inline(always)]
    pub const fn port(self) -> u16 {
        self.0 % Self::PORTS
    }

    /// Return the slot.
    #[inline(always)]
    pub const fn slot(self) -> Slot {
        Slot(self.0 >> PORT_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_and_port_comes_back() {
        for number in 0..SLOTS as u16 {
            let slot = Slot::numbered(number).expect("there is one");
            let hash = u64::from(number) << 52 | 0x000f_ffff_ffff_ffff;
            assert_eq!(Slot::of(hash), slot);
            for port in [0, 1, 15] {
                let way = Way::by(port).of(slot);
                assert_eq!((way.port(), way.slot()), (port, slot));
            }
        }
        assert_eq!(Slot::numbered(SLOTS as u16), None);
    }

    #[test]
    fn a_set_holds_what_was_added() {
        let odd: SlotSet = (0..SLOTS as u16).filter_map(Slot::numbered).filter(|slot| slot.number() % 2 == 1).collect();
        assert_eq!((odd.len(), odd.is_empty(), SlotSet::none().is_empty()), (SLOTS / 2, false, true));
        assert!(odd.iter().all(|slot| slot.number() % 2 == 1) && !odd.holds(Slot::NONE));
    }
}
