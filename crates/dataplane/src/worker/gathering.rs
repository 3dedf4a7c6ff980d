//! Workers that end together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{SPIN, rest};

/// Where workers come together that answer each other: none ends while another may still ask.
#[derive(Debug)]
pub struct Gathering {
    workers: usize,
    /// How many have come to each end: that of their packets, and that of their modules.
    come: [AtomicUsize; 2],
    /// A worker has ended by a panic: who asks it something waits for ever.
    is_broken: AtomicBool,
    /// How often each worker that has begun found nothing to do, and had nothing in hand.
    rests: Box<[AtomicUsize]>,
    begun: AtomicUsize,
}

/// Says so, where its worker ends by a panic.
pub(super) struct Member<'a>(pub(super) &'a Gathering);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::Release);
        }
    }
}

impl Gathering {
    /// Make one for so many workers.
    pub fn new(workers: usize) -> Arc<Gathering> {
        let rests = (0..workers).map(|_| AtomicUsize::new(0)).collect();
        let (is_broken, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
        Arc::new(Gathering { workers, come: Default::default(), is_broken, rests, begun })
    }

    /// Note that a worker has begun; returns its place.
    pub(super) fn begin(&self) -> usize {
        self.begun.fetch_add(1, Ordering::Relaxed) % self.workers
    }

    /// Note that a worker found nothing to do.
    pub(super) fn rest(&self, place: usize) {
        self.rests[place].fetch_add(1, Ordering::Release);
    }

    /// Do something again and again until all but one have found nothing to do, twice: whatever they had in hand has gone on.
    pub(super) fn wait_for_others(&self, place: usize, mut meanwhile: impl FnMut()) {
        let before: Vec<usize> = self.rests.iter().map(|rests| rests.load(Ordering::Acquire)).collect();
        let others = (0..self.workers).filter(|other| *other != place);
        let has_rested = |other: usize| self.rests[other].load(Ordering::Acquire) >= before[other] + 2;
        let mut fruitless = 0;
        for other in others {
            while !has_rested(other) && !self.is_broken() {
                meanwhile();
                fruitless += 1;
                rest(fruitless, SPIN);
            }
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// Come to an end, and do something again and again until all have.
    pub(super) fn wait(&self, end: usize, mut meanwhile: impl FnMut()) {
        self.come[end].fetch_add(1, Ordering::AcqRel);
        let mut fruitless = 0;
        while self.come[end].load(Ordering::Acquire) < self.workers && !self.is_broken() {
            meanwhile();
            fruitless += 1;
            rest(fruitless, SPIN);
        }
    }
}
