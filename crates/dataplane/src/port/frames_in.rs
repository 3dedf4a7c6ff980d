//! Packets from memory.

use catena_packet::{BATCH, Batch, JUMBO_BYTES, Way};

use crate::module::{Context, Pulled, Source};

/// Gives frames of a program's own as fast as they are asked for; their times become the context's.
///
/// A frame is its time in ns since 1970 and its bytes, from the Ethernet header on. One that finds no packet buffer waits for the
/// next pull.
///
/// Gauges: `longer than a packet buffer` counts frames that became no packet.
pub struct FramesIn<I> {
    frames: I,
    port: u16,
    waiting: Option<(u64, Vec<u8>)>,
    too_long: u64,
}

impl<I: Iterator<Item = (u64, Vec<u8>)>> FramesIn<I> {
    /// Give frames that come in by a port: 0 is side `in` of the chains, 1 side `out`.
    pub fn new(frames: impl IntoIterator<IntoIter = I>, port: u16) -> Self {
        FramesIn { frames: frames.into_iter(), port, waiting: None, too_long: 0 }
    }
}

impl<I: Iterator<Item = (u64, Vec<u8>)> + Send + 'static> Source for FramesIn<I> {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        while batch.len() < BATCH {
            let Some((time, bytes)) = self.waiting.take().or_else(|| self.frames.next()) else { return Pulled::Done };
            if bytes.len() > JUMBO_BYTES {
                self.too_long += 1;
                continue;
            }
            let Some(mut packet) = cx.pool().take(bytes.len()) else {
                self.waiting = Some((time, bytes));
                return if batch.is_empty() { Pulled::Idle } else { Pulled::More };
            };
            packet.fill(&bytes);
            cx.set_now(time);
            let now = cx.now();
            let meta = packet.meta_mut();
            meta.way = Way::by(self.port);
            meta.arrival = if time == 0 { now } else { time };
            meta.came_at(now);
            batch.push(packet);
        }
        Pulled::More
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        if self.too_long > 0 {
            tell("longer than a packet buffer", self.too_long);
        }
    }

    fn is_recorded(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_packet::Depot;

    #[test]
    fn frames_are_given_in_their_order_with_their_times() {
        let depot = Depot::map(256, 16).expect("there is memory");
        let mut cx = Context::new(&depot, 1);
        let frame = |n: u8| (1_000 + u64::from(n), vec![n; 60]);
        let too_long = (1_000, vec![0; JUMBO_BYTES + 1]);
        let mut source = FramesIn::new((0..20).map(frame).chain([too_long]).chain((20..40).map(frame)), 1);
        let (mut batch, mut seen) = (Batch::new(), Vec::new());
        loop {
            let pulled = source.pull(&mut cx, &mut batch);
            seen.extend(batch.iter().map(|packet| (packet.meta().arrival, packet.data().to_vec())));
            assert!(batch.iter().all(|packet| packet.meta().way == Way::by(1)));
            cx.pool().put_batch(&mut batch);
            if pulled == Pulled::Done {
                break;
            }
        }
        assert_eq!(seen, (0..40).map(frame).collect::<Vec<_>>());
        assert_eq!(cx.now(), 1_039);
        source.gauges(&mut |name, count| assert_eq!((name, count), ("longer than a packet buffer", 1)));
    }

    #[test]
    fn a_frame_without_a_buffer_waits() {
        let depot = Depot::map(128, 16).expect("there is memory");
        let mut cx = Context::new(&depot, 1);
        let mut source = FramesIn::new((0..200u8).map(|n| (1, vec![n; 60])), 0);
        let (mut held, mut batch) = (Vec::new(), Batch::new());
        let mut pulled = Pulled::More;
        while pulled == Pulled::More {
            pulled = source.pull(&mut cx, &mut batch);
            held.extend(batch.drain());
        }
        assert_eq!(pulled, Pulled::Idle);
        let before = held.len();
        held.into_iter().for_each(|packet| cx.pool().put(packet));
        let mut after = 0;
        while source.pull(&mut cx, &mut batch) == Pulled::More {
            after += batch.len();
            cx.pool().put_batch(&mut batch);
        }
        after += batch.len();
        cx.pool().put_batch(&mut batch);
        assert_eq!(before + after, 200);
    }
}
