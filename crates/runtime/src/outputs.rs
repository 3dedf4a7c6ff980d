//! The outputs of a run before it begins: every file is this run's alone, and every FIFO has a reader.
//!
//! Files are locked by `flock`, which other runs look at and nobody else needs to. Opening a FIFO waits for its reader, in a
//! call that neither a signal nor `--duration` would end: so it is tried again and again.

use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::notes::{Listener, Note};
use crate::{Failure, file, inode};

/// How often a FIFO is looked at for its reader.
const LOOK: Duration = Duration::from_millis(10);
/// After this time without a reader the command says what it waits for.
const SLOW_READER: Duration = Duration::from_secs(1);

/// Files that no other run writes as long as this one lives.
#[derive(Debug, Default)]
pub struct Locks {
    files: Vec<File>,
    /// Those that were not there.
    made: Vec<PathBuf>,
}

/// FIFOs that can be opened without waiting as long as this lives.
#[derive(Debug)]
pub struct Readers(#[expect(dead_code, reason = "open is all that they are")] Vec<File>);

impl Locks {
    /// Take the files among `outputs`, which are left as they are; those that are not there are made.
    ///
    /// # Errors
    /// The first that cannot be written, or that another run writes; then none is made.
    pub fn take(outputs: &[(String, PathBuf)]) -> Result<Locks, Failure> {
        let mut locks = Locks::default();
        for (what, path) in outputs {
            if let Err(why) = locks.add(path) {
                locks.give_up();
                return Err(Failure::new(format!("{what} {why}")));
            }
        }
        Ok(locks)
    }

    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        // A pipe has a reader, who would take this for its whole life.
        if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            return Ok(());
        }
        let (file, was_there) = file::claim(path)?;
        // SAFETY: the descriptor is the file's, which lives through the call.
        let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
        // A file system that knows no locks does without.
        if !locked && Error::last_os_error().kind() == ErrorKind::WouldBlock {
            return Err(Failure::new(format!("{}: another run of catena is writing this file", path.display())));
        }
        self.files.push(file);
        if !was_there {
            self.made.push(inode::target(path));
        }
        Ok(())
    }

    /// Remove the files that were made for a run that does not begin.
    pub fn give_up(self) {
        for path in &self.made {
            _ = fs::remove_file(path);
        }
    }
}

impl Readers {
    /// Wait for a reader of every FIFO among `outputs`, until the listener says that the run shall end.
    ///
    /// # Errors
    /// That a FIFO cannot be written, or that the run is over.
    pub fn wait(outputs: &[(String, PathBuf)], listener: Listener<'_>) -> Result<Readers, Failure> {
        let mut open = Vec::new();
        for (what, path) in outputs {
            if fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo()) {
                open.push(wait_for_reader(what, path, listener)?);
                // A reader that goes away now must not make the next one to open it wait again.
                open.extend(OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path));
            }
        }
        Ok(Readers(open))
    }
}

fn wait_for_reader(what: &str, path: &Path, listener: Listener<'_>) -> Result<File, Failure> {
    let (begun, mut told) = (Instant::now(), false);
    let named = format!("{what} {}", path.display());
    loop {
        match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
            Ok(file) => return Ok(file),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
            Err(error) => {
                let why = file::unwritable(path, &error);
                return Err(Failure::new(format!("{what} {why}")));
            }
        }
        if (listener.over)() {
            return Err(format!("{named}: nobody has opened this pipe to read it; no packet was taken in").into());
        }
        if !told && begun.elapsed() >= SLOW_READER {
            told = true;
            (listener.tell)(&Note::NoReader(named.clone()));
        }
        std::thread::sleep(LOOK);
    }
}
