//! The ring that the system puts received frames into (packet(7), `PACKET_RX_RING`, version 2): no call
//! is needed to see whether there are any, nor to take them.
//!
//! A slot holds a frame of up to about 1,970 bytes; of a longer one it tells that the whole frame waits
//! to be received by [`Long`], in the same order.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use catena_packet::buffer::prefetch;
use catena_packet::{JUMBO_BYTES, Mapping};
use libc::tpacket2_hdr;

use super::sys::Socket;

const SLOT_BYTES: usize = 2048;
/// Slots: 8 ms of traffic at half a million packets a second, to outlast a worker's other tasks and the
/// scheduler's whims.
const SLOTS: usize = 4096;
const BLOCK_BYTES: usize = 1 << 18;
const RING_BYTES: usize = SLOTS * SLOT_BYTES;

/// Length of the virtio-net header (virtio 1.2 §5.1.6, without `num_buffers`), in bytes.
const VNET_BYTES: usize = 10;

/// What a frame's sender left to its interface: a virtio-net header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undone {
    pub(super) flags: u8,
    pub(super) gso_type: u8,
    pub(super) gso_size: u16,
    pub(super) checksum_start: u16,
    pub(super) checksum_offset: u16,
}

impl Undone {
    /// The checksum holds only the pseudo header's sum.
    pub(super) const NEEDS_CHECKSUM: u8 = 1;
    /// Segmentation: none, TCP over IPv4, TCP over IPv6, UDP; a flag says that ECN is in use.
    pub(super) const GSO_NONE: u8 = 0;
    pub(super) const GSO_TCPV4: u8 = 1;
    pub(super) const GSO_TCPV6: u8 = 4;
    pub(super) const GSO_UDP_L4: u8 = 5;
    pub(super) const GSO_ECN: u8 = 0x80;

    /// The header is in the byte order of the machine.
    fn read(header: [u8; VNET_BYTES]) -> Self {
        let [flags, gso_type, _, _, a, b, c, d, e, f] = header;
        Undone {
            flags,
            gso_type,
            gso_size: u16::from_ne_bytes([a, b]),
            checksum_start: u16::from_ne_bytes([c, d]),
            checksum_offset: u16::from_ne_bytes([e, f]),
        }
    }
}

/// A frame as the ring has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'a> {
    pub(super) undone: Undone,
    /// The VLAN tag that the system took out: type and control information.
    pub(super) tag: Option<[u8; 4]>,
    /// The frame, or as much of it as there is room for.
    pub(super) bytes: &'a [u8],
    /// The whole frame's length in bytes.
    pub(super) len: usize,
    pub(super) fit: Fit,
}

/// Whether a frame fits its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Whole,
    /// It is longer, and waits to be received.
    Waits,
    /// It is longer, and there was no room for it to wait.
    Lost,
}

/// The ring, shared with the system.
pub(super) struct Ring {
    memory: Mapping,
    next: usize,
}

impl Ring {
    /// Set up the ring of a socket that is not bound yet.
    pub(super) fn map(socket: &Socket) -> io::Result<Ring> {
        socket.set_ring(&libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: SLOTS as u32,
        })?;
        Ok(Ring { memory: Mapping::shared(RING_BYTES, socket.fd())?, next: 0 })
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> *mut u8 {
        // SAFETY: the mapping has `SLOTS` slots.
        unsafe { self.memory.start().as_ptr().add(index % SLOTS * SLOT_BYTES) }
    }

    #[inline(always)]
    fn status(&self) -> &AtomicU32 {
        const _: () = assert!(std::mem::offset_of!(tpacket2_hdr, tp_status) == 0);
        // SAFETY: a slot begins with its status, which is aligned, lives as long as the mapping, and is
        // shared with the system as an atomic.
        unsafe { AtomicU32::from_ptr(self.slot(self.next).cast()) }
    }

    /// Return the next frame, if there is one. It stays the next until [`Self::release`].
    #[inline]
    pub(super) fn peek(&self) -> Option<Slot<'_>> {
        // Pairs with the system's store: what it wrote before is seen.
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // The header's line and that of the frame's first bytes.
        let ahead = self.slot(self.next + 4);
        prefetch(ahead);
        prefetch(ahead.wrapping_add(64));
        let slot = self.slot(self.next);
        // SAFETY: the status says that the slot is ours: it begins with a whole, aligned header.
        let header = unsafe { &*slot.cast::<tpacket2_hdr>() };
        // SAFETY: as above; the system does not write to the slot until its status is given back, which
        // `release` does with the ring borrowed mutably.
        let bytes = unsafe { std::slice::from_raw_parts(slot, SLOT_BYTES) };
        let start = usize::from(header.tp_mac);
        let (kept, len) = (header.tp_snaplen as usize, header.tp_len as usize);
        let fit = match kept == len {
            true => Fit::Whole,
            false if status & libc::TP_STATUS_COPY != 0 => Fit::Waits,
            false => Fit::Lost,
        };
        let front = start.checked_sub(VNET_BYTES).and_then(|at| bytes.get(at..start)?.first_chunk());
        Some(Slot {
            undone: Undone::read(*front.unwrap_or(&[0; VNET_BYTES])),
            tag: tag(status, header),
            bytes: bytes.get(start..start + kept).unwrap_or(&[]),
            len,
            fit,
        })
    }

    /// Give the next frame's slot back.
    #[inline]
    pub(super) fn release(&mut self) {
        // Pairs with the system's load: our reads are done before it writes.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
    }
}

#[inline(always)]
fn tag(status: u32, header: &tpacket2_hdr) -> Option<[u8; 4]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if known { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), header.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}

/// Room for one frame that outlives its slot or is longer than it.
pub(super) struct Long {
    /// The virtio-net header and the frame.
    room: Box<[u8]>,
    undone: Undone,
    len: usize,
}

impl Long {
    pub(super) fn new() -> Self {
        let undone = Undone::read([0; VNET_BYTES]);
        Long { room: vec![0; VNET_BYTES + JUMBO_BYTES].into_boxed_slice(), undone, len: 0 }
    }

    /// Receive the next frame that waits; returns its length, which may be more than is kept of it
    /// ([`Self::bytes`] are then none).
    ///
    /// # Errors
    /// The system's; `WouldBlock` when none waits.
    pub(super) fn receive(&mut self, fd: RawFd) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the room is ours and has the length given.
        let got = unsafe { libc::recv(fd, self.room.as_mut_ptr().cast(), self.room.len(), flags) };
        // The frame's own length, even if that is more than the room.
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        let whole = (VNET_BYTES..=self.room.len()).contains(&got);
        self.len = if whole { got - VNET_BYTES } else { 0 };
        self.undone = Undone::read(*self.room.first_chunk().unwrap_or(&[0; VNET_BYTES]));
        Ok(got.saturating_sub(VNET_BYTES))
    }

    /// Keep a frame that did fit its slot.
    pub(super) fn keep(&mut self, bytes: &[u8], undone: Undone) {
        self.room[VNET_BYTES..][..bytes.len()].copy_from_slice(bytes);
        self.undone = undone;
        self.len = bytes.len();
    }

    pub(super) fn undone(&self) -> Undone {
        self.undone
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.room[VNET_BYTES..][..self.len]
    }
}
