//! The state objects that a C function declares.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use catena_packet::clock::Root;
use catena_state::value::{Add, Counts, Get};
use catena_state::{Access, Declaration, Engine, Object, Scope, Share, Shared, Tx};

use super::asked::{Asked, InHand};
use super::map::{self, Map, Shape};

/// Most bytes of a key.
const KEY: u32 = 40;
/// Most bytes of a value.
const VALUE: u32 = 256;
/// Most entries of a map.
const ENTRIES: u64 = 1 << 28;
/// Most bytes of a map, in address space; memory is used as entries come.
const MAP: u64 = 1 << 36;
/// Most counters of an object.
const COUNTERS: u32 = 1 << 16;
/// Most counters that a table shows one by one.
const SHOWN: usize = 16;
/// Most objects.
const OBJECTS: usize = 64;
/// Most bytes of a name.
pub const NAME: usize = 63;

/// A declared map.
pub struct MapObject<E: Engine> {
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// The map; `None` while it is swept.
    pub map: Option<Box<dyn Map<E>>>,
    name: &'static str,
}

/// Declared counters.
struct CounterObject<E: Engine> {
    name: &'static str,
    counters: E::Shared<Counts>,
    count: usize,
    /// What a table calls them: each, or none.
    shown: Vec<&'static str>,
}

/// All state objects of one instance.
pub struct State<E: Engine> {
    declarations: Vec<Declaration>,
    /// By handle, less one.
    pub maps: Vec<MapObject<E>>,
    counters: Vec<CounterObject<E>>,
    /// The packet whose operations are done now.
    pub packet: InHand<E>,
    /// Whether the function is in *prepare* for it, where packets come alone.
    pub prepares: bool,
}

impl<E: Engine> State<E> {
    /// Make an empty set of objects that will live in `engine`.
    /// Those of a patient function are told when an entry comes later.
    pub fn new(engine: &mut E, is_patient: bool) -> State<E> {
        let beginning = Root::of_events(engine.share().index).beginning();
        let mut between = engine.begin(Tx::new(beginning.bits(), 0, 0));
        engine.step(&mut between);
        let packet = InHand { tx: between, usable: Asked::NOTHING, wanted: Asked::NOTHING, is_patient };
        State { declarations: Vec::new(), maps: Vec::new(), counters: Vec::new(), packet, prepares: false }
    }

    /// Take a packet in hand, with what it may use; the function's own operations are kept in its place meanwhile.
    pub fn take_up(&mut self, tx: &mut Tx, usable: Asked<E>) {
        std::mem::swap(&mut self.packet.tx, tx);
        (self.packet.usable, self.packet.wanted) = (usable, Asked::NOTHING);
    }

    /// Let go of the packet, and give its operations back; returns what it has asked for.
    pub fn let_go(&mut self, tx: &mut Tx) -> Asked<E> {
        let wanted = self.packet.wanted;
        self.take_up(tx, Asked::NOTHING);
        wanted
    }

    /// Let go of a packet that begins once more; returns what it has asked for, and all that it has used so far.
    pub fn let_go_for_now(&mut self, tx: &mut Tx) -> Asked<E> {
        let State { maps, packet, .. } = self;
        maps.iter_mut().filter_map(|object| object.map.as_mut()).for_each(|map| map.ask_again(packet));
        self.let_go(tx)
    }

