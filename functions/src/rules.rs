//! Lists of rules over addresses, protocol and ports: what one says, and what is known of its verdicts without
//! looking at a packet.

pub mod key;
pub mod protocol;
pub mod rule;
pub mod verdicts;

pub use verdicts::{Verdicts, last_word};
