//! Paths to wires: every statement of a chain or macro becomes wires between places.
//!
//! A path is read from left to right with a set of *open* ends: what has left the elements so far
//! and arrives at the next one. A branch multiplies open ends, a merge is the next element taking
//! them all. A macro stays a pair of doors until `splice` joins what leads in with what leads on.

use std::collections::{HashMap, HashSet};

use super::condition::Guard;
use super::{Frame, Resolver};
use crate::ast::{Call, Element, Path, Statement, Step};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::graph::{Direction, Node};
use crate::limits::{MAX_DEPTH, MAX_EDGES};
use crate::span::{Name, Span};
use crate::value::Value;

/// Where a wire begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    In,
    Out,
    Drop,
    Node(u32),
    /// The `in` side of a macro instance.
    DoorIn(u32),
    /// Its `out` side.
    DoorOut(u32),
}

/// An edge in the making.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) from: Place,
    pub(super) to: Place,
    pub(super) direction: Direction,
    pub(super) when: Vec<Guard>,
    /// Orders the wires of one source: compared number by number.
    pub(super) key: Vec<u32>,
    pub(super) share: Option<f64>,
    pub(super) rate: Option<f64>,
    pub(super) span: Span,
}

/// Packets on their way from an element to the next one.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) from: Place,
    pub(super) when: Vec<Guard>,
    pub(super) key: Vec<u32>,
    pub(super) share: Option<f64>,
    pub(super) rate: Option<f64>,
    /// The branch or selector that they left, if they do not simply leave an instance.
    pub(super) chosen: Option<Span>,
}

/// A macro instance.
pub(super) struct Composite {
    pub(super) name: String,
    pub(super) span: Span,
}

/// A chain in the making.
pub(super) struct Draft {
    pub(super) span: Span,
    pub(super) nodes: Vec<Node>,
    /// For each node, whether a macro made it.
    pub(super) inner: Vec<bool>,
    pub(super) composites: Vec<Composite>,
    pub(super) wires: Vec<Wire>,
    names: HashSet<String>,
    counter: u32,
    overflown: bool,
    /// A path was given up: that others dangle is no news.
    pub(super) broken: bool,
}

impl Draft {
    pub(super) fn new(span: Span) -> Self {
        Self {
            span,
            nodes: Vec::new(),
            inner: Vec::new(),
            composites: Vec::new(),
            wires: Vec::new(),
            names: HashSet::new(),
            counter: 0,
            overflown: false,
            broken: false,
        }
    }

    fn key(&mut self) -> Vec<u32> {
        self.counter += 1;
        vec![self.counter]
    }

    /// Open ends that leave `from` without a choice.
    fn leaving(&mut self, from: Place) -> Open {
        Open { from, when: Vec::new(), key: self.key(), share: None, rate: None, chosen: None }
    }

    /// `wanted`, or with a number behind it if that is taken.
    fn unique(&mut self, wanted: String) -> String {
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        name
    }
}

/// What a name in a body stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Node(u32),
    Composite(u32),
    /// It could not be made; found already.
    Broken,
}

/// Where a body's `in` and `out` lead, and what its names begin with.
pub(super) struct Inner<'n> {
    enter: Place,
    leave: Place,
    prefix: &'n str,
    depth: usize,
}

impl Inner<'_> {
    pub(super) fn outermost() -> Self {
        Self { enter: Place::In, leave: Place::Out, prefix: "", depth: 0 }
    }
}

/// The state of one body while its paths are read.
pub(super) struct Body<'b> {
    pub(super) frame: &'b Frame,
    inner: Inner<'b>,
    named: HashMap<String, (Entity, Span)>,
    /// Anonymous instances by where they stand: a two-way path reads each twice.
    anonymous: HashMap<Span, Entity>,
    /// Names that paths mention.
    used: HashSet<String>,
    /// Neither `in` nor `out` is mentioned (Lemur's spelling): loose ends are the chain's ends.
    loose: bool,
}

/// One reading of a path.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) direction: Direction,
    /// Filters were written for the other direction.
    pub(super) mirrored: bool,
}

