//! Entries are found by both keys for as long as they are there, and by no other.

use std::collections::HashMap;

use catena_packet::Slot;
use proptest::prelude::*;

use super::*;
use crate::mover::Mover;

/// The other key is the value, without what does not count.
struct Upper;

impl Other<u64, u64> for Upper {
    type Key = u64;

    fn of(_: &u64, value: &u64) -> u64 {
        value >> 8
    }
}

type Map = LocalTwoKeyMap<u64, u64, Upper>;

fn map(limit: usize) -> Map {
    let seed = Seed::from_number(1);
    LocalTwoKeyMap::new(LocalMap::new(seed, limit, 2 * limit).expect("memory"), seed).expect("memory")
}

/// What should be there: by key, the value and when it came.
#[derive(Default)]
struct Model {
    entries: HashMap<u64, u64>,
    /// Who has which other key: the youngest that came with it, if it is still there.
    names: HashMap<u64, u64>,
}

impl Model {
    fn gone(&mut self, key: u64) {
        if let Some(value) = self.entries.remove(&key) {
            self.forget_name(key, value);
        }
    }

    fn forget_name(&mut self, key: u64, value: u64) {
        if self.names.get(&(value >> 8)) == Some(&key) {
            self.names.remove(&(value >> 8));
        }
    }

    fn come(&mut self, key: u64, value: u64) {
        self.gone(key);
        self.entries.insert(key, value);
        self.names.insert(value >> 8, key);
    }
}

fn ask(map: &mut Map, tx: &mut Tx, other: u64, is_warm: bool) -> LocalTicket<u64> {
    let mut ticket = map.want_other(tx, other, Intent::Read);
    if is_warm {
        map.warm_other(&mut ticket);
    }
    ticket
}

fn answer(map: &mut Map, tx: &mut Tx, ticket: &LocalTicket<u64>) -> Option<u64> {
    let found = map.found(tx, ticket, Intent::Change)?;
    let value = *map.read(tx, &found).expect("who is found is there");
    assert_eq!(value >> 8, Map::other_key(ticket));
    Some(Map::key(&found))
}

fn found(map: &mut Map, tx: &mut Tx, other: u64, is_warm: bool) -> Option<u64> {
    let ticket = ask(map, tx, other, is_warm);
    answer(map, tx, &ticket)
}

fn put(map: &mut Map, tx: &mut Tx, key: u64, value: u64, until: u64) -> bool {
    let ticket = map.want(tx, key, Intent::Create);
    let other = map.want_other(tx, value >> 8, Intent::Create);
    map.insert_both(tx, (&ticket, &other), value, until).is_ok()
}

proptest! {
    /// Whatever way entries come and go. Few other keys, so that they meet; many entries, so that the tables grow.
    #[test]
    fn an_entry_is_found_by_both_keys(
        others in prop::sample::select(vec![4u64, 60, 100_000]),
        steps in prop::collection::vec((0u8..16, any::<u64>(), any::<u64>()), 1..1500),
    ) {
        let mut map = map(400);
        let mut tx = Tx::new(1, 1_000_000_000, 0);
        let mut model = Model::default();
        let mut asked: Vec<LocalTicket<u64>> = Vec::new();
        for (action, a, b) in steps {
            let (key, value) = (a % 500, ((b % others) << 8) + a % 256);
            tx.now += 10_000_000;
            match action {
                0..=8 => {
                    let until = tx.now + b % 3_000_000_000;
                    let is_put = put(&mut map, &mut tx, key, value, until);
                    prop_assert_eq!(is_put, model.entries.contains_key(&key) || model.entries.len() < 400);
                    if is_put {
                        model.come(key, value);
                    }
                    if b % 5 == 0 {
                        let ticket = map.want(&mut tx, key, Intent::Change);
                        map.mark(&mut tx, &ticket, true);
                    }
                }
                9 => {
                    let ticket = map.want(&mut tx, key, Intent::Change);
                    prop_assert_eq!(map.remove(&mut tx, &ticket), model.entries.get(&key).copied());
                    model.gone(key);
                }
                10 => {
                    let ticket = map.want(&mut tx, key, Intent::Change);
                    map.mark(&mut tx, &ticket, false);
                    prop_assert_eq!(map.peek(&mut tx, key), model.entries.get(&key));
                }
                11 => {
                    let now = tx.now;
                    map.expire(&mut tx, now, (b % 40) as usize, |_, key, _| {
                        model.gone(*key);
                        Fate::Over
                    });
                }
                12 => _ = map.expire_one(&mut tx, 3, |_, key, value| match value % 2 {
                    0 => {
                        model.gone(*key);
                        Fate::Over
                    }
                    _ => Fate::Until(b % 3_000_000_000),
                }),
                13 => _ = map.sweep(&mut tx, (b % 40) as usize, |_, key, _| {
                    let goes = key % 3 == 0;
                    if goes {
                        model.gone(*key);
                    }
                    goes
                }),
                14 => if let Some((key, _)) = map.take_marked(&mut tx) {
                    model.gone(key);
                },
                _ => {}
            }
            asked.push(ask(&mut map, &mut tx, value >> 8, b % 3 > 0));
            // Some are asked for long before: whoever has come meanwhile, the youngest is found.
            if asked.len() > 8 && a % 4 < 2 {
                let before = asked.swap_remove((b / 7) as usize % asked.len());
                let youngest = model.names.get(&before.key).copied();
                prop_assert_eq!(answer(&mut map, &mut tx, &before), youngest);
            }
            // Who is asked links all that are coming: now and then nobody is.
            let asks = if a % 4 == 0 { vec![value >> 8, b % others] } else { Vec::new() };
            for other in asks {
                prop_assert_eq!(found(&mut map, &mut tx, other, b % 2 == 0), model.names.get(&other).copied());
            }
        }
        for (key, value) in &model.entries {
            prop_assert_eq!(map.peek(&mut tx, *key), Some(value));
        }
        for (other, key) in &model.names {
            prop_assert_eq!(found(&mut map, &mut tx, *other, true), Some(*key));
        }
        prop_assert_eq!(FlowMap::len(&map), model.entries.len());
    }

    /// Both keys go with the slot.
    #[test]
    fn both_keys_go_with_the_slot(entries in prop::collection::vec((0u64..300, any::<u64>(), 0u16..3), 1..200)) {
        let mut maps = [map(400), map(400)];
        let mut tx = Tx::new(1, 1_000_000_000, 0);
        let mut slots: HashMap<u64, (u64, u16)> = HashMap::new();
        for (key, value, slot) in entries {
            // Each has an other key of its own, and a slot that it keeps.
            let slot = slots.get(&key).map_or(slot, |known| known.1);
            let value = (key << 8) + value % 256;
            tx.slot = Slot::numbered(slot).unwrap();
            put(&mut maps[0], &mut tx, key, value, 9_000_000_000);
            slots.insert(key, (value, slot));
        }
        let going: SlotSet = [Slot::numbered(1).unwrap()].into_iter().collect();
        let mut mover = Mover::leaving(going, 0);
        mover.flows(&mut tx, &mut maps[0], |_, _, _| {});
        let mut mover = Mover::arriving(mover.into_parcel().unwrap());
        mover.flows(&mut tx, &mut maps[1], |_, _, _| {});
        prop_assert_eq!(mover.refused(), 0);
        for (key, (_, slot)) in slots {
            let [here, there] = [0, 1].map(|at| found(&mut maps[at], &mut tx, key, false));
            let expected = if slot == 1 { (None, Some(key)) } else { (Some(key), None) };
            prop_assert_eq!((here, there), expected);
        }
    }
}
