//! `unparsed = drop`: a chain drops what is not IPv4, IPv6 or ARP in front of its first function. Servers do that;
//! neither switches nor SmartNICs have a program for it. So what packets meet first has to run on a server.

use catena_policy::{Chain, Direction, Edge, End, Unparsed};

/// Return which nodes of a chain have the guard in front of them: those that packets meet first, either way.
pub fn guarded(chain: &Chain) -> Vec<bool> {
    let first = |node: u32| entering(chain).any(|edge| edge.to == End::Node(node));
    (0u32..).zip(&chain.nodes).map(|(node, _)| first(node)).collect()
}

/// Whether packets pass a chain that has a guard without a function on their way, so that a switch in front of the
/// servers would send them on by itself.
pub(super) fn is_bypassed(chain: &Chain) -> bool {
    entering(chain).any(|edge| matches!(edge.to, End::In | End::Out))
}

/// The edges that packets enter a chain by, if it has a guard.
fn entering(chain: &Chain) -> impl Iterator<Item = &Edge> {
    let both = [(End::In, Direction::Forward), (End::Out, Direction::Return)];
    let edges = both.into_iter().flat_map(|(end, direction)| chain.edges_from(end, direction));
    edges.filter(|_| chain.unparsed == Unparsed::Drop)
}
