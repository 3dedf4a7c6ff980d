//! What the kernel's settings were before they were changed, in a file that outlives the process that changed them.
//!
//! An entry is on the disk before its setting changes. Whoever ends in order undoes the entries; what ends otherwise, as by
//! `kill -9`, leaves them to the next one that opens the journal. The file's lock lets one at a time change settings.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::locks::{LOCKS, Locks};
use crate::names::in_table;
use crate::quota::Bandwidth;
use crate::restore::Changed;
use crate::threaded;

/// The first line: what the file is, and the version of its lines.
const HEADING: &str = "catena isolate journal 1\n";
/// How long the lock is waited for: a guard may have it, which restores what a run left that was killed a moment ago.
const LOCK: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(1);
/// A line of these, or of nothing, is none.
const BLANK: u8 = b'#';
/// Columns of a value that is written in place, again and again.
const WIDTH: usize = 20;

/// A setting that was changed, and what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The quota of a cgroup.
    Quota {
        /// Its folder, in the hierarchy of the cpu controller.
        folder: PathBuf,
        /// The folder's inode: another cgroup may come to have the same name.
        inode: u64,
        /// What there was.
        was: Bandwidth,
        /// The period that it was given instead, in us.
        period_us: u64,
        /// Quotas that it was given last, in us: the one before, and the one that was being written.
        wrote_us: [u64; 2],
    },
    /// Whether a device's packets are polled by threads of the kernel.
    Threaded {
        /// The device, and where it is.
        device: Device,
        /// What there was, `0` or `1`.
        was: bool,
    },
    /// The cgroup of a thread of the kernel.
    Thread {
        /// Its number.
        pid: u32,
        /// When it began, in ticks since the machine did: another may come to have the same number.
        began: u64,
        /// The file of threads that it was in.
        from: PathBuf,
        /// The one that it was put into.
        to: PathBuf,
    },
    /// What a newer version changed, as it wrote that down. It keeps nothing else from being restored.
    Unknown(String),
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The setting.
    pub what: String,
    /// What was done about it.
    pub outcome: Outcome,
}

/// What was done about a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is again what it was.
    Restored,
    /// There is no such cgroup, device or thread any more.
    Gone,
    /// Somebody else has changed it since, to this, and it was left.
    ChangedByOthers(String),
    /// Somebody else has changed the quota alone, to this; it is of the period that the cgroup had.
    PeriodRestored(String),
    /// A cgroup above has less by now: as much was restored as that leaves, this.
    Cut(String),
    /// The kernel refuses to restore it; what it says.
    Refused(String),
}

impl Undone {
    /// Return whether it is still to be done.
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Restored => write!(f, "{}: restored", self.what),
            Outcome::Gone => write!(f, "{}: gone, nothing to restore", self.what),
            Outcome::ChangedByOthers(to) => write!(f, "{}: left alone, somebody else changed it to {to}", self.what),
            Outcome::PeriodRestored(to) => write!(
                f,
                "{}: somebody else changed the quota, which is left alone; with the period that it had it is {to}",
                self.what
            ),
            Outcome::Cut(to) => {
                write!(f, "{}: restored to {to}, as much as the cgroups above it leave by now", self.what)
            }
            Outcome::Refused(why) => write!(f, "{}: NOT restored: {why}", self.what),
        }
    }
}

/// What is wrong with a journal.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum JournalError {
    /// It cannot be made, read or written.
    Io { file: PathBuf, error: io::Error },
    /// Somebody else changes settings now.
    Busy { file: PathBuf },
    /// Others than this user may write it.
    Unsafe { file: PathBuf },
    /// A line that no journal has.
    Line { file: PathBuf, line: usize, found: String },
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Io { file, error } => {
                write!(f, "{}: {error}; expected a journal that can be written: try --journal FILE", file.display())
            }
            JournalError::Busy { file } => write!(
                f,
                "{}: another `catena isolate enforce` holds this journal: end it first, or give this one other cgroups and \
                 another --journal",
                file.display()
            ),
            JournalError::Unsafe { file } => write!(
                f,
                "{}: others may write this file, and settings would be restored as it says: `chmod 600` it, or try another \
                 --journal",
                file.display()
            ),
            JournalError::Line { file, line: 1, .. } => write!(
                f,
                "{}: it is not a journal, and nothing is read from it or written to it: try another --journal",
                file.display()
            ),
            JournalError::Line { file, line, found } => write!(
                f,
                "{}:{line}: `{}`: expected an entry of a journal; look what is to be restored, and remove the file",
                file.display(),
                in_table(found)
            ),
        }
    }
}

