//! Hostile fragments through an ACL and together again; the property is the very one of ACL's own tests.

#[path = "../functions/src/acl/tests/fragments/property.rs"]
mod property;
#[path = "../functions/src/acl/tests/fragments/reassembly.rs"]
mod reassembly;

use std::sync::Arc;

use catena_dataplane::{Context, Graph, Inlet, Module};
use catena_functions::acl;
use catena_packet::wire::Seed;
use catena_packet::{BATCH, Batch, Clock, Depot};

/// Keeps the numbers of the packets that come.
#[derive(Default)]
struct Exit(Vec<usize>);

impl Module for Exit {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.0.extend(batch.iter().map(|packet| packet.meta().clock.bits() as usize));
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

/// No datagram that the rules deny comes out of the fragments that they let pass.
pub fn none_gets_past(bytes: &[u8]) {
    property::no_denied_datagram_comes_out(bytes, |rules, default, frames| {
        let depot = Depot::map(256, 0).expect("there is memory for a few packets");
        let mut cx = Context::new(&depot, 1);
        let mut graph = Graph::new();
        let list = Arc::new(acl::List::new(rules, default).expect("a few rules"));
        let node = graph.add("acl", Box::new(acl::Filter::new(list, Seed::from_number(1), false, 0)));
        let exit = graph.add("exit", Box::<Exit>::default());
        graph.connect(node, 0, exit);
        for (chunk, start) in frames.chunks(BATCH).zip((0..).step_by(BATCH)) {
            let mut batch = Batch::new();
            for (bytes, number) in chunk.iter().zip(start..) {
                let mut packet = cx.pool().take(bytes.len()).expect("packets come back");
                packet.fill(bytes);
                packet.meta_mut().clock = Clock::from_bits(number);
                batch.push(packet);
            }
            graph.run(&mut cx, Inlet { node, gate: 0 }, &mut batch);
        }
        let exit: &mut Exit = graph.module_mut(exit).expect("an exit is one");
        let mut passed = std::mem::take(&mut exit.0);
        passed.sort_unstable();
        passed
    });
}
