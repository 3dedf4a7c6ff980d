//! A sink: packets end here.

use catena_packet::Batch;

use crate::module::{Context, Module};

/// Takes every packet and gives its buffer back. The module's input counters tell how many there were.
#[derive(Debug, Default)]
pub struct Sink;

impl Module for Sink {
    #[inline]
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}
