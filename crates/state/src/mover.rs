//! Slots change hands: what an instance has of them leaves it as bytes, and another instance takes them in.
//!
//! A function names its objects once, in one order, for both ways ([`Mover`] knows which it is): whoever leaves writes an object's
//! part, whoever arrives reads it. Objects that all instances see stay where they are. What only one instance has, and keeps by
//! slots, moves: entries with their ends and marks, and values that can be taken apart.

use catena_packet::{Slot, SlotSet};

use crate::engine::{FlowMap, Full};
use crate::key::Key;
use crate::plain::Plain;
use crate::shared_map::{Entry, SharedMap};
use crate::stored::Stored;
use crate::tx::Tx;

/// An entry on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub struct Moved<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// When it is looked at, in ns since 1970; [`FOREVER`](crate::FOREVER) where it never is.
    pub until: u64,
    /// The number of its slot.
    slot: u16,
    /// Whether it may go when room is wanted.
    pub is_marked: bool,
}

impl<K, V> Moved<K, V> {
    /// Tell of an entry.
    pub fn new((key, value): (K, V), until: u64, slot: Slot, is_marked: bool) -> Self {
        Moved { key, value, until, slot: slot.number(), is_marked }
    }

    /// Return its slot.
    pub fn slot(&self) -> Slot {
        Slot::numbered(self.slot).unwrap_or(Slot::NONE)
    }
}

/// What one instance had of some slots. It has bytes itself: it may go to an instance in another process.
#[derive(Clone, Debug, PartialEq, Eq, Stored)]
pub struct Parcel {
    /// The instance that it comes from, by its index.
    from: u32,
    bytes: Vec<u8>,
    entries: u64,
}

impl Parcel {
    /// Return how many entries there are, of all objects.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Return how many bytes it takes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Return whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Carries the objects of slots from one instance, or to another.
pub struct Mover {
    way: Way,
    shown: usize,
}

enum Way {
    Leaving { slots: SlotSet, parcel: Parcel },
    Arriving { parcel: Parcel, at: usize, refused: u64, is_broken: bool },
}

impl Mover {
    /// Begin to take these slots from the instance with this index.
    pub fn leaving(slots: SlotSet, from: u32) -> Mover {
        Self::on(Way::Leaving { slots, parcel: Parcel { from, bytes: Vec::new(), entries: 0 } })
    }

    /// Begin to bring what was taken.
    pub fn arriving(parcel: Parcel) -> Mover {
        Self::on(Way::Arriving { parcel, at: 0, refused: 0, is_broken: false })
    }

    fn on(way: Way) -> Mover {
        Mover { way, shown: 0 }
    }

    /// Return how many maps it was shown: as many as the instance has of its own, else some would be forgotten
    /// ([`Engine::own_maps`](crate::Engine::own_maps)).
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// Leave a map where it is: what is in it is no flow's.
    pub fn stays(&mut self) {
        self.shown += 1;
    }

    /// Return the index of the instance that all comes from, for who takes it in; `None` where it leaves.
    pub fn from(&self) -> Option<u32> {
        match &self.way {
            Way::Leaving { .. } => None,
            Way::Arriving { parcel, .. } => Some(parcel.from),
        }
    }

    /// Return what has left; nothing where it was brought.
    pub fn into_parcel(self) -> Option<Parcel> {
        match self.way {
            Way::Leaving { parcel, .. } => Some(parcel),
            Way::Arriving { .. } => None,
        }
    }

    /// Return how many entries found no room.
    pub fn refused(&self) -> u64 {
        match &self.way {
            Way::Leaving { .. } => 0,
            Way::Arriving { refused, .. } => *refused,
        }
    }

    /// Return whether all that was brought was taken in or refused, after all objects were shown. Else who has written it has other
    /// objects, or its bytes are not all there.
    pub fn is_whole(&self) -> bool {
        match &self.way {
            Way::Leaving { .. } => true,
            Way::Arriving { parcel, at, is_broken, .. } => !is_broken && *at == parcel.bytes.len(),
        }
    }

