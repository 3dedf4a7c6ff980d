//! Memory reserved at once and used bit by bit: a table that grows in it never moves and never allocates.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Swap is not set aside for what is never touched. Miri knows plain mappings only.
const LAZILY: libc::c_int = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };

/// Types for which all-zero bytes are a value.
///
/// # Safety
/// They must be.
pub(crate) unsafe trait Zeroed {}

// SAFETY: zero is a number.
unsafe impl Zeroed for u32 {}

/// A fixed number of `T`s, all zero at first; pages are taken from the system as they are touched.
pub(crate) struct Reserved<T: Zeroed> {
    start: NonNull<T>,
    count: usize,
}

// SAFETY: it owns its `T`s like a box.
unsafe impl<T: Zeroed + Send> Send for Reserved<T> {}

impl<T: Zeroed> Reserved<T> {
    /// Reserve room for `count` values.
    ///
    /// # Errors
    /// The system's, when the address space is exhausted.
    pub(crate) fn new(count: usize) -> io::Result<Self> {
        let bytes = count.max(1).checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let bytes = bytes.max(4096);
        // SAFETY: a fresh private anonymous mapping touches nothing of ours.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | LAZILY;
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if cfg!(not(miri)) {
            // SAFETY: the range was just mapped. Huge pages save a walk of the page table per look-up; a
            // refusal changes nothing else.
            unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        }
        // The first touch of a page costs far more than a packet: those that are used first are touched now.
        // SAFETY: the mapping has at least a page, and zero is what stands there.
        unsafe { start.cast::<u8>().write_volatile(0) };
        // A mapping is aligned to pages, which is more than any `T` here wants.
        assert!(align_of::<T>() <= 4096);
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Reserved { start, count })
    }
}

impl<T: Zeroed> Deref for Reserved<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `count` values are mapped, and zero is a value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl<T: Zeroed> DerefMut for Reserved<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and we hold it mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.count) }
    }
}

impl<T: Zeroed> Drop for Reserved<T> {
    fn drop(&mut self) {
        let bytes = (self.count.max(1) * size_of::<T>()).max(4096);
        // SAFETY: exactly what `new` mapped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), bytes) };
    }
}
