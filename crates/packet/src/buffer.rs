//! One packet: a buffer of a pool, its bytes with head-room, its metadata.
//!
//! A buffer is a [`Slot`]: a line of metadata, a line that never changes (whose it is), head-room, bytes.
//! Slots are an odd number of cache lines long; with a power of two the metadata of all packets of a
//! batch would fall into the same few sets of the first-level cache and evict each other.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::meta::Meta;
use crate::pool::Depot;
use crate::wire::{self, Layers, Malformed};

/// Bytes kept free before a fresh packet, for headers that functions put in front.
pub const HEAD_ROOM: usize = 128;
/// Largest packet of a small buffer, in bytes.
pub const SMALL_BYTES: usize = 37 * 64 - 2 * 64 - HEAD_ROOM;
/// Largest packet of a jumbo buffer, in bytes: what a capture of a loopback interface may hold.
pub const JUMBO_BYTES: usize = 1031 * 64 - 2 * 64 - HEAD_ROOM;

/// Bytes from one slot to the next, by size class.
pub(crate) const STRIDE: [usize; 2] = [37 * 64, 1031 * 64];
const ROOM_OFFSET: usize = 2 * 64;
const _: () = assert!((STRIDE[0] / 64) % 2 == 1 && (STRIDE[1] / 64) % 2 == 1);

/// The start of a buffer; its room (head-room and bytes) follows it in memory.
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) meta: Meta,
    /// The depot that the slot belongs to; written once, when the depot is made.
    pub(crate) home: *const Depot,
}

const _: () = assert!(size_of::<Slot>() == ROOM_OFFSET);

/// An owned packet.
///
/// Workers give packets back to their [`crate::Pool`] in bulk; a packet that is simply dropped finds its
/// way home by itself, only slower.
#[repr(transparent)]
pub struct Packet(pub(crate) NonNull<Slot>);

// SAFETY: a packet owns its slot alone; the slot's `home` is a depot, which is `Sync`.
unsafe impl Send for Packet {}
// SAFETY: through a shared packet nothing can be changed.
unsafe impl Sync for Packet {}

impl Packet {
    /// Return the metadata.
    #[inline(always)]
    pub fn meta(&self) -> &Meta {
        // SAFETY: the packet owns a live slot.
        unsafe { &self.0.as_ref().meta }
    }

    /// Return the metadata for changing.
    #[inline(always)]
    pub fn meta_mut(&mut self) -> &mut Meta {
        // SAFETY: the packet owns a live slot, and we hold it mutably.
        unsafe { &mut self.0.as_mut().meta }
    }

