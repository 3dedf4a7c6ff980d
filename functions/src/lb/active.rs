//! Active connections per server: of all instances, as far as this one knows.

use catena_state::Board;
use catena_state::value::Loads;

/// The counts of both IP versions, by place.
pub(super) struct Counts {
    loads: [Loads; 2],
    /// Where each instance has counts of its own: what it has added, those of IPv4 before those of IPv6.
    board: Option<Board>,
}

impl Counts {
    /// Nothing is active, at so many places of IPv4 and of IPv6.
    pub(super) fn new(places: [usize; 2], board: Option<Board>) -> Self {
        Counts { loads: places.map(Loads::new), board }
    }

    pub(super) fn of(&self, is_v6: bool) -> &Loads {
        &self.loads[usize::from(is_v6)]
    }

    fn tell(&mut self, is_v6: bool, place: usize, n: i64) {
        if let Some(board) = &mut self.board {
            let first = if is_v6 { self.loads[0].count() } else { 0 };
            board.add(first + place, n);
        }
    }

    /// Add to the count at a place.
    #[inline]
    pub(super) fn add(&mut self, is_v6: bool, place: u16, n: i64) {
        self.loads[usize::from(is_v6)].add(place.into(), n);
        self.tell(is_v6, place.into(), n);
    }

    /// Add one to the least count of those that are up; returns its place, `None` where none is up.
    #[inline]
    pub(super) fn take_least(&mut self, is_v6: bool) -> Option<u16> {
        let place = self.loads[usize::from(is_v6)].take_least()?;
        self.tell(is_v6, place, 1);
        Some(place as u16)
    }

    pub(super) fn set_up(&mut self, is_v6: bool, place: u16, up: bool) {
        self.loads[usize::from(is_v6)].set_up(place.into(), up);
    }

    /// Take in what others have added since the last time.
    pub(super) fn hear(&mut self) {
        let Counts { loads: [v4, v6], board } = self;
        let first = v4.count();
        if let Some(board) = board {
            board.news(|at, n| if at < first { v4.add(at, n) } else { v6.add(at - first, n) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_choose_by_what_all_have() {
        let mut all: Vec<_> = Board::for_all(2, 5).into_iter().map(|board| Counts::new([3, 2], Some(board))).collect();
        assert_eq!([0, 1, 2].map(|_| all[0].take_least(false)), [Some(0), Some(1), Some(2)]);
        assert_eq!([0, 1].map(|_| all[0].take_least(true)), [Some(0), Some(1)]);
        all[0].add(false, 1, -1);
        // The other one has not heard of it.
        assert_eq!(all[1].of(false).load(2), 0);
        all[1].hear();
        assert_eq!([0, 1, 2].map(|place| all[1].of(false).load(place)), [1, 0, 1]);
        assert_eq!((all[1].take_least(false), all[1].take_least(true)), (Some(1), Some(0)));
        all[0].hear();
        assert_eq!((all[0].of(false).load(1), all[0].of(true).load(0)), (1, 2));
    }
}
