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
        let (time, start) = (Instant::now(), cycles());
        while time.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let (spent, ns) = (cycles() - start, time.elapsed().as_nanos() as u64);
        ((u128::from(spent) * 1_000_000_000) / u128::from(ns.max(1))) as u64
    })
}

/// Return how many ns so many cycles are.
pub fn ns(cycles: u64) -> u64 {
    ((u128::from(cycles) * 1_000_000_000) / u128::from(hertz().max(1))) as u64
}

/// Return the time of the wall in ns since 1970, asked of the system.
pub fn system_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

/// The time of the wall for a worker: read from the counter, put right by the system's clock now and
/// then.
#[derive(Debug)]
pub struct Wall {
    base: u64,
    base_cycles: u64,
    /// ns per cycle, as a fraction of 2³².
    scale: u64,
}

impl Wall {
    /// Start from the system's clock.
    pub fn new() -> Self {
        let scale = (1_000_000_000u128 << 32) / u128::from(hertz().max(1));
        Wall { base: system_now(), base_cycles: cycles(), scale: scale as u64 }
    }

    /// Return the time in ns since 1970, and the cycles that it was read at.
    #[inline]
    pub fn now(&self) -> (u64, u64) {
        let cycles = cycles();
        let since = cycles.saturating_sub(self.base_cycles);
        (self.base + ((u128::from(since) * u128::from(self.scale)) >> 32) as u64, cycles)
    }

    /// Follow the system's clock again.
    pub fn adjust(&mut self) {
        (self.base, self.base_cycles) = (system_now(), cycles());
    }
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
    fn the_wall_runs_as_fast_as_the_system_clock() {
        let wall = Wall::new();
        let (start, time) = (wall.now().0, Instant::now());
        std::thread::sleep(Duration::from_millis(30));
        let (ours, theirs) = ((wall.now().0 - start) as f64, time.elapsed().as_nanos() as f64);
        assert!((ours / theirs - 1.0).abs() < 0.05, "{ours} ns by the counter, {theirs} ns by the system");
    }
}
