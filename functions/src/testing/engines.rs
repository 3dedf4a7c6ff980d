//! The engines that functions are tested on.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catena_state::delayed::{OneHolder, View};
use catena_state::{Crashes, Declaration, Delayed, Team};

thread_local! {
    /// Up to which clock all packets have their fates.
    static COME: RefCell<Arc<AtomicU64>> = RefCell::default();
    /// Who holds the shared objects of all delayed engines that functions are built on now.
    static HOLDER: RefCell<Option<OneHolder>> = const { RefCell::new(None) };
    static TEAM: RefCell<Option<Arc<Team>>> = const { RefCell::new(None) };
    static DELAYS: Cell<Option<u64>> = const { Cell::new(None) };
    static LOSES: Cell<(Crashes, Option<u64>)> = const { Cell::new((Crashes::Never, None)) };
    static GOES: Cell<Option<u64>> = const { Cell::new(None) };
    static LOST: Arc<AtomicU64> = Arc::default();
    static LOSABLE: Cell<u64> = const { Cell::new(0) };
    static MADE: RefCell<Vec<Declaration>> = const { RefCell::new(Vec::new()) };
    static VIEWS: RefCell<Option<Vec<View>>> = const { RefCell::new(None) };
}

/// Delayed engines that a test runs on: all of them where the code is as fast as users have it.
pub const SEEDS: u64 = if cfg!(debug_assertions) { 20 } else { 200 };
/// And those that lose instances.
pub const LOSING: u64 = 8;
/// Delayed engines that a slow test runs on.
const SEEDS_OF_SLOW: u64 = 3;

/// When instances are lost, and how many polls results come late at most.
pub type Losses = (Crashes, u64);

/// A test by its name.
pub type Named = (&'static str, fn());

/// Name tests.
macro_rules! tests {
    ($($test:path),* $(,)?) => { &[$((stringify!($test), $test as fn())),*] };
}
pub(crate) use tests;

/// The tests of a file, as they are for the local engine, to be run on delayed ones.
pub struct Late {
    /// The file: no test in it is forgotten.
    pub source: &'static str,
    /// Those that run on all engines.
    pub quick: &'static [Named],
    /// Those that run on few, as they are slow or draw cases themselves.
    pub slow: &'static [Named],
    /// Those that no engine makes a difference to, or that only the local one passes, as is said where they are named.
    pub apart: &'static [&'static str],
}

impl Late {
    /// Run them.
    ///
    /// # Panics
    /// Where one fails, or is not named.
    pub fn run(&self) {
        let known = |name: &str| {
            let named = self.quick.iter().chain(self.slow).map(|(name, _)| *name);
            named.chain(self.apart.iter().copied()).any(|known| known == name)
        };
        for after in self.source.split("#[test]\n").skip(1) {
            let name = after.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name);
            assert!(name.is_some_and(known), "{name:?} is not said to run on delayed engines, or not to");
        }
        let named = self.quick.iter().chain(self.slow).map(|(name, _)| *name);
        for name in named.chain(self.apart.iter().copied()) {
            assert!(self.source.contains(&format!("fn {name}(")), "there is no {name}");
        }
        let seldom = (Crashes::OneIn(1000), 1);
        let (lost_before, losable_before) = (lost(), LOSABLE.get());
        for (tests, seeds, of_all) in [(self.quick, SEEDS, None), (self.slow, SEEDS_OF_SLOW, Some(seldom))] {
            let losses = |seed| of_all.unwrap_or_else(|| losses(seed));
            for (name, test) in tests {
                (0..seeds).for_each(|seed| on_delayed(seed, || told(name, *test)));
                for seed in 0..seeds.min(LOSING) {
                    let before = LOSABLE.get();
                    on_losing(seed, losses(seed), || told(name, *test));
                    // One in C has memory of its own, and is never lost.
                    if LOSABLE.get() == before {
                        break;
                    }
                }
            }
        }
        assert!(lost() > lost_before || LOSABLE.get() == losable_before, "instances may be lost, and none was");
    }
}

/// Run a test; says which one it was, where it fails.
fn told(name: &str, test: fn()) {
    struct Told<'a>(&'a str);
    impl Drop for Told<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("{}", self.0);
            }
        }
    }
    let _told = Told(name);
    test();
}

/// Return the seed of the delayed engine that functions are built on now; nothing on the local one.
pub fn delays() -> Option<u64> {
    DELAYS.get()
}

/// Return whether functions are lost that are built now.
pub fn loses() -> bool {
    LOSES.get().0 != Crashes::Never
}

/// Return a delayed engine that loses instances, if those do that functions are built on now.
pub fn losing(engine: Delayed) -> Delayed {
    let (crashes, most_delay) = LOSES.get();
    if crashes != Crashes::Never {
        LOSABLE.set(LOSABLE.get() + 1);
    }
    let engine = if let Some(polls) = most_delay { engine.slow(polls) } else { engine };
    engine.crashing(crashes)
}

/// Return a delayed engine whose objects go for good, if those do that functions are built on now.
pub fn going(engine: Delayed) -> Delayed {
    if let Some(polls) = GOES.get() { engine.gone_after(polls) } else { engine }
}

