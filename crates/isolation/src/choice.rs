//! Which cgroups are enforced: those that are named, or all with a quota of which the kernel takes others.

use crate::device::{Device, DeviceError, Port};
use crate::enforce::Wanted;
use crate::journal::Journal;
use crate::quota::{CpuCgroup, Hierarchies};
use crate::unenforced::EnforceError;

/// A cgroup, and its quota, in ns of CPU a second; `None`: the one that it has.
pub(crate) type Choice = (CpuCgroup, Option<u64>);

/// Return the cgroups of these names, each once.
pub(crate) fn named(hierarchies: &Hierarchies, wanted: &[Wanted]) -> Result<Vec<Choice>, EnforceError> {
    let mut named: Vec<Choice> = Vec::with_capacity(wanted.len());
    for Wanted { cgroup, quota } in wanted {
        let cgroup = hierarchies.cgroup(cgroup)?;
        if named.iter().any(|(other, _)| other.folder() == cgroup.folder()) {
            return Err(EnforceError::Twice(cgroup.name().to_owned()));
        }
        named.push((cgroup, *quota));
    }
    Ok(named)
}

/// Check that quotas of cgroups that were named can be changed each period, and are their own.
pub(crate) fn check(named: &[Choice], journal: &Journal) -> Result<(), EnforceError> {
    named.iter().try_for_each(|(cgroup, _)| can_be_held(cgroup, named, journal))
}

/// Return all cgroups with a quota that can be changed each period, and why the others are left out.
pub(crate) fn all(hierarchies: &Hierarchies, journal: &Journal) -> (Vec<Choice>, Vec<String>) {
    let (found, mut skipped) = hierarchies.with_quota();
    let mut chosen = Vec::with_capacity(found.len());
    for cgroup in found {
        match can_be_held(&cgroup, &[], journal) {
            Ok(()) => chosen.push((cgroup, None)),
            Err(error) => skipped.push(not_enforced(&cgroup, &error)),
        }
    }
    (chosen, skipped)
}

/// Return what is said of a cgroup that is left out.
pub(crate) fn not_enforced(cgroup: &CpuCgroup, why: &EnforceError) -> String {
    let (name, why) = (cgroup.name(), why.to_string());
    format!("{name} is not enforced: {}", why.strip_prefix(&format!("{name}: ")).unwrap_or(&why))
}

fn can_be_held(cgroup: &CpuCgroup, named: &[Choice], journal: &Journal) -> Result<(), EnforceError> {
    if let Some(undone) = journal.unrestored(cgroup.folder()) {
        return Err(EnforceError::Unrestored(undone));
    }
    if !cgroup.is_nested() {
        return Ok(());
    }
    let is_below = |other: &CpuCgroup| other.folder() != cgroup.folder() && other.folder().starts_with(cgroup.folder());
    let named = named.iter().find(|(other, _)| is_below(other)).map(|(other, _)| other.name().to_owned());
    match named.or_else(|| cgroup.quota_below()) {
        Some(below) => Err(EnforceError::Nested { name: cgroup.name().to_owned(), below }),
        None => Ok(()),
    }
}

/// Check that each device is named once, and for a cgroup that is enforced.
pub(crate) fn check_devices<'a>(
    ports: &[Port],
    hierarchies: &Hierarchies,
    held: impl Iterator<Item = &'a CpuCgroup> + Clone,
) -> Result<(), EnforceError> {
    let mut found: Vec<Device> = Vec::with_capacity(ports.len());
    for port in ports {
        let receiver = hierarchies.cgroup(&port.cgroup)?;
        if !held.clone().any(|held| held.folder() == receiver.folder()) {
            return Err(EnforceError::NotHeld(port.clone()));
        }
        let (option, name) = (port.means.option(), &port.device);
        let device = Device::find(name).map_err(|error| DeviceError { option, device: name.clone(), error })?;
        if found.iter().any(|other| device.is_same(other)) {
            return Err(EnforceError::DeviceTwice(port.clone()));
        }
        found.push(device);
    }
    Ok(())
}
