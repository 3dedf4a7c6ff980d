//! Drops that are certain come first, where the operator wants no count of what was done before them.
//!
//! "Packet drop can invalidate packet pass" (Deng and Wu, NFReducer, §II-B and §IV-C, TruncateAtFirstDrop): work on a
//! packet that a later function is certain to drop is lost, unless somebody sees it. Rules move up before functions
//! that keep no state, tell nothing, and change nothing that the rules read; functions of that kind before which all
//! ways end in a drop are passed by. Which packets leave, and how, stays; which function counts a drop, does not.
//!
//! A batch whose packets part and meet again leaves one way after the other, in an order that depends on the graph.
//! What comes first makes no difference to a port, but it does to state: where ways meet before a function that has
//! any, nothing is moved.

use std::collections::BTreeSet;

use catena_functions::Effects;
use catena_functions::rules::rule::{Action, Rule};

use super::finding::{Finding, Logic};
use super::ways::{Place, Ways};
use crate::host::{Host, Link, Lowered, ModuleId};

/// Move drops up, as far as they go.
pub fn early(host: &mut Host) -> Vec<Finding> {
    if let Some(meeting) = meeting(host) {
        let why = format!("ways meet at {meeting}: moving anything could change the order in which state sees packets");
        let what = "drops that are certain only later".to_owned();
        return vec![Finding { logic: Logic::Overwritten, module: meeting, what, why, taken: false }];
    }
    let mut findings = Vec::new();
    while let Some(finding) = raise(host) {
        findings.push(finding);
    }
    findings.extend(pass_by(host));
    findings
}

/// A place where packets come from several sides, before a function that they matter to.
fn meeting(host: &Host) -> Option<String> {
    let ways = Ways::new(host);
    let observes = |module: ModuleId| ways.effects[module].is_some_and(|effects| effects.observes);
    let reaches = |from: Place| {
        let (mut been, mut due) = (BTreeSet::new(), vec![from]);
        while let Some(place) = due.pop() {
            if been.insert(place) {
                due.extend(ways.next(place).map(|(_, next)| next));
            }
        }
        been.into_iter().any(|(module, _)| observes(module))
    };
    let sources = |place: Place| {
        let links = host.links.iter().filter(|link| (link.to, link.to_gate) == place).count();
        links + ways.entries().filter(|entry| *entry == place).count()
    };
    // A packet that is turned round meets those of its batch that are not.
    let turned = |module: ModuleId| {
        let gates = host.links.iter().filter(|link| link.from == module).map(|link| link.gate % 2);
        ways.effects[module].is_some_and(|effects| effects.turns) && gates.collect::<BTreeSet<_>>().len() > 1
    };
    let modules = 0..host.modules.len();
    let mut places = modules.clone().flat_map(|module| [(module, 0), (module, 1)]);
    let met = places.find(|place| sources(*place) > 1 && reaches(*place)).map(|(module, _)| module);
    met.or_else(|| modules.clone().find(|module| turned(*module))).map(|module| ways.name(module).to_owned())
}

/// Whether a list of rules can deny any packet at all.
fn denies(host: &Host, module: ModuleId) -> bool {
    let Lowered::Function { descriptor, args, .. } = &host.modules[module].kind else { return false };
    // Arguments that are wrong are told when the function is built.
    let rules = (descriptor.effects)(args).verdicts.and_then(|read| read(args).ok());
    rules.is_some_and(|rules| {
        [rules.unparsed, rules.source_routes].contains(&Action::Deny) || !rules.permits_all(&Rule::any(Action::Permit))
    })
}

/// The only link by which packets of a place go on, as an index.
fn only_link(host: &Host, (module, gate): Place) -> Option<usize> {
    let mut links = host.links.iter().enumerate().filter(|(_, link)| link.from == module && link.gate % 2 == gate);
    let (index, link) = links.next()?;
    (links.next().is_none() && link.gate == gate).then_some(index)
}

