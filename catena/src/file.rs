//! Files named on the command line: what is wrong with one is said in words, with its name and what was expected there.

use std::io::{Error, ErrorKind, Read};
use std::path::Path;

use crate::Failure;

/// Read a file's text; `-` is standard input. `expected` says what it should be, such as "a chain file".
///
/// # Errors
/// When it cannot be read, or is no text.
pub fn read(path: &Path, expected: &str) -> Result<String, Failure> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        ("standard input".to_owned(), std::io::stdin().read_to_end(&mut bytes).map(|_| bytes))
    } else {
        (path.display().to_string(), std::fs::read(path))
    };
    let bytes = bytes.map_err(|error| format!("{name}: {}; expected {expected}", reason(&error)))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure(format!("{name}: this is no text: byte {at} is not UTF-8; expected {expected}"))
    })
}

/// Write a file.
///
/// # Errors
/// When that cannot be done.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| unwritable(path, &error))
}

/// Check that a file can be written, before what is to be written takes minutes to make. A file that is there is not touched.
///
/// # Errors
/// When it cannot.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let there = std::fs::symlink_metadata(path);
    // A pipe has a reader, who would take the check for the end of the text; a link may lead to what is not there yet.
    if there.as_ref().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| unwritable(path, &error))?;
    if there.is_err() {
        std::fs::remove_file(path).map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &Error) -> Failure {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let why = match folder {
        Some(folder) => format!("there is no folder {}", folder.display()),
        None => reason(error),
    };
    Failure(format!("{}: cannot be written: {why}", path.display()))
}

/// Why a file cannot be used, in words.
fn reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::IsADirectory => "this is a folder".to_owned(),
        ErrorKind::PermissionDenied => "you may not: permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<T>(result: Result<T, Failure>) -> String {
        result.err().map_or_else(String::new, |Failure(message)| message)
    }

    #[test]
    fn what_is_no_such_text_is_said_with_what_was_expected() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("binary"), b"ab\xff").expect("it can be written");
        assert!(said(read(&at("none"), "a rack")).ends_with("none: there is no such file; expected a rack"));
        assert!(said(read(folder.path(), "a rack")).ends_with(": this is a folder; expected a rack"));
        assert!(said(read(&at("binary"), "a rack")).contains("binary: this is no text: byte 2 is not UTF-8"));
    }

    #[test]
    fn a_check_leaves_files_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("old"), "kept").expect("it can be written");
        assert_eq!(said(check_writable(&at("old"))) + &said(check_writable(&at("new"))), "");
        assert_eq!(std::fs::read_to_string(at("old")).ok().as_deref(), Some("kept"));
        assert!(!at("new").exists());
        assert!(said(check_writable(&at("none/new"))).contains("new: cannot be written: there is no folder "));
        assert!(said(write(folder.path(), "")).ends_with("cannot be written: this is a folder"));
    }
}
