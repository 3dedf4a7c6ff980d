//! Native: runs a network function written in C, loaded from a shared object.
//!
//! # Parameters
//!
//! `Native(lib = "fw.so" [, args = {name: value, ...}] [, name = "symbol"] [, state = file("fw.manifest")]
//! [, log = LEVEL]
//! [, watch = true])`
//!
//! - `lib`: the shared object. A relative path begins at the working directory (not at the chain file's folder, and
//!   no search path is used).
//! - `args`: what the function is given, by name; which there are, the function knows. Times reach it in ns, rates
//!   in bits or packets per second, sizes in bytes, `file("x")` as what stands in the file. A name that the
//!   function does not ask for is an error.
//! - `name`: which function of a library with several: the symbol of its table (`catena_nf`).
//! - `state`: what `catena analyze --manifest` found of the function's state beside the objects that it declares. It says how
//!   traffic may be split over several instances: by the header fields that key the state, or not at all where packets
//!   of all flows use the same. Plans keep to it, and several workers are refused where they would not.
//! - `log`: which of its messages are shown: `error`, `warning`, `info` or `debug` (`info`). They go to the standard error,
//!   at most 20 a second for each instance; how many more there were is said.
//! - `watch`: whether a new build that takes the library's place is used by the running chain.
//!
//! # Behaviour
//!
//! The function gets batches of up to 32 packets with their header offsets and returns for each a way out or a
//! reason to drop it. It may change bytes, make packets longer or shorter, set the mark, and keep state in maps and
//! counters that Catena knows by name. How it is written stands in `include/catena/nf.h`, and nothing else is needed;
//! `examples/native` has one. It may also say before it works on packets which entries it will use (`prepare`): then it
//! runs as well where entries come late, as Catena's tests make them.
//!
//! Packets leave by *ways*: `fw -> ...` leads on way 0, the normal one; `fw[1] -> ...` to `fw[7] -> ...` those that the
//! function chooses. A packet for a way that no edge leads on leaves by way 0. Both directions of `<->` have
//! the same ways.
//!
//! # What is checked
//!
//! When it is loaded: that the file is a shared object with all symbols resolved, that the symbol is a table of ABI
//! version 1, built with structures that this Catena knows; that its texts are texts and its `process` is there;
//! that its state objects are within bounds and their names unique; what it says of its arguments. For every packet:
//! the verdict (else the packet is dropped: "function gave a bad verdict"), address and length ("function gave a
//! wrong length"). Headers are parsed again after it, unless it declares that it never changes them. Calls with wrong
//! handles, key or value sizes, or in the wrong phase are refused, counted as `mistakes`, and logged.
//!
//! # What is not
//!
//! A function in C is a part of Catena's process: no isolation protects Catena, other functions, or other
//! tenants' packets from it. It can read and overwrite all memory of the process, crash it, never return, call the
//! system with Catena's rights; loading it already runs its constructors, and `catena check` loads it. None of this can
//! be checked. Load only what you would also link in: what is not trusted, or not written for this, belongs in a process of
//! its own.
//!
//! Instances of several workers share nothing but sums: all packets of a source meet one worker, and those of a destination do not.
//! So with several workers a map by destination, by what is configured or for all packets is refused: each would have entries of its
//! own, which know nothing of each other. Where that will do, as for a cache, the function declares the map with the scope
//! `CATENA_WORKER`. What it keeps in variables of its own only `state` tells. The capacity of a map by connection, source endpoint or source
//! is the total of all workers, of which each has an equal part; that of a worker's own map is what each may have.
//!
//! Building a chain runs the function's `init`: `catena check` once, `catena run` once on trial and then for every worker, even
//! if it is then refused (a port that is not there, an output that cannot be written). What `init` creates or empties,
//! every check of the chain creates or empties: a function opens what it writes to later, in `tick` or `finish`. `catena
//! show` and `catena plan` load no library.
//!
//! A library stays loaded until Catena ends. A new build of it is used by the next run, or with `watch = true` by this one.
//!
//! # New builds
//!
//! With `watch = true` the file is looked at ten times a second. If another one has taken its place (by a rename, so that
//! nobody sees half of it), it is loaded and started beside the old one, while packets go on. Between two batches it then
//! takes over: maps and counters by their names, what the function keeps in `*self` by its own `take_over`. No packet is
//! lost or overtakes another. If it does not start, is another function, or cannot take the state over, a message
//! says so, and the old one goes on.
//!
//! # Example
//!
//! ```text
//! guard = Native(lib = "examples/native/build/synguard.so", args = {limit: 100, window: 1s})
//! in -> guard
//! guard[1] -> Limiter(rate = 1Mbps) -> out
//! guard -> out
//! ```
//!
//! # See also
//!
//! ACL, Limiter.

