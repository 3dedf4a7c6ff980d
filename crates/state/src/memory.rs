//! Memory reserved at once and used bit by bit: a table that grows in it never moves and never allocates.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use catena_packet::Mapping;

/// Types for which all-zero bytes are a value.
///
/// # Safety
/// They must be.
pub(crate) unsafe trait Zeroed {}

// SAFETY: zero is a number.
unsafe impl Zeroed for u32 {}

/// A fixed number of `T`s, all zero at first; pages are taken from the system as they are touched.
pub(crate) struct Reserved<T: Zeroed> {
    memory: Mapping,
    count: usize,
    /// It owns its `T`s like a box.
    values: PhantomData<Box<[T]>>,
}

impl<T: Zeroed> Reserved<T> {
    /// Reserve room for `count` values.
    ///
    /// # Errors
    /// The system's, when the address space is exhausted.
    pub(crate) fn new(count: usize) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= 4096, "a mapping is aligned to pages") };
        let memory = Mapping::anonymous(count.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?)?;
        // The first touch of a page costs far more than a packet: those that are used first are touched now.
        // SAFETY: the mapping has at least a page, and zero is what stands there.
        unsafe { memory.start().write_volatile(0) };
        Ok(Reserved { memory, count, values: PhantomData })
    }
}

impl<T: Zeroed> Deref for Reserved<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `count` values are mapped, and zero is a value.
        unsafe { std::slice::from_raw_parts(self.memory.start().cast().as_ptr(), self.count) }
    }
}

impl<T: Zeroed> DerefMut for Reserved<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and we hold it mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().cast().as_ptr(), self.count) }
    }
}
