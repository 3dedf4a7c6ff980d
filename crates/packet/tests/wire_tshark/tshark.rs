//! Runs tshark over a capture and returns what it reads of the outermost headers of every frame.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The only dissectors left on: what lies within (tunnels but IP in IP, quoted packets, applications) is not compared.
const PROTOCOLS: &[&str] = &[
    "frame",
    "eth",
    "ethertype",
    "raw",
    "vlan",
    "ieee8021ad",
    "arp",
    "ip",
    "ipv6",
    "ipv6.hopopts",
    "ipv6.routing",
    "ipv6.fraghdr",
    "ipv6.dstopts",
    "ah",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmpv6",
    "data",
    "_ws.malformed",
    "_ws.short",
    "_ws.expert",
];

/// Neither reassembly nor state between packets: a frame is read by itself.
const PREFERENCES: &[&str] = &[
    "ip.defragment:FALSE",
    "ip.tso_support:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.analyze_sequence_numbers:FALSE",
    "tcp.track_bytes_in_flight:FALSE",
    "tcp.calculate_timestamps:FALSE",
    "udp.calculate_timestamps:FALSE",
];

const FIELDS: &[&str] = &[
    "frame.protocols",
    "vlan.id",
    "ieee8021ad.id",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ip.flags.mf",
    "ip.frag_offset",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.nxt",
    "ipv6.hopopts.nxt",
    "ipv6.routing.nxt",
    "ipv6.fraghdr.nxt",
    "ipv6.dstopts.nxt",
    "ah.next_header",
    "ipv6.fraghdr.offset",
    "ipv6.fraghdr.more",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "sctp.srcport",
    "sctp.dstport",
    "_ws.expert.severity",
    "_ws.expert.message",
];

/// What tshark says of a frame.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Dissectors that had a look, outermost first.
    pub protocols: Vec<String>,
    pub tagged: bool,
    pub src: Option<IpAddr>,
    pub dst: Option<IpAddr>,
    /// What stands behind the last header that could be read.
    pub proto: Option<u8>,
    pub fragment: bool,
    pub later: bool,
    pub ports: Option<(u16, u16)>,
    /// The worst that tshark says against the frame: a dissector ran out of bytes, or an error is noted.
    pub complaint: Option<String>,
}

impl Frame {
    pub fn has(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|other| other == protocol)
    }
}

pub fn is_installed() -> bool {
    let quiet = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Read a capture. `scratch` is an empty folder for tshark's configuration.
pub fn read(capture: &Path, scratch: &Path) -> Vec<Frame> {
    let listing = run(Command::new("tshark").args(["-G", "protocols"]));
    let others =
        listing.lines().filter_map(|line| line.split('\t').nth(2)).filter(|protocol| !PROTOCOLS.contains(protocol));
    fs::write(scratch.join("disabled_protos"), others.collect::<Vec<_>>().join("\n")).expect("scratch is writable");
    let mut tshark = Command::new("tshark");
    tshark.env("WIRESHARK_CONFIG_DIR", scratch).arg("-n").arg("-r").arg(capture);
    for preference in PREFERENCES {
        tshark.args(["-o", preference]);
    }
    // All occurrences, joined by a character that no value has.
    tshark.args(["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;"]);
    for field in FIELDS {
        tshark.args(["-e", field]);
    }
    run(&mut tshark).lines().map(frame).collect()
}

fn run(command: &mut Command) -> String {
    let output = command.stderr(Stdio::null()).output().expect("tshark starts");
    assert!(output.status.success(), "tshark fails: {}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn frame(line: &str) -> Frame {
    let values: Vec<&str> = line.split('\t').collect();
    assert_eq!(values.len(), FIELDS.len(), "{line:?}");
    let all = |name: &str| {
        let at = FIELDS.iter().position(|&field| field == name).expect("a field that was asked for");
        values[at].split(';')
    };
    let first = |name: &str| all(name).next().filter(|value| !value.is_empty());
    let number = |name: &str| first(name).and_then(|value| value.parse::<u16>().ok());
    let is_set = |name: &str| matches!(first(name), Some(value) if value != "0" && value != "False");
    let byte = |name: &str| number(name).and_then(|value| u8::try_from(value).ok());
    let protocols: Vec<String> = values[0].split(':').map(str::to_owned).collect();

    // IP in IP: the outermost network layer is meant.
    let network = protocols.iter().find(|protocol| matches!(protocol.as_str(), "ip" | "ipv6"));
    let is_v6 = network.is_some_and(|network| network == "ipv6");
    let address = |v4: &str, v6: &str| first(if is_v6 { v6 } else { v4 }).and_then(|text| text.parse().ok());
    let mut proto = byte(if is_v6 { "ipv6.nxt" } else { "ip.proto" });
    let mut seen = Vec::new();
    while let Some(extension) = proto.and_then(next_header_of)
        && (is_v6 || extension == "ah.next_header")
        && !seen.contains(&extension)
        && let Some(next) = byte(extension)
    {
        seen.push(extension);
        proto = Some(next);
    }
    let ports = ["tcp", "udp", "sctp"]
        .into_iter()
        .find_map(|protocol| Some((number(&format!("{protocol}.srcport"))?, number(&format!("{protocol}.dstport"))?)));
    const ERROR: &str = "8388608";
    let at_fault = all("_ws.expert.severity").position(|severity| severity == ERROR);
    let message = at_fault.map(|at| all("_ws.expert.message").nth(at).unwrap_or_default().to_owned());
    let short = ["_ws.malformed", "_ws.short"].into_iter().find(|mark| protocols.iter().any(|other| other == mark));
    let later = is_set(if is_v6 { "ipv6.fraghdr.offset" } else { "ip.frag_offset" });
    Frame {
        tagged: first("vlan.id").or(first("ieee8021ad.id")).is_some(),
        src: address("ip.src", "ipv6.src"),
        dst: address("ip.dst", "ipv6.dst"),
        proto,
        fragment: later || is_set(if is_v6 { "ipv6.fraghdr.more" } else { "ip.flags.mf" }),
        later,
        ports,
        complaint: short.map(str::to_owned).or(message),
        protocols,
    }
}

/// The field that says what follows this extension header.
fn next_header_of(proto: u8) -> Option<&'static str> {
    match proto {
        0 => Some("ipv6.hopopts.nxt"),
        43 => Some("ipv6.routing.nxt"),
        44 => Some("ipv6.fraghdr.nxt"),
        51 => Some("ah.next_header"),
        60 => Some("ipv6.dstopts.nxt"),
        _ => None,
    }
}
