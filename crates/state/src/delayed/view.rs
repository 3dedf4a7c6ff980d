//! What objects hold, so that two runs can be compared.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::holder::Request;
use super::made::Made;
use super::objects::Entries;
use super::watch::{Watch, lock};
use crate::key::Key;
use crate::plain::{Plain, bytes};

/// The entries of a map, whatever they are.
pub(super) trait Listed: Any + Send {
    /// Return keys and entries as bytes, sorted.
    fn list(&self) -> Vec<(Vec<u8>, Vec<u8>)>;
}

impl<K: Key, V: Plain> Listed for Entries<K, V> {
    fn list(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut entries = self.lock().unwrap_or_else(PoisonError::into_inner);
        let places = entries.places(usize::MAX);
        let there = (0..places).filter_map(|_| entries.next_place());
        let mut list: Vec<_> = there.map(|(key, value)| (bytes(&key), bytes(&value))).collect();
        list.sort();
        list
    }
}

/// All flow maps of an engine. They outlive who made them.
pub(super) type Maps = Arc<Mutex<Vec<(Made, Box<dyn Listed>)>>>;

/// What an object holds, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The keys and entries of a flow map, as bytes.
    Entries(String, Vec<(Vec<u8>, Vec<u8>)>),
    /// A hash of the operations on a shared object, in order, and of their replies: all that its value follows from.
    History(String, u64),
}

/// Looks at an engine's objects, while a function runs on them or after.
pub struct View {
    pub(super) watch: Arc<Mutex<Watch>>,
    pub(super) maps: Maps,
}

impl View {
    /// Return what the objects hold once all that is on its way has come: flow maps first, each kind in the order in which they
    /// were made.
    pub fn holds(&self) -> Vec<Holds> {
        let maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = maps.iter().map(|(made, map)| Holds::Entries(made.to_string(), map.list()));
        let mut watch = lock(&self.watch);
        let held: Vec<(Made, usize)> = watch.held.iter().map(|held| (held.object, held.number)).collect();
        let history = |(made, number): (Made, usize)| {
            let hash = watch.post.look(made, (number, Request::History));
            let hash = hash.try_into().unwrap_or_else(|_| unreachable!("a history is eight bytes"));
            Holds::History(made.to_string(), u64::from_le_bytes(hash))
        };
        let histories: Vec<_> = held.into_iter().map(history).collect();
        entries.chain(histories).collect()
    }
}
