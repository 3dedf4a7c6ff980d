//! The table of routes: a path-compressed trie that takes and gives up routes one at a time.
//!
//! The first 16 bits of an address index an array; from there on a node decides eight bits. A node
//! keeps its 256 slots as runs ([`super::block`]); bits that no route distinguishes are skipped, so
//! that a look-up takes as many steps as routes branch, not as the address is long.
//!
//! Ideas taken up: a directly indexed first level (Gupta, Lin and McKeown, "Routing Lookups in Hardware
//! at Memory Access Speeds", INFOCOM '98, §III), run-compressed wide nodes read by population count
//! (see [`super::block`]), skipped bits (Nilsson and Karlsson, "IP-Address Lookup Using LC-Tries",
//! JSAC 1999). Other than in these, routes are not pushed down into deeper nodes: a node remembers as
//! `miss` what the slot above it held, and a look-up keeps the best it has seen. An update therefore
//! changes one node and the `miss` of its children, never a subtree. Every slot also remembers the
//! length of the route it shows, so that a shorter one inserted later cannot cover it.
//!
//! # Memory
//!
//! For R routes there are at most 2R nodes of 64 bytes (one in which a route ends, or one where two
//! part) and at most 8R runs of 4 bytes, taken with up to a quarter more and a third free, all in
//! allocations that grow by an eighth: less than 215 bytes a route, and 256 KiB. Address space as it is
//! used needs a tenth of it. Nodes of removed routes are kept for later ones. The list of routes itself takes another 8 to 16 (IPv4) or 20 to 43 (IPv6)
//! bytes a route.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::block::{Block, Pool, Word, Words, grow};
use super::{Address, NextHop, Prefix};

/// The most routes a table can be made for: 16,777,216.
pub const MAX_ROUTES: usize = 1 << 24;

/// Bits decided by the first array.
const FIRST: u8 = 16;

/// The sign of a slot that leads to a node; the bits below are the node's number. A slot that is not
/// negative is a route: the next hop in the low 16 bits, above them the length of the prefix plus 1. So
/// of two slots the more specific route is the greater number, and one that leads to a node is less
/// than any route: a look-up takes the maximum.
const CHILD: Word = Word::MIN;

/// A slot that no route of its own node covers: less than any route.
pub(super) const NONE: Word = 0xffff;

/// The number of the node that a negative slot leads to.
#[inline(always)]
pub(super) fn child(slot: Word) -> usize {
    (slot & !CHILD).cast_unsigned() as usize
}

/// The end of the list of free nodes.
const NO_NODE: Word = Word::MAX;

/// The `shift` of a node that is not in use.
pub(super) const FREE: u8 = u8::MAX;

/// One step of a look-up, and all it reads but the run: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Node<A> {
    /// The 256 slots.
    pub(super) block: Block,
    /// The route of the slot that leads here, for addresses that find none below. While the node is
    /// free: the next free one.
    pub(super) miss: Word,
    /// How many bits of the address stand behind the eight decided here.
    pub(super) shift: u8,
    /// The bits before them, followed by 0.
    pub(super) key: A,
}

/// Where a slot is.
#[derive(Clone, Copy)]
enum Slot {
    First(u16),
    Node(usize, u8),
}

/// A table of routes from prefixes to next hops.
#[derive(Clone)]
pub struct Lpm<A> {
    pub(super) first: Box<[Word; 1 << FIRST]>,
    pub(super) nodes: Vec<Node<A>>,
    pub(super) pool: Pool,
    free_node: Word,
    /// The routes themselves, by length: what a removed route had covered must be found again.
    routes: Box<[BTreeMap<A, NextHop>]>,
    len: usize,
    max_routes: usize,
}

/// Why a route was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertError {
    /// The table holds as many routes as it was made for.
    Full {
        /// How many that is.
        max_routes: usize,
    },
    /// [`NextHop::NONE`] is no next hop.
    NoNextHop,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsertError::Full { max_routes } => write!(f, "the table is full: it was made for {max_routes} routes"),
            InsertError::NoNextHop => f.write_str("a route needs a next hop"),
        }
    }
}

impl std::error::Error for InsertError {}

impl<A: Address> Lpm<A> {
    /// An empty table for at most `max_routes` routes (and never more than [`MAX_ROUTES`]).
    pub fn new(max_routes: usize) -> Self {
        Lpm {
            first: Box::new([NONE; 1 << FIRST]),
            nodes: Vec::new(),
            pool: Pool::new(NONE),
            free_node: NO_NODE,
            routes: vec![BTreeMap::new(); usize::from(A::BITS) + 1].into(),
            len: 0,
            max_routes: max_routes.min(MAX_ROUTES),
        }
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that look-ups read (the trie, without the list of routes).
    pub fn lookup_bytes(&self) -> usize {
        size_of_val(&*self.first) + self.nodes.capacity() * size_of::<Node<A>>() + self.pool.bytes()
    }

    /// The next hop of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.routes[usize::from(prefix.len_bits())].get(&prefix.addr()).copied()
    }

