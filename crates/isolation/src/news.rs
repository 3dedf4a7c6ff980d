//! What is told of enforcement while it goes on.

use std::fmt;

use crate::device::Means;
use crate::journal::Undone;
use crate::threaded::ThreadedError;

/// Something that whoever enforces should know.
#[derive(Debug)]
pub enum News {
    /// An earlier run left this changed.
    LeftBefore(Undone),
    /// A cgroup that has a quota is not enforced, and why.
    Skipped(String),
    /// A device's driver runs no XDP program.
    BehindTheDriver {
        /// The device.
        device: String,
    },
    /// Those above a cgroup have less than its quota.
    Cut {
        /// Its path.
        cgroup: String,
    },
    /// The kernel has no room for what the threads that receive for a cgroup may run.
    Crowded {
        /// Its path.
        cgroup: String,
    },
    /// Threads of a device could not be put into their cgroup.
    Threads(ThreadedError),
    /// Somebody had switched off the threads that receive for a device, and they are on again.
    SwitchedOn {
        /// The device.
        device: String,
    },
    /// A device whose packets threads received has another name.
    DeviceRenamed {
        /// The name that it had.
        device: String,
        /// The name that it has.
        to: String,
    },
    /// A device whose packets threads received is gone.
    DeviceGone {
        /// The device.
        device: String,
    },
    /// A cgroup that was gone is back, and enforced again.
    Back {
        /// Its path.
        cgroup: String,
        /// Whether the one before had devices.
        had_devices: bool,
    },
    /// A cgroup is no more enforced.
    LetGo {
        /// Its path.
        cgroup: String,
        /// Why.
        why: String,
        /// What became of its quota, and of what else was changed.
        restored: String,
    },
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::LeftBefore(undone) => write!(f, "left by an earlier run: {undone}"),
            News::Skipped(why) => f.write_str(why),
            News::BehindTheDriver { device } => {
                let option = Means::EarlyDrop.option();
                write!(
                    f,
                    "{option} {device}: its driver runs no XDP program: packets are dropped behind it, which costs more"
                )
            }
            News::Cut { cgroup } => write!(
                f,
                "{cgroup}: the cgroups above it have less than its quota by now: it gets as much as they leave"
            ),
            News::Crowded { cgroup } => write!(
                f,
                "{cgroup}: its threads receive for less than its quota: other deadlines leave the kernel no room; until it has some \
                 its packets wait, or are dropped"
            ),
            News::Threads(error) => error.fmt(f),
            News::SwitchedOn { device } => write!(
                f,
                "{} {device}: somebody else switched its threads off; they are on again, and will be each time",
                Means::Threads.option()
            ),
            News::DeviceRenamed { device, to } => write!(
                f,
                "{} {device}: the device is {to} by now; it is as it was before, and accounts alone hold what it receives: begin again for \
                 threads",
                Means::Threads.option()
            ),
            News::DeviceGone { device } => write!(
                f,
                "{} {device}: the device is gone; one that takes its place is not held: begin again for that",
                Means::Threads.option()
            ),
            News::Back { cgroup, had_devices: false } => write!(f, "{cgroup}: it is back, and enforced again"),
            News::Back { cgroup, had_devices: true } => write!(
                f,
                "{cgroup}: it is back, and enforced again, by accounts alone: begin again for {} and {}",
                Means::Threads.option(),
                Means::EarlyDrop.option()
            ),
            News::LetGo { cgroup, why, restored } => write!(f, "{cgroup}: {why}{restored}"),
        }
    }
}
