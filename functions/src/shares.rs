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

/// Count an entry more of a sender, who is known by one or two words, in an instance's table, if it may have one.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Take {
    /// The instance, 0 where each has its own object.
    pub instance: u16,
    /// The words.
    pub sender: [u64; 2],
}

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
pub struct Give {
    /// In whose table, as in [`Take`].
    pub instance: u16,
    /// The group.
    pub group: u16,
}

/// Count an entry more of a group, which comes from another table: whether it may have one or not. What is over the part of a table
/// goes in time, and nothing is taken meanwhile.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Bring {
    /// In whose table, as in [`Take`].
    pub instance: u16,
    /// The group.
    pub group: u16,
}

operations!("shares of tables": Tables { 0 => Take, 1 => Give, 2 => Bring });

impl Op<Tables> for Take {
    type Reply = Taken;

    #[inline]
    fn apply(self, tables: &mut Tables) -> Taken {
        let shares = tables.of(self.instance);
        let group = shares.group(self.sender);
        match shares.take(group) {
            true => Taken::Room(group),
            false if shares.has_its_part(group) => Taken::HasItsPart(group),
            false => Taken::Short(group),
        }
    }
}

impl Op<Tables> for Bring {
    type Reply = ();

    fn apply(self, tables: &mut Tables) {
        tables.of(self.instance).bring(self.group);
    }
}

impl Op<Tables> for Give {
    type Reply = ();

    #[inline]
    fn apply(self, tables: &mut Tables) {
        tables.of(self.instance).give(self.group);
    }
}

/// The shares of several instances' tables, which one object has: what a sender has of each is a part of that one.
#[derive(Stored)]
pub struct Tables {
    first: Shares,
    others: Vec<Shares>,
}

impl Tables {
    /// Count the entries of an instance's table each, for up to so many of them. There is one at least.
    pub fn new(seed: Seed, mut capacities: impl Iterator<Item = usize>) -> Self {
        let first = Shares::new(seed, capacities.next().unwrap_or(0));
        Tables { first, others: capacities.map(|capacity| Shares::new(seed, capacity)).collect() }
    }

    /// The shares of an instance's table.
    #[inline]
    fn of(&mut self, instance: u16) -> &mut Shares {
        let other = usize::from(instance).checked_sub(1);
        other.and_then(|other| self.others.get_mut(other)).unwrap_or(&mut self.first)
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

    /// Count an entry more of a group, whether it may have one or not.
    pub fn bring(&mut self, group: u16) {
        self.held[usize::from(group) % GROUPS] += 1;
        self.used += 1;
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

    /// A sender's entries all are in one table: what it may have is a part of that one.
    #[test]
    fn each_table_is_shared_out_by_itself() {
        let mut tables = Tables::new(Seed::from_number(3), [128, 128, 64].into_iter());
        let mut most = |instance, sender: u64| {
            let take = Take { instance, sender: [sender, 4] };
            (0..2000).filter(|_| matches!(take.apply(&mut tables), Taken::Room(_))).count()
        };
        assert_eq!([most(1, 1), most(1, 2), most(1, 1)], [64, 32, 0], "64 of 128, then half of the rest");
        assert_eq!([most(0, 1), most(2, 1)], [64, 32], "the others have theirs");
        let group = tables.of(1).group([2, 4]);
        Give { instance: 1, group }.apply(&mut tables);
        Bring { instance: 2, group }.apply(&mut tables);
        assert_eq!([tables.of(0).used, tables.of(1).used, tables.of(2).used], [64, 95, 33]);
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
