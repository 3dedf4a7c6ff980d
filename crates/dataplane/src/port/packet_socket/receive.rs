//! The receiving side.

use std::cell::Cell;
use std::io;

use catena_packet::{BATCH, Batch, Packet, SMALL_BYTES};

use super::messages::{Frame, Incoming, LONGEST, Undone};
use super::sys::Socket;
use crate::module::{Context, Pulled, Source};
use crate::port::offload;
use crate::port::segment::{Kind, Segments};

/// Fruitless pulls while the interface is down between two looks whether it still exists.
const LOOK_EVERY: u32 = 1024;

/// Gives the frames that an interface receives, as they would be on the wire.
///
/// Checksums that their sender left to the interface are completed, super-packets are cut into segments,
/// and VLAN tags that the system took out are put back. Arrival is the context's time, so that the
/// pipeline's time must be [`Wall`](crate::pipeline::Time::Wall). An interface that goes down gives
/// nothing until it is up again; when it is removed the source is done and has an error.
///
/// Gauges: `frames` received; `super-packets` among them and their `segments`; and what was lost:
/// `dropped by the kernel` (the socket's buffer was full), `no packet buffer left`,
/// `longer than a packet buffer`, `offload that cannot be undone` (a tunnel's super-packets).
pub struct PacketSocketIn {
    socket: Socket,
    interface: Box<str>,
    port: u16,
    incoming: Box<Incoming>,
    /// Buffers that frames are received into.
    posted: [Option<Packet>; BATCH],
    /// The next frame of `incoming` to give.
    next: usize,
    /// How that frame is cut, and its next segment.
    cutting: Option<(Segments, usize)>,
    counts: Counts,
    kernel_drops: Cell<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    /// Fruitless pulls since the interface went down.
    Down(u32),
    Gone,
}

#[derive(Default)]
struct Counts {
    frames: u64,
    supers: u64,
    segments: u64,
    no_buffer: u64,
    too_long: u64,
    not_undone: u64,
}

impl PacketSocketIn {
    pub(super) fn new(socket: Socket, interface: &str, port: u16) -> Self {
        PacketSocketIn {
            socket,
            interface: interface.into(),
            port,
            incoming: Incoming::new(),
            posted: [const { None }; BATCH],
            next: 0,
            cutting: None,
            counts: Counts::default(),
            kernel_drops: Cell::new(0),
            state: State::Up,
        }
    }

    /// Receive frames; returns whether there are any.
    fn receive(&mut self, cx: &mut Context) -> bool {
        self.next = 0;
        let mut fresh = Batch::new();
        let wanted = self.posted.iter().filter(|slot| slot.is_none()).count();
        cx.pool().take_batch(&mut fresh, wanted, SMALL_BYTES);
        for (slot, packet) in self.posted.iter_mut().filter(|slot| slot.is_none()).zip(fresh.drain()) {
            *slot = Some(packet);
        }
        match self.incoming.receive(self.socket.fd(), &mut self.posted) {
            Ok(received) => {
                self.state = State::Up;
                self.counts.frames += received as u64;
                received > 0
            }
            Err(error) => {
                self.explain(&error);
                false
            }
        }
    }

