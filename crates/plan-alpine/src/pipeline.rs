//! A policy graph as Alpine sees it: trees of modules, a class for each way through them, and promises.
//!
//! Each side that packets come in by is a port; behind it their chain is found, and each chain's nodes follow.
//! If a relation names a class, all classes of its chain have ways of their own through it from there on, for modules that
//! two classes pass alike cannot serve them differently. Where ways merge again, what follows is there once for
//! each way ("each module has at most one upstream", Lan's dissertation, §5.3.1), and is still one instance.
//!
//! A queue may be put ([`Module::cuttable`]) where it holds the packets of one way and no others. Behind a merge it would
//! hold those of all ways. A class is told where its chain is found, and not again further down, where a function may have
//! rewritten what tells it: it waits where it enters its chain, with as many tasks, and before work was done for
//! packets that are dropped. So the branch that finds the chain is the classifier that Alpine puts in front as a last
//! resort: chains and classes, which are all that promises are about, share nothing behind it, and none can starve for what
//! it shares. A branch behind a node is reckoned as part of it.
//!
//! The return direction has no ways of its own, for nodes that both directions pass are reckoned with once. Nodes that only
//! the return direction passes stand at the end of each way: what a class sends is answered, packet by packet, and the answers
//! cost its worker cycles too. No queue is put in front of them, for a return packet waits in none.

use catena_policy::{Chain, Direction, Edge, End, PolicyGraph, Relation};

use super::graph::{CLASSIFY, Class, Ends, Graph, Kind, Module, ModuleId};
use super::promise::{Promise, Subject};
use catena_plan_model::demand::shares::{self, divide};
use catena_plan_model::profile::FULL_BATCH;

/// More modules than this, by ways that part and merge again, are refused.
pub const MODULES: usize = 20_000;
/// Ways that fewer packets of a class take than this part are left out.
const HARDLY: f64 = 1e-9;
/// Behind the name of a class whose packets are dropped where they enter their chain.
pub const DROPPED: &str = "(dropped)";

/// Index of a node: its chain, and its index there.
pub type NodeOf = (usize, usize);

/// What a policy graph does not say.
pub struct Figures<'a> {
    /// Cycles per packet of a node, with the branch behind it if it has one.
    pub cycles: &'a dyn Fn(NodeOf) -> f64,
    /// Of that, cycles that a batch takes however few packets it has, and how many it has when all runs to completion.
    pub batches: &'a dyn Fn(NodeOf) -> (f64, f64),
    /// Whether a node may be replicated.
    pub replicable: &'a dyn Fn(NodeOf) -> bool,
    /// Packets per second that come in for a chain by a side, of one of its classes (index in the policy
    /// graph) if they have ways of their own, or of all.
    pub packets: &'a dyn Fn(usize, Option<u32>, Direction) -> f64,
    /// Cycles per packet of reading a packet in.
    pub port_cycles: f64,
    /// Cycles per packet of finding the chain.
    pub classify_cycles: f64,
    /// Cycles per packet of a queue.
    pub queue_cycles: f64,
    /// What of that each end takes.
    pub queue_ends: Ends,
    /// Cycles per second of a worker.
    pub hz: f64,
}

/// A policy graph as Alpine sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// The modules and classes.
    pub graph: Graph,
    /// What the relations say.
    pub promises: Vec<Promise>,
    /// For each module, where it comes from.
    pub origins: Vec<Origin>,
}

/// What a module is in the policy graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The port of a side.
    Port(Direction),
    /// The branch that finds the chain.
    Classify(Direction),
    /// A node, and the class whose way this is, if it has one of its own.
    Node(NodeOf, Option<u32>),
    /// A node that only the return direction passes.
    Return(NodeOf),
}

/// More than [`MODULES`] modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyWays;

impl std::fmt::Display for TooManyWays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "more than {MODULES} ways through the chains: they part and merge too often")
    }
}

impl std::error::Error for TooManyWays {}

