//! Chains of network functions, for programs that run them themselves.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chain = catena::Chain::load("edge.catena")?;
//! let run = catena::Run::of(&chain).inside("eth0")?.outside("eth1")?.workers(2).start()?;
//! println!("{} packets so far", run.packets());
//! run.stop();
//! let report = run.join()?;
//! println!("{} packets came in, {} were dropped", report.input.packets, report.dropped);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Chain`] is a chain file that was read and checked; a [`Run`] gives it ports, by the names that the command has for them or
//! as [`Source`] and [`Module`] of your own; [`Running`] is a run under way, and a [`Report`] has its figures. The rest is what
//! sources and modules are made of. `docs/embed.md` goes through an example.
//!
//! A run is by a plan, which holds what the file promises: as in `catena run`, one is made for this machine when it starts, or
//! sooner by [`Run::plan`] or [`plan`](fn@plan), for a look at it. [`Planned`] also takes one that `catena plan` wrote.
//!
//! Without the feature `command` this crate is the library alone, and needs nothing of the command line.

use std::cell::RefCell;
use std::path::Path;

pub use catena_compile::{Counts, Side};
pub use catena_dataplane::port::{FramesIn, Sink};
pub use catena_dataplane::{Context, Module, Pulled, Source};
pub use catena_packet::{Batch, Packet, Pool, Way};
pub use catena_plan::plan::Plan;
pub use catena_policy::Diagnostic;
pub use catena_runtime::{Chain, Failure, LoadError, Names, Note, Planned, Port, Ports, Report, Running};
pub use catena_runtime::{planned, promised, report};

/// A run of a chain file, planned for this machine unless it is given a plan.
pub type Run<'a> = catena_runtime::Run<'a, catena_planner::Here>;

/// Run a chain file to the end of its packets: those of the first port, which enter by side `in`, and those that come in by the
/// second, if that is an interface. What leaves by side `out` goes to the second port.
///
/// One worker runs it, by a plan for this machine: what the file promises is held where packets come as they come, and
/// [`Report::promised`] has what came of it. With interfaces alone it never ends. What is worth knowing of the plan is in
/// [`Report::notes`], what could not be read or written to its end in [`Report::problems`].
///
/// # Errors
/// What is wrong with the file or a port, in words.
///
/// ```no_run
/// # fn main() -> Result<(), catena::Failure> {
/// let report = catena::run("edge.catena", ["in.pcap", "out.pcap"])?;
/// print!("{report}");
/// # Ok(())
/// # }
/// ```
pub fn run(file: impl AsRef<Path>, [inside, outside]: [&str; 2]) -> Result<Report, Failure> {
    let chain = Chain::load(file)?;
    Run::of(&chain).inside(inside)?.outside(outside)?.start()?.join()
}

/// The plan by which [`run`] runs a file between these ports, for a look at it; [`Run::planned`] runs it.
///
/// # Errors
/// What is wrong with the file or a port, or why there can be no plan, in words.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let planned = catena::plan("edge.catena", ["eth0", "eth1"])?;
/// println!("{} cores", planned.plan().cores_used());
/// let chain = catena::Chain::load("edge.catena")?;
/// let run = catena::Run::of(&chain).inside("eth0")?.outside("eth1")?.planned(Some(planned));
/// print!("{}", run.start()?.join()?);
/// # Ok(())
/// # }
/// ```
pub fn plan(file: impl AsRef<Path>, [inside, outside]: [&str; 2]) -> Result<Planned, Failure> {
    let chain = Chain::load(file)?;
    let why = RefCell::new(None);
    let told = |note: &Note| _ = why.replace(Some(note.to_string()));
    let mut run = Run::of(&chain).inside(inside)?.outside(outside)?.tell(told);
    run.prepare()?;
    let planned = run.plan()?.cloned();
    drop(run);
    planned.ok_or_else(|| why.take().unwrap_or_else(|| format!("{}: there is nothing to plan", chain.name)).into())
}
