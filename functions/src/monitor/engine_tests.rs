//! Monitor on delayed engines.

use super::{DESCRIPTOR, live_tests, tests};
use crate::Args;
use crate::testing::agreement::agrees;
use crate::testing::engines::Late;

#[test]
fn all_of_it_on_engines_that_are_late() {
    [tests::LATE, live_tests::LATE].iter().for_each(Late::run);
}

#[test]
fn late_state_changes_nothing() {
    agrees(&DESCRIPTOR, &Args::default());
}
