//! A number for each key, and the operations on it that functions need most: those of [`Counts`](super::Counts), by source, by
//! destination or the like (Khalid's dissertation, Table 3.6).
//!
//! A key without a number has 0. A number that nobody has used for a while is forgotten, as it is over, and one that is taken goes at
//! once. A new one may find no room in the map: then nothing changes, the answer says so, and it is tallied as [`NO_ROOM`].
//!
//! # Example
//!
//! At most three at a time of each source:
//!
//! ```
//! use catena_packet::wire::Seed;
//! use catena_state::value::by_key::{Add, Admit, Life, Number};
//! use catena_state::{Access, Declaration, Engine, Local, Scope, Share, SharedMap, Tx};
//!
//! const OPEN: Declaration = Declaration::shared_map("open", "of each source", Scope::Source, Access::ReadWrite);
//!
//! let mut engine = Local::new(Seed::from_number(1), Share::WHOLE);
//! let mut open = engine.shared_map::<u64, Number>(&OPEN, 1000, Life::of_unused(60_000_000_000))?;
//! let mut tx = engine.begin(Tx::new(1, 5_000_000_000, 0));
//! let (source, now) = (7, tx.now);
//! for is_admitted in [true, true, true, false] {
//!     let ticket = open.want(&mut tx, source, Admit { n: 1, most: 3, now });
//!     assert_eq!(open.got(&mut tx, &ticket), is_admitted);
//! }
//! open.send(&mut tx, source, Add { n: -1, now });
//! # Ok::<(), catena_state::NoMemory>(())
//! ```

use crate::plain::Plain;
use crate::shared_map::{Entry, EntryOp, Place};

/// The number of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub struct Number {
    n: i64,
    /// When it was last used, in ns since 1970.
    last: u64,
}

/// How long a number lives.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Life {
    unused: u64,
}

impl Life {
    /// So many ns after its last use; [`FOREVER`](crate::FOREVER) for until it is taken.
    pub const fn of_unused(ns: u64) -> Life {
        Life { unused: ns }
    }
}

impl Entry for Number {
    type Rules = Life;

    fn end(&self, life: &Life) -> u64 {
        self.last.saturating_add(life.unused)
    }
}

crate::entry_operations!("number": Number { 0 => Add, 1 => Get, 2 => Set, 3 => Take, 4 => Replace, 5 => Admit });

/// The event that a new number found no room.
pub const NO_ROOM: usize = 0;

/// Let `change` have the number of a place at a time, and give it another value if it names one; returns what the number was, `None` where a
/// new one finds no room.
#[inline]
fn change(place: &mut impl Place<Number>, now: u64, change: impl FnOnce(i64) -> Option<i64>) -> Option<i64> {
    let life = *place.rules();
    let known = place.get().map(|number| (number.is_over(&life, now), *number));
    let before = known.map_or(0, |(is_over, number)| if is_over { 0 } else { number.n });
    let Some(n) = change(before) else { return Some(before) };
    let last = known.map_or(now, |(_, number)| number.last.max(now));
    match place.get() {
        Some(number) => *number = Number { n, last },
        None => {
            if place.insert(now, Number { n, last }).is_err() {
                place.tally(NO_ROOM);
                return None;
            }
        }
    }
    Some(before)
}

/// Add to the number (*increment/decrement a value*). Nothing happens where a new one finds no room.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Add {
    /// How much.
    pub n: i64,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl EntryOp<Number> for Add {
    type Reply = ();

    #[inline]
    fn apply(self, place: &mut impl Place<Number>) {
        change(place, self.now, |n| Some(n.wrapping_add(self.n)));
    }
}

/// What is the number? To look at it is no use of it.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Get {
    /// The time, in ns since 1970.
    pub now: u64,
}

impl EntryOp<Number> for Get {
    type Reply = i64;

    #[inline]
    fn apply(self, place: &mut impl Place<Number>) -> i64 {
        change(place, self.now, |_| None).unwrap_or(0)
    }
}

/// Give the number another value; answers what it was, `None` where a new one finds no room.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Set {
    /// Its new value.
    pub n: i64,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl EntryOp<Number> for Set {
    type Reply = Option<i64>;

    fn apply(self, place: &mut impl Place<Number>) -> Option<i64> {
        change(place, self.now, |_| Some(self.n))
    }
}

/// Take all there is: the number goes, and its place is free. Answers what it was.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Take {
    /// The time, in ns since 1970.
    pub now: u64,
}

impl EntryOp<Number> for Take {
    type Reply = i64;

    fn apply(self, place: &mut impl Place<Number>) -> i64 {
        let life = *place.rules();
        place.remove().filter(|number| !number.is_over(&life, self.now)).map_or(0, |number| number.n)
    }
}

/// Give the number another value if it has an expected one (*compare and update*); answers what it was, so it has the new value if that is
/// what was expected. `None` where a new one finds no room.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Replace {
    /// What it is expected to be.
    pub old: i64,
    /// Its new value.
    pub new: i64,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl EntryOp<Number> for Replace {
    type Reply = Option<i64>;

    fn apply(self, place: &mut impl Place<Number>) -> Option<i64> {
        change(place, self.now, |n| (n == self.old).then_some(self.new))
    }
}

/// Is there room, and if so, take it: add to the number, unless that makes it more than the most, or a new one finds no room in the map. Answers
/// whether it was added. Who leaves [adds](Add) less than nothing.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Admit {
    /// How much.
    pub n: i64,
    /// What it may be at most.
    pub most: i64,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl EntryOp<Number> for Admit {
    type Reply = bool;

    fn apply(self, place: &mut impl Place<Number>) -> bool {
        let sum = |n: i64| n.checked_add(self.n).filter(|sum| *sum <= self.most);
        let mut is_below = false;
        let done = change(place, self.now, |n| sum(n).inspect(|_| is_below = true));
        is_below && done.is_some()
    }
}
