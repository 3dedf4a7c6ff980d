//! A batch of packets sent in one call of the system (sendmmsg(2)).

use std::io;
use std::os::fd::RawFd;
use std::ptr;

use catena_packet::{BATCH, Packet};
use libc::{c_uint, iovec, mmsghdr};

/// Room to send a batch of packets.
pub(super) struct Outgoing {
    headers: [mmsghdr; BATCH],
    pieces: [iovec; BATCH],
}

// SAFETY: the pointers in it are written anew by each call before the system follows them, and never
// read otherwise.
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