    /// All routes, shortest prefixes first, each length in the order of addresses.
    pub fn routes(&self) -> impl Iterator<Item = (Prefix<A>, NextHop)> + '_ {
        let by_len = (0..=A::BITS).zip(&self.routes);
        by_len.flat_map(|(len, routes)| {
            routes.iter().filter_map(move |(&addr, &hop)| Some((Prefix::new(addr, len).ok()?, hop)))
        })
    }

    /// Adds a route, or changes the next hop of a present one and returns the former. Takes about a
    /// microsecond; now and then, when a third of the table lies free, as long as copying the table does.
    ///
    /// # Errors
    /// The table is full, or `hop` is none. It is then as before.
    pub fn insert(&mut self, prefix: Prefix<A>, hop: NextHop) -> Result<Option<NextHop>, InsertError> {
        if hop == NextHop::NONE {
            return Err(InsertError::NoNextHop);
        }
        if self.len >= self.max_routes && self.get(prefix).is_none() {
            return Err(InsertError::Full { max_routes: self.max_routes });
        }
        let old = self.routes[usize::from(prefix.len_bits())].insert(prefix.addr(), hop);
        if old.is_none() {
            self.len += 1;
        }
        if old == Some(hop) {
            return Ok(old);
        }
        let place = Place::of(prefix);
        let leaf = leaf(prefix.len_bits(), hop);
        // A route of the same length over the same slot is this one.
        let paint = |slot| if slot >> 16 <= leaf >> 16 { leaf } else { slot };
        match place.depth {
            None => {
                paint_slots(&mut self.first[place.slots], &mut self.nodes, paint);
            }
            Some(depth) => self.insert_below(prefix.addr(), depth, place.slots, paint),
        }
        self.compact();
        Ok(old)
    }

    /// Takes a route out and returns its next hop, or `None` if there was no such route. Takes as long
    /// as [`Lpm::insert`].
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<NextHop> {
        let hop = self.routes[usize::from(prefix.len_bits())].remove(&prefix.addr())?;
        self.len -= 1;
        let place = Place::of(prefix);
        let leaf = leaf(prefix.len_bits(), hop);
        let cover = self.cover(prefix);
        let paint = |slot| if slot == leaf { cover } else { slot };
        match place.depth {
            None => {
                paint_slots(&mut self.first[place.slots], &mut self.nodes, paint);
            }
            Some(depth) => self.remove_below(prefix.addr(), depth, place.slots, paint),
        }
        self.compact();
        Some(hop)
    }

    /// The slot value of the longest shorter route over `prefix` that ends in the same node.
    fn cover(&self, prefix: Prefix<A>) -> Word {
        let place = Place::of(prefix);
        let shortest = place.depth.map_or(0, |depth| depth + 1);
        let mut shorter = (shortest..prefix.len_bits()).rev().filter_map(|len| Prefix::new(prefix.addr(), len).ok());
        shorter.find_map(|p| Some(leaf(p.len_bits(), self.get(p)?))).unwrap_or(NONE)
    }

    /// Paints `slots` of the node that decides the eight bits after `depth` on the way to `addr`, and
    /// makes it first if there is none.
    fn insert_below(&mut self, addr: A, depth: u8, slots: Range<usize>, paint: impl Fn(Word) -> Word) {
        let mut slot = Slot::First(addr.first_16());
        loop {
            let at = self.read(slot);
            if at >= 0 {
                let mut words = [NONE; 256];
                paint_slots(&mut words[slots], &mut self.nodes, paint);
                let node = self.new_node(addr, depth, at, &words);
                return self.write(slot, node);
            }
            let below = child(at);
            let node = self.nodes[below];
            let node_depth = A::BITS - 8 - node.shift;
            let common = addr.common_bits(node.key).min(depth).min(node_depth) & !7;
            if common == node_depth && common == depth {
                return self.paint_node(below, slots, paint);
            }
            if common == node_depth {
                slot = Slot::Node(below, addr.byte(node.shift));
                continue;
            }
            // The way to `addr` leaves the skipped bits before `node`: a node is put in between.
            let shift = A::BITS - 8 - common;
            let mut words = [NONE; 256];
            words[usize::from(node.key.byte(shift))] = at;
            self.nodes[below].miss = NONE;
            if common == depth {
                paint_slots(&mut words[slots], &mut self.nodes, paint);
            } else {
                let mut end = [NONE; 256];
                paint_slots(&mut end[slots], &mut self.nodes, paint);
                words[usize::from(addr.byte(shift))] = self.new_node(addr, depth, NONE, &end);
            }
            let between = self.new_node(addr, common, node.miss, &words);
            return self.write(slot, between);
        }
    }

    /// Paints `slots` of the node that [`Lpm::insert_below`] painted, and drops nodes no longer needed.
    fn remove_below(&mut self, addr: A, depth: u8, slots: Range<usize>, paint: impl Fn(Word) -> Word) {
        let mut slot = Slot::First(addr.first_16());
        let mut above = slot;
        loop {
            let at = self.read(slot);
            assert!(at < 0, "every route has a node in which it ends");
            let below = child(at);
            let shift = self.nodes[below].shift;
            if A::BITS - 8 - shift == depth {
                self.paint_node(below, slots, paint);
                break;
            }
            above = slot;
            slot = Slot::Node(below, addr.byte(shift));
        }
        // A node that went may leave the one above it with a single child.
        if self.simplify(slot) && matches!(slot, Slot::Node(..)) {
            self.simplify(above);
        }
    }

    /// Drops the node that `slot` leads to if it decides nothing: no routes, and at most one child whose
    /// whole slot no route covers. Returns whether it went.
    fn simplify(&mut self, slot: Slot) -> bool {
        let node_at = child(self.read(slot));
        let node = self.nodes[node_at];
        let words = self.pool.unpack(&node.block);
        let mut only = None;
        for &word in words.iter().filter(|&&word| word != NONE) {
            if word >= 0 || only.is_some() || self.nodes[child(word)].miss != NONE {
                return false;
            }
            only = Some(word);
        }
        if let Some(only) = only {
            self.nodes[child(only)].miss = node.miss;
        }
        self.write(slot, only.unwrap_or(node.miss));
        self.pool.release(&node.block);
        self.nodes[node_at] = Node { miss: self.free_node, shift: FREE, ..node };
        self.free_node = node_at as Word;
        true
    }

    /// Takes a node and returns the slot that leads to it.
    fn new_node(&mut self, addr: A, depth: u8, miss: Word, words: &Words) -> Word {
        let block = self.pool.pack(words);
        let node = Node { block, miss, shift: A::BITS - 8 - depth, key: addr.truncate(depth) };
        let at = self.free_node;
        if let Some(free) = self.nodes.get_mut(at as usize) {
            self.free_node = free.miss;
            *free = node;
            return CHILD | at;
        }
        grow(&mut self.nodes, 1);
        self.nodes.push(node);
        CHILD | (self.nodes.len() - 1) as Word
    }

    fn paint_node(&mut self, at: usize, slots: Range<usize>, paint: impl Fn(Word) -> Word) {
        let mut words = self.pool.unpack(&self.nodes[at].block);
        if paint_slots(&mut words[slots], &mut self.nodes, paint) {
            self.pool.repack(&mut self.nodes[at].block, &words);
        }
    }

    fn read(&self, slot: Slot) -> Word {
        match slot {
            Slot::First(at) => self.first[usize::from(at)],
            Slot::Node(node, at) => self.pool.words()[self.nodes[node].block.index(at)],
        }
    }

    fn write(&mut self, slot: Slot, word: Word) {
        match slot {
            Slot::First(at) => self.first[usize::from(at)] = word,
            Slot::Node(node, at) => {
                let mut words = self.pool.unpack(&self.nodes[node].block);
                words[usize::from(at)] = word;
                self.pool.repack(&mut self.nodes[node].block, &words);
            }
        }
    }

    fn compact(&mut self) {
        if self.pool.is_sparse() {
            let used = self.nodes.iter_mut().filter(|node| node.shift != FREE);
            self.pool.compact(used.map(|node| &mut node.block));
        }
    }
}

