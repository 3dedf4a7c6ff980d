//! The one list of all functions.

use crate::descriptor::Descriptor;

/// Every function of the library, by name.
pub const FUNCTIONS: &[&Descriptor] = &[&crate::acl::DESCRIPTOR, &crate::nat::DESCRIPTOR];

/// Return the function called `name`, letter by letter.
pub fn find(name: &str) -> Option<&'static Descriptor> {
    FUNCTIONS.iter().copied().find(|function| function.name == name)
}
