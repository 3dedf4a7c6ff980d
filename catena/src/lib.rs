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
//! What a file promises is held by a plan: [`Planned`] takes one that `catena plan` wrote or `catena-plan` made. Without a plan
//! tasks take turns, whatever is promised; only the command makes a plan for itself.
//!
//! Without the feature `command` this crate is the library alone, and needs nothing of the command line.

use std::path::Path;

pub use catena_compile::{Counts, Side};
pub use catena_dataplane::port::{FramesIn, Sink};
pub use catena_dataplane::{Context, Module, Pulled, Source};
pub use catena_packet::{Batch, Packet, Pool, Way};
pub use catena_plan::plan::Plan;
pub use catena_policy::Diagnostic;
pub use catena_runtime::{Chain, Failure, LoadError, Names, Note, Planned, Port, Ports, Report, Run, Running};
pub use catena_runtime::{planned, promised, report};

/// Run a chain file to the end of its packets: those of the first port, which enter by side `in`, and those that come in by the
/// second, if that is an interface. What leaves by side `out` goes to the second port.
///
/// One worker runs it; with interfaces alone it never ends. What could not be read or written to its end is in
/// [`Report::problems`].
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
