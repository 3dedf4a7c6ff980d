//! Packets from a capture file.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use catena_packet::pcap::{Error, LinkType, Reader, Record};
use catena_packet::wire::ethernet;
use catena_packet::{BATCH, Batch, JUMBO_BYTES, Packet, Pool, Way};

use super::arrival::Arrivals;
use super::framing::{self, Unfit};
use super::stream::Stream;
use crate::module::{Context, Pulled, Source};

/// Pulls in a row that find no buffer before the record in hand is given up: a second and more at the
/// pace of a worker that rests between fruitless pulls. Other workers give theirs back in much less.
const PATIENCE: u32 = 50_000;

/// Bytes that one pull takes from the stream, and bytes after decompression: more than 32 records of the greatest
/// length. A stream may decompress to nothing for ever; a worker must come back to see whether it shall end.
const MOST_READ: u64 = 1 << 20;
const MOST_DECOMPRESSED: u64 = 16 << 20;

/// How long opening waits for a pipe's first bytes, so that what is no capture is refused before anything is
/// written.
const FIRST_BYTES: Duration = Duration::from_millis(200);

/// What the records that were taken in are called.
pub(crate) const RECORDS: &str = "records";

/// Gives the packets of a capture as fast as they are asked for; their times become the context's.
///
/// Records of links that are not Ethernet get an Ethernet header with zero addresses in place of their
/// own, if their protocol has an EtherType. Packets that the capture cut short are given as they are, and know by
/// how much.
/// A record that finds no packet buffer waits for the next pull.
///
/// Gauges: `records` read, and of these `unknown link type`, `link header cut off`,
/// `longer than a packet buffer` and `no packet buffer left`, which became no packet; all others did.
/// `cut by the capture` counts packets that are shorter than they were on the wire, and `timestamps corrected`
/// packets whose time is not their record's: `arrival.rs` has the rule.
///
/// A pull takes what is there and never waits; its work is bounded, whatever the stream decompresses to.
pub struct CaptureIn<R = Stream> {
    reader: Reader<R>,
    port: u16,
    /// Whether all there will ever be is there already.
    recorded: bool,
    arrivals: Arrivals,
    waiting: Waiting,
    counts: Counts,
    error: Option<Error>,
    ended: bool,
}

/// A record that found no buffer.
#[derive(Default)]
struct Waiting {
    /// Link type, time and bytes cut off, while there is one.
    record: Option<(LinkType, u64, u16)>,
    bytes: Vec<u8>,
    pulls: u32,
}

#[derive(Default)]
struct Counts {
    records: u64,
    unknown_link: u64,
    cut_link: u64,
    too_long: u64,
    no_buffer: u64,
    cut: u64,
}

/// Why a record is not a packet now.
enum NoPacket {
    Unfit(Unfit),
    TooLong,
    NoBuffer,
}

impl CaptureIn<Stream> {
    /// Open the capture at `path`; `-` is the standard input. Packets get `port` as their input port.
    ///
    /// # Errors
    /// Those of [`Reader::open`].
    pub fn open(path: impl AsRef<Path>, port: u16) -> Result<Self, Error> {
        let path = path.as_ref();
        let stream = Stream::open(path).map_err(|source| Error::Open { path: path.to_owned(), source })?;
        Self::of(stream, port)
    }

    /// Read a capture from a stream. Packets get `port` as their input port.
    ///
    /// # Errors
    /// Those of [`Reader::open`].
    pub fn of(stream: Stream, port: u16) -> Result<Self, Error> {
        let recorded = stream.is_recorded();
        stream.wait(FIRST_BYTES);
        let mut reader = Reader::lazy(stream);
        reader.allow(MOST_READ, MOST_DECOMPRESSED);
        match reader.begin() {
            Ok(()) | Err(Error::NotYet) => Ok(CaptureIn { recorded, ..CaptureIn::new(reader, port) }),
            Err(error) => Err(error),
        }
    }
}

impl<R: Read> CaptureIn<R> {
    /// Give the packets of `reader`, with `port` as their input port.
    pub fn new(reader: Reader<R>, port: u16) -> Self {
        let waiting = Waiting { bytes: Vec::with_capacity(JUMBO_BYTES), ..Waiting::default() };
        let (arrivals, counts) = (Arrivals::default(), Counts::default());
        CaptureIn { reader, port, recorded: true, arrivals, waiting, counts, error: None, ended: false }
    }

