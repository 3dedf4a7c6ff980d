//! Tests across crates and processes: the command as its users meet it, and the rules of the house.

mod captures;
mod command;
mod compiler;
mod embedded;
mod ending;
mod examples;
mod gauges;
mod house;
mod interfaces;
mod isolated;
mod joined;
mod live_workers;
mod manifest;
mod native;
mod new_function;
mod one_plan;
mod outputs;
mod plan;
mod plan_classes;
mod plan_from;
mod plan_schema;
mod plan_told;
mod plan_verdicts;
mod plan_views;
mod planned;
#[cfg(not(debug_assertions))]
mod product;
mod profile;
mod promises;
mod rewritten;
mod seeds;
mod starter;
mod streams;
mod tenants;
mod tutorial;
mod workers;
