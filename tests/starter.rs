//! Tests do not depend on who started them: those that send signals pass where signals are ignored and blocked.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The tests that send signals, by their names' beginnings, and how many they are at least.
const CASES: [&str; 3] = ["ending::", "outputs::two_runs_do_not_write_one_file", "joined::"];
const LEAST: usize = 13;

/// What `nohup`, a shell's `&` and service managers leave ignored or blocked.
const SIGNALS: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGQUIT];

#[test]
fn tests_of_signals_pass_where_signals_are_ignored_and_blocked() {
    let mut again = Command::new(std::env::current_exe().expect("this program has a path"));
    again.args(CASES);
    let deafen = || {
        // SAFETY: these calls are async-signal-safe, as must be what runs between `fork` and `exec`; the set is plain
        // data on the stack, which `sigfillset` fills before it is read.
        unsafe {
            for signal in SIGNALS {
                libc::signal(signal, libc::SIG_IGN);
            }
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: the closure neither allocates nor takes a lock, and touches nothing of the parent's.
    let output = unsafe { again.pre_exec(deafen) }.output().expect("this program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let passed = text.lines().filter(|line| line.starts_with("test ") && line.ends_with("... ok")).count();
    assert!(passed >= LEAST, "only {passed} tests ran:\n{text}");
}
