//! Logical clocks: one for every packet that comes in, from the source that it comes in by.
//!
//! "The root attaches with every input packet a unique logical clock that is incremented per packet. [With several]
//! we encode the identifier of the root instance into the higher order bits" (CHC, §3.4). Here each source of a run
//! is a root, and all of them count together, so the count is in the higher order bits and clocks are in the order in
//! which packets came, whatever source gave them: it is the order of what a run writes. Together with an object and an
//! index a clock names a state operation, in every engine.
//!
//! Which packet has which clock:
//!
//! - A packet gets its clock once, when its source has given it, before any module sees it. It keeps the clock until it
//!   ends: through queues, while it is parked, when its bytes change, and when they move to a larger buffer.
//! - Segments that a source cuts out of one frame (GSO) are packets of their own, with a clock each, in their order. So
//!   are the fragments of a datagram. Of several readers of one interface, each is a source.
//! - What a function does without a packet, such as forgetting what is over, is an event. It has a clock too, from a root of the
//!   worker that it happens on.
//! - A copy of a packet keeps root and count and gets the next copy number. A packet that a function makes belongs to
//!   the one that it was made for, and is numbered as its copy. No function copies or makes packets yet: the bits are
//!   reserved, and all clocks have copy number 0.

use std::error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits of the parts, from the lowest. 2⁴⁸ packets are 217 days at 15 million a second. 8 bits of roots and of copies
/// are more sources and more packets from one than any run has, and whole bytes are easy to read in a dump.
const COPY_BITS: u32 = 8;
const ROOT_BITS: u32 = 8;
const COUNT_BITS: u32 = 48;
const MOST_COUNT: u64 = (1 << COUNT_BITS) - 1;
/// Roots from here on are those of workers' events.
const EVENTS: u8 = 128;

/// A packet's logical clock. A packet that is stamped later has a greater one, until the count begins again: of one root,
/// and of all that count together ([`Roots`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Clock(u64);

impl Clock {
    /// That of a packet which no root has stamped.
    pub const NONE: Clock = Clock(0);

    /// Return the clock that [`Self::bits`] gave.
    pub fn from_bits(bits: u64) -> Clock {
        Clock(bits)
    }

    /// Return the greatest clock of this count, whichever root and copy.
    pub fn last_of(count: u64) -> Clock {
        Clock((count.min(MOST_COUNT) << (ROOT_BITS + COPY_BITS)) | (Root::ONE - 1))
    }

    /// Return the number of the root that gave it, from 1 on.
    pub fn root(self) -> u8 {
        (self.0 >> COPY_BITS) as u8
    }

    /// Return which packet this is, from 1 on, of those whose roots count together.
    pub fn count(self) -> u64 {
        self.0 >> (ROOT_BITS + COPY_BITS)
    }

    /// Return which copy of the packet this is; 0 is the packet itself.
    pub fn copy(self) -> u8 {
        self.0 as u8
    }

    /// Return whether it is an event's, and no packet's.
    pub fn is_event(self) -> bool {
        self.root() >= EVENTS
    }

    /// Return it as a number, for keys: count, root and copy from the highest bit down. 0 is [`Self::NONE`] alone.
    pub fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Clock {
    /// Print root and count, such as `1:42`, and of a copy its number, such as `1:42.3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.root(), self.count())?;
        match self.copy() {
            0 => Ok(()),
            copy => write!(f, ".{copy}"),
        }
    }
}

/// What a source stamps its packets with.
#[derive(Debug)]
pub struct Root {
    number: u8,
    /// The count of the last clock that it gave, 0 before the first.
    given: u64,
    /// The last count of all roots that count together. They are of one worker: nobody else changes it meanwhile.
    count: Arc<AtomicU64>,
}

impl Root {
    /// From one count to the next.
    const ONE: u64 = 1 << (ROOT_BITS + COPY_BITS);

    /// Make root 1, for a pipeline of one source. A run with more has [`Roots`].
    pub fn first() -> Root {
        Root::from(1, 0)
    }

    /// Make the root of a worker's events; workers are numbered from 0.
    pub fn of_events(worker: u32) -> Root {
        Root::from(EVENTS + (worker % u32::from(EVENTS)) as u8, 0)
    }

    fn from(number: u8, count: u64) -> Root {
        Root { number, given: count, count: Arc::new(AtomicU64::new(count)) }
    }

    /// Return the clock of what is before the first event: that a function is made.
    pub fn beginning(&self) -> Clock {
        Clock(u64::from(self.number) << COPY_BITS)
    }

    /// Take back the latest clocks of all: the packets that got them were not taken in.
    pub fn take_back(&mut self, packets: u64) {
        self.given = self.given.saturating_sub(packets);
        self.count.store(self.given, Relaxed);
    }

    /// Return its number, from 1 on.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Return the count of the last clock that it gave; 0 if it gave none.
    pub fn count(&self) -> u64 {
        self.given
    }

    /// Return the next packet's clock. After the last count comes 1 again.
    #[inline(always)]
    pub fn stamp(&mut self) -> Clock {
        self.stamps(1).next().unwrap_or_default()
    }