/// Return a delayed engine whose shared objects are held with those of others, if they are of those that functions are built on now.
pub fn held(engine: Delayed) -> Delayed {
    HOLDER.with_borrow(|holder| match holder {
        Some(holder) => engine.held_by(holder),
        None => engine,
    })
}

/// Do something on delayed engines of which all have one holder of their shared objects: on a thread of its own, if it is `elsewhere`.
pub fn with_one_holder<R>(elsewhere: bool, what: impl FnOnce() -> R) -> R {
    HOLDER.set(Some(OneHolder::new(elsewhere)));
    let done = what();
    HOLDER.take();
    done
}

/// Run a test on the delayed engine of a seed, whose objects are gone after so many polls.
pub fn on_going<R>(seed: u64, polls: u64, test: impl FnOnce() -> R) -> R {
    struct Back(Option<u64>);
    impl Drop for Back {
        fn drop(&mut self) {
            GOES.set(self.0);
        }
    }
    let _back = Back(GOES.replace(Some(polls)));
    on_delayed(seed, test)
}

/// Return what counts the losses of a function that is built now, on whatever thread it runs.
pub fn losses_of_this_thread() -> Arc<AtomicU64> {
    LOST.with(Arc::clone)
}

/// Return how many instances were lost that this thread has built.
pub fn lost() -> u64 {
    LOST.with(|lost| lost.load(Ordering::Relaxed))
}

/// Note the objects that a function has made on a delayed engine.
pub fn note(made: Vec<Declaration>) {
    MADE.set(made);
}

/// Return those that the last one made.
pub fn made() -> Vec<Declaration> {
    MADE.take()
}

/// Note a delayed engine that a function is built on, where somebody looks at it.
pub fn note_view(view: View) {
    VIEWS.with_borrow_mut(|views| _ = views.as_mut().map(|views| views.push(view)));
}

/// Do something; returns what looks at the engines of all functions that were built meanwhile, too.
pub fn viewed<R>(what: impl FnOnce() -> R) -> (R, Vec<View>) {
    VIEWS.set(Some(Vec::new()));
    let done = what();
    (done, VIEWS.take().unwrap_or_default())
}

/// Run a test on the local engine, and on delayed ones of as many seeds.
pub fn on_every_engine(test: impl Fn()) {
    on_engines(SEEDS, test);
}

/// Run a test on the local engine, and on so many delayed ones.
pub fn on_engines(seeds: u64, test: impl Fn()) {
    on_local(&test);
    (0..seeds).for_each(|seed| on_delayed(seed, &test));
}

/// Run a test on the local engine.
pub fn on_local<R>(test: impl FnOnce() -> R) -> R {
    on(None, test)
}

/// Run a test on the delayed engine of a seed.
pub fn on_delayed<R>(seed: u64, test: impl FnOnce() -> R) -> R {
    on(Some(seed), test)
}

/// Run a test on the engine of a team of two workers: the other one has no packets, but owns some objects.
pub fn on_team<R>(test: impl FnOnce() -> R) -> R {
    let come = Arc::new(AtomicU64::new(0));
    COME.set(Arc::clone(&come));
    TEAM.set(Some(Team::in_order(2, Arc::new(move || come.load(Ordering::Relaxed)))));
    let done = on_local(test);
    TEAM.take();
    done
}

/// Say up to which clock all packets have their fates.
pub fn have_come_to(clock: u64) {
    COME.with_borrow(|come| come.store(clock, Ordering::Relaxed));
}

/// Return the team that functions are built for now.
pub fn team() -> Option<Arc<Team>> {
    TEAM.with_borrow(Option::clone)
}

/// Return when instances are lost, by the seed, and how late results come. Where they are lost at each operation, hardly late: what
/// waits is begun again each time.
pub fn losses(seed: u64) -> Losses {
    match seed % 4 {
        0 => (Crashes::AtEach, 0),
        1 => (Crashes::OneIn(10 + seed % 50), 0),
        2 => (Crashes::AtEach, 1),
        _ => (Crashes::OneIn(10 + seed % 50), 5),
    }
}

/// Run a test on the delayed engine of a seed, which loses the functions' instances, and where results come after so many polls
/// at most.
pub fn on_losing<R>(seed: u64, (crashes, polls): Losses, test: impl FnOnce() -> R) -> R {
    struct Back((Crashes, Option<u64>));
    impl Drop for Back {
        fn drop(&mut self) {
            LOSES.set(self.0);
        }
    }
    let _back = Back(LOSES.replace((crashes, Some(polls))));
    on_delayed(seed, test)
}

fn on<R>(delays: Option<u64>, test: impl FnOnce() -> R) -> R {
    /// Says which engine it was, where the test fails, and comes back to the one before.
    struct Told {
        delays: Option<u64>,
        before: Option<u64>,
    }
    impl Drop for Told {
        fn drop(&mut self) {
            DELAYS.set(self.before);
            if std::thread::panicking() {
                eprintln!("{}", name(self.delays));
            }
        }
    }
    let _told = Told { delays, before: DELAYS.replace(delays) };
    test()
}

/// Say which engine a test runs on.
fn name(delays: Option<u64>) -> String {
    delays.map_or("on the local engine".to_owned(), |seed| format!("on the delayed engine of seed {seed}"))
}
