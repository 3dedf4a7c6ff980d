//! Ctrl-C and its kin: the first ends the run in order, a later one at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::Failure;

/// A signal this soon after the first is the same request: `timeout` and shells send one to the process and one to
/// its group.
const SAME: Duration = Duration::from_secs(1);
/// What a command ended by Ctrl-C returns (128 + SIGINT).
const INTERRUPTED: i32 = 130;

/// Listen from now on; returns what becomes true with the first signal. A closed terminal is one (SIGHUP), unless the
/// process was started to outlive it, as by `nohup`.
///
/// # Errors
/// The system's, when it takes no handler or starts no thread.
pub fn listen() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
    let theirs = interrupted.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            theirs.store(true, Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() >= SAME {
                // Closing hangs, it seems: an output whose reader has stopped reading.
                low_level::exit(INTERRUPTED);
            }
        }
    })?;
    Ok(interrupted)
}

/// Return whether the process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: a `sigaction` is plain data, which the call fills; nothing is changed.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
