//! Entries of slots that another instance gets.

use catena_packet::SlotSet;

use super::map::LocalMap;
use crate::engine::{FOREVER, Full};
use crate::key::Key;
use crate::mover::Moved;
use crate::plain::Plain;

impl<K: Key, V> LocalMap<K, V> {
    /// Leave room behind for whoever has less than at the start: an entry has ended that came with its own.
    #[cold]
    pub(super) fn give_room(&mut self) {
        if let Some(spare) = &self.spare {
            spare.leave(1);
            self.limit -= 1;
        }
    }

    /// Take room that others have left behind, up to what there was at the start; returns whether there was some.
    #[cold]
    pub(super) fn take_room(&mut self) -> bool {
        let Some(spare) = self.spare.as_ref().filter(|_| self.limit < self.own) else { return false };
        let took = spare.take();
        if took {
            self.limit += 1;
        }
        took
    }
}

impl<K: Key, V: Plain> LocalMap<K, V> {
    /// Take out all entries of some slots, those that are marked last, in the order of their marks. It looks at all places once. Room
    /// goes with each, so that all instances together never have more than their total. `each` hears the number of each, too.
    pub(crate) fn leave_by(&mut self, slots: &SlotSet, mut each: impl FnMut(u32, Moved<K, V>)) {
        // Room goes with what takes it, and is not left behind.
        let spare = self.spare.take();
        let mut marked = Vec::new();
        let mut next = self.marked.first();
        while let Some(number) = next {
            if self.is_of(slots, number) {
                marked.push(number);
            }
            next = self.marked.after(number);
        }
        for number in 0..self.touched as u32 {
            if self.is_of(slots, number) && !self.marked.holds(number) {
                self.hand_over(number, false, &mut each);
            }
        }
        marked.into_iter().for_each(|number| self.hand_over(number, true, &mut each));
        // What is near of those that are gone is nobody's any more.
        while self.unlink_one() {}
        self.spare = spare;
    }

    /// Take in an entry of another instance's, and room for it.
    pub(crate) fn arrive_by(&mut self, now: u64, moved: &Moved<K, V>) -> Result<(), Full> {
        let ticket = self.ticket(moved.key);
        self.let_in((moved.slot(), now), &ticket, moved.value, moved.until)?;
        self.limit += 1;
        Ok(())
    }

    fn is_of(&self, slots: &SlotSet, number: u32) -> bool {
        let entry = &self.entries[number as usize];
        entry.used && slots.holds(entry.slot)
    }

    fn hand_over(&mut self, number: u32, is_marked: bool, each: &mut impl FnMut(u32, Moved<K, V>)) {
        let entry = &self.entries[number as usize];
        let Some(pair) = entry.pair().copied() else { return };
        let until = self.calendar.time(entry.date).unwrap_or(FOREVER);
        each(number, Moved::new(pair, until, entry.slot, is_marked));
        self.limit = self.limit.saturating_sub(1);
        self.let_go(pair.0.hash(&self.seed), number);
    }
}

#[cfg(test)]
mod tests {
    use crate::board::Room;
    use std::collections::HashMap;

    use catena_packet::Slot;
    use catena_packet::wire::Seed;
    use proptest::prelude::*;

    use super::*;
    use crate::engine::{Fate, FlowMap, Intent};
    use crate::mover::Mover;
    use crate::tx::Tx;

    fn map(limit: usize, room: usize) -> LocalMap<u64, u64> {
        LocalMap::new(Seed::from_number(1), limit, room).expect("memory")
    }