    /// Return the length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.meta().len as usize
    }

    /// Return whether the packet has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    fn room(&self) -> *mut u8 {
        // SAFETY: every slot is followed by its room, inside the same mapping.
        unsafe { self.0.as_ptr().cast::<u8>().add(ROOM_OFFSET) }
    }

    fn room_bytes(&self) -> usize {
        STRIDE[usize::from(self.meta().class)] - ROOM_OFFSET
    }

    /// Return the bytes.
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        let meta = self.meta();
        // SAFETY: `head + len` lies within the room (kept by every setter in this file), and the room
        // of a slot handed out by a depot is initialised memory (zero pages or packets before).
        unsafe { std::slice::from_raw_parts(self.room().add(usize::from(meta.head)), meta.len as usize) }
    }

    /// Return the bytes for changing. Whoever changes a length or a protocol in a header calls
    /// [`Self::reparse`] after.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let (head, len) = (usize::from(self.meta().head), self.len());
        // SAFETY: as in `data`, and we hold the packet mutably.
        unsafe { std::slice::from_raw_parts_mut(self.room().add(head), len) }
    }

    /// Return how many bytes [`Self::push_front`] has room for.
    #[inline(always)]
    pub fn head_room(&self) -> usize {
        usize::from(self.meta().head)
    }

    /// Return how many bytes [`Self::push_back`] has room for.
    #[inline(always)]
    pub fn tail_room(&self) -> usize {
        self.room_bytes() - self.head_room() - self.len()
    }

    /// Return where the headers are, reading them at the first call and remembering the answer.
    ///
    /// # Errors
    /// What is wrong with the packet's headers.
    #[inline(always)]
    pub fn parse(&mut self) -> Result<Layers, Malformed> {
        if self.is_parsed() {
            return Ok(self.meta().layers);
        }
        let layers = wire::parse(self.data())?;
        let meta = self.meta_mut();
        meta.layers = layers;
        meta.parsed = true;
        Ok(layers)
    }

    /// Return whether [`Self::parse`] has read where the headers are.
    #[inline(always)]
    pub fn is_parsed(&self) -> bool {
        self.meta().parsed
    }

    /// Return where the headers are as [`Self::parse`] found them (all zero before).
    #[inline(always)]
    pub fn layers(&self) -> Layers {
        self.meta().layers
    }

    /// Forget where the headers are; the next [`Self::parse`] reads them again.
    pub fn reparse(&mut self) {
        self.meta_mut().parsed = false;
    }

    /// Copy `bytes` in as the whole packet, at the usual head-room.
    ///
    /// # Panics
    /// When `bytes` is longer than the buffer was asked for.
    #[inline]
    pub fn fill(&mut self, bytes: &[u8]) {
        self.resize_fresh(bytes.len());
        self.data_mut().copy_from_slice(bytes);
    }

    /// Make the packet `len` bytes long at the usual head-room, with whatever bytes the buffer holds.
    ///
    /// # Panics
    /// When the buffer is too small.
    #[inline]
    pub fn resize_fresh(&mut self, len: usize) {
        assert!(len + HEAD_ROOM <= self.room_bytes(), "a packet of {len} bytes does not fit its buffer");
        let meta = self.meta_mut();
        meta.head = HEAD_ROOM as u16;
        meta.len = len as u32;
        meta.parsed = false;
    }

    /// Put `bytes` in front of the packet. Returns whether there was head-room for them.
    #[must_use]
    pub fn push_front(&mut self, bytes: &[u8]) -> bool {
        let head = usize::from(self.meta().head);
        if bytes.len() > head {
            return false;
        }
        let meta = self.meta_mut();
        meta.head = (head - bytes.len()) as u16;
        meta.len += bytes.len() as u32;
        meta.parsed = false;
        self.data_mut()[..bytes.len()].copy_from_slice(bytes);
        true
    }

    /// Take `count` bytes off the front. Returns whether the packet had that many.
    #[must_use]
    pub fn pull_front(&mut self, count: usize) -> bool {
        let head = usize::from(self.meta().head) + count;
        let Ok(head) = u16::try_from(head) else { return false };
        if count > self.len() {
            return false;
        }
        let meta = self.meta_mut();
        meta.head = head;
        meta.len -= count as u32;
        meta.parsed = false;
        true
    }

    /// Cut the packet to `len` bytes if it is longer.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            let meta = self.meta_mut();
            meta.len = len as u32;
            meta.parsed = false;
        }
    }

    /// Put `bytes` behind the packet. Returns whether there was room for them.
    #[must_use]
    pub fn push_back(&mut self, bytes: &[u8]) -> bool {
        let end = usize::from(self.meta().head) + self.len();
        if end + bytes.len() > self.room_bytes() {
            return false;
        }
        let old = self.len();
        let meta = self.meta_mut();
        meta.len += bytes.len() as u32;
        meta.parsed = false;
        self.data_mut()[old..].copy_from_slice(bytes);
        true
    }

    /// Copy the bytes and metadata of `other` into this packet.
    ///
    /// # Panics
    /// When the buffer is too small for them.
    pub fn copy_from(&mut self, other: &Packet) {
        let class = self.meta().class;
        self.fill(other.data());
        let head = self.meta().head;
        *self.meta_mut() = Meta { head, class, ..*other.meta() };
    }

    /// Ask for the metadata and for the first bytes, where most packets have them: of a packet that another core had.
    #[inline(always)]
    pub fn bring(&self) {
        prefetch(self.0.as_ptr());
        self.prefetch();
    }

    /// Ask the processor to bring the first line of the packet's bytes near.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(self.room().wrapping_add(HEAD_ROOM));
    }

    /// Give up the handle without giving the buffer back.
    pub(crate) fn into_slot(self) -> NonNull<Slot> {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Packet {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: the slot is live and its depot outlives all its packets (see `pool`).
        unsafe { (*self.0.as_ref().home).take_home(self.0) }
    }
}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packet({} bytes)", self.len())
    }
}

/// Ask the processor to bring the cache line at `address` near; never faults.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; any address is allowed.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
