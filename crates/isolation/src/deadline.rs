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

fn policy(pid: u32) -> io::Result<i32> {
    // SAFETY: the call takes a number and changes nothing.
    let policy = unsafe { libc::sched_getscheduler(pid.cast_signed()) };
    if policy >= 0 { Ok(policy) } else { Err(io::Error::last_os_error()) }
}

/// Return the runtime of a thread that is held, in ns; 0 of one that is not.
fn held_to(pid: u32) -> u64 {
    let mut has = Attributes::default();
    // SAFETY: the call writes no more than the size that it is told.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, pid, &raw mut has, size_of::<Attributes>(), 0) };
    if done == 0 && has.policy == libc::SCHED_DEADLINE.unsigned_abs() { has.runtime } else { 0 }
}

/// Let a thread run for so long in each period, in ns, and no longer. One that somebody has given another class is left alone.
///
/// Where all deadlines together would be more than the kernel allows, as after a late step whose quotas are of several periods, a
/// thread gets what there is room for beyond what it has. One that finds no room at all runs on as it is until the next step tries
/// again; what it takes is in the books. Returns what it may run in each period by now, 0 where it is not held; `None`: it is left alone.
///
/// # Errors
/// The kernel's: `ESRCH` where there is no such thread any more.
pub fn hold(pid: u32, runtime: u64, period: u64) -> io::Result<Option<u64>> {
    if ![libc::SCHED_OTHER, libc::SCHED_DEADLINE].contains(&policy(pid)?) {
        return Ok(None);
    }
    let has = held_to(pid);
    let wanted = runtime.clamp(LEAST_NS.min(period), period);
    let mut more = wanted.saturating_sub(has);
    loop {
        let runtime = wanted.min(has + more);
        match set(pid, &deadline(runtime, period)) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                more /= 2;
                if more < LEAST_NS {
                    return Ok(Some(has));
                }
            }
            done => return done.map(|()| Some(runtime)),
        }
    }
}

fn deadline(runtime: u64, period: u64) -> Attributes {
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or_default();
    let policy = libc::SCHED_DEADLINE.unsigned_abs();
    Attributes { size, policy, runtime, deadline: period, period, ..Attributes::default() }
}

/// The least runtime that the kernel takes, in so long a period, both in ns: the part of a CPU, which it counts in 2^-20, is none.
const NOTHING: (u64, u64) = (1 << 10, 1 << 31);

