//! Planning: where every function runs, on how many cores, in which tasks, and why.
//!
//! A [`Problem`](problem::Problem) is what has to be decided, in numbers alone: chains with promises, and
//! a rack. It is made of a policy graph, a [`Rack`](rack::Rack), a [`Catalogue`](catalogue::Catalogue) of
//! what functions are able to, and a [`Profile`](profile::Profile) of what they cost. Planners return a
//! [`Placement`](placement::Placement). No step does I/O.
//!
//! The model that planners share and each planner are crates of their own, which compile beside each other; they
//! meet here.

pub mod condition;
pub mod delay;
pub mod delta;
pub mod deployment;
pub mod explain;
pub mod judge;
pub mod plan;
pub mod policy;
pub mod schedule;
pub mod tasks;

pub use catena_plan_alpine as alpine;
pub use catena_plan_e2 as e2;
pub use catena_plan_lemur as lemur;
pub use catena_plan_model::{
    catalogue, check, demand, estimate, figures, paper, placement, problem, profile, rack, random, relation, returns,
    switch, unite, what_if,
};
pub use catena_solver as solver;
