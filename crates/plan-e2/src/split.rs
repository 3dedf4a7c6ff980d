//! An instance is overloaded: "we split an instance when we redistribute its load to two or more instances
//! (one of which is the previous instance)" (Lan's dissertation, §3.4.3). Its range of hashes is divided, its
//! edges go to the new instances in proportion, and those are placed without moving any.

use super::incremental::Growing;
use super::instances::{IEnd, IGraph, Instance, InstanceId, Range};
use super::traffic::NoRoom;

/// Why an instance cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such instance.
    Unknown,
    /// The function has one instance for ever.
    Single,
    /// Fewer hashes are left in its range than there would be instances.
    TooNarrow,
    /// No core is free.
    NoRoom(NoRoom),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Unknown => f.write_str("there is no such instance"),
            Refused::Single => f.write_str("its function may have one instance only"),
            Refused::TooNarrow => f.write_str("its range of hashes is too narrow"),
            Refused::NoRoom(no_room) => no_room.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

/// Split `instance` into itself and one more, which gets the upper half of its range, and place that one.
/// Return the new instance. Nothing has changed after an error.
///
/// # Errors
/// When the instance cannot be split or no core is free.
pub fn halve(graph: &mut IGraph, places: &mut Growing, instance: InstanceId) -> Result<InstanceId, Refused> {
    let Some(&Instance { node, range }) = graph.instances.get(instance) else { return Err(Refused::Unknown) };
    if graph.keys.get(node).copied().flatten().is_none() {
        return Err(Refused::Single);
    }
    let (kept, given) = (range.part(0, 2), range.part(1, 2));
    if kept.is_empty() {
        return Err(Refused::TooNarrow);
    }
    if places.places().free.iter().all(|&free| free == 0) {
        let placed = places.places().server.len() as u64;
        return Err(Refused::NoRoom(NoRoom { needed: placed + 1, largest: 1, cores: placed }));
    }
    let new = divide(graph, instance, kept, given);
    places.add_last(graph).map_err(Refused::NoRoom)?;
    Ok(new)
}

/// Split `instance` into `parts` with equal ranges, the first of them itself, and place the others. Return
/// the new instances. Nothing has changed after an error.
///
/// # Errors
/// When the instance cannot be split or too few cores are free.
pub fn divide_evenly(
    graph: &mut IGraph,
    places: &mut Growing,
    instance: InstanceId,
    parts: u32,
) -> Result<Vec<InstanceId>, Refused> {
    let Some(&Instance { node, range }) = graph.instances.get(instance) else { return Err(Refused::Unknown) };
    if graph.keys.get(node).copied().flatten().is_none() {
        return Err(Refused::Single);
    }
    if (0..parts).any(|i| range.part(i, parts).is_empty()) {
        return Err(Refused::TooNarrow);
    }
    let free: u64 = places.places().free.iter().map(|&c| u64::from(c)).sum();
    let (placed, more) = (places.places().server.len() as u64, parts.saturating_sub(1));
    if free < u64::from(more) {
        return Err(Refused::NoRoom(NoRoom { needed: placed + u64::from(more), largest: 1, cores: placed + free }));
    }
    let mut new = Vec::new();
    // From the top: what is left of the first always is one range.
    for i in (1..parts).rev() {
        let (given, kept) = (range.part(i, parts), Range { from: range.from, to: range.part(i, parts).from });
        new.push(divide(graph, instance, kept, given));
        places.add_last(graph).map_err(Refused::NoRoom)?;
    }
    Ok(new)
}

/// Give `given` of the instance's range to a new one. O(edges of the instance).
fn divide(graph: &mut IGraph, instance: InstanceId, kept: Range, given: Range) -> InstanceId {
    let new = graph.instances.len();
    let node = graph.instances[instance].node;
    graph.instances[instance].range = kept;
    graph.instances.push(Instance { node, range: given });
    graph.at.push(Vec::new());
    graph.of_node[node].push(new);
    let old_edges = std::mem::take(&mut graph.at[instance]);
    for id in old_edges {
        let edge = graph.edges[id];
        let moved = |end: IEnd| if end == IEnd::Instance(instance) { IEnd::Instance(new) } else { end };
        // A part that carried something still does, with one of the two or with both.
        let still = graph.part(edge.edge, edge.from, edge.to);
        let also = graph.part(edge.edge, moved(edge.from), moved(edge.to));
        match (still, also) {
            (Some(still), also) => {
                graph.edges[id] = still;
                graph.at[instance].push(id);
                also.into_iter().for_each(|also| graph.add(also));
            }
            (None, Some(also)) => {
                graph.edges[id] = also;
                graph.at[new].push(id);
                if let Some(other) = other_end(also.from, also.to, new) {
                    debug_assert!(graph.at[other].contains(&id));
                }
            }
            (None, None) => debug_assert!(false, "an edge carried nothing"),
        }
    }
    new
}

fn other_end(from: IEnd, to: IEnd, own: InstanceId) -> Option<InstanceId> {
    [from, to].into_iter().find_map(|end| match end {
        IEnd::Instance(id) if id != own => Some(id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::keys::Splitting;
    use super::super::traffic::Places;
    use super::super::{graph::PGraph, sample};
    use super::*;
    use catena_plan_model::catalogue::{Affinity, Fields};

    fn built(policy: &PGraph, affinity: Affinity) -> IGraph {
        let splitting = vec![Splitting { affinity, rewrites: Fields(0) }; policy.nodes.len()];
        IGraph::build(policy, &splitting, &vec![2; policy.nodes.len()]).unwrap()
    }

    #[test]
    fn a_joined_line_is_split_along_its_ranges() {
        let policy = sample::line(2, 8.0);
        let mut graph = built(&policy, Affinity::Fields(Fields::SOURCE));
        let mut growing = Growing::new(Places { server: vec![0, 1, 0, 1], free: vec![1, 1] });
        // The second instance of the second function, which its server's neighbour feeds.
        let new = halve(&mut graph, &mut growing, 3).unwrap();
        assert_eq!((new, growing.places().server[4]), (4, 1));
        assert_eq!(graph.loads(), [4.0, 4.0, 4.0, 2.0, 2.0]);
        assert_eq!(graph.instances[4].range, Range::FULL.part(3, 4));
        let more = divide_evenly(&mut graph, &mut growing, 0, 3).unwrap_err();
        assert_eq!(more, Refused::NoRoom(NoRoom { needed: 7, largest: 1, cores: 6 }));
        assert_eq!(divide_evenly(&mut graph, &mut growing, 0, 2).unwrap(), [5]);
        assert_eq!(graph.loads(), [2.0, 4.0, 4.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn what_may_not_be_split_is_not() {
        let policy = sample::line(1, 8.0);
        let mut graph = built(&policy, Affinity::Single);
        let before = graph.clone();
        let mut growing = Growing::new(Places { server: vec![0], free: vec![1] });
        assert_eq!(halve(&mut graph, &mut growing, 0), Err(Refused::Single));
        assert_eq!(halve(&mut graph, &mut growing, 9), Err(Refused::Unknown));
        assert_eq!(graph, before);
    }
}