/// Move one list of rules up before one function; `None` if there is none to move.
fn raise(host: &mut Host) -> Option<Finding> {
    let ways = Ways::new(host);
    let movable = |link: &Link| -> Option<(Place, Place, usize, usize)> {
        let (above, below) = ((link.from, link.to_gate), (link.to, link.to_gate));
        let (before, rules) = (ways.effects[above.0]?, ways.effects[below.0]?);
        let quiet = |e: &Effects| !e.observes && !e.turns;
        let possible = rules.verdicts.is_some()
            && denies(host, below.0)
            && before.verdicts.is_none()
            && quiet(&before)
            && quiet(&rules)
            && !before.writes.meets(rules.reads);
        let (first, second) = (only_link(host, above)?, only_link(host, below)?);
        let alone = host.links.iter().filter(|l| (l.to, l.to_gate) == below).count() == 1
            && !ways.entries().any(|entry| entry == below)
            && host.links[first].to == below.0;
        (possible && alone && host.links[second].to != above.0).then_some((above, below, first, second))
    };
    let (above, below, first, second) = host.links.iter().find_map(movable)?;
    let finding = Finding {
        logic: Logic::Overwritten,
        module: ways.name(above.0).to_owned(),
        what: format!("work on packets that {} drops", ways.name(below.0)),
        why: format!(
            "moved up before it: {} keeps no state and changes nothing that is read there",
            ways.name(above.0)
        ),
        taken: true,
    };
    drop(ways);
    // What came to the one now comes to the other, which leads to it.
    for link in host.links.iter_mut().filter(|l| (l.to, l.to_gate) == above) {
        link.to = below.0;
    }
    for entry in host.entries.iter_mut().flatten().filter(|entry| **entry == above) {
        entry.0 = below.0;
    }
    let (to, to_gate) = (host.links[second].to, host.links[second].to_gate);
    (host.links[second].to, host.links[second].to_gate) = above;
    (host.links[first].to, host.links[first].to_gate) = (to, to_gate);
    Some(finding)
}

/// Lead packets straight to where they are dropped, past all that would do nothing but work on them.
fn pass_by(host: &mut Host) -> Vec<Finding> {
    let Some(discard) = host.modules.iter().position(|m| matches!(m.kind, Lowered::Discard)) else { return Vec::new() };
    let mut doomed: BTreeSet<Place> = BTreeSet::from([(discard, 0)]);
    let ways = Ways::new(host);
    let places: Vec<Place> = (0..host.modules.len()).flat_map(|module| [(module, 0), (module, 1)]).collect();
    loop {
        let lost = |place: &Place| {
            let silent = match &host.modules[place.0].kind {
                Lowered::Function { .. } => ways.effects[place.0].is_some_and(|e| !e.observes),
                Lowered::Branch(_) | Lowered::Parsed => true,
                Lowered::Exit(_) | Lowered::Discard => false,
            };
            let mut next = ways.next(*place).peekable();
            silent && next.peek().is_some() && next.all(|(_, to)| doomed.contains(&to))
        };
        let found: Vec<Place> = places.iter().filter(|p| !doomed.contains(*p)).copied().filter(lost).collect();
        if found.is_empty() {
            break;
        }
        doomed.extend(found);
    }
    doomed.remove(&(discard, 0));
    let names: BTreeSet<ModuleId> = doomed
        .iter()
        .filter(|place| host.links.iter().any(|l| (l.to, l.to_gate) == **place) || ways.entries().any(|e| e == **place))
        .map(|place| place.0)
        .collect();
    let finding = |module: &ModuleId| Finding {
        logic: Logic::Overwritten,
        module: ways.name(*module).to_owned(),
        what: "all work on packets that come here".to_owned(),
        why: "every way from here ends in a drop, and it keeps no state".to_owned(),
        taken: true,
    };
    let findings = names.iter().map(finding).collect();
    for link in host.links.iter_mut().filter(|l| doomed.contains(&(l.to, l.to_gate))) {
        (link.to, link.to_gate) = (discard, 0);
    }
    for entry in host.entries.iter_mut().flatten().filter(|entry| doomed.contains(*entry)) {
        *entry = (discard, 0);
    }
    findings
}