    /// Move a map's entries. `each` hears of those that have left, and of those that have come and found room.
    pub fn flows<K: Key, V: Plain>(
        &mut self,
        tx: &mut Tx,
        map: &mut impl FlowMap<K, V>,
        each: impl FnMut(&mut Tx, &K, &V),
    ) {
        self.shown += 1;
        self.records(
            &mut (tx, map, each),
            |(tx, map, each), slots, write| {
                map.leave(slots, |moved: Moved<K, V>| {
                    each(tx, &moved.key, &moved.value);
                    write(moved);
                });
            },
            |(tx, map, each), moved| {
                map.arrive(tx, moved)?;
                each(tx, &moved.key, &moved.value);
                Ok(())
            },
        );
    }

    /// Move the entries of a shared map, where this instance has it to itself.
    pub fn shared<K: Key, V: Entry>(&mut self, tx: &mut Tx, map: &mut impl SharedMap<K, V>) {
        self.shown += 1;
        self.records(
            &mut (tx, map),
            |(_, map), slots, write| map.leave(slots, write),
            |(tx, map), moved: Moved<K, V>| map.arrive(tx.now, moved),
        );
    }

    /// Move records of one kind: `leave` writes them, as many as there are, and each of them `arrives`.
    pub fn records<C, T: Plain>(
        &mut self,
        cx: &mut C,
        leave: impl FnOnce(&mut C, &SlotSet, &mut dyn FnMut(T)),
        mut arrive: impl FnMut(&mut C, T) -> Result<(), Full>,
    ) {
        match &mut self.way {
            Way::Leaving { slots, parcel } => {
                let start = parcel.bytes.len();
                0_u32.write(&mut parcel.bytes);
                let mut count = 0_u32;
                leave(cx, slots, &mut |record| {
                    record.write(&mut parcel.bytes);
                    count += 1;
                });
                parcel.bytes[start..start + 4].copy_from_slice(&count.to_le_bytes());
                parcel.entries += count as u64;
            }
            Way::Arriving { parcel, at, refused, is_broken } => {
                let mut left = &parcel.bytes[*at..];
                let count = u32::read(&mut left).filter(|_| !*is_broken);
                *is_broken |= count.is_none();
                for _ in 0..count.unwrap_or(0) {
                    let Some(record) = T::read(&mut left) else {
                        *is_broken = true;
                        break;
                    };
                    if arrive(cx, record).is_err() {
                        *refused += 1;
                    }
                }
                *at = parcel.bytes.len() - left.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::{restored, stored};

    /// Show a mover two objects: what leaves is given, and what arrives is returned.
    fn shown(mover: &mut Mover, numbers: &[u64], small: &[u16]) -> (Vec<u64>, Vec<u16>) {
        let mut came = (Vec::new(), Vec::new());
        mover.records(
            &mut came.0,
            |_, _, write| numbers.iter().for_each(|number| write(*number)),
            |came, number: u64| {
                came.push(number);
                Ok(())
            },
        );
        mover.records(
            &mut came.1,
            |_, _, write| small.iter().for_each(|number| write(*number)),
            |came, number: u16| {
                came.push(number);
                Ok(())
            },
        );
        came
    }

    #[test]
    fn a_parcel_comes_back_from_its_bytes_and_a_broken_one_is_found() {
        let mut mover = Mover::leaving(SlotSet::none(), 3);
        shown(&mut mover, &[7, 8], &[9]);
        let parcel = mover.into_parcel().expect("it has left");
        let again: Parcel = restored(&stored(&parcel)).expect("a parcel's bytes");
        assert_eq!((&again, again.entries()), (&parcel, 3));
        let mut mover = Mover::arriving(again);
        assert_eq!(shown(&mut mover, &[], &[]), (vec![7, 8], vec![9]));
        assert!(mover.is_whole() && mover.from() == Some(3));
        for lost in 1..=parcel.len() {
            let bytes = parcel.bytes[..parcel.len() - lost].to_vec();
            let mut mover = Mover::arriving(Parcel { bytes, ..parcel.clone() });
            shown(&mut mover, &[], &[]);
            assert!(!mover.is_whole(), "without its last {lost} bytes");
        }
        let more = [&parcel.bytes[..], &[0]].concat();
        let mut mover = Mover::arriving(Parcel { bytes: more, ..parcel });
        shown(&mut mover, &[], &[]);
        assert!(!mover.is_whole(), "with a byte more");
    }
}
