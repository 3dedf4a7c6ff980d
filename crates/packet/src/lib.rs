//! Packets: buffers, batches, header views, flow keys, clocks and marks, capture files.
//!
//! This crate is the bottom of the house: it knows bytes and nothing else of Catena.

pub mod pcap;
pub mod wire;