impl std::error::Error for JournalError {}

/// An open journal, which no other process has open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Kept>,
    length: u64,
}

/// An entry in a journal.
#[derive(Debug)]
struct Kept {
    /// Its place in the file.
    at: u64,
    entry: Entry,
    /// Whether nothing is left to do about it.
    is_done: bool,
}

impl Journal {
    /// Open a journal, undo what an earlier process left in it, and say what became of that.
    ///
    /// # Errors
    /// When it cannot be opened, is open elsewhere, or is no journal.
    pub fn open(path: &Path) -> Result<(Journal, Vec<Undone>), JournalError> {
        let failed = |error| JournalError::Io { file: path.to_owned(), error };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        // SAFETY: the call takes nothing and cannot fail.
        let user = unsafe { libc::geteuid() };
        if metadata.uid() != user || metadata.mode() & 0o022 != 0 || !metadata.is_file() {
            return Err(JournalError::Unsafe { file: path.to_owned() });
        }
        let end = Instant::now() + LOCK;
        // SAFETY: the descriptor is open; the lock goes with it, also when the process is killed.
        while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            if Instant::now() >= end {
                return Err(JournalError::Busy { file: path.to_owned() });
            }
            thread::sleep(AGAIN);
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let entries =
            parse(&text).map_err(|(line, found)| JournalError::Line { file: path.to_owned(), line, found })?;
        let entries = entries.into_iter().map(|(at, entry)| Kept { at, entry, is_done: false }).collect();
        let length = text.len() as u64;
        let mut journal = Journal { path: path.to_owned(), file, entries, length };
        let inodes = journal.entries.iter().filter_map(|kept| Some(kept.entry.quota()?.inode));
        let locks = Locks::while_restored(Path::new(LOCKS), inodes);
        let undone = journal.undo()?;
        drop(locks);
        // The name must be there after a crash, too.
        path.parent()
            .and_then(|folder| File::open(folder).ok())
            .map_or(Ok(()), |folder| folder.sync_all())
            .map_err(failed)?;
        Ok((journal, undone))
    }

    /// Write down what a setting is, before it changes. Returns the entry's number.
    ///
    /// # Errors
    /// When that cannot be written; the setting must not be changed then.
    pub fn add(&mut self, entry: Entry) -> Result<usize, JournalError> {
        let mut line = String::new();
        if self.length == 0 {
            line.push_str(HEADING);
        }
        let at = self.length + line.len() as u64;
        line.push_str(&entry.line());
        let written = self.file.write_all_at(line.as_bytes(), self.length).and_then(|()| self.file.sync_data());
        written.map_err(|error| JournalError::Io { file: self.path.clone(), error })?;
        self.length += line.len() as u64;
        self.entries.push(Kept { at, entry, is_done: false });
        Ok(self.entries.len() - 1)
    }

