//! Charges network CPU to the cgroups whose packets it is spent on.
//!
//! Softirqs work on packets in whatever process happens to run. A [`Tracer`] measures that work in the kernel by eBPF, packet by
//! packet, and charges it to the cgroup of the packet's socket; a [`Meter`] puts that beside the CPU that the cgroups' own
//! processes took. `docs/isolation.md` has the rules. An [`Enforcer`] holds cgroups to their quotas
//! by such charges, as the algorithms of [`refill`] say.
//! From Khalid's dissertation, sections 2.2.1 and 2.2.2.

mod alive;
mod awaited;
mod below;
mod cgroups;
pub mod charge;
mod choice;
mod deadline;
mod device;
mod early;
mod enforce;
mod folder;
pub mod guard;
mod held;
mod intake;
mod journal;
pub mod ledger;
mod locks;
mod meter;
mod missing;
pub mod names;
mod news;
mod outside;
#[cfg(test)]
mod program_tests;
mod quota;
mod receivers;
pub mod refill;
mod rest;
mod restore;
pub mod scene;
mod threaded;
mod tracer;
mod unenforced;

pub use cgroups::{Cgroups, Interval};
pub use device::{DeviceError, Means, Port};
pub use early::EarlyError;
pub use enforce::{Enforcer, LONGEST_PERIOD, SHORTEST_PERIOD, Wanted};
pub use held::Enforced;
pub use journal::{Journal, JournalError, Outcome, Undone};
pub use locks::LockError;
pub use meter::{Meter, Row, Status};
pub use missing::Missing;
pub use news::News;
pub use outside::Outside;
pub use quota::{Bandwidth, CpuCgroup, Hierarchies, QuotaError};
pub use threaded::ThreadedError;
pub use tracer::Tracer;
pub use unenforced::EnforceError;
