//! Standard error that nobody reads.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use super::*;

/// A pipe that is full.
fn full() -> (PipeReader, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let flags = |to: libc::c_int| {
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, to) }, 0);
    };
    flags(libc::O_NONBLOCK);
    // Whole pages, and then what is left of the last.
    for size in [4096, 1] {
        while (&writer).write(&[b'.'; 4096][..size]).is_ok() {}
    }
    flags(0);
    (reader, writer)
}

#[test]
fn standard_error_that_nobody_reads_holds_no_quota_up() {
    let Some(group) = Group::new() else { return };
    let quota = group.quota();
    let metrics = |folder: &Path| folder.join("a.prom");
    let words = |folder: &Path| vec!["--prometheus".to_owned(), metrics(folder).display().to_string()];
    // Where nothing is enforced there is nothing to hold up.
    let Some(mut first) = Enforcement::start(&group, words) else { return };
    assert_eq!(first.interrupt(), Some(0));
    let (mut reader, writer) = full();
    let Some(mut enforcement) = Enforcement::saying(&group, words, |_| writer.into()) else { panic!("it ran before") };
    let file = metrics(enforcement.folder.path());
    assert!(becomes(|| file.exists()));
    // That another one is started is told to nobody.
    let guards = enforcement.guards();
    guards.iter().for_each(|guard| signal(*guard, libc::SIGKILL));
    assert!(becomes(|| enforcement.guards().iter().any(|guard| !guards.contains(guard))));
    for _ in 0..3 {
        let before = std::fs::read_to_string(&file).unwrap();
        assert!(becomes(|| std::fs::read_to_string(&file).unwrap() != before), "no more metrics are written");
    }
    // Who reads at last is told.
    let said = "catena: the guard of this run has ended (signal: 9 (SIGKILL)): another guard is started\n";
    let mut read = vec![0; 1 << 20];
    let mut told = String::new();
    while !told.ends_with(said) {
        let bytes = reader.read(&mut read).unwrap();
        assert_ne!(bytes, 0, "standard error is closed");
        told.push_str(&text(&read[..bytes]));
    }
    assert_eq!((enforcement.interrupt(), group.quota()), (Some(0), quota));
}