impl<'a> Resolver<'a> {
    /// Adds what `statements` say to `draft`.
    pub(super) fn body(&mut self, draft: &mut Draft, statements: &[&'a Statement], frame: &Frame, inner: Inner<'_>) {
        let paths = || statements.iter().filter_map(|s| if let Statement::Path(p) = s { Some(p) } else { None });
        let mut body = Body {
            frame,
            inner,
            named: HashMap::new(),
            anonymous: HashMap::new(),
            used: HashSet::new(),
            loose: !paths().any(|p| mentions_ends(&p.steps)),
        };
        for statement in statements {
            match statement {
                Statement::Instance { name, call } => self.declare(draft, &mut body, name, call),
                Statement::Path(path) => self.declare_inline(draft, &mut body, &path.steps),
                Statement::Promise(promise) if body.inner.depth > 0 => {
                    let text = "a promise belongs to a chain, not to a macro";
                    self.find(Diagnostic::error(Code::Promise, promise.span, text));
                }
                Statement::Promise(_) => {}
            }
        }
        for path in paths() {
            self.path(draft, &mut body, path);
        }
        if body.loose {
            tie_loose_ends(draft, &body);
        }
        if draft.broken {
            return;
        }
        let mut unused: Vec<_> = body
            .named
            .iter()
            .filter(|(name, (entity, _))| !body.used.contains(*name) && *entity != Entity::Broken)
            .map(|(name, (_, span))| (*span, name.clone()))
            .collect();
        unused.sort();
        for (span, name) in unused {
            let finding = Diagnostic::warning(Code::Unused, span, format!("the instance `{name}` stands in no path"));
            self.find(finding.label("no packet reaches it"));
        }
    }

    fn declare(&mut self, draft: &mut Draft, body: &mut Body<'_>, name: &Name, call: &'a Call) {
        if let Some((_, first)) = body.named.get(&name.node) {
            let first = *first;
            return self.duplicate(name, first, "instances");
        }
        if self.is_constant(&name.node, body.frame) {
            let message = format!("`{}` is a constant already", name.node);
            self.find(Diagnostic::error(Code::DuplicateName, name.span, message));
        }
        let full = draft.unique(format!("{}{}", body.inner.prefix, name.node));
        let entity = self.instantiate(draft, body, full, call);
        body.named.insert(name.node.clone(), (entity, name.span));
    }

    /// `name::Function()` within a path declares as a statement does.
    fn declare_inline(&mut self, draft: &mut Draft, body: &mut Body<'_>, steps: &'a [Step]) {
        for step in steps {
            match &step.element {
                Element::Call { name: Some(name), call, .. } => self.declare(draft, body, name, call),
                Element::Branch(arms) => {
                    arms.iter().for_each(|arm| self.declare_inline(draft, body, &arm.steps));
                }
                _ => {}
            }
        }
    }

    fn instantiate(&mut self, draft: &mut Draft, body: &Body<'_>, name: String, call: &Call) -> Entity {
        if self.nodes_left == 0 {
            if !draft.overflown {
                let text = "the file makes too many instances";
                self.find(Diagnostic::error(Code::TooLarge, call.span, text));
            }
            draft.overflown = true;
            return Entity::Broken;
        }
        self.nodes_left -= 1;
        if let Some(definition) = self.macros.get(call.function.node.as_str()).copied() {
            self.mark_used("macro", &call.function.node);
            if definition.recursive {
                return Entity::Broken;
            }
            if body.inner.depth >= MAX_DEPTH {
                let text = format!("macros within macros, more than {MAX_DEPTH} levels deep");
                self.find(Diagnostic::error(Code::TooLarge, call.span, text));
                return Entity::Broken;
            }
            let frame = self.macro_frame(definition, call, body.frame);
            let id = u32::try_from(draft.composites.len()).unwrap_or(u32::MAX);
            let prefix = format!("{name}.");
            draft.composites.push(Composite { name, span: call.span });
            let inner = Inner {
                enter: Place::DoorIn(id),
                leave: Place::DoorOut(id),
                prefix: &prefix,
                depth: body.inner.depth + 1,
            };
            let statements: Vec<&'a Statement> = definition.body.iter().collect();
            self.body(draft, &statements, &frame, inner);
            return Entity::Composite(id);
        }
        let args = self.arguments(call, body.frame);
        let id = u32::try_from(draft.nodes.len()).unwrap_or(u32::MAX);
        let function = call.function.node.clone();
        draft.nodes.push(Node { id, name, function, args, span: call.span });
        draft.inner.push(body.inner.depth > 0);
        Entity::Node(id)
    }

    fn path(&mut self, draft: &mut Draft, body: &mut Body<'_>, path: &'a Path) {
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

    fn entity(&mut self, draft: &mut Draft, body: &mut Body<'_>, element: &Element) -> Option<Entity> {
        let (name, call) = match element {
            Element::Instance { name, .. } => (name, None),
            Element::Call { name: Some(name), .. } => (name, None),
            Element::Call { name: None, call, .. } => (&call.function, Some(call)),
            _ => return None,
        };
        if call.is_none()
            && let Some((entity, _)) = body.named.get(&name.node)
        {
            body.used.insert(name.node.clone());
            return Some(*entity);
        }
        if let Some(entity) = body.anonymous.get(&name.span) {
            return Some(*entity);
        }
        let bare = Call { function: name.clone(), arguments: Vec::new(), span: name.span };
        let callable = self.world.library.find(&name.node).is_some() || self.macros.contains_key(name.node.as_str());
        // A bare name that begins with a capital means a function, known or not: Lemur's spelling.
        let capital = name.node.starts_with(|c: char| c.is_ascii_uppercase());
        let close = likely(&name.node, body.named.keys().map(String::as_str)).map(str::to_owned);
        if call.is_none() && !callable && (!capital || close.is_some()) {
            self.undefined(name, close, body);
            body.anonymous.insert(name.span, Entity::Broken);
            return Some(Entity::Broken);
        }
        let wanted = format!("{}{}", body.inner.prefix, name.node.to_ascii_lowercase());
        let unique = draft.unique(wanted);
        let entity = self.instantiate(draft, body, unique, call.unwrap_or(&bare));
        body.anonymous.insert(name.span, entity);
        Some(entity)
    }

    fn undefined(&mut self, name: &Name, close: Option<String>, body: &Body<'_>) {
        let word = name.node.as_str();
        if self.chain_names.contains_key(word) {
            let finding = Diagnostic::error(
                Code::Recursion,
                name.span,
                format!("`{word}` is a chain, and a chain cannot stand in a path"),
            );
            return self.find(finding.help("what several chains share is a `macro`"));
        }
        let callable = self.callable();
        let close = close.or_else(|| likely(word, callable.iter().map(String::as_str)).map(str::to_owned));
        let finding = self
            .error_in(body.frame, Code::UndefinedName, name.span, format!("there is no instance `{word}`"))
            .label("not defined in this chain");
        self.find(match close {
            Some(close) => finding.suggest(Some(&close)),
            None => finding.help(format!("define it: `{word} = Function(…)`")),
        });
    }

    /// The estimate on an arrow is the rate of all packets that take it together.
    fn rate(&mut self, expr: &crate::ast::Expr, opens: &mut [Open]) {
        #[allow(clippy::cast_precision_loss)] // rates are at most 2^53
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

/// Joins what a body without `in` and `out` leaves open to its ends.
fn tie_loose_ends(draft: &mut Draft, body: &Body<'_>) {
    let entities: Vec<Entity> = body.named.values().map(|(e, _)| *e).chain(body.anonymous.values().copied()).collect();
    for direction in [Direction::Forward, Direction::Return] {
        let wires = || draft.wires.iter().filter(|w| w.direction == direction);
        let leaving: HashSet<Place> = wires().map(|w| w.from).collect();
        let entered: HashSet<Place> = wires().map(|w| w.to).collect();
        let (source, target) = match direction {
            Direction::Forward => (body.inner.enter, body.inner.leave),
            Direction::Return => (body.inner.leave, body.inner.enter),
        };
        let mut ties: Vec<(Place, Place)> = Vec::new();
        for entity in &entities {
            let (entry, exit) = match (*entity, direction) {
                (Entity::Broken, _) => continue,
                (Entity::Node(id), _) => (Place::Node(id), Place::Node(id)),
                (Entity::Composite(id), Direction::Forward) => (Place::DoorIn(id), Place::DoorOut(id)),
                (Entity::Composite(id), Direction::Return) => (Place::DoorOut(id), Place::DoorIn(id)),
            };
            // The doors have wires inside the macro too; those lead the other way.
            if leaving.contains(&exit) && !entered.contains(&entry) {
                ties.push((source, entry));
            }
            if entered.contains(&entry) && !leaving.contains(&exit) {
                ties.push((exit, target));
            }
        }
        ties.sort();
        for (from, to) in ties {
            let Open { from, when, key, share, rate, .. } = draft.leaving(from);
            let span = draft.span;
            draft.wires.push(Wire { from, to, direction, when, key, share, rate, span });
        }
    }
}

fn mentions_ends(steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.element {
        Element::In | Element::Out => true,
        Element::Branch(arms) => arms.iter().any(|arm| mentions_ends(&arm.steps)),
        _ => false,
    })
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
            Element::Branch(arms) => Element::Branch(
                arms.iter().map(|arm| crate::ast::Arm { steps: turn(&arm.steps), ..arm.clone() }).collect(),
            ),
            other => other.clone(),
        };
        turned.push(Step { arrow, element, span: step.span });
    }
    turned
}
