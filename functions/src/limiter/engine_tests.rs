//! Limiter on delayed engines.

use super::{DESCRIPTOR, limit, promise};
use crate::config::{Args, Value};
use crate::testing::agreement::agrees;
use crate::testing::engines::Late;

#[test]
fn all_of_it_on_engines_that_are_late() {
    [limit::tests::LATE, promise::tests::LATE].iter().for_each(Late::run);
}

#[test]
fn late_state_changes_nothing() {
    for per in ["class", "src", "dst", "flow"] {
        let args = Args::default().with("rate", Value::PacketRate(50)).with("burst", Value::Integer(3));
        agrees(&DESCRIPTOR, &args.with("per", Value::Word(per.into())));
    }
}
