//! Packets and their answers in turn, as a queue between workers brings them.

use std::net::Ipv4Addr;

use catena_dataplane::Context;
use catena_dataplane::generator::Generator;
use catena_dataplane::module::{Pulled, Source};
use catena_packet::{Batch, Way};

/// Where the addresses and ports of UDP and TCP over IPv4 without options are in a frame.
const SRC: usize = 26;
const DST: usize = 30;
const PORTS: usize = 34;

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
                frame.copy_within(SRC..DST, DST);
                frame[SRC..DST].copy_from_slice(&self.server.octets());
                let [source, destination] = [PORTS, PORTS + 2].map(|at| [frame[at], frame[at + 1]]);
                frame[PORTS..PORTS + 4].copy_from_slice(&[destination, source].concat());
            }
        }
        pulled
    }

    fn is_recorded(&self) -> bool {
        self.packets.is_recorded()
    }
}
