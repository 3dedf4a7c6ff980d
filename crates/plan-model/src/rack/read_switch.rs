//! The switch of a `rack.toml`.

use std::net::IpAddr;

use catena_policy::{Code, Diagnostic, likely};
use toml::de::DeValue;

use super::section::{Given, Section, read_text, span};
use super::tunnels::{address, wrap};
use super::units::{Measure, written};
use super::{FlowTable, Stages, Switch, SwitchKind};

/// A Tofino's stages (Lemur, §5.1: an Edgecore 100BF-32X), and what a stage holds as published for its
/// match-action units: 80 SRAM blocks, 24 TCAM blocks, 16 logical tables.
pub const TOFINO: Stages = Stages { stages: 12, sram_blocks: 80, tcam_blocks: 24, tables: 16, framework_stages: 2 };
/// A pass through a switch where the file does not say, nanoseconds.
pub const PASS_NS: f64 = 1_000.0;
/// To a server and back where the file does not say, nanoseconds.
pub const BOUNCE_NS: f64 = 10_000.0;
/// Flow entries of a plain switch where the file does not say (E2's switch: Lan's dissertation, §3.6).
pub const ENTRIES: u32 = 2_048;

/// Places of numbers that servers are compared with.
pub struct Ports {
    /// How many ports.
    pub ports: Given<u32>,
    /// Bits per second of one.
    pub port: Given<f64>,
    /// The switch's address.
    pub address: Option<Given<IpAddr>>,
}

/// Read a switch.
pub fn switch(mut section: Section<'_>, functions: &[&str], findings: &mut Vec<Diagnostic>) -> Option<(Switch, Ports)> {
    let name = section.text("name", Some("switch".to_owned()), "a name in quotes", findings);
    let ports = section.count("ports", 1..65_536, None, findings);
    let port = section.amount("port", Measure::Rate, false, None, findings);
    let all = ports.as_ref().zip(port.as_ref()).map(|(n, bps)| f64::from(n.value) * bps.value);
    let capacity = section.amount("capacity", Measure::Rate, false, all.or(Some(0.0)), findings);
    let pass = section.amount("pass", Measure::Time, true, Some(PASS_NS), findings);
    let bounce = section.amount("bounce", Measure::Time, true, Some(BOUNCE_NS), findings);
    let expected = "one of \"plain\", \"pisa\", \"openflow\"";
    let kind = section.text("kind", None, expected, findings)?;
    let (kind, elsewhere) = match kind.value.as_str() {
        "plain" => (plain(&mut section, findings), PISA_KEYS.iter().chain(&OPENFLOW_KEYS)),
        "pisa" => (pisa(&mut section, findings), PLAIN_KEYS.iter().chain(&OPENFLOW_KEYS)),
        "openflow" => (openflow(&mut section, functions, findings), PLAIN_KEYS.iter().chain(&PISA_KEYS)),
        other => {
            let message = format!("there is no kind of switch called `{other}`");
            let finding = Diagnostic::error(Code::Literal, kind.span.unwrap_or_default(), message)
                .label(format!("expected {expected}"));
            findings.push(finding.suggest(likely(other, ["plain", "pisa", "openflow"])));
            return None;
        }
    };
    let elsewhere: Vec<(&str, &str)> = elsewhere.copied().collect();
    let tunnels = kind.as_ref().map(|kind| wrap(&mut section, kind, findings));
    let address = address(&mut section, findings);
    section.finish(&elsewhere, findings);
    let (name, ports, port, capacity, pass, bounce) = (name?, ports?, port?, capacity?, pass?, bounce?);
    if port.value > capacity.value {
        let (fast, all) = (written(port.value, Measure::Rate), written(capacity.value, Measure::Rate));
        let message = format!("a port of {fast} on a switch that forwards {all}");
        let finding = Diagnostic::error(Code::Contradiction, port.span.unwrap_or_default(), message)
            .label("a port is faster than all of the switch");
        findings.push(match capacity.span {
            Some(place) => finding.related(place, "all it can forward"),
            None => finding,
        });
    }
    let made = Switch {
        name: name.value,
        ports: ports.value,
        port_bps: port.value,
        capacity_bps: capacity.value,
        pass_ns: pass.value,
        bounce_ns: bounce.value,
        kind: kind?,
        tunnels: tunnels??,
        address: address.as_ref().map(|address| address.value),
    };
    Some((made, Ports { ports, port, address }))
}

