//! What instances that share live traffic tell each other without asking: each writes numbers of its own, and reads all others'.
//!
//! Nobody waits for anybody, however many new flows there are and whoever is stopped. What an instance knows of the others is as
//! old as the last time it looked; sums of them are what all have done by then (a counter of increments and decrements by replica:
//! Shapiro et al., "Conflict-Free Replicated Data Types", SSS 2011, §3.1). Who must know the sum as it is at this moment asks a
//! [shared object](crate::shared) that has one owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// Numbers of one cache line: they have a stamp together.
const GROUP: usize = 8;

/// The numbers of one instance, which it alone writes.
struct Row {
    count: usize,
    /// How often any has changed.
    changes: Changes,
    /// How often each group has changed.
    stamps: Box<[AtomicU64]>,
    groups: Box<[Group]>,
}

/// A count on a cache line of its own (two of them, as they are fetched in pairs).
#[repr(align(128))]
#[derive(Default)]
struct Changes(AtomicU64);

#[repr(align(64))]
#[derive(Default)]
struct Group([AtomicI64; GROUP]);

impl Row {
    fn new(numbers: usize) -> Row {
        let groups = numbers.div_ceil(GROUP);
        Row {
            count: numbers,
            changes: Changes::default(),
            stamps: (0..groups).map(|_| AtomicU64::default()).collect(),
            groups: (0..groups).map(|_| Group::default()).collect(),
        }
    }
}

/// What was last seen of another instance's numbers.
#[derive(Clone)]
struct Seen {
    changes: u64,
    stamps: Box<[u64]>,
    numbers: Box<[i64]>,
}

/// The numbers of all instances, for one of them.
pub struct Board {
    rows: Arc<[Row]>,
    own: usize,
    seen: Vec<Seen>,
}

impl Board {
    /// Make the boards of so many instances for so many numbers, all 0.
    pub fn for_all(instances: usize, numbers: usize) -> Vec<Board> {
        let rows: Arc<[Row]> = (0..instances).map(|_| Row::new(numbers)).collect();
        let groups = numbers.div_ceil(GROUP);
        let none = Seen { changes: 0, stamps: vec![0; groups].into(), numbers: vec![0; groups * GROUP].into() };
        let board = |own| Board { rows: Arc::clone(&rows), own, seen: vec![none.clone(); instances] };
        (0..instances).map(board).collect()
    }

    /// Add to a number of this instance's; nothing happens beyond the last. Some ten instructions.
    #[inline]
    pub fn add(&mut self, index: usize, n: i64) {
        let row = &self.rows[self.own];
        if index >= row.count {
            return;
        }
        let number = &row.groups[index / GROUP].0[index % GROUP];
        // Nobody else writes these, so to read and to write need not be one step. Who sees a stamp sees what it is for.
        number.store(number.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        for stamp in [&row.stamps[index / GROUP], &row.changes.0] {
            stamp.store(stamp.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
    }

    /// Tell by how much others' numbers have changed since the last time, those with one index one after the other. Where nothing
    /// has changed that costs a look at one number of each instance; else a cache line for eight numbers of which one has.
    pub fn news(&mut self, mut tell: impl FnMut(usize, i64)) {
        let Board { rows, own, seen } = self;
        for (_, (row, seen)) in rows.iter().zip(seen).enumerate().filter(|(index, _)| index != own) {
            let changes = row.changes.0.load(Ordering::Acquire);
            if std::mem::replace(&mut seen.changes, changes) == changes {
                continue;
            }
            for (at, (stamp, group)) in row.stamps.iter().zip(&row.groups).enumerate() {
                let now = stamp.load(Ordering::Acquire);
                if std::mem::replace(&mut seen.stamps[at], now) == now {
                    continue;
                }
                for (index, number) in (at * GROUP..).zip(&group.0) {
                    let now = number.load(Ordering::Relaxed);
                    let before = std::mem::replace(&mut seen.numbers[index], now);
                    if now != before {
                        tell(index, now.wrapping_sub(before));
                    }
                }
            }
        }
    }
}

/// Room that somebody who has more than at the start leaves to whoever has less: that of all instances which have parts of an object.
#[derive(Clone, Debug, Default)]
pub struct Room(Arc<AtomicUsize>);

impl Room {
    /// Leave room for so many.
    #[inline]
    pub fn leave(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Take room for one; returns whether there was some.
    #[inline]
    pub fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each knows of the others what they had done when it looked.
        #[test]
        fn sums_of_all_are_known_to_all(steps in prop::collection::vec((0usize..3, 0usize..20, -5i64..6, any::<bool>()), 1..200)) {
            let mut boards = Board::for_all(3, 19);
            let (mut known, mut done) = ([[0i64; 20]; 3], [0i64; 20]);
            for (who, index, n, looks) in steps {
                boards[who].add(index, n);
                if index < 19 {
                    known[who][index] += n;
                    done[index] += n;
                }
                if looks {
                    boards[who].news(|index, n| known[who][index] += n);
                    prop_assert_eq!(known[who], done);
                    boards[who].news(|index, n| panic!("nothing is new: {index} {n}"));
                }
            }
        }
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const EACH: i64 = 20_000;
        let work = |mut board: Board| {
            move || {
                let mut known = [0; 30];
                for n in 0..EACH {
                    let index = (n % 30) as usize;
                    board.add(index, if n % 7 == 0 { -1 } else { 2 });
                    if n % 64 == 0 {
                        board.news(|index, n| known[index] += n);
                    }
                }
                (board, known)
            }
        };
        let threads: Vec<_> = Board::for_all(3, 30).into_iter().map(|board| std::thread::spawn(work(board))).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let expected = 2 * (0..EACH).map(|n| if n % 7 == 0 { -1 } else { 2 }).sum::<i64>();
        for (mut board, mut known) in ended {
            board.news(|index, n| known[index] += n);
            assert_eq!(known.iter().sum::<i64>(), expected);
        }
    }

    #[test]
    fn room_is_taken_as_often_as_it_was_left() {
        let (room, same) = (Room::default(), Room::default());
        let other = room.clone();
        assert!(!room.take());
        other.leave(1);
        other.leave(1);
        assert!(room.take() && other.take() && !room.take() && !same.take());
    }
}
