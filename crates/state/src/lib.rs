//! State objects and the engines that hold them.
//!
//! A function declares its state as objects with a *scope* (the header fields that key them) and an
//! *access pattern*, as in Table 3.12 of Khalid's dissertation (chapter 3, CHC), and uses them through
//! an [`Engine`]: in *prepare* it says which operations it wants and gets tickets, in *finish* it uses
//! the tickets' results. With the [`local`] engine a ticket is a hash and a prefetched cache line, and
//! all of it compiles to what one would write by hand; engines that keep state elsewhere fetch results
//! between the two steps.

// What `derive(Plain)` and `derive(Stored)` write names this crate, here too.
extern crate self as catena_state;

pub mod board;
pub mod claims;
pub mod declare;
pub mod delayed;
pub mod engine;
pub mod key;
pub mod local;
pub mod looks;
mod memory;
pub mod mover;
pub mod outlet;
pub mod peers;
pub mod plain;
pub mod shared;
pub mod shared_map;
pub mod stored;
pub mod two_keys;
pub mod tx;
pub mod value;

pub use board::{Board, Room};
pub use claims::Claims;
pub use declare::{Access, Declaration, Object, Scope};
pub use delayed::{Crashes, Delayed};
pub use engine::{Engine, FOREVER, Fate, FlowMap, Full, Intent, NoMemory, Share, taken};
pub use key::{Key, Words};
pub use local::Local;
pub use mover::{Moved, Mover, Parcel};
pub use outlet::{Outlet, Sink};
pub use peers::{Peers, Team};
pub use plain::Plain;
pub use shared::{Held, Look, Numbered, Op, Shared};
pub use shared_map::{Entry, EntryHeld, EntryOp, Place, SharedMap};
pub use stored::Stored;
pub use two_keys::{Other, TwoKeyMap};
pub use tx::{Name, Pass, Tx};
