//! The receiving side.

use std::cell::Cell;

use catena_packet::{Batch, Packet, Way};

use super::ring::{Fit, Long, Ring, Undone};
use super::sys::Socket;
use crate::module::{Context, Pulled, Source};
use crate::port::offload;
use crate::port::segment::{Kind, Segments};

/// Fruitless pulls in a row between two looks whether the interface still exists.
const LOOK_EVERY: u32 = 4096;

/// Gives the frames that an interface receives, as they would be on the wire.
///
/// Checksums that their sender left to the interface are completed, super-packets are cut into segments,
/// and VLAN tags that the system took out are put back. Arrival is the context's time, so that the
/// pipeline's time must be [`Wall`](crate::pipeline::Time::Wall). An interface that goes down gives
/// nothing until it is up again; when it is removed the source is done and has an error.
///
/// Gauges: `frames` received; `super-packets` among them and their `segments`; and what was lost:
/// `dropped by the kernel` (there was no room for it to wait), `no packet buffer left`,
/// `longer than a packet buffer`, `offload that cannot be undone` (a tunnel's super-packets).
pub struct PacketSocketIn {
    ring: Ring,
    long: Long,
    socket: Socket,
    interface: Box<str>,
    port: u16,
    /// How the super-packet in `long` is cut, its next segment, its tag.
    cutting: Option<(Segments, usize, Tag)>,
    counts: Counts,
    kernel_drops: Cell<u64>,
    fruitless: u32,
    gone: bool,
}

type Tag = Option<[u8; 4]>;

#[derive(Default)]
struct Counts {
    frames: u64,
    supers: u64,
    segments: u64,
    lost: u64,
    no_buffer: u64,
    too_long: u64,
    not_undone: u64,
}

impl PacketSocketIn {
    /// Make the source of a socket with its ring.
    pub(super) fn new(socket: Socket, ring: Ring, interface: &str, port: u16) -> Self {
        PacketSocketIn {
            ring,
            long: Long::new(),
            socket,
            interface: interface.into(),
            port,
            cutting: None,
            counts: Counts::default(),
            kernel_drops: Cell::new(0),
            fruitless: 0,
            gone: false,
        }
    }

    /// Receive the frame of `len` bytes that its slot has no room for; returns whether it came.
    fn receive_long(&mut self, len: usize) -> bool {
        // Frames wait in the slots' order; one of another length is of a slot that was given up. And an
        // interface that went down and came up again leaves an error in the way, once.
        const TRIES: usize = 64;
        let mut errors = 0;
        for _ in 0..TRIES {
            match self.long.receive(self.socket.fd()) {
                Ok(received) if received == len => return true,
                Ok(_) => {}
                Err(_) if errors == 0 => errors += 1,
                Err(_) => return false,
            }
        }
        false
    }

    /// Give a frame that its slot has no room for.
    #[cold]
    fn give_long(&mut self, cx: &mut Context, batch: &mut Batch, len: usize, tag: Tag) {
        if !self.receive_long(len) {
            self.counts.lost += 1;
        } else if self.long.bytes().len() < len {
            self.counts.too_long += 1;
        } else if self.long.undone().gso_type == Undone::GSO_NONE {
            give(cx, batch, &mut self.counts, self.long.bytes(), self.long.undone(), tag, self.port);
        } else {
            self.start_cutting(cx, batch, tag);
        }
    }

    /// Cut the super-packet in `long`.
    #[cold]
    fn start_cutting(&mut self, cx: &mut Context, batch: &mut Batch, tag: Tag) {
        match plan(self.long.bytes(), self.long.undone()) {
            Some(segments) => {
                self.counts.supers += 1;
                self.cutting = Some((segments, 0, tag));
                self.cut(cx, batch);
            }
            None => self.counts.not_undone += 1,
        }
    }

