//! Messages from one worker to another: a ring of words with one writer and one reader.
//!
//! Who writes and who reads each count words (Lamport, "Specifying Concurrent Program Modules", §2), and keep a copy of the other's
//! count, so a message costs a shared cache line now and then. A message is a word that says how many follow, and those.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A count on cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicUsize);

struct Ring {
    words: Box<[AtomicU64]>,
    /// Words that were ever written; only the writer changes it.
    written: Count,
    /// Words that were ever read; only the reader changes it.
    read: Count,
}

/// Make a ring for at least so many words.
pub(super) fn ring(words: usize) -> (Writer, Reader) {
    let words = (0..words.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
    let ring = Arc::new(Ring { words, written: Count::default(), read: Count::default() });
    (Writer { ring: Arc::clone(&ring), written: 0, told: 0, read: 0 }, Reader { ring, written: 0, read: 0 })
}

impl Ring {
    /// Return the place of a word, by its count.
    fn place(&self, count: usize) -> &AtomicU64 {
        &self.words[count & (self.words.len() - 1)]
    }
}

/// The end that messages are written to.
pub(super) struct Writer {
    ring: Arc<Ring>,
    written: usize,
    /// What the reader was told.
    told: usize,
    /// What we last saw the reader at.
    read: usize,
}

impl Writer {
    /// Write a message, if there is room for all of it. The reader hears of it when it is told.
    pub(super) fn write(&mut self, message: &[u64]) -> bool {
        let room = |read| self.ring.words.len() - (self.written - read);
        if room(self.read) <= message.len() {
            self.read = self.ring.read.0.load(Ordering::Acquire);
            if self.ring.words.len() - (self.written - self.read) <= message.len() {
                return false;
            }
        }
        for word in std::iter::once(message.len() as u64).chain(message.iter().copied()) {
            self.ring.place(self.written).store(word, Ordering::Relaxed);
            self.written += 1;
        }
        true
    }

    /// Tell the reader of all messages so far.
    pub(super) fn tell(&mut self) {
        if self.told != self.written {
            self.ring.written.0.store(self.written, Ordering::Release);
            self.told = self.written;
        }
    }
}

/// The end that messages are read from.
pub(super) struct Reader {
    ring: Arc<Ring>,
    /// What we last saw the writer at.
    written: usize,
    read: usize,
}

impl Reader {
    /// Read the next message, instead of what `message` holds; returns whether there was one.
    pub(super) fn read(&mut self, message: &mut Vec<u64>) -> bool {
        if self.written == self.read {
            self.written = self.ring.written.0.load(Ordering::Acquire);
            if self.written == self.read {
                return false;
            }
        }
        let count = self.ring.place(self.read).load(Ordering::Relaxed) as usize;
        let words = self.read + 1..self.read + 1 + count;
        self.read = words.end;
        message.clear();
        message.extend(words.map(|at| self.ring.place(at).load(Ordering::Relaxed)));
        self.ring.read.0.store(self.read, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_cross_whole_and_in_order() {
        let (mut writer, mut reader) = ring(64);
        let sender = std::thread::spawn(move || {
            for number in 0..20_000u64 {
                let message = vec![number; (number % 20) as usize];
                while !writer.write(&message) {
                    writer.tell();
                    std::thread::yield_now();
                }
                if number.is_multiple_of(3) {
                    writer.tell();
                }
            }
            writer.tell();
        });
        let mut message = Vec::new();
        for number in 0..20_000u64 {
            while !reader.read(&mut message) {
                std::thread::yield_now();
            }
            assert_eq!(message, vec![number; (number % 20) as usize]);
        }
        sender.join().unwrap();
        assert!(!reader.read(&mut message));
    }

    #[test]
    fn what_finds_no_room_is_not_written_and_what_is_not_told_is_not_read() {
        let (mut writer, mut reader) = ring(8);
        let mut message = Vec::new();
        assert!(writer.write(&[1, 2, 3]) && writer.write(&[4, 5]) && !writer.write(&[6]));
        assert!(!reader.read(&mut message));
        writer.tell();
        assert!(reader.read(&mut message) && message == [1, 2, 3]);
        assert!(writer.write(&[6]) && !writer.write(&[7, 8, 9]));
        writer.tell();
        assert!(reader.read(&mut message) && message == [4, 5]);
        assert!(reader.read(&mut message) && message == [6]);
        assert!(!reader.read(&mut message));
    }
}
