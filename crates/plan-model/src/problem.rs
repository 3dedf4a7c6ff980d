//! What has to be decided, in numbers alone.
//!
//! Definitions that all planners, the estimate and the checker share (Lemur, §3):
//!
//! - A chain's *rate* is what enters it, in bits per second; a packet of it has `packet_bytes`. A node's
//!   *share* is the part of the chain's packets that reaches it, an edge's the part that takes it.
//! - A *subgroup* is a maximal set of a chain's nodes on the same server that edges between them
//!   connect. It runs to completion. Its *visits* are the shares of the edges that enter it from outside
//!   (entry nodes: the share of the chain that enters there), summed. Its *cost*, in cycles per packet of
//!   the chain, is the sum of `share × cycles` over its nodes, and `visits × overheads.visit`, and with
//!   more than one core `visits × overheads.spread`. With k cores it carries `k × clock / cost` packets of
//!   the chain a second.
//! - It may have more than one core only if all its nodes are `replicable` and none is a branch or a merge
//!   (more than one edge out or in), unless the problem's [`Replication`] allows more.
//! - Cores are whole numbers of at least 1, unless the server's cores are shared: then they are any
//!   positive number, and a subgroup that may not be replicated has at most 1, all of it of the same core.
//! - A network card's link is full duplex and carries, each way, `rate × visits` of each subgroup that
//!   uses it; between a switch and a card packets say where in their chain they are, which makes each as much longer
//!   as that header is ([`Wrap::bytes`]). A *stay* is a maximal set of nodes on one server and on one of its SmartNICs that edges
//!   connect; its visits load the SmartNIC's link once, and subgroups in it use that link. A subgroup that
//!   edges connect to several SmartNICs of its server stays with the first of them.
//! - A SmartNIC's processor carries `Σ packets × share × cycles` of all nodes on it, up to its clock times
//!   its cores.
//! - A path's *latency* is the sum of `cycles / clock` of its nodes (nodes on switches take
//!   `switch_ns` a pass), the visit overhead of each stay, and `bounce_ns` for every stay that the path
//!   enters. Every path keeps `d_max_ns`. That is a packet which waits for no other, forward: neither the rest of its batch,
//!   nor its turn on a core, nor queues are in it.
//! - The switch joins the servers: a packet passes it once, and once more for every stay. It forwards, in all, `rate ×
//!   (1 + visits of the chain's stays)` of each chain, and at most its capacity. Without a switch nothing joins
//!   servers: all nodes of a chain are on one server and its SmartNICs.
//! - What passes a chain without a node is its *direct* part: all packets less those that enter at nodes. A switch forwards it, and
//!   no card carries it. Without a switch it comes in and goes out by whichever cards have room for it: `rate × direct` of all
//!   chains is at most what stays leave of all links together. Where one is told of a link, links fill up in their order.
//! - The switch holds all nodes placed on it: [`crate::switch`] says whether.
//! - A chain's rate lies in `t_min_bps ..= t_max_bps` and is at most `ingress_bps`. *Marginal* throughput
//!   is rate minus `t_min_bps`; the objective sums it over the chains. [`crate::relation`] says how chains stand to each
//!   other: what is in a ratio, and whose sum is as large as possible before that of others.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::Table;
use crate::demand::relations::usable_bps;
use crate::profile::{FULL_BATCH, Overheads};
use crate::rack::{SwitchKind, Wrap};
use crate::relation::Relation;
use crate::returns::Returns;

/// Index of a chain in [`Problem::chains`].
pub type ChainId = usize;
/// Index of a node in [`Chain::nodes`].
pub type NodeId = usize;
/// Index of a server in [`Problem::servers`].
pub type ServerId = usize;

