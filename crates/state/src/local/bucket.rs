//! A bucket of the flow map: one cache line.

use crate::memory::Zeroed;

/// Entries in a bucket.
pub(super) const WAYS: usize = 12;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    /// Eight bits of the hash, 0 where there is no entry.
    pub(super) tags: [u8; WAYS],
    /// The overflow bucket that continues this one, plus one; 0 when none does.
    pub(super) next: u32,
    pub(super) entries: [u32; WAYS],
}

// SAFETY: zero is an empty bucket.
unsafe impl Zeroed for Bucket {}

impl Bucket {
    /// Return a bit for every way whose tag is `tag`.
    #[inline(always)]
    pub(super) fn matches(&self, tag: u8) -> u32 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE2 is part of x86-64; the 16 bytes read are `tags` and `next`.
        unsafe {
            use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi8};
            let line = _mm_load_si128(std::ptr::from_ref(self).cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(line, _mm_set1_epi8(tag as i8))) as u32 & ((1 << WAYS) - 1)
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.tags.iter().rev().fold(0, |bits, t| bits << 1 | u32::from(*t == tag))
    }
}
