//! What a C function has asked for on behalf of a packet that may have to wait: the tickets of its keys.

use catena_state::{Engine, Tx};

/// Most keys that a packet asks for in one step.
pub const MOST: usize = 8;

/// The ticket of an entry, by the width of its key in words.
pub enum Ticket<E: Engine> {
    /// A key of up to 8 bytes.
    One(E::Ticket<u64>),
    /// A key of up to 16 bytes.
    Two(E::Ticket<[u64; 2]>),
    /// A key of up to 40 bytes.
    Five(E::Ticket<[u64; 5]>),
}

// Derived, these would ask for an engine that can be copied.

copied!(Ticket<E: Engine>, Asked<E: Engine>);

/// The tickets of one step, each with the number of its map.
pub struct Asked<E: Engine> {
    tickets: [Option<(u32, Ticket<E>)>; MOST],
}

impl<E: Engine> Asked<E> {
    /// No ticket.
    pub const NOTHING: Asked<E> = Asked { tickets: [None; MOST] };

    /// Keep a ticket of a map; returns whether there is room for it.
    pub fn keep(&mut self, map: u32, ticket: Ticket<E>) -> bool {
        let free = self.tickets.iter_mut().find(|kept| kept.is_none());
        free.map(|free| *free = Some((map, ticket))).is_some()
    }

    /// Return the tickets of a map, by its number.
    pub fn of(&self, map: u32) -> impl Iterator<Item = &Ticket<E>> {
        self.tickets.iter().flatten().filter(move |(of, _)| *of == map).map(|(_, ticket)| ticket)
    }
}

/// The packet in hand.
pub struct InHand<E: Engine> {
    /// Whose operations are done now: the packet's, or the function's own between packets.
    pub tx: Tx,
    /// What may be used in this step.
    pub usable: Asked<E>,
    /// What is asked for in this step.
    pub wanted: Asked<E>,
    /// Whether the function knows that an entry may come later than it is asked for.
    pub is_patient: bool,
}
