//! Keys of entries.

use std::fmt::Debug;

use catena_packet::wire::Seed;

use crate::plain::Plain;

/// A key of a [`FlowMap`](crate::FlowMap) or a [`SharedMap`](crate::SharedMap): plain bytes that hash and compare fast.
pub trait Key: Plain + Eq + Debug {
    /// Hash under a secret seed, so that nobody can make keys that collide.
    fn hash(&self, seed: &Seed) -> u64;
}

impl Key for u64 {
    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash2([*self, 0])
    }
}

impl Key for [u64; 2] {
    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash2(*self)
    }
}

impl Key for [u64; 5] {
    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash5(*self)
    }
}

/// A key of two words.
#[derive(Clone, Copy, Debug, Eq, Hash, Plain)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "both are by words")]
pub struct Words(pub u64, pub u64);

impl Words {
    /// Return both words.
    pub fn words(self) -> [u64; 2] {
        [self.0, self.1]
    }
}

impl PartialEq for Words {
    #[inline(always)]
    fn eq(&self, other: &Words) -> bool {
        // Word by word: a key that was just written by words is read slowly as one of 16 bytes.
        (self.0 ^ other.0) | (self.1 ^ other.1) == 0
    }
}

impl Key for Words {
    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash2([self.0, self.1])
    }
}
