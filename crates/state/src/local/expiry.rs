//! Entries whose end may have come, and what becomes of them.

use super::calendar::Date;
use super::map::LocalMap;
use crate::engine::Fate;
use crate::key::Key;
use crate::looks::let_look;

/// An entry is asked for when it is so many behind the one that is looked at.
const AHEAD: usize = 24;

impl<K: Key, V> LocalMap<K, V> {
    /// Look at up to `most` entries whose end has come; returns how many there were. `look` hears
    /// the number of each, too.
    #[inline(always)]
    pub(crate) fn expire_by(&mut self, now: u64, most: usize, look: impl FnMut(u32, &K, &V) -> Fate<V>) -> usize {
        if self.calendar.may_be_over(now) { self.expire_some(now, most, look) } else { 0 }
    }

    /// Return the entry that [`Self::expire_by`] would look at now.
    pub(crate) fn first_over(&mut self, now: u64) -> Option<(K, V)>
    where
        V: Copy,
    {
        if !self.calendar.may_be_over(now) {
            return None;
        }
        let first = self.calendar.over(now)?;
        self.entries[first as usize].pair().copied()
    }

    /// Return the entry that is looked at first, whenever its end comes.
    pub(crate) fn first_to_end(&mut self) -> Option<(K, V)>
    where
        V: Copy,
    {
        let first = self.calendar.first()?;
        self.entries[first as usize].pair().copied()
    }

    #[inline(never)]
    fn expire_some(&mut self, now: u64, most: usize, mut look: impl FnMut(u32, &K, &V) -> Fate<V>) -> usize {
        let mut looked = 0;
        while looked < most {
            let Some(first) = self.calendar.over(now) else { break };
            // Who is asked for stands some places behind who is looked at.
            let mut asked = Some(first);
            for _ in 0..AHEAD {
                asked = asked.and_then(|asked| self.bring_next(asked));
            }
            let (mut next, before) = (Some(first), looked);
            while let Some(entry) = next
                && looked < most
            {
                asked = asked.and_then(|asked| self.bring_next(asked));
                next = self.calendar.after(entry);
                // All days that it may be put on now come after this one.
                self.entries[entry as usize].date = Date::default();
                self.judge(entry, now, &mut look);
                looked += 1;
            }
            self.calendar.cut(looked - before, next);
        }
        if looked > 0 {
            let_look(looked as u64);
        }
        looked
    }

    /// Ask for the entry that stands behind one on its day.
    #[inline(always)]
    fn bring_next(&self, entry: u32) -> Option<u32> {
        let next = self.calendar.after(entry)?;
        self.entries[next as usize].prefetch();
        Some(next)
    }

    /// Look at up to `most` entries, those that end first at first, until one is over; returns whether one was.
    pub(super) fn expire_one_by(
        &mut self,
        now: u64,
        most: usize,
        mut look: impl FnMut(u32, &K, &V) -> Fate<V>,
    ) -> bool {
        (0..most).any(|_| match self.calendar.first() {
            Some(entry) => self.look_at(entry, now, &mut look),
            None => false,
        })
    }

    /// Let an entry be looked at; returns whether it is over.
    fn look_at(&mut self, entry: u32, now: u64, look: &mut impl FnMut(u32, &K, &V) -> Fate<V>) -> bool {
        let date = std::mem::take(&mut self.entries[entry as usize].date);
        self.calendar.leave(entry, date);
        self.judge(entry, now, look)
    }

    /// Do with an entry, which stands on no day, what becomes of it; returns whether it is over.
    #[inline(always)]
    fn judge(&mut self, entry: u32, now: u64, look: &mut impl FnMut(u32, &K, &V) -> Fate<V>) -> bool {
        let Some((key, value)) = self.entries[entry as usize].pair_mut() else { return false };
        let until = match look(entry, key, value) {
            Fate::Over => {
                let hash = key.hash(&self.seed);
                self.let_go(hash, entry);
                return true;
            }
            Fate::Until(until) => until,
            Fate::Becomes(other, until) => {
                *value = other;
                until
            }
        };
        // Not once more in this round.
        self.lasts(entry, now, until.max(now));
        false
    }

    /// End an entry, and unlink it some entries later, when its bucket has come.
    #[inline(always)]
    pub(super) fn let_go(&mut self, hash: u64, entry: u32) {
        self.buckets.bring(hash);
        if self.leaving.is_full() {
            self.unlink_one();
        }
        self.end_entry(entry);
        self.leaving.add(hash, entry);
    }
}

#[cfg(test)]
#[path = "expiry_tests.rs"]
mod tests;
