//! The files of the repository, as text.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 6] = ["target", "book", "corpus", "artifacts", "results", "node_modules"];
/// Endings of files that people read.
const READ: [&str; 17] = [
    "rs", "c", "cpp", "h", "md", "toml", "catena", "acl", "rules", "routes", "tmpl", "dot", "sh", "py", "mk", "yml",
    "conf",
];
/// Files without an ending that people read.
const NAMED: [&str; 3] = ["Makefile", "run", ".gitignore"];

/// A file.
pub struct File {
    /// Its path from the root of the repository.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl File {
    /// Return the ending of its name.
    pub fn ending(&self) -> &str {
        Path::new(&self.path).extension().and_then(|e| e.to_str()).unwrap_or("")
    }
}

/// Return the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the repository").to_owned()
}

/// Read a file that must be there.
///
/// # Panics
/// When it is not.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Return all files that people read, in the order of their paths.
pub fn all() -> Vec<File> {
    let mut files = Vec::new();
    collect(&root(), Path::new(""), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(files.len() > 50, "the repository has more than {} files", files.len());
    files
}

/// Return the files with one of these endings.
pub fn with_ending(endings: &[&str]) -> Vec<File> {
    let mut files = all();
    files.retain(|file| endings.contains(&file.ending()));
    files
}

fn collect(folder: &Path, prefix: &Path, files: &mut Vec<File>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let entry = entry.expect("a folder's entry can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let (path, short) = (entry.path(), prefix.join(&name));
        let kind = entry.file_type().expect("an entry has a kind");
        if kind.is_dir() {
            let hidden = name.starts_with('.') && ![".ci", ".cargo"].contains(&&*name);
            if !hidden && !SKIPPED.contains(&&*name) {
                collect(&path, &short, files);
            }
            continue;
        }
        let ending = short.extension().and_then(|e| e.to_str()).unwrap_or("");
        if kind.is_file()
            && (READ.contains(&ending) || NAMED.contains(&&*name))
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.push(File { path: short.display().to_string(), text });
        }
    }
}
