//! The flow map against the standard library's.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::engine::{FlowMap, Intent};
use crate::plain::Plain;
use crate::tx::Tx;

/// The operations of anyone: here all are the same.
fn anyone() -> Tx {
    Tx::new(0, 0, 0)
}

fn map<V: Plain>(capacity: usize) -> LocalMap<u64, V> {
    LocalMap::new(Seed::from_number(7), capacity, capacity).unwrap()
}

#[test]
fn a_million_entries_come_back() {
    let mut map = map(1_000_000);
    for key in 0..1_000_000u64 {
        let ticket = map.want(&mut anyone(), key * 3, Intent::Create);
        map.insert(&mut anyone(), &ticket, key, FOREVER).unwrap();
    }
    let ticket = map.want(&mut anyone(), 1, Intent::Create);
    assert_eq!(map.insert(&mut anyone(), &ticket, 1, FOREVER), Err(Full));
    for key in 0..1_000_000u64 {
        let mut ticket = map.want(&mut anyone(), key * 3, Intent::Create);
        if key % 2 == 0 {
            map.warm(&mut ticket);
        }
        assert_eq!(map.get(&mut anyone(), &ticket).copied(), Some(key));
    }
    let (buckets, overflowing) = map.buckets.overflowing();
    assert!(overflowing * 50 < buckets, "{overflowing} of {buckets} buckets overflow");
    for key in 0..1_000_000u64 {
        let ticket = map.want(&mut anyone(), key * 3, Intent::Create);
        assert_eq!(map.remove(&mut anyone(), &ticket), Some(key));
    }
    assert!(map.is_empty());
}

#[test]
fn a_sweep_round_sees_each_entry_once() {
    let mut map = map(1000);
    for key in 0..777u64 {
        let ticket = map.want(&mut anyone(), key, Intent::Create);
        map.insert(&mut anyone(), &ticket, 0u64, FOREVER).unwrap();
    }
    let mut seen = [0; 777];
    for _ in 0..111 {
        map.sweep(&mut anyone(), 7, |_, key, _| {
            seen[*key as usize] += 1;
            false
        });
    }
    assert_eq!(seen, [1; 777]);
    assert_eq!(map.sweep(&mut anyone(), usize::MAX, |_, key, _| key % 2 == 0), 777);
    assert_eq!(map.len(), 388);
}

/// Keys whose hashes agree in most bits: chains get long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
struct Clash(u64);

impl Key for Clash {
    fn hash(&self, _seed: &Seed) -> u64 {
        (self.0 % 3) | ((self.0 % 2) << 35)
    }
}

/// What a map must hold: values by key, and the keys that are marked, in their order.
#[derive(Default)]
struct Model {
    values: HashMap<u64, u64>,
    line: Vec<u64>,
}

impl Model {
    fn remove(&mut self, key: u64) -> Option<u64> {
        self.line.retain(|one| *one != key);
        self.values.remove(&key)
    }
}

