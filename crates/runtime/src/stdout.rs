//! Whether there is a standard output: a capture or an export may go there, by the name `-`.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Failure;

/// Whether standard output was closed (`>&-`) when the process began.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Called before `main`: the runtime opens `/dev/null` where standard output was closed, and all that is written to it
/// would be lost without a word.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_THE_START: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: the call reads a descriptor's flags and nothing else.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Return whether standard output was closed when the process began.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Check that there is a standard output to write to.
///
/// # Errors
/// That it is closed.
pub fn check_open() -> Result<(), Failure> {
    if is_closed() { Err("standard output: cannot be written: it is closed".into()) } else { Ok(()) }
}
