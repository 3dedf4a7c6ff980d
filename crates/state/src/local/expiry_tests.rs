//! Entries end in the order in which their ends were told, in every map that was told the same.

use proptest::prelude::*;

use super::super::map::LocalTicket;
use super::*;
use crate::engine::{FlowMap, Intent};
use crate::tx::Tx;
use catena_packet::Slot;
use catena_packet::wire::Seed;

const START: u64 = 1_700_000_000_000_000_000;
/// A day of the calendar.
const DAY: u64 = 1 << super::super::calendar::DAY;

/// What was told of an entry: its key, its end as it stands in it, the day on which it is looked at.
#[derive(Clone, Copy, Debug)]
struct Told {
    key: u64,
    end: u64,
    day: u64,
}

/// Two maps that hash and lay out their entries differently, and the list of what was told.
struct Both {
    maps: [LocalMap<u64, u64>; 2],
    told: Vec<Told>,
    now: u64,
}

impl Both {
    fn new() -> Self {
        let mut maps = [1, 2].map(|seed| LocalMap::new(Seed::from_number(seed), 64, 64).unwrap());
        // Places that were used before, and given back in an order of their own.
        let places = [7, 3, 50, 0, 21].map(|key| maps[1].ticket(key));
        places.iter().for_each(|ticket| _ = maps[1].put_in((Slot::NONE, START), ticket, 0, START).unwrap());
        assert!([50, 7, 0, 21, 3].iter().all(|key| {
            let ticket = maps[1].ticket(*key);
            maps[1].take(&ticket).is_some()
        }));
        Both { maps, told: Vec::new(), now: START }
    }

    fn tx(&self) -> Tx {
        Tx::new(1, self.now, 0)
    }

    fn each(&mut self, key: u64, mut what: impl FnMut(&mut LocalMap<u64, u64>, &mut Tx, &LocalTicket<u64>)) {
        let mut tx = self.tx();
        for map in &mut self.maps {
            let ticket = map.want(&mut tx, key, Intent::Create);
            what(map, &mut tx, &ticket);
        }
    }

    fn at(&self, key: u64) -> Option<usize> {
        self.told.iter().position(|told| told.key == key)
    }

    /// Tell the list of an end, which counts if there is none or it is sooner.
    fn tell(&mut self, key: u64, end: u64) {
        // What is over already is looked at before all others of the first day.
        let day = (end / DAY).max(self.first_day());
        match self.at(key) {
            Some(at) if self.told[at].day <= end / DAY => self.told[at].end = end,
            at => {
                at.map(|at| self.told.remove(at));
                self.told.push(Told { key, end, day });
            }
        }
    }

    /// The day before which nobody can be told to end: all days before have been looked at.
    fn first_day(&self) -> u64 {
        self.maps[0].calendar.first_day()
    }

    fn insert(&mut self, key: u64, end: u64) {
        self.each(key, |map, tx, ticket| _ = map.insert(tx, ticket, end, end).unwrap());
        self.tell(key, end);
    }

    fn sooner(&mut self, key: u64, end: u64) {
        self.each(key, |map, tx, ticket| {
            if let Some(value) = map.get(tx, ticket) {
                *value = end;
            }
            map.sooner(tx, ticket, end);
        });
        if self.at(key).is_some() {
            self.tell(key, end);
        }
    }

    /// Let an entry last longer, and tell nobody.
    fn prolong(&mut self, key: u64, by: u64) {
        self.each(key, |map, tx, ticket| {
            if let Some(end) = map.get(tx, ticket) {
                *end += by
            }
        });
        if let Some(at) = self.at(key) {
            self.told[at].end += by;
        }
    }

    fn remove(&mut self, key: u64) {
        self.each(key, |map, tx, ticket| _ = map.remove(tx, ticket));
        self.told.retain(|told| told.key != key);
    }

    /// Look at some, in all three; returns which of them were looked at.
    fn expire(&mut self, most: usize) -> [Vec<u64>; 3] {
        let now = self.now;
        let mut seen = [const { Vec::new() }; 3];
        for (map, seen) in self.maps.iter_mut().zip(&mut seen) {
            let looked = map.expire(&mut Tx::new(1, now, 0), now, most, |_, key, end| {
                seen.push(*key);
                if *end <= now { Fate::Over } else { Fate::Until(*end) }
            });
            assert_eq!(looked, seen.len());
        }
        for _ in 0..most {
            let first = self.told.iter().filter(|told| told.day < now / DAY).min_by_key(|told| told.day).copied();
            let Some(first) = first else { break };
            seen[2].push(first.key);
            self.told.retain(|told| told.key != first.key);
            if first.end > now {
                self.told.push(Told { day: first.end / DAY, ..first });
            }
        }
        seen
    }
}

