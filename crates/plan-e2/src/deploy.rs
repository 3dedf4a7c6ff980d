//! All of E2's steps in a row: from pipelines and a rack to instances, servers, filters and tunnels.
//!
//! Beyond the paper, functions are sized in slices ([`size::in_slices`]) if a server's link is overbooked otherwise:
//! a few instances more keep the traffic of a slice on its servers.

use catena_policy::{Library, PolicyGraph};
use serde::{Deserialize, Serialize};

use super::balance;
use super::describe::{self, Description, Unknown};
use super::headroom::Headroom;
use super::instances::{IGraph, TooLarge};
use super::interconnect::{self, Wiring};
use super::keys::Splitting;
use super::merge::{self, Demand, PGraph, Sharing};
use super::offload::{self, Offload, Room};
use super::size::{self, Size};
use super::traffic::{NoRoom, Places, Traffic};
use catena_plan_model::catalogue::{Catalogue, Platform};
use catena_plan_model::demand::guard;
use catena_plan_model::profile::Profile;
use catena_plan_model::rack::{Rack, SwitchKind};

/// A slice is a server, two, or up to so many.
const SLICES: u32 = 4;

/// What E2 takes (Lan's dissertation, §3.2).
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The pipelines.
    pub policy: &'a PolicyGraph,
    /// What is expected to enter each.
    pub demands: &'a [Demand],
    /// Which of their nodes are one.
    pub sharing: Sharing,
    /// Scaling and affinity constraints, platforms.
    pub catalogue: &'a Catalogue,
    /// Performance.
    pub profile: &'a Profile,
    /// Attributes and how packets carry them.
    pub library: &'a Library,
    /// The hardware.
    pub rack: &'a Rack,
}

/// What E2 decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The merged pipelines.
    pub policy: PGraph,
    /// What is known of each function.
    pub descriptions: Vec<Description>,
    /// How many instances each has, and whether they carry the load.
    pub sizes: Vec<Size>,
    /// The instances.
    pub graph: IGraph,
    /// Their servers, before offloading.
    pub places: Places,
    /// Bits per second between servers.
    pub cross_bps: i64,
    /// What goes to the switch.
    pub offload: Offload,
    /// Ports, filters and tunnels.
    pub wiring: Wiring,
}

impl Deployment {
    /// By what factor the traffic may grow on the servers of `rack` until a core or a link is full.
    #[must_use]
    pub fn headroom(&self, rack: &Rack) -> Headroom {
        let links: Vec<f64> = rack.servers.iter().map(link_bps).collect();
        let capacities: Vec<f64> = self.sizes.iter().map(|size| size.capacity_bps).collect();
        Headroom::of(&self.graph, &self.offload.sites(&self.graph, &self.places), &capacities, &links)
    }
}

/// Why nothing can be deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// A function of which nothing is known.
    Unknown(Unknown),
    /// More edges between instances than are handled.
    TooLarge(TooLarge),
    /// More instances than cores.
    NoRoom(NoRoom),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Unknown(unknown) => unknown.fmt(f),
            Failed::TooLarge(too_large) => too_large.fmt(f),
            Failed::NoRoom(no_room) => no_room.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

/// Deploy. `room` says what the rack's switch holds.
///
/// # Errors
/// When a function is unknown, or its instances do not fit.
pub fn deploy(inputs: &Inputs, room: &mut impl Room) -> Result<Deployment, Failed> {
    let policy = merge::merge(inputs.policy, inputs.demands, inputs.sharing);
    let mut descriptions =
        describe::describe(&policy, inputs.catalogue, inputs.profile, inputs.library).map_err(Failed::Unknown)?;
    let guarded: Vec<Vec<bool>> = inputs.policy.chains.iter().map(guard::guarded).collect();
    for (description, node) in descriptions.iter_mut().zip(&policy.nodes) {
        if node.members.iter().any(|&(chain, node)| guarded[chain as usize][node as usize]) {
            description.platforms.retain(|platform| *platform == Platform::Server);
            description.cycles += inputs.profile.overheads.branch;
        }
    }
    // An instance may come to any server: it is sized for the slowest.
    let clock_hz = inputs.rack.servers.iter().map(|s| s.clock_hz).fold(f64::INFINITY, f64::min);
    let capacities = size::capacities(&descriptions, clock_hz, inputs.rack.packet_bytes);
    let splitting: Vec<Splitting> =
        descriptions.iter().map(|d| Splitting { affinity: d.affinity, rewrites: d.rewrites }).collect();
    let cores: Vec<u32> = inputs.rack.servers.iter().map(cores).collect();
    let links: Vec<f64> = inputs.rack.servers.iter().map(link_bps).collect();
    let Instances { sizes, graph, places } = instances(&policy, &capacities, &splitting, &cores, &links)?;
    let cross_bps = Traffic::of(&graph).cross(&places.server);
    let platform = inputs.rack.switch.as_ref().and_then(|switch| match switch.kind {
        SwitchKind::Plain { .. } => None,
        SwitchKind::Pisa(_) => Some(Platform::Pisa),
        SwitchKind::OpenFlow { .. } => Some(Platform::OpenFlow),
    });
    let offload = platform.map_or_else(Offload::default, |platform| {
        offload::offload(&policy, &graph, &places, &descriptions, platform, room)
    });
    let sites = offload.sites(&graph, &places);
    let wiring = interconnect::interconnect(&policy, &graph, &sites, &descriptions);
    Ok(Deployment { policy, descriptions, sizes, graph, places, cross_bps, offload, wiring })
}

