//! The way of ended flows to a file: plain records through a bounded queue to a thread that formats and writes.
//!
//! Whoever counts packets never waits for a file: a record that finds no room is offered again later, or lost
//! and counted. The thread looks into the queue every few milliseconds instead of being woken, so that handing
//! over a record is no call of the system.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catena_packet::wire::FlowKey;
use crossbeam_queue::ArrayQueue;

use super::flow::{End, Flow};
use super::{ipfix, json};

/// Records that wait for the thread at most.
const QUEUE: usize = 16_384;
const PAUSE: Duration = Duration::from_millis(2);

/// A flow on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) key: FlowKey,
    pub(super) flow: Flow,
    pub(super) end: End,
}

/// How records are written.
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
}

/// Where records go: to a thread, or nowhere.
pub(super) struct Outlet(Option<Open>);

struct Open {
    shared: Arc<Shared>,
    writer: JoinHandle<io::Result<()>>,
    path: String,
}

impl Outlet {
    /// Let all records go nowhere.
    pub(super) fn nowhere() -> Self {
        Outlet(None)
    }

    /// Open a file (`-` for stdout) and start the thread that writes to it.
    pub(super) fn open(path: &str, format: Format) -> io::Result<Self> {
        let sink: Box<dyn Write + Send> = match path {
            "-" => Box::new(io::stdout()),
            path => Box::new(File::create(path)?),
        };
        Self::start(path, sink, format)
    }

    fn start(path: &str, sink: Box<dyn Write + Send>, format: Format) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: ArrayQueue::new(QUEUE), closed: AtomicBool::new(false) });
        let theirs = shared.clone();
        let writer = thread::Builder::new().name("flow-export".to_owned());
        let writer = writer.spawn(move || write(&theirs, BufWriter::new(sink), format))?;
        Ok(Outlet(Some(Open { shared, writer, path: path.to_owned() })))
    }

    /// Hand over a record. Returns whether there was room.
    #[inline]
    pub(super) fn put(&self, record: impl FnOnce() -> Record) -> bool {
        match &self.0 {
            None => true,
            Some(open) => !open.shared.queue.is_full() && open.shared.queue.push(record()).is_ok(),
        }
    }

    /// Give the thread time to make room. Only for when no packet waits.
    pub(super) fn wait(&self) {
        if let Some(open) = &self.0 {
            open.writer.thread().unpark();
            thread::sleep(PAUSE / 10);
        }
    }

    /// Write all that waits, and close the file.
    ///
    /// # Errors
    /// What could not be written, in words.
    pub(super) fn close(&mut self) -> Result<(), String> {
        let Some(open) = self.0.take() else { return Ok(()) };
        open.shared.closed.store(true, Release);
        open.writer.thread().unpark();
        match open.writer.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("flow records could not be written to `{}`: {error}", open.path)),
            Err(_) => Err(format!("the writer of `{}` has panicked", open.path)),
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        // Whoever wants to know about errors has called `close` before.
        let _ = self.close();
    }
}

/// The thread. After an error it goes on emptying the queue, and returns the error in the end.
fn write(shared: &Shared, mut out: impl Write, format: Format) -> io::Result<()> {
    let mut ipfix = match format {
        Format::Json => None,
        Format::Ipfix { domain } => Some(ipfix::Exporter::new(domain)),
    };
    let mut result = ipfix.as_mut().map_or(Ok(()), |exporter| exporter.begin(&mut out));
    loop {
        // Asked before the queue is emptied: what was put before it was closed is seen after.
        let closed = shared.closed.load(Acquire);
        while let Some(record) = shared.queue.pop() {
            if result.is_ok() {
                result = match &mut ipfix {
                    None => json::write(&mut out, &record),
                    Some(exporter) => exporter.write(&mut out, &record),
                };
            }
        }
        if result.is_ok() {
            result = ipfix.as_mut().map_or(Ok(()), |exporter| exporter.flush(&mut out)).and_then(|()| out.flush());
        }
        if closed {
            return result;
        }
        thread::park_timeout(PAUSE);
    }
}
