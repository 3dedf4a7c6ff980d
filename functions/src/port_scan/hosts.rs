//! How likely each source is a scanner: shared entries, as any packet of a source may tell of it, and each new connection asks.

use catena_state::{Entry, EntryOp, Place, Plain, entry_operations};

/// A source's address, IPv4 as IPv6 maps it.
pub type Source = [u64; 2];

/// Likelihoods are logarithms, in this part of one: sums of whole numbers are the same everywhere.
const UNIT: f64 = 65536.0;

/// What an outcome says, and when enough has been said.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Rules {
    /// What a failure adds.
    failure: i32,
    /// What a success adds: less than 0.
    success: i32,
    /// From here on a source is a scanner.
    scanner: i32,
    /// From here on down it is benign.
    benign: i32,
    /// How long a source is known after its last outcome, in ns.
    memory: u64,
}

impl Rules {
    /// Make the test that finds so many scanners with so many false alarms, where so many first connections of benign
    /// sources and of scanners succeed: θ0, θ1, β and α of the paper (§4, equations 4 to 6), each between 0 and 1. A source is known
    /// for `memory` ns after its last outcome.
    pub fn new([benign, scanner]: [f64; 2], [detection, false_alarms]: [f64; 2], memory: u64) -> Rules {
        let logarithm = |ratio: f64| (ratio.ln() * UNIT).round() as i32;
        Rules {
            failure: logarithm((1.0 - scanner) / (1.0 - benign)).max(1),
            success: logarithm(scanner / benign).min(-1),
            scanner: logarithm(detection / false_alarms),
            benign: logarithm((1.0 - detection) / (1.0 - false_alarms)),
            memory,
        }
    }
}

/// What is known of a source.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Walk {
    /// The logarithm of its likelihood ratio.
    at: i32,
    /// When its last outcome was told, in ns since 1970.
    last: u64,
}

entry_operations!("walk": Walk { 0 => Ask, 1 => Tell });

impl Entry for Walk {
    type Rules = Rules;

    fn end(&self, rules: &Rules) -> u64 {
        self.last.saturating_add(rules.memory)
    }
}

/// Events: a scanner was found; an outcome was told of a source that found no place.
pub const FOUND: usize = 0;
pub const UNWATCHED: usize = 1;

/// Ask whether a source is a scanner, at a time in ns since 1970.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Ask(pub u64);

impl EntryOp<Walk> for Ask {
    type Reply = bool;

    #[inline]
    fn apply(self, slot: &mut impl Place<Walk>) -> bool {
        let rules = *slot.rules();
        slot.get().is_some_and(|walk| walk.at >= rules.scanner && !walk.is_over(&rules, self.0))
    }
}

/// Tell the outcome of a source's first connection to a destination.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Tell {
    /// Whether it has succeeded.
    pub success: bool,
    /// The time, in ns since 1970.
    pub now: u64,
}

impl EntryOp<Walk> for Tell {
    type Reply = ();

    fn apply(self, slot: &mut impl Place<Walk>) {
        let Tell { success, now } = self;
        let rules = *slot.rules();
        let mut walk = match slot.get() {
            Some(walk) if !walk.is_over(&rules, now) => *walk,
            _ => Walk { at: 0, last: now },
        };
        walk.last = walk.last.max(now);
        // The test is over for a scanner; a benign source begins another.
        let is_known = walk.at >= rules.scanner;
        if !is_known {
            walk.at += if success { rules.success } else { rules.failure };
        }
        if walk.at <= rules.benign {
            walk.at = 0;
        }
        let is_noted = match slot.get() {
            Some(known) => {
                *known = walk;
                true
            }
            None => slot.insert(now, walk).is_ok(),
        };
        if !is_noted {
            slot.tally(UNWATCHED);
        } else if !is_known && walk.at >= rules.scanner {
            slot.tally(FOUND);
        }
    }
}
