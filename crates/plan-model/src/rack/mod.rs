//! The rack: servers, cards, links, and the switch between them, as `rack.toml` describes them.

mod parse;
mod read_server;
mod read_switch;
mod section;
pub mod units;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use parse::{MAX_SERVERS, MAX_SOURCE, PACKET_BYTES, Parsed, parse};
pub use read_switch::{BOUNCE_NS, ENTRIES, PASS_NS, TOFINO};

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
}

/// What a switch can hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
pub struct FlowTable {
    /// What it is called.
    pub name: String,
    /// Functions that it can hold.
    pub functions: Vec<String>,
    /// Flow entries.
    pub entries: u32,
}
