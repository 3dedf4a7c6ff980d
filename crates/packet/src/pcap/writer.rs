//! The writer: records into a capture file.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use flate2::write::GzEncoder;

use super::{Compression, Container, Error, Format, LinkType, MAX_COMMENT, MAX_RECORD, Record, classic, ng};
use crate::write::write_all;

/// Bytes are handed on, to the compressor or the system, when there are this many.
const HAND_ON: usize = 64 * 1024;

/// The most that one record can add: its bytes, an interface description (32), the header, padding and trailer of a
/// packet block (28, 3 and 4), and its options: a comment and their end.
const MOST_ADDED: usize = MAX_RECORD + 32 + 28 + 3 + 4 + MAX_COMMENT + 2 * ng::OPTION_HEADER;
const _: () = assert!(MAX_COMMENT.is_multiple_of(4), "a comment is padded to 32 bits");

/// Writes a capture, little-endian, with times in nanoseconds.
///
/// Records are collected in a buffer and written 64 KiB at a time; [`Writer::flush`] writes at once
/// what there is. [`Writer::finish`] must be called to learn whether all of it arrived; a writer
/// that is dropped instead finishes as best it can and stays silent about errors. Once writing has
/// failed, every further call fails too.
pub struct Writer<W: Write = File> {
    /// `None` once finished or failed.
    sink: Option<Sink<W>>,
    pending: Vec<u8>,
    container: Container,
    /// The link type of each interface described so far; of pcap, that of the file.
    links: Vec<LinkType>,
    records: u64,
    /// Of these, what was handed on whole.
    handed_on: u64,
}

enum Sink<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl Writer<File> {
    /// Creates the capture at `path`, replacing what was there; `-` is the standard output. `link`
    /// is the link type of the records to come; with pcapng more can follow.
    ///
    /// # Errors
    /// [`Error::Open`] and those of [`Writer::new`].
    pub fn create(path: impl AsRef<Path>, format: Format, link: LinkType) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = if path == Path::new("-") {
            io::stdout().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::create(path)
        };
        let file = file.map_err(|source| Error::Open { path: path.to_owned(), source })?;
        Writer::new(file, format, link)
    }
}

