//! Which file a name or a descriptor leads to, and whether a command would write to one that it reads or writes as well.
//!
//! Names do not tell: hard links, symbolic links and redirected streams lead to one file by several. Files, pipes and
//! sockets are compared by device and inode, files that are not there yet by their folder and name in it. Character devices,
//! such as `/dev/null` and terminals, may be written to several times. A socket carries both ways, so one may be read and
//! written.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::{Failure, stdout};

/// Symbolic links in a row that are followed, as many as Linux follows.
const MOST_LINKS: u32 = 40;

/// Which file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// One that is there, by device and inode.
    There(u64, u64),
    /// A pipe or FIFO, by device and inode.
    Pipe(u64, u64),
    /// A socket, by device and inode.
    Socket(u64, u64),
    /// One that is not there yet: device and inode of the folder it would be in, and its name there.
    New(u64, u64, OsString),
}

impl Identity {
    /// Return which file a name leads to; nothing for what may be written to several times, and for what cannot be.
    pub fn of(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(there) => Identity::there(&there),
            Err(_) => {
                let target = target(path);
                let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
                let folder = fs::metadata(parent.unwrap_or(Path::new("."))).ok()?;
                Some(Identity::New(folder.dev(), folder.ino(), target.file_name()?.to_owned()))
            }
        }
    }

    /// Return which file an open stream is.
    pub fn of_stream(stream: impl AsFd) -> Option<Identity> {
        let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
        Identity::there(&file.metadata().ok()?)
    }

    fn there(there: &Metadata) -> Option<Identity> {
        let kind = there.file_type();
        let (device, inode) = (there.dev(), there.ino());
        match () {
            () if kind.is_char_device() => None,
            () if kind.is_fifo() => Some(Identity::Pipe(device, inode)),
            () if kind.is_socket() => Some(Identity::Socket(device, inode)),
            () => Some(Identity::There(device, inode)),
        }
    }

    /// Return whether what is read or written there is gone for everybody else.
    fn is_stream(&self) -> bool {
        matches!(self, Identity::Pipe(..) | Identity::Socket(..))
    }
}

/// Return where a chain of symbolic links ends, though nothing is there.
pub fn target(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    target
}

/// Return whether a name is that of standard output, or leads to the pipe or socket that standard output is.
pub fn is_stdout(path: &Path) -> bool {
    let leads_there = |there: &Identity| there.is_stream() && Identity::of_stream(io::stdout()).as_ref() == Some(there);
    names_stream(path, 1) || Identity::of(path).as_ref().is_some_and(leads_there)
}

fn names_stream(path: &Path, descriptor: u32) -> bool {
    let name = ["/dev/stdin", "/dev/stdout"][descriptor as usize];
    let links = [format!("/dev/fd/{descriptor}"), format!("/proc/self/fd/{descriptor}")];
    [Path::new("-"), Path::new(name), Path::new(&links[0]), Path::new(&links[1])].contains(&path)
}

/// A file in a command's use, with what the user calls it.
#[derive(Clone, Debug)]
struct Use {
    name: String,
    identity: Option<Identity>,
    /// Standard input or output itself, whatever that is.
    is_stream: bool,
}

impl Use {
    fn is(&self, other: &Use) -> bool {
        (self.is_stream && other.is_stream) || self.is_same_file(other)
    }

    /// Standard input and standard output are two streams, and may still be one file.
    fn is_same_file(&self, other: &Use) -> bool {
        self.identity.is_some() && self.identity == other.identity
    }

    fn is_pipe(&self) -> bool {
        self.identity.as_ref().is_some_and(Identity::is_stream)
    }
}

/// The files that a command reads and writes: none of those it writes may be another one of them.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    read: Vec<Use>,
    written: Vec<Use>,
    paths: Vec<(String, PathBuf)>,
}