    /// Return the next clocks, of so many packets that come together: their counts are neighbours, and begin again with 1 where
    /// there are not so many left.
    #[inline(always)]
    pub fn stamps(&mut self, packets: usize) -> impl Iterator<Item = Clock> + use<> {
        let packets = packets as u64;
        let mut last = self.count.load(Relaxed);
        if packets > MOST_COUNT - last {
            last = 0;
        }
        let first = ((last + 1) * Self::ONE) | (u64::from(self.number) << COPY_BITS);
        self.count.store(last + packets, Relaxed);
        self.given = last + packets;
        (0..packets).map(move |i| Clock(first + i * Self::ONE))
    }
}

/// Gives each source that a worker reads a root of its own. They count together.
#[derive(Debug, Default)]
pub struct Roots {
    given: u8,
    count: Arc<AtomicU64>,
}

/// A run has more sources than there are roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySources;

impl fmt::Display for TooManySources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a run has at most {} sources: packets' clocks have no number for another", EVENTS - 1)
    }
}

impl error::Error for TooManySources {}

impl Roots {
    /// Return the root of one more source: 1, then 2 and so on.
    ///
    /// # Errors
    /// When there are no more.
    pub fn one_more(&mut self) -> Result<Root, TooManySources> {
        if self.given == EVENTS - 1 {
            return Err(TooManySources);
        }
        self.given += 1;
        Ok(Root { number: self.given, given: 0, count: Arc::clone(&self.count) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clock_has_its_parts() {
        let mut root = Root::from(255, 0x0102_0304_0506 - 1);
        let clock = root.stamp();
        assert_eq!((clock.root(), clock.count(), clock.copy()), (255, 0x0102_0304_0506, 0));
        assert_eq!(clock.bits(), 0x0102_0304_0506_ff00);
        assert_eq!((root.number(), root.count()), (255, 0x0102_0304_0506));
        let copy = Clock(clock.bits() | 7);
        assert_eq!((copy.root(), copy.count(), copy.copy()), (255, 0x0102_0304_0506, 7));
    }

    #[test]
    fn clocks_are_printed_for_people() {
        let clock = Clock(42 << 16 | 1 << 8);
        assert_eq!(clock.to_string(), "1:42");
        assert_eq!(Clock(clock.bits() | 3).to_string(), "1:42.3");
        assert_eq!(Clock(u64::MAX).to_string(), "255:281474976710655.255");
        assert_eq!(Clock::NONE.to_string(), "0:0");
    }

    #[test]
    fn after_the_last_count_comes_the_first() {
        let mut root = Root::from(1, MOST_COUNT - 1);
        let counts = [(); 3].map(|()| root.stamp().count());
        assert_eq!(counts, [MOST_COUNT, 1, 2]);
    }

    #[test]
    fn roots_are_numbered_from_one_until_there_are_no_more() {
        let mut roots = Roots::default();
        for number in 1..EVENTS {
            assert_eq!(roots.one_more().map(|root| (root.number(), root.count())), Ok((number, 0)));
        }
        for _ in 0..2 {
            let error = roots.one_more().expect_err("there are 127");
            assert!(error.to_string().contains("at most 127 sources"), "{error}");
        }
    }

    #[test]
    fn events_have_clocks_that_no_packet_has() {
        let mut first = Root::of_events(0);
        assert_eq!(
            (first.beginning().to_string(), first.stamp().to_string()),
            ("128:0".to_owned(), "128:1".to_owned())
        );
        assert_eq!(Root::of_events(127).number(), 255);
    }

    proptest! {
        #[test]
        fn clocks_rise_whatever_root_gives_them(
            turns in prop::collection::vec((0usize..3, 1usize..40), 1..200),
            before in 0..MOST_COUNT - 10_000,
        ) {
            let mut roots = Roots::default();
            roots.count.store(before, Relaxed);
            let mut roots = [(); 3].map(|()| roots.one_more().expect("three are not many"));
            let stamped = |(turn, packets): &(usize, usize)| {
                roots[*turn].stamps(*packets).map(|clock| (*turn, clock)).collect::<Vec<_>>()
            };
            let clocks: Vec<(usize, Clock)> = turns.iter().flat_map(stamped).collect();
            prop_assert!(clocks.windows(2).all(|pair| pair[0].1 < pair[1].1 && pair[0].1.bits() < pair[1].1.bits()));
            let counts: Vec<u64> = clocks.iter().map(|(_, clock)| clock.count()).collect();
            prop_assert_eq!(counts, (before + 1..).take(clocks.len()).collect::<Vec<_>>());
            prop_assert!(clocks.iter().all(|(turn, clock)| usize::from(clock.root()) == turn + 1));
            for (turn, root) in roots.iter().enumerate() {
                let last = clocks.iter().rfind(|(given, _)| *given == turn);
                prop_assert_eq!(root.count(), last.map_or(0, |(_, clock)| clock.count()));
            }
        }

        #[test]
        fn no_clock_is_none(number in 1u8.., before in MOST_COUNT - 70..=MOST_COUNT, packets in 1usize..200) {
            let mut root = Root::from(number, before);
            let clocks: Vec<Clock> = (0..packets).map(|_| root.stamp()).collect();
            prop_assert!(clocks.iter().all(|clock| *clock != Clock::NONE && clock.count() != 0 && clock.root() == number));
        }
    }
}
