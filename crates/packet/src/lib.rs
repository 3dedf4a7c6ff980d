//! Packets: buffers, batches, header views, flow keys, clocks and marks, capture files.
//!
//! This crate is the bottom of the house: it knows bytes and nothing else of Catena. A packet is one
//! buffer of a per-worker [`Pool`]; 32 of them at most travel together as a [`Batch`]; what modules
//! know of a packet beside its bytes fits one cache line, [`Meta`].

pub mod batch;
pub mod buffer;
pub mod clock;
pub mod mapping;
pub mod meta;
pub mod pcap;
pub mod pool;
pub mod random;
pub mod slot;
pub mod wire;
pub mod write;

pub use batch::{BATCH, Batch};
pub use buffer::{HEAD_ROOM, JUMBO_BYTES, Packet, SMALL_BYTES};
pub use clock::Clock;
pub use mapping::Mapping;
pub use meta::Meta;
pub use pool::{Depot, DepotHandle, Pool};
pub use slot::{SLOTS, Slot, SlotSet, Way};