/// Chains with promises, and a rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// The chains.
    pub chains: Vec<Chain>,
    /// The servers.
    pub servers: Vec<Server>,
    /// The SmartNICs.
    pub smart_nics: Vec<SmartNic>,
    /// The switch that joins the servers; None: nothing joins them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switch>,
    /// What the framework costs, in cycles per packet.
    pub overheads: Overheads,
    /// From the switch to a server and back: propagation and transmission, nanoseconds.
    pub bounce_ns: f64,
    /// A pass through the switch, nanoseconds.
    pub switch_ns: f64,
    /// What may be replicated.
    pub replication: Replication,
    /// How the chains stand to each other.
    #[serde(default)]
    pub relations: Vec<Relation>,
    /// Relations of the file that planners do not know: of cycles that functions of a chain do not take, of classes that no chain serves.
    #[serde(default)]
    pub unseen: Vec<String>,
    /// What is maximised.
    pub objective: Objective,
}

/// What may be replicated on several cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replication {
    /// Lemur, §3.2: neither what is marked not replicable nor branches and merges.
    Paper,
    /// What the state allows: stateless, per affinity group, or in an external store; branches and merges
    /// are replicated whole.
    #[default]
    ByState,
}

/// What is maximised, once all promises are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The sum of marginal throughputs (Lemur, §3.1).
    #[default]
    Marginal,
    /// The sum weighted by each chain's `weight`.
    Weighted,
    /// The least marginal throughput relative to `weight`, then the next one, and so on (max-min).
    Fair,
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// As the file spells it.
    pub name: String,
    /// Bits per second guaranteed.
    pub t_min_bps: f64,
    /// Bits per second allowed; infinite if not limited.
    #[serde(default = "crate::unbounded::none", skip_serializing_if = "crate::unbounded::is_none")]
    pub t_max_bps: f64,
    /// The most that can enter at all: the port it comes in by.
    #[serde(default = "crate::unbounded::none", skip_serializing_if = "crate::unbounded::is_none")]
    pub ingress_bps: f64,
    /// Nanoseconds a packet may take; infinite if not limited.
    #[serde(default = "crate::unbounded::none", skip_serializing_if = "crate::unbounded::is_none")]
    pub d_max_ns: f64,
    /// Weight of its marginal throughput.
    pub weight: f64,
    /// Bytes of its packets, on average.
    pub packet_bytes: f64,
    /// The functions.
    pub nodes: Vec<Node>,
    /// The edges between them; a DAG.
    pub edges: Vec<Edge>,
}

impl Problem {
    /// Whether the switch can run `node`, as far as its kind goes.
    #[must_use]
    pub fn switch_runs(&self, node: &Node) -> bool {
        match self.switch.as_ref().map(|switch| &switch.kind) {
            Some(SwitchKind::Pisa(_)) => node.pisa.is_some(),
            Some(SwitchKind::OpenFlow { .. }) => node.openflow.is_some(),
            Some(SwitchKind::Plain { .. }) | None => false,
        }
    }

    /// The same problem with headroom: every cycle counts `factor` times, the framework's as the functions'.
    #[must_use]
    pub fn with_margin(&self, factor: f64) -> Problem {
        let mut changed = self.costing(factor);
        changed.overheads = self.overheads.times(factor);
        changed
    }

    /// The same problem where a packet's delay on servers is that of a full batch: it leaves with the last packet of it.
    #[must_use]
    pub fn in_full_batches(&self) -> Problem {
        let mut changed = self.clone();
        for node in changed.chains.iter_mut().flat_map(|chain| &mut chain.nodes) {
            node.server = node.server.map(|cycles| cycles * FULL_BATCH);
        }
        changed.overheads.visit *= FULL_BATCH;
        changed
    }

    /// The same problem where all functions cost `factor` times as much on servers and cards, and the framework what it did:
    /// as where a profile of functions is wrong.
    #[must_use]
    pub fn costing(&self, factor: f64) -> Problem {
        let mut changed = self.clone();
        for node in changed.chains.iter_mut().flat_map(|chain| &mut chain.nodes) {
            node.server = node.server.map(|cycles| cycles * factor);
            node.per_batch *= factor;
            node.smart_nic = node.smart_nic.map(|cycles| cycles * factor);
        }
        // What one core does bounds some shares.
        for relation in &mut changed.relations {
            let Relation::Ratio { text, members } = relation else { continue };
            for member in members.iter_mut().filter(|_| text.starts_with("share ")) {
                if let Some(chain) = changed.chains.get(member.chain) {
                    member.cap_bps = usable_bps(chain, &changed.servers);
                }
            }
        }
        changed
    }
}

