//! The operation on a bucket: what a packet costs is taken, if it is there.

use catena_state::{Entry, EntryOp, Place, Plain, entry_operations};

use super::{Bucket, Rate};

/// Take the cost of a packet.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Take {
    /// The packet's time, in ns since 1970.
    pub now: u64,
    /// Bytes or packets, as the rate counts.
    pub cost: u32,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub enum Taken {
    /// It was there.
    Passes,
    /// It was not.
    Over,
    /// There are as many buckets as there may be.
    NoRoom,
}

entry_operations!("bucket": Bucket { 0 => Take });

impl Entry for Bucket {
    type Rules = Rate;

    fn end(&self, rate: &Rate) -> u64 {
        self.as_new_from(rate)
    }
}

impl EntryOp<Bucket> for Take {
    type Reply = Taken;

    #[inline(always)]
    fn apply(self, slot: &mut impl Place<Bucket>) -> Taken {
        let rate = *slot.rules();
        match slot.get() {
            Some(bucket) => {
                if bucket.take(&rate, self.now, self.cost) {
                    Taken::Passes
                } else {
                    Taken::Over
                }
            }
            None => self.first(slot, &rate),
        }
    }
}

impl Take {
    /// Take from a full bucket, as there was none yet.
    #[inline(never)]
    fn first(self, slot: &mut impl Place<Bucket>, rate: &Rate) -> Taken {
        let mut bucket = Bucket::default();
        // What passes nothing leaves nothing behind.
        if !bucket.take(rate, self.now, self.cost) {
            return Taken::Over;
        }
        if slot.insert(self.now, bucket).is_ok() { Taken::Passes } else { Taken::NoRoom }
    }
}
