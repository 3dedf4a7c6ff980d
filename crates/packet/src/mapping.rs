//! Memory mapped from the system, and given back when dropped.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

/// Least length of a mapping in bytes, and what its start is aligned to.
const PAGE: usize = 4096;

/// Swap is not set aside for what is never touched. Miri knows plain mappings only.
const LAZILY: libc::c_int = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };

/// A range of memory that belongs to its owner alone. It hands out addresses, not access: to read or write there is the
/// owner's `unsafe`.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is plain memory.
unsafe impl Send for Mapping {}
// SAFETY: the mapping hands out no access by itself.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Map zeroed memory. Pages are taken from the system as they are touched, huge ones where it has them: they save a
    /// walk of the page table per look-up.
    ///
    /// # Errors
    /// The system's, when it has not the memory or the address space is exhausted.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        let mapping = Self::map(bytes.max(PAGE), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | LAZILY, -1)?;
        if cfg!(not(miri)) {
            // SAFETY: the range was just mapped. Huge pages are a wish; a refusal changes nothing.
            unsafe { libc::madvise(mapping.start.as_ptr().cast(), mapping.bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(mapping)
    }

    /// Map the beginning of what `fd` stands for, shared with whoever else maps it, with all its pages in place.
    ///
    /// # Errors
    /// The system's, when it cannot be mapped.
    pub fn shared(bytes: usize, fd: RawFd) -> io::Result<Self> {
        Self::map(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, fd)
    }

    fn map(bytes: usize, flags: libc::c_int, fd: RawFd) -> io::Result<Self> {
        // SAFETY: a fresh mapping, at an address of the system's choice, touches nothing of ours.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, bytes })
    }

    /// Return the address of the first byte, aligned to a page.
    #[inline(always)]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Return the address of a `T` that begins `offset` bytes after the start.
    ///
    /// # Panics
    /// When it is not aligned there, or ends beyond the mapping.
    pub fn at<T>(&self, offset: usize) -> NonNull<T> {
        assert!(offset.is_multiple_of(align_of::<T>()) && align_of::<T>() <= PAGE);
        assert!(self.bytes.checked_sub(offset).is_some_and(|rest| size_of::<T>() <= rest));
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.add(offset) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; who was told its addresses uses them no longer than this lives.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_is_zero_and_keeps_what_is_written() {
        let mapping = Mapping::anonymous(3 * PAGE).unwrap();
        let last = mapping.at::<u64>(3 * PAGE - 8);
        // SAFETY: the address is within the mapping, aligned, and zero is a number.
        unsafe {
            assert_eq!((last.read(), mapping.start().read()), (0, 0));
            last.write(7);
            assert_eq!(last.read(), 7);
        }
    }

    #[test]
    fn even_nothing_is_a_page() {
        _ = Mapping::anonymous(0).unwrap().at::<[u8; PAGE]>(0);
    }

    #[test]
    #[should_panic(expected = "is_some_and")]
    fn what_ends_beyond_the_mapping_has_no_address() {
        _ = Mapping::anonymous(PAGE).unwrap().at::<u64>(PAGE);
    }

    #[test]
    #[cfg(not(miri))]
    fn what_cannot_be_mapped_is_an_error() {
        assert_eq!(Mapping::shared(PAGE, -1).err().unwrap().raw_os_error(), Some(libc::EBADF));
        assert!(Mapping::anonymous(usize::MAX / 2).is_err());
    }
}
