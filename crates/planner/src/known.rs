//! What is known of functions: those of the library, or those of a paper (`--as lemur`).

use std::collections::BTreeMap;

use catena_plan::catalogue::{Catalogue, Platform, Traits};
use catena_plan::paper::{self, Forwarding};
use catena_plan::profile::Profile;

/// What is known of functions.
#[derive(Clone)]
pub struct Known {
    /// Where they run, and how they may be split.
    pub catalogue: Catalogue,
    /// What they cost.
    pub profile: Profile,
    /// Where figures come from that nobody measured, by function.
    pub sources: BTreeMap<String, String>,
}

/// Other names of the paper's functions: those of its examples in section 2, and BESS's.
const ALIASES: [(&str, &str); 3] = [("Encryption", "Encrypt"), ("Forward", "IPv4Fwd"), ("Match", "BPF")];

/// What is known of the library's own functions: where they run and how they may be split is what the library can build.
/// Costs that nobody `measured` are a paper's, and marked.
pub fn own(measured: Option<Profile>) -> Known {
    let mut papers = paper::profile();
    // What a paper's function costs on a network card is no cost of the library's, which runs on none.
    papers.functions.values_mut().for_each(|cost| cost.smart_nic = None);
    let profile = measured.map_or_else(|| papers.clone(), |measured| measured.completed_by(&papers));
    let catalogue = catena_compile::catalogue::catalogue();
    let source = |traits: &Traits| profile.functions.get(&traits.name)?.source.clone();
    let sources = catalogue.functions.iter().filter_map(|t| Some((t.name.clone(), source(t)?))).collect();
    Known { catalogue, profile, sources }
}

/// All that is known of functions with a paper's functions in the place of those that nobody `measured`: its platforms, its
/// tables and its costs.
pub fn known(measured: Option<Profile>) -> Known {
    let mut papers = paper::profile();
    let mut catalogue = paper::catalogue(Forwarding::SwitchOnly);
    for (alias, name) in ALIASES {
        if let Some(traits) = catalogue.find(name).cloned() {
            catalogue.functions.push(Traits { name: alias.to_owned(), ..traits });
        }
        if let Some(cost) = papers.functions.get(name).cloned() {
            papers.functions.insert(alias.to_owned(), cost);
        }
    }
    let profile = match measured {
        Some(measured) => {
            // What was measured is the library's own function, which runs where the library can run it, whatever the
            // papers had under its name.
            for traits in catena_compile::catalogue::catalogue().functions {
                if measured.functions.get(&traits.name).is_some_and(|cost| cost.source.is_none()) {
                    catalogue.functions.retain(|other| other.name != traits.name);
                    catalogue.functions.push(traits);
                }
            }
            measured.completed_by(&papers)
        }
        None => papers,
    };
    for traits in &mut catalogue.functions {
        // What was measured here runs on servers, also where the paper's evaluation did without.
        let measured = profile.functions.get(&traits.name).is_some_and(|cost| cost.source.is_none());
        if measured && !traits.runs_on(Platform::Server) {
            traits.platforms.push(Platform::Server);
        }
        // What nobody measured on a server can be planned for other devices all the same.
        if !profile.functions.contains_key(&traits.name) && traits.platforms.len() > 1 {
            traits.platforms.retain(|platform| *platform != Platform::Server);
        }
    }
    let source = |traits: &Traits| match profile.functions.get(&traits.name) {
        Some(cost) => cost.source.clone(),
        None => traits.source.clone(),
    };
    let sources = catalogue.functions.iter().filter_map(|t| Some((t.name.clone(), source(t)?))).collect();
    Known { catalogue, profile, sources }
}

impl Known {
    /// Take the library's own costs as they were `measured`.
    pub fn measured_by(&mut self, measured: Profile) {
        let Known { profile, sources, .. } = own(Some(measured));
        (self.profile, self.sources) = (profile, sources);
    }

    /// Let functions be split as the library splits them: where a plan can be run, what it gives several cores is what a run
    /// gives several workers.
    pub fn split_as_run(&mut self) {
        for own in catena_compile::catalogue::catalogue().functions {
            for traits in self.catalogue.functions.iter_mut().filter(|traits| traits.name == own.name) {
                (traits.affinity, traits.memory) = (own.affinity, own.memory);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_not_marked() {
        let mut measured = paper::profile();
        measured.functions.retain(|name, _| name == "ACL");
        if let Some(cost) = measured.functions.get_mut("ACL") {
            cost.source = None;
        }
        let known = known(Some(measured));
        assert!(!known.sources.contains_key("ACL") && known.sources.contains_key("NAT"));
    }

    #[test]
    fn a_plan_uses_what_the_library_can_build() {
        for traits in own(None).catalogue.functions {
            assert_eq!(traits.platforms, [Platform::Server], "{}: there is no program for other devices", traits.name);
        }
        let acl = |known: Known| known.catalogue.find("ACL").is_some_and(|acl| acl.runs_on(Platform::Pisa));
        assert!(!acl(own(None)) && acl(known(None)));
    }

    #[test]
    fn other_names_mean_the_same() {
        let known = known(None);
        for (alias, name) in ALIASES {
            let (a, b) = (known.catalogue.find(alias), known.catalogue.find(name));
            assert_eq!(a.map(|t| &t.platforms), b.map(|t| &t.platforms), "{alias}");
            assert!(known.sources.contains_key(alias));
        }
    }
}
