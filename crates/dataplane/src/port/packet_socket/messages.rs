//! Batches of frames in and out in one call of the system (recvmmsg(2), sendmmsg(2)).
//!
//! A frame comes in three pieces: a virtio-net header that says what its sender left undone, then the
//! bytes, into the packet's own buffer as far as they fit, the rest behind it in a side area.

use std::io;
use std::os::fd::RawFd;
use std::ptr;

use catena_packet::{BATCH, JUMBO_BYTES, Packet, SMALL_BYTES};
use libc::{c_uint, iovec, mmsghdr};

/// Length of the virtio-net header (virtio 1.2 §5.1.6, without `num_buffers`), in bytes.
const VNET_BYTES: usize = 10;

/// What a frame's sender left to its interface (virtio 1.2 §5.1.6).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Undone {
    pub(super) flags: u8,
    pub(super) gso_type: u8,
    pub(super) header_bytes: u16,
    pub(super) gso_size: u16,
    pub(super) checksum_start: u16,
    pub(super) checksum_offset: u16,
}

const _: () = assert!(size_of::<Undone>() == VNET_BYTES);

impl Undone {
    /// The checksum holds only the pseudo header's sum.
    pub(super) const NEEDS_CHECKSUM: u8 = 1;
    /// Segmentation: none, TCP over IPv4, TCP over IPv6, UDP; a flag says that ECN is in use.
    pub(super) const GSO_NONE: u8 = 0;
    pub(super) const GSO_TCPV4: u8 = 1;
    pub(super) const GSO_TCPV6: u8 = 4;
    pub(super) const GSO_UDP_L4: u8 = 5;
    pub(super) const GSO_ECN: u8 = 0x80;
}

/// Room for the one control message that is asked for.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control {
    header: libc::cmsghdr,
    auxiliary: libc::tpacket_auxdata,
    padding: [u8; 4],
}

/// A frame that came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Length in bytes.
    pub(super) len: usize,
    /// The frame was longer than all the room; the rest is lost.
    pub(super) cut: bool,
    pub(super) undone: Undone,
    /// The VLAN tag that the system took out: type and control information.
    pub(super) tag: Option<[u8; 4]>,
}

/// Bytes of the longest frame that is received whole.
pub(super) const LONGEST: usize = JUMBO_BYTES;

/// Room for a batch of frames.
pub(super) struct Incoming {
    headers: [mmsghdr; BATCH],
    pieces: [[iovec; 3]; BATCH],
    undone: [Undone; BATCH],
    control: [Control; BATCH],
    /// [`LONGEST`] bytes for each frame; touched only by frames longer than a small packet.
    side: Box<[u8]>,
    received: usize,
}

// SAFETY: the pointers in it are written anew by each call before the system follows them, and never
// read otherwise.
unsafe impl Send for Incoming {}

impl Incoming {
    pub(super) fn new() -> Box<Self> {
        Box::new(Incoming {
            headers: [NO_HEADER; BATCH],
            pieces: [[NO_PIECE; 3]; BATCH],
            undone: [Undone::default(); BATCH],
            // SAFETY: all of it is integers.
            control: [unsafe { std::mem::zeroed() }; BATCH],
            side: vec![0; BATCH * LONGEST].into_boxed_slice(),
            received: 0,
        })
    }

