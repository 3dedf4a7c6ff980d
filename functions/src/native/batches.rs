//! C functions on local state: nobody waits, so they get whole batches.

use std::path::PathBuf;

use catena_dataplane::{Context, Module};
use catena_packet::Batch;
use catena_state::{Local, Tx};

use super::Native;
use super::successor::Successor;
use crate::function::Function;

/// The module of a C function on local state.
pub struct Batches {
    /// Looks for later builds, if that is wanted. It ends before the instance does, which it starts others beside.
    successor: Option<Successor>,
    /// The function.
    pub native: Native<Local>,
}

impl Batches {
    /// Make the module.
    pub fn new(mut native: Native<Local>) -> Self {
        let successor = native.watched.take().map(|(origin, known)| Successor::new(origin, known));
        Batches { successor, native }
    }
}

impl Module for Batches {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
        if batch.is_empty() {
            return;
        }
        let native = &mut self.native;
        if let Some(successor) = &mut self.successor {
            successor.between_batches(&mut native.instance, cx.now());
        }
        native.instance.process(cx, batch);
        let gate = cx.gate();
        cx.decide(batch, |i, packet| native.instance.verdict(i, gate, packet));
    }

    fn tick(&mut self, cx: &mut Context) {
        self.native.tidy(&mut Tx::new(0, cx.now(), 0), true);
    }

    fn inputs(&self) -> Vec<PathBuf> {
        self.native.inputs()
    }

    fn end(&mut self, cx: &mut Context) -> Result<(), String> {
        self.successor = None;
        self.native.end(&mut Tx::new(0, cx.now(), 0))
    }

    fn reasons(&self) -> &'static [&'static str] {
        Function::reasons(&self.native)
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        Function::gauges(&self.native, tell);
    }
}
