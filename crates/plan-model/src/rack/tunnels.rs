//! What a `rack.toml` says of the tunnels between switch and cards.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use catena_policy::{Code, Diagnostic, Span, likely};

use super::section::{Given, Section};
use super::{Rack, SwitchKind, Wrap};

/// A device's address, and where it stands in the file.
pub type Addresses = Vec<(String, Given<IpAddr>)>;

/// Read `address`, which a table may have.
pub fn address(section: &mut Section<'_>, findings: &mut Vec<Diagnostic>) -> Option<Given<IpAddr>> {
    section.find("address")?;
    let expected = "an address of IPv4 or IPv6 in quotes";
    let Given { value: text, span } = section.text("address", None, expected, findings)?;
    match text.parse() {
        Ok(value) => Some(Given { value, span }),
        Err(_) => {
            let finding = Diagnostic::error(Code::Literal, span.unwrap_or_default(), "`address` is none");
            findings.push(finding.label(format!("expected {expected}")));
            None
        }
    }
}

/// Read how packets between a switch of this kind and the cards say where in their chain they are.
pub fn wrap(section: &mut Section<'_>, kind: &SwitchKind, findings: &mut Vec<Diagnostic>) -> Option<Wrap> {
    let is_openflow = matches!(kind, SwitchKind::OpenFlow { .. });
    let usual = if is_openflow { "vlan" } else { "nsh" };
    let expected = "one of \"nsh\", \"vlan\", \"vxlan\"";
    let given = section.text("tunnels", Some(usual.to_owned()), expected, findings)?;
    let place = given.span.unwrap_or_default();
    match given.value.as_str() {
        "nsh" if is_openflow => {
            let finding = Diagnostic::error(Code::Contradiction, place, "an OpenFlow switch knows no NSH");
            findings.push(finding.label("expected \"vlan\" or \"vxlan\""));
            None
        }
        "nsh" => Some(Wrap::Nsh),
        "vlan" => Some(Wrap::Vlan),
        "vxlan" => Some(Wrap::Vxlan),
        other => {
            let message = format!("there are no tunnels called `{other}`");
            let finding = Diagnostic::error(Code::Literal, place, message).label(format!("expected {expected}"));
            findings.push(finding.suggest(likely(other, ["nsh", "vlan", "vxlan"])));
            None
        }
    }
}

/// The address that stands `n` behind another one; None: there are not so many.
pub fn behind(address: IpAddr, n: u32) -> Option<IpAddr> {
    match address {
        IpAddr::V4(first) => first.to_bits().checked_add(n).map(|bits| Ipv4Addr::from_bits(bits).into()),
        IpAddr::V6(first) => first.to_bits().checked_add(n.into()).map(|bits| Ipv6Addr::from_bits(bits).into()),
    }
}

/// Whether tunnels of IP have two ends each, and no two ends are one.
pub fn judge(rack: &Rack, given: &Addresses, switch: Span, findings: &mut Vec<Diagnostic>) {
    for (n, (name, address)) in given.iter().enumerate() {
        let place = address.span.unwrap_or_default();
        if let Some((other, first)) = given.iter().take(n).find(|(_, other)| other.value == address.value) {
            let message = format!("`{other}` and `{name}` have the address {}", address.value);
            let finding = Diagnostic::error(Code::DuplicateName, place, message);
            findings.push(finding.related(first.span.unwrap_or_default(), "the other one"));
        }
    }
    let Some(own) = rack.switch.as_ref().filter(|own| own.tunnels == Wrap::Vxlan) else { return };
    let known = rack.addresses();
    let cards = rack.servers.iter().flat_map(|server| {
        let names = server.nics.iter().map(|nic| &nic.name).chain(server.smart_nics.iter().map(|nic| &nic.name));
        names.map(move |card| format!("{}.{card}", server.name))
    });
    let without = cards.chain([own.name.clone()]).find(|name| !known.contains_key(name));
    if let Some(name) = without {
        let finding = Diagnostic::error(Code::MissingKey, switch, format!("`{name}` has no address"));
        let finding = finding.label("tunnels of VXLAN begin and end at addresses of IP");
        findings.push(finding.help("write `address = \"10.0.0.1\"` for the switch and each card"));
    }
}
