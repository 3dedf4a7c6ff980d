//! The walk over IPv6 extension headers (RFC 8200 §4) to the upper layer.
//!
//! Walked: hop-by-hop options, routing, fragment, destination options and authentication headers.
//! ESP ends the walk, since what follows is encrypted; so does a fragment that is not the first, since what follows
//! is the middle of something. Mobility, HIP and Shim6 headers are taken for the upper layer, as Linux takes them.
//! At most [`MAX_HEADERS`] headers are walked: a longer chain is made to tire a reader.

use super::Malformed;
use super::number::proto;

mod field {
    use std::ops::Range;

    pub const NEXT_HEADER: usize = 0;
    pub const LENGTH: usize = 1;
    pub const FRAGMENT_OFFSET: Range<usize> = 2..4;
    pub const FRAGMENT_IDENT: Range<usize> = 4..8;
}

/// Most extension headers that a packet may carry.
pub const MAX_HEADERS: usize = 8;

const FRAGMENT_LEN: usize = field::FRAGMENT_IDENT.end;
const MORE_FRAGMENTS: u16 = 1;
const OFFSET: u16 = 0xfff8;

/// A fragment header (RFC 8200 §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Where in the datagram the payload belongs, in bytes.
    pub offset: u16,
    /// Whether further fragments follow.
    pub more: bool,
    /// Identification that the fragments of one datagram share.
    pub ident: u32,
}

impl Fragment {
    /// Whether this is a whole datagram for all its fragment header (RFC 6946).
    pub const fn is_atomic(self) -> bool {
        self.offset == 0 && !self.more
    }
}

/// Where a walk has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain {
    /// What stands there. After a fragment that is not the first: what the fragment header names.
    pub proto: u8,
    /// Offset of it from the end of the fixed header, in bytes.
    pub offset: usize,
    /// The fragment header, if there was one.
    pub fragment: Option<Fragment>,
    /// Offset of what follows the fragment header, as of `proto`; 0 without one.
    pub fragmented: usize,
    /// Whether there was an authentication header.
    pub authenticated: bool,
}

impl Chain {
    /// Why a chain that is cut off is malformed.
    fn cut(&self, malformed: Malformed) -> Malformed {
        match self.fragment {
            Some(fragment) if !fragment.is_atomic() => Malformed::FragmentFirst,
            _ => malformed,
        }
    }
}

/// Walk from the fixed header's `next` type through `payload`, which ends where the IP payload ends.
///
/// A first fragment must hold its chain whole (RFC 7112 §5): a cut one is [`Malformed::FragmentFirst`].
pub fn walk(next: u8, payload: &[u8]) -> Result<Chain, Malformed> {
    let mut chain = Chain { proto: next, offset: 0, fragment: None, fragmented: 0, authenticated: false };
    for count in 0.. {
        if !is_extension(chain.proto) {
            break;
        }
        if count == MAX_HEADERS {
            return Err(Malformed::Ipv6ExtensionCount);
        }
        let rest = &payload[chain.offset..];
        let length = match chain.proto {
            // RFC 8200 §4: "The same action [discard] should be taken if a node encounters a Next Header value of zero
            // in any header other than an IPv6 header."
            proto::HOP_BY_HOP if count > 0 => return Err(Malformed::Ipv6ExtensionOrder),
            proto::FRAGMENT if chain.fragment.is_some() => {
                return Err(Malformed::Ipv6ExtensionOrder);
            }
            proto::FRAGMENT => {
                let fragment = read_fragment(rest, chain.offset)?;
                chain.fragment = Some(fragment);
                FRAGMENT_LEN
            }
            proto::AH => {
                chain.authenticated = true;
                authentication_len(rest).map_err(|malformed| chain.cut(malformed))?
            }
            _ => options_len(rest).map_err(|malformed| chain.cut(malformed))?,
        };
        let is_fragment = chain.proto == proto::FRAGMENT;
        chain.proto = rest[field::NEXT_HEADER];
        chain.offset += length;
        if is_fragment {
            chain.fragmented = chain.offset;
        }
        if chain.fragment.is_some_and(|fragment| fragment.offset > 0) {
            break;
        }
    }
    Ok(chain)
}

/// Whether a walk goes on through this header.
#[inline]
const fn is_extension(next: u8) -> bool {
    matches!(next, proto::HOP_BY_HOP | proto::ROUTING | proto::FRAGMENT | proto::AH | proto::DESTINATION_OPTIONS)
}

/// Return the length in bytes of an authentication header (RFC 4302 §2.2): its field counts 4-byte words less 2.
pub(super) fn authentication_len(data: &[u8]) -> Result<usize, Malformed> {
    const SMALLEST: usize = 12;
    let length = match data {
        [_, length, ..] => (usize::from(*length) + 2) * 4,
        _ => return Err(Malformed::AuthenticationTruncated),
    };
    if length < SMALLEST || length > data.len() {
        return Err(Malformed::AuthenticationTruncated);
    }
    Ok(length)
}