    /// Give segments of the super-packet in hand until it ends or the batch is full.
    #[cold]
    fn cut(&mut self, cx: &mut Context, batch: &mut Batch) {
        let Some((segments, mut at, tag)) = self.cutting.take() else { return };
        let bytes = self.long.bytes();
        while at < segments.count() && !batch.is_full() {
            match cx.pool().take(segments.len(at)) {
                Some(mut packet) => {
                    segments.write(bytes, at, packet.data_mut());
                    self.counts.segments += 1;
                    finish(cx, batch, &mut self.counts, packet, tag, self.port);
                }
                None => self.counts.no_buffer += 1,
            }
            at += 1;
        }
        if at < segments.count() {
            self.cutting = Some((segments, at, tag));
        }
    }

    #[cold]
    fn idle(&mut self) -> Pulled {
        self.fruitless = self.fruitless.wrapping_add(1);
        if self.fruitless.is_multiple_of(LOOK_EVERY) && matches!(self.socket.hardware(), Ok(None)) {
            self.gone = true;
        }
        if self.gone { Pulled::Done } else { Pulled::Idle }
    }

    /// Return how many frames found no room to wait, ever.
    fn kernel_drops(&self) -> u64 {
        let fresh = self.socket.dropped().map_or(0, u64::from);
        self.kernel_drops.set(self.kernel_drops.get() + fresh);
        self.kernel_drops.get()
    }
}

/// Give a whole frame.
#[inline(always)]
fn give(cx: &mut Context, batch: &mut Batch, counts: &mut Counts, bytes: &[u8], undone: Undone, tag: Tag, port: u16) {
    let Some(mut packet) = cx.pool().take(bytes.len()) else {
        counts.no_buffer += 1;
        return;
    };
    packet.data_mut().copy_from_slice(bytes);
    if undone.flags & Undone::NEEDS_CHECKSUM != 0 {
        let (start, offset) = (usize::from(undone.checksum_start), usize::from(undone.checksum_offset));
        if !offload::complete_checksum(packet.data_mut(), start, offset) {
            counts.not_undone += 1;
            cx.pool().put(packet);
            return;
        }
    }
    finish(cx, batch, counts, packet, tag, port);
}

/// Put a packet's tag back, and the packet into the batch.
#[inline(always)]
fn finish(cx: &mut Context, batch: &mut Batch, counts: &mut Counts, mut packet: Packet, tag: Tag, port: u16) {
    if let Some(tag) = tag
        && !offload::put_tag(&mut packet, tag)
    {
        counts.not_undone += 1;
        cx.pool().put(packet);
        return;
    }
    let meta = packet.meta_mut();
    meta.way = Way::by(port);
    meta.arrival = cx.now();
    batch.push(packet);
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
        if self.cutting.is_some() {
            self.cut(cx, batch);
        }
        while !batch.is_full() {
            let Some(slot) = self.ring.peek() else { break };
            self.counts.frames += 1;
            let (tag, fit, len, gso) = (slot.tag, slot.fit, slot.len, slot.undone.gso_type);
            match fit {
                Fit::Whole if gso == Undone::GSO_NONE => {
                    give(cx, batch, &mut self.counts, slot.bytes, slot.undone, tag, self.port);
                }
                Fit::Whole => self.long.keep(slot.bytes, slot.undone),
                Fit::Waits => {}
                Fit::Lost => self.counts.lost += 1,
            }
            self.ring.release();
            match fit {
                Fit::Whole if gso != Undone::GSO_NONE => self.start_cutting(cx, batch, tag),
                Fit::Waits => self.give_long(cx, batch, len, tag),
                Fit::Whole | Fit::Lost => {}
            }
        }
        if batch.is_empty() {
            return self.idle();
        }
        self.fruitless = 0;
        Pulled::More
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let Counts { frames, supers, segments, lost, no_buffer, too_long, not_undone } = self.counts;
        tell("frames", frames);
        for (name, count) in [
            ("super-packets", supers),
            ("segments", segments),
            ("dropped by the kernel", self.kernel_drops() + lost),
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
        self.gone.then(|| format!("interface {} was removed", self.interface))
    }
}