proptest! {
    #[test]
    fn entries_end_in_the_order_in_which_it_was_told(
        steps in prop::collection::vec((0u8..10, 0u64..60, 0u64..600_000_000), 1..400),
    ) {
        let mut both = Both::new();
        for (what, key, time) in steps {
            match what {
                0..=2 => both.insert(key, both.now + time),
                3 => both.sooner(key, both.now + time / 8),
                4 => both.prolong(key, time),
                5 => both.remove(key),
                6 | 7 => both.now += time / 4,
                _ => {
                    let [one, other, list] = both.expire(1 + key as usize);
                    prop_assert_eq!(&one, &list);
                    prop_assert_eq!(&other, &list);
                }
            }
            prop_assert_eq!(both.maps.each_ref().map(LocalMap::len), [both.told.len(); 2]);
        }
        both.now += 3600 * 1_000_000_000;
        let [one, other, list] = both.expire(1000);
        prop_assert_eq!(&one, &list);
        prop_assert_eq!(&other, &list);
        prop_assert!(both.maps.iter().all(LocalMap::is_empty));
    }
}

/// An entry that is put in once more, to end sooner, is on no day twice.
#[test]
fn an_entry_that_ends_sooner_leaves_nothing_on_the_wheel() {
    for neighbours in [0, 1] {
        let mut map: LocalMap<u64, u64> = LocalMap::new(Seed::from_number(1), 8, 8).unwrap();
        let mut tx = Tx::new(1, START, 0);
        let second = 1_000_000_000;
        let older = map.want(&mut tx, 7, Intent::Create);
        map.insert(&mut tx, &older, START + 5 * second, START + 5 * second).unwrap();
        let younger = map.want(&mut tx, 7, Intent::Create);
        map.insert(&mut tx, &younger, START + second / 100, START + second / 100).unwrap();
        for key in 0..neighbours {
            let ticket = map.want(&mut tx, key, Intent::Create);
            map.insert(&mut tx, &ticket, START + second / 100, START + second / 100).unwrap();
        }
        let mut seen = Vec::new();
        let mut expire = |map: &mut LocalMap<u64, u64>, now| {
            map.expire(&mut Tx::new(1, now, 0), now, 9, |_, key, end| {
                seen.push(*key);
                if *end <= now { Fate::Over } else { Fate::Until(*end) }
            })
        };
        assert_eq!(expire(&mut map, START + second / 10), 1 + neighbours as usize);
        assert_eq!(map.len(), 0);
        // The wheel is whole: who comes now goes when its time has come.
        let ticket = map.want(&mut tx, 9, Intent::Create);
        map.insert(&mut tx, &ticket, START + second, START + second).unwrap();
        assert_eq!(expire(&mut map, START + 2 * second), 1);
        assert!(map.is_empty());
        seen.sort_unstable();
        assert_eq!(seen, [&(0..neighbours).collect::<Vec<_>>()[..], &[7, 9]].concat());
    }
}

/// In a capture whose time steps back, what ends in a time that has passed goes too.
#[test]
fn what_has_ended_when_it_comes_goes() {
    let mut map: LocalMap<u64, u64> = LocalMap::new(Seed::from_number(1), 8, 8).unwrap();
    let second = 1_000_000_000;
    let mut tx = Tx::new(1, START, 0);
    for (key, end) in [(1, START + 100 * second), (2, START - 3600 * second)] {
        let ticket = map.want(&mut tx, key, Intent::Create);
        map.insert(&mut tx, &ticket, end, end).unwrap();
        map.expire(&mut tx, START, 9, |_, _, end| if *end <= START { Fate::Over } else { Fate::Until(*end) });
    }
    assert_eq!(map.len(), 1);
    let ticket = map.want(&mut tx, 3, Intent::Create);
    map.insert(&mut tx, &ticket, START - second, START - second).unwrap();
    let looked = map.expire(&mut tx, START, 9, |_, key, _| if *key == 3 { Fate::Over } else { Fate::Until(u64::MAX) });
    assert_eq!((looked, map.len()), (1, 1));
}

#[test]
fn one_is_found_whose_end_is_still_to_come() {
    let mut map: LocalMap<u64, u64> = LocalMap::new(Seed::from_number(1), 8, 8).unwrap();
    let mut tx = Tx::new(1, START, 0);
    for key in 0..4 {
        let ticket = map.want(&mut tx, key, Intent::Create);
        map.insert(&mut tx, &ticket, 0, START + (key + 1) * 1_000_000_000).unwrap();
    }
    // The first one has been used meanwhile, the second goes.
    let look = |_: &mut Tx, key: &u64, _: &u64| if *key == 0 { Fate::Until(START + 9_000_000_000) } else { Fate::Over };
    assert!(!map.expire_one(&mut tx, 1, look) && map.len() == 4);
    assert!(map.expire_one(&mut tx, 1, look) && map.len() == 3);
    assert_eq!([0, 1, 2, 3].map(|key| map.peek(&mut tx, key).is_some()), [true, false, true, true]);
    // An end before theirs may still be told.
    let ticket = map.want(&mut tx, 7, Intent::Create);
    map.insert(&mut tx, &ticket, 0, START + 100_000_000).unwrap();
    let now = START + 200_000_000;
    assert_eq!(map.expire(&mut tx, now, 9, |_, key, _| if *key == 7 { Fate::Over } else { unreachable!() }), 1);
}
