//! Which way packets go from segment to segment: service paths (RFC 8300), the rules along them, and who enters which.
//!
//! Each chain has a path in each direction that it has ways in, with a number of its own (SPI). Where a packet enters a segment is a
//! *hop* with an index (SI) that falls along the path, so that a packet that carries both says where it goes next, and one that
//! is led in circles ends. Rules say by what a packet leaves a function; a rule's order is its place in the list, and the first that holds
//! takes the packet. Which packets enter which path at a side is said by [`super::entrances`].

use std::collections::BTreeMap;

use catena_plan_model::catalogue::Catalogue;
use catena_policy::{Chain, Direction, End, PolicyGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Deployment;
use super::devices::Place;
use super::entrances::entrances;
use crate::condition::Condition;
use crate::plan::Plan;

/// The first index of a path (RFC 8300, §2.3: "the initial value SHOULD default to 255").
pub const FIRST_INDEX: u8 = 255;
/// Numbers of paths are below this: they have 24 bits.
pub const PATHS: u32 = 1 << 24;

/// A chain's way in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Its number, which no path had before.
    pub spi: u32,
    /// The chain.
    pub chain: String,
    /// From `in` to `out`, or back.
    pub direction: Direction,
    /// Where packets enter segments, in falling order of the index.
    pub hops: Vec<Hop>,
    /// By what packets leave functions, function by function.
    pub rules: Vec<Rule>,
}

/// Where packets enter a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// What a packet says that goes there.
    pub si: u8,
    /// The function that takes it, as `chain/function`.
    pub function: String,
    /// The segment that the function is in.
    pub segment: String,
    /// The device that it runs on.
    pub on: String,
    /// The link by which packets come there; absent on a switch, and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Packets that leave a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The function, as `chain/function`; a side's name where the path begins.
    pub from: String,
    /// All of these hold. The rules of a path are in the order of the chain's edges in the policy graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
    /// Where they go.
    pub to: Next,
}

/// Where a packet goes next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// To a function of the same segment, as `chain/function`.
    Function(String),
    /// To the hop of this index.
    Hop(u8),
    /// Out by the side `in`.
    In,
    /// Out by the side `out`.
    Out,
    /// Nowhere: counted and dropped.
    Drop,
}

/// What paths are made of.
#[derive(Clone, Copy, Debug)]
pub struct Ways<'a> {
    /// The policy that is planned.
    pub policy: &'a PolicyGraph,
    /// What functions rewrite, and which addresses they use.
    pub catalogue: &'a Catalogue,
}

impl Deployment {
    /// Add the ways of packets. Paths that are as in `old` keep their numbers.
    ///
    /// # Errors
    /// Why a chain has no path: for people.
    pub(super) fn connect(&mut self, plan: &Plan, ways: Ways<'_>, old: Option<&Deployment>) -> Result<(), String> {
        let places = self.places(plan);
        self.spi = old.map_or(0, |old| old.spi);
        let mut numbers = BTreeMap::new();
        for (id, chain) in ways.policy.chains.iter().enumerate() {
            for direction in [Direction::Forward, Direction::Return] {
                if chain.edges_from(beginning(direction), direction).next().is_none() {
                    continue;
                }
                let mut path = self.path(chain, direction, &places)?;
                let same = |old: &&Path| {
                    (&old.chain, old.direction) == (&path.chain, path.direction)
                        && (&old.hops, &old.rules) == (&path.hops, &path.rules)
                };
                path.spi = match old.and_then(|old| old.paths.iter().find(same)) {
                    Some(same) => same.spi,
                    None if self.spi + 1 < PATHS => {
                        self.spi += 1;
                        self.spi
                    }
                    None => {
                        return Err(format!("paths have been numbered up to {}: plan anew, without --from", self.spi));
                    }
                };
                numbers.insert((id, direction), path.spi);
                self.paths.push(path);
            }
        }
        for direction in [Direction::Forward, Direction::Return] {
            self.entrances.extend(entrances(ways, direction, &numbers));
        }
        Ok(())
    }

    /// A chain's path, not yet numbered.
    fn path(&self, chain: &Chain, direction: Direction, places: &BTreeMap<String, Place>) -> Result<Path, String> {
        let name = |node: u32| format!("{}/{}", chain.name, chain.end_name(End::Node(node)));
        let segments: Vec<Option<&str>> =
            chain.nodes.iter().map(|node| self.running(&name(node.id)).map(|s| s.name.as_str())).collect();
        let segment = |end: End| match end {
            End::Node(node) => segments.get(node as usize).copied().flatten(),
            End::In | End::Out | End::Drop => None,
        };
        let edges: Vec<_> = chain.edges.iter().filter(|edge| edge.direction == direction).collect();
        let enters = |node: u32| {
            let to = End::Node(node);
            edges.iter().any(|edge| edge.to == to && segment(edge.from) != segment(to))
        };
        let mut hops = Vec::new();
        for node in along(chain, direction).into_iter().filter(|node| enters(*node)) {
            // The two below the last one are those of the path's ends.
            let si = usize::from(FIRST_INDEX).checked_sub(hops.len()).filter(|si| *si > 2);
            let Some(si) = si else { return Err(format!("chain {} has more than 253 hops", chain.name)) };
            let segment = segment(End::Node(node)).unwrap_or_default().to_owned();
            let Place { on, link } = places.get(&segment).cloned().unwrap_or_default();
            hops.push(Hop { si: si as u8, function: name(node), segment, on, link });
        }
        let next = |from: End, to: End| match to {
            End::In => Next::In,
            End::Out => Next::Out,
            End::Drop => Next::Drop,
            End::Node(node) if segment(from) == segment(to) => Next::Function(name(node)),
            End::Node(node) => {
                hops.iter().find(|hop| hop.function == name(node)).map_or(Next::Drop, |hop| Next::Hop(hop.si))
            }
        };
        let from = |end: End| match end {
            End::Node(node) => name(node),
            other => chain.end_name(other).to_owned(),
        };
        let rules = edges
            .iter()
            .map(|edge| Rule {
                from: from(edge.from),
                when: edge.when.iter().map(Condition::from).collect(),
                to: next(edge.from, edge.to),
            })
            .collect();
        Ok(Path { spi: 0, chain: chain.name.clone(), direction, hops, rules })
    }
}

