//! Arrays of 256 words kept as runs of equal words, and the pool their runs live in.
//!
//! A bitmap says where runs begin, and a population count finds the run of an entry in constant time.
//! The run compression is that of Degermark et al., "Small Forwarding Tables for Fast Routing Lookups"
//! (SIGCOMM '97) §4; finding the run by population count is that of Asai and Ohara, "Poptrie" (SIGCOMM
//! '15) §3.3. With 256 entries a block, bitmap and all else a step reads share one cache line.

/// What is kept; its meaning is the trie's.
pub(super) type Word = i32;

/// 256 words as they are before compression.
pub(super) type Words = [Word; 256];

/// Where the runs of 256 words begin, and where they are kept.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Block {
    /// Bit `i`: entry `i` begins a run. Bit 0 is always set.
    starts: [u64; 4],
    /// Index of the first run in the pool.
    base: u32,
    /// Runs that begin in earlier words of the bitmap: 0, ≤ 64, ≤ 128, ≤ 192.
    before: [u8; 4],
}

impl Block {
    /// The index in the pool of the run that entry `at` belongs to.
    #[inline(always)]
    pub(super) fn index(&self, at: u8) -> usize {
        let word = usize::from(at >> 6);
        let upto = self.starts[word] << (!at & 63);
        // Bit 0 of the first bitmap word is set, so at least one run begins at or before `at`.
        self.base as usize + usize::from(self.before[word]) + upto.count_ones() as usize - 1
    }

    fn runs(&self) -> usize {
        usize::from(self.before[3]) + self.starts[3].count_ones() as usize
    }
}

/// Sizes that runs are stored in: exact up to 8, then four a power of two, so that at most a fifth of
/// what is taken is unused.
const SIZES: [u16; 28] =
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256];

/// For a number of runs, the index of the smallest of [`SIZES`] that holds it.
const CLASS: [u8; 257] = {
    let mut class = [0; 257];
    let mut runs = 1;
    let mut at = 0;
    while runs <= 256 {
        if runs > SIZES[at] as usize {
            at += 1;
        }
        class[runs] = at as u8;
        runs += 1;
    }
    class
};

const END: Word = -1;

/// The index in a pool of a word that belongs to no block: the one that the pool was made with.
pub(super) const FILLER: usize = 0;

/// The runs of all blocks, in one allocation.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    words: Vec<Word>,
    /// By size: the first free piece; its first word is the index of the next one.
    free: [Word; SIZES.len()],
    free_words: usize,
}

impl Pool {
    /// A pool with `filler` at index [`FILLER`].
    pub(super) fn new(filler: Word) -> Pool {
        Pool { words: vec![filler], free: [END; SIZES.len()], free_words: 0 }
    }

    /// All runs, for look-ups.
    #[inline(always)]
    pub(super) fn words(&self) -> &[Word] {
        &self.words
    }

    /// Bytes taken.
    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<Word>()
    }

    /// Whether more than a third of the words lies free (and it is worth the work of [`Pool::compact`]).
    pub(super) fn is_sparse(&self) -> bool {
        self.free_words > 4096 && self.free_words * 3 > self.words.len()
    }

    /// Copies the runs of all live blocks together.
    pub(super) fn compact<'b>(&mut self, blocks: impl Iterator<Item = &'b mut Block>) {
        let mut to = Pool::new(self.words[FILLER]);
        to.words.reserve_exact(self.words.len() - self.free_words);
        for block in blocks {
            let (from, runs) = (block.base as usize, block.runs());
            block.base = to.take(runs);
            let base = block.base as usize;
            to.words[base..base + runs].copy_from_slice(&self.words[from..from + runs]);
        }
        *self = to;
    }

    /// Compresses `words`.
    pub(super) fn pack(&mut self, words: &Words) -> Block {
        let (mut block, runs, packed) = compress(words);
        block.base = self.take(runs);
        self.store(&block, &packed, runs);
        block
    }

    /// Replaces what `block` holds.
    pub(super) fn repack(&mut self, block: &mut Block, words: &Words) {
        let (mut new, runs, packed) = compress(words);
        let old = block.runs();
        if CLASS[old] == CLASS[runs] {
            new.base = block.base;
        } else {
            self.give(block.base, old);
            new.base = self.take(runs);
        }
        self.store(&new, &packed, runs);
        *block = new;
    }

    /// The 256 words of `block`.
    pub(super) fn unpack(&self, block: &Block) -> Words {
        let mut words = [0; 256];
        let mut run = block.base as usize;
        let mut from = 0;
        // The first run's own bit is skipped: a run is written when the next one begins.
        for (w, &bits) in block.starts.iter().enumerate() {
            let mut bits = if w == 0 { bits & !1 } else { bits };
            while bits != 0 {
                let next = w * 64 + bits.trailing_zeros() as usize;
                words[from..next].fill(self.words[run]);
                (from, run) = (next, run + 1);
                bits &= bits - 1;
            }
        }
        words[from..].fill(self.words[run]);
        words
    }

    /// Lets go of what `block` holds.
    pub(super) fn release(&mut self, block: &Block) {
        self.give(block.base, block.runs());
    }

    fn store(&mut self, block: &Block, packed: &Words, runs: usize) {
        let base = block.base as usize;
        self.words[base..base + runs].copy_from_slice(&packed[..runs]);
    }

    fn take(&mut self, runs: usize) -> u32 {
        let class = usize::from(CLASS[runs]);
        let size = usize::from(SIZES[class]);
        let head = self.free[class];
        if head != END {
            self.free[class] = self.words[head as usize];
            self.free_words -= size;
            return head.cast_unsigned();
        }
        let base = self.words.len();
        grow(&mut self.words, size);
        self.words.resize(base + size, 0);
        base as u32
    }

    fn give(&mut self, base: u32, runs: usize) {
        let class = usize::from(CLASS[runs]);
        self.words[base as usize] = self.free[class];
        self.free[class] = base.cast_signed();
        self.free_words += usize::from(SIZES[class]);
    }
}

