//! Objects and packets are known by numbers.

use std::hash::{BuildHasherDefault, Hasher};

use crate::declare::Declaration;
use crate::key::Key;
use crate::plain::bytes;
use crate::shared::Held;
use crate::shared_map::Entry;

/// An object that was made.
#[derive(Clone, Copy)]
pub(super) struct Made {
    /// The same each time that it is made.
    pub(super) number: usize,
    /// The number of the function's instance whose it is.
    pub(super) instance: usize,
    pub(super) declaration: Declaration,
}

impl PartialEq for Made {
    fn eq(&self, other: &Made) -> bool {
        self.number == other.number
    }
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.declaration.fmt(f)
    }
}

/// A shared object, as its holder has it.
pub(super) struct HeldOne {
    pub(super) object: Made,
    pub(super) kind: Kind,
    /// Its number there.
    pub(super) number: usize,
}

/// What an object is made as: who makes it anew must mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// The kind of value or entry.
    name: &'static str,
    /// Of a map.
    map: Option<MapKind>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MapKind {
    /// Most entries.
    capacity: usize,
    /// Bytes of a key and of an entry.
    bytes: [usize; 2],
    /// What all entries have in common, as bytes.
    rules: Vec<u8>,
}

impl Kind {
    /// Return what an object of these values is.
    pub(super) fn of<V: Held>() -> Kind {
        Kind { name: V::NAME, map: None }
    }

    /// Return whether it is a map.
    pub(super) fn is_map(&self) -> bool {
        self.map.is_some()
    }

    /// Return what a map of up to `capacity` such entries is.
    pub(super) fn of_map<K: Key, V: Entry>(capacity: usize, rules: &V::Rules) -> Kind {
        let map = MapKind { capacity, bytes: [K::BYTES, V::BYTES], rules: bytes(rules) };
        Kind { name: V::NAME, map: Some(map) }
    }
}

/// Return the number of an object of this kind among those that are held.
pub(super) fn number_of(held: &[HeldOne], object: Made, kind: &Kind) -> Option<usize> {
    let one = held.iter().find(|held| held.object == object)?;
    assert!(one.kind == *kind, "{object}: made anew as {kind:?}, and was made as {:?} first", one.kind);
    Some(one.number)
}

/// Finds what is known by a number that rises.
pub(super) type ByNumber = BuildHasherDefault<Number>;

#[derive(Default)]
pub(super) struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, number: u32) {
        // The highest bits count too.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