    proptest! {
        /// What is of a slot is found where the slot is: values, ends and the order of marks come along, and the rest stays.
        #[test]
        fn entries_go_with_their_slots(
            entries in prop::collection::vec((0u64..300, 0u16..4, 0u64..100, any::<bool>()), 1..300),
            moves in prop::collection::vec(0u16..4, 0..3),
        ) {
            let mut maps = [map(1000, 1000), map(1000, 1000)];
            let mut tx = Tx::new(1, 1_000_000_000, 0);
            let slot_of = |slot| Slot::numbered(slot).unwrap();
            let mut model: HashMap<u64, (u16, u64, u64)> = HashMap::new();
            let mut line: Vec<u64> = Vec::new();
            for (key, slot, seconds, is_marked) in entries {
                // A key is always of one slot.
                let slot = model.get(&key).map_or(slot, |known| known.0);
                tx.slot = slot_of(slot);
                let until = 2_000_000_000 + seconds * 1_000_000_000;
                let ticket = maps[0].want(&mut tx, key, Intent::Create);
                maps[0].insert(&mut tx, &ticket, seconds, until).unwrap();
                maps[0].mark(&mut tx, &ticket, is_marked);
                line.retain(|other| *other != key || is_marked);
                if is_marked && !line.contains(&key) {
                    line.push(key);
                }
                let until = model.get(&key).map_or(until, |known| known.2.min(until));
                model.insert(key, (slot, seconds, until));
            }
            let slots: SlotSet = moves.iter().copied().map(slot_of).collect();
            let mut mover = Mover::leaving(slots.clone(), 7);
            mover.flows(&mut tx, &mut maps[0], |_, _, _| {});
            let mut mover = Mover::arriving(mover.into_parcel().unwrap());
            prop_assert_eq!(mover.from(), Some(7));
            mover.flows(&mut tx, &mut maps[1], |_, _, _| {});
            prop_assert_eq!(mover.refused(), 0);
            for (key, (slot, value, _)) in &model {
                let at = usize::from(slots.holds(slot_of(*slot)));
                let [here, there] = [at, 1 - at].map(|at| maps[at].peek(&mut tx, *key).copied());
                prop_assert_eq!((here, there), (Some(*value), None), "key {} of slot {}", key, slot);
            }
            for (at, map) in maps.iter_mut().enumerate() {
                let own = |key: &u64| usize::from(slots.holds(slot_of(model[key].0))) == at;
                prop_assert_eq!(FlowMap::len(map), model.keys().filter(|key| own(key)).count());
                // A few ms after an entry's end it is looked at, and not a few ms before.
                for second in 2..103_u64 {
                    let now = second * 1_000_000_000;
                    map.expire(&mut tx, now + 9_000_000, usize::MAX, |_, key, _| {
                        assert!(model[key].2 <= now, "{key} at {now}");
                        Fate::Over
                    });
                    let left = model.iter().filter(|(key, (_, _, until))| own(key) && *until > now).count();
                    prop_assert_eq!(FlowMap::len(map), left);
                    line.retain(|key| model[key].2 > now);
                    if second == 40 {
                        let mut marked = Vec::new();
                        while let Some((key, _)) = map.take_marked(&mut tx) {
                            marked.push(key);
                        }
                        let expected: Vec<_> = line.iter().copied().filter(own).collect();
                        prop_assert_eq!(&marked, &expected);
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn room_that_went_comes_back_when_what_took_it_is_over() {
        let spare = Room::default();
        let [mut from, mut to] = [(); 2].map(|()| {
            let mut map = map(4, 16);
            map.spare = Some(spare.clone());
            map
        });
        let mut tx = Tx::new(1, 0, 0).of(Slot::numbered(9).unwrap());
        let mut fill = |map: &mut LocalMap<u64, u64>, keys: std::ops::Range<u64>| {
            let put = |key: &u64| {
                let ticket = map.want(&mut tx, *key, Intent::Create);
                map.insert(&mut tx, &ticket, *key, FOREVER).is_ok()
            };
            keys.filter(put).count()
        };
        assert_eq!(fill(&mut from, 0..9), 4);
        let mut tx = Tx::new(2, 0, 0).of(Slot::numbered(9).unwrap());
        let mut mover = Mover::leaving([tx.slot].into_iter().collect(), 0);
        mover.flows(&mut tx, &mut from, |_, _, _| {});
        let mut mover = Mover::arriving(mover.into_parcel().unwrap());
        mover.flows(&mut tx, &mut to, |_, _, _| {});
        assert!(from.is_full(&mut tx) && fill(&mut from, 20..29) == 0);
        // Three of the four are over: as much room is there for who has less than at the start.
        (0..3).for_each(|key| to.forget(key, |_| true));
        assert!(!from.is_full(&mut tx));
        assert_eq!((fill(&mut from, 30..39), fill(&mut to, 40..49)), (3, 4));
        assert_eq!(FlowMap::len(&from) + FlowMap::len(&to), 8);
    }

    #[test]
    fn who_takes_in_another_s_entries_gets_their_room_too() {
        let (mut from, mut to) = (map(4, 8), map(4, 8));
        let mut tx = Tx::new(1, 0, 0).of(Slot::numbered(9).unwrap());
        for (map, keys) in [(&mut from, 0..4), (&mut to, 10..14)] {
            for key in keys {
                let ticket = map.want(&mut tx, key, Intent::Create);
                map.insert(&mut tx, &ticket, key, FOREVER).unwrap();
            }
            assert!(map.is_full(&mut tx));
            let ticket = map.want(&mut tx, 99, Intent::Create);
            assert!(map.insert(&mut tx, &ticket, 99, FOREVER).is_err());
        }
        let mut mover = Mover::leaving([tx.slot].into_iter().collect(), 0);
        mover.flows(&mut tx, &mut from, |_, _, _| {});
        let mut mover = Mover::arriving(mover.into_parcel().unwrap());
        mover.flows(&mut tx, &mut to, |_, _, _| {});
        assert_eq!((mover.refused(), FlowMap::len(&from), FlowMap::len(&to)), (0, 0, 8));
        // Together they have room for eight, as before.
        for map in [&mut from, &mut to] {
            assert!(map.is_full(&mut tx));
            let ticket = map.want(&mut tx, 98, Intent::Create);
            assert!(map.insert(&mut tx, &ticket, 98, FOREVER).is_err());
        }
    }
}
