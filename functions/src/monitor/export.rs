//! The way of ended flows to a file: plain records through a bounded queue to a thread that formats and writes.
//!
//! The file is opened when the run starts, not when the monitor is made. Of live traffic, whoever counts packets never
//! waits for a file: a record that finds no room is offered again later, or lost and counted. Recorded traffic waits, so
//! that its records do not depend on how fast the file is. The thread looks into the queue every few milliseconds instead
//! of being woken, so that handing over a record is no call of the system.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catena_dataplane::pipeline::Time;
use catena_packet::write::write_all;
use catena_state::{Plain, Sink};
use crossbeam_queue::ArrayQueue;

use super::flow::{End, Flow};
use super::key::EitherKey;
use super::{ipfix, json};

/// Records that wait for the thread at most.
const QUEUE: usize = 16_384;
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes that are handed to the system at once.
const HAND_ON: usize = 64 * 1024;

/// A flow on its way out.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Record {
    pub(super) key: EitherKey,
    pub(super) flow: Flow,
    pub(super) end: End,
}

/// How records are written.
#[derive(Clone, Copy)]
pub(super) enum Format {
    /// A line of JSON each.
    Json,
    /// Messages of RFC 7011, from this observation domain.
    Ipfix {
        /// Unique among those that write for one collector.
        domain: u32,
    },
}

struct Shared {
    queue: ArrayQueue<Record>,
    closed: AtomicBool,
    /// Records that found no room or could not be written, and their packets.
    lost: [AtomicU64; 2],
}

/// Where records go: to a thread, or nowhere.
pub(super) enum Export {
    /// Nowhere.
    Nowhere,
    /// To a file (`-` for stdout) that is not open yet: there is no room for a record.
    Unopened {
        /// The file.
        path: String,
        /// How records are written to it.
        format: Format,
    },
    /// To a thread.
    Open(Open),
}

/// A thread that writes.
pub(super) struct Open {
    shared: Arc<Shared>,
    /// Until it is closed.
    writer: Option<JoinHandle<io::Result<()>>>,
    path: String,
    /// Whether it may wait for room: no packet of live traffic waits for that.
    waits: bool,
}

impl Export {
    /// Make the way to a file that is not open yet, or to nowhere.
    pub(super) fn to(file: Option<(String, Format)>) -> Export {
        file.map_or(Export::Nowhere, |(path, format)| Export::Unopened { path, format })
    }

    /// Return the file that [`Self::start`] creates or empties.
    pub(super) fn outputs(&self) -> Vec<PathBuf> {
        match self {
            Export::Unopened { path, .. } => vec![path.into()],
            Export::Nowhere | Export::Open(_) => Vec::new(),
        }
    }

    /// Open the file and start the thread that writes to it.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn start(&mut self, time: Time) -> Result<(), String> {
        let Export::Unopened { path, format } = self else { return Ok(()) };
        let cannot = |error: io::Error| format!("export `{path}` cannot be written: {error}");
        let target = match &**path {
            "-" => Target::Stdout,
            path => Target::File(File::create(path).map_err(cannot)?),
        };
        let shared = Arc::new(Shared {
            queue: ArrayQueue::new(QUEUE),
            closed: AtomicBool::new(false),
            lost: Default::default(),
        });
        let (theirs, format) = (shared.clone(), *format);
        let writer = thread::Builder::new().name("flow-export".to_owned());
        let writer = writer.spawn(move || write(&theirs, target, format, time)).map_err(cannot)?;
        *self = Export::Open(Open { shared, writer: Some(writer), path: path.clone(), waits: time == Time::Packets });
        Ok(())
    }

    /// Wait for room from now on: the last packet of live traffic is through.
    pub(super) fn wait_from_now(&mut self) {
        if let Export::Open(open) = self {
            open.waits = true;
        }
    }

    /// Return how many records found no room or could not be written, and how many packets they count.
    pub(super) fn lost(&self) -> [u64; 2] {
        match self {
            Export::Nowhere | Export::Unopened { .. } => [0; 2],
            Export::Open(open) => open.shared.lost.each_ref().map(|lost| lost.load(Acquire)),
        }
    }

    /// Write all that waits, and close the file.
    ///
    /// # Errors
    /// What could not be written, in words.
    pub(super) fn close(&mut self) -> Result<(), String> {
        match self {
            Export::Nowhere => Ok(()),
            Export::Unopened { path, .. } => Err(format!("`{path}` was not opened: no flow record was written")),
            Export::Open(open) => open.close(),
        }
    }
}

impl Sink for Export {
    type Record = Record;

    #[inline]
    fn has_room(&mut self) -> bool {
        match self {
            Export::Nowhere => true,
            Export::Unopened { .. } => false,
            Export::Open(open) => open.has_room(),
        }
    }