impl<W: Write> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("container", &self.container)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Begins a capture in `stream`, which need not be buffered.
    ///
    /// # Errors
    /// [`Error::Write`] when there is no memory for a compressor.
    pub fn new(stream: W, format: Format, link: LinkType) -> Result<Self, Error> {
        let sink = match format.compression {
            Compression::None => Sink::Plain(stream),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(stream, flate2::Compression::fast())),
            Compression::Zstd => {
                let level = zstd::DEFAULT_COMPRESSION_LEVEL;
                let encoder = zstd::Encoder::new(stream, level);
                Sink::Zstd(encoder.map_err(|source| Error::Write { source })?)
            }
        };
        let mut pending = Vec::with_capacity(HAND_ON + MOST_ADDED);
        match format.container {
            Container::Pcap => put_file_header(&mut pending, link),
            Container::Pcapng => {
                put_section_header(&mut pending);
                put_interface(&mut pending, link);
            }
        }
        Ok(Writer {
            sink: Some(sink),
            pending,
            container: format.container,
            links: vec![link],
            records: 0,
            handed_on: 0,
        })
    }

    /// The number of records taken so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The number of records that were handed on whole, to the system or the compressor. Once writing has failed, no
    /// other one arrives.
    pub fn handed_on(&self) -> u64 {
        self.handed_on
    }

    /// Adds a record. An original length less than that of the bytes is written as the latter.
    ///
    /// # Errors
    /// [`Error::RecordTooLong`], and with pcap [`Error::MixedLinks`] and
    /// [`Error::TimeOutOfRange`], for records that cannot be expressed: they are left out and the
    /// file stays good. [`Error::Write`] when handing on failed, for good.
    #[inline]
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.put(record, "")
    }

    /// Adds a record with a comment of at most [`MAX_COMMENT`] bytes, which Wireshark shows as the packet's; an empty one
    /// is none.
    ///
    /// # Errors
    /// [`Error::CommentTooLong`], with pcap [`Error::NoComments`], and those of [`Self::write`].
    pub fn write_with_comment(&mut self, record: &Record<'_>, comment: &str) -> Result<(), Error> {
        if comment.len() > MAX_COMMENT {
            return Err(Error::CommentTooLong { len: comment.len() });
        }
        if self.container == Container::Pcap && !comment.is_empty() {
            return Err(Error::NoComments);
        }
        self.put(record, comment)
    }

    #[inline]
    fn put(&mut self, record: &Record<'_>, comment: &str) -> Result<(), Error> {
        let len = record.bytes.len();
        if len > MAX_RECORD {
            return Err(Error::RecordTooLong { len });
        }
        let captured = len as u32;
        let original = record.original_len.max(captured);
        match self.container {
            Container::Pcap => self.put_pcap(record, captured, original)?,
            Container::Pcapng => self.put_pcapng(record, captured, original, comment),
        }
        self.records += 1;
        if self.pending.len() >= HAND_ON {
            self.hand_on()?;
        }
        Ok(())
    }

    /// Writes all records taken so far, so that whoever reads the other end of a pipe sees them.
    /// Costs some compression.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.hand_on()?;
        let flushed = match &mut self.sink {
            Some(Sink::Plain(w)) => w.flush(),
            Some(Sink::Gzip(w)) => w.flush(),
            Some(Sink::Zstd(w)) => w.flush(),
            None => Err(failed_before()),
        };
        self.settle(flushed)
    }

    /// Writes what is left, ends the compressed stream, and gives the stream back.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(mut self) -> Result<W, Error> {
        self.end()
    }

    /// Does what [`Self::finish`] does, for those who want to ask the writer what came of it.
    ///
    /// # Errors
    /// [`Error::Write`], also when it has ended before.
    pub fn end(&mut self) -> Result<W, Error> {
        self.hand_on()?;
        let ended = match self.sink.take() {
            Some(Sink::Plain(w)) => Ok(w),
            Some(Sink::Gzip(w)) => w.finish(),
            Some(Sink::Zstd(w)) => w.finish(),
            None => Err(failed_before()),
        };
        ended.and_then(|mut stream| stream.flush().map(|()| stream)).map_err(|source| Error::Write { source })
    }

    fn hand_on(&mut self) -> Result<(), Error> {
        let mut taken = 0;
        let written = match &mut self.sink {
            Some(Sink::Plain(w)) => write_all(w, &self.pending, &mut taken),
            Some(Sink::Gzip(w)) => w.write_all(&self.pending),
            Some(Sink::Zstd(w)) => w.write_all(&self.pending),
            None => Err(failed_before()),
        };
        self.handed_on = if written.is_ok() { self.records } else { self.handed_on + self.whole(taken) };
        self.pending.clear();
        self.settle(written)
    }

    /// The number of records that lie whole in the first bytes of what is pending.
    fn whole(&self, bytes: usize) -> u64 {
        let pending = &self.pending[..bytes];
        let number = |at: usize| -> Option<usize> {
            pending.get(at..at + 4).and_then(|n| Some(u32::from_le_bytes(n.try_into().ok()?) as usize))
        };
        let (mut at, mut count) = (0, 0);
        if self.container == Container::Pcap && number(0) == Some(classic::MAGIC_NANOS as usize) && self.handed_on == 0
        {
            at = 24;
        }
        loop {
            let (length, is_record) = match self.container {
                Container::Pcap => (number(at + 8).map(|captured| 16 + captured), true),
                Container::Pcapng => (number(at + 4), number(at) == Some(ng::ENHANCED_PACKET as usize)),
            };
            match length {
                Some(length) if length > 0 && at + length <= bytes => at += length,
                _ => return count,
            }
            if is_record {
                count += 1;
            }
        }
    }

    /// Gives up the sink if it failed: a file with a hole would be worse than a short one.
    fn settle(&mut self, result: io::Result<()>) -> Result<(), Error> {
        result.map_err(|source| {
            self.sink = None;
            Error::Write { source }
        })
    }

    #[inline]
    fn put_pcap(&mut self, record: &Record<'_>, captured: u32, original: u32) -> Result<(), Error> {
        if record.link != self.links[0] {
            return Err(Error::MixedLinks { file: self.links[0], record: record.link });
        }
        let time_ns = record.time_ns;
        let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(|_| Error::TimeOutOfRange { time_ns })?;
        let mut header = [0; 16];
        header[0..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&((time_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&captured.to_le_bytes());
        header[12..16].copy_from_slice(&original.to_le_bytes());
        self.pending.extend_from_slice(&header);
        self.pending.extend_from_slice(record.bytes);
        Ok(())
    }

    #[inline]
    fn put_pcapng(&mut self, record: &Record<'_>, captured: u32, original: u32, comment: &str) {
        let interface = self.interface(record.link);
        let padded = captured.next_multiple_of(4);
        let options = match comment.len() {
            0 => 0,
            len => len.next_multiple_of(4) + 2 * ng::OPTION_HEADER,
        };
        let block_len = 32 + padded + options as u32;
        let mut header = [0; 28];
        header[0..4].copy_from_slice(&ng::ENHANCED_PACKET.to_le_bytes());
        header[4..8].copy_from_slice(&block_len.to_le_bytes());
        header[8..12].copy_from_slice(&interface.to_le_bytes());
        header[12..16].copy_from_slice(&((record.time_ns >> 32) as u32).to_le_bytes());
        header[16..20].copy_from_slice(&(record.time_ns as u32).to_le_bytes());
        header[20..24].copy_from_slice(&captured.to_le_bytes());
        header[24..28].copy_from_slice(&original.to_le_bytes());
        self.pending.extend_from_slice(&header);
        self.pending.extend_from_slice(record.bytes);
        self.pending.extend_from_slice(&[0; 3][..(padded - captured) as usize]);
        if options > 0 {
            put_option(&mut self.pending, ng::OPTION_COMMENT, comment.as_bytes());
            put_option(&mut self.pending, 0, &[]);
        }
        self.pending.extend_from_slice(&block_len.to_le_bytes());
    }

    /// The number of the interface for `link`, described now if it is new. There are at most 65536.
    #[inline]
    fn interface(&mut self, link: LinkType) -> u32 {
        let known = self.links.iter().position(|known| *known == link);
        let index = known.unwrap_or_else(|| {
            put_interface(&mut self.pending, link);
            self.links.push(link);
            self.links.len() - 1
        });
        index as u32
    }
}

impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        if self.sink.is_some() {
            // Nobody is left to be told.
            let _ = self.end();
        }
    }
}

