//! What modules keep by slots goes with these to another worker's.

use std::sync::Arc;

use catena_packet::SlotSet;

use super::Graph;
use crate::module::{Context, Parcel};

impl Graph {
    /// Let all modules hand over what they have of some slots, each with its name.
    pub fn leave(&mut self, cx: &mut Context, slots: &SlotSet) -> Vec<(Arc<str>, Parcel)> {
        let mut parcels = Vec::new();
        for node in self.nodes.iter_mut().flatten() {
            parcels.extend(node.module.leave(cx, slots).map(|parcel| (node.name.clone(), parcel)));
        }
        parcels
    }

    /// Let modules take in what those of the same names on another worker had of some slots; returns what was lost, by name.
    pub fn arrive(&mut self, cx: &mut Context, parcels: Vec<(Arc<str>, Parcel)>) -> Vec<(Arc<str>, String)> {
        let mut lost = Vec::new();
        for (name, parcel) in parcels {
            let arrived = match self.nodes.iter_mut().flatten().find(|node| node.name == name) {
                Some(node) => node.module.arrive(cx, parcel),
                None => Err("there is no such module on this worker".to_owned()),
            };
            lost.extend(arrived.err().map(|error| (name, error)));
        }
        lost
    }
}
