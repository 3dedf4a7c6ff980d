//! What is restored, and what is not, after an orderly end and after none.

use super::*;
use crate::folder::Folder;

const WAS: Bandwidth = Bandwidth { quota_us: Some(30_000), period_us: 100_000, burst_us: 0 };

/// A folder with the files of a cgroup, and a journal beside it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::create_dir(place.cgroup()).unwrap();
        fs::write(place.cgroup().join("cpu.max"), "30000 100000\n").unwrap();
        place
    }

    fn cgroup(&self) -> PathBuf {
        self.0.path().join("a")
    }

    fn journal(&self) -> PathBuf {
        self.0.path().join("run/journal")
    }

    fn entry(&self) -> Entry {
        let (folder, inode) = (self.cgroup(), fs::metadata(self.cgroup()).unwrap().ino());
        Entry::Quota { folder, inode, was: WAS, period_us: 1_000_000, wrote_us: [20_000; 2] }
    }

    fn set(&self, quota_us: u64) {
        let to = Bandwidth { quota_us: Some(quota_us), period_us: 1_000_000, burst_us: 0 };
        Folder(&self.cgroup()).write(&to).unwrap();
    }

    fn now(&self) -> Bandwidth {
        Folder(&self.cgroup()).read().unwrap()
    }

    /// End as a killed process does: nothing is undone, and the lock goes.
    fn kill(journal: Journal) {
        // SAFETY: the descriptor is open, and nobody uses the journal any more.
        assert_eq!(unsafe { libc::close(journal.file.as_raw_fd()) }, 0);
        std::mem::forget(journal);
    }
}

fn outcomes(undone: &[Undone]) -> Vec<Outcome> {
    undone.iter().map(|undone| undone.outcome.clone()).collect()
}

#[test]
fn an_orderly_end_restores() {
    let place = Place::new();
    let (mut journal, undone) = Journal::open(&place.journal()).unwrap();
    assert!(undone.is_empty());
    let number = journal.add(place.entry()).unwrap();
    for quota in [20_000, 1_000, 45_678] {
        journal.note(number, quota).unwrap();
        place.set(quota);
    }
    assert_eq!(journal.noted(number), Some([1_000, 45_678]));
    drop(journal);
    assert_eq!((place.now(), fs::read(place.journal()).unwrap().len()), (WAS, 0));
}

#[test]
fn the_next_start_restores_what_a_killed_one_left() {
    let place = Place::new();
    let (mut journal, _) = Journal::open(&place.journal()).unwrap();
    journal.add(place.entry()).unwrap();
    let number = journal.add(place.entry()).unwrap();
    journal.note(number, 1_234).unwrap();
    // Noted, and killed before it was written: the one before is there.
    place.set(20_000);
    Place::kill(journal);
    let (journal, undone) = Journal::open(&place.journal()).unwrap();
    assert_eq!(outcomes(&undone), [Outcome::Restored, Outcome::Restored]);
    assert!(undone[0].to_string().ends_with("/a (30000 us in 100000 us): restored"), "{}", undone[0]);
    assert_eq!(place.now(), WAS);
    Place::kill(journal);
    // Done is done.
    assert!(Journal::open(&place.journal()).unwrap().1.is_empty());
}

/// Who goes back to an older version has restored what that one knows, and is told of the rest, which stays written down.
#[test]
fn what_a_newer_version_changed_keeps_nothing_else_from_being_restored() {
    let place = Place::new();
    drop(Journal::open(&place.journal()).unwrap());
    place.set(20_000);
    let newer = "queue\teth0\t7\n";
    fs::write(place.journal(), format!("{HEADING}{newer}{}", place.entry().line())).unwrap();
    let (journal, undone) = Journal::open(&place.journal()).unwrap();
    let [Outcome::Restored, Outcome::Refused(why)] = &outcomes(&undone)[..] else { panic!("{undone:?}") };
    assert!(why.contains("start the one that wrote it") && undone[1].what.contains("`queue eth0 7`"), "{undone:?}");
    assert_eq!(place.now(), WAS);
    Place::kill(journal);
    assert_eq!(fs::read_to_string(place.journal()).unwrap(), format!("{HEADING}{newer}"));
}

