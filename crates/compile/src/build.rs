//! Makes the modules of a lowered host pipeline and links their gates.

use catena_dataplane::attribute::Attributes;
use catena_dataplane::branch::{self, Branch, Discard, Endpoint, Parsed, Test};
use catena_dataplane::port::Sink;
use catena_dataplane::queue::{QueueOut, queue};
use catena_dataplane::{Graph, Inlet, Module, NodeId};
use catena_functions::Build;
use catena_functions::config::ArgError;
use catena_packet::wire::Seed;
use catena_plan::profile::QUEUE_PACKETS;
use catena_plan::returns::Prefix;
use catena_policy::{Direction, Filter};
use catena_state::{Share, Team};
use std::sync::Arc;

use crate::filter::prefix;
use crate::host::{self, Host, Lowered, When};
use crate::names;
use crate::tasks::Cut;

/// A side of the pipeline, by which packets enter and leave: `in` or `out` of the chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the chains' traffic comes from.
    In,
    /// Where it goes to.
    Out,
}

/// A pipeline's graph, and where packets enter it.
pub struct Built {
    /// The modules.
    pub graph: Graph,
    /// Where packets enter from side `in`, and from side `out`.
    pub entries: [Option<Inlet>; 2],
    /// The node of every module of the [`Host`], by its index.
    pub nodes: Vec<NodeId>,
    /// The tasks beside those of the ports: one for each of [`Host::cuts`], in that order.
    pub queued: Vec<Queued>,
    /// The slots of the attributes that packets carry: whatever is built into the graph later must agree with them.
    pub attributes: Attributes,
}

/// A task that begins at a queue inside the pipeline.
pub struct Queued {
    /// What it is called: that of its [`Cut`].
    pub name: String,
    /// Where its packets wait.
    pub queue: QueueOut,
    /// Where they go.
    pub inlet: Inlet,
}

/// Packets that a queue between two tasks of a pipeline holds. What does not fit is dropped: with drop-tail the
/// mix of classes stays what it was, which planned shares rely on.
const QUEUE: usize = QUEUE_PACKETS;

