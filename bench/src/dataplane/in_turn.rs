//! Packets and their answers in turn, as a queue between workers brings them.

use std::net::Ipv4Addr;

use catena_dataplane::Context;
use catena_dataplane::generator::Generator;
use catena_dataplane::module::{Pulled, Source};
use catena_packet::{Batch, Way};

/// Where the addresses and ports of UDP and TCP over IPv4 without options are in a frame.
const SRC: usize = 26;
const END: usize = 38;

/// Makes every other packet of a generator an answer to one of its flow, from the server that a balancer has chosen. All flows have
/// both in time.
pub struct InTurn {
    pub packets: Generator,
    pub server: Ipv4Addr,
    /// Batches so far.
    pub batches: usize,
}

impl Source for InTurn {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        let pulled = self.packets.pull(cx, batch);
        self.batches += 1;
        for (i, packet) in batch.iter_mut().enumerate() {
            let is_answer = (i + self.batches).is_multiple_of(2);
            packet.meta_mut().way = Way::by(u16::from(is_answer));
            if is_answer {
                let frame = packet.data_mut();
                let [a, b, c, d] = self.server.octets();
                if let Some([e, f, g, h, _, _, _, _, i, j, k, l]) = frame.get(SRC..END) {
                    let turned = [a, b, c, d, *e, *f, *g, *h, *k, *l, *i, *j];
                    frame[SRC..END].copy_from_slice(&turned);
                }
            }
        }
        pulled
    }

    fn is_recorded(&self) -> bool {
        self.packets.is_recorded()
    }
}
