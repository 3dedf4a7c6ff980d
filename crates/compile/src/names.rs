//! The names of what stands in a pipeline beside functions, by which its figures are found.

use catena_policy::Direction;

pub use catena_plan::alpine::graph::CLASSIFY;

/// The name of the branch that finds a packet's chain.
#[must_use]
pub fn classify(direction: Direction) -> &'static str {
    if direction == Direction::Forward { CLASSIFY } else { "classify back" }
}

/// The name of the queue in front of a function, which is called so in the pipeline, or of a class.
#[must_use]
pub fn queue(of: &str) -> String {
    format!("queue {of}")
}