    #[inline]
    fn put(&mut self, record: Record) {
        // Nobody puts a record before the file is open: there was no room.
        let Export::Open(open) = self else { return };
        let Err(record) = open.shared.queue.push(record) else { return };
        if !open.has_room() || open.shared.queue.push(record).is_err() {
            open.shared.lose(record.count());
        }
    }
}

impl Record {
    /// Return what it stands for: a record, and its packets.
    fn count(&self) -> [u64; 2] {
        [1, self.flow.packets.iter().map(|&n| u64::from(n)).sum()]
    }
}

impl Shared {
    #[cold]
    fn lose(&self, count: [u64; 2]) {
        self.lost.iter().zip(count).for_each(|(lost, more)| _ = lost.fetch_add(more, Relaxed));
    }
}

impl Open {
    #[inline]
    fn has_room(&self) -> bool {
        !self.shared.queue.is_full() || (self.waits && self.wait())
    }

    /// Give the thread time to make room; returns whether it did, which it always does unless it has ended.
    #[cold]
    fn wait(&self) -> bool {
        while self.shared.queue.is_full() {
            let Some(writer) = self.writer.as_ref().filter(|writer| !writer.is_finished()) else { return false };
            writer.thread().unpark();
            thread::sleep(PAUSE / 10);
        }
        true
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.shared.closed.store(true, Release);
        writer.thread().unpark();
        match writer.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("flow records could not be written to `{}`: {error}", self.path)),
            Err(_) => Err(format!("the writer of `{}` has panicked", self.path)),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Whoever wants to know about errors has called `close` before.
        let _ = self.close();
    }
}

/// The thread. After an error it goes on emptying the queue, and returns the error in the end.
fn write(shared: &Shared, target: Target, format: Format, time: Time) -> io::Result<()> {
    let mut out = Whole { target, pending: Vec::with_capacity(2 * HAND_ON), units: Vec::new(), error: None };
    let mut ipfix = match format {
        Format::Json => None,
        Format::Ipfix { domain } => Some(ipfix::Exporter::new(domain)),
    };
    // Records of the message that is being made, and their packets.
    let mut message = [0; 2];
    if let Some(exporter) = &mut ipfix {
        exporter.begin(&mut out.pending)?;
    }
    loop {
        // Asked before the queue is emptied: what was put before it was closed is seen after.
        let closed = shared.closed.load(Acquire);
        while let Some(record) = shared.queue.pop() {
            let one = record.count();
            match &mut ipfix {
                None => {
                    json::write(&mut out.pending, &record)?;
                    out.end_unit(one);
                }
                Some(exporter) => {
                    let before = out.pending.len();
                    exporter.write(&mut out.pending, &record)?;
                    // A message may have been ended before this record or behind it.
                    let is_before = out.pending.len() > before && exporter.waiting() > 0;
                    if is_before {
                        out.end_unit(std::mem::take(&mut message));
                    }
                    message = [message[0] + one[0], message[1] + one[1]];
                    if out.pending.len() > before && !is_before {
                        out.end_unit(std::mem::take(&mut message));
                    }
                }
            }
            if out.pending.len() >= HAND_ON {
                out.hand_on(shared);
            }
        }
        // When recorded traffic is replayed, messages end where its time says, not where this thread had nothing to do.
        if let Some(exporter) = ipfix.as_mut().filter(|_| closed || time == Time::Wall) {
            exporter.flush(&mut out.pending)?;
            out.end_unit(std::mem::take(&mut message));
        }
        out.hand_on(shared);
        if closed {
            return out.error.map_or(Ok(()), Err);
        }
        thread::park_timeout(PAUSE);
    }
}

enum Target {
    Stdout,
    File(File),
}

/// Whole records and messages on their way to a file: what several threads write to standard output is mixed only
/// between them.
struct Whole {
    target: Target,
    pending: Vec<u8>,
    /// Where in `pending` a record of JSON or a message of IPFIX ends, and how many records and packets it stands for.
    units: Vec<(usize, [u64; 2])>,
    /// The first one.
    error: Option<io::Error>,
}

impl Whole {
    fn end_unit(&mut self, count: [u64; 2]) {
        self.units.push((self.pending.len(), count));
    }

    fn hand_on(&mut self, shared: &Shared) {
        let mut taken = 0;
        if self.error.is_none() && !self.pending.is_empty() {
            let written = match &mut self.target {
                Target::Stdout => {
                    let mut out = io::stdout().lock();
                    write_all(&mut out, &self.pending, &mut taken).and_then(|()| out.flush())
                }
                Target::File(file) => write_all(file, &self.pending, &mut taken),
            };
            self.error = written.err();
        }
        if self.error.is_some() {
            for (_, count) in self.units.iter().filter(|(end, _)| *end > taken) {
                shared.lose(*count);
            }
        }
        self.pending.clear();
        self.units.clear();
    }
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
