//! The signals of children: a test must not depend on what started it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// What starters ignore: `nohup` SIGHUP, a shell SIGINT and SIGQUIT of what it puts into the background.
const RESET: [i32; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGCHLD,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Let a command start with the default actions of signals, and none blocked: ignored and blocked signals are inherited.
pub fn default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        // SAFETY: these calls are async-signal-safe, as must be what runs between `fork` and `exec`; the set is plain
        // data on the stack, which `sigemptyset` fills before it is read.
        unsafe {
            for signal in RESET {
                if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                    return Err(io::Error::last_os_error());
                }
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            if libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure neither allocates nor takes a lock, and touches nothing of the parent's.
    unsafe { command.pre_exec(reset) }
}
