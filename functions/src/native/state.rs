//! The state objects that a C function declares: keys and values of sizes known only when it is loaded, on the
//! engine's typed maps.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use catena_state::{Access, Counters, Declaration, Engine, FlowMap, Full, Key, Local, NoMemory, Object, Scope};

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

/// A map of keys and values of fixed sizes; a slice given is of its size.
pub trait Map: Send {
    /// Bring near what will be wanted.
    fn expect(&mut self, key: &[u8]);
    /// Return an entry's value.
    fn get(&mut self, key: &[u8]) -> Option<&[u8]>;
    /// Put an entry in, or in place of what was there.
    ///
    /// # Errors
    /// When the map is full.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Full>;
    /// Take an entry out; returns whether it was there.
    fn remove(&mut self, key: &[u8]) -> bool;
    /// Look at the next places and take out what goes.
    fn sweep(&mut self, count: usize, goes: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> usize;
    /// Return the number of entries.
    fn len(&self) -> usize;
}

/// A map on words: keys of K, values of V words of eight bytes, the last filled up with zeros.
struct Words<K: Bytes, const V: usize> {
    map: Typed<K, V>,
    key_size: usize,
    value_size: usize,
}

#[inline(always)]
fn words<const N: usize>(bytes: &[u8]) -> [[u8; 8]; N] {
    let mut words = [[0; 8]; N];
    let flat = words.as_flattened_mut();
    if bytes.len() == 8 * N {
        // A length known to the compiler needs no call.
        flat.copy_from_slice(bytes);
    } else {
        flat[..bytes.len()].copy_from_slice(bytes);
    }
    words
}

/// Read a key of at most K words; bytes that are not there are zero. No length known only at run time goes into
/// a call to copy bytes, which would cost more than the rest.
#[inline(always)]
fn key<const K: usize>(bytes: &[u8]) -> [u64; K] {
    let mut key = [0; K];
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, bytes) in key.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(*bytes);
    }
    if let Some(word) = key.get_mut(whole.len()) {
        *word = match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
            // Four bytes from the start, four to the end: where they overlap they are the same.
            (Some(first), Some(last)) => {
                let at = 8 * (rest.len() - 4);
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << at
            }
            _ => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
    }
    key
}

/// Keys that the engine hashes: made of bytes.
trait Bytes: Key {
    fn from_bytes(bytes: &[u8]) -> Self;
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R;
}

impl Bytes for u64 {
    #[inline(always)]
    fn from_bytes(bytes: &[u8]) -> Self {
        key::<1>(bytes)[0]
    }
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(&self.to_le_bytes())
    }
}

macro_rules! words_are_bytes {
    ($($count:literal)*) => {$(
        impl Bytes for [u64; $count] {
            #[inline(always)]
            fn from_bytes(bytes: &[u8]) -> Self {
                key(bytes)
            }
            fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(self.map(u64::to_le_bytes).as_flattened())
            }
        }
    )*};
}
words_are_bytes!(2 5);

type Typed<K, const V: usize> = <Local as Engine>::FlowMap<K, [[u8; 8]; V]>;

impl<K: Bytes, const V: usize> Map for Words<K, V> {
    fn expect(&mut self, key: &[u8]) {
        let mut ticket = self.map.want((), K::from_bytes(key));
        self.map.warm(&mut ticket);
    }

