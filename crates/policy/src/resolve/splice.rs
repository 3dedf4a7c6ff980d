//! Macro instances disappear: what leads to a door is joined with what leads on from it.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use super::condition::conjoin;
use super::wire::{Draft, Place, Wire};
use crate::diagnostic::{Code, Diagnostic};
use crate::graph::Direction;
use crate::limits::MAX_EDGES;

impl Resolver<'_> {
    /// The wires of `draft` without doors, in the order in which a packet tries them.
    pub(super) fn splice(&mut self, draft: &mut Draft) -> Vec<Wire> {
        let mut by_source: HashMap<(Place, Direction), Vec<Wire>> = HashMap::new();
        for wire in std::mem::take(&mut draft.wires) {
            by_source.entry((wire.from, wire.direction)).or_default().push(wire);
        }
        for wires in by_source.values_mut() {
            wires.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let mut sources: Vec<(Place, Direction)> =
            by_source.keys().copied().filter(|(place, _)| door(*place).is_none()).collect();
        sources.sort();
        let mut joined = Vec::new();
        let mut budget = MAX_EDGES;
        for source in sources {
            for wire in &by_source[&source] {
                self.follow(draft, &by_source, wire.clone(), &mut joined, &mut budget, 0);
            }
        }
        joined.sort_by(|a, b| (a.direction, a.from, &a.key).cmp(&(b.direction, b.from, &b.key)));
        prune(draft, joined)
    }

    fn follow(
        &mut self,
        draft: &Draft,
        by_source: &HashMap<(Place, Direction), Vec<Wire>>,
        wire: Wire,
        joined: &mut Vec<Wire>,
        budget: &mut usize,
        depth: usize,
    ) {
        if *budget == 0 {
            let text = "the chain has too many edges once its macros are expanded";
            return self.find(Diagnostic::error(Code::TooLarge, draft.span, text));
        }
        *budget -= 1;
        let Some(id) = door(wire.to) else {
            return joined.push(wire);
        };
        let composite = &draft.composites[id as usize];
        if depth > 2 * crate::limits::MAX_DEPTH {
            let text = format!("packets go round and round through `{}`", composite.name);
            return self.find(Diagnostic::error(Code::Cycle, composite.span, text));
        }
        let Some(onward) = by_source.get(&(wire.to, wire.direction)) else {
            return self.door_leads_nowhere(draft, &wire, id);
        };
        for next in onward {
            let mut when = wire.when.clone();
            for guard in &next.when {
                conjoin(&mut when, guard.clone());
            }
            let share = match (wire.share, next.share) {
                (Some(a), Some(b)) => Some(a * b),
                (a, None) => a.filter(|_| onward.len() == 1),
                (None, b) => b.filter(|_| wire.when.is_empty()),
            };
            let both = Wire {
                from: wire.from,
                to: next.to,
                direction: wire.direction,
                when,
                key: wire.key.iter().chain(&next.key).copied().collect(),
                share,
                rate: next.rate.or(wire.rate.filter(|_| onward.len() == 1)),
                span: wire.span,
            };
            self.follow(draft, by_source, both, joined, budget, depth + 1);
        }
    }

    fn door_leads_nowhere(&mut self, draft: &Draft, wire: &Wire, id: u32) {
        let composite = &draft.composites[id as usize];
        let name = &composite.name;
        let entering = matches!(
            (wire.to, wire.direction),
            (Place::DoorIn(_), Direction::Forward) | (Place::DoorOut(_), Direction::Return)
        );
        let finding = if entering {
            let way = match wire.direction {
                Direction::Forward => "forward path, from `in` to `out`",
                Direction::Return => "return path, from `out` to `in`",
            };
            Diagnostic::error(Code::Dangling, wire.span, format!("`{name}` has no {way}"))
                .label("packets arrive here and have nowhere to go")
                .help("a macro that is used both ways says so with `<->`")
        } else {
            Diagnostic::error(Code::Dangling, composite.span, format!("the path ends at `{name}`"))
                .label("packets that leave it have nowhere to go")
                .help("go on with `-> out`, or end it with `-> drop`")
        };
        self.find(finding);
    }
}

fn door(place: Place) -> Option<u32> {
    match place {
        Place::DoorIn(id) | Place::DoorOut(id) => Some(id),
        Place::In | Place::Out | Place::Drop | Place::Node(_) => None,
    }
}

/// Takes away the wires of macros in directions in which they are not used.
fn prune(draft: &Draft, wires: Vec<Wire>) -> Vec<Wire> {
    let mut next: HashMap<(Place, Direction), Vec<Place>> = HashMap::new();
    for wire in &wires {
        next.entry((wire.from, wire.direction)).or_default().push(wire.to);
    }
    let mut reached: HashSet<(Place, Direction)> = HashSet::new();
    // Nodes outside macros count as reached: if nothing leads to them, that is a finding.
    let mut stack: Vec<(Place, Direction)> = next
        .keys()
        .copied()
        .filter(|(place, _)| match place {
            Place::Node(id) => !draft.inner[*id as usize],
            _ => true,
        })
        .collect();
    while let Some(at) = stack.pop() {
        if reached.insert(at) {
            stack.extend(next.get(&at).into_iter().flatten().map(|to| (*to, at.1)));
        }
    }
    wires.into_iter().filter(|w| reached.contains(&(w.from, w.direction))).collect()
}