impl Chain {
    /// Bits of a packet.
    #[must_use]
    pub fn packet_bits(&self) -> f64 {
        self.packet_bytes * 8.0
    }

    /// The most it may carry: the promise's upper end or the port.
    #[must_use]
    pub fn limit_bps(&self) -> f64 {
        self.t_max_bps.min(self.ingress_bps)
    }
}

/// A function in a chain, with what it would cost where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Unique in the chain.
    pub name: String,
    /// The function's name.
    pub function: String,
    /// The part of the chain's packets that reaches it, above 0, at most 1.
    pub share: f64,
    /// The part of the chain's packets that enters the chain here, 0 to 1.
    pub entry: f64,
    /// Cycles per packet on a server's core; None: it cannot run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<f64>,
    /// Of that, cycles that a batch takes however few packets it has.
    pub per_batch: f64,
    /// Packets of a batch, where chains run to completion on one core.
    pub batch: f64,
    /// Cycles per packet on a SmartNIC; None: it cannot run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smart_nic: Option<f64>,
    /// Its tables on a PISA switch, with `entries` for its size; None: it cannot run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pisa: Option<Vec<Table>>,
    /// Its flow entries on an OpenFlow switch; None: it cannot run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openflow: Option<u32>,
    /// Whether `unparsed = drop` is done in front of it, which only servers do: it can run nowhere else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guarded: bool,
    /// Whether no packet comes to it but in the return direction: `share` and `entry` are parts of what returns then, which is
    /// taken to be as much as goes forward.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub return_only: bool,
    /// Whether packets behind it have other addresses or ports than in front.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewrites: bool,
    /// By which addresses packets on the way back show that they are its.
    #[serde(default, skip_serializing_if = "Returns::is_empty")]
    pub returns: Returns,
    /// Whether it may run on several cores, as far as its state is concerned.
    pub replicable: bool,
}

/// Packets go from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// From.
    pub from: NodeId,
    /// To.
    pub to: NodeId,
    /// The part of the chain's packets that takes it.
    pub share: f64,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Unique in the rack.
    pub name: String,
    /// Cores for functions: those kept for steering are not counted.
    pub cores: u32,
    /// Whether several subgroups may share a core.
    pub shared: bool,
    /// Cycles per second of a core.
    pub clock_hz: f64,
    /// Its ordinary network cards, bits per second each way; at least one, or a SmartNIC.
    pub nics_bps: Vec<f64>,
}

/// A network card that runs functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SmartNic {
    /// Unique in the rack.
    pub name: String,
    /// The server it sits in.
    pub server: ServerId,
    /// Its link, bits per second each way.
    pub bps: f64,
    /// Cycles per second of all its cores together.
    pub cycles_hz: f64,
    /// Cycles per second of one.
    pub clock_hz: f64,
}

/// A switch that joins servers; it may run functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Unique in the rack.
    pub name: String,
    /// What it can hold.
    pub kind: SwitchKind,
    /// What it can forward in all, bits per second.
    pub capacity_bps: f64,
    /// How packets between it and the cards say where in their chain they are.
    #[serde(default)]
    pub tunnels: Wrap,
    /// Addresses of the switch and of cards, by the names of switch and links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, IpAddr>,
}

impl Switch {
    /// A switch with the tunnels that are usual for its kind.
    #[must_use]
    pub fn new(name: &str, kind: SwitchKind, capacity_bps: f64) -> Switch {
        let (name, tunnels) = (name.to_owned(), Wrap::usual(&kind));
        Switch { name, kind, capacity_bps, tunnels, addresses: BTreeMap::new() }
    }

    /// Bytes that a packet has more on the way to a card and back.
    #[must_use]
    pub fn header_bytes(&self) -> f64 {
        self.tunnels.bytes(self.addresses.values().any(IpAddr::is_ipv6))
    }
}
