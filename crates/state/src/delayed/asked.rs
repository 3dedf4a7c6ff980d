//! What packets have asked for.

use catena_packet::wire::FlowKey;

use super::holder::Call;
use super::made::Made;
use super::outlet::Put;
use super::post::may_meet;
use crate::engine::Intent;
use crate::tx::Pass;

/// The promise of a result: by whom it was asked for, and which one it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    pub(super) unit: u32,
    pub(super) step: u32,
    pub(super) number: u64,
}

/// What was asked for once.
pub(super) struct Asked {
    pub(super) object: Made,
    /// Hash of the key, if it has one.
    pub(super) key: Option<u64>,
    /// What for an entry is wanted; nothing where it is an operation. Once that is sent off, who holds the object orders it.
    pub(super) intent: Option<Intent>,
    pub(super) number: u64,
    /// The poll after which the result is there; of an operation, once it was sent off.
    pub(super) ready: Option<u64>,
    pub(super) taken: bool,
    /// What is asked of an object's holder, until it is sent off.
    pub(super) call: Option<Call>,
}

impl Asked {
    pub(super) fn is_operation(&self) -> bool {
        self.intent.is_none()
    }

    /// Return whether one must wait for the other: for the same entry, or to be sent off after an operation on the same.
    pub(super) fn follows(&self, earlier: &Asked) -> bool {
        let is_same = self.object == earlier.object && self.is_operation() == earlier.is_operation();
        match self.is_operation() {
            false => is_same && self.key == earlier.key,
            true => is_same && earlier.call.is_some() && may_meet(self.key, earlier.key),
        }
    }
}

/// A packet's operations.
#[derive(Default)]
pub(super) struct Operations {
    pub(super) pass: Pass,
    /// The flow, on the way out.
    pub(super) flow: Option<FlowKey>,
    /// Steps begun: 0 in *prepare*.
    pub(super) step: u32,
    pub(super) asked: Vec<Asked>,
    /// Whether it is a packet's: what it asked for was told to be sent off, if there was any.
    pub(super) is_issued: bool,
    /// Whether anything was sent off.
    pub(super) is_sent: bool,
    /// What it has put out.
    pub(super) puts: Vec<Put>,
}
