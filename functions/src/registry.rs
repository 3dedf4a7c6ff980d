//! The one list of all functions.

use crate::descriptor::Descriptor;
use crate::{acl, ipv4fwd, lb, limiter, monitor, nat, native};

/// Every function of the library, by name.
#[rustfmt::skip]
pub const FUNCTIONS: &[&Descriptor] = &[
    &acl::DESCRIPTOR,
    &ipv4fwd::DESCRIPTOR,
    &lb::DESCRIPTOR,
    &limiter::DESCRIPTOR,
    &monitor::DESCRIPTOR,
    &nat::DESCRIPTOR,
    &native::DESCRIPTOR,
];

/// Return the function called `name`, letter by letter.
pub fn find(name: &str) -> Option<&'static Descriptor> {
    FUNCTIONS.iter().copied().find(|function| function.name == name)
}
