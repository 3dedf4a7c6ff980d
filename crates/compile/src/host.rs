//! The host backend: a policy graph as modules and links of one host's pipeline.
//!
//! Packets enter by a side (`in` on the way out, `out` on the way back), a branch finds their chain by the entries that plans
//! list too ([`catena_plan::deployment::entrances`]), and the chain's edges become links. Where a node's edges have conditions, a branch follows the
//! node. A function's output gates are `2 × value + direction`, value 0 being the usual way (see
//! [`Method::Port`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use catena_dataplane::steer::Owner;
use catena_functions::{Args, Descriptor, Method, Spared, Tables, registry};
use catena_plan::deployment::entrances::{Criterion, entries};
use catena_plan::returns::{Prefix, Returns};
use catena_policy::{Chain, Condition, Direction, Edge, End, Filter, Node, PolicyGraph, Unparsed};
use catena_state::Team;

use crate::catalogue;
use crate::library;
use crate::names;
use crate::tasks::Cut;

/// Index of a module in [`Host::modules`].
pub type ModuleId = usize;

/// A host pipeline, as plain data.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// The modules.
    pub modules: Vec<Module>,
    /// The links between their gates.
    pub links: Vec<Link>,
    /// Where packets enter: the module for side `in` (on the way out), and for side `out` (on the way back),
    /// if any chain has a way back.
    pub entries: [Option<(ModuleId, u16)>; 2],
    /// The queues between its tasks; none: packets run to completion.
    pub cuts: Vec<Cut>,
    /// Whether packets that are certain to be dropped are dropped earlier than the policy says.
    pub drops_early: bool,
    /// What its functions have made from their arguments, for all pipelines that are built of it. A clone shares them: a table is
    /// known by all that it is made from, so one that is changed afterwards gets others.
    pub tables: Tables,
}

/// A module of a host pipeline.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its name: unique, made of the chain's and the node's.
    pub name: String,
    /// What it is.
    pub kind: Lowered,
}

/// What a module is lowered to.
#[derive(Clone, Debug)]
pub enum Lowered {
    /// A function with its arguments.
    Function {
        /// The function.
        descriptor: &'static Descriptor,
        /// Its arguments.
        args: Args,
        /// Values of its Port attributes that some edge selects.
        taken: Vec<String>,
        /// The chain and the node it comes from, as indices into the policy graph.
        origin: (usize, usize),
        /// Work that it need not do in this pipeline.
        spared: Spared,
    },
    /// Arms tried in order.
    Branch(Vec<Arm>),
    /// Frames that are not IPv4, IPv6 or ARP end here; all others go on.
    Parsed,
    /// The packets leave by a side.
    Exit(Direction),
    /// The packets end here.
    Discard,
}

/// An arm of a branch: its conditions and the output gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// All must hold.
    pub when: Vec<When>,
    /// The output gate.
    pub gate: u16,
}

/// A condition of an arm.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// The packet matches a tcpdump filter.
    Filter(Filter),
    /// An attribute of that name has one of these values.
    Attribute {
        /// The attribute.
        name: String,
        /// Its values as numbers.
        values: Vec<u16>,
        /// Any but these.
        negated: bool,
    },
    /// The flow's hash lies in `from..to` of 0..1; `salt` makes it differ from other splits'.
    Split {
        /// The lower end, included.
        from: f64,
        /// The upper end, excluded.
        to: f64,
        /// What tells this split from others.
        salt: u64,
    },
    /// The packet is on the way back because of a function: sent to, or coming from, one of these.
    Returns {
        /// Networks sent to.
        destinations: Vec<Prefix>,
        /// Networks coming from.
        sources: Vec<Prefix>,
    },
}

/// A link from an output gate to an input gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The module it comes from.
    pub from: ModuleId,
    /// Its output gate.
    pub gate: u16,
    /// The module it leads to.
    pub to: ModuleId,
    /// Its input gate.
    pub to_gate: u16,
}

