//! What those that wait have in common with others, as a filter: most packets find nothing of theirs there, and need not be
//! compared with each of them.

use catena_state::{Engine, Tx};

/// Places for what is counted, for each kind. A power of two, and many beside those that may wait.
const PLACES: usize = 4096;

/// How many of those that wait have which flow and which marks.
pub(super) struct Presence {
    flows: Box<[u16; PLACES]>,
    marks: Box<[u16; PLACES]>,
    /// Of those that have asked for more than there are marks.
    unknown: usize,
}

/// What was counted of one that waits.
#[derive(Clone, Copy, Default)]
pub(super) struct Counted {
    marks: u16,
    is_unknown: bool,
}

fn place_of(hash: u64) -> usize {
    (hash >> 32) as usize & (PLACES - 1)
}

fn place(mark: u16) -> usize {
    usize::from(mark) & (PLACES - 1)
}

impl Presence {
    pub(super) fn new() -> Self {
        Presence { flows: Box::new([0; PLACES]), marks: Box::new([0; PLACES]), unknown: 0 }
    }

    /// Return whether one that waits may have this flow, or have asked for what this packet has asked for.
    #[inline]
    pub(super) fn may_meet<E: Engine>(&self, engine: &E, flow: u64, tx: &Tx) -> bool {
        if self.flows[place_of(flow)] > 0 {
            return true;
        }
        let Some((marks, are_more)) = engine.marks(tx) else { return true };
        let is_any_there = marks.iter().any(|mark| self.marks[place(*mark)] > 0);
        // Nobody knows what else was asked for.
        is_any_there || are_more || self.unknown > 0 && !marks.is_empty()
    }

    /// Count one that begins to wait.
    pub(super) fn add<E: Engine>(&mut self, engine: &E, flow: u64, tx: &Tx) -> Counted {
        self.flows[place_of(flow)] += 1;
        let mut counted = Counted::default();
        self.add_marks(engine, tx, &mut counted);
        counted
    }

    /// Count what one that waits has asked for since.
    pub(super) fn add_marks<E: Engine>(&mut self, engine: &E, tx: &Tx, counted: &mut Counted) {
        let Some((marks, are_more)) = engine.marks(tx) else { return };
        marks[usize::from(counted.marks)..].iter().for_each(|mark| self.marks[place(*mark)] += 1);
        counted.marks = marks.len() as u16;
        if are_more && !counted.is_unknown {
            counted.is_unknown = true;
            self.unknown += 1;
        }
    }

    /// Forget one that waits no more. What it has asked for at last may not have been counted.
    pub(super) fn remove<E: Engine>(&mut self, engine: &E, flow: u64, tx: &Tx, counted: Counted) {
        self.flows[place_of(flow)] -= 1;
        if counted.is_unknown {
            self.unknown -= 1;
        }
        let Some((marks, _)) = engine.marks(tx) else { return };
        marks[..usize::from(counted.marks)].iter().for_each(|mark| self.marks[place(*mark)] -= 1);
    }
}

#[cfg(test)]
mod tests {
    use catena_packet::wire::Seed;
    use catena_state::{Access, Declaration, FlowMap, Intent, Peers, Scope, Team};
    use proptest::prelude::*;

    use super::*;

    const ENTRIES: Declaration = Declaration::flow_map("entries", "numbers", Scope::Connection, Access::ReadWrite);

    proptest! {
        /// Nobody is passed by with whom a packet has something in common, and where nobody waits nobody is met.
        #[test]
        fn who_may_be_met_is_told(
            steps in prop::collection::vec((0u64..12, prop::collection::vec(0u64..40, 0..9), any::<prop::sample::Index>(), 0u8..3), 1..60),
        ) {
            let team = Team::in_order(1, std::sync::Arc::new(|| u64::MAX - 1));
            let mut engine = Peers::new(Seed::from_number(1), &team, 0).expect("an order");
            engine.make_for("it");
            let mut map: <Peers as Engine>::FlowMap<u64, u64> = engine.flow_map(&ENTRIES, 64).expect("memory");
            let mut presence = Presence::new();
            let mut waiting: Vec<(u64, Tx, Counted)> = Vec::new();
            for (flow, keys, which, what) in steps {
                let mut tx = Tx::new(1, 0, 0);
                let flow = flow << 32;
                for key in &keys {
                    map.want(&mut tx, *key, Intent::Read);
                }
                let meets = waiting.iter().any(|(other, of, _)| *other == flow || engine.follows(&tx, of));
                prop_assert!(!meets || presence.may_meet(&engine, flow, &tx));
                match what {
                    0 if !waiting.is_empty() => {
                        let (flow, tx, counted) = waiting.swap_remove(which.index(waiting.len()));
                        presence.remove(&engine, flow, &tx, counted);
                    }
                    1 if !waiting.is_empty() => {
                        let at = which.index(waiting.len());
                        let (_, tx, counted) = &mut waiting[at];
                        keys.iter().for_each(|key| _ = map.want(tx, *key, Intent::Read));
                        presence.add_marks(&engine, tx, counted);
                    }
                    _ => {
                        let counted = presence.add(&engine, flow, &tx);
                        waiting.push((flow, tx, counted));
                    }
                }
            }
            for (flow, tx, counted) in waiting {
                presence.remove(&engine, flow, &tx, counted);
            }
            prop_assert!(!presence.may_meet(&engine, 0, &Tx::new(1, 0, 0)));
            prop_assert!(presence.unknown == 0 && presence.marks.iter().all(|count| *count == 0));
        }
    }
}