impl Uses {
    /// Add a file that is read; `-` is standard input. `what` is what the user calls it, such as `--in`.
    ///
    /// # Errors
    /// When standard input, or a pipe, is read already.
    pub fn reads(&mut self, what: &str, path: &Path) -> Result<(), Failure> {
        let is_stream = names_stream(path, 0);
        let identity = if is_stream { Identity::of_stream(io::stdin()) } else { Identity::of(path) };
        let shown = if is_stream { "standard input".to_owned() } else { path.display().to_string() };
        let read = Use { name: format!("{what} {shown}"), identity, is_stream };
        let takes_from = |other: &&Use| (is_stream && other.is_stream) || (read.is_pipe() && read.is_same_file(other));
        if let Some(other) = self.read.iter().find(takes_from) {
            return Err(format!("{} and {} are the same: each would get a part of it", other.name, read.name).into());
        }
        self.read.push(read);
        Ok(())
    }

    /// Add a file that is written; `-` is standard output. To be called when all that is read has been added.
    ///
    /// # Errors
    /// When it is read, or is another one that is written.
    pub fn writes(&mut self, what: &str, path: &Path) -> Result<(), Failure> {
        let is_stream = is_stdout(path);
        if is_stream {
            stdout::check_open()?;
        } else {
            self.paths.push((what.to_owned(), path.to_owned()));
        }
        let identity = if is_stream { Identity::of_stream(io::stdout()) } else { Identity::of(path) };
        let shown = if is_stream { "standard output".to_owned() } else { path.display().to_string() };
        let written = Use { name: format!("{what} {shown}").trim_start().to_owned(), identity, is_stream };
        self.check(&written)?;
        self.written.push(written);
        Ok(())
    }

    /// Check that what is told on standard error does not end up in a file that is read or written. It may share a log
    /// with a standard output that has nothing else to carry.
    ///
    /// # Errors
    /// That it would.
    pub fn check_stderr(&self) -> Result<(), Failure> {
        let identity = Identity::of_stream(io::stderr());
        self.check(&Use { name: "standard error".to_owned(), identity, is_stream: false })
    }

    /// Return whether standard output is one of the files.
    pub fn write_stdout(&self) -> bool {
        self.written.iter().any(|written| written.is_stream)
    }

    /// Return the files that are written, with what the user calls them; without standard output.
    pub fn outputs(&self) -> &[(String, PathBuf)] {
        &self.paths
    }

    fn check(&self, written: &Use) -> Result<(), Failure> {
        let name = &written.name;
        let reads = |read: &&Use| !matches!(read.identity, Some(Identity::Socket(..))) && read.is_same_file(written);
        match self.read.iter().find(reads) {
            Some(read) if read.is_pipe() => {
                return Err(format!("{name} and {} are the same pipe: what is written would be read", read.name).into());
            }
            Some(read) => {
                return Err(format!("{name}: would be overwritten while it is read as {}", read.name).into());
            }
            None => {}
        }
        match self.written.iter().find(|other| other.is(written)) {
            Some(other) if written.is_pipe() => {
                Err(format!("{} and {name} are the same pipe: one would be mixed into the other", other.name).into())
            }
            Some(other) => {
                Err(format!("{} and {name} are the same file: one would overwrite the other", other.name).into())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_lead_to_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "").expect("it can be written");
        fs::hard_link(at("a"), at("b")).expect("a hard link");
        fs::create_dir(at("sub")).expect("a folder");
        symlink("../none", at("sub/link")).expect("a link");
        symlink("loop", at("loop")).expect("a link");
        assert_eq!(Identity::of(&at("a")), Identity::of(&at("sub/../b")));
        assert_eq!(Identity::of(&at("none")), Identity::of(&at("sub/link")));
        assert_ne!(Identity::of(&at("none")), Identity::of(&at("sub/none")));
        assert!(Identity::of(&at("a")).is_some() && Identity::of(&at("loop")).is_some());
        assert_eq!(Identity::of(&at("none/none")), None);
        assert_eq!(Identity::of(Path::new("/dev/null")), None);
        let (reader, writer) = io::pipe().expect("a pipe");
        assert_eq!(Identity::of_stream(&reader), Identity::of_stream(&writer));
        let name = format!("/proc/self/fd/{}", writer.as_raw_fd());
        assert_eq!(Identity::of(Path::new(&name)), Identity::of_stream(&reader));
        assert_ne!(Identity::of_stream(&reader), Identity::of_stream(io::pipe().expect("a pipe").0));
        let opened = File::open(at("b")).expect("it is there");
        assert_eq!(Identity::of_stream(opened), Identity::of(&at("a")));
    }
}
