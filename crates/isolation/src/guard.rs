//! A guard: a process that restores at once what one has changed that is killed.
//!
//! Who enforces quotas restores them when it ends, and what a killed run left is restored by the next one, from its journal. Until then
//! quotas would be what they were in the moment of its end: of a second, and too small. A guard is a child that waits for that end
//! and does then what the next run would do. It holds the read end of a pipe whose only write end its parent has: the kernel closes that
//! however the parent ends. A parent that has restored all itself says so with a byte.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::journal::{Journal, JournalError, Undone};

/// How long the lock of the journal is waited for: the kernel closes a process's files one after the other. Who has it longer is
/// another run, which has restored all.
const LOCK: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(1);
/// How long a guard may take to begin, on a machine that is busy.
const BEGINS: Duration = Duration::from_secs(5);
/// How long it may take to end when it is told to. One that is stopped would never.
const ENDS: Duration = Duration::from_secs(1);

/// A guard of this process, from its start until it is dropped.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Start `command` as guard, a process that calls [`watch()`], and wait until it watches.
    ///
    /// # Errors
    /// When it cannot be started, ends instead, or takes too long.
    pub fn start(mut command: Command) -> io::Result<Guard> {
        // Signals of the terminal are for the parent's group.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut guard = Guard(command.spawn()?);
        let mut watches = [0];
        let read = match guard.0.stdout.take() {
            Some(mut says) => readable(&says).and_then(|()| says.read_exact(&mut watches)),
            None => Err(ErrorKind::BrokenPipe.into()),
        };
        read.map(|()| guard)
    }

    /// Return how it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }
}

/// Wait until there is something to read, or its end.
fn readable(pipe: &impl AsRawFd) -> io::Result<()> {
    let end = Instant::now() + BEGINS;
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        // SAFETY: one descriptor, which is open, and lives during the call.
        match unsafe { libc::poll(&raw mut poll, 1, libc::c_int::try_from(left).unwrap_or(0)) } {
            0 => return Err(ErrorKind::TimedOut.into()),
            1.. => return Ok(()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // One that is gone needs not be told.
            _ = pipe.write_all(b".");
        }
        let end = Instant::now() + ENDS;
        while self.ended().is_none() && Instant::now() < end {
            std::thread::sleep(AGAIN);
        }
        // All is restored by now, or another guard is to do it.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Wait until the process that started this one ends, and restore what it has left changed by its journal. Returns what became of that.
///
/// # Errors
/// When the journal cannot be opened or written.
pub fn watch(journal: &Path) -> Result<Vec<Undone>, JournalError> {
    // Who ends a whole group of processes ends it for the parent's sake, which then restores all itself, or is killed.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: to ignore a signal runs nothing.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let mut out = io::stdout().lock();
    // If it cannot be said, the parent is gone already.
    _ = out.write_all(b"\n").and_then(|()| out.flush());
    drop(out);
    if is_told(&mut io::stdin().lock()) {
        return Ok(Vec::new());
    }
    let end = Instant::now() + LOCK;
    loop {
        match Journal::open(journal) {
            Ok((_, undone)) => return Ok(undone),
            Err(JournalError::Busy { .. }) if Instant::now() < end => std::thread::sleep(AGAIN),
            Err(JournalError::Busy { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
}

/// Wait for a byte, or for the end; returns whether there was one.
fn is_told(pipe: &mut impl Read) -> bool {
    let mut byte = [0];
    loop {
        match pipe.read(&mut byte) {
            Ok(count) => return count > 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_an_orderly_end_and_none_is_not() {
        assert!(is_told(&mut &b"."[..]));
        assert!(!is_told(&mut io::empty()));
    }

    #[test]
    fn who_does_not_watch_is_no_guard() {
        assert_eq!(Guard::start(Command::new("true")).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_guard_that_does_not_end_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo; exec sleep 60"]);
        let mut guard = Guard::start(command).unwrap();
        assert!(guard.ended().is_none());
        let (process, began) = (guard.0.id(), Instant::now());
        drop(guard);
        assert!((ENDS..2 * ENDS).contains(&began.elapsed()), "{:?}", began.elapsed());
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }

    #[test]
    fn a_guard_that_is_killed_is_known_to_have_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo; kill -9 $$"]);
        let mut guard = Guard::start(command).unwrap();
        let end = Instant::now() + ENDS;
        let ended = std::iter::repeat_with(|| guard.ended()).find(|e| e.is_some() || Instant::now() > end).flatten();
        assert_eq!(ended.unwrap().to_string(), "signal: 9 (SIGKILL)");
    }
}
