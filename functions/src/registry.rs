//! The one list of all functions.

use crate::descriptor::Descriptor;

/// Every function of the library, by name; one a line.
#[rustfmt::skip]
pub const FUNCTIONS: &[&Descriptor] = &[
    &crate::acl::DESCRIPTOR,
    &crate::ipv4fwd::DESCRIPTOR,
    &crate::lb::DESCRIPTOR,
    &crate::limiter::DESCRIPTOR,
    &crate::monitor::DESCRIPTOR,
    &crate::nat::DESCRIPTOR,
    &crate::native::DESCRIPTOR,
    &crate::port_scan::DESCRIPTOR,
];

/// Return the function called `name`, letter by letter.
pub fn find(name: &str) -> Option<&'static Descriptor> {
    FUNCTIONS.iter().copied().find(|function| function.name == name)
}
