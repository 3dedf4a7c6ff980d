//! Paths to wires. A path is read from left to right with a set of *open* ends: what has left the
//! elements so far and arrives at the next one. A branch multiplies open ends, a merge is the next
//! element taking them all.

use super::wire::{Body, Draft, Entity, Open, Place, Wire};
use super::{Frame, Resolver};
use crate::ast::{Arm, Element, Expr, Path, Step};
use crate::diagnostic::{Code, Diagnostic};
use crate::graph::Direction;
use crate::limits::MAX_EDGES;
use crate::span::Span;
use crate::value::Value;

/// One reading of a path.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) direction: Direction,
    /// Filters were written for the other direction.
    pub(super) mirrored: bool,
}

impl<'a> Resolver<'a> {
    pub(super) fn path(&mut self, draft: &mut Draft, body: &mut Body<'_>, path: &'a Path) {
        let mut arrows = [0usize; 2];
        count_arrows(&path.steps, &mut arrows);
        let [one_way, two_way] = arrows;
        if two_way == 0 {
            let ends_in = matches!(path.steps.last().map(|s| &s.element), Some(Element::In));
            let starts_out = matches!(path.steps.first().map(|s| &s.element), Some(Element::Out));
            let back = path.back.is_some() || ends_in || starts_out;
            let direction = if back { Direction::Return } else { Direction::Forward };
            return self.read(draft, body, &path.steps, Reading { direction, mirrored: false });
        }
        let span = path.steps[0].span.to(path.steps[path.steps.len() - 1].span);
        if one_way > 0 || path.back.is_some() {
            let text = "a path goes one way or both ways, not some of each";
            let finding = Diagnostic::error(Code::Path, span, text);
            draft.broken = true;
            return self.find(finding.help("split it where the ways part"));
        }
        self.read(draft, body, &path.steps, Reading { direction: Direction::Forward, mirrored: false });
        let turned = turn(&path.steps);
        self.read(draft, body, &turned, Reading { direction: Direction::Return, mirrored: true });
    }

    /// Reads a whole path in one direction.
    fn read(&mut self, draft: &mut Draft, body: &mut Body<'_>, steps: &[Step], reading: Reading) {
        let Some(left) = self.run(draft, body, steps, reading, Vec::new(), true) else {
            draft.broken = true;
            return;
        };
        for open in left {
            let Some(span) = open.chosen else { continue };
            if body.loose {
                let to = if reading.direction == Direction::Forward { body.inner.leave } else { body.inner.enter };
                self.wire(draft, open, to, reading.direction, span);
            } else {
                let finding = self
                    .error_in(body.frame, Code::Dangling, span, "packets leave here for nowhere".to_owned())
                    .label("no element follows")
                    .help("go on with `-> out`, or end it with `-> drop`");
                self.find(finding);
                draft.broken = true;
            }
        }
    }

    /// Reads `steps` with `opens` arriving at the first; returns what leaves the last.
    fn run(
        &mut self,
        draft: &mut Draft,
        body: &mut Body<'_>,
        steps: &[Step],
        reading: Reading,
        mut opens: Vec<Open>,
        top: bool,
    ) -> Option<Vec<Open>> {
        for (i, step) in steps.iter().enumerate() {
            if let Some(rate) = step.arrow.as_ref().and_then(|a| a.rate.as_ref()) {
                self.rate(rate, &mut opens);
            }
            let first = top && i == 0;
            let last = i + 1 == steps.len();
            let (source, target) = match reading.direction {
                Direction::Forward => (body.inner.enter, body.inner.leave),
                Direction::Return => (body.inner.leave, body.inner.enter),
            };
            let end = match &step.element {
                Element::In => Some(body.inner.enter),
                Element::Out => Some(body.inner.leave),
                Element::Drop => Some(Place::Drop),
                _ => None,
            };
            match end {
                Some(place) if place == source && first => {
                    opens = vec![draft.leaving(source)];
                    continue;
                }
                Some(place) if (place == target || place == Place::Drop) && last && !first => {
                    for open in std::mem::take(&mut opens) {
                        self.wire(draft, open, place, reading.direction, step.span);
                    }
                    continue;
                }
                Some(_) => {
                    self.misplaced_end(step, reading.direction);
                    return None;
                }
                None => {}
            }
            if draft.overflown {
                return None;
            }
            if let Element::Branch(arms) = &step.element {
                if opens.is_empty() {
                    let finding = Diagnostic::error(Code::Path, step.span, "nothing leads into this branch");
                    self.find(finding.help("a path begins with `in`, `out` or an instance"));
                    return None;
                }
                let parts = self.branch(body, draft, arms, step.span, reading, &opens)?;
                opens = Vec::new();
                for (arm, arriving) in parts {
                    match arm {
                        Some(arm) if !arm.steps.is_empty() => {
                            opens.extend(self.run(draft, body, &arm.steps, reading, arriving, false)?);
                        }
                        _ => opens.extend(arriving),
                    }
                }
                continue;
            }
            let entity = self.entity(draft, body, &step.element)?;
            let (entry, exit) = match (entity, reading.direction) {
                (Entity::Broken, _) => return None,
                (Entity::Node(id), _) => (Place::Node(id), Place::Node(id)),
                (Entity::Composite(id), Direction::Forward) => (Place::DoorIn(id), Place::DoorOut(id)),
                (Entity::Composite(id), Direction::Return) => (Place::DoorOut(id), Place::DoorIn(id)),
            };
            for open in std::mem::take(&mut opens) {
                self.wire(draft, open, entry, reading.direction, step.span);
            }
            let mut open = draft.leaving(exit);
            if let Element::Instance { selector: Some(selector), .. } | Element::Call { selector: Some(selector), .. } =
                &step.element
            {
                if reading.mirrored {
                    let text = "a gate has no meaning on the way back";
                    let finding = Diagnostic::error(Code::Path, selector.span, text);
                    self.find(finding.help("write the two directions as two paths"));
                    return None;
                }
                let function = match entity {
                    Entity::Node(id) => Some(draft.nodes[id as usize].function.clone()),
                    _ => None,
                };
                open.when.push(self.selector(selector, function.as_deref(), body.frame)?);
                open.chosen = Some(selector.span);
            }
            opens = vec![open];
        }
        Some(opens)
    }

