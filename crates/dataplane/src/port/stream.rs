//! A file, pipe or FIFO that is read without waiting.
//!
//! A worker whose source waits for a writer cannot see that its run is over. So opening a FIFO does not wait for
//! someone who writes to it, and reading says that nothing is there yet.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// A stream that says [`ErrorKind::WouldBlock`] where reading would wait for someone else.
#[derive(Debug)]
pub struct Stream {
    file: File,
    /// Whether reading may wait: it never does for files and disks.
    waits: bool,
    /// Where to read on in a file, and where it is taken to end. Others who read it have places of their own.
    at: u64,
    end: u64,
}

impl Stream {
    /// Open `path`; `-` is the standard input.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = if path == Path::new("-") {
            // Others share the standard input, and its flags: these stay as they are.
            File::from(io::stdin().as_fd().try_clone_to_owned()?)
        } else {
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?
        };
        let kind = file.metadata()?.file_type();
        let waits = !(kind.is_file() || kind.is_block_device() || kind.is_dir());
        // Of the standard input somebody may have read the beginning.
        let at = if waits { 0 } else { file.stream_position()? };
        Ok(Stream { file, waits, at, end: u64::MAX })
    }

    /// Take a file to end where it ends now, even if somebody adds to it.
    ///
    /// # Errors
    /// The system's.
    pub fn stays_as_it_is(&mut self) -> io::Result<()> {
        let file = self.file.metadata()?;
        if file.is_file() {
            self.end = file.len();
        }
        Ok(())
    }

    /// Return another stream of the same file, from where this one stands: it is not opened by its name, which may be another
    /// file's by now. Who reads a pipe takes from all that read it.
    ///
    /// # Errors
    /// The system's.
    pub fn again(&self) -> io::Result<Stream> {
        Ok(Stream { file: self.file.try_clone()?, ..*self })
    }

    /// Return whether all that will ever be read is there already.
    pub fn is_recorded(&self) -> bool {
        !self.waits
    }

    /// Wait until there is something to read, at most so long.
    pub fn wait(&self, most: Duration) {
        let _ = self.is_ready(most);
    }

    /// Return whether reading does not wait now. A FIFO that nobody has opened for writing yet is not at its end:
    /// only reading it would say so.
    fn is_ready(&self, most: Duration) -> io::Result<bool> {
        if !self.waits {
            return Ok(true);
        }
        let mut look = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let most = i32::try_from(most.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one `pollfd`, which lives through the call.
        match unsafe { libc::poll(&raw mut look, 1, most) } {
            0 => Ok(false),
            1.. => Ok(true),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.waits {
            let most = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(buffer.len());
            let read = self.file.read_at(&mut buffer[..most], self.at)?;
            self.at += read as u64;
            return Ok(read);
        }
        match self.is_ready(Duration::ZERO) {
            Ok(true) => self.file.read(buffer),
            Ok(false) => Err(ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