    fn get(&mut self, key: &[u8]) -> Option<&[u8]> {
        let ticket = self.map.want((), K::from_bytes(key));
        self.map.get((), &ticket).map(|value| &value.as_flattened()[..self.value_size])
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Full> {
        let ticket = self.map.want((), K::from_bytes(key));
        let value = words::<V>(value);
        if let Some(old) = self.map.get((), &ticket) {
            *old = value;
            return Ok(());
        }
        self.map.insert((), &ticket, value).map(|_| ())
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let ticket = self.map.want((), K::from_bytes(key));
        self.map.remove((), &ticket).is_some()
    }

    fn sweep(&mut self, count: usize, goes: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> usize {
        let (k, v) = (self.key_size, self.value_size);
        self.map.sweep(count, |key, value| key.with_bytes(|key| goes(&key[..k], &value.as_flattened()[..v])))
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}

type Sized = Result<Box<dyn Map>, NoMemory>;

fn sized<K: Bytes>(engine: &mut Local, name: &'static str, k: usize, v: usize, capacity: usize) -> Sized {
    fn of<K: Bytes, const V: usize>(engine: &mut Local, name: &'static str, sizes: [usize; 3]) -> Sized {
        let [key_size, value_size, capacity] = sizes;
        Ok(Box::new(Words::<K, V> { map: engine.flow_map(name, capacity)?, key_size, value_size }))
    }
    let sizes = [k, v, capacity];
    match v.div_ceil(8) {
        0..=1 => of::<K, 1>(engine, name, sizes),
        2 => of::<K, 2>(engine, name, sizes),
        3..=4 => of::<K, 4>(engine, name, sizes),
        5..=8 => of::<K, 8>(engine, name, sizes),
        9..=16 => of::<K, 16>(engine, name, sizes),
        _ => of::<K, 32>(engine, name, sizes),
    }
}

/// A declared map.
pub struct MapObject {
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// The map; `None` while it is swept.
    pub map: Option<Box<dyn Map>>,
    name: &'static str,
}

/// Declared counters.
struct CounterObject {
    name: &'static str,
    counters: <Local as Engine>::Counters,
    count: usize,
    /// What a table calls them: each, or none.
    shown: Vec<&'static str>,
}

/// All state objects of one instance.
pub struct State {
    engine: Local,
    declarations: Vec<Declaration>,
    /// By handle, less one.
    pub maps: Vec<MapObject>,
    counters: Vec<CounterObject>,
}

impl State {
    /// Make an empty set of objects that will live in `engine`.
    pub fn new(engine: Local) -> State {
        State { engine, declarations: Vec::new(), maps: Vec::new(), counters: Vec::new() }
    }

    /// Return what was declared.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    fn declare(&mut self, name: &str, object: Object, scope: u32, access: u32) -> Result<&'static str, String> {
        const SCOPES: [Scope; 6] = [
            Scope::Connection,
            Scope::SourceEndpoint,
            Scope::Source,
            Scope::Destination,
            Scope::Configured,
            Scope::Global,
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
        let name = lasting(name);
        self.declarations.push(Declaration { name, summary: "declared by a C function", object, scope, access });
        Ok(name)
    }

    /// Declare a map; returns its handle.
    ///
    /// # Errors
    /// What is wrong with the declaration, in words.
    pub fn map(&mut self, name: &str, scope: u32, access: u32, sizes: [u32; 2], entries: u64) -> Result<u32, String> {
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
        let name = self.declare(name, Object::FlowMap, scope, access)?;
        let (k, v, capacity) = (key_size as usize, value_size as usize, entries as usize);
        let map = match k {
            0..=8 => sized::<u64>(&mut self.engine, name, k, v, capacity),
            9..=16 => sized::<[u64; 2]>(&mut self.engine, name, k, v, capacity),
            _ => sized::<[u64; 5]>(&mut self.engine, name, k, v, capacity),
        };
        let map = map.map_err(|error| error.to_string())?;
        self.maps.push(MapObject { key_size: k, value_size: v, map: Some(map), name });
        Ok(self.maps.len() as u32)
    }

    /// Declare counters; returns their handle.
    ///
    /// # Errors
    /// What is wrong with the declaration, in words.
    pub fn counters(&mut self, name: &str, scope: u32, access: u32, count: u32) -> Result<u32, String> {
        if !(1..=COUNTERS).contains(&count) {
            return Err(format!("state object `{name}`: expected a number of counters from 1 to {COUNTERS}"));
        }
        let name = self.declare(name, Object::Counters, scope, access)?;
        let count = count as usize;
        let shown = match count {
            1 => vec![name],
            2..=SHOWN => (0..count).map(|i| lasting(&format!("{name}[{i}]"))).collect(),
            _ => Vec::new(),
        };
        self.counters.push(CounterObject { name, counters: self.engine.counters(name, count), count, shown });
        Ok(self.counters.len() as u32)
    }

    /// Add to a counter; returns whether there is such a counter.
    #[inline]
    pub fn add(&mut self, handle: u32, index: u32, n: i64) -> bool {
        let object = self.counters.get_mut((handle as usize).wrapping_sub(1));
        let Some(object) = object.filter(|object| (index as usize) < object.count) else { return false };
        object.counters.add((), index as usize, n);
        true
    }

    /// Return a counter.
    pub fn read(&self, handle: u32, index: u32) -> Option<i64> {
        let object = self.counters.get((handle as usize).wrapping_sub(1))?;
        ((index as usize) < object.count).then(|| object.counters.read(index as usize))
    }

    /// Check that what stands in the objects of an earlier build can go on standing in these.
    ///
    /// # Errors
    /// The first object that is not there any more, or is another one.
    pub fn fits(&self, old: &State) -> Result<(), String> {
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
    pub fn take(&mut self, old: &mut State) {
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
                tell(name, u64::try_from(object.counters.read(i)).unwrap_or(0));
            }
        }
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
    use catena_state::Share;

    /// Every size of a key and of a value there may be is kept exactly.
    #[test]
    fn keys_and_values_of_all_sizes() {
        let mut state = State::new(Local::new(Seed::from_number(1), Share::WHOLE));
        let bytes: Vec<u8> = (1..=VALUE).map(|n| (n * 37 % 251) as u8).collect();
        let sizes = (1..=KEY).map(|k| (k, k * 6)).chain([(40, VALUE), (1, 1)]);
        for (n, (k, v)) in sizes.enumerate() {
            let handle = state.map(&format!("m{n}"), 0, 0, [k, v], 8).unwrap();
            let (key, value) = (&bytes[..k as usize], &bytes[..v as usize]);
            let map = state.maps[handle as usize - 1].map.as_mut().unwrap();
            map.put(key, value).unwrap();
            for i in 0..k as usize {
                let mut other = key.to_vec();
                other[i] ^= 1;
                assert_eq!(map.get(&other), None, "byte {i} of {k}");
            }
            assert_eq!(map.get(key), Some(value));
            let mut seen = 0;
            map.sweep(8, &mut |at, kept| {
                if (at, kept) == (key, value) {
                    seen += 1;
                }
                false
            });
            assert_eq!(seen, 1, "{k} {v}");
            assert!(map.remove(key) && !map.remove(key) && map.len() == 0);
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let mut state = State::new(Local::new(Seed::from_number(1), Share::WHOLE));
        for (sizes, entries) in
            [([0, 1], 1), ([41, 1], 1), ([1, 0], 1), ([1, 257], 1), ([1, 1], 0), ([40, 256], ENTRIES)]
        {
            assert!(state.map("m", 0, 0, sizes, entries).is_err(), "{sizes:?} {entries}");
        }
        assert!(state.map("m", 6, 0, [1, 1], 1).is_err());
        assert!(state.map("m", 0, 3, [1, 1], 1).is_err());
        assert!(state.map("", 0, 0, [1, 1], 1).is_err());
        assert!(state.counters("c", 0, 0, 0).is_err());
        assert!(state.counters("c", 0, 0, COUNTERS + 1).is_err());
        assert!((0..OBJECTS).all(|n| state.counters(&format!("c{n}"), 0, 0, 1).is_ok()));
        assert!(state.counters("one more", 0, 0, 1).is_err());
        assert!(!state.add(0, 0, 1) && !state.add(1, 1, 1) && state.add(1, 0, 2));
        assert_eq!((state.read(1, 0), state.read(1, 1), state.read(65, 0)), (Some(2), None, None));
    }
}
