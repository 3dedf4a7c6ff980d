//! The next build of a library: noticed, loaded and started on a thread of its own, and put in place between two batches.

use std::ffi::c_void;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catena_state::Local;

use super::instance::Instance;
use super::library::Loaded;
use super::log::LEVELS;
use super::{Origin, library};
use crate::config::ArgError;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What tells a file from the one that took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity([u64; 5]);

impl Identity {
    /// Return that of the file at a path, if there is one.
    pub fn of(path: &str) -> Option<Identity> {
        let seen = std::fs::metadata(path).ok()?;
        Some(Identity([seen.dev(), seen.ino(), seen.len(), seen.mtime() as u64, seen.mtime_nsec() as u64]))
    }
}

/// What tables of the running chain call the function and its drops.
#[derive(Clone, Copy)]
struct Running {
    name: &'static str,
    reasons: &'static [&'static str],
}

/// What the two threads share.
struct Handover {
    /// Whether there is something in `next`.
    there: AtomicBool,
    /// The instance that is ready to take over.
    next: Mutex<Option<Instance<Local>>>,
    /// The one that was replaced, or that could not take over: it ends away from the packets.
    last: Mutex<Option<Instance<Local>>>,
    /// What the instance in place calls itself.
    current: AtomicPtr<c_void>,
    over: AtomicBool,
}

/// Looks for later builds of a library.
pub struct Successor {
    handover: Arc<Handover>,
    /// Not started before the first packets: what is only checked needs no thread.
    waiting: Option<(Origin, Option<Identity>)>,
    thread: Option<JoinHandle<()>>,
}

impl Successor {
    /// Make one that knows the file as it was when it was loaded.
    pub fn new(origin: Origin, known: Option<Identity>) -> Successor {
        let handover = Handover {
            there: AtomicBool::new(false),
            next: Mutex::new(None),
            last: Mutex::new(None),
            current: AtomicPtr::new(std::ptr::null_mut()),
            over: AtomicBool::new(false),
        };
        Successor { handover: Arc::new(handover), waiting: Some((origin, known)), thread: None }
    }

    /// Put the next build in the place of an instance if it is ready.
    #[inline]
    pub fn between_batches(&mut self, instance: &mut Instance<Local>, now: u64) {
        if self.waiting.is_some() || self.handover.there.load(Ordering::Acquire) {
            self.exchange(instance, now);
        }
    }

    #[cold]
    fn exchange(&mut self, instance: &mut Instance<Local>, now: u64) {
        if let Some((origin, known)) = self.waiting.take() {
            let Loaded { name, reasons, .. } = *instance.function();
            let running = Running { name, reasons };
            self.handover.current.store(instance.address(), Ordering::Release);
            let handover = self.handover.clone();
            let spawned = thread::Builder::new()
                .name("catena-watch".to_owned())
                .spawn(move || watch(&origin, running, known, &handover));
            match spawned {
                Ok(thread) => self.thread = Some(thread),
                Err(error) => {
                    instance.own().log.add(1, now, format!("nobody looks for new builds: {error}").as_bytes())
                }
            }
            return;
        }
        let Some(mut next) = locked(&self.handover.next).take() else { return };
        let taken = next.take_over(instance, now);
        if taken.is_ok() {
            std::mem::swap(instance, &mut next);
            // Lines that the old one has not written yet go first.
            std::mem::swap(&mut instance.own().log, &mut next.own().log);
        }
        let (level, line) = match taken {
            Ok(()) => (2, "the new build goes on with the state of the old one".to_owned()),
            Err(why) => (1, format!("the new build is not used: it cannot take the state over: {why}")),
        };
        instance.own().log.add(level, now, line.as_bytes());
        self.handover.current.store(instance.address(), Ordering::Release);
        *locked(&self.handover.last) = Some(next);
        self.handover.there.store(false, Ordering::Release);
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        self.handover.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked has said so; there is nothing of it to be used.
            let _ = thread.join();
        }
    }
}

fn locked(slot: &Mutex<Option<Instance<Local>>>) -> std::sync::MutexGuard<'_, Option<Instance<Local>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Look at the file until the chain is over.
fn watch(origin: &Origin, running: Running, mut known: Option<Identity>, handover: &Handover) {
    say(origin, running.name, 3, &format!("looks for new builds in {}", origin.path));
    while !handover.over.load(Ordering::Acquire) {
        thread::park_timeout(LOOK);
        drop(locked(&handover.last).take());
        // As long as one waits, the instance in place may go at any time: no other may be started beside it.
        if handover.there.load(Ordering::Acquire) {
            continue;
        }
        let seen = Identity::of(&origin.path);
        if seen.is_none() || seen == known {
            continue;
        }
        known = seen;
        match next(origin, running, handover) {
            Ok(instance) => {
                *locked(&handover.next) = Some(instance);
                handover.there.store(true, Ordering::Release);
                say(origin, running.name, 2, "a new build is ready, and takes over at the next packets");
            }
            Err(why) => say(origin, running.name, 1, &format!("the new build is not used: {why}")),
        }
    }
}

/// Start an instance of what stands at the path now.
fn next(origin: &Origin, running: Running, handover: &Handover) -> Result<Instance<Local>, ArgError> {
    let function = library::load_anew(&origin.path, &origin.symbol)?;
    if (function.name, function.reasons) != (running.name, running.reasons) {
        let why = format!("it is another function, `{}`, or drops for other reasons", function.name);
        return Err(ArgError::new("lib", why).help("end the chain and run it again"));
    }
    origin.start(&mut Local::new(origin.seed, origin.share), function, handover.current.load(Ordering::Acquire))
}

fn say(origin: &Origin, name: &str, level: u32, text: &str) {
    if level <= origin.level {
        // A log that cannot be written stops nothing.
        let _ = writeln!(std::io::stderr().lock(), "catena: {name}: {}: {text}", LEVELS[level as usize]);
    }
}