/// Why a module could not be made.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildError {
    /// A function refuses an argument.
    Argument {
        /// The module's name.
        module: String,
        /// The chain and node it comes from, as indices into the policy graph.
        origin: (usize, usize),
        /// What the function says.
        error: Box<ArgError>,
    },
    /// A filter's program is not one that can run.
    Program {
        /// The filter.
        filter: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// There are more attributes than packets have slots for.
    Attributes {
        /// The one too many.
        name: String,
        /// How many there may be.
        most: usize,
    },
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::Argument { module, error, .. } => write!(f, "{module}: {error}"),
            BuildError::Program { filter, what } => write!(f, "filter \"{filter}\": {what}"),
            BuildError::Attributes { name, most } => {
                write!(f, "attribute `{name}` is one too many: a packet carries at most {most}")
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Make the modules of `host`; `exit` makes those by which packets leave a side.
///
/// # Errors
/// What a function refuses, and what does not fit.
pub fn build(
    host: &Host,
    seed: Seed,
    (share, team): (Share, Option<&Arc<Team>>),
    mut exit: impl FnMut(Side) -> Box<dyn Module>,
) -> Result<Built, BuildError> {
    let mut graph = Graph::new();
    let mut attributes = Attributes::default();
    let mut nodes = Vec::new();
    for module in &host.modules {
        let made = make(host, module, seed, (share, team), &mut attributes, &mut exit)?;
        nodes.push(graph.add(&module.name, made));
    }
    let mut queued = Vec::new();
    let mut cut = vec![false; host.links.len()];
    let mut entries = host.entries.map(|entry| entry.map(|(module, gate)| Inlet { node: nodes[module], gate }));
    for Cut { name, links, enters, inlet: (module, gate) } in &host.cuts {
        let (mut entrances, exit) = queue(QUEUE, links.len() + usize::from(*enters));
        if let Some(entrance) = entrances.pop_if(|_| *enters) {
            entries[Side::In as usize] = Some(graph.add(&names::queue(name), Box::new(entrance)).into());
        }
        for (&link, entrance) in links.iter().zip(entrances) {
            let node = graph.add(&names::queue(name), Box::new(entrance));
            graph.connect(nodes[host.links[link].from], host.links[link].gate, node);
            cut[link] = true;
        }
        let inlet = Inlet { node: nodes[*module], gate: *gate };
        queued.push(Queued { name: name.clone(), queue: exit, inlet });
    }
    for (link, _) in host.links.iter().zip(&cut).filter(|(_, cut)| !**cut) {
        graph.connect(nodes[link.from], link.gate, Inlet { node: nodes[link.to], gate: link.to_gate });
    }
    Ok(Built { graph, entries, nodes, queued, attributes })
}

/// Make each module of `host` as [`build`] does, one after the other, and show it before it goes: what it refuses is known
/// then, and never more than one needs its memory.
///
/// # Errors
/// What a function refuses, and what does not fit.
pub fn try_modules(host: &Host, seed: Seed, mut show: impl FnMut(&Arc<str>, &dyn Module)) -> Result<(), BuildError> {
    let mut attributes = Attributes::default();
    for module in &host.modules {
        let made = make(host, module, seed, (Share::WHOLE, None), &mut attributes, &mut |_| Box::new(Sink))?;
        show(&Arc::from(&*module.name), &*made);
    }
    Ok(())
}

/// Make a module.
fn make(
    host: &Host,
    module: &host::Module,
    seed: Seed,
    (share, team): (Share, Option<&Arc<Team>>),
    attributes: &mut Attributes,
    exit: &mut dyn FnMut(Side) -> Box<dyn Module>,
) -> Result<Box<dyn Module>, BuildError> {
    let made: Box<dyn Module> = match &module.kind {
        Lowered::Exit(Direction::Forward) => exit(Side::Out),
        Lowered::Exit(Direction::Return) => exit(Side::In),
        Lowered::Discard => Box::new(Discard),
        Lowered::Parsed => Box::new(Parsed),
        Lowered::Branch(arms) => {
            let arms = arms.iter().map(|arm| {
                let when = arm.when.iter().map(|when| test(when, attributes, seed));
                Ok(branch::Arm { when: when.collect::<Result<_, BuildError>>()?, gate: arm.gate })
            });
            Box::new(Branch::new(arms.collect::<Result<_, BuildError>>()?, seed))
        }
        Lowered::Function { descriptor, args, taken, origin, spared } => {
            let mut build =
                Build { instance: &module.name, seed, share, team, attributes, taken, tables: &host.tables };
            let made = descriptor.may_share(args, share).and_then(|()| {
                match descriptor.spared.filter(|_| !spared.is_nothing()) {
                    Some(sparing) => sparing(args, spared, &mut build),
                    None => (descriptor.build)(args, &mut build),
                }
            });
            made.map_err(|error| BuildError::Argument {
                module: module.name.clone(),
                origin: *origin,
                error: Box::new(error),
            })?
        }
    };
    Ok(made)
}

fn test(when: &When, attributes: &mut Attributes, seed: Seed) -> Result<Test, BuildError> {
    Ok(match when {
        When::Filter(filter) => filter_test(filter)?,
        When::Attribute { name, values, negated } => {
            let slot = attributes.slot(name).map_err(|most| BuildError::Attributes { name: name.clone(), most })?;
            Test::Attribute { slot, values: values.clone(), negated: *negated }
        }
        When::Split { from, to, salt } => {
            let scaled = |part: f64| (part.clamp(0.0, 1.0) * (1u64 << 32) as f64).round() as u64;
            Test::Split { from: scaled(*from), to: scaled(*to), seed: Seed::from_number(seed.hash2([*salt, 1])) }
        }
        When::Returns { destinations, sources } => {
            let address = |endpoint, networks: &[Prefix]| Test::Address {
                endpoint,
                prefixes: networks.iter().map(|network| prefix(network.address(), network.length())).collect(),
                resolution: Vec::new(),
            };
            Test::Any(vec![address(Endpoint::Destination, destinations), address(Endpoint::Source, sources)])
        }
    })
}

fn filter_test(filter: &Filter) -> Result<Test, BuildError> {
    crate::filter::test(&filter.expression)
        .map_err(|invalid| BuildError::Program { filter: filter.text.clone(), what: invalid.what })
}
