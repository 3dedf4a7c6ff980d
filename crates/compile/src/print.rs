//! A host pipeline as text, as JSON, and as a Graphviz drawing.

use std::fmt;

use catena_functions::Affinity;
use catena_functions::manifest::Manifest;
use catena_plan::returns::Prefix;
use catena_policy::Direction;
use catena_state::Declaration;

use crate::host::{Arm, Host, Link, Lowered, Module, When};

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (side, entry) in ["in", "out"].iter().zip(self.entries) {
            if let Some((module, gate)) = entry {
                writeln!(f, "from {side}: {}{}", self.modules[module].name, gate_name(gate))?;
            }
        }
        for (id, module) in self.modules.iter().enumerate() {
            writeln!(f, "\n{}: {}", module.name, kind(&module.kind))?;
            if let Some((split, why)) = split(&module.kind) {
                writeln!(f, "    {split}, as {why}")?;
            }
            let state = state(&module.kind);
            if !state.is_empty() {
                let text = |object: &Declaration| format!("{} ({})", object.name, object.scope.text());
                writeln!(f, "    keeps {}", state.iter().map(text).collect::<Vec<_>>().join(", "))?;
            }
            if let Lowered::Branch(arms) = &module.kind {
                for arm in arms {
                    writeln!(f, "    {} by gate {}", conditions(&arm.when), arm.gate)?;
                }
            }
            for link in self.links.iter().filter(|link| link.from == id) {
                let to = &self.modules[link.to].name;
                writeln!(f, "    gate {} -> {to}{}", link.gate, gate_name(link.to_gate))?;
            }
        }
        Ok(())
    }
}

fn gate_name(gate: u16) -> String {
    if gate == 0 { String::new() } else { format!(" gate {gate}") }
}

fn kind(kind: &Lowered) -> String {
    match kind {
        Lowered::Function { descriptor, .. } => format!("{} ({})", descriptor.name, descriptor.summary),
        Lowered::Branch(_) => "branch".to_owned(),
        Lowered::Exit(Direction::Forward) => "leaves by side out".to_owned(),
        Lowered::Exit(Direction::Return) => "leaves by side in".to_owned(),
        Lowered::Discard => "dropped by the chain".to_owned(),
        Lowered::Parsed => "drops what is not IPv4, IPv6 or ARP".to_owned(),
    }
}

/// How a function's manifest lets its traffic be split, and why.
fn split(kind: &Lowered) -> Option<(String, String)> {
    let Lowered::Function { descriptor, args, .. } = kind else { return None };
    let Affinity::Manifest { param, .. } = descriptor.affinity else { return None };
    // What is wrong with a manifest is said when the function is built.
    let manifest = Manifest::of(args, param).ok().flatten()?;
    let split = match manifest.affinity() {
        Affinity::None => "any number of instances".to_owned(),
        Affinity::Scope(scope) => format!("several instances by {}", scope.text()),
        Affinity::Single | Affinity::Manifest { .. } => "one instance only".to_owned(),
    };
    Some((split, manifest.reason()))
}

/// What a function keeps, as it is declared with its arguments.
fn state(kind: &Lowered) -> Vec<Declaration> {
    let Lowered::Function { descriptor, args, .. } = kind else { return Vec::new() };
    descriptor.state.iter().map(|object| (descriptor.declared)(args, *object)).collect()
}

/// The kind in one word, for programs.
fn label(kind: &Lowered) -> &'static str {
    match kind {
        Lowered::Function { .. } => "function",
        Lowered::Branch(_) => "branch",
        Lowered::Exit(_) => "exit",
        Lowered::Discard => "discard",
        Lowered::Parsed => "parsed",
    }
}