    #[cold]
    fn explain(&mut self, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENETDOWN) => self.state = State::Down(0),
            // One frame whose offload the virtio-net header cannot express; the system has dropped it.
            Some(libc::EINVAL) => self.counts.not_undone += 1,
            _ => {}
        }
        if let State::Down(pulls) = &mut self.state {
            *pulls += 1;
            if pulls.is_multiple_of(LOOK_EVERY) && matches!(self.socket.hardware(), Ok(None)) {
                self.state = State::Gone;
            }
        }
    }

    /// Give the next frame, or as much of it as there is room for in the batch.
    #[inline]
    fn give(&mut self, cx: &mut Context, batch: &mut Batch) {
        let frame = self.incoming.frame(self.next);
        let Undone { flags, gso_type, .. } = frame.undone;
        let plain = !frame.cut && gso_type == Undone::GSO_NONE && frame.len <= SMALL_BYTES;
        if !plain {
            return self.give_long(cx, batch, &frame);
        }
        let index = self.next;
        self.next += 1;
        let Some(mut packet) = self.posted[index].take() else { return };
        packet.truncate(frame.len);
        if flags & Undone::NEEDS_CHECKSUM == 0 && frame.tag.is_none() {
            self.push(cx, batch, packet);
        } else {
            self.finish(cx, batch, packet, &frame);
        }
    }

    #[inline(always)]
    fn push(&self, cx: &Context, batch: &mut Batch, mut packet: Packet) {
        let meta = packet.meta_mut();
        meta.port = self.port;
        meta.arrival = cx.now();
        batch.push(packet);
    }

    /// Do what is left to do for a whole packet.
    fn finish(&mut self, cx: &mut Context, batch: &mut Batch, mut packet: Packet, frame: &Frame) {
        let Undone { flags, checksum_start, checksum_offset, .. } = frame.undone;
        let mut done = true;
        if flags & Undone::NEEDS_CHECKSUM != 0 {
            let (start, offset) = (usize::from(checksum_start), usize::from(checksum_offset));
            done = offload::complete_checksum(packet.data_mut(), start, offset);
        }
        if let Some(tag) = frame.tag {
            done = done && offload::put_tag(&mut packet, tag);
        }
        if done {
            self.push(cx, batch, packet);
        } else {
            self.counts.not_undone += 1;
            cx.pool().put(packet);
        }
    }

    /// Give a frame that is longer than a small packet, or to be cut.
    #[cold]
    fn give_long(&mut self, cx: &mut Context, batch: &mut Batch, frame: &Frame) {
        let index = self.next;
        let whole = frame.undone.gso_type == Undone::GSO_NONE;
        if frame.cut || frame.len > LONGEST {
            self.counts.too_long += 1;
            self.next += 1;
            return;
        }
        if self.cutting.is_none()
            && let Some(packet) = &self.posted[index]
        {
            self.incoming.join(index, packet);
        }
        if !whole {
            return self.cut(cx, batch, frame);
        }
        self.next += 1;
        match cx.pool().take(frame.len) {
            Some(mut packet) => {
                packet.data_mut().copy_from_slice(self.incoming.joined(index, frame.len));
                self.finish(cx, batch, packet, frame);
            }
            None => self.counts.no_buffer += 1,
        }
    }

    /// Give segments of a super-packet until it ends or the batch is full.
    fn cut(&mut self, cx: &mut Context, batch: &mut Batch, frame: &Frame) {
        let bytes = self.incoming.joined(self.next, frame.len);
        let Some((segments, mut at)) = self.cutting.take().or_else(|| Some((plan(bytes, frame.undone)?, 0))) else {
            self.counts.not_undone += 1;
            self.next += 1;
            return;
        };
        self.counts.supers += u64::from(at == 0);
        while at < segments.count() && !batch.is_full() {
            match cx.pool().take(segments.len(at)) {
                Some(mut packet) => {
                    segments.write(bytes, at, packet.data_mut());
                    let tagged = frame.tag.is_none_or(|tag| offload::put_tag(&mut packet, tag));
                    debug_assert!(tagged, "a fresh packet has head-room");
                    self.counts.segments += 1;
                    self.push(cx, batch, packet);
                }
                None => self.counts.no_buffer += 1,
            }
            at += 1;
        }
        if at < segments.count() {
            self.cutting = Some((segments, at));
        } else {
            self.next += 1;
        }
    }

    /// Return how many frames found the socket's buffer full, ever.
    fn kernel_drops(&self) -> u64 {
        let fresh = self.socket.dropped().map_or(0, u64::from);
        self.kernel_drops.set(self.kernel_drops.get() + fresh);
        self.kernel_drops.get()
    }
}

/// Plan how to cut a super-packet as its sender wants it.
fn plan(bytes: &[u8], undone: Undone) -> Option<Segments> {
    let kind = match undone.gso_type & !Undone::GSO_ECN {
        Undone::GSO_TCPV4 | Undone::GSO_TCPV6 => Kind::Tcp,
        Undone::GSO_UDP_L4 => Kind::Udp,
        _ => return None,
    };
    // The checksum begins where the header does whose segments are asked for; of a tunnel, the inner one.
    if undone.flags & Undone::NEEDS_CHECKSUM == 0 {
        return None;
    }
    Segments::of(bytes, kind, usize::from(undone.checksum_start), usize::from(undone.gso_size))
}

impl Source for PacketSocketIn {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        if self.next == self.incoming.received() && !self.receive(cx) {
            return if self.state == State::Gone { Pulled::Done } else { Pulled::Idle };
        }
        while self.next < self.incoming.received() && !batch.is_full() {
            self.give(cx, batch);
        }
        Pulled::More
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let Counts { frames, supers, segments, no_buffer, too_long, not_undone } = self.counts;
        tell("frames", frames);
        for (name, count) in [
            ("super-packets", supers),
            ("segments", segments),
            ("dropped by the kernel", self.kernel_drops()),
            ("no packet buffer left", no_buffer),
            ("longer than a packet buffer", too_long),
            ("offload that cannot be undone", not_undone),
        ] {
            if count > 0 {
                tell(name, count);
            }
        }
    }

    fn error(&self) -> Option<String> {
        (self.state == State::Gone).then(|| format!("interface {} was removed", self.interface))
    }
}