    /// Write down the quota that a cgroup is about to be given, by the number of its entry.
    ///
    /// Not synced: it is for who comes after a `kill -9`. After a crash of the machine there are no cgroups to restore.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn note(&mut self, number: usize, quota_us: u64) -> Result<(), JournalError> {
        let Some(Kept { at, entry, .. }) = self.entries.get_mut(number) else { return Ok(()) };
        let Entry::Quota { wrote_us, .. } = entry else { return Ok(()) };
        *wrote_us = [wrote_us[1], quota_us];
        // The last columns of the line, so that it keeps its length.
        let columns = columns(*wrote_us);
        let line = entry.line().len();
        let place = *at + (line - 1 - columns.len()) as u64;
        let written = self.file.write_all_at(columns.as_bytes(), place);
        written.map_err(|error| JournalError::Io { file: self.path.clone(), error })
    }

    /// Return the quotas that a cgroup was given last, by the number of its entry.
    pub fn noted(&self, number: usize) -> Option<[u64; 2]> {
        match &self.entries.get(number)?.entry {
            Entry::Quota { wrote_us, .. } => Some(*wrote_us),
            _ => None,
        }
    }

    /// Return whether threads received for a device before, by the number of its entry.
    pub(crate) fn was_threaded(&self, number: usize) -> Option<bool> {
        match &self.entries.get(number)?.entry {
            Entry::Threaded { was, .. } => Some(*was),
            _ => None,
        }
    }

    /// Return whether a number is that of such an entry, which is still to be undone.
    pub(crate) fn is_entry(&self, number: usize, entry: &Entry) -> bool {
        self.entries.get(number).is_some_and(|kept| !kept.is_done && kept.entry == *entry)
    }

    /// Undo one entry, by its number, and leave it alone from then on.
    ///
    /// One that the kernel refuses stays, to be tried again at the end.
    pub fn undo_one(&mut self, number: usize) -> Option<Undone> {
        let kept = self.entries.get_mut(number)?;
        let mut undone = vec![None];
        undo_all(std::slice::from_ref(&kept.entry), &mut undone);
        let undone = undone.pop()??;
        kept.is_done = !undone.is_refused();
        Some(undone)
    }

    /// Return why an earlier run's quota of a cgroup, by its folder, cannot be restored; `None` where there is none such.
    pub(crate) fn unrestored(&self, of: &Path) -> Option<Undone> {
        let is_it = |entry: &Entry| matches!(entry, Entry::Quota { folder, .. } if folder == of);
        let found = self.entries.iter().map(|kept| &kept.entry).filter(|entry| is_it(entry));
        found.map(Entry::undo).find(Undone::is_refused)
    }

    /// Undo all entries, the last one first, and forget those that need nothing more.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn undo(&mut self) -> Result<Vec<Undone>, JournalError> {
        let open = self.entries.iter().rev().filter(|kept| !kept.is_done);
        let open: Vec<Entry> = open.map(|kept| kept.entry.clone()).collect();
        let mut undone = vec![None; open.len()];
        undo_all(&open, &mut undone);
        let undone: Vec<Undone> = undone.into_iter().flatten().collect();
        let (mut text, mut refused) = (HEADING.to_owned(), Vec::new());
        for (entry, _) in open.into_iter().zip(&undone).rev().filter(|(_, undone)| undone.is_refused()) {
            let (at, line) = (text.len() as u64, entry.line());
            text.push_str(&line);
            refused.push(Kept { at, entry, is_done: false });
        }
        if refused.is_empty() {
            text.clear();
        }
        let length = text.len() as u64;
        let done = self.overwrite(&text).and_then(|()| self.file.set_len(length)).and_then(|()| self.file.sync_data());
        done.map_err(|error| JournalError::Io { file: self.path.clone(), error })?;
        (self.entries, self.length) = (refused, length);
        Ok(undone)
    }

    /// Write what is still to be undone over the begin of the file. What remains of a line there becomes one that says nothing, so that
    /// whoever reads the file before it is cut finds no half one; what follows is done, or undone once more.
    fn overwrite(&self, text: &str) -> io::Result<()> {
        let length = text.len() as u64;
        let lines = self.entries.iter().map(|kept| kept.at).chain([self.length]);
        let rest = lines.filter(|at| *at >= length).min().map_or(0, |at| at - length);
        let mut over = text.as_bytes().to_vec();
        if length > 0 && rest > 0 {
            over.resize(over.len() + usize::try_from(rest).unwrap_or(1) - 1, BLANK);
            over.push(b'\n');
        }
        self.file.write_all_at(&over, 0)
    }
}

/// Undo entries in this order. What the kernel refuses is tried again as long as others are restored: with cgroup v1 a quota may need
/// those above it, or below it, to be restored first. What is still refused is cut to what the cgroups above leave, the outermost first.
fn undo_all(entries: &[Entry], undone: &mut [Option<Undone>]) {
    let is_open = |undone: &Option<Undone>| undone.as_ref().is_none_or(Undone::is_refused);
    let mut outermost: Vec<usize> = (0..entries.len()).collect();
    outermost.sort_by_key(|number| entries[*number].depth());
    loop {
        let mut left = usize::MAX;
        while undone.iter().filter(|undone| is_open(undone)).count() < left {
            left = undone.iter().filter(|undone| is_open(undone)).count();
            for (entry, undone) in entries.iter().zip(&mut *undone).filter(|(_, undone)| is_open(undone)) {
                *undone = Some(entry.undo());
            }
        }
        let mut refused = outermost.iter().filter(|number| is_open(&undone[**number]));
        let Some((number, cut)) = refused.find_map(|number| Some((*number, entries[*number].cut()?))) else { return };
        undone[number] = Some(cut);
    }
}

impl Entry {
    /// Return what is read of it.
    fn what(&self) -> String {
        match self {
            Entry::Quota { folder, was, .. } => format!("quota of {} ({was})", folder.display()),
            Entry::Threaded { device, was } => format!("threaded NAPI of {device} ({})", u8::from(*was)),
            Entry::Thread { pid, from, .. } => format!("kernel thread {pid} ({})", from.display()),
            Entry::Unknown(line) => format!("what a newer Catena changed (`{}`)", line.replace('\t', " ")),
        }
    }

