//! What a planner must know of a function beside its cost: where it can run, and how it may be split.

use catena_policy::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::returns::Returns;

/// The functions that chains may name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// One entry a function; names are unique.
    pub functions: Vec<Traits>,
    /// What holds instead of a function that was given certain arguments.
    #[serde(default)]
    pub particular: Vec<Particular>,
    /// By which addresses packets on the way back show that they are of a function that was given certain arguments.
    #[serde(default)]
    pub returning: Vec<Returning>,
}

/// What holds of a function that was given a certain argument, such as a description of its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Particular {
    /// The argument.
    pub argument: String,
    /// What was given.
    pub value: Value,
    /// What holds then; the function is the one of this name.
    pub traits: Traits,
}

/// The addresses of packets on the way back that are a function's doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Returning {
    /// The function.
    pub function: String,
    /// What it was given.
    pub args: Vec<(String, Value)>,
    /// The addresses.
    pub returns: Returns,
}

impl Catalogue {
    /// The function called `name`, letter by letter.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Traits> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// The function called `name`, given `args`.
    #[must_use]
    pub fn find_with(&self, name: &str, args: &[(String, Value)]) -> Option<&Traits> {
        let given = |one: &&Particular| args.iter().any(|(n, value)| *n == one.argument && *value == one.value);
        let particular = self.particular.iter().filter(|one| one.traits.name == name).find(given);
        particular.map(|one| &one.traits).or_else(|| self.find(name))
    }

    /// By which addresses packets on the way back show that they are of the function called `name`, given `args`.
    #[must_use]
    pub fn returns(&self, name: &str, args: &[(String, Value)]) -> Returns {
        let given = |one: &&Returning| one.function == name && one.args == args;
        self.returning.iter().find(given).map(|one| one.returns.clone()).unwrap_or_default()
    }
}

/// A kind of device that can run functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// Cores of a server.
    Server,
    /// A switch programmed in P4 (PISA).
    Pisa,
    /// A network card that runs eBPF.
    SmartNic,
    /// A switch with fixed tables, programmed by OpenFlow.
    OpenFlow,
}

/// What a function allows a planner to do with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traits {
    /// As chain files spell it.
    pub name: String,
    /// Where it can run.
    pub platforms: Vec<Platform>,
    /// Which packets must meet the same instance.
    pub affinity: Affinity,
    /// What it remembers between packets.
    pub memory: Memory,
    /// The header fields that differ between its inner side, where forward packets enter, and its outer one; stated for forward
    /// packets.
    #[serde(default)]
    pub rewrites: Fields,
    /// What it takes of a PISA switch; empty if it cannot run on one or takes nothing.
    pub tables: Vec<Table>,
    /// What it takes of an OpenFlow switch, if it can run on one.
    pub openflow: Option<OpenFlowUse>,
    /// What its cost grows with, and which argument tells how much of it there is.
    pub size: Option<Size>,
    /// Where all this comes from, when it is not the library: a paper's title and table.
    pub source: Option<String>,
}

impl Traits {
    /// Whether it can run on `platform`.
    #[must_use]
    pub fn runs_on(&self, platform: Platform) -> bool {
        self.platforms.contains(&platform)
    }
}

/// Which packets must meet the same instance when there are several (E2's affinity constraint, Lan's
/// dissertation, §3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Affinity {
    /// Any packet may meet any instance.
    Any,
    /// Packets that agree in these header fields meet the same instance.
    Fields(Fields),
    /// There can be one instance only.
    Single,
}

impl Affinity {
    /// Whether traffic that was split so that packets equal in `self` stay together is already split well
    /// enough for `next`: packets that `next` wants together agree in all fields that `self` looks at.
    #[must_use]
    pub fn satisfies(self, next: Affinity) -> bool {
        match (self, next) {
            (_, Affinity::Any) => true,
            (Affinity::Fields(split), Affinity::Fields(wanted)) => split.0 & !wanted.0 == 0,
            _ => false,
        }
    }
}

/// A set of header fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields(pub u8);

