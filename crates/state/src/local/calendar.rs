//! When entries are to be looked at: a wheel of days, each with those that end on it (Varghese and Lauck, "Hashed and Hierarchical
//! Timing Wheels", scheme 4: one wheel, its days wide enough for most ends).
//!
//! On a day they stand in the order in which they were told of, which depends on nothing but the packets: not on where entries
//! lie, nor on how they are hashed.

use std::io;

use catena_packet::buffer::prefetch;

use crate::memory::{Reserved, Zeroed};

/// Nanoseconds of a day, as a power of two: 2.1 ms. An entry goes two days after its end at most, where there is time to look.
pub(super) const DAY: u32 = 21;
/// Days of the wheel: 137 s. What ends later is looked at on the last day, and told of anew.
const DAYS: u64 = 1 << 16;

/// Who stands before and after, plus one; 0 for nobody.
#[derive(Clone, Copy, Default)]
struct Link {
    before: u32,
    after: u32,
}

// SAFETY: zero is a link to nobody.
unsafe impl Zeroed for Link {}

/// A day of the wheel, plus one; 0 where an entry stands on none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Date(u32);

impl Date {
    fn of(day: u64) -> Date {
        Date((day % DAYS) as u32 + 1)
    }

    fn place(self) -> Option<usize> {
        self.0.checked_sub(1).map(|place| place as usize)
    }
}

/// The wheel. Entries are known by numbers below a bound.
pub(super) struct Calendar {
    links: Reserved<Link>,
    /// By day: who stands first and last, plus one.
    days: Reserved<Link>,
    /// A bit for each day that somebody stands on.
    taken: Box<[u64; DAYS as usize / 64]>,
    /// The first day that somebody may be put on, counted since 1970.
    today: u64,
    /// Nobody stands on a day before this one.
    soonest: u64,
    len: usize,
}

/// Return the day that a time in ns since 1970 is on.
fn day(time: u64) -> u64 {
    time >> DAY
}

impl Calendar {
    /// Make an empty wheel for numbers below `bound`, which is less than 2^32.
    ///
    /// # Errors
    /// The system's, when it has not the address space.
    pub(super) fn new(bound: usize) -> io::Result<Self> {
        let (links, days) = (Reserved::new(bound)?, Reserved::new(DAYS as usize)?);
        Ok(Calendar { links, days, taken: Box::new([0; DAYS as usize / 64]), today: 0, soonest: 0, len: 0 })
    }

    /// Put an entry, which stands on no day, on that of its end, told of at `now`; returns the date.
    #[inline(always)]
    pub(super) fn join(&mut self, number: u32, now: u64, end: u64) -> Date {
        if self.len == 0 {
            // What has ended when it comes is put on a day that is over.
            (self.today, self.soonest) = (day(now).saturating_sub(1), u64::MAX);
        }
        let on = day(end).clamp(self.today, self.today + (DAYS - 1));
        self.soonest = self.soonest.min(on);
        let place = (on % DAYS) as usize;
        let last = std::mem::replace(&mut self.days[place].after, number + 1);
        self.links[number as usize] = Link { before: last, after: 0 };
        match last.checked_sub(1) {
            Some(last) => self.links[last as usize].after = number + 1,
            None => {
                self.days[place].before = number + 1;
                self.taken[place / 64] |= 1 << (place % 64);
            }
        }
        self.len += 1;
        Date::of(on)
    }

    /// Take an entry off its day, if it stands on one.
    #[inline(always)]
    pub(super) fn leave(&mut self, number: u32, date: Date) {
        let Some(place) = date.place() else { return };
        let Link { before, after } = self.links[number as usize];
        match before.checked_sub(1) {
            Some(before) => self.links[before as usize].after = after,
            None => self.days[place].before = after,
        }
        match after.checked_sub(1) {
            Some(after) => self.links[after as usize].before = before,
            None => self.days[place].after = before,
        }
        if before | after == 0 {
            self.taken[place / 64] &= !(1 << (place % 64));
        }
        self.len -= 1;
    }

