//! Runs packets through a pipeline and keeps all that can be observed of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use catena_compile::{Host, Side, build};
use catena_dataplane::pipeline::Time;
use catena_dataplane::{Context, Module};
use catena_packet::wire::Seed;
use catena_packet::{Batch, Clock, Depot};
use catena_state::Share;

/// A packet that comes in: its side (0 in, 1 out), its time in ns, its bytes.
pub type Packet = (usize, u64, Vec<u8>);

/// A packet that left: its side, the number it came with, its bytes.
type Left = (bool, u64, Vec<u8>);

/// What one module counted: packets and bytes, drops by reason, packets by output gate.
pub type Counted = (u64, u64, BTreeMap<String, u64>, Vec<u64>);

/// All that can be observed of a run.
#[derive(Debug, PartialEq)]
pub struct Observed {
    /// What came in, in order.
    pub came: Vec<Vec<u8>>,
    /// What left, in order.
    pub out: Vec<Left>,
    /// By module.
    pub counted: BTreeMap<String, Counted>,
    /// By module and name, but for what only tells of costs.
    pub gauges: BTreeMap<(String, &'static str), u64>,
    /// What functions wrote, by file.
    pub files: BTreeMap<String, String>,
}

/// The only gauge that tells how much work there was, not what came of it.
const COST: &str = "packets searched for";

struct Exit {
    out: bool,
    left: Arc<Mutex<Vec<Left>>>,
}

impl Module for Exit {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let mut left = self.left.lock().expect("nobody panics with it");
        left.extend(batch.iter().map(|packet| (self.out, packet.meta().clock.bits(), packet.data().to_vec())));
        cx.pool().put_batch(batch);
    }
}

/// Run packets through a pipeline whose functions write into `folder`.
pub fn run(host: &Host, packets: &[Packet], folder: &Path) -> Observed {
    let left = Arc::new(Mutex::new(Vec::new()));
    let exit = |side| Box::new(Exit { out: side == Side::Out, left: Arc::clone(&left) }) as Box<dyn Module>;
    let mut built = build(host, Seed::from_number(5), (Share::WHOLE, None), exit).expect("random chains can be built");
    built.graph.start(Time::Packets).expect("exports can be written");
    let depot = Depot::map(512, 16).expect("there is memory for a few packets");
    let mut cx = Context::new(&depot, 1);
    let mut start = 0;
    while start < packets.len() {
        // Batches of one side, of lengths that differ.
        let side = packets[start].0;
        let most = 1 + start % 32;
        let length = packets[start..].iter().take(most).take_while(|(at, ..)| *at == side).count();
        let mut batch = Batch::new();
        for (clock, (_, time, bytes)) in (start as u64 + 1..).zip(&packets[start..start + length]) {
            let mut packet = cx.pool().take(bytes.len()).expect("packets come back");
            packet.fill(bytes);
            packet.meta_mut().clock = Clock::from_bits(clock);
            packet.meta_mut().arrival = *time;
            cx.set_now(*time);
            batch.push(packet);
        }
        match built.entries[side] {
            Some(inlet) => _ = built.graph.run(&mut cx, inlet, &mut batch),
            None => cx.pool().put_batch(&mut batch),
        }
        built.graph.tick(&mut cx);
        start += length;
    }
    let failed = built.graph.end(&mut cx);
    assert!(failed.is_empty(), "{failed:?}");
    let mut counted = BTreeMap::new();
    for (_, info) in built.graph.nodes() {
        let drops = info.counters.drops.iter().map(|(r, n)| (r.text(info.reasons).to_owned(), n)).collect();
        let input = &info.counters.input;
        let mut gates: Vec<u64> = info.gates.iter().map(|gate| gate.packets.get()).collect();
        // A gate that nothing ever left by may not be there.
        while gates.last() == Some(&0) {
            gates.pop();
        }
        counted.insert(info.name.to_string(), (input.packets.get(), input.bytes.get(), drops, gates));
    }
    let mut gauges = BTreeMap::new();
    built.graph.gauges(&mut |module, gauge| {
        if gauge.name != COST {
            gauges.insert((module.to_owned(), gauge.name), gauge.value);
        }
    });
    drop((built, cx));
    assert!(depot.all_home(), "a packet buffer is lost");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("exports are text");
        files.insert(entry.file_name().to_string_lossy().into_owned(), text);
    }
    let out = std::mem::take(&mut *left.lock().expect("nobody panics with it"));
    let came = packets.iter().map(|(_, _, bytes)| bytes.clone()).collect();
    Observed { came, out, counted, gauges, files }
}