fn conditions(all: &[When]) -> String {
    if all.is_empty() {
        return "all others".to_owned();
    }
    all.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

fn condition(when: &When) -> String {
    match when {
        When::Filter(filter) => format!("\"{}\"", filter.text),
        When::Attribute { name, values, negated } => {
            let values: Vec<String> = values.iter().map(u16::to_string).collect();
            format!("{name} {} {}", if *negated { "not in" } else { "in" }, values.join(", "))
        }
        When::Split { from, to, .. } => format!("{:.1}% of flows", (to - from) * 100.0),
        When::Returns { destinations, sources } => {
            let list = |networks: &[Prefix]| networks.iter().map(Prefix::to_string).collect::<Vec<_>>().join(", ");
            let mut ways = Vec::new();
            if !destinations.is_empty() {
                ways.push(format!("to {}", list(destinations)));
            }
            if !sources.is_empty() {
                ways.push(format!("from {}", list(sources)));
            }
            ways.join(" or ")
        }
    }
}

impl Host {
    /// Return the pipeline as JSON: modules by index, links between their gates, entries by side.
    pub fn json(&self) -> serde_json::Value {
        let module = |module: &Module| {
            let mut object = serde_json::json!({ "name": module.name, "kind": label(&module.kind) });
            match &module.kind {
                Lowered::Function { descriptor, args, taken, .. } => {
                    object["function"] = descriptor.name.into();
                    object["selected"] = taken.clone().into();
                    let args = args.iter().map(|(name, value)| (name.to_owned(), format!("{value:?}").into()));
                    object["args"] = serde_json::Value::Object(args.collect());
                    let state = state(&module.kind).into_iter().map(|kept| {
                        serde_json::json!({ "name": kept.name, "kind": kept.object.text(), "scope": kept.scope.text(),
                                            "access": kept.access.text() })
                    });
                    object["state"] = state.collect();
                    if let Some((split, why)) = split(&module.kind) {
                        object["instances"] = serde_json::json!({ "split": split, "why": why });
                    }
                }
                Lowered::Branch(arms) => {
                    let arm = |arm: &Arm| serde_json::json!({ "when": conditions(&arm.when), "gate": arm.gate });
                    object["arms"] = arms.iter().map(arm).collect();
                }
                Lowered::Parsed | Lowered::Exit(_) | Lowered::Discard => {}
            }
            object
        };
        let link = |l: &Link| serde_json::json!({ "from": l.from, "gate": l.gate, "to": l.to, "to_gate": l.to_gate });
        let entry =
            |entry: Option<(usize, u16)>| entry.map(|(to, gate)| serde_json::json!({ "to": to, "to_gate": gate }));
        serde_json::json!({
            "modules": self.modules.iter().map(module).collect::<Vec<_>>(),
            "links": self.links.iter().map(link).collect::<Vec<_>>(),
            "entries": { "in": entry(self.entries[0]), "out": entry(self.entries[1]) },
        })
    }

    /// Return the pipeline as a Graphviz drawing.
    pub fn dot(&self) -> String {
        let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut dot = String::from("digraph host {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
        dot.push_str("  edge [fontname=\"sans-serif\", fontsize=10];\n");
        for (side, entry) in ["in", "out"].iter().zip(self.entries) {
            if let Some((module, _)) = entry {
                dot.push_str(&format!("  \"from {side}\" [shape=plaintext];\n"));
                dot.push_str(&format!("  \"from {side}\" -> {};\n", quote(&self.modules[module].name)));
            }
        }
        for module in &self.modules {
            let shape = match module.kind {
                Lowered::Function { .. } => "box",
                Lowered::Branch(_) | Lowered::Parsed => "diamond",
                Lowered::Exit(_) | Lowered::Discard => "plaintext",
            };
            let label = match &module.kind {
                Lowered::Function { descriptor, .. } => format!("{}\\n{}", module.name, descriptor.name),
                _ => module.name.clone(),
            };
            let name = quote(&module.name);
            dot.push_str(&format!("  {name} [shape={shape}, label=\"{}\"];\n", label.replace('"', "\\\"")));
        }
        for link in &self.links {
            let (from, to) = (&self.modules[link.from], &self.modules[link.to]);
            let label = match &from.kind {
                Lowered::Branch(arms) => {
                    let when = arms.iter().filter(|arm| arm.gate == link.gate).map(|arm| conditions(&arm.when));
                    when.collect::<Vec<_>>().join("; ")
                }
                _ if link.gate > 1 => format!("gate {}", link.gate),
                _ => String::new(),
            };
            let style = if link.to_gate == 1 { ", style=dashed" } else { "" };
            let (from, to) = (quote(&from.name), quote(&to.name));
            dot.push_str(&format!("  {from} -> {to} [label={}{style}];\n", quote(&label)));
        }
        dot.push_str("}\n");
        dot
    }
}
