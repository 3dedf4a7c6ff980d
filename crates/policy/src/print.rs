//! The policy graph as text, and as a drawing for Graphviz.

use std::fmt::{self, Write as _};

use crate::graph::{Chain, Condition, Direction, Edge, End, PolicyGraph, Promise, Relation, Subject, Unparsed};
use crate::value::{Bits, Nanos, Value};

/// As in a chain file: `2Gbps..10Gbps within 45us`.
impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.t_min_bps, self.t_max_bps) {
            (0, None) => f.write_str("bulk")?,
            (low, Some(high)) if low == high => write!(f, "{}", Bits(low))?,
            (0, Some(high)) => write!(f, "0..{}", Bits(high))?,
            (low, None) => write!(f, "{}..", Bits(low))?,
            (low, Some(high)) => write!(f, "{}..{}", Bits(low), Bits(high))?,
        }
        match self.d_max_ns {
            Some(d) => write!(f, " within {}", Nanos(d)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(filter) => write!(f, "{}", Value::Text(filter.text.clone())),
            Self::Attribute { name, values, negated } => {
                let name = name.as_deref().unwrap_or("?");
                write!(f, "{name} {} {}", if *negated { "!=" } else { "==" }, values.join("|"))
            }
            Self::Split { branch, from, to } => {
                write!(f, "hash{branch} {}..{}", exact_part(*from), exact_part(*to))
            }
        }
    }
}

/// A part with four digits, or as many as it takes to read the same number back: plans are told apart by this text.
#[must_use]
pub fn exact_part(part: f64) -> String {
    let short = format!("{part:.4}");
    if short.parse() == Ok(part) { short } else { part.to_string() }
}

/// What stands on the edge: conditions, share and rate.
fn label(edge: &Edge) -> String {
    let mut parts: Vec<String> = edge.when.iter().map(ToString::to_string).collect();
    if let Some(share) = edge.share {
        parts.push(format!("~{:.4}%", share * 100.0));
    }
    if let Some(rate) = edge.rate_bps {
        parts.push(format!("{rate:.0}bps"));
    }
    parts.join(", ")
}

impl fmt::Display for PolicyGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in &self.classes {
            write!(f, "class {} = \"{}\"", class.name, class.filter.text)?;
            match &class.back {
                Some(back) => writeln!(f, " back \"{}\"", back.text)?,
                None => writeln!(f)?,
            }
        }
        for chain in &self.chains {
            self.chain(f, chain)?;
        }
        for relation in &self.relations {
            self.relation(f, relation)?;
        }
        Ok(())
    }
}

impl PolicyGraph {
    fn chain(&self, f: &mut fmt::Formatter<'_>, chain: &Chain) -> fmt::Result {
        write!(f, "chain {}", chain.name)?;
        for (i, id) in chain.classes.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { " for " } else { ", " }, self.class_name(*id))?;
        }
        writeln!(f, " promise {}", chain.promise)?;
        if chain.unparsed == Unparsed::Drop {
            writeln!(f, "    unparsed = drop")?;
        }
        for node in &chain.nodes {
            write!(f, "    {} = {}(", node.name, node.function)?;
            for (i, (name, value)) in node.args.iter().enumerate() {
                write!(f, "{}{name} = {value}", if i == 0 { "" } else { ", " })?;
            }
            writeln!(f, ")")?;
        }
        for edge in &chain.edges {
            let direction = if edge.direction == Direction::Forward { "forward" } else { "return " };
            write!(f, "    {direction} {} -> {}", chain.end_name(edge.from), chain.end_name(edge.to))?;
            match label(edge) {
                text if text.is_empty() => writeln!(f)?,
                text => writeln!(f, "  [{text}]")?,
            }
        }
        Ok(())
    }

    fn relation(&self, f: &mut fmt::Formatter<'_>, relation: &Relation) -> fmt::Result {
        let (word, weighted) = match relation {
            Relation::Priority(order) => {
                let names: Vec<_> = order.iter().map(|s| self.subject_name(*s)).collect();
                return writeln!(f, "priority {}", names.join(" > "));
            }
            Relation::Cpu(weighted) => ("cpu", weighted),
            Relation::Throughput(weighted) => ("throughput", weighted),
            Relation::Share(weighted) => ("share", weighted),
        };
        let names: Vec<_> = weighted.iter().map(|(s, _)| self.subject_name(*s)).collect();
        let weights: Vec<_> = weighted.iter().map(|(_, w)| w.to_string()).collect();
        writeln!(f, "{word} {} = {}", names.join(" : "), weights.join(" : "))
    }

    fn class_name(&self, id: u32) -> &str {
        self.classes.get(id as usize).map_or("?", |c| c.name.as_str())
    }

    /// The name of what a relation is about.
    #[must_use]
    pub fn subject_name(&self, subject: Subject) -> &str {
        match subject {
            Subject::Class(id) => self.class_name(id),
            Subject::Chain(id) => self.chains.get(id as usize).map_or("?", |c| c.name.as_str()),
        }
    }

    /// The graph in Graphviz' language: one cluster a chain, return edges dashed.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut dot = String::from(
            "digraph policy {\n    rankdir = LR;\n    node [shape = box, style = rounded, fontname = \"sans-serif\"];\n    edge [fontname = \"sans-serif\", fontsize = 10];\n",
        );
        for (number, chain) in self.chains.iter().enumerate() {
            // Writing to a string never fails.
            let _ = self.cluster(&mut dot, number, chain);
        }
        dot.push_str("}\n");
        dot
    }

    fn cluster(&self, dot: &mut String, number: usize, chain: &Chain) -> fmt::Result {
        let classes: Vec<_> = chain.classes.iter().map(|id| self.class_name(*id)).collect();
        let classes = if classes.is_empty() { "all other traffic".to_owned() } else { classes.join(", ") };
        let unparsed = if chain.unparsed == Unparsed::Drop { ", unparsed = drop" } else { "" };
        let title = format!("{} for {classes}: {}{unparsed}", chain.name, chain.promise);
        writeln!(dot, "    subgraph cluster_{number} {{\n        label = {};", quoted(&title))?;
        let id = |end: End| match end {
            End::In => format!("c{number}_in"),
            End::Out => format!("c{number}_out"),
            End::Drop => format!("c{number}_drop"),
            End::Node(id) => format!("c{number}_n{id}"),
        };
        for end in [End::In, End::Out, End::Drop] {
            if chain.edges.iter().any(|e| e.from == end || e.to == end) {
                writeln!(dot, "        {} [label = \"{}\", shape = plain];", id(end), chain.end_name(end))?;
            }
        }
        for node in &chain.nodes {
            let text = format!("{}\n{}", node.name, node.function);
            writeln!(dot, "        {} [label = {}];", id(End::Node(node.id)), quoted(&text))?;
        }
        for edge in &chain.edges {
            let style = if edge.direction == Direction::Return { ", style = dashed" } else { "" };
            let text = quoted(&label(edge));
            writeln!(dot, "        {} -> {} [label = {text}{style}];", id(edge.from), id(edge.to))?;
        }
        writeln!(dot, "    }}")
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
