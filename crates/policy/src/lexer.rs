//! Text to tokens. Comments are kept aside for the formatter; nothing here fails, what is no
//! token becomes a finding and is skipped.

use std::net::Ipv6Addr;

use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::span::Span;

/// What a token is. Text is looked up in the source by its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word: letter or `_`, then letters, digits, `_`.
    Word,
    /// Digits with an optional fraction and unit: `2Gbps`, `0x1f`, `30%`.
    Number,
    /// An address, prefix or endpoint: `10.0.0.0/8`, `::1`, `192.0.2.1:80`.
    Address,
    /// A quoted string.
    Text,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Semicolon,
    Colon,
    ColonColon,
    Equals,
    EqualsEquals,
    BangEquals,
    Tilde,
    Greater,
    Minus,
    /// `->`
    Arrow,
    /// `<->`
    TwoWay,
    /// `<-`, as in `<-(2Gbps)->`
    LeftArrow,
    /// `..`
    Dots,
    End,
}

impl Kind {
    /// How the token is named in messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Word => "a name",
            Self::Number => "a number",
            Self::Address => "an address",
            Self::Text => "a string",
            Self::LeftParen => "`(`",
            Self::RightParen => "`)`",
            Self::LeftBracket => "`[`",
            Self::RightBracket => "`]`",
            Self::LeftBrace => "`{`",
            Self::RightBrace => "`}`",
            Self::Comma => "`,`",
            Self::Semicolon => "`;`",
            Self::Colon => "`:`",
            Self::ColonColon => "`::`",
            Self::Equals => "`=`",
            Self::EqualsEquals => "`==`",
            Self::BangEquals => "`!=`",
            Self::Tilde => "`~`",
            Self::Greater => "`>`",
            Self::Minus => "`-`",
            Self::Arrow => "`->`",
            Self::TwoWay => "`<->`",
            Self::LeftArrow => "`<-`",
            Self::Dots => "`..`",
            Self::End => "the end of the file",
        }
    }
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether it is the first token of its line.
    pub(crate) first_on_line: bool,
}

/// One comment, `#` to the end of the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comment {
    pub(crate) span: Span,
    /// Whether nothing but white space stands before it on its line.
    pub(crate) own_line: bool,
}

