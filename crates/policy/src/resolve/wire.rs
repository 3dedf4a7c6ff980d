//! The body of a chain or macro: its instances by name, and its paths as wires between places.
//!
//! A macro instance stays a pair of doors until `splice` joins what leads in with what leads on.

use std::collections::{HashMap, HashSet};

use super::condition::Guard;
use super::{Frame, Resolver};
use crate::ast::{Call, Element, Statement, Step};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::graph::{Direction, Node};
use crate::limits::MAX_DEPTH;
use crate::span::{Name, Span};

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
    branches: u32,
    pub(super) overflown: bool,
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
            branches: 0,
            overflown: false,
            broken: false,
        }
    }

    fn key(&mut self) -> Vec<u32> {
        self.counter += 1;
        vec![self.counter]
    }

    /// Open ends that leave `from` without a choice.
    pub(super) fn leaving(&mut self, from: Place) -> Open {
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
    pub(super) enter: Place,
    pub(super) leave: Place,
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
    pub(super) inner: Inner<'b>,
    named: HashMap<String, (Entity, Span)>,
    /// Anonymous instances by where they stand: a two-way path reads each twice.
    anonymous: HashMap<Span, Entity>,
    /// Branches by where they stand, with their numbers.
    branches: HashMap<Span, u32>,
    /// Names that paths mention.
    used: HashSet<String>,
    /// Neither `in` nor `out` is mentioned (Lemur's spelling): loose ends are the chain's ends.
    pub(super) loose: bool,
}

impl Body<'_> {
    /// The number of the branch at `span`, the same each time.
    pub(super) fn branch(&mut self, draft: &mut Draft, span: Span) -> u32 {
        *self.branches.entry(span).or_insert_with(|| {
            draft.branches += 1;
            draft.branches
        })
    }
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
            branches: HashMap::new(),
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
                Statement::Unparsed(unparsed) if body.inner.depth > 0 => {
                    let text = "`unparsed` belongs to a chain, not to a macro";
                    self.find(Diagnostic::error(Code::Path, unparsed.span, text));
                }
                Statement::Promise(_) | Statement::Unparsed(_) => {}
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

    pub(super) fn entity(&mut self, draft: &mut Draft, body: &mut Body<'_>, element: &Element) -> Option<Entity> {
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
