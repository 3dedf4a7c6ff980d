//! What came for a chain, and what of it its functions took in: what the queues in front of it saw.
//!
//! A function that packets enter a chain by may have others in front of it, too, and packets of the way back; so its own count says
//! little. A queue at an entrance holds only what enters there.

use catena_compile::names;
use catena_policy::{Chain, Direction, End, PolicyGraph};

use crate::report::{Report, Row};

/// Bytes of packets that entered a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// That came for it.
    pub came: u64,
    /// That its functions took in.
    pub taken: u64,
}

impl Entered {
    /// What a queue saw. What it dropped is counted in packets, so that they are as long as all is taken for granted: it drops whoever
    /// comes while it is full.
    fn by_queue(queue: &Row) -> Entered {
        let dropped: u64 = queue.drops.values().sum();
        let left = queue.packets.saturating_sub(dropped) as f64 / queue.packets.max(1) as f64;
        Entered { came: queue.bytes, taken: (queue.bytes as f64 * left).round() as u64 }
    }

    fn and(self, other: Entered) -> Entered {
        Entered { came: self.came + other.came, taken: self.taken + other.taken }
    }

    /// Return what entered a chain of a file; `None` where packets enter it by no function: nobody counts them.
    pub fn of(graph: &PolicyGraph, chain: &Chain, report: &Report) -> Option<Entered> {
        let by = first(chain);
        if by.is_empty() {
            return None;
        }
        let queue = |name: &str| report.module(&names::queue(name)).map(Entered::by_queue);
        // Where classes have ways of their own each waits in a queue.
        let of_classes: Vec<_> =
            chain.classes.iter().filter_map(|class| queue(&graph.classes[*class as usize].name)).collect();
        if !of_classes.is_empty() {
            return Some(of_classes.into_iter().fold(Entered::default(), Entered::and));
        }
        let of = |name: &str| {
            let name = if graph.chains.len() > 1 { format!("{}/{name}", chain.name) } else { name.to_owned() };
            // Without a queue nobody is between what comes and the function.
            let all = || report.module(&name).map(|row| Entered { came: row.bytes, taken: row.bytes });
            queue(&name).or_else(all).unwrap_or_default()
        };
        Some(by.into_iter().map(of).fold(Entered::default(), Entered::and))
    }
}

/// The functions that packets enter a chain by, forward.
fn first(chain: &Chain) -> Vec<&str> {
    let first = chain.edges_from(End::In, Direction::Forward).filter_map(|edge| match edge.to {
        End::Node(node) => chain.nodes.get(node as usize),
        _ => None,
    });
    let mut names: Vec<&str> = first.map(|node| node.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