/// Do the same to a map and to the model: each step has a key and what is done with it. Tickets are fresh ones, warmed or not,
/// or the last one that was made for the key.
fn against_reference<K: Key>(steps: &[(u64, u8)], make: impl Fn(u64) -> K, capacity: usize) {
    let mut ours: LocalMap<K, u64> = LocalMap::new(Seed::from_number(1), capacity, capacity).unwrap();
    let mut theirs = Model::default();
    let mut tickets = HashMap::new();
    for (i, &(key, what)) in (0u64..).zip(steps) {
        if what % 4 < 3 || !tickets.contains_key(&key) {
            tickets.insert(key, ours.want(&mut anyone(), make(key), Intent::Create));
        }
        let ticket = tickets.get_mut(&key).expect("it was just put in");
        if what % 4 == 0 {
            ours.warm(ticket);
        }
        match what / 4 % 14 {
            0..=5 => match ours.insert(&mut anyone(), ticket, i, FOREVER) {
                Ok(_) => _ = theirs.values.insert(key, i),
                Err(Full) => assert!(theirs.values.len() >= capacity && !theirs.values.contains_key(&key)),
            },
            6 => assert_eq!(ours.remove(&mut anyone(), ticket), theirs.remove(key)),
            7 => {
                let goes = |value: &u64| value.is_multiple_of(2);
                ours.forget(make(key), goes);
                if theirs.values.get(&key).is_some_and(goes) {
                    theirs.remove(key);
                }
            }
            8 => {
                _ = ours.sweep(&mut anyone(), 3, |_, _, value| {
                    let of = theirs.values.iter().find(|(_, one)| *one == value).map(|(key, _)| *key);
                    let goes = *value % 4 == 0;
                    let of = of.expect("only what is there is swept");
                    goes && theirs.remove(of).is_some()
                })
            }
            9 | 10 => {
                let marked = what / 4 % 14 == 9;
                ours.mark(&mut anyone(), ticket, marked);
                if !marked {
                    theirs.line.retain(|one| *one != key);
                } else if theirs.values.contains_key(&key) && !theirs.line.contains(&key) {
                    theirs.line.push(key);
                }
            }
            11 => {
                let first = theirs.line.first().copied();
                let expected = first.and_then(|key| Some((make(key), theirs.remove(key)?)));
                assert_eq!(ours.take_marked(&mut anyone()), expected);
            }
            12 => assert_eq!(ours.peek(&mut anyone(), make(key)), theirs.values.get(&key)),
            _ => {
                let value = ours.place(make(key)).and_then(|place| ours.look(place));
                assert_eq!(value, theirs.values.get(&key));
            }
        }
        assert_eq!(ours.get(&mut anyone(), ticket).copied(), theirs.values.get(&key).copied());
        assert_eq!((ours.len(), ours.marked(&mut anyone())), (theirs.values.len(), theirs.line.len()));
        assert!(ours.len() <= capacity);
    }
    assert_eq!(
        ours.sweep(&mut anyone(), usize::MAX, |_, _, value| !theirs.values.values().any(|one| one == value)),
        ours.touched
    );
    assert_eq!(ours.len(), theirs.values.len());
    for (key, value) in theirs.values {
        let ticket = ours.want(&mut anyone(), make(key), Intent::Create);
        assert_eq!(ours.get(&mut anyone(), &ticket).copied(), Some(value));
    }
}

proptest! {
    #[test]
    fn it_does_what_the_standard_map_does(steps in prop::collection::vec((0u64..400, any::<u8>()), 1..3000), capacity in 1usize..500) {
        against_reference(&steps, |key| key, capacity);
    }

    #[test]
    fn it_does_so_with_few_keys(steps in prop::collection::vec((0u64..12, any::<u8>()), 1..1000), capacity in 1usize..14) {
        against_reference(&steps, |key| key, capacity);
    }

    #[test]
    fn it_does_so_when_hashes_clash(
        steps in prop::collection::vec((0u64..150, any::<u8>()), 1..1000),
        capacity in prop::sample::select(vec![1usize, 5, 40, 150]),
    ) {
        against_reference(&steps, Clash, capacity);
    }
}

#[test]
fn marked_entries_go_in_the_order_in_which_they_were_marked() {
    let mut map = map(100);
    let mut line = Vec::new();
    let insert = |map: &mut LocalMap<u64, u64>, line: &mut Vec<u64>, key: u64| {
        let ticket = map.want(&mut anyone(), key, Intent::Create);
        map.insert(&mut anyone(), &ticket, key, FOREVER).unwrap();
        map.mark(&mut anyone(), &ticket, !key.is_multiple_of(3));
        line.extend((!key.is_multiple_of(3)).then_some(key));
    };
    (0..100).for_each(|key| insert(&mut map, &mut line, key));
    // Where an entry stands in memory says nothing: these get each other's places.
    for keys in [[50, 7, 1], [22, 1, 98]] {
        for key in keys {
            let ticket = map.want(&mut anyone(), key, Intent::Create);
            map.remove(&mut anyone(), &ticket);
            line.retain(|one| *one != key);
        }
        keys.into_iter().for_each(|key| insert(&mut map, &mut line, key));
    }
    for key in 100..1000 {
        let (taken, value) = map.take_marked(&mut anyone()).expect("there is a marked one");
        assert_eq!((taken, value), (line[0], line.remove(0)));
        insert(&mut map, &mut line, key);
        if line.is_empty() {
            break;
        }
    }
    assert_eq!((map.marked(&mut anyone()), map.take_marked(&mut anyone())), (0, None));
    assert_eq!(map.len(), 100, "who was never marked is there");
    let ticket = map.want(&mut anyone(), 0, Intent::Create);
    map.remove(&mut anyone(), &ticket);
    // What goes by itself is no longer marked, nor is what comes in its place.
    insert(&mut map, &mut line, 1001);
    let ticket = map.want(&mut anyone(), 1001, Intent::Create);
    map.remove(&mut anyone(), &ticket);
    insert(&mut map, &mut line, 3000);
    assert_eq!((map.marked(&mut anyone()), map.take_marked(&mut anyone())), (0, None));
}
