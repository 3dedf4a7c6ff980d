//! Active connections per server: of all instances, as far as this one knows.

use catena_state::value::Loads;
use catena_state::{Board, Engine, Room, Stored};

use super::admission::AddActive;
use super::balancer::CONNECTIONS;

/// The counts of both IP versions, by place.
pub(super) struct Counts([Loads; 2]);

impl Stored for Counts {
    fn store(&self, to: &mut Vec<u8>) {
        self.0.iter().for_each(|loads| loads.store(to));
    }

    fn restore(from: &mut &[u8]) -> Option<Counts> {
        Some(Counts([Stored::restore(from)?, Stored::restore(from)?]))
    }
}

impl Counts {
    /// Nothing is active, at so many places of IPv4 and of IPv6.
    pub(super) fn new(places: [usize; 2]) -> Self {
        Counts(places.map(Loads::new))
    }

    pub(super) fn of(&self, is_v6: bool) -> &Loads {
        &self.0[usize::from(is_v6)]
    }

    pub(super) fn of_mut(&mut self, is_v6: bool) -> &mut Loads {
        &mut self.0[usize::from(is_v6)]
    }
}

/// What instances tell each other that have an [`Admission`](super::admission::Admission) each.
pub(super) struct Others {
    /// What each has added to the counts: those of IPv4 before those of IPv6.
    board: Board,
    v4: usize,
    /// Room in the table that somebody leaves to whoever has less than at the start.
    room: Room,
}

impl Others {
    /// Tell of so many places of IPv4 and of IPv6; `None` where there is nobody else, or one object that knows all.
    pub(super) fn new<E: Engine>(engine: &mut E, places: [usize; 2]) -> Option<Self> {
        let board = engine.board(&CONNECTIONS, places.iter().sum())?;
        Some(Others { board, v4: places[0], room: engine.room(&CONNECTIONS) })
    }

    /// Tell the others of what was done here.
    #[inline]
    pub(super) fn tell(&mut self, done: AddActive) {
        let first = if done.is_v6 { self.v4 } else { 0 };
        self.board.add(first + usize::from(done.place), done.n);
    }

    /// Hear what they have done since the last time.
    #[inline]
    pub(super) fn hear(&mut self, mut each: impl FnMut(AddActive)) {
        let Others { board, v4, .. } = self;
        board.news(|at, n| match at.checked_sub(*v4) {
            None => each(AddActive { is_v6: false, place: at as u16, n }),
            Some(at) => each(AddActive { is_v6: true, place: at as u16, n }),
        });
    }

    /// Leave room for so many connections to whoever lacks it.
    pub(super) fn leave(&self, room: u32) {
        self.room.leave(room as usize);
    }

    /// Take room for a connection that others have left; returns whether there was some.
    pub(super) fn take(&self) -> bool {
        self.room.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_know_what_all_have() {
        let boards = Board::for_all(2, 5).into_iter();
        let mut all: Vec<_> = boards.map(|board| Others { board, v4: 3, room: Room::default() }).collect();
        let news = |of: &mut Others| {
            let mut news = Vec::new();
            of.hear(|AddActive { is_v6, place, n }| news.push((is_v6, place, n)));
            news
        };
        for (is_v6, place, n) in
            [(false, 0, 1), (false, 2, 1), (true, 0, 1), (true, 1, 1), (false, 2, 1), (false, 0, -1)]
        {
            all[0].tell(AddActive { is_v6, place, n });
        }
        assert_eq!(news(&mut all[1]), [(false, 2, 2), (true, 0, 1), (true, 1, 1)]);
        assert_eq!((news(&mut all[1]), news(&mut all[0])), (vec![], vec![]));
    }
}
