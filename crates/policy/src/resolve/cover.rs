//! Do the edges of a node take all its packets? If not: which ones have nowhere to go.

use crate::graph::Condition;
use crate::library::Library;

/// A value of an attribute beyond those that a file mentions.
pub(super) const OTHER: &str = "of any other value";

/// How many cases the search for packets that no edge takes looks at, per node.
pub(super) const MAX_CASES: usize = 4096;

/// Packets that satisfy none of the `edges`, described; None if there are no such packets.
/// Filters may always fail to match; attributes and splits are taken apart case by case.
pub(super) fn uncovered(
    library: &Library,
    function: &str,
    edges: Vec<Vec<&Condition>>,
    cases: &mut usize,
) -> Option<String> {
    if edges.iter().any(Vec::is_empty) || *cases == 0 {
        return None;
    }
    *cases -= 1;
    let filters = |e: &Vec<&Condition>| e.iter().any(|c| matches!(c, Condition::Filter(_)));
    let edges: Vec<Vec<&Condition>> = edges.into_iter().filter(|e| !filters(e)).collect();
    let Some(first) = edges.first().and_then(|e| e.first()).copied() else {
        return Some(String::new());
    };
    match first {
        Condition::Filter(_) => Some(String::new()),
        Condition::Attribute { name, .. } => {
            let declared = library
                .find(function)
                .and_then(|s| s.attributes.iter().find(|a| Some(&a.name) == name.as_ref()))
                .and_then(|a| a.values.clone());
            let mut values: Vec<Option<String>> = match declared {
                Some(values) => values.into_iter().map(Some).collect(),
                None => {
                    // Unknown values: those mentioned, and (for a known function) one that is not.
                    let mut mentioned: Vec<String> = edges
                        .iter()
                        .flatten()
                        .filter_map(|c| match c {
                            Condition::Attribute { name: n, values, .. } if n == name => Some(values),
                            _ => None,
                        })
                        .flatten()
                        .cloned()
                        .collect();
                    mentioned.sort();
                    mentioned.dedup();
                    mentioned.into_iter().map(Some).collect()
                }
            };
            if library.find(function).is_some()
                && library
                    .find(function)
                    .is_some_and(|s| !s.attributes.iter().any(|a| Some(&a.name) == name.as_ref() && a.values.is_some()))
            {
                values.push(None);
            }
            values.iter().find_map(|value| {
                let left = edges.iter().filter_map(|edge| given(edge, name.as_deref(), value.as_deref()));
                let missing = uncovered(library, function, left.collect(), cases)?;
                let value = value.as_deref().unwrap_or(OTHER);
                let here = match name {
                    Some(name) => format!("{name} {value}"),
                    None => value.to_owned(),
                };
                Some(if missing.is_empty() { here } else { format!("{here} and {missing}") })
            })
        }
        Condition::Split { branch, .. } => {
            let mut cuts: Vec<f64> = vec![0.0];
            for condition in edges.iter().flatten() {
                if let Condition::Split { branch: b, from, to } = condition
                    && b == branch
                {
                    cuts.extend([*from, *to]);
                }
            }
            cuts.retain(|cut| *cut < 1.0);
            cuts.sort_by(f64::total_cmp);
            cuts.dedup();
            cuts.into_iter().find_map(|point| {
                let left = edges.iter().filter_map(|edge| at_point(edge, *branch, point));
                uncovered(library, function, left.collect(), cases)
            })
        }
    }
}

/// What `edge` still asks for once the attribute `name` is `value` (None: none of those mentioned).
fn given<'c>(edge: &[&'c Condition], name: Option<&str>, value: Option<&str>) -> Option<Vec<&'c Condition>> {
    let mut left = Vec::new();
    for condition in edge {
        match condition {
            Condition::Attribute { name: n, values, negated } if n.as_deref() == name => {
                let listed = value.is_some_and(|value| values.iter().any(|v| v == value));
                if listed == *negated {
                    return None;
                }
            }
            other => left.push(*other),
        }
    }
    Some(left)
}

/// What `edge` still asks for at this point of the branch's hash.
fn at_point<'c>(edge: &[&'c Condition], branch: u32, point: f64) -> Option<Vec<&'c Condition>> {
    let mut left = Vec::new();
    for condition in edge {
        match condition {
            Condition::Split { branch: b, from, to } if *b == branch => {
                if point < *from || point >= *to {
                    return None;
                }
            }
            other => left.push(*other),
        }
    }
    Some(left)
}