    fn line(&self) -> String {
        match self {
            Entry::Quota { folder, inode, was, period_us, wrote_us } => {
                let quota = was.quota_us.map_or_else(|| "max".to_owned(), |us| us.to_string());
                let Bandwidth { period_us: was_us, burst_us, .. } = was;
                let columns = columns(*wrote_us);
                format!("quota\t{}\t{inode}\t{quota}\t{was_us}\t{burst_us}\t{period_us}\t{columns}\n", folder.display())
            }
            Entry::Threaded { device, was } => {
                format!("threaded\t{}\t{}\t{}\n", device.name, device.namespace_column(), u8::from(*was))
            }
            Entry::Thread { pid, began, from, to } => {
                format!("thread\t{pid}\t{began}\t{}\t{}\n", from.display(), to.display())
            }
            Entry::Unknown(line) => format!("{line}\n"),
        }
    }

    fn parse(line: &str) -> Option<Entry> {
        let mut words = line.split('\t');
        let kind = words.next()?;
        let mut word = || words.next();
        let entry = match kind {
            "quota" => {
                let (folder, inode) = (word()?.into(), word()?.parse().ok()?);
                let quota = word()?;
                let quota_us = if quota == "max" { None } else { Some(quota.parse().ok()?) };
                let was = Bandwidth { quota_us, period_us: word()?.parse().ok()?, burst_us: word()?.parse().ok()? };
                let period_us = word()?.parse().ok()?;
                let wrote_us = [word()?.trim().parse().ok()?, word()?.trim().parse().ok()?];
                Entry::Quota { folder, inode, was, period_us, wrote_us }
            }
            "threaded" => {
                let device = Device::from_columns(word()?, word()?)?;
                Entry::Threaded { device, was: word()? == "1" }
            }
            "thread" => {
                let (pid, began) = (word()?.parse().ok()?, word()?.parse().ok()?);
                Entry::Thread { pid, began, from: word()?.into(), to: word()?.into() }
            }
            other => {
                let is_kind = !other.is_empty() && other.bytes().all(|byte| byte.is_ascii_lowercase());
                return (is_kind && word().is_some()).then(|| Entry::Unknown(line.to_owned()));
            }
        };
        word().is_none().then_some(entry)
    }

    fn undo(&self) -> Undone {
        let outcome = match self {
            Entry::Quota { .. } => self.quota().map_or(Outcome::Gone, |changed| changed.restore()),
            Entry::Threaded { device, was } => threaded::restore(device, *was),
            Entry::Thread { pid, began, from, to } => threaded::put_back(*pid, *began, from, to),
            Entry::Unknown(_) => {
                Outcome::Refused("this version does not know it: start the one that wrote it".to_owned())
            }
        };
        Undone { what: self.what(), outcome }
    }

    /// Restore as much of a quota as the cgroups above leave; `None` where that does not help.
    fn cut(&self) -> Option<Undone> {
        Some(Undone { what: self.what(), outcome: self.quota()?.cut()? })
    }

    fn quota(&self) -> Option<Changed<'_>> {
        let Entry::Quota { folder, inode, was, period_us, wrote_us } = self else { return None };
        Some(Changed { folder, inode: *inode, was, period_us: *period_us, wrote_us: *wrote_us })
    }

    /// Return how far below the root the cgroup is.
    fn depth(&self) -> usize {
        self.quota().map_or(0, |changed| changed.folder.components().count())
    }
}

fn columns([before, now]: [u64; 2]) -> String {
    format!("{before:WIDTH$}\t{now:WIDTH$}")
}

/// Return the entries of a journal with their places; where it is none, the number and text of the line. A last line without
/// its end was being written: what it is about has not changed. So may the heading be; what else begins a file is not a journal's.
fn parse(text: &str) -> Result<Vec<(u64, Entry)>, (usize, String)> {
    let mut entries = Vec::new();
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.ends_with('\n') && (number > 0 || line != HEADING) {
            let line = line.trim_end_matches('\n');
            if number > 0 && line.bytes().all(|byte| byte == BLANK) {
                at += line.len() as u64 + 1;
                continue;
            }
            let entry = if number == 0 { None } else { Entry::parse(line) };
            entries.push((at, entry.ok_or_else(|| (number + 1, line.to_owned()))?));
        } else if number == 0 && !HEADING.starts_with(line) {
            return Err((1, line.to_owned()));
        }
        at += line.len() as u64;
    }
    Ok(entries)
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Nobody is left to be told.
        _ = self.undo();
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
