//! Where rule files come from: a trait, so that tests feed them and nothing else here does I/O.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads the files that a chain file names.
pub trait Files {
    /// The text of the file at `path`, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// Why it cannot be read, in words for the operator.
    fn read(&self, path: &Path, limit: usize) -> Result<String, String>;
}

/// The file system; relative paths start at the working directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path, limit: usize) -> Result<String, String> {
        let file = File::open(path).map_err(|e| e.to_string())?;
        // A pipe or device may never end.
        if !file.metadata().map_err(|e| e.to_string())?.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        let mut bytes = Vec::new();
        let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        file.take(bound).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        if bytes.len() > limit {
            return Err(format!("it has more than {limit} bytes"));
        }
        String::from_utf8(bytes)
            .map_err(|e| format!("it is not UTF-8 text (byte {} of it)", e.utf8_error().valid_up_to()))
    }
}

/// No files at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path, _: usize) -> Result<String, String> {
        Err("no files are read here".to_owned())
    }
}

/// `path` as written in the chain file `name`: relative ones start at that file's folder.
pub(crate) fn beside(name: &str, path: &str) -> PathBuf {
    match Path::new(name).parent() {
        Some(folder) => folder.join(path),
        None => PathBuf::from(path),
    }
}
