//! Tests of the planner's public face: what a rack's file may hold, and what is said of one that is wrong.

mod racks;