/// Instances of merged pipelines, each on a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Instances {
    /// How many each function has, and whether they carry the load.
    pub sizes: Vec<Size>,
    /// The instances.
    pub graph: IGraph,
    /// Their servers.
    pub places: Places,
}

/// Size the functions of `policy`, split them into instances, and place these: what of [`deploy`] grows with the rack. A core
/// carries so much of each function (`capacities`, bits per second); servers have so many `cores` and links of `link_bps`.
///
/// # Errors
/// When the instances do not fit.
pub fn instances(
    policy: &PGraph,
    capacities: &[f64],
    splitting: &[Splitting],
    cores: &[u32],
    link_bps: &[f64],
) -> Result<Instances, Failed> {
    let affinities: Vec<_> = splitting.iter().map(|s| s.affinity).collect();
    let mut sizes = size::sizes(policy, capacities, &affinities);
    let place = |counts: &[u32]| {
        let graph = IGraph::build(policy, splitting, counts).map_err(Failed::TooLarge)?;
        let places = balance::place(&graph, cores, link_bps).map_err(Failed::NoRoom)?;
        let sites = Offload::default().sites(&graph, &places);
        let room = Headroom::of(&graph, &sites, capacities, link_bps).links;
        Ok((room, graph, places))
    };
    let counts: Vec<u32> = sizes.iter().map(|s| s.instances).collect();
    let mut best = place(&counts)?;
    for slices in (1..=SLICES).map(|part| cores.len() as u32 / part).filter(|slices| *slices > 1) {
        if best.0 >= 1.0 {
            break;
        }
        let counts = size::in_slices(&sizes, &affinities, slices);
        // More instances than cores are no way out.
        if let Ok(sliced) = place(&counts)
            && sliced.0 > best.0
        {
            best = sliced;
        }
    }
    let (_, graph, places) = best;
    sizes.iter_mut().zip(&graph.of_node).for_each(|(size, ids)| size.instances = ids.len() as u32);
    Ok(Instances { sizes, graph, places })
}

/// The cores of a server that are left for functions.
fn cores(server: &catena_plan_model::rack::Server) -> u32 {
    server.sockets.saturating_mul(server.cores_per_socket).saturating_sub(server.steering_cores)
}