impl Fields {
    /// None.
    pub const NONE: Fields = Fields(0);
    /// Source address.
    pub const SOURCE: Fields = Fields(1);
    /// Destination address.
    pub const DESTINATION: Fields = Fields(2);
    /// Source port.
    pub const SOURCE_PORT: Fields = Fields(4);
    /// Destination port.
    pub const DESTINATION_PORT: Fields = Fields(8);
    /// Protocol.
    pub const PROTOCOL: Fields = Fields(16);
    /// All five.
    pub const FIVE_TUPLE: Fields = Fields(31);

    /// The fields of both.
    #[must_use]
    pub const fn and(self, other: Fields) -> Fields {
        Fields(self.0 | other.0)
    }
}

/// What a function remembers between packets, which decides whether it may be replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Nothing.
    None,
    /// State of which every part belongs to packets of one affinity group: replicas never share it.
    PerGroup,
    /// State that all packets share: replicas need it in an external store.
    Shared,
}

/// How a table matches, which decides what memory it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Equality: hashed, in SRAM.
    Exact,
    /// Value and mask: in TCAM.
    Ternary,
    /// Longest prefix: in TCAM.
    Prefix,
    /// Range of numbers: in TCAM.
    Range,
    /// No table memory: always the same action.
    None,
}

/// A match-action table of a function on a PISA switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Unique in the function.
    pub name: String,
    /// How it matches.
    pub matching: Match,
    /// Bits of its key.
    pub key_bits: u32,
    /// Bits of its action data.
    pub action_bits: u32,
    /// Entries whatever the size.
    pub entries: u32,
    /// Entries more for each unit of the function's [`Size`].
    pub entries_per_unit: f64,
    /// Indices of tables of the same function whose results it needs (a stage further at least).
    pub after: Vec<usize>,
}

/// What a function takes of an OpenFlow switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenFlowUse {
    /// Flow entries whatever the size.
    pub entries: u32,
    /// Entries more for each unit of the function's [`Size`].
    pub entries_per_unit: f64,
}

/// What a function's cost grows with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// What is counted: `rules`, `entries`, `routes`, `bytes`.
    pub unit: String,
    /// The argument that tells: a number, or a file whose lines count.
    pub argument: Option<String>,
    /// How much, where the chain file does not tell.
    pub usual: f64,
}

impl Size {
    /// How much of it a function with these arguments has: the argument's number, the elements of its list, the lines of its
    /// file but for empty ones and comments (`#`), 1 for a text, or what is usual. A file in a list counts by its lines.
    #[must_use]
    pub fn of(&self, args: &[(String, Value)]) -> f64 {
        let value = args.iter().find(|(name, _)| Some(name) == self.argument.as_ref()).map(|(_, value)| value);
        match value {
            Some(Value::Integer(n)) => *n as f64,
            Some(Value::Float(n)) => *n,
            Some(Value::Size(bytes)) => *bytes as f64,
            Some(Value::List(values)) => values.iter().map(lines).sum(),
            Some(value @ (Value::File { .. } | Value::Text(_))) => lines(value),
            _ => self.usual,
        }
    }
}

/// The lines of a file but for empty ones and comments; 1 for anything else.
fn lines(value: &Value) -> f64 {
    let Value::File { text, .. } = value else { return 1.0 };
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_from_arguments() {
        let size = Size { unit: "rules".into(), argument: Some("rules".into()), usual: 5.0 };
        let given = |value| size.of(&[("other".into(), Value::Integer(9)), ("rules".into(), value)]);
        assert_eq!(given(Value::Integer(3)), 3.0);
        assert_eq!(given(Value::List(vec![Value::Bool(true); 4])), 4.0);
        let text = "x\n\n  # a comment\ny # behind a rule\n";
        let file = Value::File { path: "a".into(), text: text.into() };
        assert_eq!(given(file.clone()), 2.0);
        assert_eq!(given(Value::List(vec![file, Value::Text("deny udp".into())])), 3.0);
        assert_eq!(given(Value::Text("allow tcp".into())), 1.0);
        assert_eq!(size.of(&[]), 5.0);
    }
}
