//! What a hard interrupt takes before its handler begins and after it ends.
//!
//! No tracepoint is there: the processor, and on a virtual machine the one below it, save and restore what ran. On hardware that is
//! some hundred ns; on virtual machines a timer's was seen to take 3 to 11 us, several times what the handler took, and another CPU's call 1 us.
//! So it is measured once, at the start: a thread that does nothing but read the clock is interrupted, and what it misses beside the
//! handler's time is it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use aya::maps::PerCpuArray;
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, Pod};

/// How many interrupts are tried, how many that were alone are enough, and how many there must be.
const TRIED: usize = 400;
const ENOUGH: usize = 100;
const LEAST: usize = 20;
/// Until an interrupt comes, and how long it is waited for: on a machine that is busy, or shared with others, interrupts come late and
/// many tries are lost to who else runs, so where too few came they are tried again, with a longer wait.
const DELAY: Duration = Duration::from_micros(40);
const WAITS: [Duration; 3] = [Duration::from_micros(120), Duration::from_micros(300), Duration::from_micros(900)];
/// Between those: who has slept is let run for a while.
const PAUSE: Duration = Duration::from_millis(20);
/// More is no interrupt's: the machine has lost its CPU meanwhile.
const MOST_NS: u64 = 100_000;

/// When a handler began and ended last on a CPU, in ns of the monotonic clock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handler {
    begin: u64,
    end: u64,
}

// SAFETY: plain numbers without padding, in C's layout.
unsafe impl Pod for Handler {}

/// What each interrupt takes outside of its handler, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Of one by this CPU's timer.
    pub timer_ns: u64,
    /// Of one by another CPU, or by a device: both come as messages from without.
    pub message_ns: u64,
}

/// Interrupts that a thread can cause itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// By a timer.
    Timer,
    /// By a thread on another CPU, which calls all that run threads of its process.
    Call,
}

impl Source {
    /// Return the programs that see a handler, and the tracepoint of each.
    fn programs(self) -> [(&'static str, &'static str); 2] {
        match self {
            Source::Timer => [("timer_begins", "local_timer_entry"), ("timer_ends", "local_timer_exit")],
            Source::Call => [("call_begins", "call_function_single_entry"), ("call_ends", "call_function_single_exit")],
        }
    }
}

/// Measure it on the CPU that this runs on; `None` where the kernel does not let that be seen. Where there is no other CPU to call
/// this one, all interrupts are taken for timers'.
pub(crate) fn measure(loaded: &mut Ebpf, btf: &Btf) -> Option<Outside> {
    let handlers: PerCpuArray<_, Handler> = PerCpuArray::try_from(loaded.take_map("handlers")?).ok()?;
    let mut measure = |source: Source| {
        let samples = watch(loaded, btf, &handlers, source);
        // Whatever came of it, no interrupt pays for them from now on.
        for (name, _) in source.programs() {
            let program: Option<&mut BtfTracePoint> =
                loaded.program_mut(name).and_then(|program| program.try_into().ok());
            // One that is not loaded is refused, and needs nothing.
            _ = program.map(BtfTracePoint::unload);
        }
        median(samples?)
    };
    let timer_ns = measure(Source::Timer)?;
    // Not more than a timer's: what more is seen then is not the interrupt's.
    let message_ns = measure(Source::Call).map_or(timer_ns, |ns| ns.min(timer_ns));
    Some(Outside { timer_ns, message_ns })
}

type Handlers = PerCpuArray<aya::maps::MapData, Handler>;

/// Attach the programs, and measure.
fn watch(loaded: &mut Ebpf, btf: &Btf, handlers: &Handlers, source: Source) -> Option<Vec<u64>> {
    for (name, tracepoint) in source.programs() {
        let program: &mut BtfTracePoint = loaded.program_mut(name)?.try_into().ok()?;
        program.load(tracepoint, btf).and_then(|()| program.attach()).ok()?;
    }
    // A thread that ends with the CPU that it was given.
    thread::scope(|scope| scope.spawn(|| samples(handlers, source)).join().ok()?.ok())
}

/// Return what is usual of enough samples.
fn median(mut samples: Vec<u64>) -> Option<u64> {
    samples.sort_unstable();
    (samples.len() >= LEAST).then(|| samples[samples.len() / 2])
}

