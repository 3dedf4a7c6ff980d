//! Planning: where every function runs, on how many cores, in which tasks, and why.
//!
//! A [`Problem`](problem::Problem) is what has to be decided, in numbers alone: chains with promises, and
//! a rack. It is made of a policy graph, a [`Rack`](rack::Rack), a [`Catalogue`](catalogue::Catalogue) of
//! what functions are able to, and a [`Profile`](profile::Profile) of what they cost. Planners return a
//! [`Placement`](placement::Placement). No step does I/O.

pub mod alpine;
pub mod catalogue;
pub mod check;
pub mod demand;
pub mod e2;
pub mod estimate;
pub mod explain;
pub mod lemur;
pub mod paper;
pub mod placement;
pub mod plan;
pub mod problem;
pub mod profile;
pub mod rack;
pub mod solver;
pub mod switch;
pub mod tasks;
pub mod unite;
pub mod what_if;