/// The side by which packets of a direction come.
pub(super) fn beginning(direction: Direction) -> End {
    match direction {
        Direction::Forward => End::In,
        Direction::Return => End::Out,
    }
}

/// The nodes that packets of a direction may reach, each behind all that lead to it.
fn along(chain: &Chain, direction: Direction) -> Vec<u32> {
    let mut order = Vec::new();
    let mut done = vec![false; chain.nodes.len()];
    // Depth first, so that a node is put in front of all that it leads to.
    let mut open = vec![(beginning(direction), false)];
    while let Some((end, left)) = open.pop() {
        let number = if let End::Node(node) = end { Some(node) } else { None };
        if left {
            order.extend(number);
            continue;
        }
        if let Some(done) = number.and_then(|node| done.get_mut(node as usize))
            && std::mem::replace(done, true)
        {
            continue;
        }
        open.push((end, true));
        open.extend(
            chain
                .edges_from(end, direction)
                .map(|edge| (edge.to, false))
                .filter(|(to, _)| matches!(to, End::Node(node) if !done.get(*node as usize).copied().unwrap_or(true))),
        );
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_policy::{Disk, Edge, Library};

    /// The chain files of the examples, with their texts.
    fn examples() -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut open = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples").into()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir::<std::path::PathBuf>(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|end| end == "catena") {
                    let text = std::fs::read_to_string(&path).expect("a chain file");
                    found.push((path.to_string_lossy().into_owned(), text));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn conditions_of_rules_are_those_of_the_graph_and_read_as_it_shows_them() {
        // Some with conditions of each kind, which few examples have.
        let more = "chain c { in -> [ \"udp port 53\": A, else: B ] -> out }\n\
            class k = \"tcp\"\nchain d for k { in -> [ 33.3333333%: A, 10%: B, else: ] -> LB -> \
            [ backend == [1, \"a|b\"]: C, backend != 3: D, else: ] -> out\n out -> [ 0.001%: E, else: ] -> in }\n";
        let all = examples().into_iter().chain([("more.catena".to_owned(), more.to_owned())]);
        let (mut kinds, mut files) = ([0; 3], 0);
        for (name, text) in all {
            let outcome = catena_policy::load(&name, &text, &Library::default(), &Disk);
            let graph = outcome.graph.unwrap_or_else(|| panic!("{name}: {:?}", outcome.diagnostics));
            // As `catena show` writes it, edge by edge.
            let shown = graph.to_string();
            let mut lines = shown.lines().filter(|line| line.contains(" -> ") && line.starts_with("    "));
            files += 1;
            for chain in &graph.chains {
                let mut ways = Vec::new();
                for direction in [Direction::Forward, Direction::Return] {
                    let path = Deployment::default().path(chain, direction, &BTreeMap::new()).expect("a path");
                    ways.extend(path.rules);
                }
                let edges: Vec<&Edge> = [Direction::Forward, Direction::Return]
                    .iter()
                    .flat_map(|direction| chain.edges.iter().filter(|edge| edge.direction == *direction))
                    .collect();
                assert_eq!((edges.len(), chain.edges.len()), (ways.len(), ways.len()), "{name}");
                for (rule, edge) in ways.iter().zip(edges) {
                    let line = lines.next().unwrap_or_else(|| panic!("{name}: an edge is not shown\n{shown}"));
                    assert_eq!(rule.when.len(), edge.when.len(), "{name}: {line}");
                    for (says, is) in rule.when.iter().zip(&edge.when) {
                        let kind = match (says, is) {
                            (Condition::Filter(text), catena_policy::Condition::Filter(filter)) => {
                                assert_eq!(*text, filter.text, "{name}: {line}");
                                0
                            }
                            (
                                Condition::Attribute { name: called, values, negated },
                                catena_policy::Condition::Attribute { name: of, values: any, negated: not },
                            ) => {
                                assert_eq!((called, values, negated), (of, any, not), "{name}: {line}");
                                1
                            }
                            (
                                Condition::Split { branch, from, to },
                                catena_policy::Condition::Split { branch: salt, from: low, to: high },
                            ) => {
                                assert_eq!((branch, from, to), (salt, low, high), "{name}: {line}");
                                2
                            }
                            _ => panic!("{name}: {line}: the rule says {says:?}, and the graph {is:?}"),
                        };
                        kinds[kind] += 1;
                    }
                    let conditions = rule.when.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                    let label = line.split_once("  [").map_or("", |(_, label)| label.trim_end_matches(']'));
                    let rest = label.strip_prefix(&conditions);
                    let is_shown = rest
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with([',', '~']) || conditions.is_empty());
                    assert!(is_shown, "{name}: `{conditions}` is shown as `{line}`");
                }
            }
            assert_eq!(lines.next(), None, "{name}");
        }
        assert!(files > 10 && kinds.iter().all(|count| *count > 1), "{files} files, {kinds:?}");
    }
}