/// Let a thread run as before; nothing is done about one that was not held.
///
/// The room that it had is given back first: the kernel itself keeps it for ever where the thread sleeps (`switched_from_dl` in
/// `kernel/sched/deadline.c` leaves that to a timer, which has gone off by then), until there is none for anybody.
///
/// # Errors
/// The kernel's.
pub fn release(pid: u32) -> io::Result<()> {
    // Nor about one that has ended.
    if !policy(pid).is_ok_and(|policy| policy == libc::SCHED_DEADLINE) {
        return Ok(());
    }
    let (runtime, period) = NOTHING;
    // Where that is refused, as shorter periods are the longest, the thread is let go all the same.
    _ = set(pid, &deadline(runtime, period));
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

    const PERIOD: u64 = 20_000_000;

    /// All threads share the room for deadlines.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn me() -> u32 {
        // SAFETY: the call takes nothing.
        u32::try_from(unsafe { libc::gettid() }).unwrap()
    }

    /// Return whether the kernel itself lets a thread have this runtime now; says so if not. What it gives back late, or not at all, is the
    /// room that ended threads had.
    fn has_room(runtime: u64) -> bool {
        let asked =
            std::thread::spawn(move || set(me(), &deadline(runtime, PERIOD)).map_err(|error| error.raw_os_error()));
        match asked.join().unwrap() {
            Ok(()) => true,
            Err(Some(libc::EPERM)) => {
                catena_testing::skip_kernel("sched_setattr: no deadlines, which root may set");
                false
            }
            Err(Some(libc::EBUSY)) => {
                catena_testing::skip_kernel("sched_setattr: no room for deadlines is left (EBUSY)");
                false
            }
            Err(error) => panic!("sched_setattr: {error:?}"),
        }
    }

    /// Keep a thread busy for some periods; returns the part of a CPU that it had.
    fn busy() -> f64 {
        let (began, ran) = (std::time::Instant::now(), ran_ns(me()));
        while began.elapsed().as_millis() < 400 {
            std::hint::spin_loop();
        }
        (ran_ns(me()) - ran) as f64 / began.elapsed().as_nanos() as f64
    }

    #[test]
    fn threads_that_there_is_no_room_for_get_less() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !has_room(PERIOD / 2) {
            return;
        }
        let threads = std::thread::available_parallelism().unwrap().get() + 1;
        let all = std::sync::Barrier::new(threads);
        // Each wants half of a CPU, and then all of one, of which there is room for few.
        let granted: Vec<[u64; 2]> = std::thread::scope(|scope| {
            let hold_each = || {
                all.wait();
                let granted = [PERIOD / 2, PERIOD]
                    .map(|wanted| hold(me(), wanted, PERIOD).inspect(|told| assert_eq!(*told, Some(held_to(me())))));
                // Nobody leaves room to others before they have asked.
                all.wait();
                release(me()).unwrap();
                granted.map(|granted| granted.unwrap().unwrap())
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(hold_each)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        // Some are held, and none has less than before, or more than there is for all; the kernel leaves 5% to others.
        let sum: u64 = granted.iter().map(|[_, last]| last).sum();
        assert!(granted.iter().any(|[first, _]| *first > 0), "{granted:?}");
        assert!(granted.iter().all(|[first, last]| last >= first), "{granted:?}");
        assert!(sum > PERIOD / 4 && sum < (threads as u64 - 1) * PERIOD, "{granted:?}");
    }

    #[test]
    fn a_held_thread_runs_for_its_part_and_then_as_before() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !has_room(PERIOD / 10) {
            return;
        }
        let (granted, part) = (hold(me(), PERIOD / 10, PERIOD).unwrap().unwrap(), busy());
        release(me()).unwrap();
        assert_eq!((policy(me()).unwrap(), held_to(me())), (libc::SCHED_OTHER, 0));
        // The room that was just given back may not be there yet: then it is half of it, or a quarter.
        let is = granted as f64 / PERIOD as f64;
        assert!(granted > 0 && is <= 0.1 && (is * 0.5..is * 2.0).contains(&part), "{part} of {is}");
        // Let go, it is busy all the time that others leave it.
        let free = busy();
        assert!(free > 2.0 * part, "{free} after {part}");
        release(me()).unwrap();
    }

    #[test]
    fn a_thread_that_has_ended_is_an_error_and_nothing_to_release() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let error = hold(child.id(), PERIOD / 10, PERIOD).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{error}");
        release(child.id()).unwrap();
    }

    #[test]
    fn who_is_released_in_his_sleep_gives_his_room_back() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Longer than the kernel waits before it counts a thread as gone that sleeps, or has ended.
        let rest = || std::thread::sleep(std::time::Duration::from_nanos(5 * PERIOD));
        rest();
        if !has_room(PERIOD / 2) {
            return;
        }
        rest();
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(me()).unwrap();
            ended.recv().unwrap_err();
        });
        let sleeper_id = told.recv().unwrap();
        // More halves than all CPUs have: were each kept, the last would find none.
        let halves = 2 * std::thread::available_parallelism().unwrap().get() + 1;
        for half in 0..halves {
            assert_eq!(hold(sleeper_id, PERIOD / 2, PERIOD).unwrap(), Some(PERIOD / 2), "half {half} of {halves}");
            rest();
            release(sleeper_id).unwrap();
        }
        drop(end);
        sleeper.join().unwrap();
    }
}
