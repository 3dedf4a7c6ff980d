//! Whether packets can take the paths: no cycles, nothing dangling, no edge in another's shadow.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Resolver;
use super::cover::{MAX_CASES, OTHER, uncovered};
use super::wire::{Draft, Place, Wire};
use crate::diagnostic::{Code, Diagnostic, likely};
use crate::graph::{Chain, ClassId, Condition, Direction, Edge, End, NodeId, Promise, Unparsed};
use crate::library::Library;
use crate::span::Span;

fn end(place: Place) -> Option<End> {
    match place {
        Place::In => Some(End::In),
        Place::Out => Some(End::Out),
        Place::Drop => Some(End::Drop),
        Place::Node(id) => Some(End::Node(id)),
        Place::DoorIn(_) | Place::DoorOut(_) => None,
    }
}

impl Resolver<'_> {
    /// The chain, its edges judged.
    pub(super) fn checked(
        &mut self,
        name: &str,
        classes: Vec<ClassId>,
        (promise, unparsed): (Promise, Unparsed),
        draft: Draft,
        wires: Vec<Wire>,
    ) -> Chain {
        let mut chain = Chain {
            name: name.to_owned(),
            classes,
            promise,
            unparsed,
            nodes: draft.nodes,
            edges: Vec::with_capacity(wires.len()),
            span: draft.span,
        };
        let broken = draft.broken;
        let mut upstream: Vec<(usize, usize, Span)> = Vec::new();
        for wire in wires {
            let (Some(from), Some(to)) = (end(wire.from), end(wire.to)) else {
                continue;
            };
            for (at, guard) in wire.when.iter().enumerate() {
                if guard.upstream {
                    upstream.push((chain.edges.len(), at, guard.span));
                }
            }
            let order = match chain.edges.last() {
                Some(last) if last.from == from && last.direction == wire.direction => last.order + 1,
                _ => 0,
            };
            chain.edges.push(Edge {
                from,
                to,
                direction: wire.direction,
                when: wire.when.into_iter().map(|g| g.condition).collect(),
                order,
                share: wire.share,
                rate_bps: wire.rate,
                span: wire.span,
            });
        }
        if broken {
            self.cycles(&chain, Direction::Forward);
            self.cycles(&chain, Direction::Return);
            return chain;
        }
        if !chain.edges.iter().any(|e| e.from == End::In && e.direction == Direction::Forward) {
            let finding =
                Diagnostic::error(Code::Dangling, chain.span, format!("the chain `{name}` has no path from `in`"))
                    .label("no packet enters it")
                    .help("for example `in -> Monitor() -> out`");
            self.find(finding);
        }
        let round = self.cycles(&chain, Direction::Forward) | self.cycles(&chain, Direction::Return);
        if !round {
            self.shadows(&chain);
        }
        for direction in [Direction::Forward, Direction::Return] {
            self.dangling(&chain, direction);
        }
        self.exported(&chain, &upstream);
        chain
    }

    /// Edges behind one that takes everything, and edges written twice.
    fn shadows(&mut self, chain: &Chain) {
        let mut all: HashMap<(End, Direction), &Edge> = HashMap::new();
        let mut last: Option<(End, Direction)> = None;
        let mut same: Vec<&Edge> = Vec::new();
        for edge in &chain.edges {
            let source = (edge.from, edge.direction);
            if last != Some(source) {
                same.clear();
                last = Some(source);
            }
            let first = all.get(&source).copied().or_else(|| {
                // Quadratic only up to a bound: beyond it duplicates pass, which is harmless.
                same.iter().take(64).copied().find(|e| e.when == edge.when)
            });
            if let Some(first) = first {
                let name = chain.end_name(edge.from);
                let text = format!("no packet of `{name}` comes here: an earlier path takes it");
                let mut finding = Diagnostic::error(Code::Unreachable, edge.span, text).label("never reached");
                if first.span != edge.span {
                    finding = finding.related(first.span, "takes the packets first");
                }
                self.find(finding.help(format!(
                    "to divide the packets of `{name}`, branch: `{name} -> [ \"filter\": a, else: b ]`"
                )));
            } else if edge.when.is_empty() {
                all.insert(source, edge);
            }
            same.push(edge);
        }
    }

    /// Reports circles in one direction; whether there are any.
    fn cycles(&mut self, chain: &Chain, direction: Direction) -> bool {
        let mut round = false;
        let mut next: BTreeMap<NodeId, Vec<(NodeId, Span)>> = BTreeMap::new();
        for edge in &chain.edges {
            if let (End::Node(from), End::Node(to)) = (edge.from, edge.to)
                && edge.direction == direction
            {
                next.entry(from).or_default().push((to, edge.span));
            }
        }
        let mut done: HashSet<NodeId> = HashSet::new();
        for start in next.keys().copied() {
            if done.contains(&start) {
                continue;
            }
            let mut stack: Vec<(NodeId, usize)> = vec![(start, 0)];
            let mut open: HashSet<NodeId> = HashSet::from([start]);
            while let Some((node, at)) = stack.last_mut() {
                let Some((to, span)) = next.get(node).and_then(|edges| edges.get(*at)).copied() else {
                    done.insert(*node);
                    open.remove(node);
                    stack.pop();
                    continue;
                };
                *at += 1;
                if open.contains(&to) {
                    let way: Vec<&str> = stack
                        .iter()
                        .map(|(n, _)| *n)
                        .skip_while(|n| *n != to)
                        .chain([to])
                        .map(|n| chain.end_name(End::Node(n)))
                        .collect();
                    let way = if way.len() > 12 {
                        format!("{} -> … -> {}", way[..6].join(" -> "), way[way.len() - 5..].join(" -> "))
                    } else {
                        way.join(" -> ")
                    };
                    let text = format!("packets go round in a circle: {way}");
                    let finding = Diagnostic::error(Code::Cycle, span, text).label("comes back here");
                    round = true;
                    self.find(finding.note("a packet passes an instance once in each direction"));
                } else if !done.contains(&to) {
                    open.insert(to);
                    stack.push((to, 0));
                }
            }
        }
        round
    }

    /// Nodes that nothing leads to, and packets that nothing leads on.
    fn dangling(&mut self, chain: &Chain, direction: Direction) {
        let mut entered: HashMap<End, Span> = HashMap::new();
        let mut leaving: BTreeMap<End, Vec<&Edge>> = BTreeMap::new();
        for edge in chain.edges.iter().filter(|e| e.direction == direction) {
            entered.entry(edge.to).or_insert(edge.span);
            leaving.entry(edge.from).or_default().push(edge);
        }
        let way = if direction == Direction::Return { " on the way back" } else { "" };
        for (from, edges) in &leaving {
            let End::Node(_) = from else { continue };
            let name = chain.end_name(*from);
            if !entered.contains_key(from) {
                let text = format!("nothing leads to `{name}`{way}");
                let finding = Diagnostic::error(Code::Dangling, edges[0].span, text)
                    .related(self.node_span(chain, *from), format!("`{name}` is made here"))
                    .label(format!("no packet leaves `{name}` for here"));
                let source = if direction == Direction::Forward { "in" } else { "out" };
                self.find(finding.help(format!("for example `{source} -> {name}`")));
            }
        }
        let mut ends: Vec<(End, Span)> = entered.into_iter().collect();
        ends.sort();
        for (to, span) in ends {
            let End::Node(id) = to else { continue };
            let name = chain.end_name(to);
            let Some(edges) = leaving.get(&to) else {
                let goal = if direction == Direction::Forward { "out" } else { "in" };
                let text = format!("the path ends at `{name}`{way}");
                let finding = Diagnostic::error(Code::Dangling, span, text)
                    .label("packets have nowhere to go from here")
                    .help(format!("go on with `-> {goal}`, or end it with `-> drop`"));
                self.find(finding);
                continue;
            };
            let function = &chain.nodes[id as usize].function;
            let conditions: Vec<Vec<&Condition>> = edges.iter().map(|e| e.when.iter().collect()).collect();
            let mut cases = MAX_CASES;
            let Some(missing) = uncovered(self.world.library, function, conditions, &mut cases) else {
                continue;
            };
            let text = match missing.as_str() {
                "" => format!("some packets of `{name}` have nowhere to go{way}"),
                missing => format!("packets of `{name}` with {missing} have nowhere to go{way}"),
            };
            let help = match missing.rsplit(' ').next() {
                Some(value) if !value.is_empty() && !missing.ends_with(OTHER) => {
                    format!("add a path for them: `{name}[{value}] -> drop`")
                }
                _ => format!("add a path for the others: `{name} -> drop`"),
            };
            let finding = Diagnostic::error(Code::Dangling, edges[edges.len() - 1].span, text)
                .related(self.node_span(chain, to), format!("`{name}` is made here"))
                .label("the last of its paths");
            self.find(finding.help(help));
        }
    }

    fn node_span(&self, chain: &Chain, end: End) -> Span {
        match end {
            End::Node(id) => chain.nodes[id as usize].span,
            _ => chain.span,
        }
    }

    /// Attributes that arms ask for must be exported by some function before them.
    fn exported(&mut self, chain: &Chain, asked: &[(usize, usize, Span)]) {
        for (edge, at, span) in asked {
            let edge = &chain.edges[*edge];
            let Condition::Attribute { name: Some(name), values, .. } = &edge.when[*at] else {
                continue;
            };
            let before = before(chain, edge);
            let library: &Library = self.world.library;
            let signatures: Vec<_> =
                before.iter().map(|id| library.find(&chain.nodes[*id as usize].function)).collect();
            let attributes = || signatures.iter().flatten().flat_map(|s| &s.attributes);
            if let Some(attribute) = attributes().find(|a| a.name == *name) {
                if let Some(list) = &attribute.values
                    && let Some(wrong) = values.iter().find(|v| !list.contains(v))
                {
                    let attribute = attribute.clone();
                    self.no_value(&attribute, wrong, *span);
                }
                continue;
            }
            // A function the library lacks may export anything.
            if signatures.iter().any(Option::is_none) {
                continue;
            }
            let known: Vec<String> = attributes().map(|a| a.name.clone()).collect();
            let text = format!("no function before this exports `{name}`");
            let mut finding = Diagnostic::error(Code::Attribute, *span, text).label("not known here");
            finding = if known.is_empty() {
                finding.note("the functions before this export no attributes")
            } else {
                finding.note(format!("exported before this: {}", known.join(", ")))
            };
            self.find(finding.suggest(likely(name, known.iter().map(String::as_str))));
        }
    }
}

/// The nodes that packets on `edge` have passed.
fn before(chain: &Chain, edge: &Edge) -> Vec<NodeId> {
    let mut seen: HashSet<NodeId> = HashSet::new();
    let mut stack = vec![edge.from];
    while let Some(at) = stack.pop() {
        let End::Node(id) = at else { continue };
        if seen.insert(id) {
            let into = chain.edges.iter().filter(|e| e.to == at && e.direction == edge.direction);
            stack.extend(into.map(|e| e.from));
        }
    }
    let mut nodes: Vec<NodeId> = seen.into_iter().collect();
    nodes.sort_unstable();
    nodes
}
