//! Arrival times that wrong records, clocks that are set and clocks that differ cannot spoil.
//!
//! Everything that expires goes by the times that a capture gives, so these are judged once, where they come in. The
//! times given follow one clock, the foremost: a record up to [`NEAR`] after or before it is taken as it is, and moves it.
//!
//! - A longer jump ahead is believed if the next record is not back before it, and is exact then, however long. The last
//!   record of all has no witness: it is believed if it jumps by a day at most. Where the next record has not come
//!   yet, the jump counts as [`AHEAD`] at most for now, and the next record decides.
//! - A record further behind is late: of a slower queue or another clock, or the foremost time was wrong. It gets the
//!   latest time given, until the records reach it. Only when they are more than [`LATE`] behind, and all have followed
//!   a clock there for [`PATIENCE`], has the clock been set back: time then goes on from where it was, and what follows
//!   that clock is moved along, until records jump to the old one.
//!
//! Times given never go back by more than [`NEAR`], and are never further ahead of the foremost clock than clocks
//! that were set back have gone on.

use catena_packet::pcap::Ahead;

/// The latest time that a record may carry (the year 2262), so that what functions add to it stays far
/// from the end of 64 bits.
pub(super) const LATEST_NS: u64 = i64::MAX as u64;

const SECOND: u64 = 1_000_000_000;
/// How far ahead of the clock or behind it a record may be without another's word, in ns: captures of several queues
/// are mixed up by less.
pub(super) const NEAR: u64 = SECOND;
/// How far ahead it may be where there is no other yet.
pub(super) const AHEAD: u64 = 60 * SECOND;
/// How far behind records may be that are still waited for: some minutes, as queues that are emptied in turns are.
const LATE: u64 = 600 * SECOND;
/// How long a clock must be followed by all records until it counts as set back.
const PATIENCE: u64 = 60 * SECOND;
/// How far ahead the last record may be.
const LAST_AHEAD: u64 = 24 * 3600 * SECOND;
/// Times that a capture may well say, from 1990 to 2100: they tell which of the first two records is wrong.
const LIKELY: std::ops::Range<u64> = 631_152_000 * SECOND..4_102_444_800 * SECOND;

/// The arrival times of one source's records.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The latest time given; 0: none yet.
    given: u64,
    /// The clock that is followed: its latest time, as records say it, and what is added to it.
    clock: u64,
    offset: u64,
    /// The latest time of any clock that was followed, as records say it.
    foremost: u64,
    /// A clock behind: the first and the latest time of the records that follow it.
    behind: Option<(u64, u64)>,
    /// A jump that the next record decides about.
    doubted: Option<u64>,
    /// Nothing is in doubt: the followed clock gives the time.
    is_steady: bool,
    /// Records whose time was not taken as it stands.
    pub(super) corrected: u64,
}

/// Return whether a record at `time` may go on from one at `before`.
fn goes_on(before: u64, time: u64) -> bool {
    (before.saturating_sub(NEAR)..=before.saturating_add(AHEAD)).contains(&time)
}

impl Arrivals {
    /// Return when a record arrived that says `time` (ns since 1970; 0: it does not say); `next` looks at the one
    /// after it, and is asked only about jumps.
    #[inline]
    pub(super) fn arrival(&mut self, time: u64, next: impl FnOnce() -> Ahead) -> u64 {
        let is_near = time > 0 && time <= LATEST_NS && time.abs_diff(self.clock) <= NEAR;
        if !is_near || !self.is_steady || self.offset > 0 {
            return self.judge(time, next);
        }
        self.clock = self.clock.max(time);
        self.foremost = self.clock;
        self.given = self.clock;
        time
    }

    #[cold]
    fn judge(&mut self, time: u64, next: impl FnOnce() -> Ahead) -> u64 {
        if time == 0 {
            return self.given;
        }
        let time = time.min(LATEST_NS);
        let doubted = self.doubted.take();
        if self.clock == 0 {
            self.follow(first(time, next), 0);
        } else if goes_on(self.clock, time) {
            let is_alone = |after| goes_on(self.clock, after) && after.saturating_add(NEAR) < time;
            if time <= self.clock + NEAR || !matches!(next(), Ahead::Time(after) if is_alone(after)) {
                self.follow(self.clock.max(time), self.offset);
            }
        } else if time + NEAR < self.foremost {
            self.late(time);
        } else if time <= self.given.saturating_add(AHEAD) || self.is_believed(time, doubted, next) {
            self.follow(time, 0);
        }
        self.is_steady = self.behind.is_none() && self.doubted.is_none() && self.given == self.clock;
        // What lies within the tolerance keeps its time; else it arrives now.
        let moved = time.saturating_add(self.offset);
        let arrival = if (self.given.saturating_sub(NEAR)..=self.given).contains(&moved) { moved } else { self.given };
        if arrival != time {
            self.corrected += 1;
        }
        arrival
    }

    /// Go on from `time` of a clock to which `offset` is added.
    fn follow(&mut self, time: u64, offset: u64) {
        (self.clock, self.offset, self.behind) = (time, offset, None);
        self.foremost = self.foremost.max(time);
        self.given = self.given.max(time.saturating_add(offset).min(LATEST_NS));
    }

    /// A record behind the foremost clock, and not of the one that is followed.
    fn late(&mut self, time: u64) {
        if time.saturating_add(LATE) >= self.foremost {
            self.behind = None;
            return;
        }
        let (first, latest) = self.behind.filter(|(_, latest)| goes_on(*latest, time)).unwrap_or((time, time));
        let latest = latest.max(time);
        if latest - first < PATIENCE {
            self.behind = Some((first, latest));
        } else {
            self.follow(latest, self.given - latest);
        }
    }

    /// Return whether a jump ahead is believed.
    fn is_believed(&mut self, time: u64, doubted: Option<u64>, next: impl FnOnce() -> Ahead) -> bool {
        if let Some(before) = doubted.filter(|before| *before <= time.saturating_add(NEAR)) {
            // This record is the witness of the one before.
            self.follow(before, 0);
            if time <= before.saturating_add(AHEAD) {
                return true;
            }
        }
        match next() {
            Ahead::Time(after) if after > 0 => after.min(LATEST_NS) + NEAR >= time,
            Ahead::Time(_) | Ahead::End => time - self.given.min(time) <= LAST_AHEAD,
            Ahead::NotYet => {
                self.doubted = Some(time);
                let now = self.clock.saturating_add(self.offset);
                self.given = self.given.max(now.saturating_add(AHEAD).min(LATEST_NS));
                false
            }
        }
    }
}

/// Return when the first record of all arrived: only a second one that lies before it can tell that it is wrong.
fn first(time: u64, next: impl FnOnce() -> Ahead) -> u64 {
    match next() {
        Ahead::Time(after) if after > 0 && after.saturating_add(NEAR) < time => {
            if LIKELY.contains(&time) && !LIKELY.contains(&after) { time } else { after }
        }
        _ => time,
    }
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
