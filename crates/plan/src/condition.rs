//! What decides whether a packet takes an edge, as data: a controller, or a back end, reads it without a parser of its own.
//!
//! It says what the policy graph does ([`catena_policy::Condition`]) without what filters are compiled to. Text is a view of it,
//! the one that `catena show` has.

use std::fmt;

use catena_policy::{Value, exact_part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition of an edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// The packet matches this filter, in tcpdump's syntax, as the filters of entrances.
    Filter(String),
    /// A function tagged the packet, or let it out by that gate.
    Attribute {
        /// What it is called; absent: the function is not known, and the file gives no name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Any of these values.
        values: Vec<String>,
        /// Any value but these.
        negated: bool,
    },
    /// The flow's hash with `branch` as its salt, as a number from 0 to 1, lies in `from..to`.
    Split {
        /// Number of the branch in its chain; a two-way path has the same one in both directions.
        branch: u32,
        /// Lower end, included.
        from: f64,
        /// Upper end, excluded.
        to: f64,
    },
}

impl From<&catena_policy::Condition> for Condition {
    fn from(condition: &catena_policy::Condition) -> Condition {
        match condition {
            catena_policy::Condition::Filter(filter) => Condition::Filter(filter.text.clone()),
            catena_policy::Condition::Attribute { name, values, negated } => {
                Condition::Attribute { name: name.clone(), values: values.clone(), negated: *negated }
            }
            &catena_policy::Condition::Split { branch, from, to } => Condition::Split { branch, from, to },
        }
    }
}

/// As `catena show` writes conditions of edges.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Filter(text) => write!(f, "{}", Value::Text(text.clone())),
            Condition::Attribute { name, values, negated } => {
                let (name, is) = (name.as_deref().unwrap_or("?"), if *negated { "!=" } else { "==" });
                write!(f, "{name} {is} {}", values.join("|"))
            }
            Condition::Split { branch, from, to } => {
                write!(f, "hash{branch} {}..{}", exact_part(*from), exact_part(*to))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_file_stay_what_they_are() {
        let all = [
            (Condition::Filter("udp".into()), r#"{"filter":"udp"}"#),
            (
                Condition::Attribute { name: None, values: vec!["a".into(), "b".into()], negated: true },
                r#"{"attribute":{"values":["a","b"],"negated":true}}"#,
            ),
            (
                Condition::Split { branch: 1, from: 0.0, to: 1.0 / 3.0 },
                r#"{"split":{"branch":1,"from":0.0,"to":0.3333333333333333}}"#,
            ),
        ];
        for (condition, json) in all {
            assert_eq!(serde_json::to_string(&condition).expect("JSON"), json);
            assert_eq!(serde_json::from_str::<Condition>(json).expect("a condition"), condition);
        }
        for unknown in [
            r#"{"filters":"udp"}"#,
            r#"{"split":{"branch":1,"from":0.0,"to":0.5,"salt":7}}"#,
            r#"{"attribute":{"name":"a","values":[],"negated":false,"any":true}}"#,
        ] {
            assert!(serde_json::from_str::<Condition>(unknown).is_err(), "{unknown}");
        }
    }
}
