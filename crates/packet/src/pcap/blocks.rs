//! The blocks of pcapng as they come by: framed, checked, and handed to the section they belong to.

use std::io::Read;

use super::ng::{
    BLOCK_HEADER, BLOCK_TRAILER, ENHANCED_PACKET, Fault, INTERFACE, OBSOLETE_PACKET, SECTION_HEADER, SIMPLE_PACKET,
    Section,
};
use super::window::{Found, Skip, VIEW, Window};
use super::{Error, MAX_RECORD, Place};

/// Reads a section header, which is at the beginning of the window; the next block's reading skips its rest.
pub(super) fn section_header<R: Read>(window: &mut Window<R>, place: Place) -> Result<Section, Error> {
    const NEEDED: usize = BLOCK_HEADER + 8;
    // Before the byte order is known the length cannot be read.
    window.need(NEEDED, place)?;
    let mut body = [0; 8];
    body.copy_from_slice(&window.view()[BLOCK_HEADER..NEEDED]);
    let section = Section::parse(&body).map_err(|what| Error::Malformed { place, what })?;
    let len = section.order.u32(window.view(), 4);
    if len < 28 {
        return Err(Error::Malformed { place, what: "a section header is too short" });
    }
    start_skipping(window, len, place);
    Ok(section)
}

/// Begins to pass a block of any length, of which only the repeated length is looked at.
fn start_skipping<R: Read>(window: &mut Window<R>, len: u32, place: Place) {
    let left = u64::from(len).next_multiple_of(4) - BLOCK_TRAILER as u64;
    window.skipping = Some(Skip { left, len, place });
}

/// Passes what is left of a block that is being skipped; where the stream has no more yet, the next call goes on.
fn skip_block<R: Read>(window: &mut Window<R>, section: &Section) -> Result<(), Error> {
    window.skip()?;
    if let Some(Skip { len, place, .. }) = window.skipping {
        window.need(BLOCK_TRAILER, place)?;
        check_trailer(section, window.view(), len, place)?;
        window.pass(BLOCK_TRAILER);
        window.skipping = None;
    }
    Ok(())
}

#[inline]
fn check_trailer(section: &Section, bytes: &[u8], len: u32, place: Place) -> Result<(), Error> {
    if section.order.u32(bytes, 0) == len {
        return Ok(());
    }
    Err(Error::Malformed { place, what: "the two lengths of a block differ" })
}

/// What a block was.
pub(super) enum Block {
    Packet(Found),
    Other,
    End,
}

/// Reads one block of pcapng.
pub(super) fn block<R: Read>(window: &mut Window<R>, section: &mut Section, records: u64) -> Result<Block, Error> {
    if window.skipping.is_some() {
        skip_block(window, section)?;
    }
    let place = Place { offset: window.offset(), records };
    if !window.need_or_end(BLOCK_HEADER, place)? {
        return Ok(Block::End);
    }
    let kind = section.order.u32(window.view(), 0);
    let len = section.order.u32(window.view(), 4);
    // The type of a section header reads the same in both byte orders.
    if kind == SECTION_HEADER {
        *section = section_header(window, place)?;
        return Ok(Block::Other);
    }
    let frame = BLOCK_HEADER + BLOCK_TRAILER;
    if (len as usize) < frame {
        return Err(Error::Malformed { place, what: "a block is shorter than what frames it" });
    }
    if !matches!(kind, INTERFACE | ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET) {
        start_skipping(window, len, place);
        skip_block(window, section)?;
        return Ok(Block::Other);
    }

    // Some writers leave the padding of the data out of the length; it is in the file all the same.
    let padded = (len as usize).next_multiple_of(4);
    if padded > VIEW {
        return Err(Error::TooLong { place, len: u64::from(len), most: VIEW });
    }
    window.need(padded, place)?;
    let (body, trailer) = window.view()[BLOCK_HEADER..padded].split_at(padded - frame);
    check_trailer(section, trailer, len, place)?;
    let packet = match kind {
        ENHANCED_PACKET => section.enhanced(body),
        SIMPLE_PACKET => section.simple(body),
        OBSOLETE_PACKET => section.obsolete(body),
        _ => {
            section.add_interface(body).map_err(|what| Error::Malformed { place, what })?;
            window.pass(padded);
            return Ok(Block::Other);
        }
    };
    let packet = packet.map_err(|fault| match fault {
        Fault::Malformed(what) => Error::Malformed { place, what },
        Fault::TooLong(len) => Error::TooLong { place, len: u64::from(len), most: MAX_RECORD },
    })?;
    let passed = window.pass(padded);
    let body = passed.start + BLOCK_HEADER;
    Ok(Block::Packet(Found {
        time_ns: packet.time_ns,
        link: packet.link,
        original_len: packet.original,
        bytes: body + packet.data.start..body + packet.data.end,
    }))
}