mod abi;
mod asked;
mod batches;
mod callback;
mod instance;
mod library;
mod log;
mod map;
mod packets;
mod state;
mod successor;
mod values;

use std::ffi::c_void;
use std::io;
use std::path::PathBuf;

use catena_dataplane::Module;
use catena_packet::random::Random;
use catena_packet::wire::Seed;
use catena_state::{Declaration, Engine, Local, Scope, Share};

use crate::config::{ArgError, Args, Kind, Param};
use crate::descriptor::{Affinity, Attribute, Descriptor, Method, Recipe};
use batches::Batches;
use instance::{Instance, Own};
use library::Loaded;
use log::{LEVELS, Log};
use state::State;
use successor::Identity;
use values::Arguments;

/// The values of the attribute `way`.
const WAYS: &[&str] = &["0", "1", "2", "3", "4", "5", "6", "7"];
/// The reasons behind a function's own.
const OWN_REASONS: [&str; 2] = ["function gave a bad verdict", "function gave a wrong length"];

/// What Native says about itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "Native",
    summary: "runs a function written in C from a shared object",
    source: include_str!("mod.rs"),
    params: &[
        Param { name: "lib", kind: Kind::Text, default: None, doc: "the shared object, from the working directory" },
        Param { name: "args", kind: Kind::Record, default: Some("{}"), doc: "the function's own arguments" },
        Param { name: "name", kind: Kind::Text, default: Some("\"catena_nf\""), doc: "the symbol of its table" },
        Param { name: "state", kind: Kind::File, default: Some("none"), doc: "a manifest of its state" },
        Param { name: "watch", kind: Kind::Bool, default: Some("false"), doc: "go on with a new build of the library" },
        Param { name: "log", kind: Kind::Word(LEVELS), default: Some("info"), doc: "which of its messages are shown" },
    ],
    attributes: &[Attribute {
        name: "way",
        values: WAYS,
        method: Method::Port,
        doc: "the way that the function chose; 0 is the normal one",
    }],
    affinity: Affinity::Manifest { param: "state", otherwise: Scope::Connection },
    moves: |_| Err("a function in C may keep memory of its own, which stays where it is".to_owned()),
    // No `workload`: what a function in C costs, only its own measurement tells.
    build: |args, build| build.deploy(Loading { args: args.clone(), ways: ways(build.taken) }),
    ..Descriptor::DEFAULTS
};

/// What instances of a function are made from.
#[derive(Clone)]
struct Origin {
    args: Args,
    path: String,
    symbol: String,
    /// Lines up to this level are shown.
    level: u32,
    share: Share,
    seed: Seed,
    /// A bit for each way that the chain leads on.
    ways: u32,
}

impl Origin {
    /// Make an instance of a loaded function. `replaces` is what the one that it will replace calls itself, or null.
    fn start<E: Engine>(
        &self,
        engine: &mut E,
        function: Loaded,
        replaces: *mut c_void,
    ) -> Result<Instance<E>, ArgError> {
        let own = Own {
            packets: (std::ptr::null_mut(), 0),
            starting: None,
            arguments: Arguments::read(&self.args)?,
            failure: None,
            state: State::new(engine, function.table.flags & abi::PATIENT != 0),
            log: Log::new(self.level),
            random: Random::new(stream(&self.seed, self.share, function.name)),
            mistakes: 0,
        };
        let mut instance = Instance::start(function, own, engine, self.share, self.ways, replaces)
            .map_err(|why| ArgError::new("args", format!("function `{}` does not start: {why}", function.name)))?;
        instance.own().arguments.all_asked(function.name)?;
        Ok(instance)
    }
}

