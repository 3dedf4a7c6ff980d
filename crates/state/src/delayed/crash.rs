//! When an instance of a function is lost.

use std::collections::HashSet;

use catena_packet::random::SplitMix64;

use crate::tx::Name;

/// How often an instance of a function is lost. Its objects are held elsewhere, and stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crashes {
    /// Never.
    #[default]
    Never,
    /// At each operation, once: of a packet or event of many operations, at each of the first 64, and at some.
    AtEach,
    /// At one operation in so many, by the seed.
    OneIn(u64),
}

/// What unwinds the stack of an instance that is lost: a panic's payload. Who runs the function catches it.
#[derive(Debug)]
pub struct Lost;

/// Of an event of so many operations an instance is lost at some only: each time it does all of them once more.
const FIRST: u32 = 64;

/// Most instances in a row that are lost before any of them has done something new.
const MOST_IN_A_ROW: u32 = 3;

/// Decides when.
pub(super) struct Crashing {
    pub(super) crashes: Crashes,
    chance: SplitMix64,
    /// Operations at which an instance was lost.
    lost_at: HashSet<Name>,
    in_a_row: u32,
    /// How many were lost.
    pub(super) count: u64,
}

impl Crashing {
    pub(super) fn new(seed: u64) -> Self {
        Crashing {
            crashes: Crashes::Never,
            chance: SplitMix64::new(seed ^ 0x6372_6173_6865_7321),
            lost_at: HashSet::new(),
            in_a_row: 0,
            count: 0,
        }
    }

    /// Return whether instances are lost at all.
    pub(super) fn may_be(&self) -> bool {
        self.crashes != Crashes::Never
    }

    /// Return whether the instance is lost just before this operation, which was done before if it `is_known`.
    pub(super) fn is_due(&mut self, name: Name, is_known: bool) -> bool {
        let is_due = match self.crashes {
            Crashes::Never => return false,
            Crashes::AtEach => {
                let is_chosen = name.index < FIRST || name.index.is_multiple_of(FIRST);
                is_chosen && !is_known && self.lost_at.insert(name)
            }
            Crashes::OneIn(many) => self.in_a_row < MOST_IN_A_ROW && self.chance.is_one_in(many),
        };
        if is_due {
            self.in_a_row += 1;
            self.count += 1;
        } else if !is_known {
            self.in_a_row = 0;
        }
        is_due
    }
}
