//! The bytes of a shared map: its entries, in the order in which they are looked at.

use super::calendar::DAY;
use super::shared_map::LocalSharedMap;
use super::{LocalMap, LocalTicket};
use crate::engine::FOREVER;
use crate::key::Key;
use crate::mover::Moved;
use crate::plain::Plain;
use crate::shared_map::Entry;
use crate::stored::{Stored, store_all};

impl<K: Key, V: Plain> LocalMap<K, V> {
    /// Return all entries: those that end, the first one first, and then those that do not.
    fn all(&self) -> Vec<Moved<K, V>> {
        let has_no_end =
            (0..self.touched as u32).filter(|number| self.entries[*number as usize].date == Default::default());
        let numbers = self.calendar.in_order().into_iter().chain(has_no_end);
        let moved = numbers.filter_map(|number| {
            let entry = &self.entries[number as usize];
            let until = self.calendar.time(entry.date).unwrap_or(FOREVER);
            entry.pair().map(|pair| Moved::new(*pair, until, entry.slot, self.marked.holds(number)))
        });
        moved.collect()
    }
}

impl<K: Key, V: Entry> Stored for LocalSharedMap<K, V> {
    fn store(&self, to: &mut Vec<u8>) {
        let map = &self.map;
        map.seed.store(to);
        [map.limit, map.entries.len()].map(|count| count as u64).store(to);
        self.rules().store(to);
        self.tallies().store(to);
        map.calendar.first_day().store(to);
        store_all(&map.all(), to);
    }

    fn restore(from: &mut &[u8]) -> Option<LocalSharedMap<K, V>> {
        let seed = Stored::restore(from)?;
        let [limit, room] = <[u64; 2]>::restore(from)?.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let map = LocalMap::new(seed, limit, room).ok()?;
        let mut it = LocalSharedMap::with(map, Stored::restore(from)?, Stored::restore(from)?);
        // The first entry that joins a calendar begins it, on the day before.
        let now = u64::restore(from)?.saturating_add(1) << DAY;
        for moved in Vec::<Moved<K, V>>::restore(from)? {
            let ticket: LocalTicket<K> = it.map.ticket(moved.key);
            it.map.let_in((moved.slot(), now), &ticket, moved.value, moved.until).ok()?;
        }
        Some(it)
    }
}

#[cfg(test)]
mod tests {
    use catena_packet::wire::Seed;
    use catena_packet::{Slot, SlotSet};
    use proptest::prelude::*;

    use super::*;
    use crate::plain::{bytes, value};
    use crate::shared_map::{EntryOp, Place, SharedMap};
    use crate::stored::{restored, stored};

    /// The time of the last packet.
    #[derive(Clone, Copy, Debug, Plain)]
    struct Last(u64);

    /// See a packet: answers when the last one was, unless that is over.
    #[derive(Clone, Copy, Debug, Plain)]
    struct See(u64);

    crate::entry_operations!("last": Last { 0 => See });

    impl Entry for Last {
        type Rules = u64;

        fn end(&self, age: &u64) -> u64 {
            self.0 + age
        }
    }

    impl EntryOp<Last> for See {
        type Reply = (bool, Option<u64>);

        fn apply(self, place: &mut impl Place<Last>) -> (bool, Option<u64>) {
            let age = *place.rules();
            let before = place.get().filter(|last| !last.is_over(&age, self.0)).map(|last| last.0);
            place.tally(1);
            if let Some(last) = place.get() {
                last.0 = self.0;
                return (true, before);
            }
            (place.insert(self.0, Last(self.0)).is_ok(), before)
        }
    }

    type Map = LocalSharedMap<u64, Last>;

    proptest! {
        /// What comes back from its bytes answers as it would have, and forgets in the same order.
        #[test]
        fn a_map_that_comes_back_goes_on(
            steps in prop::collection::vec((0u64..12, 0u64..40, 0usize..3), 1..200),
            again in 1usize..40,
        ) {
            let map = LocalMap::new(Seed::from_number(3), 6, 8).unwrap();
            let mut maps: [Map; 2] = [LocalSharedMap::with(map, 50 << DAY, [0; 4]), restored(&stored(&Map::with(
                LocalMap::new(Seed::from_number(3), 6, 8).unwrap(), 50 << DAY, [0; 4],
            ))).unwrap()];
            let mut now = 1 << 60;
            for (at, (key, days, most)) in steps.into_iter().enumerate() {
                now += days << DAY;
                let answers = maps.each_mut().map(|map| {
                    let mut reply = Vec::new();
                    map.operate((Slot::NONE, &bytes(&key)), 0, &bytes(&See(now)), &mut reply).unwrap();
                    map.forget_some(most, now);
                    (value::<(bool, Option<u64>)>(&reply), map.len(), map.tally(1))
                });
                prop_assert_eq!(answers[0], answers[1]);
                if at % again == 0 {
                    let all = stored(&maps[1]);
                    maps[1] = restored(&all).unwrap();
                    prop_assert_eq!(stored(&maps[1]), all);
                }
            }
        }
    }

    #[test]
    fn an_entry_that_is_made_by_bytes_goes_with_its_packets_slot() {
        let slot = |n: u64| Slot::numbered(n as u16).unwrap();
        let mut map: Map = LocalSharedMap::with(LocalMap::new(Seed::from_number(3), 9, 9).unwrap(), 9, [0; 4]);
        for key in 0_u64..4 {
            map.operate((slot(key), &bytes(&key)), 0, &bytes(&See(5)), &mut Vec::new()).unwrap();
        }
        let mut map: Map = restored(&stored(&map)).unwrap();
        let slots = SlotSet::from_iter([slot(2)]);
        let mut left = Vec::new();
        map.leave(&slots, &mut |moved| left.push((moved.key, moved.slot())));
        assert_eq!((left, map.len()), (vec![(2, slot(2))], 3));
    }

    #[test]
    fn bytes_of_more_entries_than_there_may_be_are_none() {
        let mut map: Map = LocalSharedMap::with(LocalMap::new(Seed::from_number(3), 2, 2).unwrap(), 9, [0; 4]);
        for key in 0_u64..2 {
            map.operate((Slot::NONE, &bytes(&key)), 0, &bytes(&See(5)), &mut Vec::new()).unwrap();
        }
        let all = stored(&map);
        assert!(restored::<Map>(&all).is_some());
        // After the seed: the limit and the room, of one entry.
        let mut few = all.clone();
        few[32..48].copy_from_slice(&bytes(&[1_u64; 2]));
        assert!(restored::<Map>(&few).is_none());
        assert!((0..all.len()).all(|at| restored::<Map>(&all[..at]).is_none()));
    }
}
