//! A pipeline that is built says where its packets carry their attributes.

use std::sync::{Arc, Mutex};

use catena_compile::library::signatures;
use catena_compile::{build, lower};
use catena_dataplane::pipeline::Time;
use catena_dataplane::{Context, Module};
use catena_packet::meta::ATTRIBUTE_BYTES;
use catena_packet::wire::Seed;
use catena_packet::{Batch, Depot};
use catena_policy::{Disk, load};
use catena_state::Share;

/// Keeps what the last packet carries.
struct Exit(Arc<Mutex<[u8; ATTRIBUTE_BYTES]>>);

impl Module for Exit {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        for packet in batch.iter() {
            *self.0.lock().expect("nobody panics with it") = packet.meta().attributes;
        }
        cx.pool().put_batch(batch);
    }
}

#[test]
fn what_is_built_says_where_a_packet_carries_what_a_function_said_of_it() {
    let text = "chain c { in -> LB(vip = 192.0.2.9, backends = [10.9.0.1]) -> out }";
    let outcome = load("attributes.catena", text, &signatures(), &Disk);
    let host = lower(&outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).expect("it can be lowered");
    let carried = Arc::new(Mutex::new([0; ATTRIBUTE_BYTES]));
    let exit = |_| Box::new(Exit(Arc::clone(&carried))) as Box<dyn Module>;
    let mut built = build(&host, Seed::from_number(5), (Share::WHOLE, None), exit).expect("it can be built");
    built.graph.start(Time::Packets).expect("nothing is written");
    let depot = Depot::map(8, 2).expect("there is memory for a few packets");
    let mut cx = Context::new(&depot, 1);
    let header = [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0xf6, 0xb8, 10, 0, 0, 1, 192, 0, 2, 9];
    let frame = [&[2; 12], &[8, 0][..], &header, &[0, 80, 0, 80, 0, 8, 0, 0]].concat();
    let mut packet = cx.pool().take(frame.len()).expect("there are buffers");
    packet.fill(&frame);
    let mut batch = Batch::new();
    batch.push(packet);
    built.graph.run(&mut cx, built.entries[0].expect("the chain begins at `in`"), &mut batch);
    let slot = built.attributes.slot("backend").expect("there is room");
    let mut packet = cx.pool().take(0).expect("there are buffers");
    packet.meta_mut().attributes = *carried.lock().expect("nobody panics with it");
    assert_eq!(slot.get(&packet), 1, "the first of the backends");
    assert_ne!(built.attributes.slot("another"), Ok(slot));
    cx.pool().put(packet);
}
