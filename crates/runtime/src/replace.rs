//! Writing files as a whole: whoever reads one meets what it was or what it becomes.

use std::fs;
use std::io::{Error, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use tempfile::TempPath;

use crate::file::unwritable;
use crate::{Failure, inode};

/// Write a file in one step: beside it first, and then it is renamed, so that a full disk leaves it as it was. It keeps its owner
/// and permissions, and a link goes on leading to it; other hard links keep what it was. What is no file, such as `/dev/stdout`
/// or a pipe, is written to directly.
///
/// # Errors
/// When that cannot be done.
pub fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let written = match fs::metadata(path) {
        Ok(there) if there.is_file() => replace(path, Some(&there), text),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, None, text),
        _ => overwrite(path, text),
    };
    written.map_err(|error| unwritable(path, &error))
}

/// Check that [`write()`] can write a file, before what is to be written takes minutes to make. The file itself is not touched: not
/// emptied where it is there, and neither made nor removed where it is not, since another program may write it meanwhile.
///
/// # Errors
/// When it cannot be written.
pub fn check(path: &Path) -> Result<(), Failure> {
    // A pipe has a reader, who would take the check for the end of the text.
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let opened = match fs::OpenOptions::new().append(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => check_folder(path),
        Err(error) => Err(error),
    };
    opened.map_err(|error| unwritable(path, &error))
}

/// Check that a new file can be made where `path` leads.
fn check_folder(path: &Path) -> Result<(), Error> {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(ErrorKind::IsADirectory.into());
    }
    let mut options = fs::OpenOptions::new();
    let (_, aside) = aside(folder(&inode::target(path)), options.write(true).create_new(true))?;
    aside.close()
}

/// The folder of a file.
fn folder(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Make a file of a name that nothing else has, in a folder. It goes with its name, unless that becomes another one's.
fn aside(folder: &Path, options: &fs::OpenOptions) -> Result<(fs::File, TempPath), Error> {
    tempfile::Builder::new().prefix(".catena-").make_in(folder, |name| options.open(name)).map(|made| made.into_parts())
}

/// Write a new file beside that to which `path` leads, and give it that one's name.
fn replace(path: &Path, there: Option<&fs::Metadata>, text: &[u8]) -> Result<(), Error> {
    let target = match there {
        Some(_) => {
            // A name can be given to another file in its folder though the file itself is protected.
            fs::OpenOptions::new().append(true).open(path)?;
            path.canonicalize()?
        }
        None => inode::target(path),
    };
    let folder = folder(&target);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    if there.is_some() {
        // Nobody reads what becomes of a secret file before it has its permissions.
        options.mode(0o600);
    }
    let (mut file, aside) = match aside(folder, &options) {
        Ok(made) => made,
        // A file may be written in a folder that may not.
        Err(error) if there.is_some() && is_about_folder(&error) => return overwrite(path, text),
        Err(error) => return Err(error),
    };
    let done = (|| {
        if let Some(there) = there {
            let new = file.metadata()?;
            if (new.uid(), new.gid()) != (there.uid(), there.gid()) {
                std::os::unix::fs::fchown(&file, Some(there.uid()), Some(there.gid()))?;
            }
            file.set_permissions(there.permissions())?;
        }
        file.write_all(text)?;
        file.sync_all()?;
        aside.persist(&target).map_err(|refused| refused.error)
    })();
    match done {
        // The name is safe on the disk once the folder is, where the file system can say so.
        Ok(()) => _ = fs::File::open(folder).and_then(|folder| folder.sync_all()),
        Err(error) => {
            // It belongs to somebody else, or is mounted by itself: only its bytes can be changed.
            if there.is_some() && is_about_folder(&error) {
                return overwrite(path, text);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Return whether it is the folder, not the file, that cannot be written.
fn is_about_folder(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::ResourceBusy)
}

/// Write over what is there.
fn overwrite(path: &Path, text: &[u8]) -> Result<(), Error> {
    let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(text)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::io::Read;
    use std::os::fd::FromRawFd;

    use super::*;

    fn said<T>(result: Result<T, Failure>) -> String {
        result.err().map_or_else(String::new, |failure| failure.to_string())
    }

    #[test]
    fn a_check_leaves_files_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "kept").expect("it can be written");
        assert_eq!(said(check(&at("old"))) + &said(check(&at("new"))), "");
        assert_eq!(fs::read_to_string(at("old")).ok().as_deref(), Some("kept"));
        assert!(!at("new").exists());
        std::os::unix::fs::symlink(at("old"), at("link")).expect("a link");
        std::os::unix::fs::symlink(at("new"), at("loose")).expect("a link");
        assert_eq!(said(check(&at("link"))) + &said(check(&at("loose"))), "");
        assert!(at("loose").is_symlink() && !at("new").exists());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3, "nothing is left beside them");
        assert!(said(check(&at("none/new"))).contains("new: cannot be written: there is no folder "));
        assert!(said(check(&at("new/"))).ends_with("cannot be written: this is a folder"));
        assert!(said(write(folder.path(), b"")).ends_with("cannot be written: this is a folder"));
    }

    /// The names that are made or removed in a folder while something is done.
    fn touched(folder: &Path, done: impl FnOnce()) -> Vec<u8> {
        let name = CString::new(folder.as_os_str().as_bytes()).expect("a name");
        // SAFETY: makes a descriptor, which is ours alone.
        let mut events = unsafe {
            let events = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
            assert!(libc::inotify_add_watch(events, name.as_ptr(), libc::IN_CREATE | libc::IN_DELETE) >= 0);
            fs::File::from_raw_fd(events)
        };
        done();
        let mut bytes = vec![0; 1 << 16];
        let count = events.read(&mut bytes).expect("something was made");
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn a_check_neither_makes_nor_removes_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plan.json");
        let touched = touched(folder.path(), || assert_eq!(said(check(&path)), ""));
        let names = |name: &[u8]| touched.windows(name.len()).any(|part| part == name);
        // Who writes it meanwhile would lose it.
        assert!(names(b".catena-") && !names(b"plan.json"));
    }
}
