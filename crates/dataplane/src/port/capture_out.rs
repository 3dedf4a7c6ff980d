//! Packets into a capture file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use catena_packet::pcap::{Error, Format, LinkType, MAX_COMMENT, Record, Writer};
use catena_packet::{Batch, Clock};

use crate::clock::{cycles, hertz};
use crate::module::{Context, Module, Reason};
use crate::pipeline::Time;

/// Writes every packet with its arrival time, and ends its way. One that a capture cut short stays marked as cut,
/// so that nobody takes it for malformed.
///
/// A reader of a live capture sees its header at once, and packets about a second after they came at the latest. When
/// recorded traffic is replayed, this is so where packets have to be waited for: what is written does not depend on
/// how long it took.
///
/// Once writing has failed the file gets no further packet: those that come are dropped and counted, and
/// `end` tells the error. Packets that were taken before and did not arrive are counted as dropped too; in a
/// compressed capture, which is cut off then, some more cannot be read. Gauge: `records` written.
pub struct CaptureOut<W: Write = File> {
    /// Until it is started.
    unopened: Option<Open<W>>,
    /// `None` before it is started, and once finished or failed.
    writer: Option<Writer<W>>,
    error: Option<Error>,
    /// What the file is called, if it has a name.
    name: Option<String>,
    records: u64,
    clocks: bool,
    live: bool,
    /// Whether ticks follow the wall's clock.
    timed: bool,
    /// Whether packets are written in the order of their clocks.
    is_replay: bool,
    flushed: u64,
    /// When that was, in [`cycles`].
    flushed_at: u64,
    /// [`cycles`] of a second.
    second: u64,
}

type Open<W> = Box<dyn FnOnce() -> Result<Writer<W>, Error> + Send>;

const WRITE_FAILED: Reason = Reason(0);
const NOT_EXPRESSIBLE: Reason = Reason(1);

impl CaptureOut<File> {
    /// Create the capture at `path`, replacing what was there, in the format that its name asks for; `-`
    /// is the standard output, which gets its packets within a millisecond.
    ///
    /// # Errors
    /// Those of [`Format::from_path`] and [`Writer::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let mut out = CaptureOut::at(path)?;
        out.open()?;
        Ok(out)
    }

    /// Name the capture at `path`, as [`Self::create`] does; it is created when the module is started.
    ///
    /// # Errors
    /// Those of [`Format::from_path`].
    pub fn at(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let (format, live) = (Format::from_path(&path)?, path == Path::new("-"));
        let name = if live { "standard output".to_owned() } else { path.display().to_string() };
        let open: Open<File> = Box::new(move || Writer::create(path, format, LinkType::ETHERNET));
        Ok(CaptureOut { unopened: Some(open), live, name: Some(name), ..CaptureOut::empty() })
    }
}

impl<W: Write> CaptureOut<W> {
    /// Write to `writer`, which was made for Ethernet.
    pub fn new(writer: Writer<W>) -> Self {
        CaptureOut { writer: Some(writer), ..CaptureOut::empty() }
    }

    fn empty() -> Self {
        CaptureOut {
            unopened: None,
            writer: None,
            error: None,
            name: None,
            records: 0,
            clocks: false,
            live: false,
            timed: false,
            is_replay: false,
            flushed: 0,
            flushed_at: 0,
            second: hertz(),
        }
    }