/// Why a policy graph cannot run on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LowerError {
    /// The library has no such function.
    UnknownFunction {
        /// The chain.
        chain: String,
        /// The function.
        function: String,
    },
    /// A condition names a value that the attribute has not, or an attribute that is not known.
    Attribute {
        /// The chain.
        chain: String,
        /// The attribute and value as far as known.
        what: String,
    },
}

impl std::fmt::Display for LowerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LowerError::UnknownFunction { chain, function } => {
                write!(f, "chain `{chain}`: the library has no function `{function}`; `catena functions` lists them")
            }
            LowerError::Attribute { chain, what } => write!(f, "chain `{chain}`: no function exports {what}"),
        }
    }
}

impl std::error::Error for LowerError {}

/// Lower a policy graph to one host's pipeline.
///
/// # Errors
/// What the library lacks.
pub fn lower(graph: &PolicyGraph) -> Result<Host, LowerError> {
    let mut lowering = Lowering { graph, host: Host::default(), functions: BTreeMap::new(), ends: BTreeMap::new() };
    for (c, chain) in graph.chains.iter().enumerate() {
        lowering.functions(c, chain)?;
    }
    for direction in [Direction::Forward, Direction::Return] {
        lowering.entry(direction)?;
        for (c, chain) in graph.chains.iter().enumerate() {
            for n in 0..chain.nodes.len() {
                lowering.node_edges(c, chain, n, direction)?;
            }
        }
    }
    Ok(lowering.host)
}

impl Host {
    /// Return what tells, for a number of instances, which of them owns a packet on the way back; `team` is that of their workers,
    /// where they have one and say what is whose.
    pub fn owners(&self, instances: u32, team: Option<&Arc<Team>>) -> Vec<Owner> {
        let owner = |module: &Module| match &module.kind {
            Lowered::Function { descriptor, args, .. } => {
                // A function that finds no memory for its claims says so when it is built.
                let claims = |object: &_, count| team?.claims(&module.name, object, count).unwrap_or_default();
                descriptor.owner.map(|of| of(args, instances, &claims))
            }
            _ => None,
        };
        self.modules.iter().filter_map(owner).collect()
    }
}

struct Lowering<'a> {
    graph: &'a PolicyGraph,
    host: Host,
    /// The module of a node, by chain and node.
    functions: BTreeMap<(usize, usize), ModuleId>,
    /// The modules of the sides and of the end of all ways.
    ends: BTreeMap<End, ModuleId>,
}

fn gate_of(direction: Direction) -> u16 {
    match direction {
        Direction::Forward => 0,
        Direction::Return => 1,
    }
}