/// The tokens of a file (the last one is `End`) and its comments.
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// Splits `source` into tokens and comments.
pub(crate) fn lex(source: &str, findings: &mut Findings) -> Lexed {
    let mut lexer = Lexer { source, bytes: source.as_bytes(), at: 0 };
    let mut tokens: Vec<Token> = Vec::new();
    let mut comments = Vec::new();
    let mut line_start = true;
    while let Some(byte) = lexer.peek(0) {
        let start = lexer.at;
        match byte {
            b'\n' => {
                line_start = true;
                lexer.at += 1;
            }
            b' ' | b'\t' | b'\r' => lexer.at += 1,
            b'#' => {
                lexer.skip_while(|b| b != b'\n');
                let end = start + source[start..lexer.at].trim_end().len();
                comments.push(Comment { span: Span::new(start, end), own_line: line_start });
            }
            _ => {
                let touching = tokens.last().is_some_and(|t| t.span.end as usize == start && t.kind == Kind::Word);
                match lexer.token(byte, touching) {
                    Ok(kind) => {
                        tokens.push(Token { kind, span: Span::new(start, lexer.at), first_on_line: line_start })
                    }
                    Err(finding) => findings.push(*finding),
                }
                line_start = false;
            }
        }
    }
    // The end is placed behind the last token, so that a message about it points at something.
    let end = tokens.last().map_or(0, |t| t.span.end as usize);
    tokens.push(Token { kind: Kind::End, span: Span::new(end, end), first_on_line: true });
    Lexed { tokens, comments }
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_while(&mut self, keep: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&keep) {
            self.at += 1;
        }
    }

    /// Reads one token that starts with `byte`; `touching`: a word ends right here.
    fn token(&mut self, byte: u8, touching: bool) -> Result<Kind, Box<Diagnostic>> {
        if !(touching && byte == b':') && self.ipv6() {
            return Ok(Kind::Address);
        }
        if byte.is_ascii_digit() {
            return Ok(if self.ipv4() { Kind::Address } else { self.number() });
        }
        if byte.is_ascii_alphabetic() || byte == b'_' {
            self.skip_while(word_byte);
            return Ok(Kind::Word);
        }
        if byte == b'"' || byte == b'\'' {
            return self.text(byte);
        }
        const LONG: [(&str, Kind); 8] = [
            ("<->", Kind::TwoWay),
            ("->", Kind::Arrow),
            ("<-", Kind::LeftArrow),
            ("..", Kind::Dots),
            ("::", Kind::ColonColon),
            ("==", Kind::EqualsEquals),
            ("!=", Kind::BangEquals),
            // BESS writes a connection in this way too.
            ("=>", Kind::Arrow),
        ];
        let rest = &self.bytes[self.at..];
        if let Some((text, kind)) = LONG.iter().find(|(text, _)| rest.starts_with(text.as_bytes())) {
            self.at += text.len();
            return Ok(*kind);
        }
        let kind = match byte {
            b'(' => Kind::LeftParen,
            b')' => Kind::RightParen,
            b'[' => Kind::LeftBracket,
            b']' => Kind::RightBracket,
            b'{' => Kind::LeftBrace,
            b'}' => Kind::RightBrace,
            b',' => Kind::Comma,
            b';' => Kind::Semicolon,
            b':' => Kind::Colon,
            b'=' => Kind::Equals,
            b'~' => Kind::Tilde,
            b'>' => Kind::Greater,
            b'-' => Kind::Minus,
            _ => {
                let c = self.source[self.at..].chars().next().unwrap_or('\u{fffd}');
                let span = Span::new(self.at, self.at + c.len_utf8());
                self.at += c.len_utf8();
                let text = format!("the character `{}` has no meaning here", c.escape_debug());
                return Err(Box::new(Diagnostic::error(Code::Syntax, span, text)));
            }
        };
        self.at += 1;
        Ok(kind)
    }

    /// `"…"` or `'…'` on one line, with `\` before a quote or itself.
    fn text(&mut self, quote: u8) -> Result<Kind, Box<Diagnostic>> {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            if byte == b'\n' {
                break;
            }
            self.at += 1;
            if byte == quote {
                return Ok(Kind::Text);
            }
            if byte == b'\\' && self.peek(0).is_some_and(|b| b != b'\n') {
                self.at += 1;
                // The escaped character may be longer than a byte.
                while !self.source.is_char_boundary(self.at) {
                    self.at += 1;
                }
            }
        }
        let end = start + self.source[start..self.at].trim_end().len();
        let finding = Diagnostic::error(Code::Syntax, Span::new(start, end), "this string does not end")
            .label("starts here")
            .help("a string ends with its quote on the same line");
        Err(Box::new(finding))
    }

    /// An IPv6 address, alone or with a prefix length. A run of hex digits and colons counts only
    /// if it parses, so that `name::ACL()` stays what it is in BESS.
    fn ipv6(&mut self) -> bool {
        let rest = &self.bytes[self.at..];
        if !rest.first().is_some_and(|b| b.is_ascii_hexdigit() || *b == b':') {
            return false;
        }
        let run = |accept: &dyn Fn(u8) -> bool| rest.iter().take_while(|b| accept(**b)).count();
        let mut length = run(&|b| b.is_ascii_hexdigit() || b == b':');
        if rest.get(length) == Some(&b'.') && rest.get(length + 1).is_some_and(u8::is_ascii_digit) {
            length = run(&|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
        }
        let colons = rest[..length].iter().filter(|b| **b == b':').count();
        if colons < 2 || length > 45 {
            return false;
        }
        // A trailing single colon belongs to what follows: `x == ::1: path`.
        if rest[length - 1] == b':' && !(length >= 2 && rest[length - 2] == b':') {
            length -= 1;
        }
        let text = &self.source[self.at..self.at + length];
        if text.parse::<Ipv6Addr>().is_err() {
            return false;
        }
        let next = rest.get(length).copied();
        if next.is_some_and(|b| word_byte(b) || b == b'(') {
            return false;
        }
        self.at += length;
        self.prefix_length();
        true
    }

    fn prefix_length(&mut self) {
        if self.peek(0) == Some(b'/') && self.peek(1).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit());
        }
    }

    /// Four groups of digits with dots between them, then a prefix length or a port.
    fn ipv4(&mut self) -> bool {
        let mut length = 0;
        for group in 0..4 {
            let digits = self.bytes[self.at + length..].iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            length += digits;
            if group < 3 {
                if self.peek(length) != Some(b'.') {
                    return false;
                }
                length += 1;
            }
        }
        self.at += length;
        if self.peek(0) == Some(b':') && self.peek(1).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit());
        }
        self.prefix_length();
        true
    }

    /// Digits, a fraction, and whatever letters follow; the parser judges the unit.
    fn number(&mut self) -> Kind {
        self.skip_while(|b| b.is_ascii_digit() || b == b'_');
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit() || b == b'_');
        }
        if self.source[self.at..].starts_with('µ') {
            self.at += 'µ'.len_utf8();
        }
        self.skip_while(word_byte);
        if self.peek(0) == Some(b'%') {
            self.at += 1;
        }
        Kind::Number
    }
}
