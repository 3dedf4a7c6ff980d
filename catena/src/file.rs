//! Files named on the command line: what is wrong with one is said in words, with its name and what was expected there.

use std::fs;
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

pub use catena_runtime::file::read;
use catena_runtime::file::unwritable;

use crate::inode::{self, Identity};
use crate::{Failure, streams};

/// Names that are tried for a file beside another.
const MOST_NAMES: u32 = 16;

/// Write a file in one step: beside it first, so that whoever reads it meets what it was or what it becomes, and a full
/// disk leaves it as it was. It keeps its owner and permissions, and a link goes on leading to it; other hard links keep
/// what it was. `-` is standard output. What is no file, such as `/dev/stdout` or a pipe, is written to directly.
///
/// # Errors
/// When that cannot be done.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let text = text.as_ref();
    if path == Path::new("-") {
        return streams::print_bytes(text);
    }
    let there = Identity::of(path);
    // `/dev/stdout`, and what it is redirected to: behind what has been printed, and before what will be.
    if there.is_some() && there == Identity::of_stream(std::io::stdout()) {
        return streams::print_bytes(text);
    }
    let written = match fs::metadata(path) {
        Ok(there) if there.is_file() => replace(path, Some(&there), text),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, None, text),
        _ => overwrite(path, text),
    };
    written.map_err(|error| unwritable(path, &error).into())
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
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    if there.is_some() {
        // Nobody reads what becomes of a secret file before it has its permissions.
        options.mode(0o600);
    }
    // One that was left there by a process of the same number, which has died, is not touched.
    let names = (0..MOST_NAMES).map(|n| folder.join(format!(".catena-{}-{n}", std::process::id())));
    let taken = |made: &(_, Result<_, Error>)| made.1.as_ref().is_err_and(|e| e.kind() == ErrorKind::AlreadyExists);
    let made = names.map(|name| (name.clone(), options.open(name))).find(|made| !taken(made));
    let (aside, made) = made.ok_or(ErrorKind::AlreadyExists)?;
    let mut file = match made {
        Ok(file) => file,
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
        fs::rename(&aside, &target)
    })();
    match done {
        // The name is safe on the disk once the folder is, where the file system can say so.
        Ok(()) => _ = fs::File::open(folder).and_then(|folder| folder.sync_all()),
        Err(error) => {
            _ = fs::remove_file(&aside);
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

/// Check that a file can be written, before what is to be written takes minutes to make. A file that is there is not touched.
///
/// # Errors
/// When it cannot.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Ok(streams::check_open()?);
    }
    let there = fs::metadata(path);
    // A pipe has a reader, who would take the check for the end of the text.
    if there.as_ref().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| unwritable(path, &error))?;
    if there.is_err() {
        fs::remove_file(inode::target(path)).map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<T>(result: Result<T, Failure>) -> String {
        result.err().map_or_else(String::new, |Failure(message)| message)
    }

    #[test]
    fn a_check_leaves_files_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "kept").expect("it can be written");
        assert_eq!(said(check_writable(&at("old"))) + &said(check_writable(&at("new"))), "");
        assert_eq!(fs::read_to_string(at("old")).ok().as_deref(), Some("kept"));
        assert!(!at("new").exists());
        std::os::unix::fs::symlink(at("old"), at("link")).expect("a link");
        std::os::unix::fs::symlink(at("new"), at("loose")).expect("a link");
        assert_eq!(said(check_writable(&at("link"))) + &said(check_writable(&at("loose"))), "");
        assert!(at("loose").is_symlink() && !at("new").exists());
        assert!(said(check_writable(&at("none/new"))).contains("new: cannot be written: there is no folder "));
        assert!(said(write(folder.path(), "")).ends_with("cannot be written: this is a folder"));
    }
}
