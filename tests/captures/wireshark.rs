//! What Wireshark's dissectors up to layer 4 say of each packet of a capture.

use std::path::Path;
use std::process::Command;

/// The protocols that are looked into.
const LAYERS: [&str; 14] = [
    "_ws.malformed",
    "_ws.expert",
    "frame",
    "eth",
    "ethertype",
    "vlan",
    "ieee8021ad",
    "arp",
    "ip",
    "ipv6",
    "tcp",
    "udp",
    "icmp",
    "icmpv6",
];

/// The checksums whose status is asked for.
const CHECKSUMS: [&str; 5] = ["ip", "tcp", "udp", "icmp", "icmpv6"];

/// What is said of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether a dissector could not make sense of it.
    pub is_malformed: bool,
    /// Of each of [`CHECKSUMS`] the status, comma-separated where there is a quoted packet too.
    statuses: [String; CHECKSUMS.len()],
}

/// 0 is bad, 1 is good, 2 was not looked at, 3 is not there; newer versions write words.
fn is_bad(status: &str) -> bool {
    status == "0" || status == "Bad"
}

impl Verdict {
    /// Return whether a checksum is wrong.
    pub fn has_bad_checksum(&self) -> bool {
        self.statuses.iter().any(|statuses| statuses.split(',').any(is_bad))
    }

    /// Return what is worse than in the verdict `before`. Beside what was bad before anything will do.
    pub fn worse_than(&self, before: &Verdict) -> Option<String> {
        if self.is_malformed && !before.is_malformed {
            return Some("Wireshark: malformed, and was not".to_owned());
        }
        let same = |(before, after): (&str, &str)| before == after || is_bad(before);
        for (name, (before, after)) in CHECKSUMS.iter().zip(before.statuses.iter().zip(&self.statuses)) {
            let pairs = before.split(',').zip(after.split(','));
            if before.split(',').count() != after.split(',').count() || !pairs.into_iter().all(same) {
                return Some(format!("Wireshark: {name}.checksum.status was {before:?}, is {after:?}"));
            }
        }
        None
    }
}

/// Ask tshark; `None`, with a message, where it is not installed.
pub fn tshark(capture: &Path) -> Option<Vec<Verdict>> {
    // Ports are not what they were behind a NAT, and dissectors go by ports: those above layer 4 are off.
    let settings = tempfile::tempdir().expect("a folder");
    let list = match Command::new("tshark").args(["-G", "protocols"]).output() {
        Ok(list) => String::from_utf8_lossy(&list.stdout).into_owned(),
        Err(error) => {
            catena_testing::skip(&format!("tshark cannot be run: {error}"), "install tshark");
            return None;
        }
    };
    let protocols = list.lines().filter_map(|line| line.split('\t').nth(2));
    let disabled: Vec<&str> = protocols.filter(|protocol| !LAYERS.contains(protocol)).collect();
    std::fs::write(settings.path().join("disabled_protos"), disabled.join("\n")).expect("a settings file");
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", settings.path()).args(["-n", "-r"]).arg(capture);
    for option in ["ip.check_checksum", "tcp.check_checksum", "udp.check_checksum"] {
        command.args(["-o", &format!("{option}:TRUE")]);
    }
    for option in ["ip.defragment", "ipv6.defragment", "tcp.desegment_tcp_streams", "tcp.analyze_sequence_numbers"] {
        command.args(["-o", &format!("{option}:FALSE")]);
    }
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-e", "_ws.malformed"]);
    for protocol in CHECKSUMS {
        command.args(["-e", &format!("{protocol}.checksum.status")]);
    }
    let output = command.output().expect("tshark ran a moment ago");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verdict = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        let is_malformed = fields.next().is_some_and(|field| !field.is_empty());
        Verdict { is_malformed, statuses: std::array::from_fn(|_| fields.next().unwrap_or_default()) }
    };
    Some(String::from_utf8_lossy(&output.stdout).lines().map(verdict).collect())
}
