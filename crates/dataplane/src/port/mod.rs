//! Ports: where packets come into a pipeline and where they leave it.
//!
//! The receiving side of a port is a [`Source`](crate::Source), the sending side a
//! [`Module`](crate::Module) at which packets end their way.

mod arrival;
mod capture_in;
mod capture_out;
mod frames_in;
mod framing;
mod in_turn;
mod offload;
mod packet_socket;
mod segment;
mod sink;
mod stream;

pub use capture_in::CaptureIn;
pub(crate) use capture_in::RECORDS;
pub use capture_out::CaptureOut;
pub use frames_in::FramesIn;
pub use in_turn::{InTurn, in_turn};
pub use packet_socket::{Cause, PacketSocket, PacketSocketError, PacketSocketIn, PacketSocketOut};
pub use sink::Sink;
pub use stream::Stream;