    /// Receive what is there, at most as many frames as there are packets before the first `None`.
    /// Every packet must be [`SMALL_BYTES`] long. Returns how many frames came.
    ///
    /// # Errors
    /// The system's; `WouldBlock` when there is nothing.
    pub(super) fn receive(&mut self, fd: RawFd, packets: &mut [Option<Packet>; BATCH]) -> io::Result<usize> {
        self.received = 0;
        let mut ready = 0;
        for (i, packet) in packets.iter_mut().enumerate() {
            let Some(packet) = packet else { break };
            let bytes = packet.data_mut();
            assert_eq!(bytes.len(), SMALL_BYTES);
            let rest = &mut self.side[i * LONGEST..][..LONGEST][SMALL_BYTES..];
            let undone = &raw mut self.undone[i];
            self.pieces[i] = [
                iovec { iov_base: undone.cast(), iov_len: VNET_BYTES },
                iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() },
                iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() },
            ];
            let header = &mut self.headers[i].msg_hdr;
            header.msg_iov = self.pieces[i].as_mut_ptr();
            header.msg_iovlen = 3;
            header.msg_control = (&raw mut self.control[i]).cast();
            header.msg_controllen = size_of::<Control>();
            header.msg_flags = 0;
            ready = i + 1;
        }
        if ready == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (headers, flags) = (self.headers.as_mut_ptr(), libc::MSG_DONTWAIT as _);
        // SAFETY: the first `ready` headers point to pieces and control areas of ours and to bytes of the
        // packets, all of the lengths given, which stay in place for the call.
        let got = unsafe { libc::recvmmsg(fd, headers, ready as c_uint, flags, ptr::null_mut()) };
        self.received = usize::try_from(got).map_err(|_| io::Error::last_os_error())?.min(ready);
        Ok(self.received)
    }

    /// Return how many frames the last call received.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    /// Return what is known of frame `index` of the last call.
    #[inline]
    pub(super) fn frame(&self, index: usize) -> Frame {
        let header = &self.headers[index];
        Frame {
            len: (header.msg_len as usize).saturating_sub(VNET_BYTES),
            cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            undone: self.undone[index],
            tag: self.tag(index),
        }
    }

    #[inline]
    fn tag(&self, index: usize) -> Option<[u8; 4]> {
        let control = &self.control[index];
        let is_auxiliary = self.headers[index].msg_hdr.msg_controllen >= std::mem::offset_of!(Control, padding)
            && control.header.cmsg_level == libc::SOL_PACKET
            && control.header.cmsg_type == libc::PACKET_AUXDATA;
        let auxiliary = &control.auxiliary;
        if !is_auxiliary || auxiliary.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let known = auxiliary.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let kind = if known { auxiliary.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
        let ([a, b], [c, d]) = (kind.to_be_bytes(), auxiliary.tp_vlan_tci.to_be_bytes());
        Some([a, b, c, d])
    }

    /// Bring frame `index`, whose first bytes are in `packet`, together in the side area.
    pub(super) fn join(&mut self, index: usize, packet: &Packet) {
        self.side[index * LONGEST..][..SMALL_BYTES].copy_from_slice(packet.data());
    }

    /// Return the bytes of frame `index` after [`Self::join`].
    pub(super) fn joined(&self, index: usize, len: usize) -> &[u8] {
        &self.side[index * LONGEST..][..len]
    }
}

/// Room to send a batch of packets.
pub(super) struct Outgoing {
    headers: [mmsghdr; BATCH],
    pieces: [iovec; BATCH],
}

// SAFETY: as for `Incoming`.
unsafe impl Send for Outgoing {}

impl Outgoing {
    pub(super) fn new() -> Box<Self> {
        Box::new(Outgoing { headers: [NO_HEADER; BATCH], pieces: [NO_PIECE; BATCH] })
    }

    /// Send packets (at most [`BATCH`]) in order. Returns how many went.
    ///
    /// # Errors
    /// The system's, about the first packet.
    pub(super) fn send(&mut self, fd: RawFd, packets: &[Packet]) -> io::Result<usize> {
        let packets = &packets[..packets.len().min(BATCH)];
        for ((header, piece), packet) in self.headers.iter_mut().zip(&mut self.pieces).zip(packets) {
            let bytes = packet.data();
            *piece = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            header.msg_hdr.msg_iov = piece;
            header.msg_hdr.msg_iovlen = 1;
        }
        let (headers, count) = (self.headers.as_mut_ptr(), packets.len() as c_uint);
        // SAFETY: as many headers point to pieces of ours, those to the packets' bytes, which the system
        // only reads; all stay in place for the call.
        let sent = unsafe { libc::sendmmsg(fd, headers, count, libc::MSG_DONTWAIT as _) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

const NO_PIECE: iovec = iovec { iov_base: ptr::null_mut(), iov_len: 0 };

// SAFETY: an all-zero header is a valid one: nothing, nowhere.
const NO_HEADER: mmsghdr = unsafe { std::mem::zeroed() };
