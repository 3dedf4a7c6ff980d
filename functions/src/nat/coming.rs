//! What a batch is about to map: whatever that will look at is brought near, for all of its packets together.
//!
//! A new mapping looks at its host, then at the host's block: each tells where the next is. Foreseen is only what comes near; what is
//! true is found out later.

use catena_packet::BATCH;
use catena_state::{Engine, Shared};

use super::family::Translate;
use super::mapping::Mappings;

/// Inside endpoints that seem to have no mapping. Nothing depends on them but what is near.
pub(super) struct Coming<F: Translate>(Vec<F::Endpoint>);

impl<F: Translate> Coming<F> {
    pub(super) fn nothing() -> Self {
        Coming(Vec::with_capacity(BATCH))
    }

    /// Add one.
    pub(super) fn add<E: Engine>(&mut self, inside: F::Endpoint, mappings: &Mappings<E, F>) {
        if self.0.len() < BATCH {
            self.0.push(inside);
            mappings.ports.bring(|ports| ports.bring_host(F::host_of(inside)));
        }
    }

    /// Bring near what mapping them will look at, and forget them.
    #[inline]
    pub(super) fn bring<E: Engine>(&mut self, mappings: &mut Mappings<E, F>) {
        if !self.0.is_empty() {
            self.bring_all(mappings);
        }
    }

    #[inline(never)]
    fn bring_all<E: Engine>(&mut self, mappings: &mut Mappings<E, F>) {
        mappings.ports.bring(|ports| ports.bring_next(self.0.drain(..).map(F::host_of)));
    }
}
