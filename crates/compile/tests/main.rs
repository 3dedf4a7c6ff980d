//! Tests of the compiler's public face: what a chain does when it is built, and when it is reduced first.

mod attributes;
mod entered;
mod filters;
mod reduced;
mod run;
mod shown;
mod source_routes;
mod tables;
mod toy;
mod trees;
mod unparsed;
mod wired;
