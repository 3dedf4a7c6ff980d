//! Packets that came out against those that went in, one by one.
//!
//! An output packet's *partner* is the input packet of the same time whose bytes are the same but for addresses,
//! ports, ICMP identifiers and checksums, in the packet and in what an ICMP error quotes, and the identification of what is
//! a fragment or may become some. Every output packet
//! must find one, and no input packet is the partner of two: nothing is made up, altered elsewhere or doubled.
//! Where several have the same rest (*twins*), the one that shares an endpoint is taken, and the earlier one.
//!
//! Each checksum must then be as wrong as its partner's, not more and not less: a right one stays right, and a
//! wrong one is not hidden from the receiver. Packets that the capture cut short are held to that too, as what
//! is missing is missing on both sides, and they must be marked as cut as they were.

use std::collections::HashMap;

use super::packets::Packet;
use super::parts::{Parts, Sum};

/// What came of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The place of every output packet's partner in the input.
    pub partners: Vec<Option<usize>>,
    /// Output packets that are not what their partners were.
    pub changed: usize,
    /// Output packets that had to choose among twins.
    pub twins: usize,
    /// Output packets whose partners have a wrong checksum.
    pub wrong: usize,
    /// Output packets whose partners were cut by the capture.
    pub cut: usize,
    /// Input packets that are nobody's partner.
    pub dropped: usize,
    /// What is wrong, with the number of the output packet.
    pub findings: Vec<(usize, String)>,
}

/// What the functions in between may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Endpoints and checksums.
    Translators,
    /// Also stations' addresses and the time to live.
    Routers,
}

/// Compare what came out with what went in.
pub fn compare(input: &[Packet], output: &[Packet], between: Between) -> Comparison {
    let routed = between == Between::Routers;
    let mut waiting: HashMap<(u64, Vec<u8>), Vec<usize>> = HashMap::new();
    for (index, packet) in input.iter().enumerate() {
        let rest = Parts::of(&packet.frame).rest(&packet.frame, routed);
        waiting.entry((packet.time, rest)).or_default().push(index);
    }
    let mut result = Comparison { dropped: input.len(), ..Comparison::default() };
    for (number, packet) in output.iter().enumerate() {
        let parts = Parts::of(&packet.frame);
        let alike =
            waiting.get_mut(&(packet.time, parts.rest(&packet.frame, routed))).filter(|alike| !alike.is_empty());
        let Some(alike) = alike else {
            result.partners.push(None);
            result.findings.push((number, "has no partner among the input packets".to_owned()));
            continue;
        };
        if alike.iter().any(|twin| input[*twin].frame != input[alike[0]].frame) {
            result.twins += 1;
        }
        let partner = alike.remove(likeliest(packet, &parts, alike.iter().map(|index| &input[*index])));
        let before = Parts::of(&input[partner].frame);
        result.partners.push(Some(partner));
        result.dropped -= 1;
        if input[partner].frame != packet.frame {
            result.changed += 1;
        }
        if before.sums.iter().any(|sum| sum.error.is_some_and(|error| error != 0)) {
            result.wrong += 1;
        }
        if input[partner].missing > 0 {
            result.cut += 1;
        }
        let differences = before.sums.iter().zip(&parts.sums).filter_map(|(before, after)| {
            let fields =
                [&input[partner].frame, &packet.frame].map(|frame| [frame[after.place], frame[after.place + 1]]);
            difference(before, after, fields)
        });
        result.findings.extend(differences.map(|what| (number, what)));
        let missing = [input[partner].missing, packet.missing];
        if missing[0] != missing[1] {
            result.findings.push((number, format!("lacked {} bytes, lacks {}", missing[0], missing[1])));
        }
    }
    result
}

/// Return which of the twins is the packet's partner.
fn likeliest<'a>(packet: &Packet, parts: &Parts, twins: impl Iterator<Item = &'a Packet> + Clone) -> usize {
    let unchanged = twins.clone().position(|twin| twin.frame == packet.frame);
    // Of two endpoints a translator leaves one as it is.
    let same = |twin: &Packet, end: usize| {
        parts.ends.iter().all(|ends| twin.frame[ends[end].clone()] == packet.frame[ends[end].clone()])
    };
    let neighbour = || twins.clone().position(|twin| same(twin, 0) || same(twin, 1));
    unchanged.or_else(neighbour).unwrap_or(0)
}

/// Return how a checksum is another than it was; `fields` are its bytes before and after.
fn difference(before: &Sum, after: &Sum, fields: [[u8; 2]; 2]) -> Option<String> {
    if before.error != after.error {
        let text = |error: Option<u16>| error.map_or("absent".to_owned(), |error| format!("wrong by {error:#06x}"));
        return Some(format!("{} checksum was {}, is {}", after.name, text(before.error), text(after.error)));
    }
    // RFC 1624 §3: one's complement has two zeros, and of these the checksum of real data is 0x0000; only UDP
    // writes the other (RFC 768).
    let is_new = fields[1] == [0xff, 0xff] && fields[0] != fields[1];
    (is_new && !after.name.ends_with("UDP")).then(|| format!("{} checksum is 0xffff for 0x0000", after.name))
}
