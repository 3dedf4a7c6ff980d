//! The operations of one packet, as one unit.

use catena_packet::Slot;

/// Whose operations they are: a packet's, or those of an event that is nobody's packet, such as tidying up.
///
/// It belongs to one packet, from its *prepare* to its fate, so it is no [`Copy`]: what is counted in it is counted once. All that
/// *prepare* and *finish* may know beside the packet and the state is in it, and is the same whenever the packet is processed again.
/// Nobody keeps one to do something on its account later:
///
/// ```compile_fail
/// # use catena_state::Tx;
/// fn kept(tx: &Tx) -> Tx {
///     *tx
/// }
/// ```
#[derive(Debug)]
pub struct Tx {
    /// The time in ns since 1970: a packet's own. Captures may hold packets out of order: it can step back.
    pub now: u64,
    /// The packet's logical clock, as its source gave it; an event's own.
    clock: u64,
    /// Operations so far.
    count: u32,
    /// By which the engine knows it; 0 where it does not.
    unit: u32,
    asked: Marks,
    /// The input gate: 0 on the way out, 1 on the way back.
    pub gate: u16,
    /// The slot that the packet is of, and that entries are of which it makes.
    pub slot: Slot,
}

/// A packet's pass through a function. One that is turned round, as a translator does between two inside hosts, passes those
/// in front of that one twice: on the way out and on the way back. These are two passes of one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pass {
    /// The packet's logical clock.
    pub clock: u64,
    /// The gate by which it comes in.
    pub gate: u16,
}

/// The name of an operation on an object: the same whenever its packet is processed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Whose it is.
    pub pass: Pass,
    /// Which of the packet's operations it is, from 0, over all its steps.
    pub index: u32,
}

impl Tx {
    /// Begin the operations of a packet or an event: its logical clock, its time in ns since 1970 and its gate.
    #[inline(always)]
    pub fn new(clock: u64, now: u64, gate: u16) -> Self {
        Tx { now, clock, count: 0, unit: 0, asked: Marks::default(), gate, slot: Slot::NONE }
    }

    /// Say which slot the packet is of.
    #[inline(always)]
    #[must_use]
    pub fn of(self, slot: Slot) -> Self {
        Tx { slot, ..self }
    }

    /// Make these the operations of another packet: its logical clock, its time, its gate and its slot. For engines that neither count
    /// nor know them, to write no more for each packet than that.
    #[inline(always)]
    pub fn goes_to(&mut self, clock: u64, now: u64, gate: u16, slot: Slot) {
        debug_assert!(self.count == 0 && self.unit == 0 && self.asked.count == 0, "an engine counts or knows them");
        (self.clock, self.now, self.gate, self.slot) = (clock, now, gate, slot);
    }

    /// Give it the number by which an engine knows it.
    #[inline(always)]
    #[must_use]
    pub fn known_as(self, unit: u32) -> Self {
        Tx { unit, ..self }
    }

    /// Note the number by which an engine knows it.
    #[inline(always)]
    pub(crate) fn is_known_as(&mut self, unit: u32) {
        self.unit = unit;
    }

    /// Note that it has asked for an entry: its key's hash.
    #[inline(always)]
    pub(crate) fn asks_for(&mut self, key: u64) {
        self.asked.add((key >> 48) as u16);
    }

    /// Return whether it has asked for an entry that the other has asked for. It may say so of others, too.
    pub(crate) fn meets(&self, other: &Tx) -> bool {
        self.asked.meet(&other.asked)
    }

    /// Return the hashes of the keys of entries that it has asked for, in that order, and whether these are not all.
    #[inline(always)]
    pub(crate) fn marks(&self) -> (&[u16], bool) {
        let count = usize::from(self.asked.count);
        (&self.asked.marks[..count.min(MARKS)], count > MARKS)
    }

    /// Return the number by which the engine knows it: no other that is open has it.
    #[inline(always)]
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Return the logical clock.
    #[inline(always)]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Return how many operations were named.
    #[inline(always)]
    pub fn operations(&self) -> u32 {
        self.count
    }

    /// Name the next operation. For engines that name them: each of their operations calls this once, in the order in which the
    /// function asks.
    #[inline(always)]
    pub fn name(&mut self) -> Name {
        let index = self.count;
        self.count += 1;
        Name { pass: self.pass(), index }
    }

    /// Return whose operations they are.
    #[inline(always)]
    pub fn pass(&self) -> Pass {
        Pass { clock: self.clock, gate: self.gate }
    }
}

/// Most marks that are told apart.
const MARKS: usize = 7;

/// What was asked for, as short hashes.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    marks: [u16; MARKS],
    /// How many there were: also of those that found no place.
    count: u16,
}

impl Marks {
    #[inline(always)]
    fn add(&mut self, mark: u16) {
        if let Some(place) = self.marks.get_mut(usize::from(self.count)) {
            *place = mark;
        }
        self.count = self.count.saturating_add(1);
    }

    fn meet(&self, other: &Marks) -> bool {
        let [ours, theirs] = [self, other].map(|marks| marks.marks.get(..marks.count.into()));
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => ours.iter().any(|mark| theirs.contains(mark)),
            // Of too many nobody knows.
            _ => self.count > 0 && other.count > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_the_same_is_known_and_of_too_many_all_are() {
        let mut packets = [(); 3].map(|()| Tx::new(1, 0, 0));
        let [a, b, c] = &mut packets;
        (1..=7).for_each(|key: u64| a.asks_for(key << 48));
        b.asks_for(9 << 48);
        assert!(!a.meets(b) && !b.meets(a) && !c.meets(a));
        b.asks_for(7 << 48);
        assert!(a.meets(b) && b.meets(a) && !c.meets(b));
        b.asks_for(10 << 48);
        c.asks_for(11 << 48);
        assert!(!c.meets(a) && !c.meets(b));
        a.asks_for(8 << 48);
        assert!(c.meets(a) && a.meets(c) && !c.meets(b));
        assert!(!Tx::new(2, 0, 0).meets(a));
    }

    #[test]
    fn what_goes_to_another_packet_is_as_if_begun_for_it() {
        let mut tx = Tx::new(7, 1000, 1).of(Slot::of(3));
        tx.goes_to(8, 2000, 0, Slot::of(4));
        assert_eq!(format!("{tx:?}"), format!("{:?}", Tx::new(8, 2000, 0).of(Slot::of(4))));
    }

    #[test]
    fn operations_are_named_in_order() {
        let mut tx = Tx::new(7, 1000, 1).known_as(3);
        let name = |gate, index| Name { pass: Pass { clock: 7, gate }, index };
        assert_eq!([tx.name(), tx.name()], [name(1, 0), name(1, 1)]);
        assert_eq!((tx.clock(), tx.now, tx.gate, tx.unit()), (7, 1000, 1, 3));
        assert_eq!(Tx::new(7, 1000, 1).name(), name(1, 0), "processed again");
        assert_eq!(Tx::new(7, 1000, 0).name(), name(0, 0), "by another gate");
    }
}
