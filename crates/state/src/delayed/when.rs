//! When an object may be looked at or changed.

use std::panic::Location;

use super::made::Made;
use super::watch::Watch;
use crate::tx::Tx;

impl Watch {
    /// Return whether a packet is in *prepare* or in a step.
    pub(super) fn is_at_a_packet(&self) -> bool {
        self.in_prepare.is_some() || self.in_step.is_some()
    }

    /// Look whether an object may be looked at now: not in the middle of a packet's operations, as its fate must not depend on what is
    /// known here. An event may: a command that shows what there is.
    #[track_caller]
    pub(super) fn look(&self, object: Made) {
        if self.is_at_a_packet() {
            panic!("{object}: looked at for a packet's fate, at {}", Location::caller());
        }
    }

    /// Look whether an object may be changed now by what is no packet's operation.
    #[track_caller]
    pub(super) fn change_alone(&self, object: Made) {
        if self.in_prepare.is_some() {
            panic!("{object}: changed in prepare, at {}", Location::caller());
        }
    }

    /// Look whether a packet may change an object now: not in *prepare*, and not when its operations are over.
    #[track_caller]
    pub(super) fn change(&self, tx: &Tx, object: Made) {
        match self.open.get(&tx.unit()) {
            None => panic!("{object}: asked for by a packet whose operations are over, at {}", Location::caller()),
            Some(operations) if operations.step == 0 => {
                panic!("{object}: changed in prepare, at {}", Location::caller())
            }
            Some(_) => {}
        }
    }
}
