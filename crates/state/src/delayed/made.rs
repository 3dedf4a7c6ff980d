//! Objects and packets are known by numbers.

use std::hash::{BuildHasherDefault, Hasher};

use crate::declare::Declaration;

/// An object that was made.
#[derive(Clone, Copy)]
pub(super) struct Made {
    /// The same each time that it is made.
    pub(super) number: usize,
    /// The number of the function's instance whose it is.
    pub(super) instance: usize,
    pub(super) declaration: Declaration,
}

impl PartialEq for Made {
    fn eq(&self, other: &Made) -> bool {
        self.number == other.number
    }
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.declaration.fmt(f)
    }
}

/// A shared object, as its holder has it.
pub(super) struct HeldOne {
    pub(super) object: Made,
    pub(super) kind: &'static str,
    /// Its number there.
    pub(super) number: usize,
}

/// Return the number of an object of this kind among those that are held.
pub(super) fn number_of(held: &[HeldOne], object: Made, kind: &'static str) -> Option<usize> {
    let one = held.iter().find(|held| held.object == object)?;
    assert!(one.kind == kind, "{object}: made anew as {kind}, and was made as {} first", one.kind);
    Some(one.number)
}

/// Finds what is known by a number that rises.
pub(super) type ByNumber = BuildHasherDefault<Number>;

#[derive(Default)]
pub(super) struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, number: u32) {
        // The highest bits count too.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
