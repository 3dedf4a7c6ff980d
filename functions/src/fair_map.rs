//! A map of entries that strangers make, its room shared out among them: [`Shares`].
//!
//! Room is asked for by an operation, as other instances may share it out too, and the entry is written in the step after. An
//! entry knows whose part it takes, so that its room is given back with it.

use std::convert::Infallible;

use catena_state::{Declaration, Engine, Fate, FlowMap, Intent, Key, Mover, NoMemory, Plain, Share, Shared, Tx};

use crate::shares::{Bring, Give, Tables, Take, Taken};

/// An entry of a [`FairMap`].
pub trait Grouped: Plain {
    /// Return the group of senders whose part it takes.
    fn group(&self) -> u16;
}

type Entries<E, K, V> = <E as Engine>::FlowMap<K, V>;
/// The promise of an entry.
pub type Ticket<E, K, V> = <Entries<E, K, V> as FlowMap<K, V>>::Ticket;

/// The promise of a place for a new entry, and of room for it.
pub struct Place<E: Engine, K: Key, V: Grouped> {
    entry: Ticket<E, K, V>,
    room: <E::Shared<Tables> as Shared<Tables>>::Ticket<Take>,
}

copied!(Place<E: Engine, K: Key, V: Grouped>);

/// The map.
pub struct FairMap<E: Engine, K: Key, V: Grouped> {
    /// The entries: to be read and changed, but not made or taken out.
    pub entries: Entries<E, K, V>,
    shares: E::Shared<Tables>,
    /// Which of the tables in `shares` this one is.
    instance: u16,
}

impl<E: Engine, K: Key, V: Grouped> FairMap<E, K, V> {
    /// Make an empty map of up to as many entries as an instance of this one's share has: `most`.
    ///
    /// # Errors
    /// [`NoMemory`] for so many.
    pub fn new(
        engine: &mut E,
        [entries, shares]: [&Declaration; 2],
        most: impl Fn(Share) -> usize,
    ) -> Result<Self, NoMemory> {
        let (seed, share, seen) = (engine.seed(), engine.share(), engine.share_of(shares));
        // One object for all instances has a part for each: all of a sender's entries are in one.
        let (instances, instance) =
            if seen == share { (share.index..share.index + 1, 0) } else { (0..share.count, share.index) };
        let each = instances.map(|index| most(Share { index, ..share }));
        let Ok(shares) = engine.shared_of(shares, || Ok::<_, Infallible>(Tables::new(seed, each)));
        Ok(FairMap { entries: engine.flow_map(entries, most(share))?, shares, instance: instance as u16 })
    }

    /// Ask for the place of a new entry, and for room among those of a sender, who is known by one or two words.
    pub fn want_place(&mut self, tx: &mut Tx, key: K, sender: [u64; 2]) -> Place<E, K, V> {
        let room = self.shares.want(tx, Take { instance: self.instance, sender });
        Place { entry: self.entries.want(tx, key, Intent::Create), room }
    }

    /// Return the group that has got room for the new entry; it must be [put](Self::put), or [given up](Self::give_up).
    ///
    /// # Errors
    /// Why there is no room.
    pub fn room(&mut self, tx: &mut Tx, place: &Place<E, K, V>) -> Result<u16, Taken> {
        match self.shares.got(tx, &place.room) {
            Taken::Room(group) => Ok(group),
            why => Err(why),
        }
    }

    /// Give room back that nothing was put in.
    pub fn give_up(&mut self, tx: &mut Tx, group: u16) {
        self.shares.send(tx, Give { instance: self.instance, group });
    }

    /// Put a new entry, of the group that it is told, with how long it lasts, where there is room for it or an older one of its key, which goes.
    ///
    /// # Errors
    /// Why there is no room.
    pub fn put(
        &mut self,
        tx: &mut Tx,
        place: &Place<E, K, V>,
        room: Result<u16, Taken>,
        entry: impl FnOnce(u16) -> (V, u64),
    ) -> Result<(), Taken> {
        let before = self.entries.remove(tx, &place.entry).map(|before| before.group());
        let group = match (room, before) {
            (Ok(group), Some(before)) => {
                self.give_up(tx, before);
                group
            }
            (Ok(group), None) | (Err(_), Some(group)) => group,
            (Err(why), None) => return Err(why),
        };
        let (entry, until) = entry(group);
        let is_put = self.entries.insert(tx, &place.entry, entry, until).map(|_| ());
        is_put.map_err(|_| {
            self.give_up(tx, group);
            Taken::Short(group)
        })
    }

    /// Show a mover the entries: those that go are counted where they come.
    pub fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        let FairMap { entries, shares, instance } = self;
        let arrives = mover.from().is_some();
        mover.flows(tx, entries, |tx, _, entry| match arrives {
            true => shares.send(tx, Bring { instance: *instance, group: entry.group() }),
            false => shares.send(tx, Give { instance: *instance, group: entry.group() }),
        });
    }

    /// Look at up to `most` entries whose end may have come, and take out those that are over at `now`. Returns how many were looked
    /// at.
    pub fn expire(&mut self, tx: &mut Tx, now: u64, most: usize, end: impl Fn(&V) -> u64) -> usize {
        let FairMap { entries, shares, instance } = self;
        entries.expire(tx, now, most, |tx, _, entry| {
            let end = end(entry);
            if end > now {
                return Fate::Until(end);
            }
            shares.send(tx, Give { instance: *instance, group: entry.group() });
            Fate::Over
        })
    }

    /// Look at the next `count` places, and take out the entries that are over.
    pub fn sweep(&mut self, tx: &mut Tx, count: usize, mut is_over: impl FnMut(&mut Tx, &K, &V) -> bool) {
        let FairMap { entries, shares, instance } = self;
        entries.sweep(tx, count, |tx, key, entry| {
            let goes = is_over(tx, key, entry);
            if goes {
                shares.send(tx, Give { instance: *instance, group: entry.group() });
            }
            goes
        });
    }
}
