//! A filter's text cut into words, as libpcap's own scanner cuts it.

use std::ops::Range;

/// A word and where it stands in the text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword, number, address or name.
    Name,
    And,
    Or,
    Not,
    Open,
    Close,
    /// The brackets of `tcp[13]` with all that is in them.
    Index,
    /// A comparison: what stands around it is arithmetic.
    Compare,
    /// Any other sign: arithmetic, or the slash of a network.
    Sign,
}

/// Cut `text` into words; `None` where a bracket is not closed or a character belongs to no word.
pub(super) fn words(text: &str) -> Option<Vec<Word>> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let two = bytes.get(at..at + 2).unwrap_or_default();
        let (kind, length) = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'(' => (Kind::Open, 1),
            b')' => (Kind::Close, 1),
            b'[' => (Kind::Index, index_length(&bytes[at..])?),
            _ if two == b"&&" => (Kind::And, 2),
            _ if two == b"||" => (Kind::Or, 2),
            _ if [&b"<="[..], b">=", b"==", b"!="].contains(&two) => (Kind::Compare, 2),
            _ if two == b"<<" || two == b">>" => (Kind::Sign, 2),
            b'<' | b'>' | b'=' => (Kind::Compare, 1),
            b'!' => (Kind::Not, 1),
            b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' => (Kind::Sign, 1),
            _ if is_name(byte) => {
                let rest = &bytes[at..];
                let length = rest.iter().position(|b| !is_name(*b) && *b != b'-').unwrap_or(rest.len());
                let kind = match &text[at..at + length] {
                    "and" => Kind::And,
                    "or" => Kind::Or,
                    "not" => Kind::Not,
                    _ => Kind::Name,
                };
                (kind, length)
            }
            _ => return None,
        };
        words.push(Word { kind, span: at..at + length });
        at += length;
    }
    Some(words)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'\\' | b':')
}

/// Return how many bytes an index takes, its brackets included.
fn index_length(text: &[u8]) -> Option<usize> {
    let mut open = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'[' => open += 1,
            b']' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_as_tcpdump_cuts_it() {
        let kinds = |text: &str| words(text).map(|w| w.iter().map(|w| w.kind).collect::<Vec<_>>());
        use Kind::{And, Close, Compare, Index, Name, Not, Open, Or, Sign};
        assert_eq!(kinds("tcp port ftp-data or(udp)"), Some(vec![Name, Name, Name, Or, Open, Name, Close]));
        assert_eq!(kinds("net 10.0.0.0/8&&!host ::1"), Some(vec![Name, Name, Sign, Name, And, Not, Name, Name]));
        assert_eq!(kinds("tcp[tcp[12]>>2:2] & 0xf!=0"), Some(vec![Name, Index, Sign, Name, Compare, Name]));
        assert_eq!(kinds("portrange 1-9 and \\tcp"), Some(vec![Name, Name, And, Name]));
        assert_eq!(kinds("tcp[1"), None);
        assert_eq!(kinds("tcp $"), None);
        assert_eq!(kinds(" \t\n"), Some(vec![]));
    }
}
