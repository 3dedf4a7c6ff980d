//! Maps of a C function: keys and values of sizes known only when it is loaded, on the engine's typed maps.

use catena_state::{Declaration, Engine, FOREVER, FlowMap, Full, Intent, Key, NoMemory, Tx};

use super::asked::{InHand, Ticket};

/// Says of a key and its value whether they go, by operations of its own.
pub type Visitor<'a> = &'a mut dyn FnMut(&mut Tx, &[u8], &[u8]) -> bool;

/// A map of keys and values of fixed sizes; a slice given is of its size.
///
/// On an engine that makes packets wait, a key is used in the step after the one that expected it, as
/// [`Map::is_usable`] tells; to use another one has no effect. Where nobody waits all may be used.
pub trait Map<E: Engine>: Send {
    /// Ask for what will be wanted, or bring it near; returns whether the packet may ask for one more.
    fn expect(&mut self, packet: &mut InHand<E>, key: &[u8]) -> bool;
    /// Ask once more for all that may be used in this step.
    fn ask_again(&mut self, packet: &mut InHand<E>);
    /// Return whether a key may be used in this step, on an engine that makes packets wait.
    fn is_usable(&self, packet: &InHand<E>, key: &[u8]) -> bool;
    /// Return an entry's value.
    fn get(&mut self, packet: &mut InHand<E>, key: &[u8]) -> Option<&[u8]>;
    /// Put an entry in, or in place of what was there.
    ///
    /// # Errors
    /// When the map is full.
    fn put(&mut self, packet: &mut InHand<E>, key: &[u8], value: &[u8]) -> Result<(), Full>;
    /// Take an entry out; returns whether it was there.
    fn remove(&mut self, packet: &mut InHand<E>, key: &[u8]) -> bool;
    /// Look at the next places and take out what goes.
    fn sweep(&mut self, tx: &mut Tx, count: usize, goes: Visitor) -> usize;
    /// Return the number of entries.
    fn len(&self) -> usize;
}

/// A map on words: keys of K, values of V words of eight bytes, the last filled up with zeros.
struct Words<E: Engine, K: Bytes, const V: usize> {
    map: Typed<E, K, V>,
    /// Tells this map from the function's others.
    number: u32,
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
    fn keep<E: Engine>(ticket: E::Ticket<Self>) -> Ticket<E>;
    fn kept<E: Engine>(ticket: &Ticket<E>) -> Option<&E::Ticket<Self>>;
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R;
}

impl Bytes for u64 {
    #[inline(always)]
    fn from_bytes(bytes: &[u8]) -> Self {
        key::<1>(bytes)[0]
    }
    fn keep<E: Engine>(ticket: E::Ticket<u64>) -> Ticket<E> {
        Ticket::One(ticket)
    }
    fn kept<E: Engine>(ticket: &Ticket<E>) -> Option<&E::Ticket<u64>> {
        if let Ticket::One(ticket) = ticket { Some(ticket) } else { None }
    }
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(&self.to_le_bytes())
    }
}

macro_rules! words_are_bytes {
    ($($variant:ident $count:literal),*) => {$(
        impl Bytes for [u64; $count] {
            #[inline(always)]
            fn from_bytes(bytes: &[u8]) -> Self {
                key(bytes)
            }
            fn keep<E: Engine>(ticket: E::Ticket<Self>) -> Ticket<E> {
                Ticket::$variant(ticket)
            }
            fn kept<E: Engine>(ticket: &Ticket<E>) -> Option<&E::Ticket<Self>> {
                if let Ticket::$variant(ticket) = ticket { Some(ticket) } else { None }
            }
            fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(self.map(u64::to_le_bytes).as_flattened())
            }
        }
    )*};
}
words_are_bytes!(Two 2, Five 5);

type Typed<E, K, const V: usize> = <E as Engine>::FlowMap<K, [[u8; 8]; V]>;

impl<E: Engine, K: Bytes, const V: usize> Words<E, K, V> {
    /// Return the ticket of a key: one that the packet has waited for, or where nobody waits a fresh one.
    #[inline(always)]
    fn ticket(&mut self, packet: &mut InHand<E>, key: &[u8]) -> Option<E::Ticket<K>> {
        let key = K::from_bytes(key);
        if E::WAITS { self.waited_for(packet, key) } else { Some(self.map.want(&mut packet.tx, key, Intent::Create)) }
    }

