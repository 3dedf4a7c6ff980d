//! Which worker has which slot. One thread changes that, others read it.
//!
//! A slot that is about to change hands is nobody's for a moment: its packets wait where they are spread, so that none meets a
//! worker before what earlier ones have left there ([`Steer`](crate::steer::Steer)).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

use catena_packet::{SLOTS, Slot, SlotSet};

/// Nobody's.
const HELD: u16 = u16::MAX;

/// The table.
#[derive(Debug)]
pub struct Slots {
    workers: u16,
    of: Box<[AtomicU16]>,
    epoch: AtomicU64,
    are_held: AtomicBool,
}

impl Slots {
    /// Share all slots out evenly among so many workers, in epoch 0: each gets a run of neighbours.
    pub fn even(workers: u16) -> Arc<Slots> {
        let workers = workers.clamp(1, HELD);
        Slots::given(workers, |slot| (usize::from(slot) * usize::from(workers) / SLOTS) as u16)
    }

    /// Share all slots out among so many workers, in epoch 0, as `worker` says of each slot's number.
    pub fn given(workers: u16, worker: impl Fn(u16) -> u16) -> Arc<Slots> {
        let workers = workers.clamp(1, HELD);
        let of = (0..SLOTS as u16).map(|slot| AtomicU16::new(worker(slot).min(workers - 1))).collect();
        Arc::new(Slots { workers, of, epoch: AtomicU64::new(0), are_held: AtomicBool::new(false) })
    }

    /// Return how many workers there are.
    pub fn workers(&self) -> u16 {
        self.workers
    }

    /// Return who has a slot; `None` while it is held.
    #[inline(always)]
    pub fn worker(&self, slot: Slot) -> Option<u16> {
        let worker = self.of[usize::from(slot.number()) % SLOTS].load(Ordering::Relaxed);
        (worker != HELD).then_some(worker)
    }

    /// Return the slots that a worker has.
    pub fn of(&self, worker: u16) -> SlotSet {
        let all = (0..SLOTS as u16).filter_map(Slot::numbered);
        all.filter(|slot| self.worker(*slot) == Some(worker)).collect()
    }

    /// Return how often slots have changed hands.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Let nobody have these slots for a moment. For who spreads packets.
    pub fn hold(&self, slots: &SlotSet) {
        self.are_held.store(true, Ordering::Release);
        self.set(slots, HELD);
    }

    /// Return whether some are held.
    pub fn are_held(&self) -> bool {
        self.are_held.load(Ordering::Acquire)
    }

    /// Give held slots back to who had them.
    pub fn give_back(&self, slots: &SlotSet, worker: u16) {
        self.set(slots, worker.min(self.workers - 1));
        self.are_held.store(false, Ordering::Release);
    }

    /// Give slots to a worker, which has all now that belongs to them: a new epoch begins.
    pub fn give(&self, slots: &SlotSet, worker: u16) {
        self.give_back(slots, worker);
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn set(&self, slots: &SlotSet, worker: u16) {
        slots.iter().for_each(|slot| self.of[usize::from(slot.number())].store(worker, Ordering::Relaxed));
    }
}

/// How many packets came of each slot: only who spreads them counts.
#[derive(Debug)]
pub struct Loads(Box<[AtomicU64]>);

impl Loads {
    /// Count from 0.
    pub fn new() -> Arc<Loads> {
        Arc::new(Loads((0..SLOTS).map(|_| AtomicU64::new(0)).collect()))
    }

    #[inline(always)]
    pub(crate) fn add(&self, slot: Slot) {
        let count = &self.0[usize::from(slot.number()) % SLOTS];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Return how many packets came of each slot since the start, by its number.
    pub fn packets(&self) -> Vec<u64> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_one_worker_and_all_have_as_many() {
        for workers in [1, 2, 3, 5, 64] {
            let slots = Slots::even(workers);
            let counts: Vec<usize> = (0..workers).map(|worker| slots.of(worker).len()).collect();
            assert_eq!(counts.iter().sum::<usize>(), SLOTS);
            assert!(counts.iter().all(|count| count.abs_diff(SLOTS / usize::from(workers)) <= 1), "{counts:?}");
        }
    }

    #[test]
    fn slots_lie_where_they_are_given() {
        let slots = Slots::given(3, |slot| slot % 4);
        let has = |worker| slots.of(worker).iter().map(Slot::number).take(3).collect::<Vec<_>>();
        // There is no fourth worker: the last one has its slots.
        assert_eq!([has(0), has(1), has(2)], [[0, 4, 8], [1, 5, 9], [2, 3, 6]]);
    }

    #[test]
    fn slots_change_hands_in_epochs() {
        let slots = Slots::even(2);
        let some: SlotSet = [3, 5].into_iter().filter_map(Slot::numbered).collect();
        slots.hold(&some);
        assert!(some.iter().all(|slot| slots.worker(slot).is_none()));
        assert_eq!((slots.of(0).len(), slots.epoch()), (SLOTS / 2 - 2, 0));
        slots.give_back(&some, 0);
        assert_eq!((slots.of(0).len(), slots.epoch()), (SLOTS / 2, 0));
        slots.hold(&some);
        slots.give(&some, 1);
        assert_eq!((slots.of(1).len(), slots.epoch()), (SLOTS / 2 + 2, 1));
    }
}
