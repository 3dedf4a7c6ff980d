//! Capture files, in and out: pcap and pcapng, plain or compressed with gzip or zstd.
//!
//! [`Reader`] takes whatever tcpdump, Wireshark and their kin write, from a path or from any
//! [`std::io::Read`]; it never seeks, so a pipe serves as well as a file. Format and compression
//! are told from the first bytes, never from the name. [`Writer`] takes its [`Format`] from the
//! name of the file. Times are nanoseconds since 1970 on both sides, and both hold a fixed buffer
//! that is used over and over: no record allocates.
//!
//! ```
//! use catena_packet::pcap::{Format, LinkType, Reader, Record, Writer};
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, Format::PCAP, LinkType::ETHERNET)?;
//! writer.write(&Record::new(1_000_000_007, LinkType::ETHERNET, &[0; 60]))?;
//! writer.finish()?;
//!
//! let mut reader = Reader::new(&file[..])?;
//! while let Some(record) = reader.next()? {
//!     assert_eq!((record.time_ns, record.bytes.len()), (1_000_000_007, 60));
//! }
//! # Ok::<(), catena_packet::pcap::Error>(())
//! ```
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, and for the variants of pcap that no
//! draft describes, what libpcap and Wireshark accept.

mod blocks;
mod bytes;
mod classic;
mod error;
mod format;
mod link;
mod ng;
mod reader;
mod window;
mod writer;

pub use error::{Error, Place};
pub use format::{Compression, Container, Format};
pub use link::LinkType;
pub use reader::{Ahead, Reader};
pub use writer::Writer;

/// The most bytes a record may hold: 256 KiB, which is also libpcap's and Wireshark's bound for
/// network traffic. A longer one is taken for damage.
pub const MAX_RECORD: usize = 256 * 1024;

/// The most bytes of a comment that is written beside a record.
pub const MAX_COMMENT: usize = 64;

/// One captured packet, as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, in nanoseconds since 1970-01-01 UTC; 0 where the file does not say
    /// (pcapng's simple packet block). Times beyond what 64 bits hold end at the nearest bound.
    pub time_ns: u64,
    /// How the first header in `bytes` is to be read.
    pub link: LinkType,
    /// The length in bytes that the packet had on the wire, as the file has it; more than
    /// `bytes.len()` where the capture kept only the beginning. Nothing is promised of a bad file.
    pub original_len: u32,
    /// What was kept of the packet, at most [`MAX_RECORD`] bytes.
    pub bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// A record of a whole packet: its original length is that of `bytes`.
    pub fn new(time_ns: u64, link: LinkType, bytes: &'a [u8]) -> Self {
        Record { time_ns, link, original_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX), bytes }
    }
}