/// All its links together, bits per second each way.
fn link_bps(server: &catena_plan_model::rack::Server) -> f64 {
    server.nics.iter().map(|nic| nic.bps).chain(server.smart_nics.iter().map(|nic| nic.bps)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_plan_model::catalogue::{Affinity, Fields, Memory, Traits};
    use catena_plan_model::profile::{Cost, Cycles, Machine, Overheads};
    use catena_plan_model::rack::{Nic, Server, Switch, Wrap};
    use catena_policy::{Attribute, Method, NoFiles, Signature};

    const FUNCTIONS: [&str; 4] = ["Ids", "WebCache", "Normalizer", "Monitor"];

    fn traits(name: &str) -> Traits {
        let platforms = match name {
            "Monitor" => vec![Platform::Server, Platform::OpenFlow],
            _ => vec![Platform::Server],
        };
        Traits {
            name: name.into(),
            platforms,
            affinity: Affinity::Fields(Fields::FIVE_TUPLE),
            memory: Memory::PerGroup,
            rewrites: Fields::NONE,
            tables: vec![],
            openflow: None,
            size: None,
            source: None,
        }
    }

    /// Lan's dissertation, Figure 3.1: from the text of the pipeline to its wiring on two servers.
    #[test]
    fn figure_3_1_from_text_to_tunnels() {
        let values = Some(vec!["safe".into(), "unsafe".into()]);
        let signature = |name: &str| Signature {
            name: name.into(),
            attributes: match name {
                "Ids" => vec![Attribute { name: "verdict".into(), values: values.clone(), by: Method::Port }],
                _ => vec![],
            },
            ..Signature::default()
        };
        let library = Library { functions: FUNCTIONS.map(signature).into() };
        let source = "chain c {
            ids = Ids()
            mon = Monitor()
            in -> ids
            ids[safe] -> [ \"tcp port 80\" ~ 50%: WebCache() ] -> mon
            ids[unsafe] -> Normalizer() -> mon
            mon -> out
        }";
        let loaded = catena_policy::load("c", source, &library, &NoFiles);
        assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
        let graph = loaded.graph.unwrap();
        let cost = || Cost { server: Cycles::constant(1000.0), smart_nic: None, source: None };
        let profile = Profile {
            version: catena_plan_model::profile::VERSION,
            port: None,
            machine: Machine::default(),
            overheads: Overheads::default(),
            functions: FUNCTIONS.map(|name| (name.into(), cost())).into(),
        };
        let server = |name: &str| Server {
            name: name.into(),
            sockets: 1,
            cores_per_socket: 5,
            steering_cores: 1,
            shared: false,
            clock_hz: 1e9,
            nics: vec![Nic { name: "n".into(), socket: 0, bps: 10e9, address: None }],
            smart_nics: vec![],
        };
        let kind = SwitchKind::OpenFlow { tables: vec![] };
        let switch = Switch {
            name: "tor".into(),
            ports: 48,
            port_bps: 10e9,
            capacity_bps: 480e9,
            pass_ns: 0.0,
            bounce_ns: 0.0,
            tunnels: Wrap::usual(&kind),
            address: None,
            kind,
        };
        let rack = Rack {
            name: "r".into(),
            servers: vec![server("a"), server("b")],
            switch: Some(switch),
            packet_bytes: 125.0,
        };
        let demands = [Demand { forward_bps: 2e9, return_bps: 0.0 }];
        let catalogue = Catalogue { functions: FUNCTIONS.map(traits).into(), particular: Vec::new() };
        let inputs = Inputs {
            policy: &graph,
            demands: &demands,
            sharing: Sharing::Named,
            catalogue: &catalogue,
            profile: &profile,
            library: &library,
            rack: &rack,
        };
        // A core carries 1 Gbps of each; the IDS and the monitor get all of the 2 Gbps.
        let done = deploy(&inputs, &mut |_: &[usize]| true).unwrap();
        let count = |function: &str| {
            let node = done.policy.nodes.iter().position(|n| n.function == function).unwrap();
            done.sizes[node].instances
        };
        assert_eq!(FUNCTIONS.map(count), [2, 1, 1, 2]);
        assert_eq!(done.places.free.iter().sum::<u32>(), 2);
        let monitor = done.policy.nodes.iter().position(|n| n.function == "Monitor").unwrap();
        assert_eq!(done.offload.nodes, [monitor]);
        let safe = &done.wiring.instances[done.graph.of_node[0][0]].vports[0];
        assert_eq!(safe.value.as_ref().map(|v| &*v.1), Some("safe"));
        // To the cache what its filter takes, and the rest to the monitor.
        assert!(safe.rules.iter().any(|r| r.when.len() == 1) && safe.rules.iter().any(|r| r.when.is_empty()));
        // All that comes in goes out.
        let out: f64 = done
            .graph
            .edges
            .iter()
            .filter(|e| matches!(e.to, super::super::instances::IEnd::Port(_)))
            .map(|e| e.bps)
            .sum();
        assert!((out - 2e9).abs() < 1.0);

        assert!(done.headroom(&rack).factor() >= 1.0, "{:?}", done.headroom(&rack));

        let small = Rack { servers: vec![server("a")], ..rack.clone() };
        let failed = deploy(&Inputs { rack: &small, ..inputs }, &mut |_: &[usize]| true).unwrap_err();
        assert_eq!(failed, Failed::NoRoom(NoRoom { instances: 6, cores: 4 }));

        // Two servers, each with half of all instances and of the traffic: sized as the paper does, some of it crosses a
        // link that has just room for what comes and goes.
        let narrow = |bps: f64| {
            let mut rack = rack.clone();
            rack.servers.iter_mut().for_each(|s| {
                s.cores_per_socket = 9;
                s.nics[0].bps = bps;
            });
            deploy(&Inputs { rack: &rack, ..inputs }, &mut |_: &[usize]| false).unwrap()
        };
        assert_eq!(narrow(10e9).graph.instances.len(), 6);
        assert_eq!((narrow(1.05e9).graph.instances.len(), narrow(1.05e9).cross_bps), (8, 0));
    }
}
