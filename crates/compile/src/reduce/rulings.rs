//! Lists of rules in a chain: rules that cannot decide, lists that permit all that comes, and look-ups that one
//! function does for several.
//!
//! A packet that comes to a list has passed others before. What they let through bounds what can meet its rules; and
//! where nothing between has changed a field that it reads, its verdict is the same at the first list's place, where
//! it is found in the same look-up (Deng and Wu, NFReducer, §IV-B: the shared expression is computed once).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catena_functions::Fields;
use catena_functions::effects::{MOST_TOLD, Spared, Tells, Way};
use catena_functions::rules::Verdicts;
use catena_functions::rules::rule::{Action, Rule};
use catena_packet::meta::ATTRIBUTE_BYTES;

use super::finding::{Finding, Logic};
use super::ways::{Met, Place, Ways};
use crate::host::ModuleId;

/// Comparisons of two rules that one list may take; about 0.1 s. Beyond, its rules stay as they are.
const MOST_COMPARED: usize = 20_000_000;

/// The lists of a pipeline, and what is known of each.
pub struct Rulings<'a> {
    ways: &'a Ways<'a>,
    /// By module, as the user wrote them.
    lists: &'a BTreeMap<ModuleId, Arc<Verdicts>>,
    met: BTreeMap<Place, Met>,
    /// The rules that can decide, for all lists.
    kept: BTreeMap<ModuleId, Arc<Verdicts>>,
    spared: BTreeMap<ModuleId, Spared>,
    findings: Vec<Finding>,
}

/// Find what the functions that are lists of rules can be spared.
pub fn rulings<'a>(
    ways: &'a Ways<'a>,
    lists: &'a BTreeMap<ModuleId, Arc<Verdicts>>,
) -> (BTreeMap<ModuleId, Spared>, Vec<Finding>) {
    let reads = lists.iter().map(|(module, list)| (*module, list.reads())).collect();
    let met = ways.met(&reads);
    let (kept, spared) = (BTreeMap::new(), BTreeMap::new());
    let mut rulings = Rulings { ways, lists, met, kept, spared, findings: Vec::new() };
    for module in lists.keys() {
        rulings.prune(*module);
        rulings.permit(*module);
    }
    rulings.tell();
    for module in lists.keys() {
        rulings.mask(*module);
    }
    (rulings.spared, rulings.findings)
}

fn direction(gate: u16) -> &'static str {
    if gate == 0 { "out" } else { "back" }
}

