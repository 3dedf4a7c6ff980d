//! Where the layer parser and tshark may differ, and why.

use super::tshark::Frame;
use catena_packet::wire::number::proto;
use catena_packet::wire::{FlowKey, Layers, Malformed, Net, ports};

/// One frame as both read it.
#[derive(Debug)]
pub struct Case<'a> {
    pub ours: Result<Layers, Malformed>,
    pub theirs: &'a Frame,
    /// Whether the capture kept only the beginning of the frame.
    pub is_cut: bool,
    /// What differs, if both read the frame.
    pub fields: Vec<&'static str>,
}

impl<'a> Case<'a> {
    pub fn new(frame: &[u8], on_wire: usize, ours: Result<Layers, Malformed>, theirs: &'a Frame) -> Self {
        let fields = ours.map_or_else(|_| Vec::new(), |layers| differing(frame, &layers, theirs));
        Case { ours, theirs, is_cut: on_wire > frame.len(), fields }
    }

    /// Say whether the two differ: in a field, or in whether something is wrong with the frame at all.
    pub fn difference(&self) -> Option<&[&'static str]> {
        let agree = self.fields.is_empty() && self.ours.is_err() == self.theirs.complaint.is_some();
        (!agree).then_some(&self.fields)
    }

    fn dropped_for(&self, reasons: &[Malformed]) -> bool {
        self.ours.is_err_and(|malformed| reasons.contains(&malformed))
    }

    fn passed_as(&self, test: impl Fn(&Layers) -> bool) -> bool {
        self.ours.as_ref().is_ok_and(test)
    }

    fn only_ports_differ(&self) -> bool {
        self.fields == ["ports"]
    }
}

fn differing(frame: &[u8], layers: &Layers, theirs: &Frame) -> Vec<&'static str> {
    let key = FlowKey::read(frame, layers);
    let net = theirs.protocols.iter().find_map(|protocol| match protocol.as_str() {
        "ip" => Some(Net::Ipv4),
        "ipv6" => Some(Net::Ipv6),
        "arp" => Some(Net::Arp),
        _ => None,
    });
    let checks = [
        ("net", net.unwrap_or(Net::Other) == layers.net),
        ("src", key.map(|key| key.src().ip()) == theirs.src),
        ("dst", key.map(|key| key.dst().ip()) == theirs.dst),
        ("proto", key.map(|key| key.proto()) == theirs.proto),
        ("tagged", layers.has(Layers::VLAN) == theirs.tagged),
        ("fragment", layers.has(Layers::FRAGMENT) == theirs.fragment),
        ("later", layers.has(Layers::LATER) == theirs.later),
        ("ports", ports(frame, layers) == theirs.ports),
    ];
    checks.into_iter().filter(|(_, same)| !same).map(|(field, _)| field).collect()
}

/// A difference that is meant to be.
pub struct Rule {
    pub covers: fn(&Case) -> bool,
    reason: &'static str,
}

impl Rule {
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

pub const RULES: &[Rule] = &[
    Rule {
        reason: "dropped: the capture cut the frame; it may have been whole on the wire, which tshark allows for",
        covers: |case| case.is_cut && case.ours.is_err(),
    },
    Rule {
        reason: "dropped: tshark looks at lengths of fragments only when it reassembles, which is off",
        covers: |case| {
            let reasons = [Malformed::FragmentLength, Malformed::FragmentOverrun];
            case.theirs.fragment && case.dropped_for(&reasons)
        },
    },
    Rule {
        reason: "dropped: tshark does not ask whether a fragment hides or overwrites a header",
        covers: |case| {
            let reasons = [Malformed::FragmentFirst, Malformed::FragmentDeep, Malformed::FragmentTiny];
            case.theirs.fragment && case.dropped_for(&reasons)
        },
    },
    Rule {
        reason: "dropped: tshark takes an authentication header of 8 bytes; the shortest of RFC 4302 has 12",
        covers: |case| case.theirs.has("ah") && case.dropped_for(&[Malformed::AuthenticationTruncated]),
    },
    Rule {
        reason: "passed: tshark reads on into the message and objects to that",
        covers: |case| {
            case.fields.is_empty()
                && case
                    .passed_as(|layers| matches!(layers.proto, proto::ICMP | proto::ICMPV6) || layers.net == Net::Arp)
        },
    },
    Rule {
        reason: "passed: tshark reads the options and objects to one; it may stop there, before the ports",
        covers: |case| {
            (case.fields.is_empty() || case.only_ports_differ())
                && case.theirs.complaint.is_some()
                && case.passed_as(|layers| layers.has(Layers::OPTIONS) || layers.payload - layers.l4 > 20)
        },
    },
    Rule {
        reason: "passed: tshark gives the ports of the packet that an ICMP error quotes",
        covers: |case| {
            case.only_ports_differ() && case.passed_as(|layers| matches!(layers.proto, proto::ICMP | proto::ICMPV6))
        },
    },
    Rule {
        reason: "passed: tshark gives the ports of the packet within IP in IP",
        covers: |case| {
            case.only_ports_differ() && case.passed_as(|layers| matches!(layers.proto, proto::IPV4 | proto::IPV6))
        },
    },
];