/// Where a prefix ends.
struct Place {
    /// Bits before those that the node decides; `None` for the first array.
    depth: Option<u8>,
    /// The slots it covers there.
    slots: Range<usize>,
}

impl Place {
    fn of<A: Address>(prefix: Prefix<A>) -> Place {
        let (addr, len) = (prefix.addr(), prefix.len_bits());
        let (depth, from, open_bits) = if len <= FIRST {
            (None, usize::from(addr.first_16()), FIRST - len)
        } else {
            let depth = (len - 1) & !7;
            (Some(depth), usize::from(addr.byte(A::BITS - 8 - depth)), depth + 8 - len)
        };
        Place { depth, slots: from..from + (1 << open_bits) }
    }
}

/// The slot that shows the route of a prefix of `len` bits to `hop`.
fn leaf(len: u8, hop: NextHop) -> Word {
    (Word::from(len) + 1) << 16 | Word::from(hop.0)
}

/// Changes every slot by `paint`; of one that leads to a node, what is remembered there. Returns
/// whether `slots` themselves changed.
fn paint_slots<A>(slots: &mut [Word], nodes: &mut [Node<A>], paint: impl Fn(Word) -> Word) -> bool {
    let mut changed = false;
    for slot in slots {
        if *slot < 0 {
            let miss = &mut nodes[child(*slot)].miss;
            *miss = paint(*miss);
        } else {
            let new = paint(*slot);
            changed |= new != *slot;
            *slot = new;
        }
    }
    changed
}
