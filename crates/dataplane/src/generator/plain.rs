//! The fast way, for flows without end and packets all of one length: the beginnings of all frames are
//! made beforehand, a packet is one copy of whole cache lines.

use catena_packet::buffer::prefetch;
use catena_packet::{BATCH, Batch, Packet};

use super::frame::{Frames, Say, headers};
use super::pace::Pace;
use super::spec::{Order, Spec};
use super::tuple::{Proto, Tuples};
use crate::module::Context;

/// Frames that the processor is asked for before they are copied.
const AHEAD: usize = 24;

/// The first bytes of a frame.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Beginning<const BYTES: usize>([u8; BYTES]);

/// The frames of all flows, up to `BYTES` of each; behind those all are alike.
pub(super) struct Plain<const BYTES: usize> {
    beginnings: Box<[Beginning<BYTES>]>,
    /// What follows the beginning, in frames that are longer.
    rest: Box<[u8]>,
    /// The length of every frame, in bytes, before it is cut.
    length: usize,
    /// The length that each is cut to, if any is.
    lengths: Option<Box<[u8]>>,
    order: Order,
    next: usize,
    /// The flows of the next batch, in random order.
    picks: [u32; BATCH],
    random: u64,
}

/// Return the longest that a frame of this length gets where headers need more, in bytes.
pub(super) fn longest(spec: &Spec, length: usize) -> usize {
    let mix = [(Proto::Udp, spec.mix.udp), (Proto::Tcp, spec.mix.tcp), (Proto::Icmp, spec.mix.icmp)];
    let used = mix.iter().filter(|(_, weight)| *weight > 0.0);
    used.map(|(proto, _)| headers(*proto, spec.ipv6 > 0.0)).fold(length, usize::max)
}

impl<const BYTES: usize> Plain<BYTES> {
    /// Make the frames of `length` bytes.
    pub fn new(spec: &Spec, frames: &Frames, tuples: &Tuples, length: usize) -> Self {
        let longest = longest(spec, length).max(BYTES);
        let mut whole = vec![0; longest];
        let mut lengths = Vec::new();
        let beginnings = (0..spec.flows).map(|flow| {
            let tuple = tuples.get(flow, 0);
            let own = length.max(headers(tuple.proto, tuple.v6));
            let say = match tuple.proto {
                Proto::Tcp => Frames::plain_segment(&tuple, tuples.bits(flow, 0), own),
                _ => Say::Datagram,
            };
            frames.write(&mut whole[..own], &tuple, &say);
            if longest == BYTES {
                lengths.push(own as u8);
            }
            let mut beginning = Beginning([0; BYTES]);
            beginning.0.copy_from_slice(&whole[..BYTES]);
            beginning
        });
        let beginnings = beginnings.collect();
        let cut = lengths.iter().any(|own| usize::from(*own) != longest);
        let mut plain = Plain {
            beginnings,
            rest: whole[BYTES..].into(),
            length: longest,
            lengths: cut.then(|| lengths.into()),
            order: spec.order,
            next: 0,
            picks: [0; BATCH],
            random: spec.seed,
        };
        plain.pick();
        plain
    }

    /// Add up to `count` packets to the batch, as far as their time has come.
    #[inline]
    pub fn pull(&mut self, cx: &mut Context, batch: &mut Batch, count: usize, pace: &mut Pace) {
        let count = pace.room(cx, count, self.length);
        cx.pool().take_batch(batch, count, self.length);
        match self.order {
            Order::RoundRobin => self.in_turn(batch),
            Order::Random => self.at_random(batch),
        }
        pace.stamp(batch);
    }

    #[inline]
    fn in_turn(&mut self, batch: &mut Batch) {
        let mut packets = batch.as_mut_slice();
        while !packets.is_empty() {
            let beginnings = &self.beginnings[self.next..];
            let run = packets.len().min(beginnings.len());
            let (now, later) = packets.split_at_mut(run);
            for (packet, beginning) in now.iter_mut().zip(beginnings) {
                prefetch_all(std::ptr::from_ref(beginning).wrapping_add(AHEAD));
                self.copy(packet, beginning);
            }
            if let Some(lengths) = &self.lengths {
                for (packet, length) in now.iter_mut().zip(&lengths[self.next..]) {
                    packet.truncate(usize::from(*length));
                }
            }
            self.next = if run == beginnings.len() { 0 } else { self.next + run };
            packets = later;
        }
    }

    #[inline]
    fn at_random(&mut self, batch: &mut Batch) {
        for (packet, pick) in batch.iter_mut().zip(self.picks) {
            let pick = pick as usize;
            self.copy(packet, &self.beginnings[pick]);
            if let Some(lengths) = &self.lengths {
                packet.truncate(usize::from(lengths[pick]));
            }
        }
        self.pick();
    }

    /// Pick the flows of the next batch, and ask the processor for their frames.
    #[inline]
    fn pick(&mut self) {
        let flows = self.beginnings.len() as u64;
        for pick in &mut self.picks {
            // Knuth's MMIX: full period; the high bits are the good ones.
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *pick = (((self.random >> 32) * flows) >> 32) as u32;
            prefetch_all(self.beginnings.as_ptr().wrapping_add(*pick as usize));
        }
    }

    #[inline(always)]
    fn copy(&self, packet: &mut Packet, beginning: &Beginning<BYTES>) {
        // Shorter frames are cut only after: a copy of a fixed length is two or four moves.
        if let Some((start, rest)) = packet.data_mut().split_first_chunk_mut::<BYTES>() {
            *start = beginning.0;
            if !rest.is_empty() {
                rest.copy_from_slice(&self.rest);
            }
        }
    }
}

/// Ask for all cache lines of a beginning.
#[inline(always)]
fn prefetch_all<const BYTES: usize>(beginning: *const Beginning<BYTES>) {
    for line in (0..BYTES).step_by(64) {
        prefetch(beginning.cast::<u8>().wrapping_add(line));
    }
}
