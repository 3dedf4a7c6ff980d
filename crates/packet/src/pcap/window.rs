//! A window that moves over a stream of bytes, decompressed on the way if need be.
//!
//! It holds one buffer of fixed size and reads no more than is there, so that a live stream is
//! delivered as it comes. The bytes of the last step stay readable until the window moves again.
//!
//! A stream may say that nothing is there yet ([`ErrorKind::WouldBlock`]); so does the window itself once it has
//! read as much as it was allowed. Nothing is lost by that: the same step is tried again later.

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
type Whole<R> = Chain<Cursor<Head>, Metered<R>>;

enum Source<R> {
    /// Its first bytes have not all come; the stream is there until they have.
    Unknown(Head, Option<Metered<R>>),
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Whole<R>>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Whole<R>>>>),
}

/// A stream of which no more than `left` bytes are read: a decompressor may read any number of bytes before
/// one comes out of it.
struct Metered<R> {
    stream: R,
    left: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.stream.read(&mut buffer[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
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
    /// How many bytes more may be read, after decompression.
    left: u64,
    /// The rest of a block that is being skipped.
    pub(super) skipping: Option<Skip>,
}

/// A block on the way past.
#[derive(Clone, Copy)]
pub(super) struct Skip {
    /// Bytes left before its trailer.
    pub(super) left: u64,
    /// The length it announced.
    pub(super) len: u32,
    /// Where it began.
    pub(super) place: Place,
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
    /// A window at the beginning of `stream`, of which nothing is read yet.
    pub(super) fn new(stream: R) -> Self {
        let stream = Metered { stream, left: u64::MAX };
        Window {
            source: Source::Unknown(Head { bytes: [0; 4], len: 0 }, Some(stream)),
            buffer: vec![0; VIEW].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            torn: false,
            left: u64::MAX,
            skipping: None,
        }
    }

    /// Read from now on at most so many bytes of the stream, and so many after decompression.
    pub(super) fn allow(&mut self, read: u64, decompressed: u64) {
        self.left = decompressed;
        let metered = match &mut self.source {
            Source::Unknown(_, stream) => stream.as_mut(),
            Source::Plain(whole) => Some(whole.get_mut().1),
            Source::Gzip(decoder) => Some(decoder.get_mut().get_mut().get_mut().1),
            Source::Zstd(decoder) => Some(decoder.get_mut().get_mut().get_mut().1),
        };
        if let Some(metered) = metered {
            metered.left = read;
        }
    }

    /// Find out how the stream is compressed.
    fn begin(&mut self) -> io::Result<()> {
        let Source::Unknown(head, stream) = &mut self.source else { return Ok(()) };
        while let Some(source) = stream
            && head.len < head.bytes.len()
        {
            match source.read(&mut head.bytes[head.len..]) {
                Ok(0) => break,
                Ok(n) => head.len += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let Some(stream) = stream.take() else { return Ok(()) };
        let head = Head { ..*head };
        let gzip = head.as_ref().starts_with(&GZIP);
        let zstd = head.as_ref() == ZSTD;
        let whole = Cursor::new(head).chain(stream);
        self.source = if gzip {
            Source::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ, whole))))
        } else if zstd {
            let input = BufReader::with_capacity(READ, whole);
            Source::Zstd(Box::new(zstd::Decoder::with_buffer(input)?))
        } else {
            Source::Plain(whole)
        };
        Ok(())
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
        self.begin()?;
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
            if self.left == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let missing = n - (self.end - self.start);
            let until = VIEW.min(self.end + missing.max(READ));
            let room = &mut self.buffer[self.end..until];
            let read = match &mut self.source {
                // `begin` has come to its end; only a decompressor that could not be made leaves this.
                Source::Unknown(..) => Ok(0),
                Source::Plain(stream) => stream.read(room),
                Source::Gzip(stream) => stream.read(room),
                Source::Zstd(stream) => stream.read(room),
            };
            match read {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    self.end += n;
                    self.left = self.left.saturating_sub(n as u64);
                }
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

    /// Moves on past the block that is being skipped, up to its trailer.
    pub(super) fn skip(&mut self) -> Result<(), Error> {
        while let Some(skip) = self.skipping.filter(|skip| skip.left > 0) {
            self.need(1, skip.place)?;
            let here = (self.end - self.start).min(usize::try_from(skip.left).unwrap_or(usize::MAX));
            self.pass(here);
            self.skipping = Some(Skip { left: skip.left - here as u64, ..skip });
        }
        Ok(())
    }

    /// As [`Window::fill`], but a stream that ends before is cut off at `place`.
    #[inline]
    pub(super) fn need(&mut self, n: usize, place: Place) -> Result<(), Error> {
        match self.fill(n) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::CutOff { place }),
            Err(source) => Err(failed(source, place)),
        }
    }

    /// As [`Window::need`], but `false` for a stream that ends, complete, exactly here.
    #[inline]
    pub(super) fn need_or_end(&mut self, n: usize, place: Place) -> Result<bool, Error> {
        match self.fill(n) {
            Ok(true) => Ok(true),
            Ok(false) if self.view().is_empty() && !self.torn => Ok(false),
            Ok(false) => Err(Error::CutOff { place }),
            Err(source) => Err(failed(source, place)),
        }
    }
}

/// What it means that reading came to nothing.
pub(super) fn failed(source: io::Error, place: Place) -> Error {
    match source.kind() {
        ErrorKind::WouldBlock => Error::NotYet,
        _ => Error::Read { place, source },
    }
}