    /// Return whether somebody may stand on a day that is over.
    #[inline(always)]
    pub(super) fn may_be_over(&self, now: u64) -> bool {
        self.len > 0 && day(now) > self.soonest
    }

    /// Return who stands first on the first of all days that are over at `now`, and let those days go by that nobody stands on.
    #[inline(always)]
    pub(super) fn over(&mut self, now: u64) -> Option<u32> {
        if !self.may_be_over(now) {
            return None;
        }
        let (day_found, first) = self.first_from(self.today)?;
        self.soonest = day_found;
        // Here too: the time of a capture may step back.
        self.today = self.today.max(day_found.min(day(now) - 1));
        (day_found < day(now)).then_some(first)
    }

    /// Take the first `count` entries off the first day; `next` stands behind them.
    #[inline(always)]
    pub(super) fn cut(&mut self, count: usize, next: Option<u32>) {
        let place = (self.today % DAYS) as usize;
        self.len -= count;
        match next {
            Some(next) => {
                self.days[place].before = next + 1;
                self.links[next as usize].before = 0;
            }
            None => {
                self.days[place] = Link::default();
                self.taken[place / 64] &= !(1 << (place % 64));
            }
        }
    }

    /// Return who is to be looked at first, whenever that is.
    pub(super) fn first(&self) -> Option<u32> {
        self.first_from(self.today).map(|found| found.1)
    }

    /// Bring near what is written when an entry is put on a day.
    #[inline(always)]
    pub(super) fn bring(&self, number: u32) {
        prefetch(&raw const self.links[number as usize]);
    }

    /// Return who stands behind a number on its day.
    #[inline(always)]
    pub(super) fn after(&self, number: u32) -> Option<u32> {
        self.links[number as usize].after.checked_sub(1)
    }

    /// Return whether an end that is told of now comes before the day on which an entry stands.
    #[inline(always)]
    pub(super) fn is_sooner(&self, end: u64, date: Date) -> bool {
        date.place().is_none_or(|place| day(end) < self.today + self.days_to(place))
    }

    /// Return when the day of a date begins, in ns since 1970; `None` where it is none.
    pub(super) fn time(&self, date: Date) -> Option<u64> {
        date.place().map(|place| (self.today + self.days_to(place)) << DAY)
    }

    /// Return the first day that somebody may stand on, counted since 1970; 0 while nobody does.
    pub(super) fn first_day(&self) -> u64 {
        if self.len > 0 { self.today } else { 0 }
    }

    /// Return all who stand on a day, the first one first.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let (mut all, mut from) = (Vec::with_capacity(self.len), self.today);
        while all.len() < self.len
            && let Some((day, first)) = self.first_from(from)
        {
            let mut next = Some(first);
            while let Some(number) = next {
                all.push(number);
                next = self.after(number);
            }
            from = day + 1;
        }
        all
    }

    #[inline(always)]
    fn days_to(&self, place: usize) -> u64 {
        (place as u64).wrapping_sub(self.today) % DAYS
    }

    /// Return the first day from this one on that somebody stands on, and who stands there first.
    #[inline(always)]
    fn first_from(&self, from: u64) -> Option<(u64, u32)> {
        let start = (from % DAYS) as usize;
        let words = self.taken.len();
        // The first word once more at the end: its days before `start` are the last ones.
        for i in 0..=words {
            let at = (start / 64 + i) % words;
            let from_start = u64::MAX << (start % 64);
            let bits = match i {
                0 => self.taken[at] & from_start,
                _ if i == words => self.taken[at] & !from_start,
                _ => self.taken[at],
            };
            if bits != 0 {
                let place = at * 64 + bits.trailing_zeros() as usize;
                let day = from + (place as u64).wrapping_sub(from) % DAYS;
                return Some((day, self.days[place].before - 1));
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