const PLAIN_KEYS: [(&str, &str); 1] = [("entries", "only a switch with kind = \"plain\" has it; a table has its own")];
const PISA_KEYS: [(&str, &str); 5] = [
    ("stages", "only a switch with kind = \"pisa\" has it"),
    ("sram_blocks", "only a switch with kind = \"pisa\" has it"),
    ("tcam_blocks", "only a switch with kind = \"pisa\" has it"),
    ("tables_per_stage", "only a switch with kind = \"pisa\" has it"),
    ("framework_stages", "only a switch with kind = \"pisa\" has it"),
];
const OPENFLOW_KEYS: [(&str, &str); 1] = [("table", "only a switch with kind = \"openflow\" has it")];

fn plain(section: &mut Section<'_>, findings: &mut Vec<Diagnostic>) -> Option<SwitchKind> {
    let entries = section.count("entries", 1..u32::MAX, Some(ENTRIES), findings)?;
    Some(SwitchKind::Plain { entries: entries.value })
}

fn pisa(section: &mut Section<'_>, findings: &mut Vec<Diagnostic>) -> Option<SwitchKind> {
    let stages = section.count("stages", 1..257, Some(TOFINO.stages), findings);
    let sram = section.count("sram_blocks", 0..4_097, Some(TOFINO.sram_blocks), findings);
    let tcam = section.count("tcam_blocks", 0..4_097, Some(TOFINO.tcam_blocks), findings);
    let tables = section.count("tables_per_stage", 1..4_097, Some(TOFINO.tables), findings);
    let own = section.count("framework_stages", 0..257, Some(TOFINO.framework_stages), findings);
    let (stages, sram, tcam, tables, own) = (stages?, sram?, tcam?, tables?, own?);
    if own.value >= stages.value {
        let message =
            format!("{} of {} stages for steering and tags leave none for functions", own.value, stages.value);
        let place = own.span.or(stages.span).unwrap_or_default();
        let mut finding = Diagnostic::error(Code::Contradiction, place, message);
        if let (Some(_), Some(other)) = (own.span, stages.span) {
            finding = finding.related(other, "all there are");
        }
        findings.push(finding);
    }
    Some(SwitchKind::Pisa(Stages {
        stages: stages.value,
        sram_blocks: sram.value,
        tcam_blocks: tcam.value,
        tables: tables.value,
        framework_stages: own.value,
    }))
}

fn openflow(section: &mut Section<'_>, functions: &[&str], findings: &mut Vec<Diagnostic>) -> Option<SwitchKind> {
    let mut tables: Vec<FlowTable> = Vec::new();
    let expected = "tables in the order a packet passes them: `[[switch.table]]` for each";
    let values = section.list("table", expected, findings);
    if values.is_empty() {
        section.missing("table", expected, findings);
    }
    let mut names: Vec<Given<String>> = Vec::new();
    for value in values {
        let DeValue::Table(table) = value.get_ref() else {
            let finding = Diagnostic::error(Code::WrongKind, span(value.span()), "`table` is not a table");
            findings.push(finding.label("expected `[[switch.table]]`"));
            continue;
        };
        let mut section = Section::new("a flow table", table, span(value.span()));
        let name = section.text("name", Some(format!("table{}", tables.len())), "a name in quotes", findings);
        let entries = section.count("entries", 1..u32::MAX, None, findings);
        let mut held = Vec::new();
        for value in section.list("functions", "a list of functions' names", findings) {
            let Some(function) = read_text(value, "functions", "a function's name in quotes", findings) else {
                continue;
            };
            if !functions.contains(&function.value.as_str()) {
                let message = format!("there is no function `{}`", function.value);
                let finding = Diagnostic::error(Code::UnknownFunction, function.span.unwrap_or_default(), message);
                findings.push(finding.suggest(likely(&function.value, functions.iter().copied())));
            }
            held.push(function.value);
        }
        section.finish(&[], findings);
        let (Some(name), Some(entries)) = (name, entries) else { continue };
        if let Some(other) = names.iter().find(|other| other.value == name.value) {
            let message = format!("two flow tables are called `{}`", name.value);
            let place = name.span.unwrap_or_default();
            findings.push(
                Diagnostic::error(Code::DuplicateName, place, message)
                    .related(other.span.unwrap_or_default(), "the other one"),
            );
        }
        tables.push(FlowTable { name: name.value.clone(), functions: held, entries: entries.value });
        names.push(name);
    }
    Some(SwitchKind::OpenFlow { tables })
}