    /// Return the reader's error, for callers that tell a capture that is cut off from one that cannot be
    /// read.
    pub fn reader_error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Try the record that waits; returns whether none waits any more.
    #[cold]
    fn retry(&mut self, cx: &mut Context, batch: &mut Batch) -> bool {
        let Some((link, time_ns, cut)) = self.waiting.record else { return true };
        match packet_of(cx.pool(), link, &self.waiting.bytes) {
            Ok(packet) => {
                let arrival = self.arrivals.arrival(time_ns, || self.reader.peek());
                give(cx, batch, packet, (arrival, cut), self.port);
            }
            Err(_) if self.waiting.pulls < PATIENCE => {
                self.waiting.pulls += 1;
                return false;
            }
            Err(_) => self.counts.no_buffer += 1,
        }
        self.waiting.record = None;
        true
    }
}

impl Waiting {
    #[cold]
    fn keep(&mut self, record: &Record<'_>) {
        self.record = Some((record.link, record.time_ns, cut(record)));
        self.bytes.clear();
        self.bytes.extend_from_slice(record.bytes);
        self.pulls = 0;
    }
}

impl<R: Read + Send + 'static> Source for CaptureIn<R> {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        self.reader.allow(MOST_READ, MOST_DECOMPRESSED);
        if self.waiting.record.is_some() && !self.retry(cx, batch) {
            return Pulled::Idle;
        }
        while batch.len() < BATCH && !self.ended {
            let record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.ended = true;
                    break;
                }
                Err(Error::NotYet) => return if batch.is_empty() { Pulled::Idle } else { Pulled::More },
                Err(error) => {
                    self.error = Some(error);
                    self.ended = true;
                    break;
                }
            };
            self.counts.records += 1;
            if cut(&record) > 0 {
                self.counts.cut += 1;
            }
            match packet_of(cx.pool(), record.link, record.bytes) {
                Ok(packet) => {
                    let (time_ns, cut) = (record.time_ns, cut(&record));
                    let arrival = self.arrivals.arrival(time_ns, || self.reader.peek());
                    give(cx, batch, packet, (arrival, cut), self.port);
                }
                Err(NoPacket::Unfit(Unfit::Unknown)) => self.counts.unknown_link += 1,
                Err(NoPacket::Unfit(Unfit::CutOff)) => self.counts.cut_link += 1,
                Err(NoPacket::TooLong) => self.counts.too_long += 1,
                Err(NoPacket::NoBuffer) => {
                    self.waiting.keep(&record);
                    return if batch.is_empty() { Pulled::Idle } else { Pulled::More };
                }
            }
        }
        if self.ended { Pulled::Done } else { Pulled::More }
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let Counts { records, unknown_link, cut_link, too_long, no_buffer, cut } = self.counts;
        tell(RECORDS, records - u64::from(self.waiting.record.is_some()));
        for (name, count) in [
            ("unknown link type", unknown_link),
            ("link header cut off", cut_link),
            ("longer than a packet buffer", too_long),
            ("no packet buffer left", no_buffer),
            ("cut by the capture", cut),
            ("timestamps corrected", self.arrivals.corrected),
        ] {
            if count > 0 {
                tell(name, count);
            }
        }
    }

    fn error(&self) -> Option<String> {
        self.error.as_ref().map(Error::to_string)
    }

    fn is_recorded(&self) -> bool {
        self.recorded
    }
}

#[inline]
fn packet_of(pool: &mut Pool, link: LinkType, bytes: &[u8]) -> Result<Packet, NoPacket> {
    if link == LinkType::ETHERNET {
        let mut packet = take(pool, bytes.len())?;
        packet.data_mut().copy_from_slice(bytes);
        return Ok(packet);
    }
    let (header, skip) = framing::replace(link, bytes).map_err(NoPacket::Unfit)?;
    let rest = &bytes[skip..];
    let mut packet = take(pool, header.len() + rest.len())?;
    let (front, back) = packet.data_mut().split_at_mut(ethernet::HEADER_LEN);
    front.copy_from_slice(&header);
    back.copy_from_slice(rest);
    Ok(packet)
}

#[inline]
fn take(pool: &mut Pool, len: usize) -> Result<Packet, NoPacket> {
    pool.take(len).ok_or(if len > JUMBO_BYTES { NoPacket::TooLong } else { NoPacket::NoBuffer })
}

/// Return by how much the capture cut a packet short.
#[inline]
fn cut(record: &Record<'_>) -> u16 {
    let cut = (record.original_len as usize).saturating_sub(record.bytes.len());
    u16::try_from(cut).unwrap_or(u16::MAX)
}

#[inline]
fn give(cx: &mut Context, batch: &mut Batch, mut packet: Packet, (arrival, cut): (u64, u16), port: u16) {
    cx.set_now(arrival);
    let meta = packet.meta_mut();
    meta.way = Way::by(port);
    meta.cut = cut;
    // Before the first time of all, that of the worker.
    meta.arrival = if arrival == 0 { cx.now() } else { arrival };
    meta.came_at(cx.now());
    batch.push(packet);
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
