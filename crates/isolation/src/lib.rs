//! Charges network CPU to the cgroups whose packets it is spent on.
//!
//! Softirqs work on packets in whatever process happens to run. A [`Tracer`] measures that work in the kernel by eBPF, packet by
//! packet, and charges it to the cgroup of the packet's socket; a [`Meter`] puts that beside the CPU that the cgroups' own
//! processes took. `docs/isolation.md` has the rules. [`refill`] has the algorithms that will hold quotas by such charges.
//! From Khalid's dissertation, sections 2.2.1 and 2.2.2.

mod cgroups;
pub mod charge;
mod meter;
mod missing;
pub mod refill;
mod tracer;

pub use cgroups::Cgroups;
pub use meter::{Meter, Row, Status};
pub use missing::Missing;
pub use tracer::Tracer;
