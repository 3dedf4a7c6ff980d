//! The flow map against the standard library's.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn map<V: Plain>(capacity: usize) -> LocalMap<u64, V> {
    LocalMap::new(Seed::from_number(7), capacity).unwrap()
}

#[test]
fn a_million_entries_come_back() {
    let mut map = map(1_000_000);
    for key in 0..1_000_000u64 {
        let ticket = map.want((), key * 3, Intent::Create);
        map.insert((), &ticket, key).unwrap();
    }
    let ticket = map.want((), 1, Intent::Create);
    assert_eq!(map.insert((), &ticket, 1), Err(Full));
    for key in 0..1_000_000u64 {
        let mut ticket = map.want((), key * 3, Intent::Create);
        if key % 2 == 0 {
            map.warm(&mut ticket);
        }
        assert_eq!(map.get((), &ticket).copied(), Some(key));
    }
    let overflowing = map.buckets[..map.bucket_count].iter().filter(|b| b.next != 0).count();
    assert!(overflowing * 50 < map.bucket_count, "{overflowing} of {} buckets overflow", map.bucket_count);
    for key in 0..1_000_000u64 {
        let ticket = map.want((), key * 3, Intent::Create);
        assert_eq!(map.remove((), &ticket), Some(key));
    }
    assert!(map.is_empty());
}

#[test]
fn a_sweep_round_sees_each_entry_once() {
    let mut map = map(1000);
    for key in 0..777u64 {
        let ticket = map.want((), key, Intent::Create);
        map.insert((), &ticket, 0).unwrap();
    }
    for _ in 0..111 {
        map.sweep(7, |_, seen| {
            *seen += 1;
            false
        });
    }
    for key in 0..777u64 {
        let ticket = map.want((), key, Intent::Create);
        assert_eq!(map.get((), &ticket).copied(), Some(1));
    }
    assert_eq!(map.sweep(usize::MAX, |key, _| key % 2 == 0), 777);
    assert_eq!(map.len(), 388);
}

/// Keys whose hashes agree in most bits: chains get long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
struct Clash(u64);

impl Key for Clash {
    fn hash(&self, _seed: &Seed) -> u64 {
        self.0 % 3
    }
}

fn against_reference<K: Key>(steps: &[(u64, u8)], make: impl Fn(u64) -> K, capacity: usize) {
    let mut ours: LocalMap<K, u64> = LocalMap::new(Seed::from_number(1), capacity).unwrap();
    let mut theirs: HashMap<u64, u64> = HashMap::new();
    for (i, &(key, what)) in (0u64..).zip(steps) {
        let mut ticket = ours.want((), make(key), Intent::Create);
        if what % 2 == 0 {
            ours.warm(&mut ticket);
        }
        match what % 7 {
            0..=3 => match ours.insert((), &ticket, i) {
                Ok(_) => _ = theirs.insert(key, i),
                Err(Full) => assert!(theirs.len() >= capacity && !theirs.contains_key(&key)),
            },
            4 => assert_eq!(ours.remove((), &ticket), theirs.remove(&key)),
            5 => {
                let goes = |value: &u64| value.is_multiple_of(2);
                ours.forget((), make(key), goes);
                theirs.retain(|k, value| *k != key || !goes(value));
            }
            _ => {
                _ = ours.sweep(3, |_, value| {
                    let goes = *value % 4 == 0;
                    if goes {
                        theirs.retain(|_, v| v != value);
                    }
                    goes
                })
            }
        }
        assert_eq!(ours.get((), &ticket).copied(), theirs.get(&key).copied());
        assert_eq!(ours.len(), theirs.len());
    }
    for (key, value) in theirs {
        let ticket = ours.want((), make(key), Intent::Create);
        assert_eq!(ours.get((), &ticket).copied(), Some(value));
    }
}

proptest! {
    #[test]
    fn it_does_what_the_standard_map_does(steps in prop::collection::vec((0u64..400, any::<u8>()), 1..3000), capacity in 1usize..500) {
        against_reference(&steps, |key| key, capacity);
    }

    #[test]
    fn it_does_so_when_hashes_clash(steps in prop::collection::vec((0u64..150, any::<u8>()), 1..1000)) {
        against_reference(&steps, Clash, 150);
    }
}

#[test]
fn marked_entries_go_in_the_order_in_which_they_were_marked() {
    let mut map = map(100);
    let mut line = Vec::new();
    let insert = |map: &mut LocalMap<u64, u64>, line: &mut Vec<u64>, key: u64| {
        let ticket = map.want((), key, Intent::Create);
        map.insert((), &ticket, key).unwrap();
        map.mark((), &ticket, !key.is_multiple_of(3));
        line.extend((!key.is_multiple_of(3)).then_some(key));
    };
    (0..100).for_each(|key| insert(&mut map, &mut line, key));
    // Where an entry stands in memory says nothing: these get each other's places.
    for keys in [[50, 7, 1], [22, 1, 98]] {
        for key in keys {
            let ticket = map.want((), key, Intent::Create);
            map.remove((), &ticket);
            line.retain(|one| *one != key);
        }
        keys.into_iter().for_each(|key| insert(&mut map, &mut line, key));
    }
    for key in 100..1000 {
        let (taken, value) = map.take_marked(()).expect("there is a marked one");
        assert_eq!((taken, value), (line[0], line.remove(0)));
        insert(&mut map, &mut line, key);
        if line.is_empty() {
            break;
        }
    }
    assert_eq!((map.marked(), map.take_marked(())), (0, None));
    assert_eq!(map.len(), 100, "who was never marked is there");
    let ticket = map.want((), 0, Intent::Create);
    map.remove((), &ticket);
    // What goes by itself is no longer marked, nor is what comes in its place.
    insert(&mut map, &mut line, 1001);
    let ticket = map.want((), 1001, Intent::Create);
    map.remove((), &ticket);
    insert(&mut map, &mut line, 3000);
    assert_eq!((map.marked(), map.take_marked(())), (0, None));
}