impl Lowering<'_> {
    fn add(&mut self, name: String, kind: Lowered) -> ModuleId {
        self.host.modules.push(Module { name, kind });
        self.host.modules.len() - 1
    }

    fn qualified(&self, chain: &Chain, name: &str) -> String {
        if self.graph.chains.len() == 1 { name.to_owned() } else { format!("{}/{name}", chain.name) }
    }

    fn functions(&mut self, c: usize, chain: &Chain) -> Result<(), LowerError> {
        for (n, node) in chain.nodes.iter().enumerate() {
            let descriptor = registry::find(&node.function).ok_or_else(|| LowerError::UnknownFunction {
                chain: chain.name.clone(),
                function: node.function.clone(),
            })?;
            let args = Args::new(node.args.iter().map(|(name, value)| (name.clone(), library::value(value))));
            let from = End::Node(n as u32);
            let mut taken: Vec<String> = Vec::new();
            for condition in chain.edges.iter().filter(|e| e.from == from).flat_map(|e| &e.when) {
                if let Condition::Attribute { values, negated: false, .. } = condition {
                    taken.extend(values.iter().filter(|v| port_value(descriptor, v).is_some()).cloned());
                }
            }
            let kind = Lowered::Function { descriptor, args, taken, origin: (c, n), spared: Spared::default() };
            let id = self.add(self.qualified(chain, &node.name), kind);
            self.functions.insert((c, n), id);
        }
        Ok(())
    }

    /// The branch that finds a packet's chain, or the first module itself where there is only one way.
    fn entry(&mut self, direction: Direction) -> Result<(), LowerError> {
        let graph = self.graph;
        let returns = |node: &Node| catalogue::returns(&node.function, &node.args);
        let arms: Vec<(Vec<When>, usize)> = entries(graph, direction, returns)
            .into_iter()
            .map(|entry| (conditions(entry.criterion), entry.chain))
            .collect();
        if arms.is_empty() {
            return Ok(());
        }
        let side = gate_of(direction);
        let entry = if let [(when, c)] = &arms[..]
            && when.is_empty()
        {
            self.way_in(*c, direction)?
        } else {
            let branch = self.add(names::classify(direction).to_owned(), Lowered::Branch(Vec::new()));
            let mut lowered = Vec::new();
            let mut gates: BTreeMap<usize, u16> = BTreeMap::new();
            for (when, c) in arms {
                let next = gates.len() as u16;
                let gate = *gates.entry(c).or_insert(next);
                if gate == next {
                    let (to, to_gate) = self.way_in(c, direction)?;
                    self.host.links.push(Link { from: branch, gate, to, to_gate });
                }
                lowered.push(Arm { when, gate });
            }
            self.host.modules[branch].kind = Lowered::Branch(lowered);
            (branch, 0)
        };
        self.host.entries[usize::from(side)] = Some(entry);
        Ok(())
    }

    /// Where the packets of a chain enter it.
    fn way_in(&mut self, c: usize, direction: Direction) -> Result<(ModuleId, u16), LowerError> {
        let (graph, start) = (self.graph, if direction == Direction::Forward { End::In } else { End::Out });
        let chain = &graph.chains[c];
        let edges: Vec<&Edge> = chain.edges_from(start, direction).collect();
        let (to, to_gate) = self.target(c, &edges, direction, "in")?;
        if chain.unparsed == Unparsed::Pass {
            return Ok((to, to_gate));
        }
        let name = if direction == Direction::Forward { "unparsed" } else { "unparsed back" };
        let parsed = self.add(self.qualified(chain, name), Lowered::Parsed);
        self.host.links.push(Link { from: parsed, gate: 0, to, to_gate });
        Ok((parsed, 0))
    }

    /// Link all output gates of a node that packets leave by in one direction.
    fn node_edges(&mut self, c: usize, chain: &Chain, n: usize, direction: Direction) -> Result<(), LowerError> {
        let module = self.functions[&(c, n)];
        let Lowered::Function { descriptor, taken, .. } = &self.host.modules[module].kind else { return Ok(()) };
        let (descriptor, taken) = (*descriptor, taken.clone());
        let edges: Vec<&Edge> = chain.edges_from(End::Node(n as u32), direction).collect();
        if edges.is_empty() {
            return Ok(());
        }
        let port = descriptor.attributes.iter().find(|a| a.method == Method::Port);
        let values = port.map_or(&[""][..], |a| a.values);
        for (k, value) in values.iter().enumerate() {
            if k > 0 && !taken.iter().any(|t| t == value) {
                continue;
            }
            // Edges that this value's packets may take, without the conditions on the value itself.
            let mut reduced: Vec<Edge> = Vec::new();
            for edge in &edges {
                let mut edge = Edge::clone(edge);
                let mut possible = true;
                edge.when.retain(|condition| match condition {
                    Condition::Attribute { values, negated, .. }
                        if values.iter().any(|v| port_value(descriptor, v).is_some()) =>
                    {
                        possible &= values.iter().any(|v| v == value) != *negated;
                        false
                    }
                    _ => true,
                });
                if possible {
                    reduced.push(edge);
                }
            }
            if reduced.is_empty() {
                continue;
            }
            let reduced: Vec<&Edge> = reduced.iter().collect();
            let label = if value.is_empty() { "branch".to_owned() } else { format!("branch {value}") };
            let (to, to_gate) = self.target(c, &reduced, direction, &format!("{} {label}", chain.nodes[n].name))?;
            let gate = 2 * k as u16 + gate_of(direction);
            self.host.links.push(Link { from: module, gate, to, to_gate });
        }
        Ok(())
    }

    /// Where edges lead: the module and its input gate; a branch where they have conditions.
    fn target(
        &mut self,
        c: usize,
        edges: &[&Edge],
        direction: Direction,
        label: &str,
    ) -> Result<(ModuleId, u16), LowerError> {
        if let Some(first) = edges.first().filter(|edge| edge.when.is_empty()) {
            return Ok(self.end(c, first.to, direction));
        }
        let graph = self.graph;
        let chain = &graph.chains[c];
        let name = match (label, direction) {
            (label, Direction::Forward) => self.qualified(chain, label),
            (label, Direction::Return) => self.qualified(chain, &format!("{label} back")),
        };
        let branch = self.add(name, Lowered::Branch(Vec::new()));
        let mut arms = Vec::new();
        for (gate, edge) in (0u16..).zip(edges) {
            let when = edge.when.iter().map(|w| self.when(chain, w)).collect::<Result<_, _>>()?;
            let (to, to_gate) = self.end(c, edge.to, direction);
            self.host.links.push(Link { from: branch, gate, to, to_gate });
            arms.push(Arm { when, gate });
        }
        self.host.modules[branch].kind = Lowered::Branch(arms);
        Ok((branch, 0))
    }

    fn when(&self, chain: &Chain, condition: &Condition) -> Result<When, LowerError> {
        Ok(match condition {
            Condition::Filter(filter) => When::Filter(filter.clone()),
            Condition::Split { branch, from, to } => When::Split { from: *from, to: *to, salt: u64::from(*branch) },
            Condition::Attribute { name, values, negated } => {
                let unknown =
                    |what: String| LowerError::Attribute { chain: chain.name.clone(), what: format!("`{what}`") };
                let name = name.clone().ok_or_else(|| unknown(values.join(", ")))?;
                let exported = registry::FUNCTIONS
                    .iter()
                    .filter(|f| chain.nodes.iter().any(|node| node.function == f.name))
                    .flat_map(|f| f.attributes)
                    .find(|a| a.name == name)
                    .ok_or_else(|| unknown(name.clone()))?;
                let number = |value: &String| {
                    let index = exported.values.iter().position(|v| v == value).and_then(|i| u16::try_from(i).ok());
                    index.or_else(|| value.parse().ok()).ok_or_else(|| unknown(format!("{name} == {value}")))
                };
                let values = values.iter().map(number).collect::<Result<_, _>>()?;
                When::Attribute { name, values, negated: *negated }
            }
        })
    }

    fn end(&mut self, c: usize, end: End, direction: Direction) -> (ModuleId, u16) {
        if let End::Node(n) = end {
            return (self.functions[&(c, n as usize)], gate_of(direction));
        }
        if let Some(id) = self.ends.get(&end) {
            return (*id, 0);
        }
        let (name, kind) = match end {
            End::Out => ("out", Lowered::Exit(Direction::Forward)),
            End::In => ("in", Lowered::Exit(Direction::Return)),
            _ => ("drop", Lowered::Discard),
        };
        let id = self.add(name.to_owned(), kind);
        self.ends.insert(end, id);
        (id, 0)
    }
}

/// The conditions of an arm whose packets enter a chain.
fn conditions(criterion: Criterion<'_>) -> Vec<When> {
    match criterion {
        Criterion::Addresses(Returns { destinations, sources }) => vec![When::Returns { destinations, sources }],
        Criterion::Class(_, filter) => vec![When::Filter(filter.clone())],
        Criterion::Others => Vec::new(),
    }
}

/// Return the index of a value among those of the function's Port attribute.
fn port_value(descriptor: &Descriptor, value: &str) -> Option<usize> {
    let port = descriptor.attributes.iter().find(|a| a.method == Method::Port)?;
    port.values.iter().position(|v| *v == value)
}
