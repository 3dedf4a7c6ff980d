//! Functions as a chain: the chain file, and the pipeline that `catena run` would make of it.
//!
//! Headers are parsed before the first function, as they are behind a classifier or a spreader: which function
//! comes first does not matter then, and what functions cost adds up.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use catena_compile::library::signatures;
use catena_compile::{Host, Lowered, build, lower};
use catena_dataplane::graph::NodeCounters;
use catena_dataplane::port::Sink;
use catena_dataplane::{Context, Graph, Inlet, Module};
use catena_functions::workload::{PORTS, SERVERS_BITS, Setup};
use catena_packet::Batch;
use catena_packet::wire::Seed;
use catena_policy::Files;
use catena_state::Share;

use super::companion::Companion;

/// Of so many classes one goes to a function that is measured in small batches.
pub const PARTS: u32 = 4;

/// A chain of functions, as they are set up to be measured.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The chain file.
    pub text: String,
    /// The files that it names.
    pub files: BTreeMap<String, String>,
    /// Where headers are parsed.
    pub parsed: Parsed,
}

/// Where headers are parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parsed {
    /// Before everything else.
    #[default]
    Before,
    /// Behind a branch, right before the function.
    Behind,
    /// By the function.
    ByFunction,
}

impl Chain {
    /// Put functions one behind the other.
    pub fn of(setups: &[Setup]) -> Chain {
        let mut text = String::from("chain profile { in -> ");
        let mut files = BTreeMap::new();
        for (i, setup) in setups.iter().enumerate() {
            let (call, file) = named(setup, i);
            files.extend(file);
            text += &format!("{call} -> ");
        }
        Chain { text: text + "out }\n", files, parsed: Parsed::Before }
    }

    /// Put a function behind a branch, where it gets one packet of [`PARTS`]: the batches that it sees are small, of
    /// one size now and of another then, and other code runs between them. Headers are parsed behind the branch, so that
    /// the function is not the first to touch its packets there.
    pub fn of_a_part(setup: &Setup) -> Chain {
        let mut chain = Chain { parsed: Parsed::Behind, ..Self::of_classes(PARTS) };
        chain.text = chain.text.replacen("{ in -> out }", &format!("{{ in -> {} -> out }}", setup.call), 1);
        chain.files.extend(setup.file.iter().map(|(name, content)| ((*name).to_owned(), content.clone())));
        chain
    }

    /// Give each function a chain of its own, to which as many packets come as to each other one.
    pub fn beside(setups: &[Setup]) -> Chain {
        let mut chain = Self::of_classes(setups.len().next_power_of_two() as u32);
        for setup in setups {
            let (call, file) = named(setup, chain.files.len());
            chain.text = chain.text.replacen("{ in -> out }", &format!("{{ in -> {call} -> out }}"), 1);
            chain.files.extend(file);
        }
        chain
    }

    /// Make a chain without functions for each of so many classes, which the traffic falls into evenly. The last
    /// network's bits tell the class: `classes` is a power of two, at most 256.
    pub fn of_classes(classes: u32) -> Chain {
        let bits = classes.trailing_zeros();
        Self::of_filters(classes, |class| {
            let network = std::net::Ipv4Addr::from_bits(SERVERS_BITS | class << (16 - bits));
            format!("dst net {network}/{}", 16 + bits)
        })
    }

    /// The same with classes told by destination ports, behind a condition that all packets meet: a longer filter.
    pub fn of_port_classes(classes: u32) -> Chain {
        let width = (PORTS + 1).div_ceil(classes);
        Self::of_filters(classes, |class| {
            format!("src net 0.0.0.0/0 and dst portrange {}-{}", class * width, (class + 1) * width - 1)
        })
    }

    fn of_filters(classes: u32, filter: impl Fn(u32) -> String) -> Chain {
        let mut text = String::new();
        for class in 0..classes {
            _ = writeln!(text, "class c{class} = \"{}\"", filter(class));
            _ = writeln!(text, "chain k{class} for c{class} {{ in -> out }}");
        }
        Chain { text, ..Chain::default() }
    }

    /// Steps of the filter of the first class.
    ///
    /// # Errors
    /// What is wrong with the chain.
    pub fn steps(&self) -> Result<u32, String> {
        let outcome = catena_policy::load("profile.catena", &self.text, &signatures(), self);
        let graph = outcome.graph.ok_or_else(|| format!("{}: it cannot be read", self.text.trim()))?;
        graph.classes.first().map(|class| class.filter.steps()).ok_or_else(|| "no class has a filter".to_owned())
    }

