//! Files by their names: what is wrong with one is said in words, with its name and what was expected there.

use std::fs;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

use crate::Failure;

/// Read a file's text; `-` is standard input. `expected` says what it should be, such as "a chain file".
///
/// # Errors
/// When it cannot be read, or is no text.
pub fn read(path: &Path, expected: &str) -> Result<String, Failure> {
    let (name, bytes) = if path == Path::new("-") {
        ("standard input".to_owned(), all(std::io::stdin()))
    } else {
        (path.display().to_string(), fs::File::open(path).and_then(all))
    };
    let bytes = bytes.map_err(|error| format!("{name}: {}; expected {expected}", reason(&error)))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("{name}: this is no text: byte {at} is not UTF-8; expected {expected}"))
    })
}

/// Bytes of the longest text that is read: more than any has that somebody wrote.
const MOST: u64 = 1 << 30;

/// All that is read, if it is not more than there can be.
fn all(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match from.take(MOST + 1).read_to_end(&mut bytes)? as u64 > MOST {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {MOST} bytes"))),
        false => Ok(bytes),
    }
}

/// Open a file to write to its end, and return whether it was there. One that is there keeps what it holds.
///
/// # Errors
/// When it cannot be written.
pub fn claim(path: &Path) -> Result<(fs::File, bool), Failure> {
    let is_there = fs::metadata(path).is_ok();
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(|file| (file, is_there)).map_err(|error| unwritable(path, &error))
}

/// Say why a file cannot be written.
pub fn unwritable(path: &Path, error: &Error) -> Failure {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let why = match folder {
        Some(folder) => format!("there is no folder {}", folder.display()),
        None => reason(error),
    };
    Failure::new(format!("{}: cannot be written: {why}", path.display()))
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
        result.err().map_or_else(String::new, |failure| failure.to_string())
    }

    #[test]
    fn what_is_no_such_text_is_said_with_what_was_expected() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("binary"), b"ab\xff").expect("it can be written");
        assert!(said(read(&at("none"), "a rack")).ends_with("none: there is no such file; expected a rack"));
        assert!(said(read(folder.path(), "a rack")).ends_with(": this is a folder; expected a rack"));
        assert!(said(read(&at("binary"), "a rack")).contains("binary: this is no text: byte 2 is not UTF-8"));
    }
}
