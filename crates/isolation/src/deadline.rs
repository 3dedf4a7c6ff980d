//! A thread of the kernel held to a part of a CPU: by `SCHED_DEADLINE`, since a cgroup's quota may not hold it.
//!
//! From Linux 6.18 on a quota holds tasks back on their way to user mode, where threads of the kernel never go. The deadline
//! scheduler takes any task off the CPU that has used its runtime, until its next period.

use std::fs;
use std::io;

/// The least that the scheduler takes is 1,024 ns; a poll of 64 packets takes some 100 us.
const LEAST_NS: u64 = 100_000;

/// `struct sched_attr` of the kernel, in its first size.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn set(pid: u32, attributes: &Attributes) -> io::Result<()> {
    // SAFETY: the structure has the size that it says, and the call only reads it.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, std::ptr::from_ref(attributes), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn policy(pid: u32) -> Option<i32> {
    // SAFETY: the call takes a number and changes nothing.
    let policy = unsafe { libc::sched_getscheduler(libc::pid_t::try_from(pid).ok()?) };
    (policy >= 0).then_some(policy)
}

/// Let a thread run for so long in each period, in ns, and no longer. One that somebody has given another class is left alone.
///
/// Where all deadlines together would be more than the kernel allows, as after a late step whose quotas are of several periods, a
/// thread keeps the runtime that it has, or first gets what there is room for: both are less. One that finds no room at all runs on as
/// it is until the next step tries again; what it takes is in the books.
///
/// # Errors
/// The kernel's.
pub fn hold(pid: u32, runtime: u64, period: u64) -> io::Result<()> {
    if !policy(pid).is_some_and(|policy| policy == libc::SCHED_OTHER || policy == libc::SCHED_DEADLINE) {
        return Ok(());
    }
    let mut runtime = runtime.clamp(LEAST_NS.min(period), period);
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or_default();
    let is_held = policy(pid) == Some(libc::SCHED_DEADLINE);
    let policy = libc::SCHED_DEADLINE.unsigned_abs();
    loop {
        let done = set(pid, &Attributes { size, policy, runtime, deadline: period, period, ..Attributes::default() });
        match done {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                if is_held || runtime / 2 < LEAST_NS {
                    return Ok(());
                }
                runtime /= 2;
            }
            done => return done,
        }
    }
}

/// Let a thread run as before; nothing is done about one that was not held.
///
/// # Errors
/// The kernel's.
pub fn release(pid: u32) -> io::Result<()> {
    if policy(pid) != Some(libc::SCHED_DEADLINE) {
        return Ok(());
    }
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or_default();
    set(pid, &Attributes { size, ..Attributes::default() })
}

/// Return how long a thread has run since it began, in ns; 0 where the kernel does not tell.
pub fn ran_ns(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return how long a thread may run in each period, in ns; 0: it is held to nothing.
    fn runtime(pid: u32) -> u64 {
        let size = u32::try_from(size_of::<Attributes>()).unwrap();
        let mut has = Attributes::default();
        // SAFETY: the call writes no more than the size that it is told.
        let done = unsafe { libc::syscall(libc::SYS_sched_getattr, pid, &raw mut has, size, 0) };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        if has.policy == libc::SCHED_DEADLINE.unsigned_abs() { has.runtime } else { 0 }
    }

    /// All threads share the room for deadlines.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn threads_that_there_is_no_room_for_get_less() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let threads = std::thread::available_parallelism().unwrap().get() + 1;
        let (tell, told) = std::sync::mpsc::channel();
        let held: Vec<_> = (0..threads)
            .map(|_| {
                let (tell, (end, wait)) = (tell.clone(), std::sync::mpsc::channel::<()>());
                let thread = std::thread::spawn(move || {
                    // SAFETY: the call takes nothing.
                    let me = u32::try_from(unsafe { libc::gettid() }).unwrap();
                    // The second is more than there is room for, and keeps the first.
                    tell.send(hold(me, 10_000_000, 20_000_000).and_then(|()| hold(me, 20_000_000, 20_000_000)))
                        .unwrap();
                    _ = wait.recv();
                    release(me).unwrap();
                });
                (end, thread)
            })
            .collect();
        let done: Vec<_> = (0..threads).map(|_| told.recv().unwrap()).collect();
        for (end, thread) in held {
            drop(end);
            thread.join().unwrap();
        }
        if done.iter().any(|done| done.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))) {
            return catena_testing::skip_kernel("no deadlines, which root may set");
        }
        assert!(done.iter().all(Result::is_ok), "{done:?}");
    }

    #[test]
    fn a_held_thread_runs_for_its_part_and_then_as_before() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the call takes nothing.
        let me = u32::try_from(unsafe { libc::gettid() }).unwrap();
        if let Err(error) = hold(me, 2_000_000, 20_000_000) {
            return catena_testing::skip_kernel(&format!("no deadlines, which root may set: {error}"));
        }
        let granted = runtime(me);
        let (began, ran) = (std::time::Instant::now(), ran_ns(me));
        while began.elapsed().as_millis() < 400 {
            std::hint::spin_loop();
        }
        let part = (ran_ns(me) - ran) as f64 / began.elapsed().as_nanos() as f64;
        release(me).unwrap();
        assert_eq!((policy(me), runtime(me)), (Some(libc::SCHED_OTHER), 0));
        // The kernel gives room that ended threads had back late, and on some kernels not at all.
        if granted == 0 {
            return catena_testing::skip_kernel("no room for deadlines is left");
        }
        // A tenth, where there was room for it.
        let is = granted as f64 / 20_000_000.0;
        assert!(is <= 0.1 && (is * 0.5..is * 2.0).contains(&part), "{part} of {is}");
        release(me).unwrap();
    }
}
