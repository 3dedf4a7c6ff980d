//! Standard output and standard error: what cannot be written to them is said or left unsaid, and is never a panic, as it
//! would be with `print!`.

use std::fmt::Display;
use std::io::{self, Write};

use catena_isolation::names;
pub use catena_runtime::stdout::check_open;
use catena_runtime::stdout::is_closed;

use crate::Failure;

/// A text of lines without characters that a terminal obeys: they are escaped. What files say is in it, and anybody may have
/// written them.
pub struct Printable<T>(pub T);

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        let is_hidden = |c: char| names::is_hidden(c) && c != '\n';
        for part in text.split_inclusive(is_hidden) {
            match part.chars().next_back().filter(|last| is_hidden(*last)) {
                Some(last) => {
                    f.write_str(&part[..part.len() - last.len_utf8()])?;
                    write!(f, "{}", last.escape_default())?;
                }
                None => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// Print to standard output, all of it. A closed pipe (`catena show … | head`) ends the process as it ends any other.
///
/// # Errors
/// What could not be written.
pub fn print(text: impl Display) -> Result<(), Failure> {
    write(|out| write!(out, "{text}")).map_err(unwritten)
}

/// Print bytes to standard output, as [`print`] does text.
///
/// # Errors
/// What could not be written.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    write(|out| out.write_all(bytes)).map_err(unwritten)
}

/// Print what came of work that is done: a closed pipe is an error like any other.
///
/// # Errors
/// What could not be written.
pub fn report(text: impl Display) -> Result<(), Failure> {
    write(|out| write!(out, "{text}")).map_err(|error| failure(&error))
}

fn write(print: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) -> io::Result<()> {
    if is_closed() {
        return Err(io::Error::other("it is closed"));
    }
    let mut out = io::stdout().lock();
    print(&mut out).and_then(|()| out.flush())
}

/// Say that standard output takes nothing; where nobody reads it any more, end without a word.
pub fn unwritten(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        // SAFETY: the default action of SIGPIPE ends the process; where the signal is blocked, the error is told instead.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::raise(libc::SIGPIPE);
        }
    }
    failure(&error)
}

/// Write a text to standard output; a closed pipe is an error like any other.
///
/// # Errors
/// What the system says.
pub fn write_text(text: &str) -> io::Result<()> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Say that standard output takes nothing.
pub fn failure(error: &io::Error) -> Failure {
    Failure(format!("standard output: cannot be written: {error}"))
}

/// Tell on standard error, in one piece, since others may write there. Where that takes nothing, nobody is left to be told.
pub fn tell(text: impl Display) {
    let text = text.to_string();
    let mut out = io::stderr().lock();
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
