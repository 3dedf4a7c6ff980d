//! Takes redundant logic out of a host pipeline: what its configuration makes unused, duplicated or overwritten.
//!
//! The three kinds and their order are those of Deng and Wu, NFReducer (§II-B, §IV: duplicated, overwritten, unused),
//! at the level of the graph: functions declare their [`Effects`](catena_functions::Effects), and are told what they
//! are [spared](catena_functions::Spared). Nothing that anybody can observe changes: packets out, their order, state,
//! records, and what every function counts, by gate and by reason of dropping. What functions cost does, and the
//! gauges that tell of it. Only with [`Counts::Totals`] may a drop be counted at an earlier function.

mod early;
mod finding;
mod rulings;
mod ways;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catena_functions::Spared;

use crate::build::BuildError;
use crate::host::{Host, Lowered, ModuleId, When};
pub use finding::{Finding, Findings, Logic};
use ways::{Place, Ways};

/// Which counts of a pipeline somebody observes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Those of every function.
    #[default]
    Functions,
    /// Those of the whole: packets in, out and dropped.
    Totals,
}

/// Take out of `host` what is redundant, if it is not yet divided into tasks.
///
/// # Errors
/// What a function that is a list of rules refuses.
pub fn reduce(mut host: Host, counts: Counts) -> Result<(Host, Findings), BuildError> {
    let mut findings = match counts {
        Counts::Functions => Vec::new(),
        Counts::Totals => {
            host.drops_early = true;
            early::early(&mut host)
        }
    };
    let ways = Ways::new(&host);
    let lists = lists(&ways)?;
    let (mut spared, found) = rulings::rulings(&ways, &lists);
    findings.extend(found);
    findings.extend(writes::writes(&ways, &mut spared));
    let parsers = parsers(&ways);
    for (id, spared_here) in spared {
        if let Lowered::Function { spared, .. } = &mut host.modules[id].kind {
            *spared = spared_here;
        }
    }
    Ok((host, Findings { findings, parsers }))
}

/// Read the rules of all functions that are nothing else and can be spared.
fn lists(ways: &Ways<'_>) -> Result<BTreeMap<ModuleId, Arc<catena_functions::rules::Verdicts>>, BuildError> {
    let mut lists = BTreeMap::new();
    for (id, (module, effects)) in ways.host.modules.iter().zip(&ways.effects).enumerate() {
        let Lowered::Function { descriptor, args, origin, .. } = &module.kind else { continue };
        let Some(read) = effects.and_then(|effects| effects.verdicts).filter(|_| descriptor.spared.is_some()) else {
            continue;
        };
        let argument =
            |error| BuildError::Argument { module: module.name.clone(), origin: *origin, error: Box::new(error) };
        lists.insert(id, Arc::new(read(args).map_err(argument)?));
    }
    Ok(lists)
}

/// Return the names of the modules that parse headers first on some way.
fn parsers(ways: &Ways<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut due: Vec<Place> = ways.entries().collect();
    let mut been: BTreeSet<Place> = BTreeSet::new();
    while let Some(place) = due.pop() {
        if !been.insert(place) {
            continue;
        }
        let parses = match &ways.host.modules[place.0].kind {
            Lowered::Function { .. } | Lowered::Parsed => true,
            Lowered::Branch(arms) => arms.iter().flat_map(|arm| &arm.when).any(needs_layers),
            Lowered::Exit(_) | Lowered::Discard => false,
        };
        if parses {
            names.push(ways.name(place.0).to_owned());
        } else {
            due.extend(ways.next(place).map(|(_, next)| next));
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Whether a condition is about parsed headers; filters read the frame's bytes.
fn needs_layers(when: &When) -> bool {
    matches!(when, When::Split { .. } | When::Returns { .. })
}

impl Host {
    /// Return what a module is spared, if it is a function.
    #[must_use]
    pub fn spared(&self, module: ModuleId) -> Option<&Spared> {
        match &self.modules.get(module)?.kind {
            Lowered::Function { spared, .. } => Some(spared),
            _ => None,
        }
    }
}
