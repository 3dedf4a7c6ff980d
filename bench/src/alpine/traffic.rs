//! Traffic from memory, and where it ends: 64-byte UDP frames of 10,000 flows (Lan's dissertation, §5.5.1), the classes
//! at equal rates and in random order.

use std::sync::Arc;

use catena_dataplane::counter::Counter;
use catena_dataplane::{Context, Module, Pulled, Source};
use catena_packet::random::Random;
use catena_packet::wire::checksum::checksum;
use catena_packet::{BATCH, Batch};

use crate::works::PORT;

/// Flows of all classes together, about.
const FLOWS: usize = 10_000;
/// Bytes of a frame.
const BYTES: usize = 64;

/// A port that always has a full batch; each packet's mark is its class.
pub struct Port {
    frames: Box<[Frame]>,
    next: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Frame {
    bytes: [u8; BYTES],
    class: u32,
}

impl Port {
    /// Make one for so many classes.
    pub fn new(classes: usize, seed: u64) -> Self {
        let classes = classes.max(1);
        let mut random = Random::new(seed);
        let mut frames: Vec<Frame> =
            (0..FLOWS / classes * classes).map(|flow| frame(flow % classes, &mut random)).collect();
        for i in (1..frames.len()).rev() {
            frames.swap(i, random.below(i as u32 + 1) as usize);
        }
        Port { frames: frames.into(), next: 0 }
    }
}

/// A frame of a class, from a random host inside to a random one of the class's net.
fn frame(class: usize, random: &mut Random) -> Frame {
    let mut bytes = [0; BYTES];
    let bits = random.bits().to_le_bytes();
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    bytes[12..14].copy_from_slice(&[8, 0]);
    let total = (BYTES - 14) as u8;
    bytes[14..26].copy_from_slice(&[0x45, 0, 0, total, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    bytes[26..30].copy_from_slice(&[100, 64 | bits[0] & 63, bits[1], bits[2]]);
    bytes[30..34].copy_from_slice(&[203, class as u8, bits[3], bits[4]]);
    let sum = checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes[34..36].copy_from_slice(&[bits[5] | 4, bits[6]]);
    bytes[36..38].copy_from_slice(&(PORT + class as u16).to_be_bytes());
    // Without a checksum (RFC 768), so that no function needs to mend it.
    bytes[38..40].copy_from_slice(&[0, total - 20]);
    Frame { bytes, class: class as u32 }
}

impl Source for Port {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        cx.pool().take_batch(batch, BATCH, BYTES);
        for packet in batch.iter_mut() {
            let frame = &self.frames[self.next];
            self.next = if self.next + 1 == self.frames.len() { 0 } else { self.next + 1 };
            if let Some(start) = packet.data_mut().first_chunk_mut() {
                *start = frame.bytes;
            }
            packet.meta_mut().mark = frame.class;
        }
        if batch.is_empty() { Pulled::Idle } else { Pulled::More }
    }
}

/// Takes every packet and counts it for its class.
pub struct Tally(Arc<[Counter]>);

impl Tally {
    /// Make one, and the counters of so many classes.
    pub fn new(classes: usize) -> (Self, Arc<[Counter]>) {
        let counters: Arc<[Counter]> = (0..classes).map(|_| Counter::default()).collect();
        (Tally(counters.clone()), counters)
    }
}

impl Module for Tally {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        for packet in batch.iter() {
            if let Some(counter) = self.0.get(packet.meta().mark as usize) {
                counter.add(1);
            }
        }
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}
