//! The engines that functions are tested on.

use std::cell::Cell;

thread_local! {
    static DELAYS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Delayed engines that a test runs on.
pub const SEEDS: u64 = 200;

/// Return the seed of the delayed engine that functions are built on now; nothing on the local one.
pub fn delays() -> Option<u64> {
    DELAYS.get()
}

/// Run a test on the local engine, and on delayed ones of as many seeds.
pub fn on_every_engine(test: impl Fn()) {
    on_engines(SEEDS, test);
}

/// Run a test on the local engine, and on so many delayed ones.
pub fn on_engines(seeds: u64, test: impl Fn()) {
    test();
    (0..seeds).for_each(|seed| on_delayed(seed, &test));
}

/// Run a test on the delayed engine of a seed.
pub fn on_delayed<R>(seed: u64, test: impl FnOnce() -> R) -> R {
    /// Says which seed it was, where the test fails, and comes back to the local engine.
    struct Told(u64);
    impl Drop for Told {
        fn drop(&mut self) {
            DELAYS.set(None);
            if std::thread::panicking() {
                eprintln!("on the delayed engine of seed {}", self.0);
            }
        }
    }
    DELAYS.set(Some(seed));
    let _told = Told(seed);
    test()
}