/// See `policy` as Alpine does.
///
/// # Errors
/// Too many ways.
pub fn pipeline(policy: &PolicyGraph, figures: &Figures) -> Result<Pipeline, TooManyWays> {
    let graph = Graph {
        modules: Vec::new(),
        classes: Vec::new(),
        hz: figures.hz,
        queue_cycles: figures.queue_cycles,
        queue_ends: figures.queue_ends,
        classify_cycles: figures.classify_cycles,
        classify_each: 0.0,
    };
    let return_only = policy.chains.iter().map(|chain| shares::of(chain).return_only).collect();
    let mut make = Make { policy, figures, graph, origins: Vec::new(), owners: Vec::new(), return_only };
    let named = named(policy);
    for direction in [Direction::Forward, Direction::Return] {
        let start = if direction == Direction::Forward { End::In } else { End::Out };
        let mut classify = None;
        for (c, chain) in policy.chains.iter().enumerate() {
            let apart = chain.classes.iter().any(|class| named.contains(class));
            let groups = if apart { chain.classes.iter().copied().map(Some).collect() } else { vec![None] };
            for group in groups {
                let packets = (figures.packets)(c, group, direction);
                if packets > 0.0 && chain.edges_from(start, direction).next().is_some() {
                    let front = *classify.get_or_insert_with(|| make.front(direction));
                    make.follow(Way { chain: c, group, direction, end: start, upstream: front, packets, cut: true })?;
                }
            }
        }
    }
    let owners = make.owners;
    let subject = |subject: &catena_policy::Subject| -> Subject {
        let is = |(chain, class): &(usize, Option<u32>)| match subject {
            catena_policy::Subject::Chain(c) => *chain == *c as usize,
            catena_policy::Subject::Class(k) => *class == Some(*k),
        };
        (0..owners.len()).filter(|j| is(&owners[*j])).collect()
    };
    let promises =
        policy.relations.iter().filter_map(|relation| promise(relation, &policy.relations, subject)).collect();
    Ok(Pipeline { graph: make.graph, promises, origins: make.origins })
}

/// The classes that relations name.
fn named(policy: &PolicyGraph) -> Vec<u32> {
    let mut named = Vec::new();
    for relation in &policy.relations {
        named.extend(subjects(relation).iter().filter_map(|subject| match subject {
            catena_policy::Subject::Class(class) => Some(*class),
            catena_policy::Subject::Chain(_) => None,
        }));
    }
    named
}

fn subjects(relation: &Relation) -> Vec<catena_policy::Subject> {
    match relation {
        Relation::Priority(subjects) => subjects.clone(),
        Relation::Cpu(members) | Relation::Throughput(members) | Relation::Share(members) => {
            members.iter().map(|(subject, _)| *subject).collect()
        }
    }
}

/// What a relation promises. A share of what is left is one of cycles, which is what a worker has, unless a
/// ratio of cycles or packets says otherwise about one of its subjects. Subjects without traffic
/// are left out.
fn promise(
    relation: &Relation,
    all: &[Relation],
    subject: impl Fn(&catena_policy::Subject) -> Subject,
) -> Option<Promise> {
    let members = |members: &[(catena_policy::Subject, f64)]| -> Vec<(Subject, f64)> {
        members.iter().map(|(s, weight)| (subject(s), *weight)).filter(|(s, _)| !s.is_empty()).collect()
    };
    let promise = match relation {
        Relation::Priority(subjects) => {
            Promise::Priority(subjects.iter().map(&subject).filter(|s| !s.is_empty()).collect())
        }
        Relation::Cpu(given) => Promise::Cpu(members(given)),
        Relation::Throughput(given) => Promise::Throughput(members(given)),
        Relation::Share(given) => {
            let ratios = all.iter().filter(|r| matches!(r, Relation::Cpu(_) | Relation::Throughput(_)));
            let told: Vec<catena_policy::Subject> = ratios.flat_map(subjects).collect();
            if given.iter().any(|(s, _)| told.contains(s)) {
                return None;
            }
            Promise::Cpu(members(given))
        }
    };
    (promise.subjects().len() > 1).then_some(promise)
}

struct Make<'a> {
    policy: &'a PolicyGraph,
    figures: &'a Figures<'a>,
    graph: Graph,
    origins: Vec<Origin>,
    /// For each class, its chain and the class of the policy graph that has a way of its own.
    owners: Vec<(usize, Option<u32>)>,
    /// By chain and node, whether only the return direction passes it.
    return_only: Vec<Vec<bool>>,
}

/// Packets that arrive at an end of a chain.
#[derive(Clone, Copy)]
struct Way {
    chain: usize,
    group: Option<u32>,
    direction: Direction,
    end: End,
    upstream: ModuleId,
    packets: f64,
    /// Whether a queue can tell them from what comes to the same nodes by other ways.
    cut: bool,
}