    fn waited_for(&self, packet: &InHand<E>, key: K) -> Option<E::Ticket<K>> {
        packet.usable.of(self.number).filter_map(K::kept).find(|ticket| Typed::<E, K, V>::key(ticket) == key).copied()
    }
}

impl<E: Engine, K: Bytes, const V: usize> Map<E> for Words<E, K, V> {
    fn expect(&mut self, packet: &mut InHand<E>, key: &[u8]) -> bool {
        let key = K::from_bytes(key);
        let of_key = |ticket: &Ticket<E>| K::kept(ticket).is_some_and(|ticket| Typed::<E, K, V>::key(ticket) == key);
        if E::WAITS && packet.wanted.of(self.number).any(of_key) {
            return true;
        }
        let mut ticket = self.map.want(&mut packet.tx, key, Intent::Create);
        self.map.warm(&mut ticket);
        !E::WAITS || packet.wanted.keep(self.number, K::keep(ticket))
    }

    fn ask_again(&mut self, packet: &mut InHand<E>) {
        let usable = packet.usable;
        for ticket in usable.of(self.number).filter_map(K::kept) {
            // What there is no room for is late once more.
            Typed::<E, K, V>::key(ticket).with_bytes(|key| _ = self.expect(packet, key));
        }
    }

    fn is_usable(&self, packet: &InHand<E>, key: &[u8]) -> bool {
        self.waited_for(packet, K::from_bytes(key)).is_some()
    }

    fn get(&mut self, packet: &mut InHand<E>, key: &[u8]) -> Option<&[u8]> {
        let ticket = self.ticket(packet, key)?;
        self.map.read(&mut packet.tx, &ticket).map(|value| &value.as_flattened()[..self.value_size])
    }

    fn put(&mut self, packet: &mut InHand<E>, key: &[u8], value: &[u8]) -> Result<(), Full> {
        let ticket = self.ticket(packet, key).ok_or(Full)?;
        let value = words::<V>(value);
        if let Some(mut old) = self.map.get(&mut packet.tx, &ticket) {
            *old = value;
            return Ok(());
        }
        self.map.insert(&mut packet.tx, &ticket, value, FOREVER).map(|_| ())
    }

    fn remove(&mut self, packet: &mut InHand<E>, key: &[u8]) -> bool {
        self.ticket(packet, key).is_some_and(|ticket| self.map.remove(&mut packet.tx, &ticket).is_some())
    }

    fn sweep(&mut self, tx: &mut Tx, count: usize, goes: Visitor) -> usize {
        let (k, v) = (self.key_size, self.value_size);
        self.map
            .sweep(tx, count, |tx, key, value| key.with_bytes(|key| goes(tx, &key[..k], &value.as_flattened()[..v])))
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}

/// What a map is made of.
#[derive(Clone, Copy)]
pub struct Shape {
    /// What it is declared as.
    pub object: Declaration,
    /// Tells it from the function's other maps.
    pub number: u32,
    /// Bytes of a key, at most 40.
    pub key_size: usize,
    /// Bytes of a value, at most 256.
    pub value_size: usize,
    /// Most entries.
    pub capacity: usize,
}

/// Make a map.
///
/// # Errors
/// [`NoMemory`] where there is none for so many entries.
pub fn make<E: Engine>(engine: &mut E, shape: Shape) -> Result<Box<dyn Map<E>>, NoMemory> {
    match shape.key_size {
        0..=8 => of_key::<E, u64>(engine, shape),
        9..=16 => of_key::<E, [u64; 2]>(engine, shape),
        _ => of_key::<E, [u64; 5]>(engine, shape),
    }
}

fn of_key<E: Engine, K: Bytes>(engine: &mut E, shape: Shape) -> Result<Box<dyn Map<E>>, NoMemory> {
    match shape.value_size.div_ceil(8) {
        0..=1 => of::<E, K, 1>(engine, shape),
        2 => of::<E, K, 2>(engine, shape),
        3..=4 => of::<E, K, 4>(engine, shape),
        5..=8 => of::<E, K, 8>(engine, shape),
        9..=16 => of::<E, K, 16>(engine, shape),
        _ => of::<E, K, 32>(engine, shape),
    }
}

fn of<E: Engine, K: Bytes, const V: usize>(engine: &mut E, shape: Shape) -> Result<Box<dyn Map<E>>, NoMemory> {
    let Shape { object, number, key_size, value_size, capacity } = shape;
    Ok(Box::new(Words::<E, K, V> { map: engine.flow_map(&object, capacity)?, number, key_size, value_size }))
}
