//! A quick profile: where nobody gave a plan a profile, the functions of its chain files are measured on this machine, at
//! the sizes that they have there, in some seconds. What was measured is kept in the user's cache folder, for each kind of
//! processor and version of the library.
//!
//! It is rougher than what `catena profile` writes: one run in each setting, so that it knows nothing of how runs differ.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use catena_functions::{Descriptor, registry};
use catena_plan::catalogue::Catalogue;
use catena_plan::profile::Profile;
use catena_policy::Node;
use catena_profile::machine::{self, cores};
use catena_profile::{Measured, Options, measure};

use catena_runtime::{Failure, replace};

use crate::remarks::Remark;

/// Sizes of one function that are kept; with more the oldest are forgotten.
const MOST_SIZES: usize = 4;
/// Bytes of the largest file of kept figures that is read.
const MOST_BYTES: u64 = 1 << 26;
/// Sizes of which the larger is no more than so many times the other one are one: a rule more is no reason to measure for seconds, and
/// what is measured so is rough.
const ALIKE: f64 = 2.0;
/// So are sizes up to this one: all of it lies in the nearest cache.
const SMALL: f64 = 16.0;

/// What these functions cost on this machine: as it is kept, or else measured now. None, and `tell` hears why, where that
/// cannot be done: then a plan is by papers' figures, which it marks.
pub fn measured<'a>(
    nodes: impl Iterator<Item = &'a Node>,
    catalogue: &Catalogue,
    tell: &dyn Fn(&Remark<'_>),
) -> Option<Profile> {
    let wanted = wanted(nodes, catalogue);
    if wanted.is_empty() {
        return None;
    }
    let (path, kept) = (path(), kept());
    let missing = missing(wanted, kept.as_ref());
    if missing.is_empty() {
        return kept;
    }
    let names: Vec<&str> = missing.keys().copied().collect();
    tell(&Remark::Measuring(&names));
    match take(missing, tell) {
        Ok(new) => {
            let all = match kept {
                Some(kept) => new.completed_by(&kept),
                None => new,
            };
            if let Some(path) = path {
                keep(&all, &path, tell);
            }
            Some(all)
        }
        Err(why) => {
            tell(&Remark::NotMeasured(&why));
            None
        }
    }
}

/// What is kept of this machine.
pub fn kept() -> Option<Profile> {
    path().as_deref().and_then(read)
}

type Sizes = BTreeMap<&'static str, Vec<u64>>;

/// The functions that can be measured, and the sizes that they have; 0 where there is none.
fn wanted<'a>(nodes: impl Iterator<Item = &'a Node>, catalogue: &Catalogue) -> Sizes {
    let mut wanted = Sizes::new();
    for node in nodes {
        let Some(function) = registry::find(&node.function) else { continue };
        let Some(workload) = function.workload else { continue };
        let given = catalogue.find_with(&node.function, &node.args).and_then(|traits| traits.size.as_ref());
        // Beyond the largest that is ever measured, building alone takes long.
        let most = workload.size.and_then(|size| size.measured.last().copied()).unwrap_or(0);
        let size = given.map_or(0, |size| (size.of(&node.args).max(1.0) as u64).min(most));
        let sizes = wanted.entry(function.name).or_default();
        if !sizes.iter().any(|other| alike(*other as f64, size as f64)) {
            sizes.push(size);
        }
    }
    wanted
}

fn alike(a: f64, b: f64) -> bool {
    a.max(b) <= (ALIKE * a.min(b)).max(SMALL)
}

/// Of what is wanted the functions that were not measured at all of their sizes; each with the sizes that it was measured at
/// before, as far as there is room.
fn missing(wanted: Sizes, kept: Option<&Profile>) -> Sizes {
    let mut missing = Sizes::new();
    for (name, mut sizes) in wanted {
        let cost = kept.and_then(|kept| kept.functions.get(name));
        let Some(cost) = cost else {
            missing.insert(name, sizes);
            continue;
        };
        let runs = &cost.server.runs;
        if sizes.iter().all(|size| runs.iter().any(|run| alike(run.size, *size as f64))) {
            continue;
        }
        for run in runs {
            let is_new = !sizes.iter().any(|size| alike(run.size, *size as f64));
            if is_new && sizes.len() < MOST_SIZES {
                sizes.push(run.size as u64);
            }
        }
        missing.insert(name, sizes);
    }
    missing
}

/// Measure, on a thread of its own, which is pinned to a core: planning goes on wherever there is room.
fn take(sizes: Sizes, tell: &dyn Fn(&Remark<'_>)) -> Result<Profile, String> {
    let functions: Vec<&'static Descriptor> = sizes.keys().filter_map(|name| registry::find(name)).collect();
    let cores = cores() as usize;
    let core = cores.saturating_sub(1);
    let options = Options {
        runs: 1,
        sizes: Vec::new(),
        usual_only: true,
        own_sizes: sizes,
        core,
        other: core.checked_sub(1),
        beside: true,
        port: None,
    };
    let (steps, next) = std::sync::mpsc::channel();
    let measuring = std::thread::spawn(move || {
        // Nobody who listens has gone away before this ends.
        measure(&functions, &options, &mut |step| _ = steps.send(step.clone()))
    });
    for step in next {
        tell(&Remark::Step(&step));
    }
    let measured = measuring.join().map_err(|_| "internal error: measuring panicked".to_owned())?;
    tell(&Remark::Measured);
    measured.map(|Measured { profile, .. }| profile)
}

/// Where profiles of this processor and this library are kept; None: there is no place for such files.
pub fn path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let processor = machine::this().processor;
    let word: String = processor.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    // What is built for debugging costs several times as much.
    let build = if cfg!(debug_assertions) { "-debug" } else { "" };
    Some(folder.join("catena").join(format!("profile-{}{build}-{word}.json", env!("CARGO_PKG_VERSION"))))
}

/// Read what is kept; what is broken, or of another format, is measured anew.
fn read(path: &Path) -> Option<Profile> {
    // Anybody may have put a pipe there, or something without an end.
    let is_kept = std::fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() <= MOST_BYTES);
    if !is_kept {
        return None;
    }
    Profile::from_text(&std::fs::read_to_string(path).ok()?).ok()
}

/// Keep a profile. That it cannot be kept is no reason not to plan.
fn keep(profile: &Profile, path: &Path, tell: &dyn Fn(&Remark<'_>)) {
    let write = || -> Result<(), Failure> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        replace::write(path, profile.to_text().map_err(|error| error.what)?.as_bytes())
    };
    if let Err(why) = write() {
        tell(&Remark::NotKept(&why.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_more_is_not_measured_again_and_ten_times_as_many_are() {
        assert!(alike(1.0, 3.0) && alike(3.0, 1.0) && alike(0.0, 16.0) && alike(100.0, 101.0) && alike(50.0, 100.0));
        assert!(!alike(3.0, 50.0) && !alike(1000.0, 100.0) && !alike(0.0, 17.0) && !alike(100.0, 201.0));
    }
}
