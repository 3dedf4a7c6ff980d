//! From the text of `rack.toml` to a [`Rack`], with all that is wrong in it.

use catena_policy::{Code, Diagnostic, Severity, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::read_server::{Servers, server};
use super::read_switch::{Ports, switch};
use super::section::{Given, Section, span};
use super::tunnels;
use super::units::{Measure, written};
use super::{Rack, Switch};
use crate::plain;

/// Most bytes of a rack's file.
pub const MAX_SOURCE: usize = 1 << 20;
/// More mistakes of writing than these are not told one by one.
const MOST_TOLD: usize = 5;
/// Most servers of a rack.
pub const MAX_SERVERS: u32 = 4_096;
/// Cores of a server at most, those for steering among them.
pub const MAX_CORES: u32 = 1_024;
/// Bytes of a packet where neither class nor rack says: what Lemur's experiments send.
pub const PACKET_BYTES: f64 = 1_500.0;

/// What became of a rack's file.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The rack, unless something is wrong.
    pub rack: Option<Rack>,
    /// What was found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Read the text of a `rack.toml`. `functions` are the names that an OpenFlow table may list.
#[must_use]
pub fn parse(source: &str, functions: &[&str]) -> Parsed {
    let mut findings = Vec::new();
    if source.len() > MAX_SOURCE {
        let message = format!("a rack's file has at most {MAX_SOURCE} bytes, and this one {}", source.len());
        findings.push(Diagnostic::error(Code::TooLarge, Span::default(), message));
        return Parsed { rack: None, diagnostics: findings };
    }
    let (document, errors) = DeTable::parse_recoverable(source);
    // What is no rack at all is wrong in every line.
    let told = if errors.len() > MOST_TOLD { 1 } else { errors.len() };
    for error in errors.iter().take(told) {
        let place = error.span().map_or_else(Span::default, span);
        let message = if told < errors.len() {
            "this is not a rack, which is TOML: `key = value` lines under `[switch]` and `[[server]]`".to_owned()
        } else {
            plain::toml(error.message())
        };
        findings.push(Diagnostic::error(Code::Syntax, place, message));
    }
    // Half a file would only seem to lack things.
    let rack = if findings.is_empty() { read(&document, source, functions, &mut findings) } else { None };
    findings.sort_by_key(|finding| (finding.span.start, finding.span.end));
    let wrong = findings.iter().any(|finding| finding.severity == Severity::Error);
    Parsed { rack: rack.filter(|_| !wrong), diagnostics: findings }
}

fn read(
    document: &Spanned<DeTable<'_>>,
    source: &str,
    functions: &[&str],
    findings: &mut Vec<Diagnostic>,
) -> Option<Rack> {
    // What the file as a whole lacks is said at its first line.
    let first = Span::new(0, source.lines().next().map_or(0, str::len));
    let mut top = Section::new("a rack", document.get_ref(), first);
    let name = top.text("name", Some("rack".to_owned()), "a name in quotes", findings);
    let packet_bytes = top.count("packet_bytes", 64..65_536, Some(PACKET_BYTES as u32), findings);
    let switch = match top.find("switch").map(|value| (value, value.get_ref())) {
        None => None,
        Some((value, DeValue::Table(table))) => {
            switch(Section::new("a switch", table, header(source, value)), functions, findings)
        }
        Some((value, _)) => {
            not_a_table(value, "switch", "a table: `[switch]`", findings);
            None
        }
    };
    let mut servers = Servers::default();
    for value in top.list("server", "tables: `[[server]]` for each", findings) {
        match value.get_ref() {
            DeValue::Table(table) => {
                server(Section::new("a server", table, header(source, value)), &mut servers, findings);
            }
            _ => not_a_table(value, "server", "a table: `[[server]]`", findings),
        }
    }
    if servers.servers.is_empty() && !findings.iter().any(|finding| finding.severity == Severity::Error) {
        top.missing("server", "functions need at least one, as `[[server]]`", findings);
    }
    let elsewhere = [
        ("servers", "one server is `[[server]]`; `count = 24` in it makes 24"),
        ("nics", "network cards belong to a server: put this below its `[[server]]`"),
    ];
    let place = top.find("switch").map_or(first, |value| header(source, value));
    top.finish(&elsewhere, findings);
    if let Some((switch, ports)) = &switch {
        joined(switch, ports, &servers, findings);
    }
    let bytes = packet_bytes.map_or(PACKET_BYTES, |given| f64::from(given.value));
    let mut addresses = servers.addresses;
    let own = switch.as_ref().and_then(|(switch, ports)| Some((switch.name.clone(), ports.address.clone()?)));
    addresses.extend(own);
    let rack = Rack {
        name: name.map_or_else(String::new, |given| given.value),
        servers: servers.servers,
        switch: switch.map(|(switch, _)| switch),
        packet_bytes: bytes,
    };
    tunnels::judge(&rack, &addresses, place, findings);
    Some(rack)
}

/// Where a table begins: its header, rather than all that is in it.
fn header(source: &str, value: &Spanned<DeValue<'_>>) -> Span {
    let range = value.span();
    let line = source.get(range.start..range.end).and_then(|text| text.lines().next()).map_or(0, str::len);
    Span::new(range.start, range.start + line)
}

fn not_a_table(value: &Spanned<DeValue<'_>>, key: &str, expected: &str, findings: &mut Vec<Diagnostic>) {
    let finding = Diagnostic::error(Code::WrongKind, span(value.span()), format!("`{key}` is not a table"));
    findings.push(finding.label(format!("expected {expected}")));
}

/// What switch and servers say of each other.
fn joined(switch: &Switch, ports: &Ports, servers: &Servers, findings: &mut Vec<Diagnostic>) {
    if let Some((name, place)) = servers.names.iter().find(|(name, _)| *name == switch.name) {
        let message = format!("a server and the switch are both called `{name}`");
        let finding = Diagnostic::error(Code::DuplicateName, *place, message);
        findings.push(finding.help("plans tell devices by their names: give the server another one"));
    }
    let cards: usize = servers.servers.iter().map(|s| s.nics.len() + s.smart_nics.len()).sum();
    if cards > switch.ports as usize {
        let message = format!("{cards} network cards do not fit {} ports", switch.ports);
        let mut finding = Diagnostic::error(Code::Contradiction, ports.ports.span.unwrap_or_default(), message)
            .label(format!("`{}` has {} ports", switch.name, switch.ports));
        for (place, cards) in &servers.cards {
            finding = finding.related(*place, format!("{cards} of the cards"));
        }
        findings.push(finding.note("every card of a server takes a port of the switch, and the outside needs one too"));
    } else if cards == switch.ports as usize {
        let message = format!("the servers' network cards take all ports of the switch: {cards} of {}", switch.ports);
        let finding = Diagnostic::warning(Code::Contradiction, ports.ports.span.unwrap_or_default(), message);
        findings.push(finding.label("none is left for the outside"));
    }
    for Given { value, span } in &servers.rates {
        if *value > switch.port_bps {
            let (rate, port) = (written(*value, Measure::Rate), written(switch.port_bps, Measure::Rate));
            let message = format!("a network card of {rate} on a port of {port}");
            let finding = Diagnostic::error(Code::Contradiction, span.unwrap_or_default(), message)
                .label(format!("the link would carry {port}"));
            findings.push(match ports.port.span {
                Some(place) => finding.related(place, "the ports' rate"),
                None => finding,
            });
        }
    }
}
