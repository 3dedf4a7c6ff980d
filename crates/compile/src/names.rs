//! The names of what stands in a pipeline beside functions, by which its figures are found.

use catena_policy::Direction;

pub use catena_plan::alpine::graph::CLASSIFY;

/// The name of the branch that finds a packet's chain.
#[must_use]
pub fn classify(direction: Direction) -> &'static str {
    if direction == Direction::Forward { CLASSIFY } else { "classify back" }
}

/// How names of queues begin.
const QUEUE: &str = "queue ";

/// The name of the queue in front of a function, which is called so in the pipeline, or of a class.
#[must_use]
pub fn queue(of: &str) -> String {
    format!("{QUEUE}{of}")
}

/// Whether this is the name of a queue.
#[must_use]
pub fn is_queue(name: &str) -> bool {
    name.starts_with(QUEUE)
}
