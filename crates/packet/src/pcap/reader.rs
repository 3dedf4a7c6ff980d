//! The reader: records one after another from a capture of any format.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use super::blocks::{self, Block};
use super::classic::{self, Layout};
use super::ng::{self, Section};
use super::window::{Found, Window, failed};
use super::{Error, LinkType, Place, Record};

/// Reads a capture from a stream, without seeking, in bounded memory (320 KiB, and what the
/// decompressor needs: at most 128 MiB for the largest zstd window).
///
/// The stream need not be buffered: the reader asks for 64 KiB at a time, takes what it gets, and
/// delivers every record as soon as it is there, so that a live capture can be piped in.
///
/// A stream that does not wait ([`io::ErrorKind::WouldBlock`]) makes [`Error::NotYet`], after which reading goes on
/// where it was. After any other error the reader is at its end: [`Reader::next`] then returns `None`.
pub struct Reader<R = File> {
    window: Window<R>,
    file: Layouts,
    records: u64,
    over: bool,
    /// What [`Reader::peek`] has read already.
    ahead: Option<Result<Option<Found>, Error>>,
}

/// What comes after the last record handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// A record of this time.
    Time(u64),
    /// No record: the end, or damage.
    End,
    /// The stream has no more yet.
    NotYet,
}

enum Layouts {
    Unread,
    Pcap(Layout),
    Pcapng { section: Section, first_link: Option<LinkType> },
}

impl Reader<File> {
    /// Opens the capture at `path`; `-` is the standard input.
    ///
    /// # Errors
    /// [`Error::Open`] and those of [`Reader::new`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = if path == Path::new("-") {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(path)
        };
        Reader::new(file.map_err(|source| Error::Open { path: path.to_owned(), source })?)
    }
}

impl<R> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("records", &self.records).field("over", &self.over).finish_non_exhaustive()
    }
}

impl<R: Read> Reader<R> {
    /// Begins to read a capture: its header, and of pcapng all up to the first interface.
    ///
    /// # Errors
    /// [`Error::Empty`] and [`Error::NotACapture`] for anything else than a capture;
    /// [`Error::Read`], [`Error::CutOff`], [`Error::TooLong`] and [`Error::Malformed`] for one
    /// whose beginning is damaged.
    pub fn new(stream: R) -> Result<Self, Error> {
        let mut reader = Reader::lazy(stream);
        reader.begin()?;
        Ok(reader)
    }

    /// A reader of `stream` that has read nothing yet; [`Reader::next`] and [`Reader::begin`] do.
    pub fn lazy(stream: R) -> Self {
        Reader { window: Window::new(stream), file: Layouts::Unread, records: 0, over: false, ahead: None }
    }

    /// Reads the header, and of pcapng all up to the first interface, unless that was done.
    ///
    /// # Errors
    /// Those of [`Reader::new`], and [`Error::NotYet`] for a stream that does not wait: then this may be called
    /// again.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.read_layout()?;
        self.find_first_link()
    }

    /// Bounds the work until the next call: the reader takes at most so many bytes from the stream, and so many
    /// after decompression, and returns [`Error::NotYet`] when there are no more.
    pub fn allow(&mut self, read: u64, decompressed: u64) {
        self.window.allow(read, decompressed);
    }

    #[cold]
    fn read_layout(&mut self) -> Result<(), Error> {
        if !matches!(self.file, Layouts::Unread) {
            return Ok(());
        }
        let nowhere = Place { offset: 0, records: 0 };
        let window = &mut self.window;
        window.fill(4).map_err(|source| failed(source, nowhere))?;
        let mut head = [0; 4];
        let there = window.view().len().min(4);
        head[..there].copy_from_slice(&window.view()[..there]);
        self.file = if there == 0 && !window.is_torn() {
            return Err(Error::Empty);
        } else if head == ng::SECTION_HEADER.to_le_bytes() {
            let section = blocks::section_header(window, nowhere)?;
            Layouts::Pcapng { section, first_link: None }
        } else if Layout::is_magic(head) {
            Layouts::Pcap(classic::file_header(window, nowhere)?)
        } else if window.is_torn() {
            return Err(Error::CutOff { place: nowhere });
        } else {
            return Err(Error::NotACapture { head });
        };
        Ok(())
    }

    /// The link type of the file: of pcapng, that of the first interface, and `None` if there is no
    /// interface at all, and so no record. Other interfaces may differ; see [`Record::link`].
    pub fn link(&self) -> Option<LinkType> {
        match &self.file {
            Layouts::Pcap(layout) => Some(layout.link),
            Layouts::Pcapng { first_link, .. } => *first_link,
            Layouts::Unread => None,
        }
    }

    /// The number of records handed out so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The next record, or `None` at the end. It borrows the reader's buffer.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::CutOff`], [`Error::TooLong`] and [`Error::Malformed`], each once
    /// and after all records before the damage.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a record borrows the reader, which an iterator cannot express")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        match self.found() {
            Ok(Some(found)) => {
                self.records += 1;
                Ok(Some(Record {
                    time_ns: found.time_ns,
                    link: found.link,
                    original_len: found.original_len,
                    bytes: self.window.passed(found.bytes),
                }))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The time of the record that [`Reader::next`] will return. The bytes of the last record are gone then.
    #[cold]
    pub fn peek(&mut self) -> Ahead {
        let found = self.found();
        let ahead = match &found {
            Ok(Some(found)) => Ahead::Time(found.time_ns),
            Ok(None) => Ahead::End,
            Err(Error::NotYet) => return Ahead::NotYet,
            Err(_) => Ahead::End,
        };
        self.ahead = Some(found);
        ahead
    }

    #[inline]
    fn found(&mut self) -> Result<Option<Found>, Error> {
        if let Some(found) = self.ahead.take() {
            return found;
        }
        if self.over {
            return Ok(None);
        }
        let found = match &self.file {
            Layouts::Pcap(layout) => classic::record(&mut self.window, layout, self.records),
            Layouts::Pcapng { .. } => self.pcapng_record(),
            Layouts::Unread => self.first_record(),
        };
        self.over = !matches!(found, Ok(Some(_)) | Err(Error::NotYet));
        found
    }

    #[cold]
    fn first_record(&mut self) -> Result<Option<Found>, Error> {
        self.begin()?;
        self.found()
    }

    /// Reads blocks until an interface is known. A packet before that is damage, and an error.
    fn find_first_link(&mut self) -> Result<(), Error> {
        while let Layouts::Pcapng { section, first_link } = &mut self.file {
            *first_link = section.first_link();
            if first_link.is_some() {
                break;
            }
            match blocks::block(&mut self.window, section, 0)? {
                Block::End => {
                    self.over = true;
                    break;
                }
                Block::Packet(_) | Block::Other => {}
            }
        }
        Ok(())
    }

    fn pcapng_record(&mut self) -> Result<Option<Found>, Error> {
        let Layouts::Pcapng { section, .. } = &mut self.file else {
            return Ok(None);
        };
        loop {
            match blocks::block(&mut self.window, section, self.records)? {
                Block::Packet(found) => return Ok(Some(found)),
                Block::Other => {}
                Block::End => return Ok(None),
            }
        }
    }
}