    fn misplaced_end(&mut self, step: &Step, direction: Direction) {
        let text = match (&step.element, direction) {
            (Element::Drop, _) => "`drop` ends a path",
            (Element::In, Direction::Forward) => "`in` begins a path",
            (Element::Out, Direction::Forward) => "`out` ends a path",
            (Element::In, Direction::Return) => "on the way back, `in` ends a path",
            (_, Direction::Return) => "on the way back, `out` begins a path",
            _ => "this cannot stand here",
        };
        self.find(Diagnostic::error(Code::Path, step.span, text).label("not in this place"));
    }

    /// The estimate on an arrow is the rate of all packets that take it together.
    fn rate(&mut self, expr: &Expr, opens: &mut [Open]) {
        let rate = match self.eval(expr, &Frame::default()) {
            Some(Value::BitRate(rate)) => rate as f64,
            Some(other) => return self.unit_error(expr, &other, "a bit rate such as 2Gbps"),
            None => return,
        };
        let known: Option<f64> = opens.iter().map(|o| o.share).sum();
        let count = u32::try_from(opens.len()).map_or(f64::INFINITY, f64::from);
        for open in opens {
            let part = match (known, open.share) {
                (Some(sum), Some(share)) if sum > 0.0 => share / sum,
                _ => 1.0 / count,
            };
            open.rate = Some(rate * part);
        }
    }

    fn wire(&mut self, draft: &mut Draft, open: Open, to: Place, direction: Direction, span: Span) {
        if draft.wires.len() >= MAX_EDGES {
            if !draft.overflown {
                self.find(Diagnostic::error(Code::TooLarge, span, "the chain has too many edges"));
            }
            draft.overflown = true;
            return;
        }
        let Open { from, when, key, share, rate, .. } = open;
        draft.wires.push(Wire { from, to, direction, when, key, share, rate, span });
    }
}

/// Counts one-way and two-way arrows.
fn count_arrows(steps: &[Step], counts: &mut [usize; 2]) {
    for step in steps {
        if let Some(arrow) = &step.arrow {
            counts[usize::from(arrow.two_way)] += 1;
        }
        if let Element::Branch(arms) = &step.element {
            arms.iter().for_each(|arm| count_arrows(&arm.steps, counts));
        }
    }
}

/// The path read from its end: the way back through the same elements.
fn turn(steps: &[Step]) -> Vec<Step> {
    let mut turned: Vec<Step> = Vec::with_capacity(steps.len());
    for (i, step) in steps.iter().enumerate().rev() {
        let arrow = steps.get(i + 1).and_then(|next| next.arrow.clone());
        let element = match &step.element {
            Element::Branch(arms) => {
                Element::Branch(arms.iter().map(|arm| Arm { steps: turn(&arm.steps), ..arm.clone() }).collect())
            }
            other => other.clone(),
        };
        turned.push(Step { arrow, element, span: step.span });
    }
    turned
}