impl Make<'_> {
    fn module(&mut self, origin: Origin, module: Module) -> ModuleId {
        let first = self.origins.iter().position(|o| match (o, &origin) {
            (Origin::Node(a, _), Origin::Node(b, _)) => a == b,
            (a, b) => a == b,
        });
        let id = self.graph.modules.len();
        self.graph.modules.push(Module { origin: first.unwrap_or(id), ..module });
        self.origins.push(origin);
        id
    }

    fn front(&mut self, direction: Direction) -> ModuleId {
        let module = |name: &str, cycles, upstream| Module {
            name: name.to_owned(),
            cycles,
            per_batch: 0.0,
            batch: FULL_BATCH,
            upstream,
            kind: Kind::Port,
            cuttable: false,
            replicable: true,
            origin: 0,
        };
        let port = self.module(Origin::Port(direction), module("port", self.figures.port_cycles, None));
        let classify = module(CLASSIFY, self.figures.classify_cycles, Some(port));
        self.module(Origin::Classify(direction), classify)
    }

    fn function(&self, chain: &Chain, upstream: ModuleId, node: NodeOf, cuttable: bool) -> Module {
        let (per_batch, batch) = (self.figures.batches)(node);
        Module {
            name: chain.end_name(End::Node(node.1 as u32)).to_owned(),
            cycles: (self.figures.cycles)(node),
            per_batch,
            batch,
            upstream: Some(upstream),
            kind: Kind::Function,
            cuttable,
            replicable: (self.figures.replicable)(node),
            origin: 0,
        }
    }

    fn follow(&mut self, way: Way) -> Result<(), TooManyWays> {
        let chain = &self.policy.chains[way.chain];
        let mut leaving = 0.0;
        for (end, part) in divide(chain, way.end, way.direction) {
            let packets = way.packets * part;
            let End::Node(n) = end else {
                leaving += packets;
                continue;
            };
            if packets <= HARDLY * way.packets {
                continue;
            }
            if self.graph.modules.len() >= MODULES {
                return Err(TooManyWays);
            }
            let node = (way.chain, n as usize);
            // What returns comes in by another gate and waits in no queue: it is no merge.
            let into = chain.edges.iter().filter(|edge| edge.to == end && edge.direction == way.direction);
            let merges = into.count() > 1;
            let cut = way.cut && !merges;
            let module = self.function(chain, way.upstream, node, cut);
            let upstream = self.module(Origin::Node(node, way.group), module);
            self.follow(Way { end, upstream, packets, cut: cut && way.group.is_none(), ..way })?;
        }
        // What no edge takes leaves too: it is dropped.
        if leaving > HARDLY * way.packets || chain.edges_from(way.end, way.direction).next().is_none() {
            let packets = if leaving > 0.0 { leaving } else { way.packets };
            let mut name = match way.group.and_then(|k| self.policy.classes.get(k as usize)) {
                Some(class) => format!("{}/{}", chain.name, class.name),
                None => chain.name.clone(),
            };
            // Where some of a chain's packets come to functions, those that come to none are a class of another kind: they
            // wait in no queue.
            let enters = |edge: &Edge| matches!(edge.to, End::Node(_));
            if !matches!(way.end, End::Node(_)) && chain.edges_from(way.end, way.direction).any(enters) {
                name += if way.group.is_some() { " " } else { "/" };
                name += DROPPED;
            }
            for (exit, packets) in self.answered(way, packets)? {
                self.graph.classes.push(Class { name: name.clone(), exit, packets, known_in_front: false });
                self.owners.push((way.chain, way.group));
            }
        }
        Ok(())
    }

    /// The modules at which the answers to `packets` that end at `way` end, with the packets of each.
    fn answered(&mut self, way: Way, packets: f64) -> Result<Vec<(ModuleId, f64)>, TooManyWays> {
        let mut exits = Vec::new();
        // What forward ways pass is reckoned with: without other functions, answers are nothing to reckon with.
        if way.direction == Direction::Forward && self.return_only[way.chain].contains(&true) {
            let back = Way { direction: Direction::Return, end: End::Out, packets, cut: false, ..way };
            self.answer(back, &mut exits)?;
        } else {
            exits.push((way.upstream, packets));
        }
        Ok(exits)
    }

    fn answer(&mut self, way: Way, exits: &mut Vec<(ModuleId, f64)>) -> Result<(), TooManyWays> {
        let chain = &self.policy.chains[way.chain];
        let mut left = way.packets;
        for (end, part) in divide(chain, way.end, way.direction) {
            let packets = way.packets * part;
            let End::Node(n) = end else { continue };
            if packets <= HARDLY * way.packets {
                continue;
            }
            left -= packets;
            let node = (way.chain, n as usize);
            let upstream = if self.return_only[way.chain][node.1] {
                if self.graph.modules.len() >= MODULES {
                    return Err(TooManyWays);
                }
                let module = self.function(chain, way.upstream, node, false);
                // What meets no function forward waits nowhere: the task that finds chains answers it.
                let kind = self.graph.modules[way.upstream].kind;
                let kind = if kind == Kind::Port { kind } else { Kind::Function };
                self.module(Origin::Return(node), Module { kind, ..module })
            } else {
                way.upstream
            };
            self.answer(Way { end, upstream, packets, ..way }, exits)?;
        }
        if left > HARDLY * way.packets {
            match exits.iter_mut().find(|(exit, _)| *exit == way.upstream) {
                Some((_, packets)) => *packets += left,
                None => exits.push((way.upstream, left)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, solve};
    use catena_policy::{Library, NoFiles};

    fn policy(source: &str) -> PolicyGraph {
        let outcome = catena_policy::load("t.catena", source, &Library::default(), &NoFiles);
        outcome.graph.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))
    }

    fn seen(policy: &PolicyGraph) -> Pipeline {
        let packets = |_: usize, _: Option<u32>, direction| if direction == Direction::Forward { 1e7 } else { 0.0 };
        let figures = Figures {
            cycles: &|(_, n)| 100.0 + 10.0 * n as f64,
            batches: &|_| (0.0, FULL_BATCH),
            replicable: &|_| true,
            packets: &packets,
            port_cycles: 40.0,
            classify_cycles: 30.0,
            queue_cycles: 20.0,
            queue_ends: Ends::default(),
            hz: 2e9,
        };
        pipeline(policy, &figures).unwrap()
    }

    #[test]
    fn chains_with_a_ratio_become_tasks_that_keep_it() {
        let source = "class w = \"tcp\"\nclass v = \"udp\"\n\
                      chain a for w { in -> A -> B -> out }\nchain b for v { in -> C -> out }\ncpu a : b = 3 : 1";
        let pipeline = seen(&policy(source));
        assert_eq!(pipeline.promises, [Promise::Cpu(vec![(vec![0], 3.0), (vec![1], 1.0)])]);
        let plan = solve(&pipeline.graph, &pipeline.promises, Options::default()).unwrap();
        assert_eq!((plan.tasks.tasks.len(), plan.apart.len()), (2, 0));
        assert!(plan.tasks.error(&pipeline.promises[0]) < 1e-6);
    }

    #[test]
    fn a_return_direction_forbids_no_queue_in_the_forward_one() {
        let source = "class w = \"tcp\"\nclass v = \"udp\"\n\
                      chain a for w { in <-> A <-> out }\nchain b for v { in <-> C <-> out }\ncpu a : b = 3 : 1";
        let pipeline = seen(&policy(source));
        let plan = solve(&pipeline.graph, &pipeline.promises, Options::default()).unwrap();
        assert_eq!(plan.tasks.tasks.len(), 2);
        assert!(plan.tasks.error(&pipeline.promises[0]) < 1e-6);
    }

    #[test]
    fn ways_that_merge_are_copies_of_one_module_and_belong_to_their_chain_together() {
        let policy = policy("BPF -> [ \"udp\": A, else: B ] -> E");
        let pipeline = seen(&policy);
        let is_e = |o: &Origin| matches!(o, Origin::Node((c, n), _) if policy.chains[*c].nodes[*n].function == "E");
        let modules = pipeline.graph.modules.iter().zip(&pipeline.origins);
        let e: Vec<&Module> = modules.filter(|(_, o)| is_e(o)).map(|(m, _)| m).collect();
        assert_eq!(e.len(), 2);
        assert_eq!(e[0].origin, e[1].origin);
        assert_eq!(pipeline.graph.classes.len(), 2);
        assert!((pipeline.graph.packets()[0] - 1e7).abs() < 1.0);
        pipeline.graph.check().unwrap();
    }
}