/// Be interrupted again and again, and return what each time took beside its handler, in ns.
fn samples(handlers: &Handlers, source: Source) -> io::Result<Vec<u64>> {
    let cpu = stay()?;
    match source {
        Source::Timer => {
            // SAFETY: the call takes plain numbers.
            let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) })?;
            interrupted(handlers, cpu, || set(&timer))
        }
        Source::Call => {
            barrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
            let (call, calls) = mpsc::channel();
            thread::scope(|scope| {
                let caller = scope.spawn(move || {
                    leave(cpu)?;
                    while calls.recv().is_ok() {
                        // As long as the timer takes: it is not to be there before it is waited for.
                        thread::sleep(DELAY);
                        barrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)?;
                    }
                    Ok(())
                });
                let samples = interrupted(handlers, cpu, || call.send(()).map_err(io::Error::other));
                drop(call);
                caller.join().unwrap_or_else(|_| Err(io::Error::other("the caller panicked"))).and(samples)
            })
        }
    }
}

/// Ask for an interrupt again and again, wait for each, and return what each took beside its handler, in ns.
fn interrupted(handlers: &Handlers, cpu: usize, ask: impl Fn() -> io::Result<()>) -> io::Result<Vec<u64>> {
    let mut samples = Vec::with_capacity(ENOUGH);
    for wait in WAITS {
        try_for(wait, &mut samples, handlers, cpu, &ask)?;
        if samples.len() >= LEAST {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok(samples)
}

/// Add to `samples` what came of [`TRIED`] interrupts, each waited for so long.
fn try_for(
    wait: Duration,
    samples: &mut Vec<u64>,
    handlers: &Handlers,
    cpu: usize,
    ask: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    for _ in 0..TRIED {
        if samples.len() == ENOUGH {
            break;
        }
        ask()?;
        let turns = turns()?;
        let (before, after) = longest_gap(u64::from(wait.subsec_nanos()));
        // Where another one had the CPU after the interrupt, what is missed is his time.
        if self::turns()? != turns {
            continue;
        }
        let of_cpus = handlers.get(&0, 0).map_err(io::Error::other)?;
        let Some(Handler { begin, end }) = of_cpus.get(cpu).copied() else { continue };
        // Another one may have come, or none; more is no interrupt's.
        if before <= begin && begin <= end && end <= after && after - before - (end - begin) < MOST_NS {
            samples.push((begin - before) + (after - end));
        }
    }
    Ok(())
}

/// Let a timer interrupt this CPU soon.
fn set(timer: &OwnedFd) -> io::Result<()> {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let once = libc::itimerspec {
        it_interval: none,
        it_value: libc::timespec { tv_sec: 0, tv_nsec: i64::from(DELAY.subsec_nanos()) },
    };
    // SAFETY: the descriptor is open, and the time lives during the call.
    done(unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const once, std::ptr::null_mut()) })
}

/// Call all CPUs that run threads of this process, which interrupts them.
fn barrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes numbers.
    let code = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Keep this thread off a CPU, also where the process has been kept on that one.
///
/// # Errors
/// The system's, as where there is no other.
fn leave(cpu: usize) -> io::Result<()> {
    // SAFETY: plain data, of which zeros are valid; the set lives during the call. CPUs that are not there count for nothing.
    done(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (0..8 * size_of_val(&set)).filter(|other| *other != cpu).for_each(|other| libc::CPU_SET(other, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    })
}

/// Read the clock for so long, in ns, and return when it was read before and after the longest time in which it was not.
fn longest_gap(wait: u64) -> (u64, u64) {
    let begin = now();
    let (mut last, mut gap) = (begin, (begin, begin));
    while last - begin < wait {
        let read = now();
        if read - last > gap.1 - gap.0 {
            gap = (last, read);
        }
        last = read;
    }
    gap
}

/// Return how often this thread has left the CPU to another one.
fn turns() -> io::Result<(i64, i64)> {
    // SAFETY: plain data, of which zeros are valid; it lives during the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        done(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage))?;
        Ok((usage.ru_nvcsw, usage.ru_nivcsw))
    }
}

/// Return the monotonic clock, which is the one that BPF programs have, in ns.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time lives during the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Keep this thread on the CPU that it is on, and return its number.
fn stay() -> io::Result<usize> {
    // SAFETY: the call takes nothing.
    let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: plain data, of which zeros are valid; the set lives during the call.
    done(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    })?;
    Ok(cpu)
}

fn done(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just made, and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_not_moved_by_what_is_rare() {
        assert_eq!(median(vec![11_000; LEAST - 1]), None);
        let mut samples = vec![11_000; 2 * LEAST];
        samples.extend([1; LEAST / 2].iter().chain(&[90_000; LEAST / 2]));
        assert_eq!(median(samples), Some(11_000));
    }

    #[test]
    fn the_longest_time_without_a_reading_is_within_what_was_waited() {
        let begin = now();
        let (before, after) = longest_gap(1_000_000);
        assert!(begin <= before && before < after && after <= now());
    }
}