/// Loads a function and makes an instance of it.
struct Loading {
    args: Args,
    /// A bit for each way that the chain leads on.
    ways: u32,
}

/// Return a bit for each way that edges of the chain take.
fn ways(taken: &[String]) -> u32 {
    let is_taken = |way: &&str| taken.iter().any(|taken| taken == way);
    (0..).zip(WAYS).filter(|(way, name)| *way == 0 || is_taken(name)).fold(0, |bits, (way, _)| bits | 1 << way)
}

impl Recipe for Loading {
    type Function<E: Engine> = Native<E>;

    const HAS_MEMORY: bool = true;

    fn make<E: Engine>(&self, engine: &mut E) -> Result<Native<E>, ArgError> {
        Native::new(engine, &self.args, self.ways)
    }

    fn on_local(_engine: Local, native: Native<Local>) -> Box<dyn Module> {
        Box::new(Batches::new(native))
    }
}

/// A C function.
pub struct Native<E: Engine> {
    instance: Instance<E>,
    path: PathBuf,
    /// Where later builds are looked for, if that is wanted, and which one this is.
    watched: Option<(Origin, Option<Identity>)>,
}

impl<E: Engine> Native<E> {
    /// Load the function and start an instance of it, with objects of this engine.
    fn new(engine: &mut E, args: &Args, ways: u32) -> Result<Native<E>, ArgError> {
        let path = args.require("lib")?.as_text().ok_or_else(|| ArgError::new("lib", "expected a string"))?;
        let level = args.text("log", "info");
        let most = LEVELS
            .iter()
            .position(|known| *known == level)
            .ok_or_else(|| ArgError::new("log", format!("expected one of {}, found `{level}`", LEVELS.join(", "))))?;
        let (seed, share) = (engine.seed(), engine.share());
        let symbol = args.text("name", "catena_nf").to_owned();
        let origin =
            Origin { args: args.clone(), path: path.to_owned(), symbol, level: most as u32, share, seed, ways };
        // Known before it is loaded: what comes in between is a later one.
        let known = Identity::of(path);
        let instance = origin.start(engine, library::load(path, &origin.symbol)?, std::ptr::null_mut())?;
        may_wait::<E>(&instance)?;
        let watched = args.flag("watch", false).then_some((origin, known));
        if E::WAITS && watched.is_some() {
            return Err(ArgError::new("watch", "a new build can take over on local state only")
                .help("packets that wait for state belong to the build that asked for it"));
        }
        Ok(Native { instance, path: path.into(), watched })
    }

    /// Return the function's name.
    pub fn name(&self) -> &'static str {
        self.instance.function().name
    }

    /// Return the state objects that the function declared.
    pub fn state(&self) -> &[Declaration] {
        self.instance.own_ref().state.declarations()
    }

    fn say(&mut self) {
        let name = self.name();
        let log = &mut self.instance.own().log;
        if !log.is_silent() {
            log.flush(name, &mut io::stderr().lock());
        }
    }
}

/// Check that a function whose packets may have to wait can do so.
fn may_wait<E: Engine>(instance: &Instance<E>) -> Result<(), ArgError> {
    let (function, state) = (instance.function(), &instance.own_ref().state);
    if !E::WAITS || function.table.prepare.is_some() || state.packet.is_patient || state.maps.is_empty() {
        return Ok(());
    }
    let why =
        format!("function `{}` asks for state and uses it at once, so it can be on local state only", function.name);
    Err(ArgError::new("lib", why).help("give it a prepare, which expects the keys that process uses"))
}

/// Return what seeds the function's randomness: another one for every function and instance, from which the
/// secret seed cannot be found.
fn stream(seed: &Seed, share: Share, name: &str) -> u64 {
    let start = seed.hash2([u64::from(share.index), name.len() as u64]);
    name.bytes().fold(start, |state, byte| seed.hash2([state, u64::from(byte)]))
}

#[cfg(test)]
mod late_tests;
#[cfg(test)]
mod tests;
