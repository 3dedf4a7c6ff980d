//! A window that moves over a stream of bytes, decompressed on the way if need be.
//!
//! It holds one buffer of fixed size and reads no more than is there, so that a live stream is
//! delivered as it comes. The bytes of the last step stay readable until the window moves again.

use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};
use std::ops::Range;

use flate2::bufread::MultiGzDecoder;

use super::{Error, LinkType, MAX_RECORD, Place};

/// The most bytes that can be in view at once: a record of the greatest length and the headers,
/// options and padding around it.
pub(super) const VIEW: usize = MAX_RECORD + 64 * 1024;

/// How much one call reads unless more is needed: small enough that the bytes are still in the
/// second-level cache when they are used.
const READ: usize = 64 * 1024;

/// The first bytes of gzip (RFC 1952, §2.3.1) and zstd (RFC 8878, §3.1.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The stream, with the bytes by which its compression was told put back in front.
type Whole<R> = Chain<Cursor<Head>, R>;

enum Source<R> {
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Whole<R>>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Whole<R>>>>),
}

/// The first bytes of a stream; fewer than four if there are no more.
struct Head {
    bytes: [u8; 4],
    len: usize,
}

impl AsRef<[u8]> for Head {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

pub(super) struct Window<R> {
    source: Source<R>,
    buffer: Box<[u8]>,
    /// The bytes of `buffer` that are read and not yet passed.
    start: usize,
    end: usize,
    /// Bytes of the stream that were passed.
    offset: u64,
    /// The stream has ended, in its compression's view too early if `torn`.
    ended: bool,
    torn: bool,
}

/// A record whose bytes the window has just passed.
pub(super) struct Found {
    pub(super) time_ns: u64,
    pub(super) link: LinkType,
    pub(super) original_len: u32,
    /// Where in the window's buffer.
    pub(super) bytes: Range<usize>,
}

impl<R: Read> Window<R> {
    /// A window at the beginning of `stream`.
    ///
    /// # Errors
    /// Those of the first read, and want of memory for a decompressor.
    pub(super) fn new(mut stream: R) -> io::Result<Self> {
        let mut head = Head { bytes: [0; 4], len: 0 };
        while head.len < head.bytes.len() {
            match stream.read(&mut head.bytes[head.len..]) {
                Ok(0) => break,
                Ok(n) => head.len += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let gzip = head.as_ref().starts_with(&GZIP);
        let zstd = head.as_ref() == ZSTD;
        let whole = Cursor::new(head).chain(stream);
        let source = if gzip {
            Source::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ, whole))))
        } else if zstd {
            let input = BufReader::with_capacity(READ, whole);
            Source::Zstd(Box::new(zstd::Decoder::with_buffer(input)?))
        } else {
            Source::Plain(whole)
        };
        Ok(Window {
            source,
            buffer: vec![0; VIEW].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            torn: false,
        })
    }

    /// Bytes from the beginning of the (decompressed) stream to the window.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the compressed stream ended before it was complete.
    pub(super) fn is_torn(&self) -> bool {
        self.torn
    }

    /// What is in view.
    #[inline]
    pub(super) fn view(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Brings at least `n` bytes into view, at most [`VIEW`]; says whether they are there. If not,
    /// the stream has ended, and the view holds all that is left.
    #[inline]
    pub(super) fn fill(&mut self, n: usize) -> io::Result<bool> {
        if self.end - self.start >= n {
            return Ok(true);
        }
        self.read_up_to(n)
    }

    #[cold]
    fn read_up_to(&mut self, n: usize) -> io::Result<bool> {
        debug_assert!(n <= VIEW, "no more than a view can be in view");
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if VIEW - self.start < n.max(READ) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        while self.end - self.start < n {
            if self.ended {
                return Ok(false);
            }
            let missing = n - (self.end - self.start);
            let until = VIEW.min(self.end + missing.max(READ));
            let room = &mut self.buffer[self.end..until];
            let read = match &mut self.source {
                Source::Plain(stream) => stream.read(room),
                Source::Gzip(stream) => stream.read(room),
                Source::Zstd(stream) => stream.read(room),
            };
            match read {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Both decompressors say so when their input ends within a member or frame.
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                    (self.ended, self.torn) = (true, true);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// Moves past `n` bytes that are in view. They can be read with [`Window::passed`] until the
    /// next [`Window::fill`] or [`Window::skip`].
    #[inline]
    pub(super) fn pass(&mut self, n: usize) -> Range<usize> {
        let passed = self.start..self.start + n;
        debug_assert!(passed.end <= self.end, "only what is in view is passed");
        self.start = passed.end;
        self.offset += n as u64;
        passed
    }

    /// Bytes that were passed, by their place in the buffer.
    #[inline]
    pub(super) fn passed(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Moves past `n` bytes, in view or not.
    pub(super) fn skip(&mut self, mut n: u64, place: Place) -> Result<(), Error> {
        loop {
            let here = (self.end - self.start).min(usize::try_from(n).unwrap_or(usize::MAX));
            self.pass(here);
            n -= here as u64;
            if n == 0 {
                return Ok(());
            }
            self.need(1, place)?;
        }
    }

    /// As [`Window::fill`], but a stream that ends before is cut off at `place`.
    #[inline]
    pub(super) fn need(&mut self, n: usize, place: Place) -> Result<(), Error> {
        match self.fill(n) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::CutOff { place }),
            Err(source) => Err(Error::Read { place, source }),
        }
    }

    /// As [`Window::need`], but `false` for a stream that ends, complete, exactly here.
    #[inline]
    pub(super) fn need_or_end(&mut self, n: usize, place: Place) -> Result<bool, Error> {
        match self.fill(n) {
            Ok(true) => Ok(true),
            Ok(false) if self.view().is_empty() && !self.torn => Ok(false),
            Ok(false) => Err(Error::CutOff { place }),
            Err(source) => Err(Error::Read { place, source }),
        }
    }
}
