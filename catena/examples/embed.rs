//! A program with a chain of its own: on generated packets by a plan that it looks at, and on packets from its memory.

use std::sync::{Arc, Mutex, PoisonError};

use catena::{Batch, Chain, Context, FramesIn, Module, Run, Side};

const CHAIN: &str = r#"
chain guard {
    in -> ACL(rules = ["deny udp to any port 53", "permit any"]) -> Monitor() -> out
}
"#;

/// Where packets leave: the program keeps the bytes of each.
#[derive(Clone, Default)]
struct Keep(Arc<Mutex<Vec<Vec<u8>>>>);

impl Module for Keep {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(batch.iter().map(|packet| packet.data().to_vec()));
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

/// A UDP datagram without data, from 10.0.0.1 to 192.0.2.1.
fn datagram(port: u8) -> Vec<u8> {
    let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0xae, 0xcf, 10, 0, 0, 1, 192, 0, 2, 1];
    let udp = [0x10, 0, 0, port, 0, 8, 0, 0];
    [&ethernet[..], &ip, &udp].concat()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let chain = Chain::parse("guard", CHAIN)?;

    let mut run = Run::of(&chain).inside("gen:flows=1000,count=1000000")?.workers(2);
    let deployment = run.plan()?.and_then(|planned| planned.plan().deployment.as_ref());
    for instance in deployment.iter().flat_map(|deployment| &deployment.instances) {
        println!("{} runs {} on {}", instance.name, instance.segment, instance.on);
    }
    let run = run.start()?;
    println!("{} packets so far", run.packets());
    println!("{}", run.join()?);

    let (frames, kept) = ([80, 53, 80].map(|port| (0, datagram(port))), Keep::default());
    let run =
        Run::of(&chain).source(Side::In, Box::new(FramesIn::new(frames, 0))).exit(Side::Out, Box::new(kept.clone()));
    let report = run.start()?.join()?;
    let kept = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{} from memory, {} dropped, {} kept", report.input.packets, report.dropped, kept.len());
    Ok(())
}
