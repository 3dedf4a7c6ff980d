//! Ctrl-C and its kin: the turn that is played ends, and the scene takes its cgroups and network namespaces away.

use std::sync::atomic::{AtomicI64, Ordering};

/// When the first signal came, in ms; 0 while none has.
static FIRST: AtomicI64 = AtomicI64::new(0);
/// A signal this soon after the first is the same request: `timeout` sends one to the process and one to its group.
const SAME_MS: i64 = 1000;
/// What a command ended by Ctrl-C returns.
const INTERRUPTED: i32 = 128 + libc::SIGINT;

/// Return whether the program was told to end.
pub fn is_over() -> bool {
    FIRST.load(Ordering::Relaxed) != 0
}

/// The first signal is noted; a later one ends the program at once, and the next scene sweeps up what it leaves.
extern "C" fn told(_signal: libc::c_int) {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a handler may ask for the time, which the call writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let now = now.tv_sec * 1000 + now.tv_nsec / 1_000_000 + 1;
    if let Err(first) = FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
        && now - first >= SAME_MS
    {
        // SAFETY: it ends the process, and runs nothing.
        unsafe { libc::_exit(INTERRUPTED) };
    }
}

/// Listen from now on.
pub fn listen() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the structure is plain data, and the handler asks for the time, stores a number, or ends the process.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = told as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