#[test]
fn what_others_changed_is_left_and_what_is_gone_is_skipped() {
    let place = Place::new();
    let (mut journal, _) = Journal::open(&place.journal()).unwrap();
    journal.add(place.entry()).unwrap();
    place.set(77_000);
    let undone = journal.undo().unwrap();
    let theirs = "77000 us in 100000 us".to_owned();
    assert_eq!(outcomes(&undone), [Outcome::PeriodRestored(theirs)]);
    assert!(undone[0].to_string().ends_with("with the period that it had it is 77000 us in 100000 us"));
    assert_eq!(place.now().quota_us, Some(77_000));
    // Another of the same name is another.
    let entry = place.entry();
    fs::rename(place.cgroup(), place.0.path().join("b")).unwrap();
    for _ in 0..2 {
        journal.add(entry.clone()).unwrap();
        assert_eq!(outcomes(&journal.undo().unwrap()), [Outcome::Gone]);
        fs::create_dir(place.cgroup()).unwrap_or_default();
        fs::write(place.cgroup().join("cpu.max"), "20000 1000000\n").unwrap();
    }
}

#[test]
fn what_cannot_be_restored_stays_in_the_journal() {
    let place = Place::new();
    let (mut journal, _) = Journal::open(&place.journal()).unwrap();
    let number = journal.add(place.entry()).unwrap();
    fs::write(place.cgroup().join("cpu.max"), "nonsense\n").unwrap();
    journal.note(number, 5_000).unwrap();
    assert!(matches!(outcomes(&journal.undo().unwrap())[..], [Outcome::Refused(_)]));
    Place::kill(journal);
    fs::write(place.cgroup().join("cpu.max"), "5000 1000000\n").unwrap();
    assert_eq!(outcomes(&Journal::open(&place.journal()).unwrap().1), [Outcome::Restored]);
    assert_eq!(place.now(), WAS);
}

/// Who is killed after each part of forgetting what is done leaves what is not.
#[test]
fn what_is_refused_is_in_the_file_at_each_moment() {
    let place = Place::new();
    let gone = Entry::Thread { pid: u32::MAX, began: 1, from: "/x/tasks".into(), to: "/y/tasks".into() };
    let refused = ["queue\teth0\t7", "queue\teth1 and a name that is longer than others\t8"]
        .map(|line| Entry::Unknown(line.to_owned()));
    for order in [[&refused[0], &gone, &refused[1]], [&gone, &gone, &refused[1]], [&refused[1], &refused[0], &gone]] {
        let (mut journal, _) = Journal::open(&place.journal()).unwrap();
        order.iter().for_each(|entry| _ = journal.add((*entry).clone()).unwrap());
        let left: Vec<&Entry> = order.into_iter().filter(|entry| **entry != gone).collect();
        let text: String = [HEADING.to_owned()].into_iter().chain(left.iter().map(|entry| entry.line())).collect();
        journal.overwrite(&text).unwrap();
        let found = fs::read_to_string(place.journal()).unwrap();
        let entries: Vec<Entry> = parse(&found).unwrap().into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries[..left.len()].iter().collect::<Vec<_>>(), left, "{found}");
        assert!(entries[left.len()..].iter().all(|entry| order.contains(&entry)), "{found}");
        journal.undo().unwrap();
        assert_eq!(fs::read_to_string(place.journal()).unwrap(), text);
        // What is there is still of its place.
        let number = journal.add(place.entry()).unwrap();
        journal.note(number, 20_001).unwrap();
        Place::kill(journal);
        let found = fs::read_to_string(place.journal()).unwrap();
        assert_eq!(parse(&found).unwrap().len(), left.len() + 1, "{found}");
        fs::write(place.journal(), "").unwrap();
    }
}