    /// Return what was declared.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    fn declare(&mut self, name: &str, object: Object, scope: u32, access: u32) -> Result<Declaration, String> {
        // Those of the header, and the worker's own: it is what the configuration makes it.
        const SCOPES: [Scope; 7] = [
            Scope::Connection,
            Scope::SourceEndpoint,
            Scope::Source,
            Scope::Destination,
            Scope::Configured,
            Scope::Global,
            Scope::Configured,
        ];
        const ACCESSES: [Access; 3] = [Access::WriteMostly, Access::ReadMostly, Access::ReadWrite];
        if name.is_empty() {
            return Err("state object without a name".to_owned());
        }
        let refuse = |what: &str| Err(format!("state object `{name}`: {what}"));
        let Some(&scope) = SCOPES.get(scope as usize) else { return refuse("no such scope") };
        let Some(&access) = ACCESSES.get(access as usize) else { return refuse("no such access pattern") };
        if self.declarations.iter().any(|d| d.name == name) {
            return refuse("the name is taken by another one");
        }
        if self.declarations.len() == OBJECTS {
            return refuse(&format!("there can be at most {OBJECTS}"));
        }
        let (name, summary) = (lasting(name), "declared by a C function");
        let declaration = Declaration { name, summary, object, scope, access, part: 0 };
        self.declarations.push(declaration);
        Ok(declaration)
    }

    /// Declare a map; returns its handle.
    ///
    /// # Errors
    /// What is wrong with the declaration, in words.
    pub fn map(
        &mut self,
        engine: &mut E,
        name: &str,
        [scope, access]: [u32; 2],
        sizes: [u32; 2],
        entries: u64,
    ) -> Result<u32, String> {
        let [key_size, value_size] = sizes;
        let within = |what: &str, n: u64, most: u64| match n {
            n if (1..=most).contains(&n) => Ok(()),
            n => Err(format!("state object `{name}`: expected {what} from 1 to {most}, found {n}")),
        };
        within("a key size", key_size.into(), KEY.into())?;
        within("a value size", value_size.into(), VALUE.into())?;
        within("a capacity", entries, ENTRIES)?;
        // An entry takes its key, its value and some bookkeeping, in whole cache lines, and half a line of index.
        let bytes = entries * (u64::from(key_size + 2 * value_size + 8).next_multiple_of(64) + 32);
        within("a size in memory", bytes, MAP)?;
        let object = self.declare(name, Object::FlowMap, scope, access)?;
        let entries = if scope == OF_WORKER { entries } else { part(object, engine.share(), entries)? };
        let name = object.name;
        let (key_size, value_size, capacity) = (key_size as usize, value_size as usize, entries as usize);
        let shape = Shape { object, number: self.maps.len() as u32, key_size, value_size, capacity };
        let map = map::make(engine, shape).map_err(|error| error.to_string())?;
        self.maps.push(MapObject { key_size, value_size, map: Some(map), name });
        Ok(self.maps.len() as u32)
    }

    /// Declare counters; returns their handle.
    ///
    /// # Errors
    /// What is wrong with the declaration, in words.
    pub fn counters(
        &mut self,
        engine: &mut E,
        name: &str,
        [scope, access]: [u32; 2],
        count: u32,
    ) -> Result<u32, String> {
        if !(1..=COUNTERS).contains(&count) {
            return Err(format!("state object `{name}`: expected a number of counters from 1 to {COUNTERS}"));
        }
        let object = self.declare(name, Object::Shared, scope, access)?;
        let name = object.name;
        let count = count as usize;
        let shown = match count {
            1 => vec![name],
            2..=SHOWN => (0..count).map(|i| lasting(&format!("{name}[{i}]"))).collect(),
            _ => Vec::new(),
        };
        self.counters.push(CounterObject { name, counters: engine.shared(&object, Counts::new(count)), count, shown });
        Ok(self.counters.len() as u32)
    }

    /// Add to a counter; returns whether there is such a counter.
    #[inline]
    pub fn add(&mut self, handle: u32, index: u32, n: i64) -> bool {
        let object = self.counters.get_mut((handle as usize).wrapping_sub(1));
        let Some(object) = object.filter(|object| (index as usize) < object.count) else { return false };
        object.counters.send(&mut self.packet.tx, Add { index, n });
        true
    }

    /// Return a counter.
    pub fn read(&self, handle: u32, index: u32) -> Option<i64> {
        let object = self.counters.get((handle as usize).wrapping_sub(1))?;
        ((index as usize) < object.count).then(|| object.counters.glance(Get::at(index as usize)))
    }

    /// Check that what stands in the objects of an earlier build can go on standing in these.
    ///
    /// # Errors
    /// The first object that is not there any more, or is another one.
    pub fn fits(&self, old: &State<E>) -> Result<(), String> {
        for was in &old.maps {
            let Some(is) = self.maps.iter().find(|is| is.name == was.name) else {
                return Err(format!("state object `{}` is not there any more", was.name));
            };
            if (is.key_size, is.value_size) != (was.key_size, was.value_size) {
                return Err(format!("state object `{}` has keys or values of another size", was.name));
            }
        }
        for was in &old.counters {
            match self.counters.iter().find(|is| is.name == was.name) {
                Some(is) if is.count == was.count => {}
                _ => return Err(format!("state object `{}` has another number of counters", was.name)),
            }
        }
        Ok(())
    }

    /// Exchange the content of the objects that both have, by name; [`Self::fits`] has been asked.
    pub fn take(&mut self, old: &mut State<E>) {
        for is in &mut self.maps {
            if let Some(was) = old.maps.iter_mut().find(|was| was.name == is.name) {
                std::mem::swap(&mut is.map, &mut was.map);
            }
        }
        for is in &mut self.counters {
            if let Some(was) = old.counters.iter_mut().find(|was| was.name == is.name) {
                std::mem::swap(&mut is.counters, &mut was.counters);
            }
        }
    }

    /// Tell the number of entries of every map, and the counters.
    pub fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        for object in &self.maps {
            tell(object.name, object.map.as_ref().map_or(0, |map| map.len() as u64));
        }
        for object in &self.counters {
            for (i, name) in object.shown.iter().enumerate() {
                tell(name, u64::try_from(object.counters.look(Get::at(i))).unwrap_or(0));
            }
        }
    }

    /// Return whether a gauge is a counter's.
    pub fn counts(&self, gauge: &str) -> bool {
        self.counters.iter().any(|object| object.shown.contains(&gauge))
    }
}

