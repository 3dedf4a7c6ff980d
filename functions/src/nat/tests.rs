//! NAT against golden scripts.

use super::*;
use crate::Value;
use crate::testing::{Harness, golden};

fn pool() -> Args {
    Args::default().with("pool", Value::Prefix("198.51.100.0".parse().unwrap(), 30))
}

#[test]
fn golden_scripts() {
    let mut harness = Harness::of(&DESCRIPTOR, &pool());
    golden(&mut harness, include_str!("golden.txt"));
    harness.end();
}