#[test]
fn one_at_a_time() {
    let place = Place::new();
    let journal = Journal::open(&place.journal()).unwrap();
    let error = Journal::open(&place.journal()).unwrap_err();
    assert!(matches!(error, JournalError::Busy { .. }), "{error}");
    drop(journal);
    Journal::open(&place.journal()).unwrap();
}

#[test]
fn one_that_ends_soon_is_waited_for() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.journal()).unwrap();
    let began = Instant::now();
    let guard = thread::spawn(move || {
        thread::sleep(LOCK / 4);
        drop(journal);
    });
    Journal::open(&place.journal()).unwrap();
    assert!((LOCK / 4..LOCK).contains(&began.elapsed()), "{:?}", began.elapsed());
    guard.join().unwrap();
}

#[test]
fn every_entry_is_read_as_it_was_written_and_half_a_line_is_none() {
    let place = Place::new();
    let device = |namespace| Device { name: "eth0".to_owned(), namespace };
    let without = Bandwidth { quota_us: None, ..WAS };
    let entries = [
        place.entry(),
        Entry::Quota { folder: "/x y".into(), inode: 7, was: without, period_us: 1, wrote_us: [0, u64::MAX] },
        Entry::Threaded { device: device(None), was: false },
        Entry::Threaded { device: device(Some(("/run/netns/a:b".into(), 4026))), was: true },
        Entry::Thread { pid: 9, began: 11, from: "/c/tasks".into(), to: "/c/a/tasks".into() },
    ];
    let lines: String = entries.iter().map(Entry::line).collect();
    let text = format!("{HEADING}{lines}quota\t/half");
    let read = parse(&text).unwrap();
    assert_eq!(read.iter().map(|(_, entry)| entry.clone()).collect::<Vec<_>>(), entries);
    assert!(read.iter().all(|(at, entry)| text[usize::try_from(*at).unwrap()..].starts_with(&entry.line())));
}

#[test]
fn a_file_that_is_no_journal_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    drop(Journal::open(&place.journal()).unwrap());
    for text in [
        "root:x:0:0\n",
        "no newline",
        &format!("{}?", HEADING.trim_end()),
        &"\0".repeat(300),
        &format!("{HEADING}quota\t/x\n"),
        &format!("{HEADING}{HEADING}"),
    ] {
        fs::write(place.journal(), text).unwrap();
        let error = Journal::open(&place.journal()).unwrap_err();
        assert!(matches!(error, JournalError::Line { .. }), "{error}");
        let is_none = !text.starts_with(HEADING);
        assert_eq!(error.to_string().contains("/journal: it is not a journal, and nothing"), is_none, "{error}");
        assert_eq!(fs::read_to_string(place.journal()).unwrap(), text);
    }
    // A heading that was being written is one.
    for length in 0..=HEADING.len() {
        fs::write(place.journal(), &HEADING[..length]).unwrap();
        Journal::open(&place.journal()).unwrap();
    }
    fs::write(place.journal(), "").unwrap();
    fs::set_permissions(place.journal(), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(Journal::open(&place.journal()), Err(JournalError::Unsafe { .. })));
}

#[test]
fn who_changes_the_quota_alone_has_it_of_the_period_that_there_was() {
    let place = Place::new();
    let (mut journal, _) = Journal::open(&place.journal()).unwrap();
    let number = journal.add(place.entry()).unwrap();
    // As `echo 15000 > cpu.cfs_quota_us` does, and `echo 15000 > cpu.max`.
    place.set(15_000);
    let undone = journal.undo_one(number).unwrap();
    assert_eq!(undone.outcome, Outcome::PeriodRestored("15000 us in 100000 us".to_owned()));
    assert_eq!(place.now(), Bandwidth { quota_us: Some(15_000), ..WAS });
    // It is not looked at again.
    assert_eq!((journal.undo().unwrap(), place.now().quota_us), (Vec::new(), Some(15_000)));
}