    /// Lower the chain as `catena run` would.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn lower(&self) -> Result<Host, String> {
        let outcome = catena_policy::load("profile.catena", &self.text, &signatures(), self);
        let first = || outcome.diagnostics.first().map_or_else(String::new, |d| d.message.clone());
        let graph = outcome.graph.as_ref().ok_or_else(|| format!("{}: {}", self.text.trim(), first()))?;
        lower(graph).map_err(|error| error.to_string())
    }
}

/// Return a function's call, and the file that it names, under a name of its own: the same function twice names two files.
fn named(setup: &Setup, number: usize) -> (String, Option<(String, String)>) {
    let Some((name, content)) = &setup.file else { return (setup.call.clone(), None) };
    let own = format!("{number}-{name}");
    (setup.call.replace(&format!("\"{name}\""), &format!("\"{own}\"")), Some((own, content.clone())))
}

impl Files for Chain {
    fn read(&self, path: &Path, _limit: usize) -> Result<String, String> {
        let name = path.to_string_lossy();
        self.files.get(&*name).cloned().ok_or_else(|| format!("{name} is no file of this chain"))
    }
}

/// A built chain: its modules, where packets enter, and the functions' counters in the order of the chain file.
pub struct Line {
    /// The modules.
    pub graph: Graph,
    /// Where packets enter.
    pub inlet: Inlet,
    /// What the functions count.
    pub functions: Vec<Arc<NodeCounters>>,
}

impl Line {
    /// Build a chain that ends in a sink, with the companion before it.
    ///
    /// # Errors
    /// What a function refuses.
    pub fn new(chain: &Chain, seed: u64, companion: Option<Companion>) -> Result<Line, String> {
        let mut companion = companion;
        Line::ending(chain, seed, || companion.take())
    }

    /// Build a chain whose ends are companions, as long as `end` has one, and sinks.
    ///
    /// # Errors
    /// What a function refuses.
    pub fn ending(chain: &Chain, seed: u64, mut end: impl FnMut() -> Option<Companion>) -> Result<Line, String> {
        let host = chain.lower()?;
        let exit = |_| -> Box<dyn Module> {
            match end() {
                Some(companion) => Box::new(companion),
                None => Box::new(Sink),
            }
        };
        let mut built = build(&host, Seed::from_number(seed), (Share::WHOLE, None), exit).map_err(|e| e.to_string())?;
        let nodes = built.graph.nodes();
        let counters = |i: usize| nodes.iter().find(|(id, _)| *id == built.nodes[i]).map(|(_, n)| n.counters.clone());
        let is_function = |i: &usize| matches!(host.modules[*i].kind, Lowered::Function { .. });
        let functions = (0..host.modules.len()).filter(|i| is_function(i)).filter_map(counters).collect();
        let entry = built.entries[0].ok_or("the chain has no way in")?;
        if chain.parsed == Parsed::ByFunction {
            return Ok(Line { graph: built.graph, inlet: entry, functions });
        }
        if chain.parsed == Parsed::Behind {
            let function = (0..host.modules.len()).find(is_function).map(|i| built.nodes[i]);
            let leads = |gate: &u16| built.graph.next(entry.node, *gate).is_some_and(|to| Some(to.node) == function);
            let gate = (0..=PARTS as u16).find(leads).ok_or("no branch leads to the function")?;
            built.graph.insert_after(entry.node, gate, HEADERS, Box::new(Headers));
            return Ok(Line { graph: built.graph, inlet: entry, functions });
        }
        let inlet = built.graph.add(HEADERS, Box::new(Headers)).into();
        let Inlet { node, gate } = inlet;
        built.graph.connect(node, gate, entry);
        Ok(Line { graph: built.graph, inlet, functions })
    }

    /// Drops that are not the functions' office: a packet that is dropped costs those behind it nothing.
    ///
    /// # Errors
    /// Who dropped how many, and why.
    pub fn nothing_lost(graph: &Graph) -> Result<(), String> {
        let nodes = graph.nodes();
        let lost = nodes.iter().find_map(|(_, node)| Some((node, node.counters.drops.iter().next()?)));
        lost.map_or(Ok(()), |(node, (reason, count))| {
            Err(format!("{} dropped {count} packets: {}", node.name, reason.text(node.reasons)))
        })
    }
}

/// The name of [`Headers`] in a pipeline.
const HEADERS: &str = "headers";

/// Parses headers, as a classifier would have.
pub struct Headers;

impl Module for Headers {
    #[inline]
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
    }
}