/// The scope of a map that each worker has for itself, whichever packets it meets: `CATENA_WORKER`.
const OF_WORKER: u32 = 6;

/// Return how many of a map's entries an instance may have: its part, as all packets of an entry meet one instance.
///
/// # Errors
/// In words, that they do not, or that there is less than one for each.
fn part(object: Declaration, share: Share, entries: u64) -> Result<u64, String> {
    let Declaration { name, scope, .. } = object;
    match share.part_of(entries) {
        _ if share.count > 1 && !scope.is_within_source() => Err(format!(
            "state object `{name}`: each of {} workers would have its own, and packets of one entry ({}) meet several: run it with \
             one worker, or declare the map as CATENA_WORKER, if one for each will do",
            share.count,
            scope.text()
        )),
        0 => Err(format!("state object `{name}`: {entries} entries for {} workers, which share them", share.count)),
        part => Ok(part),
    }
}

/// Return the same text with a lifetime that never ends: what tables name things by. Kept once for all
/// instances there ever are.
pub fn lasting(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known;
    }
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    texts.insert(text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_packet::wire::Seed;
    use catena_state::Local;

    /// Every size of a key and of a value there may be is kept exactly.
    #[test]
    fn keys_and_values_of_all_sizes() {
        let mut engine = Local::new(Seed::from_number(1), Share::WHOLE);
        let mut state = State::new(&mut engine, false);
        let bytes: Vec<u8> = (1..=VALUE).map(|n| (n * 37 % 251) as u8).collect();
        let sizes = (1..=KEY).map(|k| (k, k * 6)).chain([(40, VALUE), (1, 1)]);
        for (n, (k, v)) in sizes.enumerate() {
            let handle = state.map(&mut engine, &format!("m{n}"), [0, 0], [k, v], 8).unwrap();
            let (key, value) = (&bytes[..k as usize], &bytes[..v as usize]);
            let State { maps, packet, .. } = &mut state;
            let map = maps[handle as usize - 1].map.as_mut().unwrap();
            map.put(packet, key, value).unwrap();
            for i in 0..k as usize {
                let mut other = key.to_vec();
                other[i] ^= 1;
                assert_eq!(map.get(packet, &other), None, "byte {i} of {k}");
            }
            assert_eq!(map.get(packet, key), Some(value));
            let mut seen = 0;
            map.sweep(&mut packet.tx, 8, &mut |_, at, kept| {
                if (at, kept) == (key, value) {
                    seen += 1;
                }
                false
            });
            assert_eq!(seen, 1, "{k} {v}");
            assert!(map.remove(packet, key) && !map.remove(packet, key) && map.len() == 0);
        }
    }

    /// Those of flows and hosts are different ones with each; what is common to all has to be there for each.
    #[test]
    fn instances_share_the_room_for_what_each_has_for_itself() {
        let room = |scope, share, entries| {
            let mut engine = Local::new(Seed::from_number(1), share);
            let mut state = State::new(&mut engine, false);
            let handle = state.map(&mut engine, "m", [scope, 0], [2, 1], entries)?;
            let State { maps, packet, .. } = &mut state;
            let map = maps[handle as usize - 1].map.as_mut().unwrap();
            let fits = (0..100u16).filter(|key| map.put(packet, &key.to_be_bytes(), &[1]).is_ok());
            Ok::<_, String>(fits.count())
        };
        let rooms = |scope, entries| [0, 1, 2].map(|index| room(scope, Share { index, count: 3 }, entries));
        for scope in 0..=2 {
            assert_eq!(rooms(scope, 10), [Ok(4), Ok(3), Ok(3)], "scope {scope}");
            let error = "state object `m`: 2 entries for 3 workers, which share them";
            assert_eq!(rooms(scope, 2)[2], Err(error.to_owned()));
        }
        for (scope, text) in [(3, "destination address"), (4, "configured"), (5, "global")] {
            let error = rooms(scope, 10)[0].clone().unwrap_err();
            let expected = format!(
                "state object `m`: each of 3 workers would have its own, and packets of one entry ({text}) meet several: run it with \
                 one worker, or declare the map as CATENA_WORKER, if one for each will do"
            );
            assert_eq!(error, expected);
            assert_eq!(room(scope, Share::WHOLE, 10), Ok(10), "scope {scope}");
        }
        assert_eq!(rooms(OF_WORKER, 10), [Ok(10), Ok(10), Ok(10)]);
        assert_eq!(rooms(OF_WORKER, 1), [Ok(1), Ok(1), Ok(1)]);
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let mut engine = Local::new(Seed::from_number(1), Share::WHOLE);
        let mut state = State::new(&mut engine, false);
        for (sizes, entries) in
            [([0, 1], 1), ([41, 1], 1), ([1, 0], 1), ([1, 257], 1), ([1, 1], 0), ([40, 256], ENTRIES)]
        {
            assert!(state.map(&mut engine, "m", [0, 0], sizes, entries).is_err(), "{sizes:?} {entries}");
        }
        assert!(state.map(&mut engine, "m", [7, 0], [1, 1], 1).is_err());
        assert!(state.map(&mut engine, "m", [0, 3], [1, 1], 1).is_err());
        assert!(state.map(&mut engine, "", [0, 0], [1, 1], 1).is_err());
        assert!(state.counters(&mut engine, "c", [0, 0], 0).is_err());
        assert!(state.counters(&mut engine, "c", [0, 0], COUNTERS + 1).is_err());
        assert!((0..OBJECTS).all(|n| state.counters(&mut engine, &format!("c{n}"), [0, 0], 1).is_ok()));
        assert!(state.counters(&mut engine, "one more", [0, 0], 1).is_err());
        assert!(!state.add(0, 0, 1) && !state.add(1, 1, 1) && state.add(1, 0, 2));
        assert_eq!((state.read(1, 0), state.read(1, 1), state.read(65, 0)), (Some(2), None, None));
    }
}
