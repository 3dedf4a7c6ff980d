//! An instance of a function, beside the engine that holds its objects. It may be lost, and is made anew then.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use catena_dataplane::pipeline::Time;
use catena_state::{Engine, Tx};

use super::Function;

/// Makes a function of the objects that an engine has for it.
pub(super) type Make<E, F> = Box<dyn FnMut(&mut E) -> F + Send>;

/// The instance.
pub(super) struct Instance<E: Engine, F: Function<E>> {
    pub(super) engine: E,
    pub(super) function: F,
    /// Makes it anew; nothing where the engine loses none.
    pub(super) make: Option<Make<E, F>>,
    /// What time it is run by, once it has started.
    pub(super) time: Option<Time>,
}

impl<E: Engine, F: Function<E>> Instance<E, F> {
    /// Do something with the function. If it is lost meanwhile it is made anew, and nothing is returned.
    pub(super) fn attempt<R>(&mut self, what: impl FnOnce(&mut E, &mut F) -> R) -> Option<R> {
        let Instance { engine, function, .. } = self;
        if !E::CRASHES {
            return Some(what(engine, function));
        }
        // What is half done in the function is thrown away with it, and the engine forgets what was begun.
        match catch_unwind(AssertUnwindSafe(|| what(engine, function))) {
            Ok(done) => Some(done),
            Err(panic) if E::is_loss(&*panic) => {
                self.make_anew();
                None
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    fn make_anew(&mut self) {
        let Instance { engine, function, make, time } = self;
        engine.begin_again();
        let Some(make) = make else { panic!("an instance is lost, and nothing says how it is made anew") };
        *function = make(engine);
        if let Some(Err(error)) = time.map(|time| function.start(time)) {
            panic!("an instance that is made anew does not start: {error}");
        }
    }
}

/// Let a function do what no packet asks for, by operations of its own, under a clock of its own.
#[inline(always)]
pub(super) fn event<E: Engine, F, R>(
    engine: &mut E,
    function: &mut F,
    clock: u64,
    now: u64,
    what: impl FnOnce(&mut F, &mut Tx) -> R,
) -> R {
    let mut tx = engine.begin(Tx::new(clock, now, 0));
    engine.step(&mut tx);
    let done = what(function, &mut tx);
    engine.commit(&mut tx);
    engine.end(tx);
    done
}
