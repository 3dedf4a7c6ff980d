//! The rack: servers, cards, links, and the switch between them, as `rack.toml` describes them.

mod parse;
mod read_server;
mod read_switch;
mod section;
mod tunnels;
pub mod units;

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use parse::{MAX_CORES, MAX_SERVERS, MAX_SOURCE, PACKET_BYTES, Parsed, parse};
pub use read_switch::{BOUNCE_NS, ENTRIES, PASS_NS, TOFINO};
pub use section::{NAME, is_name};

/// A rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rack {
    /// What it is called.
    pub name: String,
    /// The servers, in the order of the file; `count = 24` makes 24 of one.
    pub servers: Vec<Server>,
    /// The switch that joins them; None: the servers' own cards are all there is.
    pub switch: Option<Switch>,
    /// Bytes of a packet, on average, where a class does not say.
    pub packet_bytes: f64,
}

impl Rack {
    /// The addresses of the switch and of cards, by the names of switch and links, as far as there are any.
    #[must_use]
    pub fn addresses(&self) -> BTreeMap<String, IpAddr> {
        let cards = self.servers.iter().flat_map(|server| {
            let nics = server.nics.iter().map(|nic| (&nic.name, nic.address));
            let all = nics.chain(server.smart_nics.iter().map(|nic| (&nic.name, nic.address)));
            all.map(move |(card, address)| (format!("{}.{card}", server.name), address))
        });
        let switch = self.switch.iter().map(|switch| (switch.name.clone(), switch.address));
        cards.chain(switch).filter_map(|(name, address)| Some((name, address?))).collect()
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Unique.
    pub name: String,
    /// Sockets.
    pub sockets: u32,
    /// Cores of each socket.
    pub cores_per_socket: u32,
    /// Cores kept for reading packets and steering them.
    pub steering_cores: u32,
    /// Whether subgroups may share a core.
    pub shared: bool,
    /// Cycles per second.
    pub clock_hz: f64,
    /// Its ordinary network cards.
    pub nics: Vec<Nic>,
    /// Its SmartNICs.
    pub smart_nics: Vec<SmartNic>,
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nic {
    /// Unique in the server.
    pub name: String,
    /// The socket it belongs to.
    pub socket: u32,
    /// Bits per second each way.
    pub bps: f64,
    /// Its address, where packets come to it in tunnels of IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// A network card that runs eBPF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmartNic {
    /// Unique in the server.
    pub name: String,
    /// The socket it belongs to.
    pub socket: u32,
    /// Bits per second each way.
    pub bps: f64,
    /// Its cores.
    pub cores: u32,
    /// Cycles per second of each.
    pub clock_hz: f64,
    /// Its address, where packets come to it in tunnels of IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// The switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// What it is called.
    pub name: String,
    /// Ports for the outside and for servers.
    pub ports: u32,
    /// Bits per second of a port.
    pub port_bps: f64,
    /// All it can forward, bits per second.
    pub capacity_bps: f64,
    /// A pass through it, nanoseconds.
    pub pass_ns: f64,
    /// From it to a server and back, nanoseconds: propagation and transmission.
    pub bounce_ns: f64,
    /// What it can run.
    pub kind: SwitchKind,
    /// How packets between it and the cards say where in their chain they are.
    #[serde(default)]
    pub tunnels: Wrap,
    /// Its address, where packets come to it in tunnels of IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// How packets between two devices say where in their chain they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wrap {
    /// By a network service header between Ethernet and IP (RFC 8300, Ethertype 0x894f): path and index stand in it.
    #[default]
    Nsh,
    /// By the number of a VLAN (IEEE 802.1Q), which stands for path and index on one link in one direction.
    Vlan,
    /// By the number of a VXLAN (RFC 7348), which stands for path and index in the same way. It needs addresses of IP.
    Vxlan,
}

impl Wrap {
    /// What is usual for a switch of this kind: "Openflow switches do not support NSH" (Lemur, §5.3).
    #[must_use]
    pub fn usual(kind: &SwitchKind) -> Wrap {
        if matches!(kind, SwitchKind::OpenFlow { .. }) { Wrap::Vlan } else { Wrap::Nsh }
    }

    /// Bytes that it adds to a packet on the way between two devices; `v6`: in tunnels of IP, that is version 6.
    #[must_use]
    pub fn bytes(self, v6: bool) -> f64 {
        match (self, v6) {
            // Base and service path headers, without metadata.
            (Wrap::Nsh, _) => 8.0,
            (Wrap::Vlan, _) => 4.0,
            // Ethernet, IP, UDP and VXLAN around what was an Ethernet frame.
            (Wrap::Vxlan, false) => 14.0 + 20.0 + 8.0 + 8.0,
            (Wrap::Vxlan, true) => 14.0 + 40.0 + 8.0 + 8.0,
        }
    }

    /// The numbers that stand for path and index, ascending; none where both are said as they are.
    #[must_use]
    pub fn ids(self) -> Option<std::ops::RangeInclusive<u32>> {
        match self {
            Wrap::Nsh => None,
            // All zeros and all ones are reserved (IEEE 802.1Q).
            Wrap::Vlan => Some(1..=4_094),
            Wrap::Vxlan => Some(1..=(1 << 24) - 1),
        }
    }
}

/// What a switch can hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SwitchKind {
    /// It only forwards, by flow entries.
    Plain {
        /// How many.
        entries: u32,
    },
    /// Match-action stages (PISA).
    Pisa(Stages),
    /// Fixed tables, passed in their order.
    OpenFlow {
        /// The tables.
        tables: Vec<FlowTable>,
    },
}

/// The stages of a PISA switch and what each holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// How many stages.
    pub stages: u32,
    /// SRAM blocks a stage (a block of Tofino: 1,024 words of 128 bits).
    pub sram_blocks: u32,
    /// TCAM blocks a stage (a block of Tofino: 512 words of 44 bits).
    pub tcam_blocks: u32,
    /// Tables a stage.
    pub tables: u32,
    /// Stages taken by the framework itself for steering and tags (Lemur, §4.2: an NSH header pushed and
    /// popped; the first also steers).
    pub framework_stages: u32,
}

/// A table of an OpenFlow switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTable {
    /// What it is called.
    pub name: String,
    /// Functions that it can hold.
    pub functions: Vec<String>,
    /// Flow entries.
    pub entries: u32,
}
