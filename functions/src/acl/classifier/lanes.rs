//! The two vector steps of a lookup: how many thresholds of a node lie below a value, and which of
//! the eight rules of a leaf block match a point.
//!
//! With AVX2 (Catena's baseline) each is a dozen instructions; elsewhere, and under Miri, plain
//! loops do the same. The tests hold one against the other.

use super::point::{Point, address_words};

/// One cache line. Nodes take one, leaf blocks several.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Line(pub [u32; 16]);

/// First word of a node that holds a threshold; the words before say which children, which dimension.
pub const FIRST_THRESHOLD: usize = 2;
/// Thresholds of a node.
pub const THRESHOLDS: usize = 16 - FIRST_THRESHOLD;
/// Rules of a leaf block.
pub const LANES: usize = 8;

/// Cache lines of a leaf block: a vector each of mask and value per address word, then lowest and
/// highest ports, protocols, and indices; two vectors a line.
pub const fn block_lines<const W: usize>() -> usize {
    address_words::<W>() + 2
}

/// How many of the node's thresholds are smaller than `x`, in signed order.
#[inline(always)]
pub fn rank(node: &Line, x: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "avx2", not(miri)))]
    {
        use std::arch::x86_64::*;
        // SAFETY: AVX2 is enabled for this build (cfg above). `Line` is 64 bytes, aligned to 64, so
        // both aligned 32-byte loads stay inside it.
        unsafe {
            let value = _mm256_set1_epi32(x as i32);
            let words = node.0.as_ptr().cast::<__m256i>();
            let low = _mm256_cmpgt_epi32(value, _mm256_load_si256(words));
            let high = _mm256_cmpgt_epi32(value, _mm256_load_si256(words.add(1)));
            let low = _mm256_movemask_ps(_mm256_castsi256_ps(low)) as u32;
            let high = _mm256_movemask_ps(_mm256_castsi256_ps(high)) as u32;
            (low >> FIRST_THRESHOLD | high << LANES).count_ones()
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "avx2", not(miri))))]
    portable::rank(node, x)
}

/// Which rules of a leaf block match: bit `i` for lane `i`.
///
/// # Panics
/// If `block` is shorter than [`block_lines`].
#[inline(always)]
pub fn matching<const W: usize>(block: &[Line], point: &Point<W>) -> u32 {
    assert!(block.len() >= block_lines::<W>());
    #[cfg(all(target_arch = "x86_64", target_feature = "avx2", not(miri)))]
    {
        use std::arch::x86_64::*;
        let a = address_words::<W>();
        // SAFETY: AVX2 is enabled for this build (cfg above). The block holds 2 * (a + 2) aligned
        // vectors of 32 bytes (asserted above); the highest one loaded is number 2 * a + 2.
        unsafe {
            let vector = block.as_ptr().cast::<__m256i>();
            let load = |n: usize| _mm256_load_si256(vector.add(n));
            let word = |n: usize| _mm256_set1_epi32(point.0[n] as i32);
            let ports = word(W - 2);
            let below = _mm256_xor_si256(_mm256_max_epu16(ports, load(2 * a)), ports);
            let above = _mm256_xor_si256(_mm256_min_epu16(ports, load(2 * a + 1)), ports);
            let upper = word(W - 1);
            let other = _mm256_xor_si256(_mm256_max_epu8(upper, load(2 * a + 2)), upper);
            let mut differs = _mm256_or_si256(_mm256_or_si256(below, above), other);
            for w in 0..a {
                let kept = _mm256_and_si256(word(w), load(2 * w));
                differs = _mm256_or_si256(differs, _mm256_xor_si256(kept, load(2 * w + 1)));
            }
            let equal = _mm256_cmpeq_epi32(differs, _mm256_setzero_si256());
            _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "avx2", not(miri))))]
    portable::matching(block, point)
}

/// Asks the processor to fetch a line that a later step will read.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

/// The same steps as plain loops.
#[cfg(any(test, miri, not(all(target_arch = "x86_64", target_feature = "avx2"))))]
mod portable {
    use super::{FIRST_THRESHOLD, LANES, Line, Point, address_words};

    pub fn rank(node: &Line, x: u32) -> u32 {
        node.0[FIRST_THRESHOLD..].iter().map(|&t| u32::from(x as i32 > t as i32)).sum()
    }

    pub fn matching<const W: usize>(block: &[Line], point: &Point<W>) -> u32 {
        let a = address_words::<W>();
        let word = |vector: usize, lane: usize| block[vector / 2].0[vector % 2 * LANES + lane];
        let halves = |x: u32| [x & 0xffff, x >> 16];
        let mut mask = 0;
        for lane in 0..LANES {
            let addresses = (0..a).all(|w| point.0[w] & word(2 * w, lane) == word(2 * w + 1, lane));
            let (lo, hi) = (halves(word(2 * a, lane)), halves(word(2 * a + 1, lane)));
            let ports = halves(point.0[W - 2]);
            let ports = (0..2).all(|p| lo[p] <= ports[p] && ports[p] <= hi[p]);
            let least = word(2 * a + 2, lane).to_le_bytes();
            let upper = point.0[W - 1].to_le_bytes();
            let upper = (0..4).all(|b| least[b] <= upper[b]);
            if addresses && ports && upper {
                mask |= 1 << lane;
            }
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::super::point::{V4, V6};
    use super::*;
    use catena_packet::random::SplitMix64;

    fn noise(random: &mut SplitMix64) -> u32 {
        random.bits() as u32 >> 1
    }

    #[test]
    fn rank_agrees_with_the_plain_loop() {
        let mut s = SplitMix64::new(1);
        for _ in 0..2000 {
            let node = Line(std::array::from_fn(|_| noise(&mut s) << 1 | 1));
            for x in [noise(&mut s) << 1, node.0[5], node.0[2], 0, u32::MAX, 0x8000_0000, 0x7fff_ffff] {
                assert_eq!(rank(&node, x), portable::rank(&node, x));
            }
        }
    }

    fn blocks<const W: usize>() {
        let mut s = SplitMix64::new(2);
        let mut matched = 0;
        for round in 0..5000 {
            let point = Point::<W>(std::array::from_fn(|_| noise(&mut s) & 0x0303_0303));
            let mut block = vec![Line([0; 16]); block_lines::<W>()];
            for line in &mut block {
                // Few bits, so that matches happen.
                line.0 = std::array::from_fn(|_| noise(&mut s) & noise(&mut s) & 0x0101_0101);
            }
            for lane in 0..LANES {
                let a = address_words::<W>();
                block[a].0[LANES + lane] = if round % 3 == 0 { noise(&mut s) } else { u32::MAX };
                for (line, word) in block.iter_mut().zip(&point.0[..a]) {
                    line.0[LANES + lane] = word & line.0[lane];
                }
            }
            let mask = matching(&block, &point);
            assert_eq!(mask, portable::matching(&block, &point));
            matched += mask.count_ones();
        }
        assert!(matched > 0);
    }

    #[test]
    fn blocks_agree_with_the_plain_loop() {
        blocks::<V4>();
        blocks::<V6>();
    }
}
