//! What can be wrong with a capture file, and where.

use std::path::PathBuf;
use std::{error, fmt, io};

use super::{LinkType, MAX_COMMENT, MAX_RECORD};

/// A place in a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of the capture to the record or block in question, counted after
    /// decompression.
    pub offset: u64,
    /// Records that came before it, all of them good and already handed out.
    pub records: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.records {
            0 => write!(f, "before the first record (at byte {})", self.offset),
            n => write!(f, "after record {n} (at byte {})", self.offset),
        }
    }
}

/// Why a capture cannot be read any further, or be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened or created.
    Open {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Reading failed in the midst of the file: an error of the system, or damaged compression.
    Read {
        /// How far it went well.
        place: Place,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// Nothing more is there yet, and the stream does not wait: ask again later. Nothing is lost.
    NotYet,
    /// There is not a single byte to read.
    Empty,
    /// The first bytes are not those of a capture file.
    NotACapture {
        /// The first four bytes after decompression; zeros where there are fewer.
        head: [u8; 4],
    },
    /// The file ends within a record or block, or within its compressed stream: its writer was
    /// interrupted. Many captures end so, and every record before is good.
    CutOff {
        /// Where the incomplete record begins.
        place: Place,
    },
    /// A record or block claims more bytes than there are in any packet.
    TooLong {
        /// Where it begins.
        place: Place,
        /// The length it claims, in bytes.
        len: u64,
        /// The most it may have, in bytes.
        most: usize,
    },
    /// A header contradicts the format.
    Malformed {
        /// Where the record or block begins.
        place: Place,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Writing failed. The kind `BrokenPipe` says that whoever reads the output has left.
    Write {
        /// What the system or the compressor said.
        source: io::Error,
    },
    /// The name of a file to write does not say which format it should have.
    UnknownSuffix {
        /// Which file.
        path: PathBuf,
    },
    /// pcap has one link type for the whole file and this record has another; pcapng takes both.
    MixedLinks {
        /// The link type of the file.
        file: LinkType,
        /// The link type of the record.
        record: LinkType,
    },
    /// A record to write is longer than [`MAX_RECORD`] bytes.
    RecordTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A record has a comment, and pcap has no place for it; pcapng has.
    NoComments,
    /// A comment to write is longer than [`MAX_COMMENT`] bytes.
    CommentTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A record's time lies after 2106, which pcap cannot express; pcapng can.
    TimeOutOfRange {
        /// Nanoseconds since 1970.
        time_ns: u64,
    },
}

impl Error {
    /// Where in the file it went wrong, for errors that have a place. The `records` of it have been
    /// handed out and are good, so a caller may count such an error as a warning.
    pub fn place(&self) -> Option<Place> {
        match self {
            Error::Read { place, .. }
            | Error::CutOff { place }
            | Error::TooLong { place, .. }
            | Error::Malformed { place, .. } => Some(*place),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Open { path, source } => write!(f, "cannot open {}: {source}", path.display()),
            Error::Read { place, source } => write!(f, "reading failed {place}: {source}"),
            Error::NotYet => f.write_str("nothing more is there yet"),
            Error::Empty => f.write_str("there is nothing in it, not even the header of a capture"),
            Error::NotACapture { head: [a, b, c, d] } => write!(
                f,
                "not a capture: pcap, pcapng, or either in gzip or zstd was expected, \
                 and it begins with {a:02x} {b:02x} {c:02x} {d:02x}"
            ),
            Error::CutOff { place } => write!(f, "the file is cut off {place}"),
            Error::TooLong { place, len, most } => {
                write!(f, "{len} bytes are claimed {place}, {most} at most are possible: the file is damaged")
            }
            Error::Malformed { place, what } => write!(f, "{what} {place}: the file is damaged"),
            Error::Write { source } => write!(f, "writing failed: {source}"),
            Error::UnknownSuffix { path } => write!(
                f,
                "{}: the name should end in .pcap or .pcapng, and may have .gz or .zst after it",
                path.display()
            ),
            Error::MixedLinks { file, record } => write!(
                f,
                "a packet of {record} cannot go into a pcap file of {file}; \
                 a .pcapng file holds both"
            ),
            Error::RecordTooLong { len } => {
                write!(f, "a packet of {len} bytes cannot be written, {MAX_RECORD} at most are possible")
            }
            Error::NoComments => f.write_str("pcap has no place for comments; .pcapng has"),
            Error::CommentTooLong { len } => {
                write!(f, "a comment of {len} bytes cannot be written, {MAX_COMMENT} at most are possible")
            }
            Error::TimeOutOfRange { time_ns } => {
                write!(f, "second {} lies beyond what pcap can express; .pcapng can", time_ns / 1_000_000_000)
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Open { source, .. } | Error::Read { source, .. } | Error::Write { source } => Some(source),
            _ => None,
        }
    }
}
