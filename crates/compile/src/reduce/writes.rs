//! Header fields: checksums that are known to be right, and writes that nobody sees.

use std::collections::BTreeMap;

use catena_functions::Fields;
use catena_functions::effects::{Checksum, Spared};

use super::finding::{Finding, Logic};
use super::ways::{Place, Ways};
use crate::host::{Lowered, ModuleId};

/// Find what functions can be spared of verifying and writing; adds it to `spared`.
pub fn writes(ways: &Ways<'_>, spared: &mut BTreeMap<ModuleId, Spared>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let verified = ways.verified();
    let places: Vec<Place> = verified.keys().copied().collect();
    let live = ways.live(&places);
    for (module, effects) in ways.effects.iter().enumerate() {
        let Some(effects) = effects else { continue };
        let Lowered::Function { descriptor, .. } = &ways.host.modules[module].kind else { continue };
        let here = || places.iter().filter(|place| place.0 == module);
        if descriptor.spared.is_none() || here().next().is_none() {
            continue;
        }
        let mut note = |logic, what: String, why: &str| {
            let (module, why) = (ways.name(module).to_owned(), why.to_owned());
            findings.push(Finding { logic, module, what, why, taken: true });
        };
        if effects.checksum == Checksum::Verified && here().all(|place| verified[place]) {
            spared.entry(module).or_default().verified = true;
            let why = "verified before on every way here, and kept right since";
            note(Logic::Duplicated, "verifying the header checksum of IPv4".to_owned(), why);
        }
        let alive = here().filter_map(|place| live.get(place)).fold(Fields::NONE, |all, live| all | *live);
        let dead = effects.writes.without(alive);
        if !dead.is_empty() {
            spared.entry(module).or_default().unwritten = dead;
            note(Logic::Overwritten, format!("writing {dead}"), "written anew, or dropped, before anybody reads it");
        }
    }
    findings
}
