//! What planners share: racks, what functions are able to and cost, the problem in numbers, what a placement is,
//! whether a switch holds it, and an independent check of promises.

pub mod catalogue;
pub mod check;
pub mod demand;
pub mod estimate;
pub mod figures;
pub mod paper;
pub mod placement;
pub mod plain;
pub mod problem;
pub mod profile;
pub mod rack;
pub mod random;
pub mod relation;
pub mod returns;
pub mod switch;
mod unbounded;
pub mod unite;
pub mod what_if;
