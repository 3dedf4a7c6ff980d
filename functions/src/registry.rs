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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_gives_what_has_no_default() {
        for function in FUNCTIONS {
            assert!(function.unsaid().is_empty(), "{} gives no {:?}", function.name, function.unsaid());
        }
        assert_eq!(Descriptor::DEFAULTS.unsaid(), ["name", "summary", "source", "params", "build"]);
    }
}
