//! The sending side.

use std::io;

use catena_packet::{Batch, Packet};

use super::burst::Outgoing;
use super::sys::Socket;
use crate::module::{Context, Module, Reason};

/// Tries to send a batch to a full queue before what is left of it is dropped.
const TRIES: u32 = 16;

const QUEUE_FULL: Reason = Reason(0);
const TOO_LONG: Reason = Reason(1);
const DOWN: Reason = Reason(2);
const REFUSED: Reason = Reason(3);

/// Sends packets by an interface, and ends their way.
///
/// A full queue is tried again a few times; what does not get in then is dropped and counted, as are
/// packets longer than the interface's MTU and those that come while it is down.
pub struct PacketSocketOut {
    socket: Socket,
    outgoing: Box<Outgoing>,
}

impl PacketSocketOut {
    pub(super) fn new(socket: Socket) -> Self {
        PacketSocketOut { socket, outgoing: Outgoing::new() }
    }

    /// Send what the system takes. Returns how many packets went, and what becomes of the others.
    #[inline]
    fn send(&mut self, packets: &[Packet]) -> (usize, Option<Failure>) {
        match self.outgoing.send(self.socket.fd(), packets) {
            Ok(sent) => (sent, None),
            Err(error) => (0, Some(failure(&error))),
        }
    }

    /// Send the packets from `sent` on, one failure after the other.
    #[cold]
    fn send_rest(&mut self, cx: &mut Context, batch: &mut Batch, mut sent: usize, mut failed: Option<Failure>) {
        let mut tries = 0;
        let mut dropped = [None; catena_packet::BATCH];
        while sent < batch.len() {
            let count;
            match failed {
                Some(Failure::Busy) if tries < TRIES => {
                    tries += 1;
                    std::thread::yield_now();
                }
                Some(Failure::Busy) => {
                    dropped[sent..batch.len()].fill(Some(QUEUE_FULL));
                    break;
                }
                Some(Failure::All(reason)) => {
                    dropped[sent..batch.len()].fill(Some(reason));
                    break;
                }
                Some(Failure::One(reason)) => {
                    dropped[sent] = Some(reason);
                    sent += 1;
                }
                None => {}
            }
            (count, failed) = self.send(&batch.as_slice()[sent..]);
            sent += count;
        }
        batch.filter(|i, packet| match dropped[i] {
            None => Some(packet),
            Some(reason) => {
                cx.drop(packet, reason);
                None
            }
        });
    }
}

/// What an error of the system means for the packets that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// There is no room now.
    Busy,
    /// The first packet cannot be sent.
    One(Reason),
    /// None can be sent now.
    All(Reason),
}

#[cold]
fn failure(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Failure::Busy,
        Some(libc::EMSGSIZE) => Failure::One(TOO_LONG),
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Failure::All(DOWN),
        _ => Failure::One(REFUSED),
    }
}

impl Module for PacketSocketOut {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let (sent, failed) = self.send(batch.as_slice());
        if sent < batch.len() {
            self.send_rest(cx, batch, sent, failed);
        }
        cx.pool().put_batch(batch);
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["interface queue full", "longer than the interface's MTU", "interface down", "refused by the interface"]
    }

    fn is_exit(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_mean_what_they_say() {
        for (code, expected) in [
            (libc::EAGAIN, Failure::Busy),
            (libc::ENOBUFS, Failure::Busy),
            (libc::EMSGSIZE, Failure::One(TOO_LONG)),
            (libc::ENETDOWN, Failure::All(DOWN)),
            (libc::ENXIO, Failure::All(DOWN)),
            (libc::EINVAL, Failure::One(REFUSED)),
        ] {
            assert_eq!(failure(&io::Error::from_raw_os_error(code)), expected);
        }
    }
}