    /// Hand packets on at every tick, for someone who reads along, rather than 64 KiB at a time.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.live = true;
        self
    }

    /// Write each packet's logical clock as its comment, which only pcapng has: in pcap a stamped packet cannot be
    /// expressed. One that no root has stamped gets none.
    #[must_use]
    pub fn with_clocks(mut self) -> Self {
        self.clocks = true;
        self
    }

    /// Return what went wrong while writing, for callers that tell a closed pipe from a full disk.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    fn open(&mut self) -> Result<(), Error> {
        if let Some(open) = self.unopened.take() {
            let mut writer = open()?;
            // A reader takes a file without a header for no capture.
            writer.flush()?;
            self.writer = Some(writer);
            self.flushed_at = cycles();
        }
        Ok(())
    }

    /// Write what there is, if it is time.
    fn hand_on(&mut self, cx: &mut Context) {
        if self.flushed == self.records {
            return;
        }
        let now = cycles();
        if !self.live && now.wrapping_sub(self.flushed_at) < self.second {
            return;
        }
        (self.flushed, self.flushed_at) = (self.records, now);
        if let Some(Err(error)) = self.writer.as_mut().map(Writer::flush) {
            self.fail(cx, error, 0);
        }
    }

    /// Count what did not arrive, but for `counted` packets that the caller drops.
    #[cold]
    fn fail(&mut self, cx: &mut Context, error: Error, counted: u64) {
        if let Some(writer) = self.writer.take() {
            cx.count_drops(WRITE_FAILED, (writer.records() - writer.handed_on()).saturating_sub(counted));
            self.records = writer.handed_on();
        }
        self.error = Some(error);
    }
}

/// Write a packet with its clock as its comment. Only who asks for clocks pays for their text, which is not allocated.
fn write_with_clock<W: Write>(writer: &mut Writer<W>, record: &Record<'_>, clock: Clock) -> Result<(), Error> {
    let mut text = [0; MAX_COMMENT];
    let mut rest = &mut text[..];
    // A clock has 23 characters at most.
    let left = write!(rest, "{clock}").map_or(MAX_COMMENT, |()| rest.len());
    let comment = std::str::from_utf8(&text[..MAX_COMMENT - left]).unwrap_or_default();
    writer.write_with_comment(record, comment)
}

impl<W: Write + Send + 'static> Module for CaptureOut<W> {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        // Branches have let some overtake others.
        if self.is_replay && !batch.as_slice().is_sorted_by_key(|packet| packet.meta().clock) {
            batch.as_mut_slice().sort_by_key(|packet| packet.meta().clock);
        }
        batch.filter(|_, packet| {
            let Some(writer) = &mut self.writer else {
                cx.drop(packet, WRITE_FAILED);
                return None;
            };
            let arrival = match packet.meta().arrival {
                0 => cx.now(),
                time => time,
            };
            let record = Record::new(arrival, LinkType::ETHERNET, packet.data());
            let original_len = record.original_len + u32::from(packet.meta().cut);
            let record = Record { original_len, ..record };
            let written = match packet.meta().clock {
                clock if self.clocks && clock != Clock::NONE => write_with_clock(writer, &record, clock),
                _ => writer.write(&record),
            };
            match written {
                Ok(()) => {
                    self.records += 1;
                    Some(packet)
                }
                Err(error @ Error::Write { .. }) => {
                    cx.drop(packet, WRITE_FAILED);
                    self.fail(cx, error, 1);
                    None
                }
                // The others concern this one record, and the file stays good.
                Err(_) => {
                    cx.drop(packet, NOT_EXPRESSIBLE);
                    None
                }
            }
        });
        cx.pool().put_batch(batch);
    }

    fn tick(&mut self, cx: &mut Context) {
        if self.live || self.timed {
            self.hand_on(cx);
        }
    }

    fn idle(&mut self, cx: &mut Context) {
        self.hand_on(cx);
    }

    fn start(&mut self, time: Time) -> Result<(), String> {
        (self.timed, self.is_replay) = (time == Time::Wall, time == Time::Packets);
        self.open().map_err(|error| error.to_string())
    }

    fn end(&mut self, cx: &mut Context) -> Result<(), String> {
        if self.unopened.is_some() {
            return Err("the capture was not opened: no packet was written".to_owned());
        }
        match self.writer.as_mut().map(Writer::end) {
            Some(Err(error)) => self.fail(cx, error, 0),
            _ => self.writer = None,
        }
        match (&self.error, &self.name) {
            (None, _) => Ok(()),
            (Some(error), None) => Err(error.to_string()),
            (Some(error), Some(name)) => Err(format!("{name}: {error}")),
        }
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["capture file: write failed", "capture file: time, length or clock beyond its format"]
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("records", self.records);
    }

    fn is_exit(&self) -> bool {
        true
    }
}
