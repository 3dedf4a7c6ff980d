//! Arrival times that one wrong record cannot spoil.
//!
//! Everything that expires goes by the times that a capture gives, so these are judged once, where they come in.
//! A time up to [`AHEAD`] after the running time, or up to [`BEHIND`] before it, is taken as it is. A longer jump
//! needs the next record's word:
//!
//! - A jump ahead is believed if the next record is not back before it, and is exact then, however long. The last
//!   record of all has no witness: it is believed if it jumps by a day at most. Where the next record has not come
//!   yet, the jump counts as [`AHEAD`] for now, and the next record decides.
//! - A jump back is believed if the next record goes on from there: the clock was set back, or the time before was
//!   the wrong one. Time then goes on from where it was, and all that follows is moved along. Otherwise the record
//!   takes the running time.
//!
//! Times given never go back by more than [`BEHIND`].

use catena_packet::pcap::Ahead;

/// The latest time that a record may carry (the year 2262), so that what functions add to it stays far
/// from the end of 64 bits.
pub(super) const LATEST_NS: u64 = i64::MAX as u64;

const SECOND: u64 = 1_000_000_000;
/// How far ahead of the running time a record may be without another's word, in ns.
pub(super) const AHEAD: u64 = 60 * SECOND;
/// How far behind the running time a record may be: captures of several queues are mixed up by less.
pub(super) const BEHIND: u64 = SECOND;
/// How far ahead the last record may be.
const LAST_AHEAD: u64 = 24 * 3600 * SECOND;

/// The arrival times of one source's records.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The latest time believed, and the latest given; 0: none yet.
    believed: u64,
    given: u64,
    /// What is added to the records' times since the clock was set back.
    offset: u64,
    /// A jump that the next record decides about, without `offset`.
    doubted: Option<u64>,
    /// Records whose time was not taken as it stands.
    pub(super) corrected: u64,
}

impl Arrivals {
    /// Return when a record arrived that says `time` (ns since 1970; 0: it does not say); `next` looks at the one
    /// after it, and is asked only about jumps.
    #[inline]
    pub(super) fn arrival(&mut self, time: u64, next: impl FnOnce() -> Ahead) -> u64 {
        let moved = time.saturating_add(self.offset).min(LATEST_NS);
        let near = self.believed.saturating_sub(BEHIND)..=self.believed + AHEAD;
        if near.contains(&moved) && self.believed > 0 && time > 0 && self.given == self.believed {
            self.doubted = None;
            self.believed = self.believed.max(moved);
            self.given = self.believed;
            if self.offset > 0 {
                self.corrected += 1;
            }
            return moved;
        }
        self.judge(time, next)
    }

    #[cold]
    fn judge(&mut self, time: u64, next: impl FnOnce() -> Ahead) -> u64 {
        if time == 0 {
            return self.given;
        }
        let time = time.min(LATEST_NS);
        let moved = time.saturating_add(self.offset).min(LATEST_NS);
        let doubted = self.doubted.take();
        if self.believed == 0 {
            // The first record of all: only a second one that lies before it can tell that it is wrong.
            self.believed = match next() {
                Ahead::Time(after) if after > 0 && after.min(LATEST_NS) + BEHIND < time => after,
                _ => time,
            };
        } else if moved > self.believed + AHEAD {
            self.jump_ahead(time, moved, doubted, next);
        } else if moved + BEHIND < self.believed {
            self.jump_back(time, doubted, next);
        } else {
            self.believed = self.believed.max(moved);
        }
        self.given = self.given.max(self.believed);
        // What lies within the tolerance keeps its time; else it arrives now.
        let moved = time.saturating_add(self.offset).min(LATEST_NS);
        let arrival =
            if (self.given.saturating_sub(BEHIND)..=self.given).contains(&moved) { moved } else { self.given };
        if arrival != time {
            self.corrected += 1;
        }
        arrival
    }

    fn jump_ahead(&mut self, time: u64, moved: u64, doubted: Option<u64>, next: impl FnOnce() -> Ahead) {
        if let Some(before) = doubted.filter(|before| *before <= time.saturating_add(BEHIND)) {
            // This record is the witness of the one before.
            self.believe(before);
            if time <= before.saturating_add(AHEAD) {
                return self.believe(time);
            }
        }
        let believed = match next() {
            Ahead::Time(after) if after > 0 => after.min(LATEST_NS) + BEHIND >= time,
            Ahead::Time(_) | Ahead::End => moved.saturating_sub(self.believed) <= LAST_AHEAD,
            Ahead::NotYet => {
                self.doubted = Some(time);
                self.given = self.given.max((self.believed + AHEAD).min(LATEST_NS));
                false
            }
        };
        if believed {
            self.believe(time);
        }
    }

    /// Go on from `time`.
    fn believe(&mut self, time: u64) {
        // A clock that was set back may have been put right again.
        if time >= self.believed {
            self.offset = 0;
        }
        self.believed = self.believed.max(time.saturating_add(self.offset).min(LATEST_NS));
    }

    fn jump_back(&mut self, time: u64, doubted: Option<u64>, next: impl FnOnce() -> Ahead) {
        let goes_on = |from: u64, to: u64| to + BEHIND >= from;
        let is_back = |time: u64| time.saturating_add(self.offset).min(LATEST_NS) + BEHIND < self.believed;
        let set_back = match doubted.filter(|before| is_back(*before)) {
            Some(before) if goes_on(before, time) => true,
            _ => match next() {
                Ahead::Time(after) => {
                    let after = after.min(LATEST_NS);
                    after > 0 && is_back(after) && goes_on(time, after)
                }
                Ahead::End => false,
                Ahead::NotYet => {
                    self.doubted = Some(time);
                    false
                }
            },
        };
        if set_back {
            self.offset = self.given.max(self.believed) - time;
            self.believed = self.given.max(self.believed);
        }
    }
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
