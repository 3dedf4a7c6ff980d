//! What can be wrong with a whole plan, with its place, for people.

use std::fmt;

use catena_plan_model::check::Violation;

/// Something that a plan says and is not so.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The placement is not one, or breaks a promise.
    Placement(Violation),
    /// A name or a figure is another one.
    Differs {
        /// Where, such as `chains[0].rate_bps`.
        place: String,
        /// What the plan says.
        says: String,
        /// What follows from the placement and the problem.
        is: String,
    },
    /// What cannot be at all.
    Wrong {
        /// Where.
        place: String,
        /// What is wrong.
        what: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Placement(violation) => write!(f, "placement: {violation}"),
            Fault::Differs { place, says, is } => write!(f, "{place}: the plan says {says}, it is {is}"),
            Fault::Wrong { place, what } => write!(f, "{place}: {what}"),
        }
    }
}