/// Makes room for `more` elements; grows by an eighth where `Vec` would double, to keep memory near
/// what is in use. What is large is asked to lie in huge pages: look-ups go all over it.
pub(super) fn grow<T>(vec: &mut Vec<T>, more: usize) {
    if vec.capacity() - vec.len() >= more {
        return;
    }
    vec.reserve_exact(more.max(vec.len() / 8).max(1024));
    let bytes = vec.capacity() * size_of::<T>();
    if bytes >= LARGE_BYTES {
        // Outward to whole pages: `realloc` can only move a mapping that has the same advice throughout.
        let from = vec.as_ptr().addr() & !(PAGE_BYTES - 1);
        let to = (vec.as_ptr().addr() + bytes).next_multiple_of(PAGE_BYTES);
        // SAFETY: this advice changes no contents, only what backs them; where it is refused (no such
        // kernel option), all works as before, so the result does not matter.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, libc::MADV_HUGEPAGE) };
    }
}

const PAGE_BYTES: usize = 4096;

/// From here on an allocation is worth a system call when it grows.
const LARGE_BYTES: usize = 4 << 20;

/// The runs of `words`: a block without a base, how many there are, and what they hold.
fn compress(words: &Words) -> (Block, usize, Words) {
    let mut block = Block { starts: [0; 4], base: 0, before: [0; 4] };
    let mut packed = [0; 256];
    let mut runs = 0;
    for (w, part) in words.as_chunks::<64>().0.iter().enumerate() {
        // What is not a start is known inside one part by comparing neighbours; across parts by hand.
        let mut bits = u64::from(w == 0 || words[w * 64 - 1] != part[0]);
        for i in 1..64 {
            if part[i] != part[i - 1] {
                bits |= 1 << i;
            }
        }
        block.starts[w] = bits;
        block.before[w] = runs as u8;
        while bits != 0 {
            packed[runs] = part[bits.trailing_zeros() as usize];
            runs += 1;
            bits &= bits - 1;
        }
    }
    (block, runs, packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_keeps_every_word(ops in prop::collection::vec((any::<u8>(), 0usize..257, 0i32..4), 1..200)) {
            let mut pool = Pool::new(9);
            let mut live: Vec<(Block, Words)> = Vec::new();
            for (at, end, word) in ops {
                match live.get_mut(usize::from(at % 16)) {
                    Some((block, _)) if word == 0 && end % 4 == 0 => {
                        pool.release(block);
                        live.swap_remove(usize::from(at % 16));
                    }
                    Some((block, words)) => {
                        for i in (usize::from(at)..end).step_by(1 + word as usize) {
                            words[i] = word;
                        }
                        pool.repack(block, words);
                    }
                    None => live.push((pool.pack(&[word; 256]), [word; 256])),
                }
                if at == 7 {
                    pool.compact(live.iter_mut().map(|(block, _)| block));
                    prop_assert_eq!(pool.free_words, 0);
                }
                prop_assert_eq!(pool.words()[FILLER], 9);
                for (block, words) in &live {
                    prop_assert_eq!(&pool.unpack(block), words);
                    for i in 0..=255u8 {
                        prop_assert_eq!(pool.words()[block.index(i)], words[usize::from(i)]);
                    }
                }
            }
            for (block, _) in &live {
                pool.release(block);
            }
            prop_assert_eq!(pool.free_words, pool.words.len() - 1, "all but the filler is free again");
        }
    }

    #[test]
    fn sizes_hold_what_they_must() {
        for runs in 1..=256 {
            let size = usize::from(SIZES[usize::from(CLASS[runs])]);
            assert!(size >= runs && size * 4 <= runs * 5, "{runs} runs in {size} words");
        }
    }
}
