//! How a function is measured: what it is set up with and what its cost grows with.
//!
//! Every function is measured by the same traffic, so that what is measured of several adds up to what a chain of
//! them costs. A function's set-up, in its folder, is made for that traffic: all packets pass, and none passes
//! without the function doing what it is for.

/// Where the traffic's clients are, as the chain language writes prefixes.
pub const CLIENTS: &str = "100.64.0.0/10";
/// Where its servers are.
pub const SERVERS: &str = "203.0.0.0/16";
/// The first 16 bits of [`SERVERS`].
pub const SERVERS_BITS: u32 = 0xcb00_0000;
/// The first 10 bits of [`CLIENTS`].
pub const CLIENTS_BITS: u32 = 0x6440_0000;

/// Flows that live long (Yen et al., "Lemur", §5.2, footnote 6: "30-50 uniformly distributed").
pub const LONG_LIVED: u64 = 40;
/// Flows that live at once, where they are short-lived (the same: 10,000 new ones a second of a second each).
pub const SHORT_LIVED: u64 = 10_000;

/// How a function is measured.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// What its cost grows with, if it does.
    pub size: Option<Size>,
    /// The function at a size (1 where there is none).
    pub setup: fn(u64) -> Setup,
}

/// What a function's cost grows with.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// What is counted, in the plural: `rules`, `flows`.
    pub unit: &'static str,
    /// What tells how much of it there is.
    pub told: Told,
    /// How much there usually is.
    pub usual: u64,
    /// Sizes to measure, from small to large.
    pub measured: &'static [u64],
}

/// What tells how large a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// An argument: a number, or a file or list whose lines count.
    Argument(&'static str),
    /// The traffic: how many flows live at a time.
    Traffic,
}

/// A function as a chain file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The call, such as `NAT(pool = 198.51.100.0/24)`.
    pub call: String,
    /// The file that it names, and what stands in that.
    pub file: Option<(&'static str, String)>,
}

impl Setup {
    /// Make a set-up without a file.
    pub fn call(call: &str) -> Setup {
        Setup { call: call.to_owned(), file: None }
    }
}

/// The highest destination port.
pub const PORTS: u32 = 60_000;
/// Packets a second of the packets' own time (the same).
pub const PACKETS: u64 = 3_200_000;

/// Return the traffic, as the generator reads it: so many flows at a time, so many new ones a second, if any end, and so
/// many packets a second.
pub fn traffic(flows: u64, new: Option<u64>, packets: u64) -> String {
    let new = new.map_or(String::new(), |new| format!(",new={new}/s"));
    format!(
        "flows={flows}{new},size=64,proto=udp:1+tcp:1,src={CLIENTS},dst={SERVERS},dport=1-{PORTS},rate={packets}pps"
    )
}
