//! Standard output and standard error: what cannot be written to them is said or left unsaid, and is never a panic, as it
//! would be with `print!`.

use std::fmt::Display;
use std::io::{self, Write};
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

/// Return whether there is a standard output to write to.
///
/// # Errors
/// That it is closed.
pub fn check_open() -> Result<(), Failure> {
    if CLOSED.load(Ordering::Relaxed) { Err("standard output: cannot be written: it is closed".into()) } else { Ok(()) }
}

/// Print to standard output, all of it.
///
/// # Errors
/// What could not be written.
pub fn print(text: impl Display) -> Result<(), Failure> {
    write(|out| write!(out, "{text}"))
}

/// Print bytes to standard output.
///
/// # Errors
/// What could not be written.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    write(|out| out.write_all(bytes))
}

fn write(print: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) -> Result<(), Failure> {
    check_open()?;
    let mut out = io::stdout().lock();
    let printed = print(&mut out).and_then(|()| out.flush());
    printed.map_err(unwritten)
}

/// Say that standard output takes nothing.
pub fn unwritten(error: io::Error) -> Failure {
    Failure(format!("standard output: cannot be written: {error}"))
}

/// Tell on standard error, in one piece, since others may write there. Where that takes nothing, nobody is left to be told.
pub fn tell(text: impl Display) {
    let text = text.to_string();
    let mut out = io::stderr().lock();
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
