//! Which slot a thing is for that has a number, such as a block of ports: packets that come back to it are of that slot.
//!
//! The instance that lends such a thing says so; who spreads packets asks. Nobody waits for anybody: a packet that comes back
//! answers one that has left, and that one left after its claim.

use std::sync::atomic::{AtomicU16, Ordering};

use catena_packet::Slot;

use crate::engine::NoMemory;
use crate::memory::{Reserved, Zeroed};

/// A slot's number plus one; 0 of what was never claimed.
#[repr(transparent)]
struct Claim(AtomicU16);

// SAFETY: zero is no claim.
unsafe impl Zeroed for Claim {}

/// The slots of numbered things.
pub struct Claims(Reserved<Claim>);

impl Claims {
    /// Make room for things with numbers below `count`; what is never claimed takes no memory.
    ///
    /// # Errors
    /// [`NoMemory`] for so many.
    pub fn new(count: usize) -> Result<Claims, NoMemory> {
        Reserved::new(count).map(Claims).map_err(|_| NoMemory { object: "claims", entries: count })
    }

    /// Say which slot a thing is for from now on.
    #[inline]
    pub fn claim(&self, number: usize, slot: Slot) {
        if let Some(claim) = self.0.get(number) {
            claim.0.store(slot.number() + 1, Ordering::Relaxed);
        }
    }

    /// Return which slot a thing is for, or was last.
    #[inline]
    pub fn slot(&self, number: usize) -> Option<Slot> {
        Slot::numbered(self.0.get(number)?.0.load(Ordering::Relaxed).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_claim_holds() {
        let claims = Claims::new(10).unwrap();
        let [first, last] = [0, 4095].map(|number| Slot::numbered(number).unwrap());
        claims.claim(9, last);
        claims.claim(0, last);
        claims.claim(0, first);
        claims.claim(10, first);
        assert_eq!([0, 1, 9, 10].map(|number| claims.slot(number)), [Some(first), None, Some(last), None]);
    }
}
