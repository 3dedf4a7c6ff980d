//! Cycles and nanoseconds: the processor's time-stamp counter and what it says of the time.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Return the processor's time-stamp counter.
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reading the counter has no other effect; every x86-64 has it.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Return the counter's rate in cycles per second, measured once against the system's clock (20 ms).
pub fn hertz() -> u64 {
    static HERTZ: OnceLock<u64> = OnceLock::new();
    *HERTZ.get_or_init(|| {
        let (time, start) = both();
        while time.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let (then, end) = both();
        let ns = then.duration_since(time).as_nanos();
        (u128::from(end.saturating_sub(start)) * 1_000_000_000 / ns.max(1)) as u64
    })
}

/// Read the system's clock and the counter at one time: of several readings that with the fewest cycles around it, so
/// that another process that takes the core in between does not count.
fn both() -> (Instant, u64) {
    let readings = [(); 8].map(|()| {
        let before = cycles();
        let time = Instant::now();
        let around = cycles().saturating_sub(before);
        (around, time, before + around / 2)
    });
    let (_, time, cycles) = readings.into_iter().min().unwrap_or((0, Instant::now(), cycles()));
    (time, cycles)
}

/// Return how many ns so many cycles are.
pub fn ns(cycles: u64) -> u64 {
    ((u128::from(cycles) * 1_000_000_000) / u128::from(hertz().max(1))) as u64
}

/// Return the time of the wall in ns since 1970, asked of the system.
pub fn system_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

/// Return the ns since the machine started, its sleep included: a clock that nobody sets.
fn steady_now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a `timespec` that we own.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Of the time that passes, the part by which a worker's time follows the system's clock at most: 1 ms a second,
/// twice as fast as NTP slews.
const FOLLOW: u64 = 1000;

/// The time of the wall for a worker: read from the counter, put right now and then by a clock that nobody sets.
///
/// The system's clock may be set by hours, or step back; functions would forget all they know or never expire
/// anything. So it says what time it is at the start, and is followed at a bounded speed after that.
#[derive(Debug)]
pub struct Wall {
    base: u64,
    base_cycles: u64,
    /// The steady clock at `base`.
    base_steady: u64,
    /// ns per cycle, as a fraction of 2³².
    scale: u64,
}

impl Wall {
    /// Start from the system's clock.
    pub fn new() -> Self {
        let scale = (1_000_000_000u128 << 32) / u128::from(hertz().max(1));
        Wall { base: system_now(), base_cycles: cycles(), base_steady: steady_now(), scale: scale as u64 }
    }

    /// Return the time in ns since 1970, and the cycles that it was read at.
    #[inline]
    pub fn now(&self) -> (u64, u64) {
        let cycles = cycles();
        let since = cycles.saturating_sub(self.base_cycles);
        (self.base + ((u128::from(since) * u128::from(self.scale)) >> 32) as u64, cycles)
    }

    /// Follow the system's clock, gently.
    pub fn adjust(&mut self) {
        let (steady, system, cycles) = (steady_now(), system_now(), cycles());
        self.base = followed(self.base, steady.saturating_sub(self.base_steady), system);
        (self.base_steady, self.base_cycles) = (steady, cycles);
    }
}

/// Return the time `passed` ns after `before`, brought nearer to what the system's clock says.
fn followed(before: u64, passed: u64, system: u64) -> u64 {
    let (now, most) = (before.saturating_add(passed), passed / FOLLOW);
    system.clamp(now - most, now.saturating_add(most))
}

impl Default for Wall {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_moves_time_by_a_thousandth() {
        const SECOND: u64 = 1_000_000_000;
        let day = 24 * 3600 * SECOND;
        let mut time = 100 * day;
        for system in [0, 50 * day, 100 * day, 200 * day, u64::MAX] {
            let next = followed(time, SECOND, system);
            assert!(next.abs_diff(time + SECOND) <= SECOND / 1000, "{time} to {next} by {system}");
            time = next;
        }
        // What differs little is made up for at once.
        assert_eq!(followed(time, SECOND, time + SECOND + 900_000), time + SECOND + 900_000);
        assert_eq!(followed(time, 0, 0), time);
    }

    #[test]
    fn the_wall_runs_as_fast_as_the_system_clock() {
        let wall = Wall::new();
        // Between the two readings of the system, however long somebody else has the core.
        let read = || (Instant::now(), wall.now().0, Instant::now());
        let start = read();
        std::thread::sleep(Duration::from_millis(30));
        let end = read();
        let [least, most] = [end.0 - start.2, end.2 - start.0].map(|time| time.as_nanos() as f64);
        let ours = (end.1 - start.1) as f64;
        assert!(
            (0.99 * least..=1.01 * most).contains(&ours),
            "{ours} ns by the counter, {least} to {most} by the system"
        );
    }
}