fn failed_before() -> io::Error {
    io::Error::other("an earlier write to this file has failed")
}

fn put_file_header(out: &mut Vec<u8>, link: LinkType) {
    out.extend_from_slice(&classic::MAGIC_NANOS.to_le_bytes());
    out.extend_from_slice(&2u16.to_le_bytes());
    out.extend_from_slice(&4u16.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&(MAX_RECORD as u32).to_le_bytes());
    out.extend_from_slice(&u32::from(link.0).to_le_bytes());
}

fn put_section_header(out: &mut Vec<u8>) {
    /// `shb_userappl` (§4.1).
    const OPTION_APPLICATION: u16 = 4;
    put_block(out, ng::SECTION_HEADER, |out| {
        out.extend_from_slice(&ng::BYTE_ORDER_MAGIC.to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        // The length of the section, which a stream does not know.
        out.extend_from_slice(&(-1i64).to_le_bytes());
        put_option(out, OPTION_APPLICATION, b"catena");
        put_option(out, 0, &[]);
    });
}

fn put_interface(out: &mut Vec<u8>, link: LinkType) {
    put_block(out, ng::INTERFACE, |out| {
        out.extend_from_slice(&link.0.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&(MAX_RECORD as u32).to_le_bytes());
        put_option(out, ng::OPTION_TIME_RESOLUTION, &[9]);
        put_option(out, 0, &[]);
    });
}

/// Frames a body of whole 32-bit words with its type and length (§3.1).
fn put_block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    body(out);
    let len = (out.len() - start + ng::BLOCK_TRAILER) as u32;
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
}

/// One option and its padding (§3.5).
fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    out.extend_from_slice(&[0; 3][..value.len().next_multiple_of(4) - value.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_record_makes_the_buffer_grow() {
        let bytes = vec![1; MAX_RECORD];
        let mut writer = Writer::new(io::sink(), Format::PCAPNG, LinkType(0)).unwrap();
        let capacity = writer.pending.capacity();
        for link in 1..200 {
            // Fill to the last word below the mark, then add the most that one record can.
            while writer.pending.len() < HAND_ON - 4 {
                let room = HAND_ON - 4 - writer.pending.len();
                let len = if room > 2_000 { 1_000 } else { room - 32 };
                let record = Record::new(0, LinkType(0), &bytes[..len]);
                writer.write(&record).unwrap();
            }
            assert_eq!(writer.pending.len(), HAND_ON - 4);
            let len = MAX_RECORD - usize::from(link % 5);
            let record = Record::new(0, LinkType(link), &bytes[..len]);
            let comment = ["", "c"][usize::from(link % 2)].repeat(MAX_COMMENT);
            writer.write_with_comment(&record, &comment).unwrap();
            assert_eq!(writer.pending.capacity(), capacity);
        }
        writer.finish().unwrap();
    }
}
