//! Why quotas are not enforced.

use std::fmt;

use crate::Missing;
use crate::device::{DeviceError, Port};
use crate::early::EarlyError;
use crate::journal::{JournalError, Undone};
use crate::locks::LockError;
use crate::quota::QuotaError;
use crate::threaded::ThreadedError;

/// Why quotas are not enforced.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum EnforceError {
    /// What the measuring lacks.
    Missing(Missing),
    /// A cgroup or its quota.
    Quota(QuotaError),
    /// Quotas are root's to write.
    NotRoot,
    /// The journal.
    Journal(JournalError),
    /// A device.
    Device(DeviceError),
    /// A device whose packets threads are to receive.
    Threaded(ThreadedError),
    /// A device whose packets are to be dropped early.
    Early(EarlyError),
    /// There is no quota, and none was said.
    NoQuota(String),
    /// A cgroup is named twice.
    Twice(String),
    /// A cgroup below it has a quota, too, of which it must not have less.
    Nested { name: String, below: String },
    /// What an earlier run left, and the kernel does not take back.
    Unrestored(Undone),
    /// A device's packets are for a cgroup that is not enforced.
    NotHeld(Port),
    /// A device is named twice.
    DeviceTwice(Port),
    /// Another process enforces a quota.
    Lock(LockError),
    /// No cgroup has a quota, but these, which cannot be held to theirs.
    Nothing(Vec<String>),
}

impl fmt::Display for EnforceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnforceError::Missing(error) => error.fmt(f),
            EnforceError::Quota(error) => error.fmt(f),
            EnforceError::NotRoot => f.write_str(
                "needs root (CAP_BPF and CAP_PERFMON to measure, CAP_DAC_OVERRIDE to write quotas, CAP_SYS_NICE for --napi): run it with sudo",
            ),
            EnforceError::Journal(error) => error.fmt(f),
            EnforceError::Device(error) => error.fmt(f),
            EnforceError::Threaded(error) => error.fmt(f),
            EnforceError::Early(error) => error.fmt(f),
            EnforceError::NoQuota(name) => {
                write!(f, "{name}: the cgroup has no quota: give it one here, in percent of one CPU: `{name}=50%`")
            }
            EnforceError::Twice(name) => write!(f, "{name}: the cgroup is named twice: expected each one once"),
            EnforceError::Nested { name, below } => write!(
                f,
                "{name}: {below} below it has a quota, too, and with cgroup v1 a cgroup may at no time have a smaller part of a CPU \
                 than one below it: enforce {below} alone, or take its quota away and enforce {name}"
            ),
            EnforceError::Unrestored(undone) => write!(
                f,
                "left by an earlier run: {undone}; the quota that is there is of a moment: give the cgroup the one that it should have, \
                 and start again"
            ),
            EnforceError::NotHeld(Port { device, cgroup, means }) => write!(
                f,
                "{} {device}={cgroup}: {cgroup} is not enforced, and its packets would be held to nothing: expected one of the \
                 cgroups that are named here, or one with a quota if none is named",
                means.option()
            ),
            EnforceError::DeviceTwice(Port { device, means, .. }) => {
                write!(
                    f,
                    "{} {device}: the device is named twice: expected each one once, as one cgroup has its packets, and one means holds them",
                    means.option()
                )
            }
            EnforceError::Lock(error) => error.fmt(f),
            EnforceError::Nothing(skipped) => {
                skipped.iter().try_for_each(|skipped| write!(f, "{skipped}; "))?;
                let other = if skipped.is_empty() { "" } else { "other " };
                write!(
                    f,
                    "no {other}cgroup has a quota: give it to containers when they are started, or name a cgroup: `/tenants/a=50%`"
                )
            }
        }
    }
}

impl std::error::Error for EnforceError {}

macro_rules! from {
    ($($error:ident, $kind:ident);*) => {$(
        impl From<$error> for EnforceError {
            fn from(error: $error) -> Self {
                EnforceError::$kind(error)
            }
        }
    )*};
}
from!(Missing, Missing; QuotaError, Quota; JournalError, Journal; DeviceError, Device; ThreadedError, Threaded; EarlyError, Early; LockError, Lock);