impl Rulings<'_> {
    fn note(&mut self, logic: Logic, module: ModuleId, what: String, why: String, taken: bool) {
        let module = self.ways.name(module).to_owned();
        self.findings.push(Finding { logic, module, what, why, taken });
    }

    /// The directions by which packets come to a module.
    fn gates(&self, module: ModuleId) -> impl Iterator<Item = u16> + use<> {
        let reached = [0u16, 1].map(|gate| self.met.contains_key(&(module, gate)));
        [0u16, 1].into_iter().zip(reached).filter(|(_, reached)| *reached).map(|(gate, _)| gate)
    }

    /// The lists that all packets of a place have passed.
    fn upstream(&self, place: Place) -> Vec<(ModuleId, &Arc<Verdicts>)> {
        let passed = self.met.get(&place).map(|met| &met.passed);
        let others = passed.into_iter().flatten().filter(|module| **module != place.0);
        others.filter_map(|module| Some((*module, self.lists.get(module)?))).collect()
    }

    /// Take out the rules that no packet meets first.
    fn prune(&mut self, module: ModuleId) {
        let Some(list) = self.lists.get(&module) else { return };
        let gates: Vec<u16> = self.gates(module).collect();
        let before: usize =
            gates.iter().flat_map(|gate| self.upstream((module, *gate))).map(|(_, u)| u.rules.len()).sum();
        let compared = list.rules.len().saturating_mul(before + list.rules.len() / 2);
        self.kept.insert(module, Arc::clone(list));
        if compared > MOST_COMPARED {
            let why = format!("{} rules are too many to hold against {before} before and each other", list.rules.len());
            self.note(Logic::Unused, module, "rules that cannot decide, if any".to_owned(), why, false);
            return;
        }
        // By whom: the earlier rule of the same list, or the list before.
        let mut covered: Vec<String> = Vec::new();
        let mut barred: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut rules = Vec::new();
        for (n, rule) in list.rules.iter().enumerate() {
            let barring = |gate: &u16| {
                let upstream = self.upstream((module, *gate)).into_iter();
                upstream.filter(|(_, list)| !list.lets_reach(rule)).map(|(before, _)| before).next()
            };
            if let Some(first) = list.rules[..n].iter().position(|earlier| earlier.covers(rule)) {
                covered.push(format!("{} (by {})", n + 1, first + 1));
            } else if let Some(by) =
                gates.iter().map(barring).collect::<Option<Vec<_>>>().and_then(|by| by.first().copied())
            {
                barred.entry(self.ways.name(by)).or_default().push((n + 1).to_string());
            } else {
                rules.push(*rule);
            }
        }
        let of = list.rules.len();
        let barred: Vec<(String, String)> = barred.iter().map(|(by, n)| (listed(n, of), (*by).to_owned())).collect();
        if rules.len() < of {
            self.kept.insert(module, Arc::new(Verdicts { rules, ..**list }));
        }
        if !covered.is_empty() {
            let why = "an earlier rule matches all their packets".to_owned();
            self.note(Logic::Unused, module, listed(&covered, of), why, true);
        }
        for (what, by) in barred {
            self.note(Logic::Duplicated, module, what, format!("{by} lets none of their packets through"), true);
        }
    }

    /// Find the directions in which everything that comes is permitted.
    fn permit(&mut self, module: ModuleId) {
        let Some(list) = self.kept.get(&module).cloned() else { return };
        let mut spared = Spared { ways: [Way::Never, Way::Never], ..Spared::default() };
        for gate in self.gates(module).collect::<Vec<_>>() {
            let permits = |boxes: &[Rule]| {
                boxes.len().saturating_mul(list.rules.len()) <= MOST_COMPARED
                    && boxes.iter().all(|packets| list.permits_all(packets))
            };
            let way = &mut spared.ways[usize::from(gate)];
            *way = Way::Search;
            let all = || format!("its verdict on packets on the way {}", direction(gate));
            if permits(&[Rule::any(Action::Permit)]) {
                *way = Way::Permits;
                self.note(Logic::Unused, module, all(), "it permits whatever comes".to_owned(), true);
            } else if let Some((by, _)) =
                self.upstream((module, gate)).into_iter().find(|(_, before)| permits(&before.permitted()))
            {
                *way = Way::Permits;
                let why = format!("it permits all that {} lets through", self.ways.name(by));
                self.note(Logic::Duplicated, module, all(), why, true);
            }
        }
        if self.lists.get(&module).is_some_and(|all| all.rules.len() > list.rules.len()) {
            spared.rules = Some(list);
        }
        self.spared.insert(module, spared);
    }

    /// Find the verdicts that an earlier list can find together with its own.
    fn tell(&mut self) {
        let mut places: Vec<(usize, Place)> = Vec::new();
        for module in self.lists.keys() {
            places.extend(self.gates(*module).map(|gate| (self.met[&(*module, gate)].seen.len(), (*module, gate))));
        }
        // What was seen grows along every way: who comes first is settled first.
        places.sort();
        if places.len() < 2 {
            return;
        }
        let all: Vec<Place> = self.met.keys().copied().collect();
        let certain = self.ways.certain(&all);
        let mut free = (ATTRIBUTE_BYTES / 2).saturating_sub(self.ways.attributes().len());
        for (_, place) in places {
            let seen = self.met[&place].seen.clone();
            if self.way(place) != Some(&Way::Search) {
                continue;
            }
            let mut candidates: Vec<(Place, Fields)> = seen.into_iter().filter(|(at, _)| at.0 != place.0).collect();
            candidates.sort_by_key(|(at, _)| self.met[at].seen.len());
            let mut refused = None;
            let mut told = false;
            for (by, written) in candidates {
                match self.told_by(place, by, written, &certain, free) {
                    Ok(()) => {
                        if self.tell_from(by, place) {
                            free -= 1;
                        }
                        told = true;
                        break;
                    }
                    Err(Some(why)) => refused = refused.or(Some(why)),
                    Err(None) => {}
                }
            }
            if let Some(why) = refused.filter(|_| !told) {
                let what = format!("its look-up on the way {}", direction(place.1));
                self.note(Logic::Duplicated, place.0, what, why, false);
            }
        }
    }

    fn way(&self, (module, gate): Place) -> Option<&Way> {
        Some(&self.spared.get(&module)?.ways[usize::from(gate)])
    }

    /// Whether the list at `by` can tell the one at `place` its verdict; else why not, if that is worth a word.
    fn told_by(
        &self,
        place: Place,
        by: Place,
        written: Fields,
        certain: &BTreeMap<Place, BTreeSet<Place>>,
        free: usize,
    ) -> Result<(), Option<String>> {
        if self.way(by) != Some(&Way::Search) {
            return Err(None);
        }
        let reads = self.kept.get(&place.0).map_or(Fields::ALL, |list| list.reads());
        let name = self.ways.name(by.0);
        if written.meets(reads) {
            return Err(Some(format!("{} may have changed since {name} read them", written.and(reads))));
        }
        if !certain.get(&by).is_some_and(|then| then.contains(&place)) {
            return Err(Some(format!("not all packets of {name} come here")));
        }
        match self.spared.get(&by.0).and_then(|spared| spared.tells.as_ref()) {
            Some(tells) if tells.others.len() == MOST_TOLD => {
                Err(Some(format!("{name} finds {MOST_TOLD} other verdicts already, the most there is room for")))
            }
            None if free == 0 => Err(Some("packets carry no further attribute".to_owned())),
            _ => Ok(()),
        }
    }

    /// Let the list at `by` tell the one at `place`; returns whether that took another attribute.
    fn tell_from(&mut self, by: Place, place: Place) -> bool {
        let Some(list) = self.kept.get(&place.0).cloned() else { return false };
        let rules = list.rules.len();
        let name = self.ways.name(by.0).to_owned();
        let Some(teller) = self.spared.get_mut(&by.0) else { return false };
        let is_new = teller.tells.is_none();
        let tells =
            teller.tells.get_or_insert_with(|| Tells { attribute: format!("rulings at {name}"), others: Vec::new() });
        // On the way back the same list may have been told before.
        let known = tells.others.iter().position(|other| Arc::ptr_eq(other, &list));
        let at = known.unwrap_or_else(|| {
            tells.others.push(list);
            tells.others.len() - 1
        });
        let way = Way::Told { attribute: tells.attribute.clone(), place: at as u8 };
        if let Some(told) = self.spared.get_mut(&place.0) {
            told.ways[usize::from(place.1)] = way;
        }
        let what = format!("its look-up among {rules} rules on the way {}", direction(place.1));
        self.note(
            Logic::Duplicated,
            place.0,
            what,
            format!("{name} finds its verdict in the look-up of its own"),
            true,
        );
        is_new
    }

    /// Find the fields that no rule asks for which the module looks up.
    fn mask(&mut self, module: ModuleId) {
        let Some(spared) = self.spared.get_mut(&module) else { return };
        if !spared.ways.contains(&Way::Search) {
            spared.rules = None;
            return;
        }
        // It is ready to search: a direction that no packet comes by costs it nothing.
        spared.ways.iter_mut().filter(|way| **way == Way::Never).for_each(|way| *way = Way::Search);
        let own = self.kept.get(&module).map_or(Fields::ALL, |list| list.reads());
        let others = spared.tells.iter().flat_map(|tells| &tells.others);
        let reads = others.fold(own, |reads, other| reads | other.reads());
        spared.unread = Fields::FIVE_TUPLE.without(reads);
        if !spared.unread.is_empty() {
            let what = format!("reading {}", spared.unread);
            let why = "no rule asks for that: packets that differ in nothing else are looked up once".to_owned();
            self.note(Logic::Unused, module, what, why, true);
        }
    }
}

/// Name rules by their numbers, of so many.
fn listed(numbers: &[String], of: usize) -> String {
    const MOST: usize = 4;
    match numbers {
        [one] => format!("rule {one} of {of}"),
        few if few.len() <= MOST => format!("rules {} of {of}", few.join(", ")),
        many => format!("rules {} and {} more of {of}", many[..MOST].join(", "), many.len() - MOST),
    }
}