/// Return the length in bytes of any other header: its field counts 8-byte words less 1 (RFC 6564 §4).
fn options_len(data: &[u8]) -> Result<usize, Malformed> {
    match data.get(field::LENGTH).map(|&length| (usize::from(length) + 1) * 8) {
        Some(length) if length <= data.len() => Ok(length),
        _ => Err(Malformed::Ipv6ExtensionTruncated),
    }
}

/// Read a fragment header that `before` bytes of extension headers precede.
fn read_fragment(data: &[u8], before: usize) -> Result<Fragment, Malformed> {
    let Some(header) = data.first_chunk::<FRAGMENT_LEN>() else {
        return Err(Malformed::Ipv6ExtensionTruncated);
    };
    let place = super::bytes::u16_at(header, field::FRAGMENT_OFFSET);
    let fragment = Fragment {
        offset: place & OFFSET,
        more: place & MORE_FRAGMENTS != 0,
        ident: super::bytes::u32_at(header, field::FRAGMENT_IDENT),
    };
    // RFC 8200 §4.5: both "must be discarded and an ICMP Parameter Problem […] sent".
    let length = data.len() - FRAGMENT_LEN;
    if fragment.more && !length.is_multiple_of(8) {
        return Err(Malformed::FragmentLength);
    }
    if before + usize::from(fragment.offset) + length > usize::from(u16::MAX) {
        return Err(Malformed::FragmentOverrun);
    }
    Ok(fragment)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [u8; 6] = [0; 6];

    fn options(next: u8) -> Vec<u8> {
        [&[next, 0][..], &NOTHING].concat()
    }

    fn fragment(next: u8, place: u16) -> Vec<u8> {
        let [high, low] = place.to_be_bytes();
        vec![next, 0, high, low, 0, 0, 0, 9]
    }

    #[test]
    fn nothing_to_walk() {
        let chain = Chain { proto: proto::TCP, offset: 0, fragment: None, fragmented: 0, authenticated: false };
        assert_eq!(walk(proto::TCP, &[]), Ok(chain));
        assert_eq!(walk(proto::ESP, &[1]).unwrap().offset, 0);
    }

    #[test]
    fn walks_every_kind() {
        let ah = [&[proto::UDP, 4, 0, 0][..], &[7; 20]].concat();
        let long = [&[proto::FRAGMENT, 1, 0, 0][..], &[0; 12]].concat();
        let payload = [options(proto::ROUTING), long, fragment(proto::AH, 0), ah, vec![1; 8]].concat();
        let chain = walk(proto::HOP_BY_HOP, &payload).unwrap();
        assert_eq!((chain.proto, chain.offset, chain.authenticated), (proto::UDP, 8 + 16 + 8 + 24, true));
        assert_eq!(chain.fragment, Some(Fragment { offset: 0, more: false, ident: 9 }));
        assert!(chain.fragment.unwrap().is_atomic());
    }

    #[test]
    fn a_later_fragment_ends_the_walk() {
        let payload = [fragment(proto::DESTINATION_OPTIONS, 8 | 1), options(proto::TCP)].concat();
        let chain = walk(proto::FRAGMENT, &payload).unwrap();
        assert_eq!((chain.proto, chain.offset), (proto::DESTINATION_OPTIONS, 8));
        assert_eq!(chain.fragment, Some(Fragment { offset: 8, more: true, ident: 9 }));
    }

    #[test]
    fn refuses() {
        let cut = |next, payload: &[u8]| walk(next, payload).unwrap_err();
        assert_eq!(cut(proto::HOP_BY_HOP, &[]), Malformed::Ipv6ExtensionTruncated);
        assert_eq!(cut(proto::ROUTING, &options(6)[..7]), Malformed::Ipv6ExtensionTruncated);
        assert_eq!(cut(proto::FRAGMENT, &[6, 0, 0, 0]), Malformed::Ipv6ExtensionTruncated);
        assert_eq!(cut(proto::AH, &[6]), Malformed::AuthenticationTruncated);
        assert_eq!(cut(proto::AH, &[6, 0, 0, 0, 0, 0, 0, 0]), Malformed::AuthenticationTruncated);
        assert_eq!(cut(proto::ROUTING, &options(proto::HOP_BY_HOP)), Malformed::Ipv6ExtensionOrder);
        let twice = [fragment(proto::FRAGMENT, 0), fragment(6, 0)].concat();
        assert_eq!(cut(proto::FRAGMENT, &twice), Malformed::Ipv6ExtensionOrder);
        let odd = [fragment(6, 1), vec![0; 9]].concat();
        assert_eq!(cut(proto::FRAGMENT, &odd), Malformed::FragmentLength);
        let far = [fragment(6, 0xfff8), vec![0; 8]].concat();
        assert_eq!(cut(proto::FRAGMENT, &far), Malformed::FragmentOverrun);
    }

    #[test]
    fn a_chain_has_an_upper_bound() {
        let headers = |n: usize| [vec![options(proto::DESTINATION_OPTIONS); n], vec![options(6)]].concat().concat();
        assert!(walk(proto::DESTINATION_OPTIONS, &headers(MAX_HEADERS - 1)).is_ok());
        let long = walk(proto::DESTINATION_OPTIONS, &headers(MAX_HEADERS));
        assert_eq!(long, Err(Malformed::Ipv6ExtensionCount));
    }
}
