//! Fair shares of a table that strangers fill: one sender holds a small part of it, and never more than is free.
//!
//! A sender may have 1/[`PARTS`] of the table ([`LEAST`] entries of a small one), so that it takes as many to fill
//! it; as the room runs out, it may have no more than is free, so that what is left goes to those who have little
//! (the dynamic threshold of Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
//! §II, with α = 1). Senders are counted by a secret hash into [`GROUPS`] groups: constant room, and senders of one
//! group share their part. A sender is one IPv4 address, or 64 bits of an IPv6 address: whoever has one of a /64 can
//! send from all.

use catena_packet::wire::Seed;
use catena_state::{Op, Plain, Stored, operations};

/// Groups that senders are counted in.
pub const GROUPS: usize = 4096;
/// A sender may have one of so many parts of a table.
pub const PARTS: usize = 32;
/// Entries that a sender may have of a small table, while there is room.
pub const LEAST: usize = 64;

/// Count an entry more of a sender, who is known by one or two words, if it may have one.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Take(pub [u64; 2]);

/// What came of it, and the sender's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub enum Taken {
    /// It is counted.
    Room(u16),
    /// The group has all that one may have, however much is free.
    HasItsPart(u16),
    /// It has no less than what is free.
    Short(u16),
}

/// Count an entry less of a group, which took it.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Give(pub u16);

/// Count an entry more of a group, which comes from another table: whether it may have one or not. What is over the part of a table
/// goes in time, and nothing is taken meanwhile.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Bring(pub u16);

operations!("shares": Shares { 0 => Take, 1 => Give, 2 => Bring });

impl Op<Shares> for Take {
    type Reply = Taken;

    fn apply(self, shares: &mut Shares) -> Taken {
        let group = shares.group(self.0);
        match shares.take(group) {
            true => Taken::Room(group),
            false if shares.has_its_part(group) => Taken::HasItsPart(group),
            false => Taken::Short(group),
        }
    }
}

impl Op<Shares> for Bring {
    type Reply = ();

    fn apply(self, shares: &mut Shares) {
        shares.held[usize::from(self.0) % GROUPS] += 1;
        shares.used += 1;
    }
}

impl Op<Shares> for Give {
    type Reply = ();

    fn apply(self, shares: &mut Shares) {
        shares.give(self.0);
    }
}

/// How many entries of a table each group of senders has.
pub struct Shares {
    seed: Seed,
    held: Box<[u32; GROUPS]>,
    used: usize,
    capacity: usize,
}

/// How many are used is the sum of what the groups have.
impl Stored for Shares {
    fn store(&self, to: &mut Vec<u8>) {
        self.seed.store(to);
        self.capacity.store(to);
        self.held.store(to);
    }

    fn restore(from: &mut &[u8]) -> Option<Shares> {
        let (seed, capacity) = (Stored::restore(from)?, Stored::restore(from)?);
        let held: Box<[u32; GROUPS]> = Stored::restore(from)?;
        let used = held.iter().map(|held| *held as usize).sum();
        Some(Shares { seed, held, used, capacity })
    }
}

impl Shares {
    /// Count the entries of a table for up to `capacity` of them.
    pub fn new(seed: Seed, capacity: usize) -> Self {
        Shares { seed, held: Box::new([0; GROUPS]), used: 0, capacity }
    }

    /// Return the group of a sender, known by one or two words.
    #[inline]
    pub fn group(&self, sender: [u64; 2]) -> u16 {
        (self.seed.hash2(sender) >> 32) as u16 % GROUPS as u16
    }

    /// Count an entry more of a group; returns whether it may have one.
    #[inline]
    pub fn take(&mut self, group: u16) -> bool {
        let most = self.part().min(self.capacity.saturating_sub(self.used));
        let held = &mut self.held[usize::from(group) % GROUPS];
        if *held as usize >= most {
            return false;
        }
        *held += 1;
        self.used += 1;
        true
    }

    /// Return whether a group has all that one may have, however much is free.
    fn has_its_part(&self, group: u16) -> bool {
        self.held[usize::from(group) % GROUPS] as usize >= self.part()
    }

    /// The most that a group may have.
    fn part(&self) -> usize {
        (self.capacity / PARTS).max(LEAST)
    }

    /// Count an entry less of a group, which took it.
    #[inline]
    pub fn give(&mut self, group: u16) {
        let held = &mut self.held[usize::from(group) % GROUPS];
        debug_assert!(*held > 0 && self.used > 0, "only what was taken is given back");
        *held = held.saturating_sub(1);
        self.used = self.used.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(capacity: usize) -> Shares {
        Shares::new(Seed::from_number(3), capacity)
    }

    #[test]
    fn a_sender_gets_its_part_and_less_as_room_runs_out() {
        let mut shares = shares(128);
        let [a, b] = [[1, 4], [2, 4]].map(|sender| shares.group(sender));
        assert_ne!(a, b);
        let most = |shares: &mut Shares, group| (0..2000).filter(|_| shares.take(group)).count();
        assert_eq!((most(&mut shares, a), most(&mut shares, b)), (64, 32), "64 of 128, then half of the rest");
        assert!(!shares.take(a));
        (0..64).for_each(|_| shares.give(a));
        assert_eq!(most(&mut shares, a), 48, "half of the 96 that b left");
    }

    #[test]
    fn it_takes_as_many_senders_as_there_are_parts() {
        let mut shares = shares(64_000);
        let mut groups: Vec<u16> = (0..PARTS as u64 - 1).map(|sender| shares.group([sender, 0])).collect();
        groups.dedup();
        for group in &groups {
            assert_eq!((0..64_000).filter(|_| shares.take(*group)).count(), 64_000 / PARTS);
        }
        let late = shares.group([99, 0]);
        assert!(!groups.contains(&late));
        assert!((0..1000).all(|_| shares.take(late)), "who comes after {} greedy ones finds room", groups.len());
    }
}
