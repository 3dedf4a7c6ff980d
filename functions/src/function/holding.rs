//! What a packet needs beyond its plan.
//!
//! Plans of a whole batch lie side by side, and each is moved when it is made: a large one costs every packet some cycles,
//! also those that decide in their first step. What only later steps need is held here, and the plan keeps its number. A
//! packet that has begun is brought to an end, so nothing stays here that nobody asks for.

use catena_state::Engine;

use super::parking;

/// How often room was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Try {
    /// Once: where there is none, some is made, and it is asked for again.
    First,
    /// Twice.
    Last,
}

/// The number of what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(u16);

/// Holds a thing for each packet that waits.
pub struct Holding<T> {
    things: Vec<Option<T>>,
    free: Vec<Held>,
}

impl<T> Holding<T> {
    /// Make room for the packet in hand, and for all that may wait on the engine `E`.
    pub fn of<E: Engine>() -> Self {
        let most = if E::WAITS { parking::MOST_BEGUN + 1 } else { 1 };
        Holding { things: (0..most).map(|_| None).collect(), free: (0..most as u16).map(Held).collect() }
    }

    /// Hold a thing; `None` where there is no room.
    pub fn hold(&mut self, thing: T) -> Option<Held> {
        let held = self.free.pop()?;
        self.things[usize::from(held.0)] = Some(thing);
        Some(held)
    }

    /// Take a thing back.
    pub fn take(&mut self, held: Held) -> Option<T> {
        let thing = self.things.get_mut(usize::from(held.0))?.take()?;
        self.free.push(held);
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_state::{Delayed, Local};

    #[test]
    fn there_is_room_for_all_that_may_wait_and_one_more() {
        let mut holding = Holding::of::<Delayed>();
        let held: Vec<Held> = (0..=parking::MOST_BEGUN).map(|n| holding.hold(n).unwrap()).collect();
        assert_eq!(holding.hold(0), None);
        for (n, held) in held.iter().enumerate() {
            assert_eq!(holding.take(*held), Some(n));
            assert_eq!(holding.take(*held), None);
        }
        assert!(holding.hold(0).is_some());
        // Nobody waits: the packet in hand alone.
        let mut holding = Holding::of::<Local>();
        assert!(holding.hold(0).is_some());
        assert_eq!(holding.hold(0), None);
    }
}
